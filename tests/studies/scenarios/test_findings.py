"""What notebook 40 says: each sentence follows its numbers, and changes with them."""

import numpy as np
import pandas as pd
import pytest
from tiny_scenarios import found

from cnslib.studies.scenarios import findings
from cnslib.studies.scenarios.experiment2 import TRAINED
from cnslib.studies.scenarios.score import CONVENTIONS


def losses(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["scenario", "estimate", "low", "high"]).assign(p_holm=lambda t: np.where(t["low"] <= 0, 0.5, 0.01))


def test_survival_names_the_two_ends_of_the_order_and_their_mean_accuracy():
    at_end = pd.DataFrame({"scenario": ["grey", "grey", "segmented"], "estimate": [0.8, 0.9, 0.1]})
    said = findings.survival(["segmented", "grey"], at_end, 0.9)
    assert said == "Fewest garments survive 'segmented' (accuracy 0.10), most 'grey' (accuracy 0.85); before any change it is 0.90"


def test_experiments_follow_the_scenario_that_is_worst_before_the_training():
    plain = dict.fromkeys(TRAINED, 1.0)
    before, after = found({"x": plain | {"segmented": 0.1}}), found({"x": plain | {"segmented": 0.75, "grey": 0.05}})
    said = findings.experiments(before, after)
    assert said.startswith("Under 'segmented' backbones trained on originals name 10% (1% to 31%) of the garments right, those trained")
    assert said.endswith("trained within it 75% (53% to 92%)")


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (-0.01, "In the last third no interval of a gain lies above zero; the most is 'segmented', 0.02 (-0.01 to 0.05)"),
        (
            0.01,
            "In the last third accuracy still rises in 1 of 2 kinds of training, 'segmented' by 0.020 (0.010 to 0.050); of 2 intervals "
            "that stand alone, one may lie above zero by luck",
        ),
    ],
)
def test_a_training_that_still_gains_is_not_called_finished(low, said):
    assert findings.learning(losses(("segmented", 0.02, low, 0.05), ("grey", 0.0, -0.01, 0.01))) == said


def test_the_best_score_is_named_by_each_reading():
    first, second = CONVENTIONS
    rows = [("a", first, 0.9), ("b", first, 0.8), ("a", second, 0.7), ("b", second, 0.75)]
    table = pd.DataFrame([(*row, row[2], row[2]) for row in rows], columns=["model", "convention", "estimate", "low", "high"])
    said = findings.scores(table.assign(exceeds=[1, 0, 0, 0]))
    assert said.startswith(f"The highest score, {first}: 'a', 0.90 (0.90 to 0.90), surely above 1 of 1 others; {second}: 'b', 0.75")
    assert said.endswith("surely above 0 of 1 others")


def test_coefficients_count_what_certainly_costs_accuracy():
    rows = losses(("grey", -0.1, -0.2, 0.1), ("segmented", -0.5, -0.6, -0.4)).assign(regression="clustered", set="garments")
    other = losses(("grey", -0.9, -1.0, -0.8), ("segmented", -0.5, -0.6, -0.1)).assign(regression="mixed", set="garments")
    said = findings.coefficients(pd.concat([rows, other]))
    assert (
        said
        == "Scenarios that certainly cost accuracy by their clustered intervals, taken one by one: 1 of 2 on garments (mixed: 2), most of "
        "it 'segmented', -0.50 (-0.60 to -0.40)"
    )


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (
            0.1,
            "On photographs a classifier looks at the background, too: 1 of 1 changed ones surely cost accuracy, most 'random background'",
        ),
        (
            -0.1,
            "On photographs none of 1 changed backgrounds surely costs accuracy; 'random background' costs most, 0.30 (-0.10 to 0.40)",
        ),
    ],
)
def test_the_answer_passes_over_scenarios_that_change_the_object_and_asks_every_set(low, said):
    costs = {
        "photographs": losses(("summed background", 0.9, 0.8, 1.0), ("random background", 0.3, low, 0.4)),
        "garments": losses(("blurred object", 0.6, 0.5, 0.7), ("segmented", 0.5, 0.4, 0.6)),
    }
    less = {"estimate": 0.2, "low": 0.1, "high": 0.3}
    claims = pd.DataFrame({"claim": ["a", "a", "b"], "verdict": ["agrees", "undecided", "agrees"]})
    text = findings.answer(costs, less, claims, confidence=0.95)
    assert text.startswith(said) and "On garments a classifier looks at the background, too: 1 of 1" in text
    assert "After training on random backgrounds these cost garments less than before: 0.20 (0.10 to 0.30) less, each" in text
    other = findings.answer(costs, less | {"low": -0.1}, claims, confidence=0.95)
    assert "is undecided: 0.20 (-0.10 to 0.30) less" in other
    worse = findings.answer(costs, {"estimate": -0.2, "low": -0.3, "high": -0.1}, claims[:1], confidence=0.95)
    assert "cost garments more than before: 0.20 (0.10 to 0.30) more, each" in worse and "1 test of 1 claim of the paper: 1 holds" in worse
    assert "On garments none of 1" in findings.answer(costs, less, claims, confidence=0.999)  # where p is 0.01
    assert text.endswith("3 tests of 2 claims of the paper: 2 hold, 0 opposite, 1 undecided and 0 not measured.")
