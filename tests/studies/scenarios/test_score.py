"""Accuracies, the robustness score by hand and from the published tables, and the claims that rest on them."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Scenarios
from cnslib.data import published
from cnslib.stats import ranking, verdicts
from cnslib.studies.published import releases
from cnslib.studies.scenarios import claims, score
from cnslib.studies.scenarios.experiment2 import PRINTED, TRAINED

SETTINGS = Scenarios(
    bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1), seed=1, classifiers={"x": "lite:0"},
    cutouts=2, backbones={"x": "x"}, images=1,
    severities=[0.0, 1.0], photo_severities=[0.0, 1.0], drawing_steps=1, guidance=1.0, training_images=1, steps=1,
    batch_size=1, learning_rate=0.1, average=0.9,
)  # fmt: skip


def answers(shares, objects=20):
    """Replies of models whose first `share` of the objects is right under each scenario."""
    rows = [
        (model, name, "bag", number, float(name != "unshifted"), "bag" if number < share * objects else "shoe")
        for model, own in shares.items()
        for name, share in own.items()
        for number in range(objects)
    ]
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])


def found(shares):
    return score.accuracies(answers(shares), TRAINED, settings=SETTINGS.bootstrap)


def test_the_score_by_hand():
    """Deviations 0.1 and 0.3 give 0.1 / 2 = 0.05; deviations 0 and 0.2 give 0.04 / 2 = 0.02; 1 - 0.07. With n - 1: 1 - 0.14."""
    cross, inner = np.array([0.8, 0.6]), np.array([0.9, 0.7])
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=0) == pytest.approx(0.93)
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=1) == pytest.approx(0.86)
    assert score.score(cross, inner, mean_cross=0.9, mean_inner=0.8, ddof=1) == pytest.approx(1 - 0.1 - 0.02)
    with pytest.raises(ValueError, match=r"ddof: 2 is not accepted; accepted: 0 to 1"):
        score.variance(cross, mean=0.9, ddof=2)


def test_the_published_scores_follow_from_the_published_accuracies():
    """With each row's own mean and n - 1 the printed scores, Swin's two cells of mean 0 apart; by the equations those of `siblings`."""
    accuracy = releases.rows("ximagenet12_table1", "accuracy_percent")
    means = releases.implied_means().set_index(["model", "trained_on"])["mean"]
    table = releases.sibling_scores()
    for model in table.index:
        rows = [accuracy[model, regime] for regime in releases.REGIMES]
        own = [means[model, regime] for regime in releases.REGIMES]
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


def test_the_claims_come_out_as_the_answers_were_made():
    """A random background costs 0.8, segmented 0.4, the rest nothing; EX2 loses nothing; the more accurate model is less stable."""
    steady = dict.fromkeys(TRAINED, 0.7) | {"random background": 0.5}
    shaky = dict.fromkeys(TRAINED, 1.0) | {"random background": 0.2, "segmented": 0.6}
    ex1, ex2 = (
        found({"steady": steady, "shaky": shaky}),
        found({"steady": dict.fromkeys(TRAINED, 0.9), "shaky": dict.fromkeys(TRAINED, 0.9)}),
    )
    table = claims.against_paper(ex1, ex2, ex1)
    first, inner, tau = table.iloc[1], table.iloc[3], table.iloc[6]
    assert first["ours"] == pytest.approx(0.5 - 0.2) and first["verdict"] == "agrees" and "(segmented)" in first["quantity"]
    assert inner["ours"] == pytest.approx(0) and inner["verdict"] == "agrees"
    assert tau["ours"] == pytest.approx(-1) and tau["verdict"] == "same direction"
    assert table.iloc[-1]["ours"] == pytest.approx(0.9 - 0.35)


def test_the_third_conclusion_rests_on_the_accuracy_on_imagenet():
    """On the paper's own originals one of ten pairs of models is out of order, Swin and ViT: (9 - 1) / 10. With ImageNet's most are."""
    own = dict.fromkeys(TRAINED, 0.5)
    lines = claims.stable(found({"a": own, "b": own | {"grey": 0.25}}), "x")
    assert lines[0]["published"] == pytest.approx(0.8) and lines[1]["published"] < 0


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.04, 0.1, "agrees"), (-0.1, 0.1, "undecided"), (-0.3, -0.1, "opposite direction")])
def test_no_loss_is_decided_by_the_margin(low, high, verdict):
    ours = pd.DataFrame({"estimate": [(low + high) / 2], "low": low, "high": high})
    assert verdicts.beside(ours, 0.0, null=claims.NO_LOSS)["verdict"].item() == verdict
