import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from tiny_answers import HAND, SCALES, errors, estimates, predictions, random_predictions
from tiny_settings import resampled

from cnslib.stats import accuracy, ranking
from cnslib.studies import corruptions

MANY = resampled(8000)


def test_ranks_of_three_trajectories_by_hand():
    table = ranking.ranks(errors(predictions(HAND)))
    assert estimates(table, shift=accuracy.ALL, model="resnet") == [1.5, 1.0, 1.0]
    assert estimates(table, shift=accuracy.ALL, model="alexnet") == [1.5, 2.0, 2.0]


def test_a_certain_flip_has_probability_one_and_a_tie_counts_one_half():
    words = {"alexnet": ["..x"] * 10, "resnet": ["xx."] * 10, "vit": ["..."] * 10}
    found = ranking.flips(errors(predictions(words))).set_index(["first", "second"])
    assert found["flipped"].tolist() == [True, False, False] and found["probability"].tolist() == [1, 0.5, 0.5]
    assert set(found["n"]) == {10} and (found["scale"] == 0).all() and (found["other_scale"] == 1).all()


def test_paired_p_values_are_near_an_exact_mcnemar_test():
    table = random_predictions(3, shifts=("heavy snow",), trajectories=200)
    p = ranking.pairs(errors(table)).set_index("scale")["p"]
    wide = table.assign(wrong=table["top1"] != table["class"]).pivot(index=["seed", "scale"], columns="model", values="wrong")
    for scale, part in wide.groupby("scale"):
        only_first = int((part["alexnet"] & ~part["resnet"]).sum())
        only_second = int((~part["alexnet"] & part["resnet"]).sum())
        assert p[scale] == pytest.approx(scipy.stats.binomtest(only_first, only_first + only_second).pvalue, abs=0.12)


def test_the_paired_difference_has_the_width_of_regression_with_cluster_robust_errors():
    table = random_predictions(4, trajectories=300).query("shift == 'heavy snow' or seed > 100")
    row = ranking.pairs(errors(table, MANY)).set_index("scale").loc[1.0]
    wide = (
        table.query("scale == 1")
        .assign(right=lambda t: (t["top1"] == t["class"]) * 1.0)
        .pivot(index=["shift", "seed"], columns="model", values="right")
    )
    gain = wide["alexnet"] - wide["resnet"]
    regression = sm.OLS(gain, np.ones(len(gain))).fit(cov_type="cluster", cov_kwds={"groups": gain.index.get_level_values("seed")})
    assert (row["n"], row["estimate"]) == (len(gain), pytest.approx(regression.params.iloc[0]))
    assert (row["high"] - row["low"]) / (2 * scipy.stats.norm.ppf(0.975)) == pytest.approx(regression.bse.iloc[0], rel=0.05)
    assert scipy.stats.norm.isf(row["p"] / 2) == pytest.approx(abs(regression.tvalues.iloc[0]), rel=0.05)


def test_the_p_values_of_one_scale_are_corrected_after_holm():
    """Three pairs: times 3, 2 and 1 from the smallest on, never falling and at most 1."""
    words = {"a": ["..x"] * 6 + ["..."] * 34, "b": ["..."] * 36 + ["..x"] * 4, "c": ["..."] * 20 + ["..x"] * 9 + ["..."] * 11}
    part = ranking.pairs(errors(predictions(words))).query("scale == 1").sort_values("p")
    assert 0.01 < part["p"].iloc[0] < 0.3
    assert part["p_holm"].tolist() == pytest.approx(np.maximum.accumulate(part["p"] * [3, 2, 1]).clip(upper=1).tolist())


def test_a_difference_of_a_single_unit_has_no_p_value_and_a_few_empty_resamples_change_none():
    values = np.array([0.1, 0.05, 0.15, np.nan])
    assert ranking.wald(values) == pytest.approx(ranking.wald(values[:-1]))
    assert np.isnan(ranking.wald(np.array([0.1, np.nan, np.nan])))


def test_agreement_is_the_kendall_tau_of_scipy():
    rng = np.random.default_rng(2)
    words = {f"model {i}": ["".join(".x"[int(v)] for v in row) for row in rng.random((50, 3)) < rng.random(3)] for i in range(5)}
    found = errors(predictions(words))
    accuracies = 1 - found.sel(resample=0, shift=accuracy.ALL).to_pandas()
    expected = [scipy.stats.kendalltau(accuracies[0.0], accuracies[scale]).statistic for scale in SCALES]
    agreed = ranking.agreement(found).query("shift == @accuracy.ALL").set_index("scale")["estimate"]
    assert agreed.to_dict() == pytest.approx(dict(zip(SCALES, expected, strict=True)))


