import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests
from tiny_lines import ID, SCALES, array, between, catalog, reflections, scattered, shares

from cnslib.stats import line, papers, size
from cnslib.stats.bootstrap import ANYWHERE, RECORD

SNOW = "shift == 'heavy snow'"
FAMILIES = {"resnet": ["a", "b", "c"], "vit": ["d", "e"]}
PARAMETERS = {name: 1000 * 2**step for name, step in zip("abcdefgh", (0, 1, 2, 3, 5, 0, 2, 4), strict=True)}
DOUBLINGS = np.log2(list(PARAMETERS.values()))
EXACT = np.stack([ID, 0.1 + 0.8 * ID, 0.5 * ID], 1)


def test_an_exact_line_is_recovered_and_leaves_no_gain():
    found = line.points(shares(EXACT), catalog(ID))
    table = line.slopes(found)
    assert table["estimate"].tolist() == pytest.approx([1, 0.8, 0.5] * 2)
    assert table["intercept"].tolist() == pytest.approx([0, 0.1, 0] * 2, abs=1e-9)
    assert table["r"].tolist() == pytest.approx([1] * 6) and table["p"].max() < 1e-9
    assert np.abs(line.gain(found)).max() < 1e-12
    again = line.slopes(line.points(shares(EXACT)))  # ID accuracy at scale 0 of the same trajectories
    assert again["estimate"].tolist() == pytest.approx([0.8, 0.5] * 2) and again["scale"].tolist() == [0.5, 1.0] * 2


def test_slopes_intervals_r_and_p_are_those_of_statsmodels_and_scipy_and_holm_leaves_all_shifts_aside():
    for axes in line.AXES:
        found = scattered(3, axes=axes)
        table = line.slopes(found).set_index(["shift", "scale"])
        for scale, ood in zip(SCALES, found["y"][0, 0].T.to_numpy(), strict=True):
            row, x = table.loc[("heavy snow", scale)], found["x"][0, 0].to_numpy()
            result, other = sm.OLS(ood, sm.add_constant(x)).fit(), scipy.stats.linregress(x, ood)
            assert [row["intercept"], row["estimate"]] == pytest.approx(result.params) and row["p"] == pytest.approx(result.pvalues[1])
            assert [row["models_low"], row["models_high"]] == pytest.approx(result.conf_int(0.05)[1]) and row["models"] == 8
            half = norm.ppf(0.975) / np.sqrt(5)
            assert np.arctanh(row[["r_low", "r", "r_high"]].tolist()) == pytest.approx(
                np.arctanh(other.rvalue) + np.array([-half, 0, half])
            )
    for _, part in table.groupby("shift"):
        assert part["p_holm"].tolist() == pytest.approx(multipletests(part["p"], method="holm")[1])


def test_a_model_moved_off_the_line_by_a_tenth_gains_a_tenth_over_the_line_of_the_others():
    ood = EXACT.copy()
    ood[2] += 0.1
    errors, others = shares(ood), list("abdef")
    errors[:, 1] = 0.5  # a gain is the mean over the single shifts, not that of all images
    found = line.points(errors, catalog(ID))
    assert line.gain(found, others)[0, 0].sel(model="c").to_numpy() == pytest.approx([0.1] * 3)
    assert line.mean_gains(found, others)["estimate"].tolist() == pytest.approx([0, 0, 0.1, 0, 0, 0])
    weight = line.leverage(found).set_index("model")["leverage"]["c"]
    assert line.mean_gains(found)["estimate"][2] == pytest.approx(0.1 * (1 - weight))  # its own pull on the line


def test_normal_distributions_are_lines_on_probit_axes_where_gains_are_in_accuracy_and_certainty_moves_in_by_half_an_image():
    place = np.linspace(-0.5, 1.5, 6)
    found = line.points(shares(norm.cdf(np.stack([place, 0.7 * place - 0.4, place - 1], 1))), catalog(norm.cdf(place)), axes="probit")
    table = line.slopes(found).query(SNOW)
    assert table["estimate"].tolist() == pytest.approx([1, 0.7, 1]) and table["intercept"].tolist() == pytest.approx(
        [0, -0.4, -1], abs=1e-9
    )
    found = scattered(5, axes="probit")
    result = scipy.stats.linregress(found["x"][0, 0], found["y"][0, 0, :, 2])
    expected = found["ood"][0, 0, :, 2] - norm.cdf(result.intercept + result.slope * found["x"][0, 0])
    assert line.gain(found)[0, 0, :, 2].to_numpy() == pytest.approx(expected.to_numpy())
    certain = line.points(shares(np.array([[0.2, 0, 1], [0.5, 0.5, 0.5], [0.9, 0.9, 0.9]]), n=10), axes="probit")
    assert certain["y"][0, 0, 0].to_numpy() == pytest.approx(norm.ppf([0.05, 0.95]))


