"""The renderer: its primitives against other libraries and hand counts, its scenes, and what each shift puts where."""

import colorsys
import gzip
import itertools
import math

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_garments import rendered, squares

from cnslib.core import paths, recipes, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import scenes, shifts, textures


def point(side: int = 64, at: tuple[int, int] = (32, 32)) -> torch.Tensor:
    """A map with a single 1."""
    image = torch.zeros(1, 1, side, side)
    image[0, 0, at[0], at[1]] = 1
    return image


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


def test_points_are_as_frequent_as_the_normal_tail():
    share = textures.sparse_points(torch.randn(50, 64, 64, generator=torch.Generator().manual_seed(1)), 2.0, 64).mean()
    assert share.item() == pytest.approx(0.02275, rel=0.05)


POOL = scenes.Garments(squares(), np.arange(6))


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


def test_unshifted_samples_have_severity_zero_and_captions_name_the_shift():
    batch = scenes.sample(POOL, ("captions", 1), 40, style="web")
    plain = batch.shift == len(SHIFTS)
    assert (batch.severity[plain] == 0).all() and (batch.severity[~plain] >= 0.35).all()
    assert scenes.caption("bag", "heavy fog") == "a picture of a bag in heavy fog" and scenes.caption("bag") == "a picture of a bag"
    assert scenes.caption("", "heavy snow") == "a picture in heavy snow"


def test_catalog_rows_follow_their_schema_and_do_not_depend_on_the_classes_asked_for():
    wide = scenes.catalog(POOL, "train", classes=["t-shirt", "dress"], images=1, seed=1)
    narrow = scenes.catalog(POOL, "train", classes=["dress"], images=1, seed=1)
    tables.check(wide, tables.catalog, "catalog")
    assert wide.iloc[1]["image"] == narrow.iloc[0]["image"]
    with pytest.raises(ValueError, match="sock"):
        scenes.catalog(POOL, "train", classes=["sock"], images=1, seed=1)


def test_a_damaged_or_missing_data_file_is_named(tmp_path):
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        scenes.read_idx(path)
    path.write_bytes(gzip.compress(b"not the data"))
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte\.gz has sha256"):
        scenes.read_idx(path)


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


@pytest.fixture(scope="module")
def drawn() -> tuple[scenes.Scene, scenes.Draws]:
    draws = scenes.draw([("styles", i) for i in range(6)])
    return scenes.scenes(squares(), draws, style="web"), draws


def shifted(name: str, drawn) -> torch.Tensor:
    return shifts.apply(name, drawn[0], torch.ones(6), drawn[1])


def test_a_pencil_has_no_colour_and_a_tattoo_is_ink_on_skin(drawn):
    sketch, tattoo = shifted("pencil sketch style", drawn), shifted("style of a tattoo", drawn)
    assert (sketch.amax(1) - sketch.amin(1)).max() < 1e-6
    assert (tattoo[:, 0] > tattoo[:, 2]).float().mean() > 0.75  # skin is warm


def test_the_pixels_of_a_game_are_blocks_of_eight_and_few_colours(drawn):
    game = shifted("video game renditions style", drawn)
    blocks = game[..., 16:, :].unfold(2, 8, 8).unfold(3, 8, 8)
    assert (blocks.amax((-1, -2)) - blocks.amin((-1, -2))).max() < 1e-5
    assert (game[..., 16:, :] * 3).sub((game[..., 16:, :] * 3).round()).abs().max() < 1e-5  # a palette of thirds


@pytest.mark.parametrize("density", [0.0, 0.7, 3.0])
def test_light_decays_with_density_as_koschmieder_says(density):
    even = torch.full((1, 3, 64, 64), 0.2)
    scene = scenes.Scene(even, even[:, :1], even, even)
    found = shifts.veil(scene, torch.ones(1, 1, 1, 1), torch.tensor(density), torch.tensor(0.9))
    assert found.mean().item() == pytest.approx(0.9 + (0.2 - 0.9) * math.exp(-density), abs=1e-5) and found.std() < 1e-5


def test_snow_lies_on_the_ground_and_on_what_faces_up(drawn):
    scene, snow = drawn[0], shifted("heavy snow", drawn)
    assert snow[..., -4:, :].min() > 0.8
    upper = scene.mask * (1 - torch.roll(scene.mask, 3, 2))
    lower = scene.mask * (1 - torch.roll(scene.mask, -3, 2))
    bright = [(snow.mean(1, keepdim=True) * edge).sum() / edge.sum() for edge in (upper, lower)]
    assert bright[0] > bright[1] + 0.02


def test_fog_is_white_dust_beige_sand_orange_and_smog_darkest_at_the_top(drawn):
    tones = {name: shifted(name, drawn).mean((0, 2, 3)) for name in ("heavy fog", "heavy dust", "heavy sandstorm", "heavy smog")}
    spread = {name: (tone[0] - tone[2]).item() for name, tone in tones.items()}  # red above blue
    assert abs(spread["heavy fog"]) < 0.08 < spread["heavy dust"] < spread["heavy sandstorm"]
    assert tones["heavy fog"].mean() > tones["heavy dust"].mean() > tones["heavy smog"].mean()
    smog = shifted("heavy smog", drawn)
    assert smog[..., :8, :].mean() < smog[..., -8:, :].mean()
