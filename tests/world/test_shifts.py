"""The fourteen shifts on synthetic garments: identity, growth, range, and their golden pictures."""

import pytest
import torch
from golden_units import difference
from tiny_garments import rendered, squares

from cnslib.core import recipes
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import scenes, shifts


@pytest.mark.parametrize("name", SHIFTS)
def test_severity_zero_is_the_bit_exact_identity(name):
    assert torch.equal(rendered(squares(), name, 0.0), rendered(squares(), UNSHIFTED, 0.0))


@pytest.mark.parametrize("name", SHIFTS)
def test_distance_to_the_unshifted_image_grows_with_severity(name):
    plain = rendered(squares(), UNSHIFTED, 0.0)
    distance = [(rendered(squares(), name, s) - plain).square().mean().item() for s in (0.2, 0.6, 1.0)]
    assert 0 < distance[0] < distance[1] < distance[2] * 1.05


@pytest.mark.parametrize("name", SHIFTS)
def test_pixels_stay_in_the_unit_interval(name):
    image = rendered(squares(), name, 1.0)
    assert image.min() >= 0 and image.max() <= 1 and image.isfinite().all()


def test_unknown_shift_and_severity_out_of_range_are_named():
    draws = scenes.draw([("x", i) for i in range(6)])
    scene = scenes.scenes(squares(), draws, style="web")
    with pytest.raises(ValueError, match="heavy snoww"):
        shifts.apply("heavy snoww", scene, torch.zeros(6), draws)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        shifts.apply("heavy snow", scene, torch.full((6,), 1.5), draws)


def test_the_shifts_are_the_golden_ones():
    shifted = torch.cat([rendered(squares()[:1], name, 0.8) for name in SHIFTS])
    assert not difference(recipes.SHIFTS, scenes.to_uint8(shifted).numpy())
