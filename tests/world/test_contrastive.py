"""The builder of the text-image model: its batches and its directory."""

import open_clip
import torch
from tiny_garments import few, garments

from cnslib.core.names import SHIFTS
from cnslib.world import contrastive, diffusion
from cnslib.world.training import Schedule

SCHEDULE = Schedule(steps=2, batch_size=4, learning_rate=1e-3, seed=1)


def test_a_contrastive_batch_holds_every_caption_once():
    batch = contrastive.one_of_each(garments(), ("test", 1))
    assert len(set(batch.captions())) == len(batch.captions()) == 150


def test_shifted_scenes_have_a_severity_of_the_range_and_unshifted_ones_none():
    batch = contrastive.one_of_each(garments(), ("test", 1), severities=(0.3, 0.5))
    plain = batch.shift == len(SHIFTS)
    assert (batch.severity[plain] == 0).all() and plain.sum() == 10
    assert 0.3 <= batch.severity[~plain].min() < 0.32 and 0.48 < batch.severity[~plain].max() <= 0.5


def test_the_open_clip_directory_loads_with_its_tokenizer(tmp_path):
    model, settings = contrastive.train(
        few(), vision="test_resnet", width=16, layers=1, schedule=SCHEDULE, checkpoint=tmp_path / "c.pt", device="cpu"
    )
    contrastive.save(model, settings, tmp_path / "clip")
    loaded, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path / 'clip'}")
    ids = open_clip.get_tokenizer(f"local-dir:{tmp_path / 'clip'}")(["a picture of a bag"])
    with torch.no_grad():
        same = torch.allclose(loaded.eval().encode_text(ids), model.eval().encode_text(ids), atol=1e-2)
    assert same and ids.shape == (1, diffusion.CONTEXT)
    assert transform.transforms[-1].mean == list(contrastive.MEAN)
