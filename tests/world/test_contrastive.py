"""The builder of the text-image model: its batches and its directory."""

import math

import open_clip
import pytest
import torch
import torch.nn.functional as F
from open_clip.loss import ClipLoss
from tiny_garments import few, garments

from cnslib.world import contrastive, diffusion, scenes
from cnslib.world.training import Schedule

SCHEDULE = Schedule(steps=2, batch_size=4, learning_rate=1e-3, seed=1)


def test_a_contrastive_batch_holds_every_caption_once():
    batch = contrastive.one_of_each(garments(), ("test", 1))
    assert len(set(batch.captions())) == len(batch.captions()) == 150


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


def test_pictures_of_nothing_are_a_bare_backdrop_under_each_shift_and_none():
    batch = contrastive.one_of_each(scenes.NOTHING, ("test", 1))
    assert batch.captions()[8] == "a picture in heavy snow" and batch.captions()[-1] == "a picture"
    assert sorted(batch.shift.tolist()) == list(range(15)) and set(batch.label.tolist()) == {0}
    draws = scenes.draw([("test", 1, 14)])
    style = next(
        style for style in scenes.STYLES if torch.equal(batch.image[14:], scenes.scenes(torch.zeros(1, 28, 28), draws, style=style).image)
    )
    assert torch.equal(batch.image[14:], scenes.backdrop(draws, 64, wide=scenes.STYLES[style]).clamp(0, 1))
