import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import xarray as xr
from tiny_answers import SCALES, predictions
from tiny_settings import resampled

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.core.settings.sections import AXES, Axes
from cnslib.stats import accuracy, claims, failure, verdicts
from cnslib.stats.axes import roles
from cnslib.stats.claims import Evidence

LIST = paths.PUBLISHED / "claims.csv"
GOOD, BAD = ["..."] * 37 + ["..x"] * 3, [".xx"] * 30 + ["..x"] * 7 + ["..."] * 3
EMPTY = {"id": "c", "family": "f", "measure": "drop", "axis": "", "first": "", "second": "", "shift": "", "scale": np.nan}


def outcomes(words: dict[str, dict[str, list[str]]], scales: list[float] = SCALES) -> xr.DataArray:
    return accuracy.wrong_predictions(pd.concat([predictions(own, shift, scales) for shift, own in words.items()]))


def evidence(words: dict | None = None, *, plain: dict | None = None, **shifts: dict) -> Evidence:
    """What claims are judged on, from words per trajectory: under heavy snow, or by shift (fog, painting); `plain` for held-out images."""
    named = {"snow": "heavy snow", "fog": "heavy fog", "painting": "painting style"}
    found = outcomes({named[shift]: own for shift, own in ({"snow": words} if words else shifts).items()})
    models = found["model"].to_numpy().tolist()
    settings = Axes(resampled(300), dict.fromkeys(AXES, models), models[0], 0.05)
    heldout = outcomes({"none": plain or {name: ["."] * 30 + ["x"] * 10 for name in models}}, [0.0])
    shares = (accuracy.by_shift(own, settings.bootstrap) for own in (found, failure.first_failures(found), heldout))
    return Evidence(*shares, {name: 1000 * 2**place for place, name in enumerate(models)}, settings)


def claim(kind: str, rule: str = "above 0", **columns) -> pd.DataFrame:
    return pd.DataFrame([EMPTY | {"kind": kind, "rule": rule} | columns])


def judged(found: Evidence, *args, **columns) -> pd.Series:
    row = claims.measured(claim(*args, **columns), found).iloc[0]
    return row.rename({"direction": "verdict"}).replace({row["direction"]: "undecided"} if row["p"] >= 0.05 else {})


def test_a_claim_without_a_resample_has_no_verdict_and_an_unknown_bound_is_none_for_it():
    values = np.full((21, 1, 1, 1), np.nan)
    values[0] = 0.1
    rule = {"rule": "above 0", "margin": 0.05, "confidence": 0.95}
    values[1:] = 0.1 + np.linspace(-0.01, 0.01, 20)[:, None, None, None]
    sure = claims.judged(values, **rule)["p"]
    values[1:11] = np.nan
    assert sure == pytest.approx(1 / 21) and claims.judged(values, **rule)["p"] > 0.4


def beside(found: Evidence, *args, **columns) -> pd.Series:
    return claims.judge(claim(*args, **columns), found).iloc[0]


PAIR = {"a": ["..x"] * 40, "bad": BAD, "good": GOOD, "twin": GOOD}
HALF = ["..x"] * 20 + ["..."] * 20
LATE = {"a": [".xx"] * 10 + ["..x"] * 30, "early": [".xx"] * 20 + ["..."] * 20, "late": HALF, "twin": HALF}
PLAIN = {"a": ["."] * 40, "bad": ["x"] * 30 + ["."] * 10, "good": ["."] * 40, "twin": ["."] * 40}


