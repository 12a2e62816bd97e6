"""Intervals of a single kind, simulated on data that are made for it: shares, means and correlations of independent cases, a largest
step, a score of variances, lines of other classifiers, and orders on two benchmarks. Each test says what the truth is known by."""

from math import asin, pi

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.special import expit
from tiny_benchmark import POINTS, WEIGHTS, answers, truth, world
from tiny_coverage import covers

from cnslib.core.settings.method import OBJECTS, OTHER, SAME, Bootstrap
from cnslib.stats import accuracy, bootstrap, gates, line, ranking
from cnslib.stats import answers as exams
from cnslib.stats.accuracy import Shares
from cnslib.studies import photos
from cnslib.studies.scenarios import score

CLASSES, SCALES = 8, np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])


def keys(objects: int) -> pd.DataFrame:
    """So many objects, or seeds, of each class."""
    return pd.DataFrame({"class": np.repeat([f"{i}" for i in range(CLASSES)], objects), "seed": np.tile(range(objects), CLASSES)})


def inside(record: dict, true: float) -> bool:
    return bool(record["low"] <= true <= record["high"])


@pytest.mark.parametrize("n", [64, 320, 512])
def test_wilsons_interval_covers_a_share_on_average_over_shares_by_exact_sums(n):
    known = np.linspace(0.05, 0.98, 94)
    bounds = [bootstrap.counted(hits, n, confidence=0.95) for hits in range(n + 1)]
    low, high = (np.array([own[side] for own in bounds]) for side in ("low", "high"))
    mass = scipy.stats.binom.pmf(np.arange(n + 1)[:, None], n, known)
    covered = (mass * ((low[:, None] <= known) & (known <= high[:, None]))).sum(0)
    assert covered.min() >= 0.92 and 0.94 <= covered.mean() <= 0.96


@pytest.mark.parametrize("runs", [5, 14])
def test_the_t_interval_covers_a_mean_of_few_runs_or_shifts(runs):
    drawn = np.random.default_rng(1).normal(2.0, 0.5, (500, runs))
    hits = [inside(bootstrap.independent_mean(own, confidence=0.95), 2.0) for own in drawn]
    assert covers(pd.Series(hits, dtype=float)), np.mean(hits)


@pytest.mark.parametrize("luck", [(0.0, 0.0), (0.05, 0.05), (0.2, 0.2), (0.2, 0.01)])
def test_a_difference_of_two_networks_is_covered_for_other_objects_and_other_trainings(luck):
    """Three trainings of each network on six objects of each of 8 classes: luck from none to most of what varies, and of one network.

    A network has a taste for single objects, and so has a training. The truth is the distance of the networks, 0.3.
    """
    settings, rows, level, hits = Bootstrap(500, 0.95, 1, OBJECTS), keys(6), np.linspace(-0.2, 0.2, CLASSES).repeat(6), []
    weights, units = bootstrap.resampling_weights(rows, settings=settings)
    given = (len(rows), bootstrap.freedom_of(rows, settings=settings), settings.confidence)
    for number in range(1000):
        rng = np.random.default_rng([29, number])
        hard, sides = level + rng.normal(0, 0.3, len(rows)), []
        for height, own in zip((0.3, 0.0), luck, strict=True):
            taste = rng.normal(0, 0.2, (len(rows), 1)) + rng.normal(0, 0.1, (len(rows), 3))
            sides.append(weights[:, units] @ (height + hard[:, None] + taste + rng.normal(0, own, 3)) / len(rows))
        hits.append(inside(bootstrap.over_trainings(*sides, *given), 0.3))
    assert covers(pd.Series(hits, dtype=float)), np.mean(hits)


@pytest.mark.parametrize("target", [SAME, OBJECTS, OTHER])
def test_a_mean_is_covered_for_every_target_on_data_of_its_kind(target):
    """Six rows of each of 8 classes by 40: seeds bind classes together, objects do not, other classes have other levels about 1."""
    rows, own, hits = keys(40), np.linspace(-1, 1, CLASSES), []
    rows = rows.loc[rows.index.repeat(6)].reset_index(drop=True)
    label, seed = rows["class"].astype(int).to_numpy(), rows["seed"].to_numpy()
    for number in range(200):
        rng = np.random.default_rng([26, number])
        level = rng.normal(0, 0.7, CLASSES) if target == OTHER else own
        shared = 0 if target == OBJECTS else rng.normal(0, 0.5, 40)[seed]
        values = 1 + level[label] + shared + rng.normal(0, 1, (CLASSES, 40))[label, seed] + rng.normal(0, 1, len(rows))
        hits.append(inside(bootstrap.mean(pd.Series(values), rows, settings=Bootstrap(200, 0.95, number, target)), 1.0))
    assert covers(pd.Series(hits, dtype=float)), np.mean(hits)


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.8])
def test_fishers_interval_covers_the_rank_correlation_of_the_classifiers_kind(rho):
    """Spearman's rho of normal values is 6 / pi arcsin(r / 2) (Pearson 1907)."""
    rng = np.random.default_rng(2)
    pairs = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], (400, 23))
    hits = [inside(bootstrap.independent_rank_correlation(*own.T, confidence=0.95), 6 / pi * asin(rho / 2)) for own in pairs]
    assert covers(pd.Series(hits, dtype=float)), np.mean(hits)


