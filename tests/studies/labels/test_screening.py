"""Filter rules against labels, what a rule does to the results, and the sample of the user study."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.metrics import roc_auc_score

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS
from cnslib.stats import accuracy
from cnslib.studies.labels import screening

SCALES = [0.0, 1.0, 2.0]
SETTINGS = Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes")


@pytest.fixture
def labelled() -> pd.DataFrame:
    """Images whose four alignments fall with the scale, each with noise of its own; a third of the heaviest is out of class."""
    rng = np.random.default_rng(0)
    shifts = ("heavy snow", "cartoon style", "heavy rain")
    table = pd.DataFrame(list(itertools.product(shifts, ["bag", "coat"], range(1, 21), SCALES)), columns=tables.KEY)
    outside = (table["scale"] == 2) & (rng.uniform(size=len(table)) < 0.33)
    values = {name: 1 - 0.2 * table["scale"] - 0.3 * outside + rng.normal(scale=0.2, size=len(table)) for name in DETECTORS}
    return table.assign(**values, oracle_ooc=outside)


def test_no_filter_keeps_all_and_the_rules_nest(labelled):
    keep = screening.verdicts(labelled, filtering.thresholds(labelled, 0.9))
    assert keep[screening.NONE].all()
    votes = [name for name in screening.RULES if name != screening.ALONE]
    assert [screening.RULES[name].passes for name in votes] == [0, 1, 2, 3, 4]
    for looser, stricter in itertools.pairwise(votes):
        assert keep.loc[keep[stricter], looser].all() and keep[stricter].sum() < keep[looser].sum()


def test_the_named_rules_are_the_papers_text_and_the_released_code():
    # two active detectors of four: the text drops the image, the released code keeps it
    table = pd.DataFrame([[1.0, 1.0, 0.0, 0.0]], columns=list(DETECTORS))
    keep = screening.verdicts(table, dict.fromkeys(DETECTORS, 0.5)).iloc[0]
    assert keep[screening.RELEASED] and not keep[screening.TEXT] and keep[screening.ALONE]


def test_every_part_is_judged_by_itself(labelled):
    keep = screening.verdicts(labelled, filtering.thresholds(labelled, 0.9))
    parts = {shift: labelled["shift"] == shift for shift in labelled["shift"].unique()}
    found = screening.judged(labelled, keep, parts, settings=SETTINGS).set_index(["part", "rule", "measure"])
    rain = labelled[parts["heavy rain"] & labelled["oracle_ooc"]]
    row = found.loc[("heavy rain", screening.RELEASED, "tpr")]
    assert row["n"] == len(rain) and row["estimate"] == pytest.approx((~keep.loc[rain.index, screening.RELEASED]).mean())


def test_areas_are_those_of_scikit_learn_and_of_the_filter(labelled):
    labelled["clip_class"] = labelled["clip_class"].round(1)  # many ties
    ours = screening.areas(labelled, {"all": labelled["scale"] >= 0}, settings=SETTINGS)
    assert ours["estimate"].tolist() == pytest.approx([roc_auc_score(labelled["oracle_ooc"], -labelled[name]) for name in DETECTORS])
    theirs = filtering.areas(labelled, settings=SETTINGS)
    for column in ("n", "estimate", "low", "high"):
        np.testing.assert_allclose(ours[column].astype(float), theirs[column].astype(float), atol=1e-12)
    assert screening.areas(labelled, {"none": labelled["scale"] < 0}, settings=SETTINGS).empty


def test_a_rule_has_no_advantage_over_itself_and_one_over_its_opposite(labelled):
    right = ~labelled["oracle_ooc"]
    assert screening.advantage(labelled, right, right, settings=SETTINGS) == {"n": len(labelled), "estimate": 0, "low": 0, "high": 0}
    assert screening.advantage(labelled, right, ~right, settings=SETTINGS)["estimate"] == 1
    one_worse = right.where(right.index > 0, ~right)
    assert screening.advantage(labelled, right, one_worse, settings=SETTINGS)["estimate"] == pytest.approx(1 / len(labelled))


def test_without_a_filter_the_error_rates_are_those_of_all_trajectories(labelled):
    """The good model fails at the last scale alone, the bad one from scale 1 on."""
    sides = [
        labelled[tables.KEY].assign(model=m, top1=labelled["class"].where(labelled["scale"] < k, "none")) for m, k in (("g", 2), ("b", 1))
    ]
    found = accuracy.wrong_predictions(pd.concat(sides, ignore_index=True))
    keep = pd.DataFrame({screening.LABELS: ~labelled["oracle_ooc"], screening.NONE: True})
    errors = screening.screened(found, screening.whole(found, labelled, keep), list(keep), settings=SETTINGS)
    np.testing.assert_allclose(errors[:, 1], accuracy.by_shift(found, SETTINGS).sel(shift=accuracy.ALL))
    assert errors["n"].to_numpy().tolist() == [len(found) - labelled["oracle_ooc"].sum(), len(found)]
    tau = screening.agreement(errors).set_index("rule")["estimate"]
    assert tau.index.tolist() == [screening.NONE] and np.isnan(tau[screening.NONE])  # at the last scale both models are tied


def test_a_filter_that_agrees_with_the_labels_leaves_nothing_between_them(labelled):
    """Only out-of-class images are misclassified: without a filter all of them count."""
    one = labelled[tables.KEY].assign(model="one", top1=labelled["class"].where(~labelled["oracle_ooc"], "none"))
    found = accuracy.wrong_predictions(pd.concat([one, one.assign(model="other")]))
    keep = pd.DataFrame({screening.LABELS: ~labelled["oracle_ooc"], "same": ~labelled["oracle_ooc"], screening.NONE: True})
    errors = screening.screened(found, screening.whole(found, labelled, keep), list(keep), settings=SETTINGS)
    excess = screening.excess(errors).set_index(["rule", "scale"])["estimate"]
    assert (excess["same"] == 0).all()
    assert excess[screening.NONE, 2.0] == pytest.approx(labelled["oracle_ooc"].sum() / len(found))


def test_distances_are_those_from_the_labels_whatever_their_side_and_paired():
    """Drops 0.1 above, 0.3 below and 0.2 above that under the labels in every resample, however much all of them move."""
    rules = [screening.LABELS, screening.RELEASED, screening.ALONE, screening.NONE]
    moved = np.linspace(-0.2, 0.2, 21)[:, None] + 0.5 + np.array([0.0, 0.1, -0.3, 0.2])
    samples = np.stack([np.zeros_like(moved), moved], -1)[:, :, None]
    labels = {"rule": rules, "n": ("rule", [4, 3, 2, 5]), "model": ["only"], "scale": [0.0, 1.0], "confidence": 0.95}
    errors = xr.DataArray(samples, labels, ["resample", "rule", "model", "scale"])
    found = screening.distances(errors, screening.RELEASED)
    assert found["estimate"].to_dict() == pytest.approx({"closer than CLIP alone": -0.2, "closer than no filter": -0.1})
    assert np.allclose(found["low"], found["estimate"]) and np.allclose(found["high"], found["estimate"]) and set(found["n"]) == {3}


def test_the_user_study_is_seeded_and_every_shift_and_scale_has_its_proportion():
    keys = itertools.product(["heavy snow", "cartoon style"], ["bag", "coat"], range(1, 26), SCALES)
    table = pd.DataFrame([key for key in keys if key[0] == "heavy snow" or key[2] > 10], columns=tables.KEY)
    chosen = screening.study_sample(table, 60, seed=1)
    assert len(chosen) == 60 and not chosen.duplicated(tables.KEY).any()
    assert chosen.equals(screening.study_sample(table.sample(frac=1, random_state=5), 60, seed=1))
    sizes = pd.DataFrame({"all": table.groupby(["shift", "scale"]).size(), "chosen": chosen.groupby(["shift", "scale"]).size()})
    assert (sizes["chosen"] - 60 * sizes["all"] / len(table)).abs().max() < 1
    assert set(screening.study_sample(table, 60, seed=2).index) != set(chosen.index)
    assert len(screening.study_sample(table, 10_000, seed=1)) == len(table)
