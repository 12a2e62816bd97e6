"""The comparison behind `make repro`."""

import json

from cnslib import reproduce

CSV = b"shift,estimate\nheavy snow,0.50\n"
METRIC = {"accuracy": {"n": 10, "estimate": 0.5, "low": 0.4, "high": 0.6}}


def test_equal_bytes_are_identical_and_last_digits_are_within_tolerance():
    assert reproduce.verdict("a.csv", CSV, CSV) == "identical"
    assert reproduce.verdict("a.csv", CSV, CSV.replace(b"0.50", b"0.501")) == "within tolerance"


def test_other_numbers_rows_or_labels_differ():
    for other in (CSV.replace(b"0.50", b"0.60"), CSV + b"heavy fog,0.1\n", CSV.replace(b"snow", b"rain")):
        assert reproduce.verdict("a.csv", CSV, other).startswith("differs")


def test_metrics_are_compared_number_by_number():
    old = json.dumps(METRIC).encode()
    new = json.dumps({"accuracy": METRIC["accuracy"] | {"estimate": 0.9}}).encode()
    assert reproduce.verdict("m.json", old, old + b"\n") == "within tolerance"
    assert reproduce.verdict("m.json", old, new).startswith("differs")


def test_missing_and_new_results_are_reported_and_the_summary_counts():
    verdicts = reproduce.compare({"figures/a.csv": CSV, "figures/b.csv": CSV}, {"figures/a.csv": CSV, "metrics/c.json": b"{}"})
    assert verdicts == {"figures/a.csv": "identical", "figures/b.csv": "was not made", "metrics/c.json": "is not committed"}
    assert reproduce.summary(verdicts).startswith("reproduced: 1 of 2 figures identical; 1 of 3")
