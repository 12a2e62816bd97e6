import itertools
import math

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_garments import rendered, squares

from cnslib.core import paths, recipes
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import scenes, shifts


def test_an_image_does_not_depend_on_its_neighbours():
    keys = [("test", i) for i in range(6)]
    together = rendered(squares(), "heavy snow", 0.7, keys)
    alone = rendered(squares()[3:4], "heavy snow", 0.7, keys[3:4])
    assert torch.allclose(together[3:4], alone, atol=1e-6)
    assert torch.equal(scenes.to_uint8(together[3:4]), scenes.to_uint8(alone))


def test_the_mask_covers_the_garment_and_the_image_is_object_on_background():
    scene = scenes.scenes(squares(), scenes.draw([("mask", i) for i in range(6)]), style="catalog")
    side = scene.mask.mean((1, 2, 3)).sqrt() * 32  # of a 16 px square in the 32 px frame around a garment, by 0.76 to 1.05
    assert ((side > 0.75 * 16) & (side < 1.06 * 16)).all()
    composed = scene.background + (scene.object - scene.background) * scene.mask
    assert torch.allclose(scene.image, composed.clamp(0, 1))


@pytest.mark.skipif(not (paths.GARMENTS / "train-images-idx3-ubyte.gz").exists(), reason="run `dvc pull` first")
def test_the_pools_share_all_garments_of_the_real_data_and_each_has_about_a_tenth_of_each_class():
    ranges = sorted(scenes.POOLS.values())
    assert ranges[0][0] == 0 and ranges[-1][1] == 70000
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))
    for pool in scenes.POOLS:
        counts = np.bincount(scenes.garments(paths.GARMENTS, pool).labels, minlength=10)
        assert counts.min() > 0.08 * counts.sum()


def test_the_renderer_is_the_golden_one():
    assert not difference(recipes.SCENES, scenes.to_uint8(rendered(squares(), UNSHIFTED, 0.0)).numpy())


@pytest.mark.parametrize("name", SHIFTS)
def test_severity_zero_is_the_bit_exact_identity_and_the_distance_to_it_grows(name):
    plain = rendered(squares(), UNSHIFTED, 0.0)
    assert torch.equal(rendered(squares(), name, 0.0), plain)
    distance = [(rendered(squares(), name, s) - plain).square().mean().item() for s in (0.2, 0.6, 1.0)]
    assert 0 < distance[0] < distance[1] < distance[2] * 1.05


def test_the_shifts_are_the_golden_ones():
    shifted = torch.cat([rendered(squares()[:1], name, 0.8) for name in SHIFTS])
    assert not difference(recipes.SHIFTS, scenes.to_uint8(shifted).numpy())


@pytest.mark.parametrize("density", [0.0, 0.7, 3.0])
def test_light_decays_with_density_as_koschmieder_says(density):
    even = torch.full((1, 3, 64, 64), 0.2)
    scene = scenes.Scene(even, even[:, :1], even, even)
    found = shifts.veil(scene, torch.ones(1, 1, 1, 1), torch.tensor(density), torch.tensor(0.9))
    assert found.mean().item() == pytest.approx(0.9 + (0.2 - 0.9) * math.exp(-density), abs=1e-5) and found.std() < 1e-5