def test_accuracy_on_pictures_of_some_classes_with_one_noise_per_seed_is_covered_by_wilson():
    """The exams: seeds bind pictures together, classes tell them apart; for 8 classes by 40 seeds the two cancel, nearly."""
    hits = []
    for number in range(150):
        rng = np.random.default_rng([21, number])
        given = world(rng, models=4)
        found = answers(rng, given, seeds=40)
        rows = found.trajectories.assign(place=range(len(found.wrong))).drop_duplicates(["class", "seed"])["place"]
        right = np.where(found.wrong[rows, :, 0], "no", "yes")
        table = pd.DataFrame({"model": np.tile(found.models, len(rows)), "class": "yes", "top1": right.ravel()})
        known = exams.exams({"drawn": table}, confidence=0.95).set_index("model").loc[found.models]
        true = 1 - truth(given)[0][0, :, 0]
        hits.append(np.mean((known["low"] <= true) & (true <= known["high"])))
    assert covers(pd.Series(hits)), np.mean(hits)


def test_the_cost_of_drawn_pictures_is_covered_by_newcombe():
    """512 pictures that are each by themselves, beside 320 whose seeds bind them together."""
    hits = []
    for number in range(150):
        rng = np.random.default_rng([27, number])
        given = world(rng, models=4)
        found, known = answers(rng, given, seeds=40), np.linspace(0.7, 0.95, 4)
        rows = found.trajectories.assign(place=range(len(found.wrong))).drop_duplicates(["class", "seed"])["place"]
        drawn, real = ~found.wrong[rows, :, 0], rng.random((512, 4)) < known
        sides = [pd.DataFrame({"n": len(own), "estimate": own.mean(0)}, index=found.models) for own in (real, drawn)]
        table = exams.cost(*sides, confidence=0.95).loc[found.models]
        true = known - (1 - truth(given)[0][0, :, 0])
        hits.append(np.mean((table["low"] <= true) & (true <= table["high"])))
    assert covers(pd.Series(hits)), np.mean(hits)


def test_the_number_of_shifts_with_another_order_is_covered_or_more_often():
    """Three models, of whose orders by quadrature some differ from that over all shifts."""
    hits = []
    for number in range(100):
        rng = np.random.default_rng([28, number])
        given = world(rng, models=3)
        claim = photos.order_claim(accuracy.error_shares(answers(rng, given, seeds=20), settings=Bootstrap(200, 0.95, number, SAME)))
        order = truth(given)[0].sum(-1).argsort(-1)
        hits.append(inside(claim, (order[:-1] != order[-1:]).any(-1).sum()))
    assert covers(pd.Series(hits, dtype=float), whole=True), np.mean(hits)


LINES = {"straight": [0, 0.2, 0.4, 0.6, 0.8, 1], "bent": [0, 0.05, 0.3, 0.7, 0.95, 1], "two": [0, 0.1, 0.4, 0.7, 0.9, 1]}


@pytest.mark.parametrize("kind", LINES)
def test_the_largest_step_of_a_slider_is_covered_where_steps_are_equal_too(kind):
    """Readings are a line that each seed and each (class, seed) makes steeper or flatter, so that endless ones have the line's steps."""
    read, hits = np.array(LINES[kind]), []
    rows = keys(40)
    for number in range(150):
        rng = np.random.default_rng([22, number])
        steeper = rng.normal(0, 0.2, 40)[rows["seed"]] + rng.normal(0, 0.5, len(rows))
        asked = read * (1 + steeper[:, None]) + rng.normal(0, 0.1, (len(rows), len(read)))
        seen = rows.loc[rows.index.repeat(len(read))].assign(scale=np.tile(SCALES, len(rows)), asked=asked.ravel())
        hits.append(inside(gates.largest_step(seen, "asked", settings=Bootstrap(200, 0.95, number, SAME)), np.diff(read).max()))
    assert covers(pd.Series(hits, dtype=float)), np.mean(hits)


