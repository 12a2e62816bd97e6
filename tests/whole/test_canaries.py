import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm
from tiny_settings import resampled

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.data import artifacts
from cnslib.method import filtering
from cnslib.stats import accuracy, failure, ranking

SETTINGS = resampled(400)
TRUTH, CHANCE, ORACLE = "canary that is always right", "canary that guesses", "canary that asks the oracle"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run() -> read.Run:
    return read.Run("accuracy", read.load(paths.resolve("params.yaml")), ())


@pytest.fixture(scope="module")
def found(run) -> xr.DataArray:
    answers = artifacts.top1(run).astype(dict.fromkeys(tables.TEXTS, str))
    asked = answers[answers["model"] == answers["model"].iloc[0]].reset_index(drop=True)
    guesses = np.random.default_rng(26).choice(run.base.classes, len(asked))
    seen = asked[tables.KEY].merge(judged(run), how="left", on=tables.KEY, validate="one_to_one")["class_probability"]
    assert seen.notna().all()
    parts = [
        asked.assign(model=TRUTH, top1=asked["class"]),
        asked.assign(model=CHANCE, top1=guesses),
        asked.assign(model=ORACLE, top1=asked["class"].where(seen >= 0.5, "another")),
    ]
    return accuracy.wrong_predictions(pd.concat([answers, *parts], ignore_index=True), artifacts.kept(run))


def judged(run: read.Run) -> pd.DataFrame:
    rows = artifacts.by_shift(run, "alignment", filtering.schema)[[*tables.KEY, "class_probability"]]
    plain = rows[rows["scale"] == 0].drop_duplicates(["class", "seed"]).assign(shift=UNSHIFTED)
    return pd.concat([rows[rows["scale"] > 0], plain], ignore_index=True)


@pytest.fixture(scope="module")
def errors(found) -> xr.DataArray:
    return accuracy.by_shift(found, SETTINGS)


def whole(table: pd.DataFrame, model: str) -> pd.DataFrame:
    return table[(table["shift"] == accuracy.ALL) & (table["model"] == model)]


def test_who_is_always_right_is_right_ranks_first_and_never_fails(found, errors):
    rows = whole(accuracy.accuracy(errors), TRUTH)
    assert np.allclose(rows[["estimate", "high"]], 1) and len(rows) == found.sizes["scale"]
    assert rows["low"].between(0.99, 1, inclusive="left").all()  # that all are right is no proof that every one would be
    ranks = whole(ranking.ranks(errors), TRUTH).set_index("scale")["estimate"]
    assert (ranks[0.0:] <= 1.5).all() and (ranks.drop(0.0) == 1).all()  # the oracle lets in only what it knows at scale 0: a tie
    assert whole(failure.median_scale(accuracy.by_shift(failure.first_failures(found), SETTINGS)), TRUTH)["estimate"].tolist() == [np.inf]


def test_who_guesses_is_right_once_in_as_many_as_there_are_classes(run, errors):
    """At each scale within three standard errors of independent guesses; so is the drop along the scale, from none."""
    rows, share = whole(accuracy.accuracy(errors), CHANCE), 1 / len(run.base.classes)
    n = errors["n"].sel(shift=accuracy.ALL).item()
    above = rows[rows["scale"] > 0]  # scale 0 is one picture for all shifts of a class and seed
    assert (above["estimate"] - share).abs().max() < 3 * np.sqrt(share * (1 - share) / n)
    last = whole(accuracy.interval(accuracy.drop(errors)), CHANCE).iloc[-1]
    error = (last["high"] - last["low"]) / (2 * norm.ppf(0.975))
    assert abs(last["estimate"]) <= 3 * error


def test_no_classifier_is_better_than_the_oracle_by_more_than_its_interval(run, errors):
    table = accuracy.accuracy(errors)
    best = whole(table, ORACLE).set_index("scale")["high"]
    for name in run.evaluation.classifiers:
        rows = whole(table, name).set_index("scale")
        assert (rows["low"] <= best).all(), name