def test_one_family_left_out_is_the_fit_of_the_others_and_a_family_that_was_not_evaluated_is_passed_over():
    found = scattered(6)
    table = line.left_out(found, FAMILIES | {"clip": ["zero-shot"]}).query(f"{SNOW} and scale == 1").set_index("left_out")
    assert list(table.index) == ["all kept", "resnet", "vit", "f", "g", "h"] and table["models"].tolist() == [8, 5, 6, 7, 7, 7]
    x, y = found["id"][0, 0].to_numpy(), found["ood"][0, 0, :, 2].to_numpy()
    others, everyone = (scipy.stats.linregress(x[own], y[own]).slope for own in (slice(3, None), slice(None)))
    assert table.loc["resnet", "estimate"] == pytest.approx(others) and table.loc["all kept", "change_estimate"] == 0
    assert table.loc["resnet", "change_estimate"] == pytest.approx(others - everyone)


def test_leverage_is_the_hat_value_of_statsmodels_and_marks_the_far_point():
    start = np.array([0.1, 0.8, 0.82, 0.84, 0.86, 0.9])
    table = line.leverage(line.points(shares(np.stack([start] * 3, 1)), catalog(start, n=77)))
    hat = sm.OLS(start, sm.add_constant(start)).fit().get_influence().hat_matrix_diag
    assert table["leverage"].tolist() == pytest.approx(hat) and table["heavy"].tolist() == [True] + [False] * 5
    assert table["estimate"].tolist() == pytest.approx(start) and set(table["n"]) == {77}


def test_the_slope_grows_by_the_difference_between_last_and_first_scale_and_rising_lines_have_scipys_p_below_one_in_twenty():
    found = line.points(shares(np.stack([0.7 * ID, 0.8 * ID, ID - 0.1], 1)), catalog(ID))
    assert line.steeper(found) == {"n": 400, "estimate": pytest.approx(0.3), "low": pytest.approx(0.3), "high": pytest.approx(0.3)}
    start, bend = np.linspace(0.5, 0.9, 6), np.array([5, -1, -4, -4, -1, 5]) / 100  # a parabola is orthogonal to the line
    lines = [start - 0.1, *(0.3 * (start - 0.7) + width * bend + 0.5 for width in (0.74, 0.82)), 0.9 - 0.5 * start]
    p = [scipy.stats.linregress(start, own).pvalue for own in lines[1:]]
    assert 0.03 < p[0] < 0.05 < p[1] < 0.07 and p[2] < 0.01  # the last one falls
    assert line.followed(line.points(shares(np.stack(lines, 1), [0.0, 0.5, 1.0, 1.5]), catalog(start)))["estimate"] == pytest.approx(1 / 3)
    level, rising = np.tile([[0.5], [0.6]], (3, 3)), np.tile(ID[:, None], 3)
    assert line.followed(between((ID, level), (ID, rising))) == {"n": 400, "estimate": 0, "low": 0, "high": 0}  # reflected, not below 0


def test_noise_is_taken_from_each_moment_once_from_the_sample_and_twice_from_a_resample():
    """Squares about the mean 1, 0.5 and 2.3 times as large: noise adds 0.4 to the sample; the last resample has no variance left."""
    draws = 0.7 + np.sqrt([[1.0], [0.5], [2.3]]) * (ID - ID.mean())
    own = array(draws[..., None], [0.0], 400)
    found = line.points(own, own)
    xx, _, _ = line.moments(found["x"], found["y"])
    assert (line.without_noise(xx)[:, 0] / xx[0, 0]).to_numpy() == pytest.approx([0.6, -0.3, 1.5])
    row = line.noise_free(found).iloc[0]
    assert (row["estimate"], row["low"]) == pytest.approx((1, 1)) and np.isnan(row["high"])


