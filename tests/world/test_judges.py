import math

import open_clip
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from golden_units import difference
from open_clip.loss import ClipLoss
from tiny_garments import VIT, few, garments

from cnslib.core import recipes
from cnslib.core.names import SHIFTS
from cnslib.core.settings.sections import Contrastive, Redrawing, Selfsupervised
from cnslib.models import text_to_image
from cnslib.world import autoencoder, contrastive, diffusion, redrawing, scenes, selfsupervised, training, zoo

SHORT = {"steps": 2, "learning_rate": 1e-3, "average": 0.998, "quality_images": 1, "seed": 1}


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
    tower = {"vision": "test_resnet", "width": 16, "layers": 1, "severities": [0.15, 1.0], "omitted": 0.0, "redrawn": 0.0}
    where = {"checkpoint": tmp_path / "c.pt", "device": "cpu"}
    model, settings = contrastive.train(few(), Contrastive(**tower, **SHORT), {"web": None, "nothing": None}, **where)
    contrastive.save(model, settings, tmp_path / "clip")
    loaded, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path / 'clip'}")
    ids = open_clip.get_tokenizer(f"local-dir:{tmp_path / 'clip'}")(["a picture of a bag"])
    with torch.no_grad():
        same = torch.allclose(loaded.eval().encode_text(ids), model.eval().encode_text(ids), atol=1e-2)
    assert same and ids.shape == (1, diffusion.CONTEXT)
    assert transform.transforms[-1].mean == list(contrastive.MEAN)


def test_a_contrastive_batch_holds_every_caption_once_and_pictures_of_nothing_are_a_bare_backdrop():
    batch = contrastive.one_of_each(few(), ("test", 1))
    assert (batch.label * 15 + batch.shift).tolist() == list(range(30))
    batch = contrastive.one_of_each(scenes.NOTHING, ("test", 1))
    assert batch.shift.tolist() == list(range(15)) and set(batch.label.tolist()) == {0}
    draws = scenes.draw([("test", 1, 14)])
    assert any(torch.equal(batch.image[14:], scenes.backdrop(draws, 64, wide=wide).clamp(0, 1)) for wide in scenes.STYLES.values())


def test_a_network_that_learned_from_views_keeps_its_backbone_without_head(tmp_path):
    settings = Selfsupervised(**zoo.network_of(VIT), temperature=0.2, batch_size=4, redrawn=0.0, **SHORT)
    backbone = selfsupervised.train(garments(), settings, None, checkpoint=tmp_path / "d.pt", device="cpu")
    assert training.predict(backbone, torch.rand(5, 3, 64, 64)).shape == (5, 32)


def test_neighbours_name_the_class_of_images_that_are_in_the_bank():
    backbone = torch.nn.Flatten()
    image = torch.eye(4).repeat_interleave(48, 1).view(4, 3, 8, 8).repeat(10, 1, 1, 1)
    batch = scenes.Batch(image, torch.arange(4).repeat(10), torch.zeros(40), torch.zeros(40))
    assert selfsupervised.knn_correct(backbone, batch, batch, neighbours=5).all()


WAY = Redrawing(per_caption=2, severities=[0.3, 0.85], strengths=[0.0, 0.5], nothing=[0.0], steps=4, guidance=2.0, seed=1)
PROMPT = "a picture of a sneaker"


@pytest.fixture(scope="module")
def pipe():
    torch.manual_seed(0)
    tokens, vae = diffusion.tokenizer(), autoencoder.build((8, 8, 8), latent_channels=4)
    parts = diffusion.text_encoder(tokens, width=32, layers=1), diffusion.unet([16, 16, 16], width=32, latent_channels=4)
    return diffusion.assemble(vae, tokens, diffusion.Denoiser(*parts), diffusion.scheduler())


@pytest.fixture(scope="module")
def image():
    return scenes.sample(garments(), ("redrawn", "test"), 4, style="web").image


def redraw(pipe, image, strength, key="a"):
    keys = [(key, number) for number in range(len(image))]
    return redrawing.redraw(pipe, image, PROMPT, keys, strength=strength, steps=4, guidance=2.0)


def test_strength_zero_is_the_vae_and_back_and_at_strength_one_nothing_is_left_of_the_scene(pipe, image):
    with torch.no_grad():
        latents = pipe.vae.encode(image * 2 - 1).latent_dist.mean * pipe.vae.config.scaling_factor
    assert torch.equal(redraw(pipe, image, 0.0), text_to_image.decode(pipe, latents).permute(0, 3, 1, 2))
    assert torch.equal(redraw(pipe, image, 1.0), redraw(pipe, image.flip(0), 1.0))


