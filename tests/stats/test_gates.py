import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xarray as xr
from tiny_settings import resampled

from cnslib.stats import gates

SETTINGS = resampled(200)


def trajectory(values, *, shift="heavy snow", seed=1, name="bag"):
    scales = [number / 2 for number in range(len(values))]
    return pd.DataFrame({"shift": shift, "class": name, "seed": seed, "scale": scales, "asked": values})


def record(estimate):
    return {"n": 10, "estimate": estimate, "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("key", "estimate", "expected"),
    [
        ("start_worst_class", 0.9, True),  # the bound itself
        ("filter_good_dropped", 0.121, False),
        ("start_worst_class", 0.9 - 4e-7, True),  # to six digits
        ("start_worst_class", 0.9 - 6e-7, False),
        ("rising_mean", float("nan"), False),
    ],
)
def test_a_gate_holds_on_the_right_side_of_its_bound_and_at_it(key, estimate, expected):
    table = gates.table({key: record(estimate)})
    assert table["reached"].tolist() == [expected] and table["to reach"].str[:2].tolist() == [
        "<=" if key == "filter_good_dropped" else ">="
    ]


def test_a_gate_that_cannot_fail_is_shown_but_not_counted():
    found = {"rising_mean": record(0.9), "kept_start_in_class": record(1.0)}
    assert gates.table(found)["reached"].tolist() == [True, "by construction"]


def test_the_worst_group_is_the_least_or_the_greatest_and_nothing_is_worse_than_no_number():
    found = {"snow": record(0.5), "rain": record(0.3), "fog": record(0.4)}
    assert gates.worst(found) == ("rain", record(0.3))
    assert gates.worst(found, side=gates.AT_MOST) == ("snow", record(0.5))
    assert gates.worst(found | {"dust": record(float("nan"))})[0] == "dust"


def pictures():
    """Two shifts of two trajectories each: snow is always named at the end and even, rain once and in one step."""
    ways = {("heavy snow", 1): [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], ("heavy snow", 2): [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]}
    ways |= {("heavy rain", 1): [0.0, 0.0, 0.0, 0.8, 0.8, 0.8], ("heavy rain", 2): [0.0, 0.0, 0.0, 0.2, 0.2, 0.2]}
    parts = [trajectory(way, shift=shift, seed=seed, name=["bag", "dress"][seed - 1]) for (shift, seed), way in ways.items()]
    seen = pd.concat(parts, ignore_index=True)
    seen["named"] = seen["shift"].where(seen["asked"] > 0.5, "unshifted")
    seen["known"] = (seen["scale"] < 2) & ~((seen["class"] == "dress") & (seen["shift"] == "heavy rain") & (seen["scale"] == 1.5))
    return seen.assign(alignment=seen["scale"], distance=seen["scale"])  # both of these rise evenly


def test_each_shift_has_its_share_of_named_and_known_pictures_and_its_largest_step():
    found = gates.by_shift(pictures(), settings=SETTINGS)
    wide = found.pivot(index="shift", columns="measure", values="estimate")
    assert wide["named"].to_dict() == {"heavy snow": 1.0, "heavy rain": 0.5}
    assert wide["known at 1.5"].to_dict() == {"heavy snow": 1.0, "heavy rain": 0.5} and (wide["known at 2.5"] == 0).all()
    assert wide["step of asked"].to_dict() == pytest.approx({"heavy snow": 0.2, "heavy rain": 1.0})
    assert wide["step of alignment"].to_numpy() == pytest.approx([0.2, 0.2])


def test_the_gates_of_the_pictures_ask_for_the_worst_class_and_shift_and_for_means():
    seen = pictures()
    seen.loc[(seen["class"] == "dress") & (seen["scale"] == 0), "known"] = False
    found = gates.pictures(seen, gates.by_shift(seen, settings=SETTINGS), settings=SETTINGS)
    numbers = {key: (round(record["estimate"], 6), record["n"]) for key, record in found.items()}
    assert numbers == {
        "start_worst_class": (0.0, 1),  # one picture begins both trajectories of the dress
        "asked_worst_shift": (0.5, 2),
        "class_kept_scale_1_5": (0.75, 4),
        "class_kept_scale_2_5": (0.0, 4),
        "rising_mean": (0.6, 20),  # every step in snow, one of five in rain
        "rising_worst_shift": (0.2, 10),
        "largest_step_worst_shift": (1.0, 2),
    }


def test_where_the_oracle_sees_no_shift_nothing_is_counted_and_nothing_missed():
    blind = pictures().assign(asked=np.nan, named="not asked")
    table = gates.by_shift(blind, settings=SETTINGS)
    assert "step of asked" not in set(table["measure"]) and (table.loc[table["measure"] == "named", "n"] == 0).all()
    found = gates.pictures(blind, table, settings=SETTINGS)
    assert found["largest_step_worst_shift"]["estimate"] == pytest.approx(0.2) and found["rising_mean"]["n"] == 0