def accuracies(rng: np.random.Generator, logit: np.ndarray, hard: np.ndarray, settings: Bootstrap) -> score.Accuracies:
    """Accuracies of one experiment on objects that are so hard, each under all scenarios."""
    right = (rng.random((len(hard), *logit.shape)) < expit(logit - hard[:, None, None])).astype(float)
    weights, units = bootstrap.resampling_weights(keys(len(hard) // CLASSES), settings=settings)
    samples = np.einsum("ro,oms->rms", weights[:, units], right) / weights[:, units].sum(1)[:, None, None]
    return score.Accuracies(samples, ["a", "b", "c"], [*"abcdefg", score.UNSHIFTED], len(hard), settings.confidence)


def test_the_robustness_score_is_covered_though_noise_enlarges_its_variances():
    """Eight objects of each of eight classes, seven scenarios beside the originals. The truth by quadrature over the objects."""
    hits = []
    for number in range(200):
        rng, settings = np.random.default_rng([23, number]), Bootstrap(200, 0.95, number, OBJECTS)
        level, lost = rng.normal(0, 0.7, CLASSES), np.abs(rng.normal(0.6, 0.5, (3, 8)))
        lost[:, -1] = 0  # originals
        logits = [rng.normal(1.5, 0.5, (3, 1)) - part * lost for part in (1.0, 0.5)]
        hard = level.repeat(8) + rng.normal(0, 1, 64)
        ex1, ex2 = (accuracies(rng, own, hard, settings) for own in logits)
        table = score.scores(ex1, ex2, list("abcdefg")).query("convention == 'Eqs. 1 to 3'")
        cross, inner = ((expit(own[..., None, None] - level[:, None] - POINTS) @ WEIGHTS / WEIGHTS.sum()).mean(-1) for own in logits)
        true = 1 - sum(((own[:, :-1] - cross[:, -1:]) ** 2).mean(1) for own in (cross, inner))
        hits.append(np.mean((table["low"] <= true) & (true <= table["high"])))
    assert covers(pd.Series(hits)), np.mean(hits)


def test_slopes_and_r_are_covered_for_other_classifiers_of_the_kind():
    """23 classifiers whose accuracies are normal: the slope is 0.6, R is 0.6 / sqrt(0.6^2 + 0.5^2). Each of 400 shifts has its own."""
    rng, shifts = np.random.default_rng(24), 400
    start = rng.normal(0, 0.02, (shifts, 23))
    error = 0.5 - np.stack([start, 0.6 * start + rng.normal(0, 0.5 * 0.02, start.shape)], -1)
    samples, groups = np.broadcast_to(error, (3, *error.shape)), [f"shift {i}" for i in range(shifts)]
    found = line.slopes(line.points(Shares(samples, groups, np.full(shifts, 9), [f"m{i}" for i in range(23)], [0.0, 1.0], 0.95)))
    for true, low, high in ((0.6, "models_low", "models_high"), (0.6 / np.hypot(0.6, 0.5), "r_low", "r_high")):
        hits = found[low].le(true) & found[high].ge(true)
        assert covers(hits.astype(float)), (true, hits.mean())


def test_tau_and_places_on_two_benchmarks_are_covered_or_more_often():
    """Both count whole pairs and places. Truth: the errors by quadrature, in two worlds whose classifiers are partly the same."""
    hits = []
    for number in range(60):
        rng = np.random.default_rng([25, number])
        one, other = world(rng, models=8), world(rng, models=8)
        other.start[:] = one.start + rng.normal(0, 0.2, 8)
        pair = [
            accuracy.error_shares(answers(rng, own, seeds=40), settings=Bootstrap(200, 0.95, i, SAME)) for i, own in enumerate((one, other))
        ]
        means = [truth(own)[0][:-1, :, 1:].mean((0, 2)) for own in (one, other)]
        starts = [truth(own)[0][-1, :, 0] for own in (one, other)]
        tau = scipy.stats.kendalltau(*means).statistic, scipy.stats.kendalltau(*starts).statistic
        changes, places = ranking.rank_changes(*pair), np.subtract(*(scipy.stats.rankdata(own) for own in reversed(means)))
        held = np.mean((changes["low"] <= places) & (places <= changes["high"]))
        both = ranking.rank_agreement(*pair), ranking.unshifted_agreement(*pair)
        hits.append([held, *(inside(own, true) for own, true in zip(both, tau, strict=True))])
    assert all(covers(pd.Series(own, dtype=float), whole=True) for own in np.transpose(hits)), np.mean(hits, 0)
