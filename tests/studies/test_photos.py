import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_settings import resampled
from torch import nn
from torchvision.transforms import v2

from cnslib.core import paths, recipes
from cnslib.core.settings import read
from cnslib.core.settings.sections import Photos
from cnslib.data import imagenet
from cnslib.stats import accuracy, failure
from cnslib.studies import bisection, photos, report, shared
from cnslib.world import cutouts

JUDGED = {"classifiers": {"lite0": "lite:0"}, "reference": "lite0", "cutouts": 3, "severities": [0.0, 0.5, 1.0]}
JUDGED |= {"shown": [0.0, 0.5, 1.0], "bisected": "lite0", "resolution": 0.0625}
SETTINGS = Photos(bootstrap=resampled(100), seed=1, **JUDGED)
TRANSFORM = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Stubborn(nn.Module):
    def __init__(self, index: int):
        super().__init__()
        self.index = index

    def forward(self, pixels):
        return nn.functional.one_hot(torch.full((len(pixels),), self.index), 1000).float()


def sections(out, **changes) -> dict:
    found = read.load(paths.resolve("params.yaml"))
    base = dataclasses.replace(found["base"], out=str(out), shifts=["heavy snow"])
    return {**found, "base": base, "photos": dataclasses.replace(SETTINGS, **changes)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The answers of the smallest classifier, unit by unit, in the folder of a run."""
    out = tmp_path_factory.mktemp("run")
    folder = paths.Layout(str(out)).artifacts("photos")
    return out, photos.predict_all(["heavy snow"], settings=SETTINGS, device="cpu", folder=folder)


def test_the_report_counts_a_stubborn_model_by_hand(made):
    on = report.photo_set(sections(made[0]))
    hen = list(imagenet.labels()).index("hen")
    found = report.report(Stubborn(hen), name="mine", transform=TRANSFORM, on=on)
    own = found.tables["accuracy"].query("model == 'mine' and shift == @accuracy.ALL")
    assert own["estimate"].tolist() == pytest.approx([2 / 3] * 3)
    assert len(found.predictions) == 3 * (1 + 2) and found.summary.set_index("quantity").loc["accuracy at scale 0", "of"] == 2


def test_a_bisected_failure_lies_between_the_last_right_and_the_first_wrong_severity(tmp_path):
    """Drawn again, alone: right at `after`, wrong at `until`, both inside the bracket of the grid."""
    settings, shift = {"settings": SETTINGS, "device": "cpu"}, "painting style"
    points = failure.failure_points(accuracy.wrong_predictions(photos.predict_all([shift], folder=tmp_path, **settings)))
    exact = photos.bisect(points, [shift], folder=tmp_path / "bisected", **settings)
    objects = {(one.label, one.seed): one for one in photos.chosen(SETTINGS)}
    halved = exact[bisection.bracketed(exact)]
    assert len(halved) and (halved["until"] - halved["after"] <= SETTINGS.resolution).all()
    (classifier,) = shared.judges(SETTINGS.classifiers, list(imagenet.labels()), "cpu")
    for row in halved.to_dict("records"):
        assert row["grid_after"] <= row["after"] < row["until"] <= row["grid_until"]
        pictures = cutouts.shifted(objects[row["class"], row["seed"]], shift, [row["after"], row["until"]], seed=1)
        assert [classifier.labels[top] == row["class"] for top in classifier.logits(pictures).argmax(1)] == [True, False]


def test_the_severity_at_which_half_have_failed_is_counted_by_hand():
    after, until = [-np.inf, 0.2, 0.3, 1.0], [0.0, 0.3, 0.4, np.inf]  # one failed before any shift, one never
    rows = {"model": "a", "shift": "heavy snow", "class": list("abcd"), "seed": 1, "after": after, "until": until}
    half = photos.median_severity(pd.DataFrame(rows), resampled(100, "other objects")).iloc[0]
    assert half["estimate"] == 0.25 and half["n"] == 4 and half["low"] <= 0.25 <= half["high"]
    never = photos.median_severity(pd.DataFrame(rows | {"until": np.inf}), resampled(100, "other objects")).iloc[0]
    assert np.isinf(never["estimate"])


def test_the_tiny_unit_is_the_golden_one(made):
    snow = made[1].query("shift == 'heavy snow'").reset_index(drop=True)
    assert not difference(recipes.PHOTOS, snow, within=1e-2, skip=("top5",))