def test_points_are_shown_in_accuracy_with_what_scipys_line_through_the_sample_expects():
    ood = np.stack([0.5 + 0.2 * np.sin(9 * ID), 0.8 * ID + 0.05 * np.cos(9 * ID), 0.5 * ID], 1)
    fitted = scipy.stats.linregress(ID, ood[:, 1])
    table = line.scatter(between((ID, ood), (1 - ID, ood[::-1])), shift="heavy snow", scale=0.5)
    assert table["expected"].tolist() == pytest.approx(fitted.intercept + fitted.slope * ID) and {*table.n, *table.scale} == {400, 0.5}
    assert table["ood"].tolist() == pytest.approx(ood[:, 1]) and table["id_low"].tolist() == pytest.approx(1 - ID)
    probit = line.scatter(line.points(shares(EXACT), catalog(ID), axes="probit"), shift="heavy snow", scale=0.5)
    for name, values in {"id": ID, "ood": EXACT[:, 1]}.items():
        for column in (name, f"{name}_low", f"{name}_high"):
            assert probit[column].tolist() == pytest.approx(values.tolist())


def test_models_of_one_accuracy_draw_no_line_and_break_nothing():
    found = line.points(shares(EXACT), catalog(np.full(6, 0.7)))
    table = line.slopes(found)
    assert table[["estimate", "low", "r", "p", "p_holm"]].isna().all(axis=None) and line.mean_gains(found)["estimate"].isna().all()
    level = line.slopes(line.points(shares(np.full((6, 3), 0.5)), catalog(ID)))
    assert level["estimate"].abs().max() < 1e-12 and level["r"].isna().all()


def everyone(table):
    return lambda found: table(found, size.sized(found, PARAMETERS, {"all": list("abcdefgh")}))


@pytest.mark.parametrize(
    ("table", "within"),
    [
        (line.slopes, ANYWHERE),
        (line.mean_gains, ANYWHERE),
        (lambda found: line.left_out(found, FAMILIES), ANYWHERE),
        (lambda found: line.left_out(found, FAMILIES).filter(like="change_").rename(columns=lambda name: name[7:]), ANYWHERE),
        (lambda found: pd.DataFrame([line.steeper(found)]), ANYWHERE),
        (everyone(size.partial), (-1, 1)),
        (everyone(size.per_doubling), ANYWHERE),
    ],
)
def test_an_interval_is_reflected_at_the_estimate(table, within):
    for bound, expected in reflections(table, within=within):
        assert bound.tolist() == pytest.approx(expected.tolist())


def points(start: np.ndarray, ood: np.ndarray):
    return line.points(shares(np.repeat(np.asarray(ood)[:, None], 3, 1)), catalog(start))


@pytest.mark.parametrize("families", [{"resnet": list("abcde")}, {"resnet": list("abcd"), "vit": list("efgh")}])
def test_partial_correlation_and_p_value_are_those_of_statsmodels_where_families_keep_a_level_each(families):
    rng = np.random.default_rng(1)
    found = line.points(shares(rng.uniform(0.3, 0.8, (8, 3))), catalog(rng.uniform(0.5, 0.9, 8)))
    (name, own), table = list(size.sized(found, PARAMETERS, families).items())[-1], None
    assert name == " + ".join(families) and own.index.tolist() == [m for members in families.values() for m in members]
    table = size.partial(found, {name: own})
    for at, scale in enumerate(SCALES):
        data = pd.DataFrame({"id": found["id"][0, 0], "ood": found["ood"][0, 0, :, at], "size": DOUBLINGS}, index=list("abcdefgh"))
        result = smf.ols("ood ~ size + id + C(family)", data.loc[own.index].assign(family=own["family"])).fit()
        t, row = result.tvalues["size"], table.query(f"{SNOW} and scale == {scale} and family == @name and models == {len(own)}").iloc[0]
        assert row["estimate"] == pytest.approx(t / np.sqrt(t**2 + result.df_resid)) and row["p"] == pytest.approx(result.pvalues["size"])
    for _, part in table.groupby("shift"):
        assert part["p_holm"].tolist() == pytest.approx(multipletests(part["p"], method="holm")[1])


def test_a_correlation_without_noise_is_that_of_the_residuals_of_all_shifts_and_scales_if_there_is_none():
    rng = np.random.default_rng(3)
    start, ood = rng.uniform(0.5, 0.9, 8), rng.uniform(0.3, 0.8, (8, 3))
    table = pd.DataFrame({"id": start, "size": DOUBLINGS, "half": ood[:, 1], "one": ood[:, 2]})
    left = {column: smf.ols(f"{column} ~ id", table).fit().resid for column in ("size", "half", "one")}
    expected = np.corrcoef(np.tile(left["size"], 2), np.concatenate([left["half"], left["one"]]))[0, 1]
    found = everyone(size.noise_free)(line.points(shares(ood), catalog(start)))  # the resamples are the sample
    assert found[["estimate", "low", "high"]].to_numpy().tolist() == [pytest.approx([expected] * 3)]


