"""The renderer, on synthetic garments (a bright square) and, where the data is there, on Fashion-MNIST."""

import gzip
import itertools

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_garments import rendered, squares

from cnslib.core import paths, recipes, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import scenes

REAL = pytest.mark.skipif(not (paths.GARMENTS / "train-images-idx3-ubyte.gz").exists(), reason="run `dvc pull` first")


@pytest.fixture
def pool() -> scenes.Garments:
    return scenes.Garments(squares(), np.arange(6))


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


def test_catalog_poses_are_narrower_than_web_poses():
    grey = squares()[:1].expand(64, -1, -1)
    draws = scenes.draw([("pose", i) for i in range(64)])
    spread = {style: scenes.scenes(grey, draws, style=style).mask.sum((1, 2, 3)).std() for style in ("web", "catalog")}
    assert spread["catalog"] < spread["web"]


def test_a_sample_is_the_same_whenever_it_is_drawn(pool):
    first, second = (scenes.sample(pool, ("again", 1), 8, style="web") for _ in range(2))
    assert torch.equal(first.image, second.image) and torch.equal(first.shift, second.shift)
    assert not torch.equal(first.image, scenes.sample(pool, ("again", 2), 8, style="web").image)


def test_unshifted_samples_have_severity_zero_and_captions_name_the_shift(pool):
    batch = scenes.sample(pool, ("captions", 1), 40, style="web")
    plain = batch.shift == len(SHIFTS)
    assert (batch.severity[plain] == 0).all() and (batch.severity[~plain] >= 0.35).all()
    for caption, shift in zip(batch.captions(), batch.shift.tolist(), strict=True):
        assert (" in " in caption) == (shift < len(SHIFTS))
    assert scenes.caption("bag", "heavy fog") == "a picture of a bag in heavy fog"


def test_pools_are_disjoint_and_cover_all_garments():
    ranges = sorted(scenes.POOLS.values())
    assert ranges[0][0] == 0 and ranges[-1][1] == 70000
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))


def test_catalog_rows_follow_their_schema_and_do_not_depend_on_the_classes_asked_for(pool):
    wide = scenes.catalog(pool, "train", classes=["t-shirt", "dress"], images=1, seed=1)
    narrow = scenes.catalog(pool, "train", classes=["dress"], images=1, seed=1)
    tables.check(wide, tables.catalog)
    assert wide.iloc[1]["image"] == narrow.iloc[0]["image"]
    with pytest.raises(ValueError, match="sock"):
        scenes.catalog(pool, "train", classes=["sock"], images=1, seed=1)


def test_a_damaged_or_missing_data_file_is_named(tmp_path):
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        scenes.read_idx(path)
    path.write_bytes(gzip.compress(b"not the data"))
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte\.gz has sha256"):
        scenes.read_idx(path)


@REAL
def test_each_pool_of_the_real_data_holds_about_a_tenth_of_each_class():
    for pool in scenes.POOLS:
        counts = np.bincount(scenes.garments(paths.GARMENTS, pool).labels, minlength=10)
        assert counts.min() > 0.08 * counts.sum()


def test_the_renderer_is_the_golden_one():
    assert not difference(recipes.SCENES, scenes.to_uint8(rendered(squares(), UNSHIFTED, 0.0)).numpy())
