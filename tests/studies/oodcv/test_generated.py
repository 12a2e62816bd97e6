"""The filter of the OOD-CV comparison: the filtering step's thresholds, whole trajectories, a missing table named."""

import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS
from cnslib.studies.oodcv import generated

SETTINGS = Filtering(recall=0.8, passes=2, bootstrap=Bootstrap(resamples=10, confidence=0.95, seed=1))


def cosines(rows: list[tuple[int, float, float, float]]) -> pd.DataFrame:
    """Rows (seed, scale, cosine of all four detectors, probability of the class) of one class in fog."""
    table = pd.DataFrame(rows, columns=["seed", "scale", "cosine", "class_probability"]).assign(shift="heavy fog")
    table["class"] = "bag"
    return table.assign(**dict.fromkeys(DETECTORS, table["cosine"])).drop(columns="cosine")


@pytest.fixture
def folder(tmp_path):
    """Five labelled trajectories: their images at scale 1 are out of class, with cosines 0.1 to 0.5."""
    rows = [(seed, 0.0, 0.9, 0.8) for seed in range(1, 6)] + [(seed, 1.0, seed / 10, 0.01) for seed in range(1, 6)]
    tables.write(cosines(rows), tmp_path / "heavy_fog.parquet", filtering.schema)
    return tmp_path


def test_a_trajectory_is_kept_when_all_its_images_are_above_the_thresholds_of_the_labels(folder):
    """80 % of the labelled images out of class lie at or below 0.4: an image at 0.41 passes, one at 0.4 does not."""
    seen = cosines([(1, 0.0, 0.9, 0.9), (1, 3.0, 0.41, 0.9), (2, 0.0, 0.9, 0.9), (2, 3.0, 0.4, 0.9)])
    assert generated.filtered(seen, folder, labels=10, settings=SETTINGS)["seed"].tolist() == [1]


def test_without_the_filtering_step_its_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no table of alignments; the filtering step makes them"):
        generated.filtered(cosines([(1, 0.0, 0.9, 0.9)]), tmp_path, labels=10, settings=SETTINGS)