def test_a_picture_depends_on_its_scene_and_its_own_noise_and_not_on_its_neighbours(pipe, image):
    together, alone = redraw(pipe, image, 0.5), redraw(pipe, image[:1], 0.5)
    assert (together[:1].int() - alone.int()).abs().max() <= 1
    assert not torch.equal(together, redraw(pipe, image, 0.5, key="b")) and not torch.equal(together, redraw(pipe, image.flip(0), 0.5))


@pytest.fixture(scope="module")
def made(pipe, tmp_path_factory):
    """The file of all captions at two strengths, what is in it, and the prompts that were drawn by a run that was killed once."""
    cache, prompts, draw = tmp_path_factory.mktemp("redrawn") / "web.safetensors", [], redrawing.redraw

    def redraw(pipe, image, prompt, *rest, **how):
        prompts.append(prompt)
        if len(prompts) == 51:
            raise KeyboardInterrupt
        return draw(pipe, image, prompt, *rest, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redrawing, "redraw", redraw)
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        with pytest.raises(KeyboardInterrupt):
            redrawing.make(pipe, few(), WAY, pool="web", strengths=WAY.strengths, cache=cache)
        return cache, redrawing.make(pipe, few(), WAY, pool="web", strengths=WAY.strengths, cache=cache), prompts


def test_every_caption_is_drawn_equally_often_at_every_strength(made):
    cache, drawn, _ = made
    assert torch.bincount(drawn.label * 15 + drawn.shift).tolist() == [4] * 30 and len(drawn.within(0.4).label) == 60
    assert (drawn.severity[drawn.shift == len(SHIFTS)] == 0).all()
    assert drawn.severity[drawn.shift < len(SHIFTS)].min() >= 0.3 and drawn.severity.max() <= 0.85
    assert torch.equal(torch.from_numpy(few().labels)[drawn.garment], drawn.label)
    told = pd.DataFrame({key: getattr(drawn, key).double().numpy() for key in ("label", "shift", "severity", "strength")})
    grey = drawn.image.double().mean((1, 2, 3)).numpy()  # processors round a drawing in their own way
    assert not difference(recipes.REDRAWN, told.assign(grey=grey)[::8].reset_index(drop=True), within=1.0)
    with pytest.raises(FileNotFoundError, match="25_redrawing"):
        redrawing.stored(cache.with_name("other.safetensors"), share=0.5)
    assert redrawing.stored(cache, share=0.0) is None


def test_a_killed_redrawing_continues_with_its_caption(made):
    cache, _, prompts = made
    assert len(prompts) == 51 + 2 * 5 and prompts[51] == prompts[50]  # at two strengths; 25 captions were drawn before
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def pictures(strength):
    label, shift = torch.arange(30) // 15, torch.arange(30) % 15
    full = {"severity": 0.5, "strength": strength}
    values = {key: torch.full((30,), value) for key, value in full.items()}
    return redrawing.Redrawn(torch.full((30, 3, 64, 64), 255, dtype=torch.uint8), label, shift, garment=label, **values)


@pytest.mark.parametrize(("strength", "known"), [(0.0, True), (0.5, False), (0.75, False)])
def test_of_a_mixed_batch_the_share_is_redrawn_and_a_new_drawing_has_no_known_severity(strength, known):
    batch = scenes.sample(few(), ("mixed",), 8, style="web")
    mixed = redrawing.mixed(batch, pictures(strength), 0.5, torch.Generator().manual_seed(0))
    assert (mixed.image[:4] == 1).all() and torch.equal(mixed.image[4:], batch.image[4:])
    assert torch.equal(mixed.label[4:], batch.label[4:]) and torch.equal(mixed.severity[4:], batch.severity[4:])
    assert (mixed.severity[:4] == 0.5).all() if known else mixed.severity[:4].isnan().all()


def test_replaced_pictures_have_the_caption_of_the_scene_in_whose_place_they_are():
    batch = scenes.sample(few(), ("captions",), 40, style="web")
    redrawn = pictures(0.0)
    found = redrawing.same_captions(batch, redrawn, 0.5, torch.Generator().manual_seed(0))
    white = (found.image == 1).flatten(1).all(1)
    assert 10 < white.sum() < 30
    assert (
        torch.equal(found.label, batch.label)
        and torch.equal(found.shift, batch.shift)
        and torch.equal(found.image[~white], batch.image[~white])
    )
