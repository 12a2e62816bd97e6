"""The builder of the text-to-image model: its directory, its captions and its noise."""

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionPipeline
from tiny_garments import garments

from cnslib.core.names import SHIFTS
from cnslib.world import autoencoder, diffusion, scenes
from cnslib.world.training import Schedule

SCHEDULE = Schedule(steps=2, batch_size=4, learning_rate=1e-3, seed=1)


@pytest.fixture(scope="module")
def mini_sd(tmp_path_factory):
    """A pipeline directory built as mini-SD is, from an untrained VAE and two UNet steps."""
    folder = tmp_path_factory.mktemp("mini-sd")
    torch.manual_seed(0)
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    pipe = diffusion.train(
        vae, garments(), channels=(16, 16, 16), width=32, layers=1, images=8, caption_dropout=0.5, schedule=SCHEDULE, folder=folder
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


def test_noise_levels_become_more_frequent_in_proportion_to_the_noise():
    drawn = diffusion.noise_levels(200_000, torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=1000).view(4, 250).sum(1) / len(drawn)
    assert counts.numpy() == pytest.approx([1 / 16, 3 / 16, 5 / 16, 7 / 16], abs=0.005)