@pytest.mark.parametrize(
    ("kind", "measure", "words", "better", "worse", "equal"),
    [
        ("less", "drop", PAIR, "good", "bad", "twin"),
        ("less", "rCE", {name: words * 2 for name, words in PAIR.items()}, "good", "bad", "twin"),
        ("less", "held-out error", PAIR, "good", "bad", "twin"),
        ("least", "drop", PAIR, "good", "bad; a", "twin"),
        ("most", "drop", PAIR, "bad", "good; twin", None),
        ("every_scale", "", PAIR, "good", "bad", "twin"),
        ("widens", "", LATE, "early", "late", None),
        ("widens_somewhere", "", LATE, "early", "late", None),
    ],
)
def test_a_constructed_effect_holds_its_reverse_is_opposite_and_equals_stay_undecided(kind, measure, words, better, worse, equal):
    found = evidence(words, plain=PLAIN if words is PAIR else None)
    one = worse.split("; ")[0]
    assert judged(found, kind, measure=measure, first=better, second=worse)["verdict"] == "same direction"
    assert judged(found, kind, measure=measure, first=one, second=better)["verdict"] == "opposite direction" or kind == "widens_somewhere"
    if equal:
        assert judged(found, kind, measure=measure, first=better, second=equal)["verdict"] == "undecided"


def test_a_difference_is_that_of_the_tables_by_hand():
    row = judged(evidence(PAIR), "less", first="good", second="bad")
    good, bad = 3 / 40 / 3, (30 / 40 + 37 / 40) / 3
    assert row["estimate"] == pytest.approx(bad - good) and row["n"] == 40
    assert row["low"] < row["estimate"] < row["high"] and row["p"] == pytest.approx(1 / 301)
    assert judged(evidence(PAIR), "less", first="good", second="bad", scale=0.5)["estimate"] == pytest.approx(30 / 40)
    mean = judged(evidence(PAIR), "less", first="good; bad", second="bad")["estimate"]
    assert mean == pytest.approx((bad - good) / 2)


def test_a_comparable_pair_holds_below_the_margin_and_a_different_one_is_opposite():
    found = evidence(PAIR, plain=PLAIN)
    alike = {"rule": "below margin", "measure": "held-out error", "first": "good"}
    assert judged(found, "alike", **alike, second="twin")["verdict"] == "agrees"
    assert judged(found, "alike", **alike, second="twin; bad")["verdict"] == "opposite direction"
    assert judged(found, "less", "below margin", first="good", second="twin")["verdict"] == "agrees"


@pytest.mark.parametrize(
    ("true", "rule", "direction"),
    [
        (0.025, "exists", "agrees"),
        (0.025, "below margin", "agrees"),
        (0.06, "above 0", "same direction"),
        (0.06, "below margin", None),  # surely above 0, perhaps below the margin of 0.05
        (0.10, "below margin", "opposite direction"),
        (-0.06, "above 0", "opposite direction"),
        (-0.06, "exists", "opposite direction"),
    ],
)
def test_a_rule_compares_the_interval_with_zero_or_the_margin(true, rule, direction):
    values = true + 0.01 * np.vstack([np.zeros((1, 1)), np.random.default_rng(0).normal(size=(500, 1))])[:, :, None, None]
    found = claims.judged(values, rule=rule, margin=0.05, confidence=0.95)
    assert (found["low"], found["high"]) == pytest.approx((true - 0.0196, true + 0.0196), abs=0.002)
    assert found["p"] >= 0.05 if direction is None else (found["p"] < 0.05 and found["direction"] == direction)


def test_larger_is_better_is_the_slope_of_least_squares_on_doublings():
    words = {"a": BAD, "b": BAD[:20] + GOOD[:20], "c": GOOD}
    found = evidence(words)
    row = judged(found, "trend", axis="transformer size")
    losses = accuracy.drop(found.errors)[0, -1].mean("scale")
    assert row["estimate"] == pytest.approx(-np.polyfit([0, 1, 2], losses, 1)[0]) and row["verdict"] == "same direction"
    assert judged(evidence({"a": GOOD, "b": GOOD, "c": BAD}), "trend", axis="transformer size")["verdict"] == "opposite direction"


