"""Composed photographs: exact masks, seeds that belong to images, the mini world's shifts drawn finer."""

import numpy as np
import pytest
import torch
from PIL import Image

from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import cutouts, scenes, shifts, textures
from cnslib.world.cutouts import CutOut


def disc(label: str = "basketball", side: int = 120) -> CutOut:
    """A red disc on nothing."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    inside = (x**2 + y**2 < (side / 2 - 2) ** 2).astype(np.uint8)
    return CutOut(label, 1, Image.fromarray(np.stack([220 * inside, 20 * inside, 20 * inside, 255 * inside], -1), "RGBA"))


@pytest.fixture(scope="module")
def scene() -> scenes.Scene:
    return cutouts.scene(disc(), seed=1)[0]


def test_the_image_is_object_where_the_mask_is_one_and_background_where_it_is_zero(scene):
    inside, outside = (scene.mask == value for value in (1, 0))
    assert inside.any() and outside.any()
    for mask, source in ((inside, scene.object), (outside, scene.background)):
        torch.testing.assert_close(scene.image * mask, source * mask, atol=1e-6, rtol=0)


def test_the_object_is_whole_and_keeps_its_colour(scene):
    """A disc of diameter d covers pi d^2 / 4; nothing of it touches the rim of the image."""
    rows = scene.mask[0, 0].amax(1) > 0.5
    diameter = int(rows.sum())
    assert cutouts.EXTENT[0] * 256 - 8 <= diameter <= cutouts.EXTENT[1] * 256
    assert scene.mask.sum().item() == pytest.approx(np.pi * diameter**2 / 4, rel=0.03)
    assert not any(edge.any() for edge in (scene.mask[..., 0, :], scene.mask[..., -1, :], scene.mask[..., 0], scene.mask[..., -1]))
    middle = scene.object[0, :, scene.mask[0, 0] == 1].median(1).values * 255
    assert middle.tolist() == pytest.approx([220, 20, 20], abs=2)


@pytest.mark.parametrize("shift", SHIFTS)
def test_severity_zero_is_the_unshifted_image_and_one_is_another(shift):
    plain = cutouts.shifted(disc(), UNSHIFTED, [0.0], seed=1)[0]
    none, full = cutouts.shifted(disc(), shift, [0.0, 1.0], seed=1)
    assert np.array_equal(none, plain)
    assert np.abs(full.astype(int) - plain).mean() > 5


def test_an_image_does_not_depend_on_which_severities_are_asked():
    many = cutouts.shifted(disc(), "heavy rain", [0.25, 0.5, 1.0], seed=1)
    alone = cutouts.shifted(disc(), "heavy rain", [0.5], seed=1)
    assert np.abs(many[1].astype(int) - alone[0]).max() <= 1


def test_pose_and_scenery_belong_to_the_cut_out_and_the_seed():
    images = [cutouts.shifted(disc(label), UNSHIFTED, [0.0], seed=seed)[0] for label, seed in (("a", 1), ("a", 1), ("b", 1), ("a", 2))]
    assert np.array_equal(images[0], images[1])
    assert all(np.abs(images[0].astype(int) - other).mean() > 5 for other in images[2:])


def test_the_renderers_own_length_is_restored():
    with pytest.raises(ValueError, match="unknown shift"):
        cutouts.shifted(disc(), "heavy hail", [0.5], seed=1)
    assert textures.FIELD == 64


def test_lines_are_finer_than_the_renderers_own():
    """A pencil outline around a disc: the share of dark pixels falls with the width of the line."""
    fine = cutouts.shifted(disc(), "pencil sketch style", [1.0], seed=1)[0]
    scene, draws = cutouts.scene(disc(), seed=1)
    coarse = scenes.to_uint8(shifts.apply("pencil sketch style", scene, torch.ones(1), draws)).numpy()[0]
    assert (fine.mean(-1) < 100).mean() < 0.7 * (coarse.mean(-1) < 100).mean()


def test_every_kind_of_scenery_is_drawn_and_is_a_picture():
    for place, _ in enumerate(cutouts.KINDS):
        draws = scenes.draw([("scenery", place)])
        draws.uniforms[0, 8] = (place + 0.5) / len(cutouts.KINDS)
        ground = cutouts.background(draws, 64)
        assert ground.shape == (1, 3, 64, 64) and ground.min() >= 0 and ground.max() <= 1 and ground.std() > 0.01
