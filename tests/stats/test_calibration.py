import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xarray as xr
from sklearn.isotonic import IsotonicRegression
from tiny_answers import SCALES, predictions
from tiny_settings import resampled

from cnslib.stats import accuracy, bootstrap, calibration

SETTINGS = resampled(200)
SIX = np.arange(6) / 2


def table_of(rows: dict[str, list[list[float]]], scales=SCALES, ruler: str = "oracle") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"shift": shift, "class": "bag", "seed": seed, "scale": float(scale), ruler: value}
            for shift, own in rows.items()
            for seed, values in enumerate(own, start=1)
            for scale, value in zip(scales, values, strict=True)
        ]
    )


def random_table(seed: int, *, trajectories: int = 20, scales=SIX) -> pd.DataFrame:
    rng, line = np.random.default_rng(seed), np.asarray(scales) * 0.1
    return table_of({shift: (line + rng.normal(0, 0.2, (trajectories, len(line)))).tolist() for shift in ("fog", "snow")}, scales)


def means_of(table: pd.DataFrame, rulers: tuple[str, ...] = ("oracle",)) -> xr.DataArray:
    return accuracy.by_shift(calibration.readings(table, list(rulers)), SETTINGS)


def maps_of(table: pd.DataFrame, rulers: tuple[str, ...] = ("oracle",)) -> xr.DataArray:
    return calibration.monotone_maps(means_of(table, rulers))


def errors_of(words: dict[str, dict[str, list[str]]]) -> xr.DataArray:
    answers = pd.concat([predictions(own, shift) for shift, own in words.items()])
    return accuracy.by_shift(accuracy.wrong_predictions(answers), SETTINGS)


def all_rise(maps: xr.DataArray) -> xr.DataArray:
    return maps.isel(resample=0, scale=0, drop=True).notnull()


def test_readings_stand_by_trajectory_in_order_and_a_missing_scale_is_an_error():
    table = table_of({"snow": [[0, 1, 2]], "fog": [[3, 4, 5], [6, 7, 8]]})
    found = calibration.readings(table.sample(frac=1, random_state=0), ["oracle"])
    assert found[:, 0].to_numpy().tolist() == [[3, 4, 5], [6, 7, 8], [0, 1, 2]] and found["seed"].to_numpy().tolist() == [1, 2, 1]
    with pytest.raises(ValueError, match="8 rows, one for each of 3 trajectories and 3 scales"):
        calibration.readings(table.drop(index=4), ["oracle"])


def test_the_inverse_of_a_map_is_the_smallest_scale_that_shows_a_severity_and_none_beyond_its_ends():
    lines = np.array([SIX, [0, 0.2, 0.2, 0.2, 0.6, 0.6], [0.1, 0.1, 0.1, 0.1, 0.5, 0.9]])
    wanted = np.array([[0, 0.3, 2.5, 2.6], [0.2, 0.4, 0.6, -0.1], [0.1, 0.3, 0.9, 1.0]])
    scales = calibration.read(np.tile(SIX, (3, 1)), calibration.position(lines, wanted))
    assert scales == pytest.approx(np.array([[0, 0.3, 2.5, np.nan], [0.5, 1.75, 2, np.nan], [0, 1.75, 2.5, np.nan]]), nan_ok=True)


def test_maps_are_the_direct_fits_of_scikit_learn_to_the_means_and_to_weighted_means():
    hand = maps_of(table_of({"snow": [[0, 3, 1]], "fog": [[2, 1, 0]]}))
    assert hand["shift"].to_numpy().tolist() == ["fog", "snow"] and hand[0, :, 0].to_numpy().tolist() == [[1, 1, 1], [0, 2, 2]]
    table = random_table(2, trajectories=6)
    found, (weights, units) = maps_of(table), bootstrap.resampling_weights(table, settings=SETTINGS)
    for draw in (0, 1, 17, 200):
        snow = table.assign(weight=weights[draw, units]).query("shift == 'snow'")
        means = snow.groupby("scale").apply(lambda part: np.average(part["oracle"], weights=part["weight"]), include_groups=False)
        assert found[draw, 1, 0].to_numpy() == pytest.approx(IsotonicRegression().fit_transform(means.index, means))


