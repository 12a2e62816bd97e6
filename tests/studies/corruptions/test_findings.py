"""What is said of orders and drops, from numbers that are known."""

import numpy as np
import pandas as pd
import pytest

from cnslib.stats import accuracy, verdicts
from cnslib.stats.accuracy import ALL, Shares
from cnslib.studies.corruptions import findings, levels

MODELS = ["a", "b", "c", "d"]


def shares(values, *, noise=0.0, seed=0, groups=None):
    """Error rates [shifts models scales] of 100 pictures per shift with noisy resamples; the last group is their mean."""
    own = np.array(values, float)
    own = np.concatenate([own, own.mean(0, keepdims=True)])
    resamples = own + np.random.default_rng(seed).normal(0, noise, (300, *own.shape))
    names = [*(groups or [f"shift {i}" for i in range(len(own) - 1)]), ALL]
    return Shares(np.concatenate([own[None], resamples]), names, np.full(len(own), 100), MODELS, [0.0, 1.0, 5.0][: own.shape[-1]], 0.95)


def record(estimate, low, high):
    return {"n": 10, "estimate": estimate, "low": low, "high": high}


def tau(both, control, lost=(0.5, 0.2, 0.8)):
    return {findings.BOTH: record(*both), findings.CONTROL: record(*control), findings.LOST: record(*lost)}


UP, DOWN = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]


def test_the_control_compares_pictures_and_not_what_was_done_to_them():
    start = np.array([UP, DOWN])[:, :, None]  # the shifted benchmark starts in one order, the corrupted one in the other
    later = start + np.array([0.1, 0.2, 0.3, 0.4])[None, :, None]  # and all lose alike
    sliders, corrupted = (shares(np.concatenate([start[i : i + 1], later[i : i + 1]], -1), groups=["fog"]) for i in range(2))
    clean = shares(start[1:], groups=["catalog"])
    found = findings.agreements(sliders, corrupted, clean)
    assert found[findings.CONTROL]["estimate"] == -1 and found[findings.LOST]["estimate"] == 1
    assert list(found)[-1] == "sliders and fog"


@pytest.mark.parametrize(
    ("both", "control", "verdict", "words"),
    [
        ((-0.1, -0.4, 0.1), (0.2, 0.0, 0.4), verdicts.UNDECIDED, "cannot be told apart"),
        ((-0.1, -0.4, 0.1), (0.6, 0.5, 0.8), verdicts.SAME, "further than"),
        ((0.9, 0.8, 1.0), (0.2, 0.0, 0.4), verdicts.OPPOSITE, "nearer than"),
    ],
)
def test_corruptions_are_no_stand_in_only_beyond_the_control(both, control, verdict, words):
    found = findings.stand_in(tau(both, control))
    assert found["verdict"].tolist() == [verdict] and words in findings.conclusion(tau(both, control))
    assert found["smallest"].notna().tolist() == [verdict == verdicts.UNDECIDED]


def test_the_moral_follows_the_sign_of_the_order_by_loss():
    for lost, words in {(0.5, 0.2, 0.8): "little to the other:", (-0.5, -0.8, -0.2): "lose much", (0.1, -0.2, 0.3): "stays open"}.items():
        assert words in findings.moral(tau((0, 0, 0), (0, 0, 0), lost))
    assert findings.moral(tau((0, 0, 0), (0, 0, 0))).endswith("tau is 0.50 (0.20 to 0.80)")


def test_an_order_that_surely_turns_holds_the_claim_and_one_that_stays_is_no_proof():
    turning = shares([[[0.1, e, e] for e in UP], [[0.1, e, e] for e in DOWN]], noise=0.005)
    still = shares([[[0.1, e, e] for e in UP]] * 2, noise=0.005)
    contrast = shares([[[a, b, b] for a, b in zip(UP, DOWN, strict=True)]], noise=0.005)
    table = findings.order_claims(turning, contrast, still)
    assert table["pairs"].tolist() == [6, 6, 6] and table["surely turned"].tolist() == [6, 6, 0]
    assert table["verdict"].tolist() == [verdicts.SAME, verdicts.SAME, verdicts.UNDECIDED]


def test_the_hardest_corruption_is_named_with_its_drop():
    errors = shares([[[0.1, 0.2, 0.3]] * 4, [[0.1, 0.3, 0.8]] * 4], groups=["fog", "snow"])
    drops = accuracy.accuracy_drop(errors)
    assert findings.hardest(drops) == (
        "At severity 5 most is lost under snow (0.70 of accuracy) and least under fog (0.20 of accuracy), mean over the classifiers"
    )
    assert findings.at_start(errors) == pytest.approx(0.9) and findings.at_end(errors)["snow"]["estimate"] == pytest.approx(0.2)
    assert "90% of the photographs right, and at the last severity 20% under snow and 70% under fog" in findings.photo_words(errors)


