"""Generated images of the OOD-CV comparison: drawn once, what is missing drawn again, filtered as whole trajectories."""

import dataclasses
import shutil

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_oodcv import CLASSES, SETTINGS, plentiful

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.method.filtering import DETECTORS
from cnslib.studies.oodcv import generated, weather
from cnslib.studies.oodcv.weather import Panel
from cnslib.world import scenes

FILTERING = Filtering(recall=0.8, passes=2, bootstrap=Bootstrap(resamples=10, confidence=0.95, seed=1, target="same classes"))


def cosines(rows: list[tuple[int, float, float, float]]) -> pd.DataFrame:
    """Rows (seed, scale, cosine of all four detectors, probability of the class) of one class in fog."""
    table = pd.DataFrame(rows, columns=["seed", "scale", "cosine", "class_probability"]).assign(shift="heavy fog")
    table["class"] = "bag"
    return table.assign(**dict.fromkeys(DETECTORS, table["cosine"])).drop(columns="cosine")


@pytest.fixture
def labelled():
    """Five labelled trajectories: their images at scale 1 are out of class, with cosines 0.1 to 0.5."""
    rows = [(seed, 0.0, 0.9, 0.8) for seed in range(1, 6)] + [(seed, 1.0, seed / 10, 0.01) for seed in range(1, 6)]
    return cosines(rows)


def test_a_trajectory_is_kept_when_all_its_images_are_above_the_thresholds_of_the_labels(labelled):
    """80 % of the labelled images out of class lie at or below 0.4: an image at 0.41 passes, one at 0.4 does not."""
    seen = cosines([(1, 0.0, 0.9, 0.9), (1, 3.0, 0.41, 0.9), (2, 0.0, 0.9, 0.9), (2, 3.0, 0.4, 0.9)])
    assert generated.filtered(seen, labelled, labels=10, settings=FILTERING)["seed"].tolist() == [1]


def test_a_trajectory_that_does_not_start_in_class_is_not_kept(labelled):
    seen = cosines([(1, 0.0, 0.9, 0.9), (1, 3.0, 0.9, 0.9), (2, 0.0, 0.9, 0.4), (2, 3.0, 0.9, 0.9)])
    assert generated.filtered(seen, labelled, labels=10, settings=FILTERING)["seed"].tolist() == [1]


def test_everything_is_made_once_and_only_what_is_missing_is_made_again(studio, tmp_path, monkeypatch):
    """Reference, ladder and images are there after one run; a lost class is drawn again and nothing else is."""
    panel, tuning = studio.panel, studio.panel.tuning
    assert set(tuning.histories()["model"]) == set(SETTINGS.networks)
    found = generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    keys = [(shift, name, 1, scale) for shift in SETTINGS.shifts for name in CLASSES for scale in SETTINGS.scales]
    tables.complete(found, keys, tables.KEY, "generated")
    assert set(found["one"]) <= set(CLASSES)
    assert len(weather.reference(CLASSES, panel=panel, folder=tmp_path)) == 24
    assert len(weather.ladder(CLASSES, panel=panel, folder=tmp_path / "ladder")) == 2 * 2 * 2 * 3
    drawn, original = [], generated.draw
    monkeypatch.setattr(generated, "draw", lambda *a: drawn.append(a[1:3]) or original(*a))
    monkeypatch.setattr(weather, "answers", lambda *a: pytest.fail("asked again"))
    generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    weather.reference(CLASSES, panel=panel, folder=tmp_path)
    weather.ladder(CLASSES, panel=panel, folder=tmp_path / "ladder")
    monkeypatch.undo()
    assert drawn == []
    before = {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")}
    (tmp_path / "generated" / "sneaker.parquet").unlink()
    shutil.rmtree(tuning.weights)
    monkeypatch.setattr(scenes, "garments", plentiful)
    monkeypatch.setattr(generated, "draw", lambda *a: drawn.append(a[1:3]) or original(*a))
    generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    assert {name for _, name in drawn} == {"sneaker"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")} == before


def test_a_picture_that_is_shown_is_the_one_that_was_looked_at(studio, tmp_path):
    found = generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    wanted = found[(found["class"] == "sneaker") & found["scale"].isin([0.0, 3.0])]
    shown = generated.shown(studio, wanted, path=tmp_path / "shown.parquet")
    assert sorted(zip(shown["shift"], shown["scale"], strict=True)) == [("heavy fog", 3.0), ("heavy snow", 3.0), (UNSHIFTED, 0.0)]
    pictures = dict(zip(shown["shift"], tables.pictures(shown, "shown"), strict=True))
    for row in wanted[wanted["scale"] == 3].itertuples():
        seen = studio.panel.judges.clip.image_features(pictures[row.shift][None]).numpy()[0]
        assert np.allclose(seen, row.features, atol=1e-3)


def test_a_slider_or_a_scale_that_changes_outdates_its_class(studio):
    other = dataclasses.replace(studio.panel.tuning.settings, scales=[0.0, 2.0])
    changed = dataclasses.replace(studio, panel=Panel(studio.panel.judges, dataclasses.replace(studio.panel.tuning, settings=other)))
    assert changed.drawing("sneaker") != studio.drawing("sneaker")
    assert studio.drawing("sneaker") != studio.drawing("ankle boot")


def test_the_tiny_unit_is_the_golden_one(studio, tmp_path):
    """But for the answers of trained networks: a training enlarges the differences with which processors round."""
    found = generated.generated(studio, CLASSES, folder=tmp_path)
    assert not difference(recipes.WEATHER_DRAWN, found, within=1e-3, skip=tuple(SETTINGS.networks))
