"""The renderer's primitives, against colorsys, numpy and answers known by hand."""

import colorsys

import pytest
import torch

from cnslib.world import textures


def point(side: int = 64, at: tuple[int, int] = (32, 32)) -> torch.Tensor:
    """A map with a single 1."""
    image = torch.zeros(1, 1, side, side)
    image[0, 0, at[0], at[1]] = 1
    return image


def field(cells: int = 64) -> torch.Tensor:
    return torch.randn(1, cells, cells, generator=torch.Generator().manual_seed(0))


def test_a_ramp_is_the_smoothstep_between_its_ends():
    found = textures.ramp(torch.tensor([-1.0, 2.0, 3.0, 4.0, 9.0]), 2, 4)
    assert found.tolist() == [0, 0, 0.5, 1, 1]
    assert textures.ramp(torch.tensor(0.25), 0, 1).item() == pytest.approx(3 * 0.25**2 - 2 * 0.25**3)


@pytest.mark.parametrize(("hue", "saturation", "value"), [(0.0, 1.0, 1.0), (0.4, 0.5, 0.8), (0.71, 0.25, 0.3), (0.99, 0.0, 0.6)])
def test_colours_of_hue_saturation_and_value_are_those_of_the_standard_library(hue, saturation, value):
    found = textures.hsv(torch.tensor([hue]), saturation, value).flatten().tolist()
    assert found == pytest.approx(colorsys.hsv_to_rgb(hue, saturation, value), abs=1e-6)


def test_without_saturation_an_image_is_its_luminance():
    image = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    assert textures.saturate(image, 0.0).flatten().tolist() == pytest.approx([0.299] * 3)
    assert torch.allclose(textures.saturate(image, 1.0), image)


def test_a_shift_moves_by_sixty_fourths_of_the_side_at_any_size():
    for side in (64, 128):
        moved = textures.shift_by(point(side, (side // 2, side // 2)), 8, -4)
        assert moved.nonzero()[0, 2:].tolist() == [side // 2 + side // 8, side // 2 - side // 16] and moved.sum() == 1


def test_a_blurred_point_keeps_its_sum_and_has_the_width_that_was_asked_for():
    blurred = textures.blur(point(), 2.0)[0, 0]
    spread = (blurred.sum(1) * (torch.arange(64) - 32.0).square()).sum().sqrt()
    assert blurred.sum().item() == pytest.approx(1, abs=1e-5) and spread.item() == pytest.approx(2.0, rel=0.12)  # cut off at two deviations


def test_a_warp_by_nothing_is_the_image_and_by_one_pixel_its_neighbour():
    image, none = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    assert torch.allclose(textures.warp(image, none, none), image, atol=1e-5)
    assert torch.allclose(textures.warp(image, none + 1, none)[..., :-1, :], image[..., 1:, :], atol=1e-4)


def test_an_edge_from_black_to_white_is_nearly_one_and_an_even_image_has_none():
    halves = torch.zeros(1, 1, 64, 64)
    halves[..., 32:] = 1
    found = textures.edges(halves)
    assert found.max().item() == pytest.approx(0.8, abs=0.1) and found[..., :24].abs().max() < 1e-6


def test_noise_has_as_many_cells_as_asked_and_none_across_one_row():
    assert torch.allclose(textures.smooth_noise(field(), 1, 32), field()[0, 0, 0], atol=1e-5)
    low = textures.smooth_noise(field(), 8, 32, tall=1)
    assert low.std(2).max() < 1e-5 < low.std(3).min()


def test_points_are_as_frequent_as_the_normal_tail():
    share = textures.sparse_points(torch.randn(50, 64, 64, generator=torch.Generator().manual_seed(1)), 2.0, 64).mean()
    assert share.item() == pytest.approx(0.02275, rel=0.05)
