"""Captions about survival: the numbers of hand-made tables stand in the sentences."""

import numpy as np
import pandas as pd

from cnslib.plots.captions import failure
from cnslib.stats.accuracy import ALL
from cnslib.stats.failure import FATES

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
    table = pd.DataFrame(rows, columns=["shift", "model", "estimate"]).assign(n=60)
    seen = failure.median_seen(table)
    assert seen.startswith("In 1 of 4 pairs") and seen.endswith("The earliest median is scale 0.5, in one pair: a under snow.")
    tied = failure.median_seen(table.assign(n=[0, 60, 70, 60, 60], estimate=[1.0, 0.5, 0.5, np.inf, 0.0]))
    assert tied.endswith("The earliest median is scale 0.5, in 2 pairs, among them b under snow.")
    assert failure.median_seen(table[3:4]).endswith("never fail up to the last scale.")


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
        "At scale 1 the mean bar is 0.70 by the definition called per model and 0.20 by the definition called over trajectories. n = 300"
    )
    assert "from 0.30 (a) to 0.30 (a), the share that fails at all, scale 0 included" in failure.definitions_seen(table)


def test_the_answer_keeps_failures_before_and_under_the_shift_apart():
    fate = {name: {"estimate": x, "low": x - 0.1, "high": x + 0.1} for name, x in zip(FATES, (0.2, 0.3, 0.5), strict=True)}
    text = failure.answer(fate, (3, 10), pd.Series([0.05, 0.2]), 2.5)
    assert "50% (40% to 60%) of the trajectories do not fail up to the last scale, 2.5; 30% (20% to 40%) fail under the shift" in text
    assert "and 20% (10% to 30%) before any shift.** 3 of 10 pairs" in text and "5% to 20% of the trajectories are right again" in text
