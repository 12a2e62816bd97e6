"""The builders of base models: formats, shapes and losses, with two training steps each on synthetic garments."""

import json

import numpy as np
import open_clip
import pytest
import timm
import torch
from diffusers import StableDiffusionPipeline

from cnslib.core import kinds
from cnslib.core.names import SHIFTS
from cnslib.world import autoencoder, contrastive, diffusion, manifest, scenes, selfsupervised, training, zoo
from cnslib.world.training import Schedule

SCHEDULE = Schedule(steps=2, batch_size=4, learning_rate=1e-3, seed=1)
VIT = {"img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 1, "num_heads": 2}


@pytest.fixture(scope="module")
def pool() -> scenes.Garments:
    """Two squares per class, each class another size."""
    grey = torch.zeros(20, 28, 28)
    for i in range(20):
        grey[i, 4 : 14 + i // 2, 4 : 24 - i // 2] = 0.7
    return scenes.Garments(grey, np.arange(20) // 2)


@pytest.fixture(scope="module")
def mini_sd(pool, tmp_path_factory):
    """A pipeline directory built as mini-SD is, from an untrained VAE and two UNet steps."""
    folder = tmp_path_factory.mktemp("mini-sd")
    torch.manual_seed(0)
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    pipe = diffusion.train(
        vae, pool, channels=(16, 16, 16), width=32, layers=1, images=8, caption_dropout=0.5, schedule=SCHEDULE, folder=folder
    )
    pipe.save_pretrained(folder / "model")
    return folder / "model"


def test_the_pipeline_directory_loads_as_any_other_and_draws(mini_sd):
    pipe = StableDiffusionPipeline.from_pretrained(mini_sd)
    picture = pipe("a picture of a sneaker in heavy snow", num_inference_steps=2, output_type="np").images[0]
    assert picture.shape == (64, 64, 3) and np.isfinite(picture).all()
    assert pipe.scheduler.config.prediction_type == "v_prediction"


def test_every_caption_fits_the_context_and_no_word_is_unknown():
    tokens = diffusion.tokenizer()
    assert len(set(diffusion.captions())) == 150
    for caption in diffusion.captions():
        ids = tokens(caption).input_ids
        assert len(ids) <= diffusion.CONTEXT and ids.count(tokens.eos_token_id) == 1


def test_the_vocabulary_is_the_same_each_time_and_spells_every_caption():
    first, second = diffusion.tokenizer(), diffusion.tokenizer()
    assert first.get_vocab() == second.get_vocab()
    for caption in diffusion.captions():
        assert "".join(first.tokenize(caption)).replace("</w>", "") == caption.replace(" ", "")


def test_the_token_table_follows_the_captions_and_ends_with_the_empty_one():
    tokens = diffusion.tokenizer()
    table = diffusion.token_table(tokens)
    index = scenes.CLASSES.index("sneaker") * 15 + SHIFTS.index("heavy snow")
    assert tokens.decode(table[index], skip_special_tokens=True) == "a picture of a sneaker in heavy snow"
    assert table[-1].tolist() == [tokens.bos_token_id] + [tokens.eos_token_id] * (diffusion.CONTEXT - 1)


def test_psnr_of_a_perfect_and_of_a_known_reconstruction(monkeypatch):
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    image = torch.rand(2, 3, 64, 64) * 0.8
    for error in (0.1, 0.01):
        changed = (image + error) * 2 - 1
        monkeypatch.setattr(vae, "decode", lambda _latents, c=changed: type("Output", (), {"sample": c}))
        expected = -20 * np.log10(error)
        assert autoencoder.psnr(vae, image).numpy() == pytest.approx([expected] * 2, rel=1e-3)


def test_noise_levels_become_more_frequent_in_proportion_to_the_noise():
    drawn = diffusion.noise_levels(200_000, torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=1000).view(4, 250).sum(1) / len(drawn)
    assert counts.numpy() == pytest.approx([1 / 16, 3 / 16, 5 / 16, 7 / 16], abs=0.005)


def test_the_untrained_vae_passes_brightness_on_and_adds_little_noise():
    torch.manual_seed(0)
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    dark, bright = (vae.encode(torch.full((1, 3, 64, 64), value)).latent_dist for value in (-0.6, 0.6))
    assert (dark.mean - bright.mean).abs().mean() > 10 * dark.std.max()  # PyTorch's own start: 0.2 times the noise


def test_the_reconstruction_loss_is_zero_only_for_equal_images():
    image = torch.rand(1, 3, 8, 8)
    assert autoencoder.reconstruction_loss(image, image) == 0
    flat = image + 0.1  # equal gradients: L1 0.1 plus 5 times 0.01
    assert autoencoder.reconstruction_loss(flat, image).item() == pytest.approx(0.15, rel=1e-4)


def test_a_contrastive_batch_holds_every_caption_once(pool):
    batch = contrastive.one_of_each(pool, ("test", 1))
    assert len(set(batch.captions())) == len(batch.captions()) == 150


def test_the_open_clip_directory_loads_with_its_tokenizer(pool, tmp_path):
    model, settings = contrastive.train(
        pool, vision="resnet10t", width=16, layers=1, schedule=SCHEDULE, checkpoint=tmp_path / "c.pt", device="cpu"
    )
    contrastive.save(model, settings, tmp_path / "clip")
    loaded, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path / 'clip'}")
    ids = open_clip.get_tokenizer(f"local-dir:{tmp_path / 'clip'}")(["a picture of a bag"])
    with torch.no_grad():
        same = torch.allclose(loaded.eval().encode_text(ids), model.eval().encode_text(ids), atol=1e-2)
    assert same and ids.shape == (1, diffusion.CONTEXT)
    assert transform.transforms[-1].mean == list(contrastive.MEAN)


def test_views_of_a_garment_differ_and_carry_no_label(pool):
    first, second = selfsupervised.views(pool, ("test", 1), 6, crops=2)
    assert first.shape == second.shape == (6, 3, 64, 64) and not torch.equal(first, second)


def test_learning_without_labels_keeps_a_backbone_without_head(pool, tmp_path):
    backbone = selfsupervised.train(
        pool,
        architecture="vit_tiny_patch16_224",
        arguments=VIT,
        temperature=0.2,
        schedule=SCHEDULE,
        checkpoint=tmp_path / "d.pt",
        device="cpu",
    )
    features = selfsupervised.features(backbone, torch.rand(5, 3, 64, 64))
    assert features.shape == (5, 32) and torch.allclose(features.norm(dim=1), torch.ones(5), atol=1e-5)


def test_neighbours_name_the_class_of_images_that_are_in_the_bank():
    backbone = torch.nn.Flatten()
    image = torch.eye(4).repeat_interleave(48, 1).view(4, 3, 8, 8).repeat(10, 1, 1, 1)
    batch = scenes.Batch(image, torch.arange(4).repeat(10), torch.zeros(40), torch.zeros(40))
    assert selfsupervised.knn_correct(backbone, batch, batch, neighbours=5).all()


@pytest.mark.parametrize(("architecture", "arguments"), [("alexnet_64", {"width": 8, "hidden": 16}), ("vit_tiny_patch16_224", VIT)])
def test_a_saved_classifier_is_an_ordinary_timm_directory(pool, tmp_path, architecture, arguments):
    model = zoo.train_classifier(
        pool, architecture=architecture, arguments=arguments, schedule=SCHEDULE, checkpoint=tmp_path / "z.pt", device="cpu"
    )
    zoo.save(model, tmp_path / "model", architecture=architecture, arguments=arguments)
    loaded = timm.create_model(f"local-dir:{tmp_path / 'model'}", pretrained=True).eval()
    image = torch.rand(3, 3, 64, 64)
    assert torch.allclose(loaded(training.normalise(image)), zoo.predict(model, image), atol=2e-2)
    assert timm.data.resolve_data_config({}, model=loaded)["std"] == list(training.STD)


def test_the_oracle_loss_ignores_the_name_of_an_invisible_shift():
    logits = torch.zeros(1, zoo.SEVERITY_OUTPUT + 1)
    wrong = logits.clone()
    wrong[:, zoo.SHIFT_OUTPUTS] = torch.arange(15.0)
    faint = scenes.Batch(torch.empty(1, 3, 64, 64), torch.tensor([0]), torch.tensor([0]), torch.tensor([0.1]))
    heavy = scenes.Batch(torch.empty(1, 3, 64, 64), torch.tensor([0]), torch.tensor([0]), torch.tensor([0.9]))
    assert zoo.oracle_loss(logits, faint) == zoo.oracle_loss(wrong, faint)
    assert zoo.oracle_loss(logits, heavy) < zoo.oracle_loss(wrong, heavy)


def test_the_manifest_keeps_every_model_and_shares_carry_wilson_intervals(tmp_path):
    (tmp_path / "a").mkdir()
    quality = {"accuracy": manifest.share([True] * 8 + [False] * 2)}
    for name in ("a", "b"):
        manifest.record(tmp_path, name, seed=1, steps=2, recipe=kinds.PLAIN, quality=quality)
    saved = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(saved) == ["a", "b"]
    found = saved["a"]["quality"]["accuracy"]
    assert (found["n"], found["estimate"]) == (10, 0.8)
    assert (found["low"], found["high"]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