def test_rising_steps_are_counted_by_hand():
    table = table_of({"snow": [[0.1, 0.2, 0.3], [0.1, 0.0, 0.3], [0.2, 0.2, 0.1], [0.0, 0.1, 0.1]]})
    found = calibration.readings(table, ["oracle"])
    row = calibration.rising(found, settings=SETTINGS).query("shift == 'snow'").iloc[0]
    assert (row["estimate"], row["n"]) == (4 / 8, 4) and row["low"] < 0.5 < row["high"]
    assert calibration.rising(found[..., 1:], settings=SETTINGS)["estimate"].tolist() == [2 / 4] * 2


def test_correlations_are_those_of_scipy_and_their_resamples_those_of_weighted_rows():
    table = random_table(3, trajectories=8).query("shift == 'snow'").reset_index(drop=True)
    found = calibration.correlations(calibration.readings(table, ["oracle"]), settings=SETTINGS).set_index("measure")
    scipys = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}
    weights, units = bootstrap.resampling_weights(table, settings=SETTINGS)
    drawn = {name: [] for name in scipys}
    for row in np.rint(weights[1:, units] * 100).astype(int):  # a weighted row as so many rows
        repeated = table.loc[table.index.repeat(row)]
        for name, function in scipys.items():
            drawn[name].append(function(repeated["scale"], repeated["oracle"]).statistic)
    for name, function in scipys.items():
        own = function(table["scale"], table["oracle"]).statistic
        low, high = map(float, bootstrap.percentiles(np.array(drawn[name]), 0.95))
        joined = [own, min(low, 2 * own - high), max(high, min(2 * own - low, 1))]  # percentiles, and their reflection at the estimate
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == pytest.approx(joined, abs=0.01) and found.loc[name, "n"] == 8


def test_the_share_of_the_rise_by_hand_and_none_where_the_rise_is_not_certain():
    means = means_of(table_of({"snow": [[0.2, 0.3, 0.6]] * 2, "fog": [[0.2, 0.3, 0.2], [0.2, 0.2, 0.3]]}))
    rises = calibration.moving(means)
    assert rises["shift"].to_numpy().tolist() == ["fog", "snow"] and rises.to_numpy().tolist() == [[False], [True]]
    done = accuracy.interval(calibration.progress(calibration.monotone_maps(means), rises)).set_index("shift")["estimate"]
    assert done["snow"].tolist() == pytest.approx([0, 0.25, 1]) and done["fog"].isna().all()


def test_the_mean_over_an_axis_is_numpys_area_under_the_curve_and_a_flat_map_has_none():
    words = {"vit": ["..x"] * 5 + [".xx"] * 5, "mixer": ["x.."] * 4 + ["..."] * 6}
    errors, maps = errors_of(dict.fromkeys(("fog", "snow"), words)), maps_of(random_table(4, trajectories=10, scales=SCALES))
    along = calibration.over_axis(errors, maps).transpose("resample", "shift", "ruler", "model")
    draw = int(np.argmax(np.ptp(maps[:, 1, 0].to_numpy(), axis=-1)))
    x, y = maps[draw, 1, 0].to_numpy(), 1 - errors[draw, 1].to_numpy()
    assert along[draw, 1, 0].to_numpy() == pytest.approx(np.trapezoid(y, x) / (x[-1] - x[0]))
    level = maps_of(table_of({"snow": [[0.3, 0.3, 0.3]] * 10, "fog": [[0.1, 0.2, 0.3]] * 10}))
    flat = calibration.over_axis(errors, level).sel(ruler="oracle")
    assert flat.sel(shift="snow").isnull().all() and flat.sel(shift="fog").notnull().all()


