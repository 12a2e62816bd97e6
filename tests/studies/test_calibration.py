"""Rulers: they lie beside each other on the generated images; rendered scenes begin at severity 0."""

from pathlib import Path

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_alignment import CHOSEN, random_judges, write_all

from cnslib.core import recipes, tables
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Calibration
from cnslib.method import filtering, oracle_predictions
from cnslib.studies import calibration
from cnslib.world import scenes

SETTINGS = Calibration(bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"), seed=1, scenes=2, severities=4)


@pytest.fixture(scope="module")
def pool() -> scenes.Garments:
    """Three sneakers and three bags that are random squares."""
    grey = torch.zeros(6, 28, 28)
    grey[:, 6:22, 6:22] = 0.3 + 0.1 * torch.arange(6).float().view(-1, 1, 1)
    return scenes.Garments(grey, np.array([scenes.CLASSES.index("sneaker"), scenes.CLASSES.index("bag")] * 3))


@pytest.fixture(scope="module")
def judges(tmp_path_factory) -> filtering.Judges:
    return random_judges(tmp_path_factory.mktemp("judges"))


@pytest.fixture
def images(tmp_path) -> Path:
    return write_all(tmp_path / "images")


def test_rulers_lie_beside_each_other(images, judges, tmp_path):
    seen = oracle_predictions.predict_all(images, CHOSEN, oracle=judges.oracle, folder=tmp_path / "sights")
    cosines = filtering.align(images, CHOSEN, judges=judges, seen=seen, folder=tmp_path / "alignment")
    scores = cosines.drop(columns="class_probability").assign(oracle_ooc=False, keep=True)
    table = calibration.lay(seen, scores.sample(frac=1, random_state=0)).set_index(tables.KEY)
    row = scores.set_index(tables.KEY).loc[("heavy snow", "bag", 2, 2.0)]
    found = table.loc[("heavy snow", "bag", 2, 2.0)]
    assert found["alignment"] == pytest.approx(row["clip_class_shift"] - row["clip_class"])
    assert found["distance"] == pytest.approx(1 - row["image_reference"])
    assert table.xs(0.0, level="scale")["distance"].abs().max() < 1e-5


def test_scenes_keep_garment_and_pose_and_begin_without_the_shift(pool):
    (table, pictures), (_, others) = (
        calibration.scenes(pool, shift, ["sneaker", "bag"], settings=SETTINGS) for shift in ("heavy snow", "heavy fog")
    )
    assert sorted(table["scale"].unique()) == [0, 0.25, 0.5, 0.75, 1] and len(table) == 5 * 2 * 2
    assert (table["scale"].head(4) == 0).all() and (table["scale"].iloc[4:] > 0).all()
    assert np.array_equal(pictures[:4], others[:4]) and not np.array_equal(pictures[4:], others[4:])
    assert len({picture.tobytes() for picture in pictures[:4]}) == 4


def test_the_rulers_readings_of_scenes_are_those_of_single_pictures(pool, judges):
    labels = ["sneaker", "bag"]
    table, pictures = calibration.scenes(pool, "heavy snow", labels, settings=SETTINGS)
    found = calibration.measure(table, pictures, judges=judges)
    tables.check(found, calibration.readings, "readings")
    assert found.loc[found["scale"] == 0, "distance"].abs().max() < 1e-5
    last = found.iloc[-1]
    start = table.query("scale == 0 and `class` == @last['class'] and seed == @last['seed']").index[0]
    features = judges.image_encoder.features(pictures[[start, len(table) - 1]])
    texts = judges.clip.text_features([f"a picture of a {last['class']}{end}" for end in ("", " in heavy snow")])
    clip = judges.clip.image_features(pictures[-1:])[0]
    assert last["distance"] == pytest.approx(1 - float(features[0] @ features[1]), abs=1e-5)
    assert last["alignment"] == pytest.approx(float(clip @ (texts[1] - texts[0])), abs=1e-5)


def test_the_tiny_unit_is_the_golden_one(pool, judges):
    table, pictures = calibration.scenes(pool, "heavy snow", ["sneaker", "bag"], settings=SETTINGS)
    assert not difference(recipes.RULERS, calibration.measure(table, pictures, judges=judges), within=1e-3)
