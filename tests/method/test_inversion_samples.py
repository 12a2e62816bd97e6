"""Comparison images: one unit per class, drawn as the plain pipeline draws them."""

import dataclasses

import numpy as np
import pytest
import torch
from golden_units import agrees

from cnslib.core import kinds, tables
from cnslib.core.settings.method import Inversion
from cnslib.method import inversion
from cnslib.models import text_to_image

CLASSES = ["sneaker", "ankle boot"]
SETTINGS = Inversion(
    learning_rate=1e-2, steps=1, batch_size=1, images_per_class=1, validation_images=3, sampling_steps=2, guidance=2.0, judge="", seed=1
)


@pytest.fixture
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


@pytest.fixture
def draw_all(pipe, tiny_pipeline_dir, tiny_tokens_dir, tmp_path):
    def call(classes=CLASSES, **changes):
        origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, classes)
        return inversion.draw_all(pipe, classes, settings=dataclasses.replace(SETTINGS, **changes), origin=origin, folder=tmp_path)

    return call


def test_every_class_is_drawn_by_name_and_by_token_from_the_same_noise(draw_all, pipe):
    drawn = draw_all()
    assert sorted(drawn.groupby(["prompt", "class"])["seed"].agg(list).items()) == [
        ((prompt, name), [1, 2, 3]) for prompt in ("in_star", "text") for name in sorted(CLASSES)
    ]
    pictures = tables.pictures(drawn.query("`class` == 'sneaker' and prompt == 'text'"), "drawn")
    for seed, picture in enumerate(pictures, 1):
        alone = pipe("a picture of a sneaker", generator=torch.Generator().manual_seed(seed), num_inference_steps=2, guidance_scale=2.0)
        assert np.abs(np.asarray(alone.images[0]).astype(int) - picture).max() <= 1


def test_another_class_draws_only_that_class(draw_all, tmp_path):
    draw_all(["sneaker"])
    stamp = (tmp_path / "sneaker.parquet").stat().st_mtime_ns
    assert set(draw_all()["class"]) == set(CLASSES)
    assert (tmp_path / "sneaker.parquet").stat().st_mtime_ns == stamp
    draw_all(sampling_steps=3)
    assert (tmp_path / "sneaker.parquet").stat().st_mtime_ns != stamp


def test_settings_of_the_training_draw_nothing_again(draw_all, tmp_path):
    draw_all()
    stamp = (tmp_path / "sneaker.parquet").stat().st_mtime_ns
    draw_all(judge="other", seed=2)  # another seed changes the token, and the token's digest is what counts
    assert (tmp_path / "sneaker.parquet").stat().st_mtime_ns == stamp


def test_the_tiny_unit_is_the_golden_one(draw_all):
    agrees(kinds.SAMPLES, draw_all())
