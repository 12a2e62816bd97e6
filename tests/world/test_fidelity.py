"""Fidelity: which pictures are compared, which scenes the training had, and what counts as a copy."""

import numpy as np
import pytest
from tiny_garments import garments

from cnslib.core.names import SHIFTS
from cnslib.world import autoencoder, diffusion, fidelity

TAUGHT = {"images": 300, "severities": [0.3, 0.5], "seed": 1}


def test_every_caption_is_drawn_with_the_same_seeds():
    prompts, numbers = fidelity.asked(["bag", "dress"], 3)
    assert prompts == [caption for caption in diffusion.captions(["bag", "dress"]) for _ in range(3)]
    assert numbers == [0, 1, 2] * (2 * (len(SHIFTS) + 1))


def test_held_out_scenes_follow_the_captions_and_another_seed_shows_others():
    given = garments()
    first, again, other = (fidelity.heldout(given, per_caption=1, severities=[0.5, 0.5], seed=seed) for seed in (1, 1, 2))
    assert first.shape == (len(given.classes) * (len(SHIFTS) + 1), 64, 64, 3)
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.slow
def test_the_scenes_of_the_training_are_those_whose_latents_it_learned(tmp_path):
    parts = list(fidelity.training(garments(), 270, **TAUGHT))
    assert [len(part) for part in parts] == [256, 14]
    batch = diffusion.web_scenes(garments(), 256, **TAUGHT)
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    data = diffusion.web_latents(vae, garments(), **TAUGHT, cache=tmp_path / "web.safetensors")
    caption = batch.label * (len(SHIFTS) + 1) + batch.shift
    assert len(data["caption"]) == 300 and data["caption"][256:].tolist() == caption.tolist()
    assert np.abs(parts[1] / 255 - batch.image[:14].permute(0, 2, 3, 1).numpy()).max() <= 0.5 / 255 + 1e-6


def test_a_copy_is_nearer_to_the_training_than_all_but_one_in_a_hundred_unseen_scenes():
    unseen = np.arange(1, 102) / 100  # the hundredth part lies below 0.02
    found = fidelity.copies(np.array([0.0, 0.019, 0.021, 0.5]), unseen)
    assert found["estimate"] == 0.5 and found["n"] == 4
    assert fidelity.copies(unseen, unseen)["estimate"] == pytest.approx(1 / 101)
