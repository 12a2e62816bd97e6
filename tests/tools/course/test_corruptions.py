"""Lesson 2 on two corruptions with errors that can be summed by hand."""

import numpy as np
import pandas as pd
import pytest
from tiny_course import told_mistakes

from cnslib.core.settings.method import Bootstrap
from cnslib.tools.course import corruptions

OWN = {"noise": [0.05, 0.2, 0.4, 0.6], "blur": [0.1, 0.1, 0.2, 0.3]}
REFERENCE = {"noise": [0.2, 0.4, 0.5, 0.6], "blur": [0.2, 0.2, 0.3, 0.4]}


def table() -> pd.DataFrame:
    """Errors by severity 0 to 3."""
    named = {"m": OWN, "alexnet": REFERENCE}
    rows = [(model, name, float(s), e) for model, all in named.items() for name, row in all.items() for s, e in enumerate(row)]
    return pd.DataFrame(rows, columns=["model", "corruption", "severity", "error"])


@pytest.fixture(scope="module")
def sheet():
    pictures = np.full((2, 2, 3), 100, np.uint8), np.full((2, 2, 3), 110, np.uint8)
    pictures[1][0] = 60  # forty lower, where the other row is ten higher
    return corruptions.sheet(table(), model="m", reference="alexnet", corruption="noise", pictures=pictures)


def test_the_distance_is_a_mean_of_absolute_differences(sheet):
    assert sheet.check("distance", (40 + 10) / 2 / 255).right
    assert "cancel" in sheet.check("distance", (-40 + 10) / 2 / 255).text
    assert "Bytes" in sheet.check("distance", ((256 - 40) + 10) / 2 / 255).text


def test_ce_is_a_ratio_of_sums_without_the_original(sheet):
    assert sheet.check("ce", 1.2 / 1.5).right
    assert "averaged ratios" in sheet.check("ce", (0.2 / 0.4 + 0.4 / 0.5 + 0.6 / 0.6) / 3).text
    assert "severity 0" in sheet.check("ce", 1.25 / 1.7).text


def test_mce_divides_before_it_averages(sheet):
    assert sheet.check("mce", (1.2 / 1.5 + 0.6 / 0.9) / 2).right
    assert "before dividing" in sheet.check("mce", 1.8 / 2.4).text
    assert "1 minus accuracy" in sheet.check("mce", 1.8 / 6).text


def test_rce_subtracts_the_original_at_every_severity_from_both(sheet):
    assert sheet.check("rce", (1.2 - 0.15) / (1.5 - 0.6)).right
    assert "every severity" in sheet.check("rce", (1.2 - 0.05) / (1.5 - 0.2)).text
    assert "reference's error" in sheet.check("rce", 1.05 / 1.5).text


def test_half_is_exceeded_by_noise_at_3_and_by_blur_never(sheet):
    assert sheet.check("half", pd.Series({"blur": np.inf, "noise": 3})).right
    assert "`np.inf`, not missing" in sheet.check("half", pd.Series({"blur": np.nan, "noise": 3})).text
    assert "last severities" in sheet.check("half", pd.Series({"blur": 3, "noise": 2})).text


def test_every_known_mistake_is_told(sheet):
    assert min(told_mistakes(sheet).values()) >= 3


def test_errors_begin_at_the_original_under_every_corruption():
    rows = [("m", "unshifted", "bag", seed, 0.0, "bag" if seed < 3 else "shoe") for seed in range(4)]
    rows += [
        ("m", name, "bag", seed, 1.0, "bag" if seed < right else "shoe")
        for name, right in {"noise": 1, "blur": 2}.items()
        for seed in range(4)
    ]
    answers = pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])
    found = corruptions.errors(answers, settings=Bootstrap(resamples=10, confidence=0.95, seed=1, target="same classes"))
    assert found.set_index(["corruption", "severity"])["error"].to_dict() == {
        ("blur", 0.0): 0.25, ("blur", 1.0): 0.5, ("noise", 0.0): 0.25, ("noise", 1.0): 0.75,
    }  # fmt: skip
