"""Accuracy on the line: exact lines, statsmodels and scipy on the same data, a hand-made Holm correction, simulated coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from scipy.stats import norm
from tiny_lines import FAMILIES, SCALES, SETTINGS, between, catalog, reflections, scattered, shares, simulated

from cnslib.stats import accuracy, line

ID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.9])


def test_an_exact_line_is_recovered_and_leaves_no_gain():
    found = line.points(shares(np.stack([ID, 0.1 + 0.8 * ID, 0.5 * ID], 1)), catalog(ID))
    table = line.slopes(found)
    assert table["estimate"].tolist() == pytest.approx([1, 0.8, 0.5] * 2)
    assert table["intercept"].tolist() == pytest.approx([0, 0.1, 0] * 2, abs=1e-9)
    assert table["r"].tolist() == pytest.approx([1] * 6) and table["p"].max() < 1e-9
    assert np.abs(line.gains(found)[["estimate", "low", "high"]]).to_numpy().max() < 1e-12


def test_slopes_intervals_r_and_p_are_those_of_statsmodels_and_scipy():
    for axes in line.AXES:
        found = scattered(3, axes=axes)
        table = line.slopes(found).set_index(["shift", "scale"])
        for scale, ood in zip(SCALES, found.y[0, 0].T, strict=True):
            row, x = table.loc[("heavy snow", scale)], found.x[0, 0, :, 0]
            result, other = sm.OLS(ood, sm.add_constant(x)).fit(), scipy.stats.linregress(x, ood)
            assert [row["intercept"], row["estimate"]] == pytest.approx(result.params) and row["p"] == pytest.approx(result.pvalues[1])
            assert [row["models_low"], row["models_high"]] == pytest.approx(result.conf_int(0.05)[1])
            assert row["r"] == pytest.approx(other.rvalue) and row["r_low"] < row["r"] < row["r_high"]


def test_every_resample_has_its_own_line():
    errors, start, _, _ = simulated(np.random.default_rng(2))
    found = line.points(errors, start)
    slope, intercept = line.fit(found)
    for resample in (1, 7, 200):
        result = scipy.stats.linregress(found.id[resample, 0, :, 0], found.ood[resample, 0, :, 0])
        assert (slope[resample, 0, 0], intercept[resample, 0, 0]) == pytest.approx((result.slope, result.intercept))


def test_a_model_moved_off_the_line_by_a_tenth_gains_a_tenth_over_the_line_of_the_others():
    ood = np.stack([ID, 0.8 * ID, 0.5 * ID], 1)
    ood[2] += 0.1
    found = line.points(shares(ood), catalog(ID))
    drawn = np.array([True, True, False, True, True, True])
    table = line.gains(found, drawn).query("shift == 'heavy snow'").pivot(index="model", columns="scale", values="estimate")
    assert table.loc["c"].tolist() == pytest.approx([0.1] * 3) and table.drop("c").abs().max(axis=None) < 1e-12
    assert line.mean_gains(found, drawn)["estimate"].tolist() == pytest.approx([0, 0, 0.1, 0, 0, 0])
    weight = line.leverage(found).set_index("model")["leverage"]["c"]
    assert line.mean_gains(found)["estimate"][2] == pytest.approx(0.1 * (1 - weight))  # its own pull on the line


def test_normal_distributions_are_lines_on_probit_axes():
    position = np.linspace(-0.5, 1.5, 6)
    shifted = norm.cdf(np.stack([position, 0.7 * position - 0.4, position - 1], 1))
    found = line.points(shares(shifted), catalog(norm.cdf(position)), axes="probit")
    table = line.slopes(found).query("shift == 'heavy snow'")
    assert table["estimate"].tolist() == pytest.approx([1, 0.7, 1])
    assert table["intercept"].tolist() == pytest.approx([0, -0.4, -1], abs=1e-9)
    assert line.gains(found)["estimate"].abs().max() < 1e-9


def test_probit_axes_move_certain_answers_in_by_half_an_image():
    found = line.points(shares(np.array([[0.2, 0, 1], [0.5, 0.5, 0.5], [0.9, 0.9, 0.9]]), n=10), axes="probit")
    assert found.y[0, 0, 0].tolist() == pytest.approx(norm.ppf([0.05, 0.95])) and found.scales == [0.5, 1.0]


def test_a_gain_on_probit_axes_is_in_accuracy():
    found = scattered(5, axes="probit")
    result = scipy.stats.linregress(found.x[0, 0, :, 0], found.y[0, 0, :, 2])
    expected = found.ood[0, 0, :, 2] - norm.cdf(result.intercept + result.slope * found.x[0, 0, :, 0])
    assert line.gains(found).query("shift == 'heavy snow' and scale == 1")["estimate"].tolist() == pytest.approx(expected)


def test_scale_0_of_the_same_trajectories_is_the_other_id_accuracy():
    accuracy = np.stack([ID, 0.8 * ID, 0.5 * ID], 1)
    assert line.slopes(line.points(shares(accuracy)))["estimate"].tolist() == pytest.approx([0.8, 0.5] * 2)


def test_holm_on_three_p_values_by_hand():
    assert line.holm(pd.Series([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])  # x 1, x 3, x 2, never falling
    assert line.holm(pd.Series([0.02, np.nan])).tolist() == pytest.approx([0.02, np.nan], nan_ok=True)


def test_the_correction_runs_over_shifts_and_scales_and_leaves_all_shifts_aside():
    errors = shares(np.stack([ID, 0.8 * ID + 0.05 * np.cos(9 * ID), 0.5 * ID + 0.1 * np.sin(20 * ID)], 1))
    table = line.slopes(line.points(errors, catalog(ID)))
    for _, part in table.groupby("shift"):
        assert part["p_holm"].tolist() == pytest.approx(line.holm(part["p"]))


def test_the_order_of_the_models_does_not_matter():
    found, turned = scattered(4), np.array([5, 2, 7, 0, 1, 6, 4, 3])
    accuracy, start = found.ood[0, 0], found.id[0, 0, :, 0]
    other = line.points(shares(accuracy[turned]), catalog(start[turned]))
    pd.testing.assert_frame_equal(line.slopes(found), line.slopes(other))
    assert line.mean_gains(found)["estimate"].to_numpy()[turned] == pytest.approx(line.mean_gains(other)["estimate"].to_numpy())


def test_one_family_left_out_is_the_fit_of_the_others():
    found = scattered(6)
    table = line.left_out(found, FAMILIES).query("shift == 'heavy snow' and scale == 1").set_index("left_out")
    assert list(table.index) == [line.NONE, "resnet", "vit", "f", "g", "h"] and table["models"].tolist() == [8, 5, 6, 7, 7, 7]
    others = scipy.stats.linregress(found.id[0, 0, 3:, 0], found.ood[0, 0, 3:, 2]).slope
    everyone = scipy.stats.linregress(found.id[0, 0, :, 0], found.ood[0, 0, :, 2]).slope
    assert table.loc["resnet", "estimate"] == pytest.approx(others) and table.loc[line.NONE, "estimate"] == pytest.approx(everyone)
    assert table.loc["resnet", "change_estimate"] == pytest.approx(others - everyone) and table.loc[line.NONE, "change_estimate"] == 0


def test_a_family_of_which_nothing_was_evaluated_is_passed_over():
    found = scattered(6)
    assert line.left_out(found, FAMILIES).index.tolist() == list(range(36))
    assert set(line.left_out(found, FAMILIES | {"clip": ["zero-shot"]})["left_out"]) == set(line.left_out(found, FAMILIES)["left_out"])


def test_leverage_is_the_hat_value_of_statsmodels_and_marks_the_far_point():
    start = np.array([0.1, 0.8, 0.82, 0.84, 0.86, 0.9])
    table = line.leverage(line.points(shares(np.stack([start] * 3, 1)), catalog(start, n=77)))
    hat = sm.OLS(start, sm.add_constant(start)).fit().get_influence().hat_matrix_diag
    assert table["leverage"].tolist() == pytest.approx(hat) and table["heavy"].tolist() == [True] + [False] * 5
    assert table["estimate"].tolist() == pytest.approx(start) and set(table["n"]) == {77}


def test_the_slope_grows_by_the_difference_between_last_and_first_scale():
    found = line.points(shares(np.stack([0.7 * ID, 0.8 * ID, ID - 0.1], 1)), catalog(ID))
    assert line.steeper(found) == {"n": 400, "estimate": pytest.approx(0.3), "low": pytest.approx(0.3), "high": pytest.approx(0.3)}


def test_the_share_of_rising_lines_counts_p_values_of_scipy_and_no_falling_line():
    rng = np.random.default_rng(0)
    start = rng.uniform(0.4, 0.9, 8)
    ood = np.stack([start, 0.9 - 0.5 * start, 0.5 + rng.normal(0, 0.1, 8), start], 1)
    found = line.points(shares(ood, [0.0, 0.5, 1.0, 1.5]), catalog(start))
    tests = [scipy.stats.linregress(start, column) for column in ood.T[1:]]
    assert line.followed(found)["estimate"] == pytest.approx(np.mean([t.pvalue < 0.05 and t.slope > 0 for t in tests]))


def test_a_line_rises_from_the_p_value_of_scipy_on_and_not_from_a_stricter_one():
    """Two lines of six models with p just below 0.05 and just above."""
    start, bend = np.linspace(0.5, 0.9, 6), np.array([5, -1, -4, -4, -1, 5]) / 100  # a parabola is orthogonal to the line
    lines = [start - 0.1, *(0.3 * (start - 0.7) + width * bend + 0.5 for width in (0.74, 0.82))]
    p = [scipy.stats.linregress(start, own).pvalue for own in lines[1:]]
    assert 0.03 < p[0] < 0.05 < p[1] < 0.07
    assert line.followed(line.points(shares(np.stack(lines, 1)), catalog(start)))["estimate"] == 0.5


def test_noise_is_taken_from_each_moment_by_itself_once_from_the_sample_and_twice_from_a_resample():
    assert line.without_noise(np.array([[1.0, 10.0], [2.0, 12.0], [2.0, 14.0]])).tolist() == [[0, 7], [0, 6], [0, 8]]


def test_a_bound_that_lies_among_resamples_without_variance_is_not_known():
    """Squares about the mean 1, 0.5 and 2.3 times as large: noise adds 0.4, once to the sample and twice to a resample, and leaves -0.3."""
    draws = 0.7 + np.sqrt([[1.0], [0.5], [2.3]]) * (ID - ID.mean())
    own = replace(catalog(ID), samples=1 - draws[:, None, :, None].repeat(2, 1))
    row = line.noise_free(line.points(own, own)).iloc[0]
    assert (row["estimate"], row["low"]) == pytest.approx((1, 1)) and np.isnan(row["high"])


def test_means_run_over_the_single_shifts_and_the_scales_above_0_where_there_are_several():
    found = scattered(1)
    values = np.arange(6.0).reshape(1, 2, 1, 3)
    assert line.above(values, found).tolist() == [[[[1, 2]]]]
    assert line.above(values[:, :1], found).tolist() == [[[[1, 2]]]]
    assert line.above(values[..., :1], found).tolist() == [[[[0]]]]


@pytest.mark.parametrize("axes", line.AXES)
def test_points_are_shown_in_accuracy_on_either_axes(axes):
    ood = np.stack([ID, 0.8 * ID, 0.5 * ID], 1)
    table = line.scatter(line.points(shares(ood), catalog(ID), axes=axes), shift="heavy snow", scale=0.5)
    for name, values in {"id": ID, "ood": 0.8 * ID}.items():
        for column in (name, f"{name}_low", f"{name}_high"):
            assert table[column].tolist() == pytest.approx(values.tolist())


def test_the_line_expects_of_a_model_what_scipys_line_through_the_sample_says():
    """Neither the resamples, nor another shift or scale, has a say in it."""
    ood = np.stack([0.5 + 0.2 * np.sin(9 * ID), 0.8 * ID + 0.05 * np.cos(9 * ID), 0.5 * ID], 1)
    fitted = scipy.stats.linregress(ID, ood[:, 1])
    table = line.scatter(between((ID, ood), (1 - ID, ood[::-1])), shift="heavy snow", scale=0.5)
    assert table["expected"].tolist() == pytest.approx((fitted.intercept + fitted.slope * ID).tolist())
    assert table["ood"].tolist() == pytest.approx(ood[:, 1].tolist()) and set(table["n"]) == {400} and set(table["axes"]) == {"linear"}


def change(found: line.Points) -> pd.DataFrame:
    """How a slope changes without a family."""
    return line.left_out(found, FAMILIES).filter(like="change_").rename(columns=lambda name: name.removeprefix("change_"))


@pytest.mark.parametrize(
    ("table", "within"),
    [
        (line.slopes, line.ANYWHERE),
        (line.gains, line.ANYWHERE),
        (line.mean_gains, line.ANYWHERE),
        (lambda found: line.left_out(found, FAMILIES), line.ANYWHERE),
        (change, line.ANYWHERE),
        (lambda found: pd.DataFrame([line.steeper(found)]), line.ANYWHERE),
        (lambda found: pd.DataFrame([line.gain_difference(found, "a", "c")]), line.ANYWHERE),
    ],
)
def test_an_interval_is_reflected_at_the_estimate(table, within):
    for bound, expected in reflections(table, within=within):
        assert bound.tolist() == pytest.approx(expected.tolist())


def test_the_interval_of_the_share_of_rising_lines_is_reflected_and_not_below_zero():
    """No line rises in the sample and every one in the resamples."""
    level, rising = np.tile([[0.5], [0.6]], (3, 3)), np.tile(ID[:, None], 3)
    assert line.followed(between((ID, level), (ID, rising))) == {"n": 400, "estimate": 0, "low": 0, "high": 0}


def test_models_of_one_accuracy_draw_no_line_and_break_nothing():
    found = line.points(shares(np.stack([ID, 0.8 * ID, 0.5 * ID], 1)), catalog(np.full(6, 0.7)))
    table = line.slopes(found)
    assert table[["estimate", "low", "r", "p", "p_holm"]].isna().all(axis=None) and line.mean_gains(found)["estimate"].isna().all()
    level = line.slopes(line.points(shares(np.full((6, 3), 0.5)), catalog(ID)))
    assert level["estimate"].abs().max() < 1e-12 and level["r"].isna().all()


def test_intervals_of_slope_and_gain_and_the_noise_free_r_cover_the_truth():
    hits = []
    for seed in range(100):
        errors, start, clean, shifted = simulated(np.random.default_rng(seed))
        found = line.points(errors, start)
        truth = scipy.stats.linregress(clean, shifted)
        gain = shifted - truth.intercept - truth.slope * clean
        table = pd.concat([line.slopes(found)[:1], line.noise_free(found)[:1], line.gains(found)[:12]])
        values = np.array([truth.slope, truth.rvalue, *gain])
        hits.append((table["low"] <= values) & (values <= table["high"]))
    covered = np.mean(hits, 0)
    assert covered[:2].min() > 0.87 and 0.9 < covered[2:].mean() < 0.98


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: line.points(shares(np.full((6, 3), 0.5)), catalog(ID), axes="logit"), "axes: 'logit'.*linear, probit"),
        (lambda: line.points(shares(np.full((2, 3), 0.5))), "at least 3 models"),
        (lambda: line.points(shares(np.full((5, 3), 0.5)), catalog(ID)), "models of the catalog"),
        (lambda: line.fit(scattered(1), np.arange(8) < 2), "at least 3"),
    ],
)
def test_one_clear_error_names_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_panels_are_both_ends_of_all_shifts_and_the_largest_and_smallest_r_of_well_filled_shifts():
    rows = [
        ("all shifts", 0.0, 300, 0.1),
        ("all shifts", 2.5, 300, 0.2),
        ("fog", 2.5, 100, 0.9),
        ("mist", 2.5, 80, 0.3),
        ("snow", 2.5, 90, -0.3),
        ("rain", 2.5, 9, 1.0),
    ]
    table = pd.DataFrame(rows, columns=["shift", "scale", "n", "r"])
    assert list(line.exemplars(table)) == [("all shifts", 0), ("all shifts", 2.5), ("fog", 2.5), ("snow", 2.5)]
    assert line.exemplars(table)["fog", 2.5] == "fog, scale 2.5"
    assert ("rain", 2.5) in line.exemplars(table[~table["shift"].isin(["snow", "mist"])])  # one alone is not enough


def test_both_lines_on_all_axes_and_the_lines_without_dependent_models():
    found = {axes: scattered(5, axes=axes) for axes in line.AXES}
    supervised = np.arange(8) > 1
    table = line.gains_by_line(found, supervised)
    own = table[(table["line"] == line.LINES[1]) & (table["axes"] == "probit")]["estimate"]
    assert len(table) == 32 and own.tolist() == line.mean_gains(found["probit"], supervised)["estimate"].tolist()
    alone = line.slopes_by_members(found["linear"], supervised)
    assert (
        set(alone["shift"]) == {accuracy.ALL}
        and alone["models"].tolist() == [8, 6, 8, 6]
        and [key[1] for key in alone.index[:2]]
        == [
            "all classifiers",
            "without 2 of the generator's pool",
        ]
    )
    assert list(alone) == [name for name in line.slopes(found["linear"]) if name != "scale"]
    points = line.scatters(found, [("heavy snow", 0.5), ("heavy snow", 1.0)])
    sides = [f"{side}{end}" for side in ("id", "ood") for end in ("", "_low", "_high")]
    assert len(points) == 32 and list(points) == ["shift", "scale", "axes", "model", "n", *sides, "expected"]


def test_the_catalog_is_drawn_apart_from_the_benchmark(tmp_path):
    pd.DataFrame({"model": ["a", "b"], "n": 200, "accuracy": [0.5, 0.9]}).to_csv(tmp_path / "heldout.csv", index=False)
    apart = line.catalog_shares(tmp_path, settings=SETTINGS.bootstrap)
    other = accuracy.shares(tmp_path, settings=SETTINGS.bootstrap)
    assert apart.samples[0, 0, :, 0].tolist() == pytest.approx([0.5, 0.1]) and not np.array_equal(apart.samples, other.samples)
