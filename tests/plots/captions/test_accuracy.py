"""Captions about accuracy along the scale: the numbers of hand-made tables stand in the sentences."""

import pandas as pd

from cnslib.plots.captions import accuracy
from cnslib.stats.accuracy import ALL, NEVER

HARDEST = pd.DataFrame(
    {"shift": ["snow", "fog"], "n": [60, 80], "estimate": [0.4, 0.1], "low": [0.3, 0.0], "high": [0.5, 0.2], "probability": [0.9, 0.1]}
)


def table(rows: list[tuple], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns).assign(n=60)


def test_accuracy_is_told_by_the_hardest_and_the_mildest_shift():
    curves = table(
        [("snow", "vit", 0.0, 0.9), ("snow", "vit", 1.0, 0.5), ("fog", "vit", 0.0, 0.8), ("fog", "vit", 1.0, 0.85)],
        ["shift", "model", "scale", "estimate"],
    )
    caption = accuracy.by_shift(curves, HARDEST, note="x")
    assert caption.startswith("Most is lost under snow, 0.40 of accuracy in the mean of all classifiers. n = 60 trajectories per shift")
    seen = accuracy.by_shift_seen(curves, HARDEST)
    ends = "from 0.40 (0.30 to 0.50) under snow to 0.10 (0.00 to 0.20) under fog"
    assert seen.endswith(f"{ends}. 1 of 2 curves rise at the first step; which of them do so by chance is not tested.")
    none = accuracy.by_shift_seen(curves[curves["shift"] == "snow"], HARDEST)
    assert none.endswith(f"{ends}. 0 of 1 curves rise at the first step.")


def test_drops_name_their_shifts_and_the_ends_of_the_classifiers():
    assert "lower by 0.40 under snow and by 0.10 under fog" in accuracy.drop(HARDEST, ["snow", "fog"], 2.5, note="x")
    drops = table([(ALL, "vit", 1.0, 0.3), (ALL, "resnet", 1.0, 0.5), (ALL, "mae", 0.0, 0.9)], ["shift", "model", "scale", "estimate"])
    seen = accuracy.drop_seen(drops, HARDEST)
    assert seen.startswith("Over all shifts and at the last scale resnet (0.50) loses most accuracy and vit (0.30) least.")
    assert seen.endswith("The hardest shift is snow, with probability 90%.")
    nearly = HARDEST.assign(probability=[0.996, 0.004])
    assert accuracy.drop_seen(drops, nearly).endswith("with probability over 99%.")


def test_failures_are_split_into_before_under_and_never():
    rows = [("vit", 0.0, 0.2), ("vit", 1.0, 0.3), ("vit", NEVER, 0.5), ("mae", 0.0, 0.4), ("mae", 1.0, 0.5), ("mae", NEVER, 0.1)]
    few = table(rows, ["model", "scale", "estimate"]).assign(shift="snow")
    assert accuracy.failures(few, ["snow"], note="x").startswith(
        "Trajectories on which the shift itself makes these classifiers fail: 40% under snow. n = 60"
    )
    seen = accuracy.failures_seen(few.assign(shift=ALL))
    assert "30% of the trajectories are wrong before any shift, 40% fail under one and 30% never." in seen


def test_strips_count_what_is_lost_on_the_way():
    lost = pd.DataFrame({"shift": ["fog", "snow"], "model": ["vit", "mae"], "failed": [True, True], "failure_point": [1.5, 0.0]})
    assert accuracy.strips(lost).startswith("1 of 2 garments shown are known without the shift")
    assert "from scale 0 (so mae under snow) to 1.5 (so vit under fog)" in accuracy.strips_seen(lost)
    assert accuracy.strips_seen(lost.assign(failed=False)) == "None of the garments shown is ever missed."


def test_the_two_ratios_are_compared_by_their_orders():
    means = {"CE": [0.5, 0.8, 1.0], "rCE": [1.2, 0.7, 1.0]}
    tables = {name: pd.DataFrame({"estimate": values}, index=["vit", "mae", "alexnet"]) for name, values in means.items()}
    assert accuracy.errors(tables, 60, reference="alexnet", note="x").startswith(
        "CE is lowest for vit (0.50) and highest for alexnet (1.00). n = 60"
    )
    seen = accuracy.errors_seen(tables)
    assert "Kendall's tau -0.33. vit moves most, from place 1 by CE to 3 by rCE" in seen
    assert accuracy.errors_seen(tables | {"rCE": tables["CE"]}).endswith("tau 1.00: nobody changes places.")
    assert accuracy.errors_seen(tables | {"rCE": tables["rCE"] * float("nan")}).startswith("rCE is not known")


def test_the_answer_holds_both_ends_and_both_targets():
    ends = pd.DataFrame({"estimate": [0.8, 0.5], "low": [0.7, 0.4], "high": [0.9, 0.6]}, index=[0.0, 2.5])
    text = accuracy.answer(ends, ends.assign(low=0.1, high=0.7), ends, HARDEST, 23)
    assert text.startswith(
        "**Averaged over 23 classifiers, accuracy falls from 0.80 (0.70 to 0.90) to 0.50 (0.40 to 0.60) at scale 2.5 (for"
    )
    assert "other classes 0.10 to 0.70; with every shift alike from 0.80 to 0.50)" in text and "probability 90%" in text
    assert accuracy.pool(["web"], 22, 23) == "without web: 22 of 23 classifiers" and accuracy.pool([], 2, 2).startswith("without any")
