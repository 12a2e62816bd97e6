"""Captions about survival: the numbers of hand-made tables stand in the sentences."""

import numpy as np
import pandas as pd

from cnslib.plots.captions import failure
from cnslib.stats.accuracy import ALL

ROWS = [
    (ALL, "a", 0.9, 0.5),
    (ALL, "b", 0.7, 0.5),
    ("snow", "a", 0.9, 0.1),
    ("snow", "b", 0.7, 0.1),
    ("fog", "a", 0.9, 0.9),
    ("fog", "b", 0.7, 0.7),
]
SURVIVAL = pd.DataFrame(
    [(s, m, scale, v) for s, m, *both in ROWS for scale, v in zip((0.0, 2.5), both, strict=True)],
    columns=["shift", "model", "scale", "estimate"],
)


def test_survival_is_told_at_both_ends():
    assert failure.survival(SURVIVAL, [300], note="x").startswith("Of all trajectories 80% survive scale 0 and 50% the last")
    seen = failure.survival_seen(SURVIVAL)
    assert "lost under snow (70%) and fewest under fog (0%); a (40%) loses most, b (20%) least" in seen


def test_infinite_medians_are_counted():
    rows = [(ALL, "a", 1.0), ("snow", "a", 0.5), ("snow", "b", 1.5), ("fog", "a", np.inf), ("fog", "b", 0.0)]
    seen = failure.median_seen(pd.DataFrame(rows, columns=["shift", "model", "estimate"]))
    assert seen.startswith("In 1 of 4 pairs") and seen.endswith("earliest under snow: a by scale 0.5.")
    assert failure.median_seen(pd.DataFrame(rows[3:4], columns=["shift", "model", "estimate"])).endswith("outlive the slider.")


def test_definitions_are_compared_at_the_last_scale():
    rows = [
        ("over trajectories", "a", 0.0, 0.1),
        ("over trajectories", "a", 1.0, 0.2),
        ("per model", "a", 0.0, 0.3),
        ("per model", "a", 1.0, 0.7),
    ]
    table = pd.DataFrame(rows, columns=["definition", "model", "scale", "estimate"])
    caption = failure.definitions(table, 300, note="x")
    assert caption.startswith(
        "At scale 1 the mean bar is per model (0.70) by one definition and over trajectories (0.20) by another. n = 300"
    )
    assert "from 0.30 (a) to 0.30 (a), the share that fails at all" in failure.definitions_seen(table)


def test_the_answer_holds_fates_pairs_and_recovery():
    fate = {"before any shift": {"estimate": 0.2, "low": 0.1, "high": 0.3}, "never": {"estimate": 0.5, "low": 0.4, "high": 0.6}}
    text = failure.answer(fate, (3, 10), pd.Series([0.05, 0.2]))
    assert (
        "fail 20% (10% to 30%) before any shift, 50% (40% to 60%) never; 3 of 10 pairs" in text and "5% to 20% of the trajectories" in text
    )