def test_the_part_of_size_that_plain_accuracy_explains_is_a_difference_of_regressions():
    rng = np.random.default_rng(0)
    words, fog = (
        {f"m{i}": ["".join(".x"[int(v)] for v in row) for row in rng.random((40, 3)) < 0.5 - 0.1 * i] for i in range(5)} for _ in range(2)
    )
    plain = {name: [".x"[int(v)] for v in rng.random(40) < 0.4 - 0.06 * i] for i, name in enumerate(words)}
    found = evidence(snow=words, fog=fog, plain=plain)
    shifted, known = 1 - found.errors[0, -1, :, 1:].to_numpy().mean(-1), 1 - found.heldout[0, -1, :, 0].to_numpy()
    simple = sm.OLS(shifted, sm.add_constant(np.arange(5))).fit().params[1]
    full = sm.OLS(shifted, sm.add_constant(np.column_stack([np.arange(5), known]))).fit().params[1]
    assert judged(found, "explained", axis="transformer size")["estimate"] == pytest.approx(simple - full)


CROSSING = {"a": [".x."] * 30 + ["..."] * 10, "b": ["..x"] * 30 + ["..."] * 10}
STRICT = {"a": GOOD, "b": BAD}


def test_an_order_that_turns_along_the_scale_changes_and_a_strict_one_is_kept():
    for words, changes, kept in ((CROSSING, "agrees", "opposite direction"), (STRICT, "opposite direction", "agrees")):
        for shift in ("", "heavy snow"):
            assert judged(evidence(words), "order_over_scales", "exists", axis="architecture", shift=shift)["verdict"] == changes
            assert judged(evidence(words), "order_over_scales", "below margin", axis="architecture", shift=shift)["verdict"] == kept
    assert judged(evidence(CROSSING), "order_over_scales", "exists", axis="architecture")["estimate"] == pytest.approx(0.75)


def test_an_order_that_turns_from_shift_to_shift_changes():
    other = {"a": BAD, "b": GOOD}
    assert judged(evidence(snow=STRICT, fog=other), "order_over_shifts", "exists", axis="architecture")["verdict"] == "agrees"
    assert judged(evidence(snow=STRICT, fog=STRICT), "order_over_shifts", "exists", axis="architecture")["verdict"] == "opposite direction"


def test_a_lead_on_average_that_is_a_deficit_at_a_scale_misleads():
    words = {"a": [".x."] * 12 + ["..."] * 28, "b": ["..x"] * 36 + ["..."] * 4}
    row = judged(evidence(words), "order_by_average", "exists", axis="architecture")
    assert row["verdict"] == "agrees" and row["estimate"] == pytest.approx((0.9 - 0.3) / 3)
    assert judged(evidence(STRICT), "order_by_average", "exists", axis="architecture")["verdict"] == "opposite direction"


def test_gaps_that_open_with_the_scale_grow_and_parallel_curves_do_not():
    opening = {"a": ["..."] * 40, "b": ["..x"] * 20 + ["..."] * 20, "c": ["..x"] * 40}
    parallel = {"a": [".xx"] * 20 + ["..."] * 20, "b": [".xx"] * 20 + ["..."] * 20, "c": [".xx"] * 20 + ["..."] * 20}
    row = judged(evidence(opening), "gaps_grow", axis="architecture", shift="heavy snow")
    assert row["verdict"] == "same direction" and row["estimate"] == pytest.approx(0.5, abs=0.02)
    assert judged(evidence(parallel), "gaps_grow", "below margin", axis="architecture", shift="heavy snow")["verdict"] == "agrees"


STEP = {"a": [".xx"] * 40, "b": [".xx"] * 36 + ["..x"] * 4}
EVEN = {"a": [".xx"] * 20 + ["..x"] * 18 + ["x.."] * 2, "b": [".xx"] * 22 + ["..x"] * 18}


def test_failures_at_one_scale_are_less_gradual_than_failures_at_all():
    found = evidence(snow=EVEN, painting=STEP)
    row = judged(found, "gradual", first="heavy snow; heavy rain", second="painting style; cartoon style")
    assert row["verdict"] == "same direction" and row["n"] == 80
    both = outcomes({"heavy snow": EVEN, "painting style": STEP})
    direct = failure.more_abrupt(both, "painting style", "heavy snow", settings=found.settings.bootstrap)
    assert row["estimate"] == pytest.approx(direct["estimate"])
    assert judged(found, "gradual", first="painting style", second="heavy snow")["verdict"] == "opposite direction"


