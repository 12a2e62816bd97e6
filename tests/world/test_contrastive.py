"""The builder of the text-image model: its batches and its directory."""

import math

import open_clip
import pytest
import torch
import torch.nn.functional as F
from open_clip.loss import ClipLoss
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


def test_the_loss_of_captions_that_all_differ_is_that_of_open_clip():
    image, text = (F.normalize(torch.randn(5, 8, generator=torch.Generator().manual_seed(seed)), dim=1) for seed in (1, 2))
    expected = ClipLoss()(image, text, torch.tensor(10.0))
    torch.testing.assert_close(contrastive.matching(10 * image @ text.T, torch.arange(5)), expected)


def test_a_caption_of_several_pictures_is_one_text_and_may_choose_any_of_them():
    own, other = 3.0, -2.0  # three pictures, of which the first two have one caption
    similarity = torch.tensor([[own, other], [own, other], [other, own]])
    picture = math.log(1 + math.exp(other - own))  # chooses between two texts
    shared, alone = math.log(2 + math.exp(other - own)), math.log(1 + 2 * math.exp(other - own))  # texts choose among three pictures
    loss = contrastive.matching(similarity, torch.tensor([0, 0, 1]))
    assert loss.item() == pytest.approx((picture + (shared + alone) / 2) / 2)


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
