"""Rendered and drawn weather of the OOD-CV comparison: plans, units that are made once, CLIP's labels and neighbours."""

import dataclasses
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_oodcv import CLASSES, SETTINGS, plentiful
from tiny_settings import changed

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.oodcv import labels, weather

PLAN = weather.reference_plan(CLASSES, settings=SETTINGS)
LADDER = {shift: weather.ladder_plan(CLASSES, shift, settings=SETTINGS) for shift in SETTINGS.shifts}


def test_a_garment_of_the_reference_has_one_weather_and_unshifted_ones_no_severity():
    assert not PLAN.duplicated(["class", "seed"]).any()
    assert PLAN.groupby("shift").size().to_dict() == {"heavy snow": 8, "heavy fog": 8, "heavy sandstorm": 4, UNSHIFTED: 4}
    assert (PLAN.loc[PLAN["shift"] == UNSHIFTED, "scale"] == 0).all() and PLAN["scale"].between(0, 1).all()
    many = weather.reference_plan(CLASSES, settings=dataclasses.replace(SETTINGS, reference_images=500))
    means = many[many["shift"].isin(SETTINGS.shifts)].groupby("shift")["scale"].mean()
    assert means.between(0.5 - 3 / np.sqrt(12 * 1000), 0.5 + 3 / np.sqrt(12 * 1000)).all()


def test_the_ladder_has_other_garments_and_begins_at_the_same_picture_under_every_weather():
    plans = list(LADDER.values())
    both = [PLAN[["class", "seed"]].drop_duplicates(), plans[0][["class", "seed"]].drop_duplicates()]
    assert not pd.concat(both).duplicated().any()
    assert sorted(plans[0]["scale"].unique()) == [0.0, 0.5, 1.0]
    pictures = [weather.rendered(plentiful(), plan, seed=1) for plan in plans]
    start = (plans[0]["scale"] == 0).to_numpy()
    assert np.array_equal(pictures[0][start], pictures[1][start]) and not np.array_equal(pictures[0][~start], pictures[1][~start])


def test_a_picture_does_not_depend_on_its_neighbours():
    whole = weather.rendered(plentiful(), PLAN, seed=1)
    assert np.array_equal(weather.rendered(plentiful(), PLAN.iloc[5:7].reset_index(drop=True), seed=1), whole[5:7])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shifts": ["heavy hail"]}, r"oodcv\.shifts\.0: 'heavy hail'"),
        ({"scales": [0.5, 1.0]}, r"oodcv\.scales: \[0\.5"),
        ({"unknown": "no weather"}, r"oodcv\.unknown: 'no weather'"),
        ({"zoom": 0.5}, r"oodcv\.zoom: 0\.5"),
        ({"patience": 0}, r"oodcv\.patience: 0"),
    ],
)
def test_settings_that_cannot_be_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **change)


def test_a_class_that_is_no_garment_is_named():
    with pytest.raises(ValueError, match=r"base\.classes: 'aeroplane'"):
        weather.heldout(["aeroplane"])