def test_an_order_turns_under_the_shift_that_the_claim_names_or_under_any():
    """Under fog the first is behind at scale 0.5 and ahead at 1; under snow it is behind at both."""
    turning = {"a": [".xx"] * 20 + ["..."] * 20, "b": ["..x"] * 40}
    steady = {"a": [".xx"] * 20 + ["..."] * 20, "b": [".xx"] * 10 + ["..."] * 30}
    found = evidence(snow=steady, fog=turning)
    rows = {shift: judged(found, "order_over_scales", axis="architecture", shift=shift) for shift in ("heavy snow", "heavy fog", "")}
    assert rows["heavy snow"]["estimate"] < 0 < rows["heavy fog"]["estimate"] == rows[""]["estimate"]


def test_a_drop_is_that_of_the_shifts_that_a_claim_names_and_of_all_images_where_it_names_none():
    """Of 40 images under snow all are lost at scale 1, of 20 under fog none."""
    found = evidence(snow={"a": ["..x"] * 40, "b": ["..x"] * 40}, fog={"a": ["..."] * 20, "b": ["..."] * 20})
    for shift, lost in {"heavy snow": 1, "heavy fog": 0, "heavy snow; heavy fog": 1 / 2, "": 2 / 3}.items():
        (row,) = claim("less", shift=shift, scale=1.0).itertuples()
        assert found.loss(row)[0].to_numpy().tolist() == pytest.approx([lost, lost])


def test_a_growth_is_what_least_squares_adds_between_the_first_and_the_last_shifted_scale():
    straight, bent = np.array([9.0, 2, 3, 6]), np.array([9.0, 1, 5, 2])
    slope = np.polyfit([1.0, 1.5, 3.0], bent[1:], 1)[0]
    values = xr.DataArray(np.stack([straight, bent]), {"scale": [0.0, 1.0, 1.5, 3.0]}, ["resample", "scale"])
    assert claims.growth(values).to_numpy().tolist() == pytest.approx([4, 2 * slope])


def test_failure_points_by_hand():
    snow = {"a": [".xx"] * 8 + ["..x"] * 20 + ["..."] * 12, "b": [".xx"] * 12 + ["..x"] * 16 + ["..."] * 12}
    found = evidence(snow=snow, painting=STEP)
    at = {"shift": "heavy snow", "scale": 1.0}
    assert judged(found, "peak", **at)["estimate"] == pytest.approx((36 - 20) / 80)
    assert judged(found, "peak", shift="heavy snow", scale=0.5)["estimate"] == pytest.approx((20 - 36) / 80)
    assert judged(found, "rising", shift="heavy snow")["estimate"] == pytest.approx((36 - 20) / 80)
    assert judged(found, "jump", first="a", second="b", **at)["estimate"] == pytest.approx((20 - 8 - (16 - 12)) / 40)
    models = judged(found, "differ_over_models", "exists", axis="architecture", shift="heavy snow")
    assert models["estimate"] == pytest.approx(4 / 40)
    shifts = judged(found, "differ_over_shifts", "exists")
    assert shifts["estimate"] == pytest.approx((40 + 36 - 20) / 80) and shifts["verdict"] == "agrees"
    assert judged(evidence(snow=STEP, fog=STEP), "differ_over_shifts", "exists")["verdict"] == "opposite direction"


