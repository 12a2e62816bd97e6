"""Accuracies and the robustness score, by hand and from the published tables."""

import numpy as np
import pytest
from tiny_scenarios import SETTINGS, answers, found

from cnslib.data import published
from cnslib.stats import ranking
from cnslib.studies import published as implied
from cnslib.studies.scenarios import score
from cnslib.studies.scenarios.experiment2 import PRINTED, TRAINED


def test_the_score_by_hand():
    """Deviations 0.1 and 0.3 give 0.1 / 2 = 0.05; deviations 0 and 0.2 give 0.04 / 2 = 0.02; 1 - 0.07. With n - 1: 1 - 0.14."""
    cross, inner = np.array([0.8, 0.6]), np.array([0.9, 0.7])
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=0) == pytest.approx(0.93)
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=1) == pytest.approx(0.86)
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.8, ddof=1) == pytest.approx(1 - 0.1 - 0.02)
    with pytest.raises(ValueError, match=r"ddof: 2 is not accepted; accepted: 0 to 1"):
        score.variance(cross, mean=0.9, ddof=2)


def test_the_published_scores_follow_from_the_published_accuracies():
    """With each row's own mean and n - 1 the printed scores, Swin's two cells of mean 0 apart; by the equations those of `releases`."""
    accuracy = implied.rows("ximagenet12_table1", "accuracy_percent")
    means = implied.implied_means()["mean"]
    table = implied.scores()
    for model in table.index:
        rows = [accuracy[model, regime] for regime in implied.REGIMES]
        own = [means[model, regime] for regime in implied.REGIMES]
        printed = score.score(*rows, mean_cross=own[0], mean_inner=own[1], ddof=1)
        assert printed == pytest.approx(0.803 if model == "Swin" else table.loc[model, "printed"], abs=2e-3)
        assert score.score(*rows, mean_cross=own[0], mean_inner=own[0], ddof=0) == pytest.approx(table.loc[model, "as_defined"])
    zero = published.SCENARIOS.index("blur_object")
    assert score.variance(accuracy["Swin", "same scenario"][[zero]], mean=0.0, ddof=0) == pytest.approx(0.5628, abs=1e-4)


def test_accuracies_and_drops_are_shares_of_objects():
    own = dict.fromkeys(TRAINED, 0.5) | {"unshifted": 1.0}
    table = found({"a": own, "b": own | {"grey": 0.25}})
    assert table.n == 20 and table.models == ["a", "b"]
    assert np.allclose(table.of("grey")[0, :, 0], [0.5, 0.25]) and np.allclose(table.drops(["grey"])[0, :, 0], [0.5, 0.75])
    low, high = np.percentile(table.of("grey")[1:, 0, 0], [2.5, 97.5])
    assert low < 0.5 < high
    with pytest.raises(ValueError, match="answers: 20 is not accepted; accepted: none missing"):
        score.accuracies(answers({"a": own}).query("shift != 'grey'"), TRAINED, settings=SETTINGS.bootstrap)


def test_table_1_has_a_row_per_experiment_and_model_and_a_column_per_scenario():
    own = dict.fromkeys(TRAINED, 0.5)
    form = score.printed_form(score.table1({"EX1": found({"a": own}), "EX2": found({"a": own, "b": own})}))
    assert list(form.index) == [("EX1", "a"), ("EX2", "a"), ("EX2", "b")] and list(form.columns) == list(TRAINED)
    assert form.loc[("EX1", "a"), "grey"].startswith("0.50 (0.")


def test_scores_state_both_conventions():
    """EX1 loses 0.5 everywhere; EX2 nothing, but started at 0.5 below. So its own mean forgives it, the equations do not."""
    ex1 = found({"a": dict.fromkeys(TRAINED, 0.5) | {"unshifted": 1.0}})
    ex2 = found({"a": dict.fromkeys(TRAINED, 0.5)})
    table = score.scores(ex1, ex2, PRINTED).set_index("convention")["estimate"]
    assert table["Eqs. 1 to 3"] == pytest.approx(1 - 0.25 - 0.25)
    assert table["as Table 2 is printed"] == pytest.approx(1 - 0.25 * 8 / 7)


def test_agreement_is_kendalls_tau():
    """Of three pairs two are in the same order: (2 - 1) / 3."""
    assert ranking.kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(1 / 3)
    assert np.allclose(ranking.kendall(np.array([[1.0, 2.0]] * 2), np.array([[1.0, 2.0], [2.0, 1.0]])), [1, -1])
