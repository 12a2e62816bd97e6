import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_alignment import random_judges
from tiny_settings import resampled

from cnslib.core import recipes
from cnslib.core.settings.sections import Calibration
from cnslib.method import filtering
from cnslib.studies import calibration
from cnslib.world import scenes

SETTINGS = Calibration(bootstrap=resampled(100), seed=1, scenes=2, severities=4)


@pytest.fixture(scope="module")
def pool() -> scenes.Garments:
    grey = torch.zeros(6, 28, 28)
    grey[:, 6:22, 6:22] = 0.3 + 0.1 * torch.arange(6).float().view(-1, 1, 1)
    return scenes.Garments(grey, np.array([scenes.CLASSES.index("sneaker"), scenes.CLASSES.index("bag")] * 3))


@pytest.fixture(scope="module")
def judges(tmp_path_factory) -> filtering.Judges:
    return random_judges(tmp_path_factory.mktemp("judges"))


def test_scenes_keep_garment_and_pose_and_begin_without_the_shift(pool):
    (table, pictures), (_, others) = (
        calibration.scenes(pool, shift, ["sneaker", "bag"], settings=SETTINGS) for shift in ("heavy snow", "heavy fog")
    )
    assert sorted(table["scale"].unique()) == [0, 0.25, 0.5, 0.75, 1] and len(table) == 5 * 2 * 2
    assert (table["scale"].head(4) == 0).all() and (table["scale"].iloc[4:] > 0).all()
    assert np.array_equal(pictures[:4], others[:4]) and not np.array_equal(pictures[4:], others[4:])
    assert len({picture.tobytes() for picture in pictures[:4]}) == 4


def test_the_tiny_unit_is_the_golden_one(pool, judges):
    table, pictures = calibration.scenes(pool, "heavy snow", ["sneaker", "bag"], settings=SETTINGS)
    assert not difference(recipes.RULERS, calibration.measure(table, pictures, judges=judges), within=1e-3)