def test_holms_correction_runs_over_a_family_by_hand():
    p = pd.DataFrame({"family": ["x"] * 4 + ["y"], "p": [0.01, 0.04, 0.03, np.nan, 0.04], "direction": "same direction"})
    p = p.assign(
        direction=["same direction"] * 3 + ["not measured", "opposite direction"], low=0.1, estimate=0.3, high=[0.4, 0.4, 0.6, 0.4, 0.4]
    )
    found = claims.decided(p, confidence=0.95)
    assert found["smallest"].dropna().to_dict() == pytest.approx({1: 0.2, 2: 0.3})  # of what stays undecided, the longer half
    assert found["p_holm"].tolist()[:3] == pytest.approx([0.03, 0.06, 0.06]) and found["p_holm"][4] == pytest.approx(0.04)
    assert found["verdict"].tolist() == ["same direction", "undecided", "undecided", "not measured", "opposite direction"]


def test_a_claim_on_rce_without_a_defined_shift_is_not_measured_and_the_drop_still_tells():
    found = evidence({"a": ["..."] * 40, "bad": BAD, "good": GOOD})
    row = beside(found, "less", measure="rCE", first="good", second="bad")
    assert row["verdict"] == "not measured" and row["n"] == 0 and np.isnan(row["estimate"])
    assert row["drop_verdict"] == "same direction" and row["drop_n"] == 40
    assert beside(found, "less", first="good", second="bad")["drop_verdict"] == ""


def test_rce_and_average_drop_stand_side_by_side_and_may_disagree():
    """Under fog the reference loses little, so that fog weighs most in rCE, and there the order is another."""
    fog = {"a": ["..x"] * 12 + ["..."] * 48, "b": ["..."] * 60, "c": [".xx"] * 12 + ["..."] * 48}
    snow = {"a": [".xx"] * 60, "b": [".xx"] * 30 + ["..."] * 30, "c": ["..."] * 60}
    found = evidence(snow=snow, fog=fog, painting=dict.fromkeys("abc", ["..."] * 60))  # where rCE is not defined
    row = beside(found, "less", measure="rCE", first="b", second="c")
    assert row["estimate"] == pytest.approx((2 - 0.5) / 2) and row["verdict"] == "same direction" and row["n"] == 120
    assert row["drop_estimate"] == pytest.approx((24 - 60) / 180 / 3) and row["drop_verdict"] == "opposite direction"


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("none", {}),
        ("less", {"first": "diffusion", "second": "good"}),
        ("less", {"first": "good", "second": "bad", "shift": "heavy dust"}),
        ("less", {"first": "good", "second": "bad", "scale": 2.5}),
        ("gradual", {"first": "heavy snow", "second": "cartoon style"}),
    ],
)
def test_what_was_not_evaluated_is_not_measured(kind, columns):
    row = judged(evidence(PAIR), kind, **columns)
    assert row["verdict"] == "not measured" and row["n"] == 0 and row[["estimate", "low", "high", "p"]].isna().all()


def test_every_claim_of_the_list_gets_a_line_whatever_was_evaluated():
    listed = claims.read(LIST)
    assert listed["id"].is_unique and listed["claim"].is_unique and len(listed) >= 40
    table = claims.judge(listed, evidence(STRICT))
    assert table["id"].tolist() == listed["id"].tolist() and set(table["verdict"]) <= set(verdicts.WORDS)
    assert set(claims.KINDS) == set(listed["kind"]) - {"none"}


def test_the_counterparts_are_those_of_the_axes_and_their_numbers_those_of_the_papers_tables():
    axes = pd.read_csv(paths.PUBLISHED / "axes.csv")
    members = read.load(paths.ROOT / "params.yaml")["axes"].members
    named = axes.dropna(subset=["classifier"]).groupby("axis", sort=False)["classifier"].apply(list)
    assert {axis: set(names) for axis, names in named.items()} == {axis: set(names) for axis, names in members.items()}
    table4 = pd.read_csv(paths.PUBLISHED / "corruption_error.csv").set_index("model")["rce"]
    both = axes.dropna(subset=["rce_table3"]).set_index("paper_model")
    apart = both.index[(both["rce_table3"] - table4[both.index]).abs() > 5e-4]
    assert set(apart) == {"dinov1_ft_vit_base_patch16", "deit3_huge_patch14_224.fb_in1k"}  # Tables 3 and 4 disagree there


