import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from cnslib.core import paths
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.data import imagenet
from cnslib.world import cutouts, install
from cnslib.world.cutouts import CutOut


def test_the_set_is_what_the_mapping_says():
    kept = install.listed()
    assert len(kept) >= 60 and kept["class"].nunique() >= 50
    pd.testing.assert_frame_equal(cutouts.contents(paths.PHOTOS), kept[list(cutouts.COLUMNS)], check_dtype=False)
    assert {path.name for path in paths.PHOTOS.glob("*.webp")} == set(kept["file"])
    for row in install.mapping().to_dict("records"):
        assert (imagenet.wnids()[row["index"]], imagenet.labels()[row["index"]]) == (row["wnid"], row["class"])


def disc(label: str = "basketball", side: int = 120) -> CutOut:
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    inside = (x**2 + y**2 < (side / 2 - 2) ** 2).astype(np.uint8)
    return CutOut(label, 1, Image.fromarray(np.stack([220 * inside, 20 * inside, 20 * inside, 255 * inside], -1), "RGBA"))


def test_the_object_is_whole_keeps_its_colour_and_hides_the_background():
    scene = cutouts.scene(disc(), seed=1)[0]
    rows = scene.mask[0, 0].amax(1) > 0.5
    diameter = int(rows.sum())
    assert cutouts.EXTENT[0] * 256 - 8 <= diameter <= cutouts.EXTENT[1] * 256
    assert scene.mask.sum().item() == pytest.approx(np.pi * diameter**2 / 4, rel=0.03)
    assert not any(edge.any() for edge in (scene.mask[..., 0, :], scene.mask[..., -1, :], scene.mask[..., 0], scene.mask[..., -1]))
    middle = scene.image[0, :, scene.mask[0, 0] == 1].median(1)[0] * 255
    assert middle.tolist() == pytest.approx([220, 20, 20], abs=2)
    outside = scene.mask == 0
    assert torch.equal(scene.image * outside, scene.background * outside)


@pytest.mark.parametrize("shift", SHIFTS[::5])
def test_severity_zero_is_the_unshifted_image_and_one_is_another(shift):
    plain = cutouts.shifted(disc(), UNSHIFTED, [0.0], seed=1)[0]
    none, full = cutouts.shifted(disc(), shift, [0.0, 1.0], seed=1)
    assert np.array_equal(none, plain)
    assert np.abs(full.astype(int) - plain).mean() > 5


def test_pose_and_scenery_belong_to_the_cut_out_and_the_seed():
    images = [cutouts.shifted(disc(label), UNSHIFTED, [0.0], seed=seed)[0] for label, seed in (("a", 1), ("a", 1), ("b", 1), ("a", 2))]
    assert np.array_equal(images[0], images[1])
    assert all(np.abs(images[0].astype(int) - other).mean() > 5 for other in images[2:])