def test_kinds_are_averaged_in_the_papers_order():
    names = list(levels.EFFECTS)
    errors = shares([[[0.0, 0.1, place / 100]] * 4 for place in range(15)], groups=names)
    table = findings.by_kind(accuracy.accuracy_drop(errors))
    assert list(table.index) == ["noise", "blur", "weather", "digital"]
    assert table[5.0].tolist() == pytest.approx([0.01, 0.045, 0.085, 0.125])


def test_movers_count_what_is_certain_and_name_the_furthest():
    changes = pd.DataFrame({"model": ["a", "b", "c"], "estimate": [-3.0, 5.0, 1.0], "low": [-5, 2, -1], "high": [-1, 7, 2]})
    said = findings.movers(changes, confidence=0.9)
    assert (
        said.startswith("2 of 3 classifiers surely stand at") and "most of all b (+5 places); of 3 intervals that stand alone, 0.3" in said
    )
    assert findings.movers(changes.iloc[1:], confidence=0.9).startswith("1 of 2 classifiers surely stands at another place")
    none = (
        "0 of 1 classifiers surely stand at another place under corruptions than under sliders; of 1 intervals that stand alone, 0.1 would"
    )
    assert findings.movers(changes.iloc[2:], confidence=0.9) == f"{none} leave out zero by luck"


def test_levels_of_contrast_are_told_from_other_corruptions():
    rows = pd.DataFrame({"shift": ["contrast", "fog", "unshifted"], "x": [1, 2, 3]})
    assert findings.contrast_rows(rows)["x"].tolist() == [1, 3]
    errors = shares([[[a, b, b] for a, b in zip(UP, DOWN, strict=True)]], groups=["contrast"])
    assert findings.fading(errors)["estimate"].tolist() == [1, -1, -1]
    assert "tau of -1.00 (-1.00 to -1.00)" in findings.contrast_words(findings.fading(errors))
    both = findings.contrast_tables(errors)
    assert set(both["measure"]) == {"drop", "rank"} and set(both["shift"]) == {"contrast"}


def test_ratios_say_the_best_and_the_worst_and_over_how_many_corruptions():
    errors = shares([[[0.1, 0.2, e] for e in UP], [[0.1, 0.1, 0.1] for _ in UP]])  # under the second the reference loses nothing
    ratios, means, left_out = findings.mean_ratios(errors, reference="d")
    said = findings.extremes(means, left_out)
    assert said == "By CE a is best (0.75) and d worst (1.00). CE averages 2 of 2 corruptions, rCE averages 1 of 2 corruptions"
    assert set(ratios) == set(means) == set(left_out) == {"CE", "rCE"}
    assert "corruptions with at least" in findings.COUNTED and "trajectories" not in findings.COUNTED


def test_the_same_objects_are_compared_under_both():
    corrupted = pd.DataFrame({"shift": ["unshifted", "fog"], "class": ["owl", "owl"], "seed": [1, 1]})
    rendered = pd.DataFrame({"shift": ["snow", "snow"], "class": ["owl", "fox"], "seed": [1, 1]})
    assert findings.same_objects(rendered, corrupted)["class"].tolist() == ["owl"]
    one, other = shares([[[0.1, 0.2, e] for e in UP]]), shares([[[0.1, 0.2, e] for e in DOWN]])
    table = findings.beside_shifts(one, other)
    assert table["place"].tolist() == [1, 2, 3, 4, 4, 3, 2, 1]
    assert table["estimate"].iloc[3] == pytest.approx((0.1 + 0.3) / 2)


def test_strips_have_the_picture_first():
    plain = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    graded = {name: levels.published(64)[name] for name in ("contrast", "pixelate")}
    strips = findings.strips(plain, pd.DataFrame({"class": ["bag"], "seed": [1]}), graded)
    assert strips.shape == (2, 6, 64, 64, 3)
    np.testing.assert_array_equal(strips[:, 0], np.repeat(plain, 2, 0))
    grey = np.full((2, 2, 4, 4, 3), 100, np.uint8)
    grey[0, 1] += 7
    said = "At the last severity fog (7 grey levels) changes this picture most and frost (0 grey levels) least"
    assert findings.strip_words(grey, ["fog", "frost"]) == said