HARD = {"fog": ["..."] * 12 + [".xx"] * 4 + ["..x"] * 4, "snow": ["..."] * 14 + [".xx"] * 3 + ["..x"] * 3}
AXES = {"fog": [[0, 0.5, 1.0]] * 20, "snow": [[0, 0.25, 0.5]] * 20}


def test_a_shift_that_costs_less_at_equal_scales_may_cost_more_at_equal_severities():
    """Fog costs 0.4 on its way to severity 1, snow 0.3 on its way to 0.5, both evenly."""
    errors = errors_of({shift: {"vit": own} for shift, own in HARD.items()})
    maps = maps_of(table_of(AXES), ("scale", "oracle"))
    sides = calibration.on_axes(errors, maps, all_rise(maps))
    tau = calibration.orders(sides, 0.95).set_index(["ruler", "order"])["estimate"]
    assert tau["oracle", "shifts"] == -1 and tau["scale", "shifts"] == 1
    shown = calibration.standings(sides).set_index(["order", "ruler", "name"])[["n", "estimate"]].sort_index()
    assert shown.loc[("shifts", "scale")].to_numpy().tolist() == [[20, pytest.approx(0.05)], [20, pytest.approx(-0.05)]]
    assert shown.loc[("shifts", "oracle"), "estimate"].to_dict() == pytest.approx({"fog": -0.05, "snow": 0.05}, abs=2e-3)  # on a grid
    assert shown.loc[("classifiers", "scale", "vit")].tolist() == pytest.approx([40, (0.8 + 0.85) / 2])  # fog falls to 0.6, snow to 0.7


def test_a_ruler_without_rising_shifts_orders_nothing_and_a_shift_that_shares_no_severity_is_left_out():
    """Rain runs from 5 to 6, where no other shift is."""
    words = {shift: {"vit": own, "mixer": own} for shift, own in (HARD | {"rain": ["..."] * 20}).items()}
    table = table_of(AXES | {"rain": [[5, 5.5, 6.0]] * 20})
    maps = maps_of(table.assign(distance=table["oracle"]), ("scale", "oracle", "distance"))
    rises = all_rise(maps)
    rises.loc[{"ruler": "distance", "shift": ["fog", "rain"]}] = False
    orders = calibration.orders(calibration.on_axes(errors_of(words), maps, rises), 0.95).set_index(["order", "ruler"])
    assert list(orders.index) == [("classifiers", name) for name in ("scale", "oracle", "distance")] + [
        ("shifts", "scale"),
        ("shifts", "oracle"),
    ]
    assert orders.loc[("shifts", "oracle"), ["items", "n", "estimate"]].tolist() == [2, 40, -1.0]


def rungs(errors: list[float], bins: list[float], *, noise: float = 0.0, seed: int = 0) -> xr.DataArray:
    sample = np.array(errors)[None, None, None].repeat(2, axis=1)
    rng = np.random.default_rng(seed)
    samples = np.concatenate([sample, (sample + noise * rng.normal(size=(50, *sample.shape[1:]))).clip(0, 1)])
    labels = {"shift": ["heavy fog", "all shifts"], "n": ("shift", [100, 100]), "model": ["resnet"], "scale": bins, "confidence": 0.95}
    return xr.DataArray(samples, labels, ["resample", "shift", "model", "scale"])


LADDER = rungs([0.1, 0.3, 0.7], [0.0, 0.5, 1.0])


def test_an_error_between_two_rungs_lies_between_their_severities_and_one_beyond_them_at_their_end():
    found = calibration.reached(LADDER, rungs([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9], [0, 1, 2, 3, 4, 5, 6]))
    assert found["estimate"].tolist() == pytest.approx([0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0])
    assert found["beyond"].tolist() == ["below", *[""] * 5, "above"] and (found["low"] == found["high"]).all()
    back = rungs([0.1, 0.4, 0.2, 0.8], [0.0, 0.5, 0.75, 1.0])  # pooled neighbours: 0.4 and 0.2 become 0.3 twice
    assert calibration.reached(back, rungs([0.3], [0.0]))["estimate"].tolist() == pytest.approx([0.5])