@pytest.mark.parametrize("effect", [0.01, -0.01])
def test_size_that_moves_accuracy_at_a_given_id_accuracy_correlates_fully_and_remains_above_the_line_of_the_others(effect):
    start = np.array([0.6, 0.6, 0.6, 0.6, 0.6, 0.3, 0.9, 0.5]) + 0.001 * np.cos(np.arange(8))
    ood = 0.1 + 0.5 * start + effect * DOUBLINGS * (np.arange(8) < 5)
    found = points(start, ood)
    families = size.sized(found, PARAMETERS, {"resnet": list("abcde")})
    for table in (size.partial(found, families), size.noise_free(found, families)):
        assert table[["estimate", "low", "high"]].to_numpy() == pytest.approx(np.sign(effect))
    slopes = size.per_doubling(found, families, list("fgh")).set_index("of")["estimate"].to_dict()
    assert slopes == pytest.approx({"OOD accuracy": np.polyfit(DOUBLINGS[:5], ood[:5], 1)[0], "gain": effect})


def test_equal_id_accuracies_or_no_family_of_several_sizes_leave_the_correlation_open():
    found = points(np.full(8, 0.7), np.linspace(0.4, 0.6, 8))
    assert everyone(size.partial)(found)[["estimate", "p"]].isna().all(axis=None)
    assert everyone(size.noise_free)(found)["estimate"].isna().all()
    families = size.sized(found, PARAMETERS, {"resnet": ["a", "b"]})
    assert families == {} and all(table(found, families).empty for table in (size.partial, size.noise_free, size.per_doubling))
    with pytest.raises(ValueError, match=r"weights of a, c is not known; known: b, d"):
        size.sized(found, {"b": 1, "d": 2}, {"resnet": list("abcd")})


def printed(**columns) -> pd.DataFrame:
    return pd.DataFrame({"accuracy": ID} | {float(name): values for name, values in columns.items()})


def test_published_slopes_and_r_have_the_intervals_of_statsmodels_and_scipy():
    ood = 0.3 * ID + 0.1 * np.cos(9 * ID)
    row = papers.fits(printed(**{"0.5": ood}), confidence=0.9).loc[0.5]
    fit = sm.OLS(ood, sm.add_constant(ID)).fit()
    close = scipy.stats.pearsonr(ID, ood)
    numbers = [fit.params[1], *fit.conf_int(0.1)[1], close.statistic, *close.confidence_interval(0.9)]
    assert row[["estimate", "models_low", "models_high", "r", "r_low", "r_high"]].tolist() == pytest.approx(numbers)


def test_both_sides_of_a_line_have_the_same_rows_in_the_same_order():
    theirs = papers.fits(printed(**{"0": 0.5 * ID, "0.5": ID, "9": ID}), confidence=0.95)
    found = scattered(3)
    own, beside = papers.sides(line.slopes(found), theirs)
    assert own.index.equals(beside.index) and own.index.tolist() == [("slope", 0), ("slope", 0.5), ("R", 0), ("R", 0.5)]
    assert own["n"].tolist() == [8] * 4 and beside.loc["slope", "published"].tolist() == pytest.approx([0.5, 1])
    assert own.loc["R", "ours"].tolist() == line.slopes(found).query("shift == 'all shifts'")["r"].tolist()[:2]


def test_claims_about_lines_are_our_records_beside_the_papers():
    found = {"linear": line.points(shares(np.stack([0.7 * ID, 0.8 * ID, ID - 0.1 + 0.3 * (ID == 0.5)], 1)), catalog(ID))}
    family = pd.DataFrame({"family": ["vit"], "n": [5], "estimate": [0.1], "low": [0.0], "high": [0.2]})
    table = papers.claims(found, family, None, {"convnext": "a", "deit": "b"})
    gains = line.mean_gains(found["linear"])["estimate"]
    assert table["estimate"].tolist() == pytest.approx([0.5, line.steeper(found["linear"])["estimate"], gains[0] - gains[1], 0.1])
    assert table["published"].tolist() == ["above 0.5", "above 0", "above 0", -0.358] and set(RECORD) <= set(table)
    assert table.index[2:].tolist() == ["gain of ConvNeXt minus that of DeiT", "partial correlation, vit"]
    assert len(papers.claims(found, family.head(0), None, {"convnext": "absent"})) == 2
