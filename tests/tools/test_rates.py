"""Rates: seconds per sample are those of the fastest pass, and the networks measured have Stable Diffusion 2's shape."""

import time

import pytest

from cnslib.core import paths
from cnslib.tools import rates


def test_the_rate_is_that_of_the_fastest_pass_but_the_first(monkeypatch):
    """Passes of 1, 8, 4 and 6 s on a clock that stands still otherwise; the first warms up; eight samples a pass."""
    lengths, clock = iter([1.0, 8.0, 4.0, 6.0]), [0.0]

    def run():
        clock[0] += next(lengths)

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    assert rates.timed(run, 8, "cpu", 19.0) == 4.0 / 8


def test_two_passes_are_made_however_short_the_time(monkeypatch):
    made = []
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(made)))
    assert rates.timed(lambda: made.append(1), 1, "cpu", 0) == 1.0 and len(made) == 2


@pytest.mark.parametrize(("guidance", "passes"), [(1.0, 1), (7.5, 2)])
def test_guidance_above_one_takes_two_passes(guidance, passes):
    assert rates.guided(guidance) == passes


def test_without_a_pipeline_the_shape_is_that_of_stable_diffusion_2():
    """Pictures of 768 pixels from latents of 96; the published UNet has 865,910,724 weights and the autoencoder 83,653,863."""
    unet, vae, where = rates.models(paths.resolve("absent"), "meta")
    assert sum(parameter.numel() for parameter in unet.parameters()) == 865_910_724
    assert sum(parameter.numel() for parameter in vae.parameters()) == 83_653_863
    assert rates.side_of(unet, vae) == 768 and rates.scale_of(vae) == 8 and "random models" in where