def shares(wrong, shifts, draws=None):
    """Error shares of three classifiers at two scales, the same in both resamples; the last group pools the shifts."""
    samples = np.repeat(np.array(wrong, float)[None], 3, axis=0) if draws is None else np.array(draws, float)
    labels = {"shift": [*shifts, "all shifts"], "n": ("shift", [4, 5, 9][-len(shifts) - 1 :]), "model": ["a", "b", "c"], "confidence": 0.95}
    return xr.DataArray(samples, labels | {"scale": [0.0, 1.0][: samples.shape[3]]}, ["resample", "shift", "model", "scale"])


def test_the_classifiers_gates_count_each_begin_and_leave_out_whom_nobody_knows_on_real_pictures():
    begin, kept = [[[0.1, 1], [0.2, 1], [0.6, 1]]] * 3, [[[0.1, 1], [0.1, 1], [0.1, 1]]] * 3
    heldout = [[[0.1], [0.3], [np.nan]]] * 2
    found = gates.classifiers(shares(begin, ["a", "b"]), shares(kept, ["a", "b"]), shares(heldout, ["a"]))
    assert (found["zoo_scale_0_all"]["estimate"], found["zoo_scale_0_all"]["n"]) == (pytest.approx(0.7), 4)
    assert (found["zoo_scale_0_kept"]["estimate"], found["zoo_scale_0_kept"]["n"]) == (pytest.approx(0.9), 9)
    assert (found["real_generated_r"]["estimate"], found["real_generated_r"]["n"]) == (pytest.approx(1), 2)


def test_the_intervals_of_the_classifiers_gates_are_reflected_at_their_estimates():
    """Both resamples of an accuracy of 0.7 are 0.8: its lower bound is 0.6."""
    three = shares(None, ["a"], np.array([0.3, 0.2, 0.2])[:, None, None, None].repeat(2, 1).repeat(3, 2))
    found = gates.classifiers(three, three, three.copy(data=np.broadcast_to([[0.1], [0.2], [0.3]], three.shape)))
    for key in ("zoo_scale_0_all", "zoo_scale_0_kept"):
        assert [found[key][name] for name in ("low", "estimate", "high")] == pytest.approx([0.6, 0.7, 0.7])


def test_only_a_shift_with_one_large_step_by_some_reading_is_uneven():
    assert gates.uneven(gates.by_shift(pictures(), settings=SETTINGS)).keys() == {"heavy rain"}


def test_the_largest_step_is_a_share_of_the_rise_of_the_mean():
    seen = pd.concat([trajectory([0.0, 0.2, 0.3, 0.8]), trajectory([0.2, 0.2, 0.7, 0.8], seed=2)])
    found = gates.largest_step(seen, "asked", settings=SETTINGS)  # means 0.1, 0.2, 0.5, 0.8
    assert found["estimate"] == pytest.approx(0.3 / 0.7) and found["n"] == 2
    assert found["low"] <= found["estimate"] <= found["high"]
    even = pd.concat([trajectory([0.0, 0.25, 0.5, 0.75], seed=seed) for seed in range(1, 5)])
    found = gates.largest_step(even, "asked", settings=SETTINGS)
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx((1 / 3,) * 3)


def test_without_a_rise_there_is_no_largest_step():
    assert np.isnan(gates.largest_step(trajectory([0.4, 0.6, 0.4]), "asked", settings=SETTINGS)["estimate"])


def test_agreement_is_pearsons_r_and_its_n_the_classifiers():
    draws = np.random.default_rng(0)
    real, generated = (xr.DataArray(draws.random((50, 8)), {"confidence": 0.95}, ["resample", "model"]) for _ in range(2))
    found = gates.agreement(real, generated)
    assert found["estimate"] == pytest.approx(scipy.stats.pearsonr(real[0], generated[0]).statistic) and found["n"] == 8
    assert gates.agreement(real, 0.2 + 0.5 * real)["estimate"] == pytest.approx(1)


def test_rising_steps_are_counted_within_trajectories_and_only_between_readings():
    ways = {1: [0.0, 0.2, 0.1, 0.3], 2: [0.5, 0.5, 0.6, 0.7], 3: [0.1, np.nan, 0.3, 0.4]}
    parts = [trajectory(way, seed=seed) for seed, way in ways.items()]
    steps = gates.rises(pd.concat(parts).sample(frac=1, random_state=0), "asked")
    assert steps.groupby("seed")["rises"].agg(["size", "sum"]).to_numpy().tolist() == [[3, 2], [3, 2], [1, 1]]  # no change is no rise
    assert set(steps["scale"]) == {0.5, 1.0, 1.5}