def noisy(seed, items=9, resamples=40, noise=0.03):
    rng = np.random.default_rng(seed)
    first = rng.normal(0.5, 0.1, items)
    sample = np.stack([first, 0.7 * first + rng.normal(0, 0.05, items)], -1)
    return np.concatenate([sample[None], sample + rng.normal(0, noise, (resamples, items, 2))])


def test_shrunk_values_spread_as_the_truth_does_and_their_resamples_stay_where_they_lie():
    values = noisy(1, noise=0.01)
    found = ranking.shrunk(values)
    added = np.mean([np.cov(own.T) for own in values[1:] - values[0]], axis=0)
    assert np.allclose(np.cov(found[0].T), np.cov(values[0].T) - added)
    assert np.allclose(found[0].mean(0), values[0].mean(0)) and np.allclose(found[1:] - found[0], values[1:] - values[0])


def taus(values):
    return np.array([scipy.stats.kendalltau(*own.T).statistic for own in values])


@pytest.mark.parametrize(("seed", "resamples"), [(0, 40), (1, 40), (0, 3), (2, 3), (4, 3)])
def test_an_interval_of_tau_reaches_as_far_as_the_percentiles_and_as_the_shrunk_values_say(seed, resamples):
    values = noisy(seed, resamples=resamples)
    found, own, still = ranking.order_record(values[..., 0], values[..., 1], 7, 0.9), taus(values), taus(ranking.shrunk(values))
    plain, moved = (np.quantile(own_or, [0.05, 0.95], method="inverted_cdf") for own_or in (own[1:], still[1:] - still[0]))
    assert found["n"] == 7 and found["estimate"] == pytest.approx(own[0])
    assert found["low"] == pytest.approx(min(plain[0], max(own[0] - moved[1], -1), own[0]))
    assert found["high"] == pytest.approx(max(plain[1], min(own[0] - moved[0], 1), own[0]))


def test_the_p_value_of_a_reversal_is_the_larger_one_sided_one_of_the_normal_distribution():
    values = np.array([[0.2, 0.5], [0.4, 0.3]]) + np.concatenate([np.zeros((1, 2, 2)), np.random.default_rng(2).normal(0, 0.1, (99, 2, 2))])
    apart = values[..., 1] - values[..., 0]
    p = scipy.stats.norm.sf(np.abs(apart[0]) / apart[1:].std(0, ddof=1))
    assert corruptions.reversals(values, ["a", "b"])["p_holm"].tolist() == pytest.approx([p.max()]) and p.max() < 0.5


def test_a_reversal_needs_both_differences_for_sure():
    rng = np.random.default_rng(0)
    noise = np.concatenate([np.zeros((1, 2, 3)), rng.normal(0, 0.01, (400, 2, 3))])
    sure = np.array([[0.1, 0.5, 0.3], [0.5, 0.1, 0.497]])  # a and b change places, and b and c; a and c perhaps
    noise[1] = sure[0] - sure  # one resample in which nobody does
    table = corruptions.reversals(noise + sure, ["a", "b", "c"]).set_index(["first", "second"])["p_holm"]
    assert table["a", "b"] < 0.001 and table["b", "c"] < 0.001 and table["a", "c"] > 0.05
    assert corruptions.reversals(noise + sure[:1], ["a", "b", "c"])["p_holm"].min() == 1  # the same order twice


def test_common_severities_are_those_that_every_corruption_has():
    rows = [("unshifted", 0.0), ("contrast", 1.0), ("contrast", 1.5), ("contrast", 2.0), ("blur", 1.0), ("blur", 2.0)]
    table = pd.DataFrame(rows, columns=["shift", "scale"]).astype({"shift": "category"})
    assert corruptions.common(table)["scale"].tolist() == [0.0, 1.0, 2.0, 1.0, 2.0]


def test_pairs_told_apart_are_counted_scale_by_scale():
    words = {"alexnet": [".x."] + ["..x"] * 39, "resnet": ["..."] * 40}
    told = ranking.distinguished_pairs(errors(predictions(words)))
    assert told["pairs"].tolist() == [1, 1, 1] and told["one sigma (paper)"].tolist() == [0, 1, 1]
    assert told["paired"].tolist() == told["paired, Holm"].tolist() == [0, 0, 1]