@pytest.fixture(scope="module")
def published() -> pd.Series:
    return claims.read(LIST).set_index("id")["published"]


def test_published_differences_of_rce_are_those_of_table_3(published):
    axes = pd.read_csv(paths.PUBLISHED / "axes.csv")
    rce = {axis: part.set_index("classifier")["rce_table3"] for axis, part in axes.groupby("axis")}
    arch, pre, size = rce["architecture"], rce["pre-training"], rce["transformer size"]
    for name in ("resnet_vit", "convnext_resnet", "convnext_vit", "deit_convnext"):
        first, second = name.split("_")
        assert published[name] == pytest.approx(arch[second] - arch[first], abs=6e-4)
    assert published["vmamba_best"] == pytest.approx(arch["deit"] - arch["vmamba"], abs=6e-4)
    assert published["web_vit"] == pytest.approx(pre["vit"] - pre["web"], abs=6e-4)
    assert published["ssl_vit"] == pytest.approx(pre["vit"] - (pre["mae"] + pre["simclr"]) / 2, abs=6e-4)
    assert published["ssl_web"] == pytest.approx(pre["web"] - (pre["mae"] + pre["simclr"]) / 2, abs=6e-4)
    dino = axes.set_index("paper_model")["rce_table3"]["dinov1_ft_vit_base_patch16"]
    assert published["dino_best"] == pytest.approx(pre[["vit", "web", "mae", "simclr"]].min() - dino, abs=6e-4)
    doublings = np.log2(axes.query("axis == 'transformer size'")["parameters_millions"])
    assert published["size_transformer"] == pytest.approx(-np.polyfit(doublings, size, 1)[0], abs=6e-4)


def test_published_drops_and_growths_of_gaps_are_those_of_table_5(published):
    table = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
    lost = table[[0.0]].to_numpy() - table
    deit = lost.loc["deit3_base_patch16_224.fb_in1k"].iloc[1:]
    for name, other in (("deit_vit_widens", "vit_base_patch16_224.augreg_in1k"), ("convnext_deit_widens", "convnext_base.fb_in1k")):
        gap = lost.loc[other].iloc[1:] - deit
        assert published[name] == pytest.approx(2 * np.polyfit(gap.index, gap, 1)[0], abs=6e-4)
    assert published["deit_everywhere"] == pytest.approx(gap.min(), abs=6e-4)
    average = lost.mean(axis=1)  # scale 0 included, as in the table's last column
    deit_loses_more = average["deit3_base_patch16_224.fb_in1k"] - average["vssm_base_v0"]
    assert published["deit_vmamba"] == pytest.approx(deit_loses_more, abs=6e-4)


PAPER = pd.read_csv(paths.PUBLISHED / "axes.csv")
CONVNEXT, DEIT = "convnext_base.fb_in1k", "deit3_base_patch16_224.fb_in1k"


def test_claims_speak_of_the_evaluated_classifiers_and_shifts_stay():
    listed = claims.read(LIST)
    found = claims.cast(listed, roles(PAPER, [CONVNEXT, DEIT])).set_index("id")
    assert found.loc["deit_convnext", ["first", "second"]].tolist() == [DEIT, CONVNEXT]
    assert found.loc["vit_painting_low", "second"] == f"resnet; {DEIT}; {CONVNEXT}; vmamba"
    assert found.loc["snow_gradual", ["first", "second"]].tolist() == ["heavy snow", "cartoon style"]


def test_only_claims_about_evenness_carry_the_caution_of_an_uneven_slider_among_theirs():
    rows = [claim("gradual", first="heavy snow; heavy rain", second="cartoon style", caution="doubtful")]
    rows += [
        claim("peak", shift="cartoon style", caution=""),
        claim("rising", shift="heavy fog", caution=""),
        claim("drop", shift="heavy rain", caution=""),
    ]
    found = claims.cautioned(pd.concat(rows, ignore_index=True), {"heavy rain"})["caution"].tolist()
    assert found == ["doubtful and uneven sliders: heavy rain", "", "", ""]
