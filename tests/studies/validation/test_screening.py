"""Filter rules, their thresholds, and what a rule does to the results."""

import itertools

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS
from cnslib.stats import accuracy
from cnslib.studies.labels import staging
from cnslib.studies.validation import screening

SCALES = [0.0, 1.0, 2.0]
RULES = Filtering(recall=0.9, passes=2, bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"))


def labelled(seeds=20, shifts=("heavy snow", "cartoon style", "heavy rain")):
    """Images whose four alignments fall with the scale, each with noise of its own; a third of the heaviest is out of class."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(list(itertools.product(shifts, ["bag", "coat"], range(1, seeds + 1), SCALES)), columns=tables.KEY)
    outside = (table["scale"] == 2) & (rng.uniform(size=len(table)) < 0.33)
    values = {name: 1 - 0.2 * table["scale"] - 0.3 * outside + rng.normal(scale=0.2, size=len(table)) for name in DETECTORS}
    return table.assign(**values, oracle_ooc=outside)


def test_thresholds_reach_the_recall_on_the_labels_they_were_set_on():
    table = labelled()
    keep = screening.verdicts(table, filtering.thresholds(table, 0.9), screening.SINGLES)
    found = (~keep[table["oracle_ooc"]]).mean()
    assert ((found >= 0.9) & (found < 0.93)).all()


def test_no_filter_keeps_all_and_the_rules_nest():
    table = labelled()
    keep = screening.verdicts(table, filtering.thresholds(table, 0.9))
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


def test_the_filter_of_notebook_04_has_thresholds_from_the_labels_of_all_shifts():
    """Lost pictures score 0.2 under snow and 0.6 under rain: by both the threshold is 0.6, by snow alone 0.2."""
    rows = [(shift, "bag", seed, scale) for shift in ("heavy snow", "heavy rain") for seed in (1, 2) for scale in (0.0, 1.0)]
    table = pd.DataFrame(rows, columns=tables.KEY)
    lost = (table["seed"] == 1) & (table["scale"] == 1)
    score = np.where(table["scale"] == 0, 0.9, np.where(~lost, 0.5, np.where(table["shift"] == "heavy snow", 0.2, 0.6)))
    aligned = table.assign(**dict.fromkeys(DETECTORS, score), class_probability=np.where(lost, 0.05, 1.0), oracle_ooc=lost)
    shifted = aligned[aligned["scale"] > 0]
    kept = screening.by_filter(aligned, shifted, labels=8, settings=RULES)
    assert not kept.any()  # good ones score 0.5
    snow = filtering.thresholds(shifted[shifted["shift"] == "heavy snow"], RULES.recall)
    assert screening.verdicts(shifted, snow)[screening.RELEASED].tolist() == [False, True, True, True]
    none = screening.by_filter(aligned, shifted, labels=100, settings=RULES)
    assert none.all()  # 0.05 is above a chance of 0.01: nobody is out of class
    assert none.index.equals(shifted.index)


def test_every_part_is_judged_by_itself():
    table = labelled()
    keep = screening.verdicts(table, filtering.thresholds(table, 0.9))
    parts = {shift: table["shift"] == shift for shift in table["shift"].unique()}
    found = screening.judged(table, keep, parts, settings=RULES.bootstrap).set_index(["part", "rule", "measure"])
    rain = table[parts["heavy rain"] & table["oracle_ooc"]]
    row = found.loc[("heavy rain", screening.RELEASED, "tpr")]
    assert row["n"] == len(rain) and row["estimate"] == pytest.approx((~keep.loc[rain.index, screening.RELEASED]).mean())


def test_areas_are_those_of_scikit_learn():
    table = labelled()
    table["clip_class"] = table["clip_class"].round(1)  # many ties
    part = {"all": table["scale"] >= 0}
    ours = screening.areas(table, part, settings=RULES.bootstrap)
    theirs = filtering.areas(table, settings=RULES.bootstrap)
    for column in ("n", "estimate", "low", "high"):
        np.testing.assert_allclose(ours[column].astype(float), theirs[column].astype(float), atol=1e-12)
    assert screening.areas(table, {"none": table["scale"] < 0}, settings=RULES.bootstrap).empty


def test_a_rule_has_no_advantage_over_itself_and_one_over_its_opposite():
    table = labelled()
    right = ~table["oracle_ooc"]
    same = screening.advantage(table, right, right, settings=RULES.bootstrap)
    assert same == {"n": len(table), "estimate": 0, "low": 0, "high": 0}
    assert screening.advantage(table, right, ~right, settings=RULES.bootstrap)["estimate"] == 1
    one_worse = right.copy()
    one_worse.iloc[0] = ~one_worse.iloc[0]
    assert screening.advantage(table, right, one_worse, settings=RULES.bootstrap)["estimate"] == pytest.approx(1 / len(table))


def answers(table, models=("good", "bad")):
    """The good model fails at the last scale alone, the bad one from scale 1 on."""
    rows = [
        table[tables.KEY].assign(model=name, top1=table["class"].where(table["scale"] < end, "none"))
        for name, end in zip(models, (2, 1), strict=True)
    ]
    return pd.concat(rows, ignore_index=True)


def test_without_a_filter_the_error_rates_are_those_of_all_trajectories():
    table = labelled()
    found = accuracy.outcomes(answers(table))
    keep = pd.DataFrame({screening.LABELS: ~table["oracle_ooc"], screening.NONE: True})
    errors = screening.screened(found, screening.whole(found, table, keep), list(keep), settings=RULES.bootstrap)
    plain = accuracy.error_shares(found, settings=RULES.bootstrap)
    np.testing.assert_allclose(errors.samples[:, 1], plain.samples[:, plain.groups.index(accuracy.ALL)])
    assert errors.n.tolist() == [len(found.trajectories) - table["oracle_ooc"].sum(), len(found.trajectories)]


def test_a_filter_that_agrees_with_the_labels_leaves_nothing_between_them():
    table = labelled()
    table["top1"] = table["class"].where(~table["oracle_ooc"], "none")
    found = accuracy.outcomes(table[[*tables.KEY, "top1"]].assign(model="only").pipe(lambda t: pd.concat([t, t.assign(model="other")])))
    keep = pd.DataFrame({screening.LABELS: ~table["oracle_ooc"], "same": ~table["oracle_ooc"], screening.NONE: True})
    errors = screening.screened(found, screening.whole(found, table, keep), list(keep), settings=RULES.bootstrap)
    excess = screening.excess(errors).set_index(["rule", "scale"])["estimate"]
    assert (excess["same"] == 0).all()
    # only out-of-class images are misclassified: without a filter all of them count
    assert excess[screening.NONE, 2.0] == pytest.approx(table["oracle_ooc"].sum() / len(found.trajectories))


def test_the_order_under_the_labels_agrees_with_itself():
    table = labelled()
    found = accuracy.outcomes(answers(table))
    keep = pd.DataFrame({screening.LABELS: ~table["oracle_ooc"], screening.NONE: True})
    errors = screening.screened(found, screening.whole(found, table, keep), list(keep), settings=RULES.bootstrap)
    tau = screening.agreement(errors).set_index(["rule", "scale"])["estimate"]
    assert tau[screening.NONE, 1.0] == 1 and np.isnan(tau[screening.NONE, 2.0])  # at scale 2 both models are tied


def test_distances_are_those_from_the_labels_whatever_their_side_and_paired():
    """Drops 0.1 above, 0.3 below and 0.2 above that under the labels in every resample, however much all of them move."""
    rules = [screening.LABELS, screening.RELEASED, screening.ALONE, screening.NONE]
    moved = np.linspace(-0.2, 0.2, 21)[:, None] + 0.5 + np.array([0.0, 0.1, -0.3, 0.2])
    samples = np.stack([np.zeros_like(moved), moved], -1)[:, :, None]
    errors = accuracy.Shares(samples, rules, np.array([4, 3, 2, 5]), ["only"], [0.0, 1.0], 0.95)
    found = screening.distances(errors, screening.RELEASED)
    assert found["estimate"].to_dict() == pytest.approx({"closer than CLIP alone": -0.2, "closer than no filter": -0.1})
    assert np.allclose(found["low"], found["estimate"]) and np.allclose(found["high"], found["estimate"]) and set(found["n"]) == {3}


def test_tables_of_the_votes_leave_out_clip_alone_and_hold_both_parts():
    table = labelled(shifts=("heavy snow", "heavy rain"))
    parts = staging.parts(table, ["heavy snow"])
    keep = screening.verdicts(table, filtering.thresholds(table[parts["the pair"]], 0.9))
    quality = screening.judged(table, keep, parts, settings=RULES.bootstrap)
    other = quality[quality["rule"] == screening.RELEASED].assign(rule=screening.FILTER)
    assert set(screening.by_passes(pd.concat([quality, other]))["passes"]) == {0, 1, 2, 3, 4}
    assert set(screening.votes_of(quality, "the pair")["name"]) == {screening.RELEASED, screening.TEXT}
    assert set(screening.rocs(table, parts)["part"]) == set(parts)
    assert len(screening.keyed(quality)) == 2 * len(screening.RULES)
    above = screening.above_alone(table, keep, parts, settings=RULES.bootstrap)
    own, right = table[parts["the pair"]], {}
    for name in (screening.RELEASED, screening.ALONE):
        right[name] = (~keep.loc[own.index, name] == own["oracle_ooc"]).mean()
    assert above["vote, released code", "the pair"]["estimate"] == pytest.approx(right[screening.RELEASED] - right[screening.ALONE])


def test_own_thresholds_find_the_recall_on_every_shift():
    table = labelled()
    by_shift = {shift: table["shift"] == shift for shift in table["shift"].unique()}
    keep = screening.tuned(table, by_shift, screening.SINGLES, 0.9)
    assert keep.index.equals(table.index)
    found = (~keep[table["oracle_ooc"]]).groupby(table["shift"]).mean()
    assert (found >= 0.9).all(axis=None)
