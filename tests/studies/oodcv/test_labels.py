"""CLIP's weather labels and nearest neighbours on vectors whose answer is known by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.stats.proportion import proportion_confint

from cnslib.core.settings.method import Bootstrap
from cnslib.studies.oodcv import labels
from cnslib.studies.oodcv.labels import UNKNOWN

SHIFTS = ["heavy snow", "heavy fog", "heavy rain"]
SETTINGS = Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes")


class Texts:
    """A CLIP whose text features are unit vectors: one axis per weather and one for none, whatever the class."""

    model = SimpleNamespace(logit_scale=torch.tensor(100.0).log())

    def text_features(self, texts: list[str]) -> torch.Tensor:
        words = [*[f"in {shift}" for shift in SHIFTS], "without"]
        return torch.stack([torch.eye(4)[next(i for i, word in enumerate(words) if word in text)] for text in texts])


def test_the_label_is_the_text_that_a_picture_is_closest_to():
    features = np.array([[0.9, 0.1, 0, 0.2], [0, 0.8, 0.7, 0], [0, 0, 1, 0], [0.5, 0.5, 0.5, 0.6]])
    classes = pd.Series(["bag", "coat", "bag", "coat"])
    found = labels.probabilities(features, classes, Texts(), shifts=SHIFTS, unknown="a {name} without weather")
    assert found.idxmax(axis=1).tolist() == [*SHIFTS, UNKNOWN]
    assert found.sum(axis=1).tolist() == pytest.approx([1] * 4)
    assert found.loc[1, "heavy rain"] / found.loc[1, "heavy fog"] == pytest.approx(np.exp(-10), rel=1e-3)


def test_every_row_of_the_confusion_adds_up_to_one_and_has_its_own_n():
    truth = pd.Series(["heavy fog"] * 4 + ["unshifted"] * 2)
    label = pd.Series(["heavy fog", "heavy fog", "heavy fog", UNKNOWN, UNKNOWN, "heavy snow"])
    found = labels.confusion(truth, label, [*SHIFTS, UNKNOWN], confidence=0.95)
    assert found.groupby("truth")["estimate"].sum().tolist() == pytest.approx([1, 1])
    fog = found[(found["truth"] == "heavy fog") & (found["label"] == "heavy fog")].iloc[0]
    assert (fog["n"], fog["estimate"]) == (4, 0.75)
    assert (fog["low"], fog["high"]) == pytest.approx(proportion_confint(3, 4, method="wilson"))
    assert labels.right(truth, label, SHIFTS).tolist() == [True, True, True, False, True, False]


def test_neighbours_are_the_closest_first():
    drawn = np.array([[1, 0], [0.6, 0.8], [0, 1], [-1, 0], [0.8, 0.6], [0.99, 0.1]])
    places, cosines = labels.nearest(np.array([[1.0, 0.0]]), drawn)
    assert places.tolist() == [[0, 5, 4, 1, 2]] and cosines[0].tolist() == pytest.approx([1, 0.99, 0.8, 0.6, 0])


def test_agreement_counts_neighbours_of_the_same_class_and_weather_against_chance():
    weather = ["heavy fog"] * 2 + ["heavy snow"] * 2
    real = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": weather, "seed": [1, 2, 3, 4]})
    drawn = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": ["heavy fog", "heavy snow"] * 2})
    found = labels.agreement(real, drawn, np.array([[0, 1], [0, 1], [3, 0], [3, 0]]), settings=SETTINGS).set_index("same")
    assert found["estimate"].to_dict() == {"class": 0.75, "weather": 0.5, "both": 0.5}
    assert found["chance"].to_dict() == {"class": 0.5, "weather": 0.5, "both": 0.25}
    assert (found["n"] == 8).all() and (found["low"] <= found["estimate"]).all()


def test_examples_are_the_middle_ones_of_light_and_heavy_weather():
    real = pd.DataFrame({"shift": "heavy fog", "class": "bag", "seed": range(6), "scale": [0.1, 0.2, 0.3, 0.6, 0.7, 0.8]})
    cosines = np.array([0.9, 0.5, 0.7, 0.2, 0.8, 0.3])[:, None].repeat(5, axis=1)
    chosen = labels.typical(real, cosines)
    assert chosen.set_index("amount")["seed"].to_dict() == {"light": 2, "heavy": 5}
    assert chosen["place"].tolist() == chosen["seed"].tolist()
