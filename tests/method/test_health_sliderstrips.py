"""The pictures of many sliders: drawn once, and anew when a slider changes."""

import numpy as np
import pytest
import torch
from golden_units import agrees
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import kinds
from cnslib.method import health
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

SCALES = [0.0, 1.0, 2.0]
NAME = CLASSES[0]


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


def write(pipe, path, seed):
    """A random slider, strong enough to change every image."""
    generator = torch.Generator().manual_seed(seed)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=generator) as parameters:
        for parameter in parameters:
            parameter.data.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        adapters.save(pipe, path, {"class": NAME})


def test_pictures_are_those_of_the_report_and_drawn_once_until_a_slider_changes(
    pipe, tiny_pipeline_dir, tiny_tokens_dir, tmp_path, monkeypatch
):
    own = {shift: slider_path(tmp_path, shift, NAME) for shift in SHIFTS}
    for number, path in enumerate(own.values()):
        write(pipe, path, number)
    place = {"origin": text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), "path": tmp_path / "strips.parquet"}
    plain = {"scales": SCALES, "settings": SETTINGS, "start_fraction": 0.75, "seed": 3}
    first = health.stored_strips(pipe, own, NAME, **plain, **place)
    assert first.shape == (2, 3, 64, 64, 3) and (first[0, 1:] != first[1, 1:]).any()
    assert np.array_equal(first, health.strips(pipe, list(own.values()), NAME, **plain))
    with monkeypatch.context() as patch:
        patch.setattr("cnslib.method.health.strips", None)  # a second drawing would fail
        assert np.array_equal(health.stored_strips(pipe, own, NAME, **plain, **place), first)
    write(pipe, own[SHIFTS[1]], 7)
    second = health.stored_strips(pipe, own, NAME, **plain, **place)
    assert np.array_equal(second[0], first[0]) and (second[1] != first[1]).any()


def test_the_tiny_unit_is_the_golden_one(pipe, tiny_pipeline_dir, tiny_tokens_dir, tmp_path):
    path = slider_path(tmp_path, "heavy snow", NAME)
    write(pipe, path, 0)
    place = {"origin": text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), "path": tmp_path / "strips.parquet"}
    drawn = health.stored_strips(pipe, {"heavy snow": path}, NAME, scales=SCALES, settings=SETTINGS, seed=3, **place)
    agrees(kinds.SLIDER_STRIPS, drawn[0])
