import numpy as np
import pandas as pd
import pytest

from cnslib.stats import verdicts
from cnslib.stats.verdicts import AGREES, OPPOSITE, SAME, UNDECIDED, UNMEASURED
from cnslib.studies.controlshift import results


def judged(low: float, high: float, published, **given) -> str:
    ours = pd.DataFrame({"estimate": [(low + high) / 2], "low": low, "high": high})
    return verdicts.beside(ours, published, **given)["verdict"].item()


@pytest.mark.parametrize(
    ("published", "same", "opposite"),
    [
        ("above 0", (0.1, 0.2), (-0.2, -0.1)),
        ("below 0", (-0.2, -0.1), (0.1, 0.2)),
        ("above 0.5", (0.6, 0.7), (0.3, 0.4)),
        ("below -1", (-3.0, -2.0), (-0.5, 0.5)),
    ],
)
def test_a_direction_needs_the_whole_interval_on_one_side(published, same, opposite):
    place = float(published.split()[1])
    assert [judged(*bounds, published) for bounds in (same, opposite)] == [SAME, OPPOSITE]
    for bounds in ((place - 1, place + 1), (place, place + 1), (place - 1, place), (place, place)):
        assert judged(*bounds, published) == UNDECIDED


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0.96, 1.04), AGREES), ((0.95, 1.05), AGREES), ((0.9, 1.0), UNDECIDED), ((1.04, 1.2), UNDECIDED), ((1.06, 1.2), OPPOSITE)],
)
def test_about_asks_that_the_whole_interval_is_near(bounds, expected):
    assert judged(*bounds, "about 1", tolerance=0.05) == expected
    assert judged(*bounds, 1.0, null=1.0, tolerance=0.05) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0.2, 0.4), AGREES), ((0.5, 0.6), SAME), ((0.1, 0.2), SAME), ((-0.2, -0.1), OPPOSITE), ((-0.1, 0.4), UNDECIDED), ((0, 1), UNDECIDED)],
)
def test_a_number_agrees_in_the_interval_and_else_the_side_of_the_null_tells(bounds, expected):
    assert judged(*bounds, 0.3) == expected
    assert judged(*(5 + np.array(bounds)), 5.3, null=5.0) == expected
    low, high = bounds
    assert judged(-high, -low, -0.3) == expected


def test_a_tolerance_widens_the_interval_in_which_a_number_agrees_but_does_not_move_the_null():
    assert [judged(0.4, 0.5, 0.3, tolerance=tolerance) for tolerance in (0.0, 0.1)] == [SAME, AGREES]
    assert judged(-0.01, 0.5, 0.3, tolerance=0.1) == UNDECIDED
    assert judged(-0.04, -0.02, 0.03, tolerance=0.1) == OPPOSITE


def test_a_published_interval_agrees_where_it_meets_ours():
    said = pd.DataFrame({"published": [0.5, 0.5, np.nan], "published_low": [0.35, 0.45, 0.1], "published_high": [0.6, 0.6, 0.2]})
    ours = pd.DataFrame({"estimate": 0.3, "low": 0.2, "high": 0.4}, index=list("abc"))
    assert verdicts.beside(ours, said)["verdict"].to_dict() == {"a": AGREES, "b": SAME, "c": UNMEASURED}
    above = pd.DataFrame({"estimate": [0.7], "low": [0.6], "high": [0.8]})
    assert verdicts.beside(above, said[1:2])["verdict"].tolist() == [AGREES]  # from above, it is the published upper bound that counts
    assert verdicts.beside(above, said[1:2].drop(columns="published_high"))["verdict"].tolist() == [SAME]


@pytest.mark.parametrize("published", [0.3, "above 0", "about 0"])
def test_no_number_is_not_measured_and_no_interval_is_undecided(published):
    assert judged(np.nan, np.nan, published) == UNMEASURED
    ours = pd.DataFrame({"estimate": [0.3, 0.3], "low": [np.nan, 0.2], "high": [0.4, np.nan]})
    assert verdicts.beside(ours, published)["verdict"].tolist() == [UNDECIDED] * 2


def test_every_verdict_names_its_rule():
    ours = pd.DataFrame({"estimate": [0.2] * 5, "low": 0.1, "high": 0.3})
    table = verdicts.beside(ours, ["above 0", "about 0.2", 0.2, 0.9, 0.2], tolerance=0.1, null=[0, 0, 0.5, None, 0.2])
    rules = ["above 0", "within 0.1 of 0.2", "within 0.1 of the interval, or side of 0.5", "no direction to compare", "within 0.1 of 0.2"]
    assert table["rule"].tolist() == rules
    assert table["verdict"].tolist() == [SAME, AGREES, AGREES, UNMEASURED, AGREES]
    with pytest.raises(ValueError, match=r"published.*over 0"):
        verdicts.read("over 0")
    assert verdicts.beside(ours, 0.2)["rule"].tolist() == ["in the interval, or side of 0"] * 5
    assert table["difference"].tolist() == pytest.approx([np.nan, 0, 0, -0.7, 0], nan_ok=True)  # a side is no number to differ from


