"""Size given ID accuracy: statsmodels and scipy on the same data, exact relations, simulated families."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.stats.multitest import multipletests
from tiny_lines import SCALES, SETTINGS, between, catalog, images, reflections, shares, simulated

from cnslib.stats import line, size
from cnslib.stats.accuracy import ALL, Shares
from cnslib.stats.bootstrap import percentiles, resampling_weights
from cnslib.stats.line import LEAST

MODELS = list("abcdefgh")
PARAMETERS = {name: 1000 * 2**step for name, step in zip(MODELS, (0, 1, 2, 3, 5, 0, 2, 4), strict=True)}
DOUBLINGS = np.log2([PARAMETERS[name] for name in MODELS])
FAMILY = {"resnet": list("abcde")}


def points(start: np.ndarray, ood: np.ndarray) -> line.Points:
    """Points of three scales with the same OOD accuracies."""
    return line.points(shares(np.repeat(np.asarray(ood)[:, None], len(SCALES), 1)), catalog(start))


def noisy(seed: int) -> line.Points:
    rng = np.random.default_rng(seed)
    start = 0.5 + 0.03 * DOUBLINGS + rng.normal(0, 0.05, 8)
    return points(start, 0.1 + 0.7 * start + rng.normal(0, 0.05, 8))


def test_partial_correlation_and_p_value_are_those_of_statsmodels_and_of_scipys_residuals():
    found = noisy(1)
    row = size.partial(found, size.sized(found, PARAMETERS, FAMILY)).iloc[0]
    table = pd.DataFrame({"id": found.id[0, 0, :, 0], "ood": found.ood[0, 0, :, 0], "size": DOUBLINGS})[:5]
    result = smf.ols("ood ~ size + id", table).fit()
    left = [smf.ols(f"{column} ~ id", table).fit().resid for column in ("size", "ood")]
    assert row["estimate"] == pytest.approx(scipy.stats.pearsonr(*left).statistic) and row["p"] == pytest.approx(result.pvalues["size"])
    assert row["low"] == pytest.approx(row["estimate"]) and row["models"] == 5  # the resamples are the sample


def test_families_together_keep_a_level_each():
    found, both = noisy(2), FAMILY | {"vit": list("fgh"), "clip": ["other"]}
    assert list(size.sized(found, PARAMETERS, both)) == ["resnet"]  # three sizes are too few
    together = {"both": size.members(found, PARAMETERS, [both["resnet"], both["vit"]])}
    row = size.partial(found, together).iloc[0]
    table = pd.DataFrame({"id": found.id[0, 0, :, 0], "ood": found.ood[0, 0, :, 0], "size": DOUBLINGS, "family": list("rrrrrvvv")})
    result = smf.ols("ood ~ size + id + C(family)", table).fit()
    t, freedom = result.tvalues["size"], result.df_resid
    assert row["estimate"] == pytest.approx(t / np.sqrt(t**2 + freedom)) and row["p"] == pytest.approx(result.pvalues["size"])
    assert row["low"] == pytest.approx(row["estimate"])  # the vectorised value of the resamples


def test_families_with_enough_sizes_are_also_taken_together():
    found = line.points(shares(np.tile(np.linspace(0.4, 0.9, 8)[:, None], 3)))
    names = {"resnet": list("abcd"), "vit": list("efgh")}
    assert {name: own.family.tolist() for name, own in size.sized(found, PARAMETERS, names).items()} == {
        "resnet": [0] * 4,
        "vit": [0] * 4,
        "resnet + vit": [0] * 4 + [1] * 4,
    }


@pytest.mark.parametrize("effect", [0.01, -0.01])
def test_size_that_moves_accuracy_at_a_given_id_accuracy_correlates_fully(effect):
    start = np.array([0.7, 0.5, 0.8, 0.6, 0.75, 0.4, 0.5, 0.6])
    found = points(start, 0.5 * start + effect * DOUBLINGS)
    families = size.sized(found, PARAMETERS, FAMILY)
    for table in (size.partial(found, families), size.pooled(found, families)):
        assert table[["estimate", "low", "high"]].to_numpy() == pytest.approx(np.sign(effect))
    assert set(size.partial(found, families)["shift"]) == {"heavy snow", ALL}


def test_the_advantage_of_size_vanishes_when_all_models_lie_on_the_line():
    start = 0.4 + 0.04 * DOUBLINGS
    found = points(start, 0.1 + 0.5 * start)
    table = size.per_doubling(found, size.sized(found, PARAMETERS, FAMILY)).set_index("of")["estimate"]
    assert table.to_dict() == {"OOD accuracy": pytest.approx(0.02), "gain": pytest.approx(0, abs=1e-9)}


def test_an_advantage_beside_the_line_remains():
    start = np.array([0.6, 0.6, 0.6, 0.6, 0.6, 0.3, 0.9, 0.5])
    ood = 0.1 + 0.5 * start + np.array([*(0.01 * DOUBLINGS[:5]), 0, 0, 0])
    drawn = np.arange(8) > 4  # the line of the others
    found = points(start, ood)
    table = size.per_doubling(found, size.sized(found, PARAMETERS, FAMILY), drawn).set_index("of")["estimate"]
    assert drawn.sum() == LEAST and table.tolist() == pytest.approx([0.01, 0.01])


def test_pooled_correlation_is_that_of_the_residuals_of_all_shifts_and_scales():
    rng = np.random.default_rng(3)
    start, ood = rng.uniform(0.5, 0.9, 8), rng.uniform(0.3, 0.8, (8, 3))
    found = line.points(shares(ood), catalog(start))
    own = {"all": size.members(found, PARAMETERS, [MODELS])}
    table = pd.DataFrame({"id": start, "size": DOUBLINGS, "half": ood[:, 1], "one": ood[:, 2]})
    left = {column: smf.ols(f"{column} ~ id", table).fit().resid for column in ("size", "half", "one")}
    expected = np.corrcoef(np.tile(left["size"], 2), np.concatenate([left["half"], left["one"]]))[0, 1]
    assert size.pooled(found, own)["estimate"].tolist() == pytest.approx([expected])


def test_without_noise_the_pooled_correlation_is_the_plain_one():
    found = noisy(4)  # its resamples are the sample
    families = size.sized(found, PARAMETERS, FAMILY)
    pd.testing.assert_frame_equal(size.noise_free(found, families), size.pooled(found, families))


def test_a_noisy_id_accuracy_hands_size_a_share_that_taking_out_the_noise_gives_back():
    ability, rows = np.linspace(1.0, 1.5, 6), []
    for seed in range(60):
        rng, samples = np.random.default_rng(seed), []
        for number, strength, draw in ((1500, ability - 1, 1), (150, ability, 2)):  # few catalog images
            difficulty = rng.normal(0, 0.75, (number, 1)) + rng.normal(0, 0.66, (number, 6))
            weights = resampling_weights(images(number), settings=replace(SETTINGS.bootstrap, seed=draw))[0]
            samples.append(np.repeat((weights @ (difficulty > strength) / weights.sum(1, keepdims=True))[:, None, :, None], 2, 1))
        names, n = list("abcdef"), np.array([1500, 1500])
        errors, start = (Shares(sample, ["heavy snow", ALL], n, names, [0.5 * (i == 0)], 0.95) for i, sample in enumerate(samples))
        found = line.points(errors, start, axes="probit")  # OOD accuracy is a function of ID accuracy alone, straight on these axes
        families = {"all": size.members(found, PARAMETERS, [names])}
        rows.append([table.iloc[0]["low"] > 0 for table in (size.pooled(found, families), size.noise_free(found, families))])
    plain, free = np.mean(rows, 0)
    assert plain > 0.1 > 0.06 >= free


def test_the_interval_over_images_holds_the_partial_correlation_of_each_resample():
    errors, start, _, _ = simulated(np.random.default_rng(5), models=8)
    found = line.points(errors, start)
    own = size.members(found, dict(zip(errors.models, 1000 * 2 ** np.arange(8), strict=True)), [errors.models])
    row, values = size.partial(found, {"all": own}).iloc[0], []
    for resample in range(1, 201):
        design = sm.add_constant(np.column_stack([found.id[resample, 0, :, 0], np.arange(8)]))
        t = sm.OLS(found.ood[resample, 0, :, 0], design).fit().tvalues[2]
        values.append(t / np.sqrt(t**2 + 5))
    low, high = percentiles(np.array(values), 0.95)
    turned = min(2 * row["estimate"] - high, row["estimate"]), max(2 * row["estimate"] - low, row["estimate"])
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.clip(turned, -1, 1)))


def test_equal_id_accuracies_leave_the_partial_correlation_open():
    found = points(np.full(8, 0.7), np.linspace(0.4, 0.6, 8))
    families = size.sized(found, PARAMETERS, FAMILY)
    assert size.partial(found, families)[["estimate", "p"]].isna().all(axis=None)
    assert pd.concat([size.pooled(found, families), size.noise_free(found, families)])["estimate"].isna().all()


def test_without_families_of_several_sizes_the_tables_are_empty():
    found = noisy(1)
    families = size.sized(found, PARAMETERS, {"resnet": ["a", "b"]})
    assert families == {} and not len(size.pooled(found, families)) and not len(size.per_doubling(found, families))
    assert not len(size.partial(found, families))


@pytest.mark.parametrize("names", [{"resnet": list("abcd"), "vit": list("efgh")}, {}])
def test_the_tables_have_their_columns_with_and_without_families(names):
    found, record = noisy(1), ["n", "estimate", "low", "high"]
    families = size.sized(found, PARAMETERS, names)
    assert list(size.pooled(found, families)) == list(size.noise_free(found, families)) == ["family", "models", *record]
    assert list(size.per_doubling(found, families)) == ["family", "models", "of", *record]
    partial = size.partial(found, families)
    assert list(partial) == ["shift", "family", "scale", *record, "models", "p", "p_holm"]
    assert partial.index.tolist() == list(range(len(partial)))


def test_the_correction_runs_over_the_shifts_and_scales_of_a_family_and_leaves_all_shifts_aside():
    rng = np.random.default_rng(3)
    found = line.points(shares(rng.uniform(0.3, 0.8, (8, 3))), catalog(rng.uniform(0.5, 0.9, 8)))
    table = size.partial(found, size.sized(found, PARAMETERS, {"resnet": list("abcd"), "vit": list("efgh")}))
    assert table[["estimate", "p", "p_holm"]].dtypes.tolist() == [float] * 3
    for _, part in table.groupby(["family", "shift"]):
        assert part["p_holm"].tolist() == pytest.approx(multipletests(part["p"], method="holm")[1].tolist())


def test_a_member_of_unknown_size_is_named_with_those_that_are_known():
    with pytest.raises(ValueError, match="number of weights of b, e is not known; known: a, c, d"):
        size.sized(noisy(1), {name: PARAMETERS[name] for name in "acd"}, FAMILY)


@pytest.mark.parametrize("table", [size.partial, size.pooled, size.per_doubling])
def test_an_interval_is_reflected_at_the_estimate(table):
    index = size.members(noisy(1), PARAMETERS, [MODELS])
    within = (-np.inf, np.inf) if table is size.per_doubling else (-1, 1)
    for bound, expected in reflections(lambda found: table(found, {"all": index}), within=within):
        assert bound.tolist() == pytest.approx(expected.tolist())


def test_no_bound_of_a_correlation_without_noise_lies_beyond_one():
    """These resamples, without their noise, reach 1.17."""
    rng = np.random.default_rng(4)
    found = between(*((rng.uniform(0.3, 0.8, 8), rng.uniform(0.3, 0.8, (8, 3))) for _ in range(2)))
    row = size.noise_free(found, {"all": size.members(found, PARAMETERS, [MODELS])}).iloc[0]
    assert -1 <= row["low"] < row["estimate"] <= row["high"] <= 1