def test_everything_is_made_once_and_only_what_is_missing_is_made_again(study, tmp_path, monkeypatch):
    """Reference, ladder and images are there after one run; a lost class is drawn again and nothing else is.

    The golden results leave out the predictions of trained networks: a training enlarges the differences with which processors round.
    """

    def reference():
        return weather.seen(study, {"reference": PLAN}, folder=tmp_path, features=True, pattern="reference.parquet")

    def ladder():
        return weather.seen(study, LADDER, folder=tmp_path / "ladder", features=False)

    def images():
        return weather.generated(study, CLASSES, folder=tmp_path / "generated")

    within = {"within": 1e-3, "skip": tuple(SETTINGS.networks)}
    found = images()
    keys = [(shift, name, 1, scale) for shift in SETTINGS.shifts for name in CLASSES for scale in SETTINGS.scales]
    tables.complete(found, keys, tables.KEY, "generated")
    assert set(found["one"]) <= set(CLASSES) and not difference(recipes.WEATHER_DRAWN, found, **within)
    assert not difference(recipes.WEATHER, reference(), **within) and len(ladder()) == 2 * 2 * 2 * 3
    drawn, original = [], weather.draw
    monkeypatch.setattr(weather, "draw", lambda *a: drawn.append(a[1:3]) or original(*a))
    with monkeypatch.context() as patch:
        patch.setattr(weather, "predictions", lambda *a: pytest.fail("computed again"))
        assert len(images()) == len(found) and len(reference()) == 24 and len(ladder()) == 24
    assert drawn == []
    before = {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")}
    (tmp_path / "generated" / "sneaker.parquet").unlink()
    shutil.rmtree(study.tuning.weights)
    images()
    assert {name for _, name in drawn} == {"sneaker"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")} == before


def test_a_picture_that_is_shown_is_the_one_that_was_looked_at(study, tmp_path):
    found = weather.generated(study, CLASSES, folder=tmp_path / "generated")
    wanted = found[(found["class"] == "sneaker") & found["scale"].isin([0.0, 3.0])]
    shown = weather.shown(study, wanted, path=tmp_path / "shown.parquet")
    assert sorted(zip(shown["shift"], shown["scale"], strict=True)) == [("heavy fog", 3.0), ("heavy snow", 3.0), (UNSHIFTED, 0.0)]
    pictures = dict(zip(shown["shift"], tables.pictures(shown, "shown"), strict=True))
    for row in wanted[wanted["scale"] == 3].itertuples():
        seen = study.judges.clip.image_features(pictures[row.shift][None]).numpy()[0]
        assert np.allclose(seen, row.features, atol=1e-3)


def test_a_slider_or_a_scale_that_changes_outdates_its_class(study):
    other = dataclasses.replace(study.tuning.settings, scales=[0.0, 2.0])
    changed_study = dataclasses.replace(study, tuning=dataclasses.replace(study.tuning, settings=other))
    assert changed_study.drawing("sneaker") != study.drawing("sneaker") != study.drawing("ankle boot")


WEATHERS = ["heavy snow", "heavy fog", "heavy rain"]


class Texts:
    """A CLIP whose text features are unit vectors: one axis per weather and one for none, whatever the class."""

    model = SimpleNamespace(logit_scale=torch.tensor(100.0).log())

    def text_features(self, texts: list[str]) -> torch.Tensor:
        words = [*[f"in {shift}" for shift in WEATHERS], "without"]
        return torch.stack([torch.eye(4)[next(i for i, word in enumerate(words) if word in text)] for text in texts])


def test_the_label_is_the_text_that_a_picture_is_closest_to():
    features = np.array([[0.9, 0.1, 0, 0.2], [0, 0.8, 0.7, 0], [0, 0, 1, 0], [0.5, 0.5, 0.5, 0.6]])
    classes = pd.Series(["bag", "coat", "bag", "coat"])
    found = labels.probabilities(features, classes, Texts(), shifts=WEATHERS, unknown="a {name} without weather")
    assert found.idxmax(axis=1).tolist() == [*WEATHERS, labels.UNKNOWN]
    assert found.sum(axis=1).tolist() == pytest.approx([1] * 4)
    assert found.loc[1, "heavy rain"] / found.loc[1, "heavy fog"] == pytest.approx(np.exp(-10), rel=1e-3)


def test_neighbours_are_the_closest_first_and_counted_against_chance():
    drawn = np.array([[1, 0], [0.6, 0.8], [0, 1], [-1, 0], [0.8, 0.6], [0.99, 0.1]])
    places, cosines = labels.nearest(np.array([[1.0, 0.0]]), drawn)
    assert places.tolist() == [[0, 5, 4, 1, 2]] and cosines[0].tolist() == pytest.approx([1, 0.99, 0.8, 0.6, 0])
    real = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": ["heavy fog"] * 2 + ["heavy snow"] * 2, "seed": [1, 2, 3, 4]})
    images = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": ["heavy fog", "heavy snow"] * 2})
    settings = Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes")
    found = labels.agreement(real, images, np.array([[0, 1], [0, 1], [3, 0], [3, 0]]), settings=settings).set_index("same")
    assert found["estimate"].to_dict() == {"class": 0.75, "weather": 0.5, "both": 0.5}
    assert found["chance"].to_dict() == {"class": 0.5, "weather": 0.5, "both": 0.25}
    assert (found["n"] == 8).all() and (found["low"] <= found["estimate"]).all()