def test_a_table_without_intervals_is_of_exact_numbers():
    table = verdicts.beside(pd.DataFrame({"ours": [0.25, 0.6, -0.2, 0.0]}), 0.3, tolerance=0.1)
    assert table["verdict"].tolist() == [AGREES, SAME, OPPOSITE, UNDECIDED]
    assert table["difference"].tolist() == pytest.approx([-0.05, 0.3, -0.5, -0.3])


@pytest.mark.parametrize(
    ("published", "given", "bounds", "smallest"),
    [
        ("above 0", {}, (-0.1, 0.4), 0.25),
        ("below 0.5", {}, (0.4, 0.6), 0.1),
        ("about 0", {"tolerance": 0.05}, (-0.1, 0.1), 0.15),
        (0.3, {}, (-0.2, 0.3), 0.25),
        (0.3, {"null": 0.5}, (0.1, 0.7), 0.3),
    ],
)
def test_what_is_undecided_comes_with_the_smallest_effect_that_could_have_been_seen(published, given, bounds, smallest):
    low, high = bounds
    ours = pd.DataFrame({"estimate": [(low + high) / 2], "low": low, "high": high})
    row = verdicts.beside(ours, published, **given).iloc[0]
    assert row["verdict"] == UNDECIDED and row["smallest"] == pytest.approx(smallest)
    null = given.get("null", float(str(published).split()[1]) if isinstance(published, str) else 0.0)
    half = (high - low) / 2
    for side in (-1, 1):
        for step, decided in ((0.001, True), (-0.001, False)):
            place = null + side * (smallest + step)
            assert (judged(place - half, place + half, published, **given) != UNDECIDED) == decided


@pytest.mark.parametrize(
    ("published", "given", "bounds", "expected"),
    [
        ("above 0", {"within": (0.0, 1.0)}, (0.1, 0.3), UNMEASURED),  # a share lies above 0 whatever happens
        ("below 1", {"within": (-1.0, 1.0)}, (0.1, 0.3), UNMEASURED),
        (0.4, {"within": (0.0, 1.0)}, (0.1, 0.3), UNMEASURED),
        ("above 0.2", {"within": (0.0, 1.0)}, (0.3, 0.4), SAME),
        (0.4, {"within": (-1.0, 1.0)}, (0.1, 0.3), SAME),
        ("about 1", {"within": (-1.0, 1.0), "tolerance": 0.1}, (0.95, 1.0), AGREES),  # nearness can fail at the end, too
        ("about 1", {"within": (-1.0, 1.0), "tolerance": 0.1}, (0.1, 0.3), OPPOSITE),
    ],
)
def test_a_null_at_the_end_of_what_is_possible_decides_nothing(published, given, bounds, expected):
    assert judged(*bounds, published, **given) == expected


def test_records_are_held_against_a_list_of_claims():
    def record(low: float, high: float) -> dict:
        return {"n": 9, "estimate": (low + high) / 2, "low": low, "high": high}

    cells = {"published": ["0.73", 0.9, "below 0", "about 0", "1"], "null": [0.5, np.nan, np.nan, np.nan, np.nan]}
    said = pd.DataFrame({"id": list("abcde"), "quantity": list("uvwxy"), **cells, "tolerance": [np.nan] * 3 + [0.3, np.nan]})
    ours = {"a": record(0.4, 0.8), "b": record(0.3, 0.6), "c": record(0.1, 0.3), "d": record(-0.1, 0.2)}
    table = verdicts.statements(ours | {"e": record(np.nan, np.nan)}, said)
    assert table["verdict"].to_dict() == {"u": UNDECIDED, "v": SAME, "w": OPPOSITE, "x": AGREES, "y": UNMEASURED}
    assert table.loc["v", "difference"] == pytest.approx(-0.45) and set(table["n"]) == {9}
    with pytest.raises(KeyError, match="e"):
        verdicts.statements(ours, said)


def test_a_claim_that_is_set_aside_gives_its_reason_and_no_verdict():
    table = verdicts.beside(pd.DataFrame({"ours": [0.5, 0.1], "low": [0.4, -0.1], "high": [0.6, 0.3]}, index=["a", "b"]), "below 0")
    assert table["verdict"].tolist() == [OPPOSITE, UNDECIDED]
    aside = results.set_aside(table, ["about larger sets", None])
    assert aside["verdict"].tolist() == [UNMEASURED, UNDECIDED] and aside["rule"].tolist() == ["about larger sets", "below 0"]
    other = results.set_aside(table, pd.Series([np.nan, "not significant"]))
    assert other["smallest"].isna().all() and other["verdict"].tolist() == [OPPOSITE, UNMEASURED]


def test_a_tolerance_widens_what_could_have_been_seen_of_a_level_alone():
    ours = pd.DataFrame({"ours": [0.1, 0.1], "low": [-0.1, -0.1], "high": [0.4, 0.4]})
    assert verdicts.beside(ours, ["above 0", "about 0"], tolerance=0.1)["smallest"].tolist() == pytest.approx([0.3, 0.4])
