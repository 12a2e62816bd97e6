"""The axes: measures by hand, the guard of rCE, parameters, figures in the axis' order."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from test_stats import HAND, estimates, falling, predictions, random_predictions, shares
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.core.settings.analyses import AXES, Axes
from cnslib.core.settings.method import Bootstrap
from cnslib.plots import curves, figures
from cnslib.stats import accuracy, axes, bootstrap, verdicts

PARAMS = paths.ROOT / "params.yaml"


def test_along_repeats_a_classifier_on_each_of_its_axes_in_their_order():
    table = accuracy.accuracy_drop(shares(predictions(HAND))).query("shift == @accuracy.ALL and scale == 1")
    found = axes.along(table, {"architecture": ["resnet", "alexnet"], "pre-training": ["resnet"]})
    assert found[["axis", "model"]].to_numpy().tolist() == [
        ["architecture", "resnet"],
        ["architecture", "alexnet"],
        ["pre-training", "resnet"],
    ]
    assert found["estimate"].tolist() == pytest.approx([1 / 3, 1, 1 / 3])


def test_an_axis_with_an_unknown_classifier_is_named_with_the_accepted_ones():
    with pytest.raises(ValueError, match=r"axes\.members\.pre-training: 'vgg' is not accepted; accepted: alexnet, resnet"):
        axes.along(accuracy.accuracy_drop(shares(predictions(HAND))), {"pre-training": ["resnet", "vgg"]})


def test_the_average_drop_runs_over_all_scales_and_scale_0_counts_as_nothing():
    assert estimates(axes.average_drop(shares(predictions(HAND))), shift=accuracy.ALL) == pytest.approx([5 / 9, 2 / 9])
    assert estimates(axes.average_accuracy(shares(predictions(HAND))), shift=accuracy.ALL) == pytest.approx([4 / 9, 7 / 9])


def test_a_shift_under_which_the_reference_loses_nothing_is_reported_and_left_out():
    perfect = predictions({"alexnet": ["..."] * 30, "resnet": [".xx"] * 30})
    some = predictions({"alexnet": ["..x"] + ["..."] * 29, "resnet": [".xx"] * 30}, "heavy rain")
    errors = shares(pd.concat([perfect, some, random_predictions(12, shifts=("heavy fog",), trajectories=30)]))
    guard = axes.guarded(errors, reference="alexnet").set_index("shift")
    assert guard["defined"].to_dict() == {"heavy fog": True, "heavy rain": False, "heavy snow": False}
    assert guard.loc["heavy snow", ["estimate", "low", "high"]].tolist() == [0, 0, 0]
    assert guard.loc["heavy rain", "estimate"] == pytest.approx(1 / 30) and guard.loc["heavy rain", "n"] == 30


def test_the_resamples_of_rce_give_the_table_of_rce():
    errors = shares(random_predictions(3, trajectories=60))
    table = accuracy.relative_corruption_error(errors, reference="alexnet").query("shift == @accuracy.MEAN")
    found = axes.relative_errors(errors, reference="alexnet")
    assert found[0] == pytest.approx(table["estimate"].to_numpy())
    assert bootstrap.percentiles(found[1:], errors.confidence) == pytest.approx(table[["low", "high"]].to_numpy().T)


def test_rce_without_any_defined_shift_is_nan_and_never_infinite():
    errors = shares(predictions({"alexnet": ["..."] * 9, "resnet": [".xx"] * 9}))
    assert np.isnan(axes.relative_errors(errors, reference="alexnet")).all()


def test_equal_classifiers_that_differ_by_chance_have_no_deviation_between_them():
    """Six classifiers of accuracy one half on their own coins: their raw deviation is far above 0, the corrected one is near."""
    coins = np.random.default_rng(0).random((200, 6, 400)) < 0.5
    clusters = [coin[:, np.random.default_rng(i).integers(0, 400, (300, 400))].mean(-1).T for i, coin in enumerate(coins[:40])]
    found = [axes.deviation_between(np.vstack([coin.mean(-1), own])) ** 2 for coin, own in zip(coins[:40], clusters, strict=True)]
    raw = [coin.mean(-1).var(ddof=1) for coin in coins[:40]]
    assert np.mean([value[0] for value in found]) < 0.5 * np.mean(raw)


def test_the_deviation_between_classifiers_without_chance_is_the_standard_deviation():
    values = np.repeat([[0.1, 0.2, 0.4]], 50, axis=0)
    assert axes.deviation_between(values) == pytest.approx(np.full(50, np.std([0.1, 0.2, 0.4], ddof=1)))


def test_an_axis_stands_out_only_if_its_classifiers_differ_more_with_certainty():
    words = {"a": ["..."] * 40, "b": [".xx"] * 40, "c": ["..x"] * 10 + ["..."] * 30, "d": ["..."] * 30 + ["..x"] * 10}
    errors, members = shares(predictions(words)), {"wide": ["a", "b"], "narrow": ["c", "d"]}
    assert axes.stands_out(errors, members, "wide") and not axes.stands_out(errors, members, "narrow")
    found = axes.deviations_along(errors, members).set_index("axis")
    assert found.loc["wide", "estimate"] == pytest.approx(np.std([0, 2 / 3], ddof=1))
    assert found.loc["narrow", "low"] <= found.loc["narrow", "estimate"] <= found.loc["narrow", "high"]


def test_a_counterpart_is_judged_from_the_reference():
    """From the reference's 1: 0.7 is in the interval, 0.9 on its side, 1.2 on the other; an open interval decides nothing."""
    ours = pd.DataFrame({"axis": "size", "model": list("abcde"), "n": 9, "estimate": 0.7, "low": 0.6, "high": 0.8})
    ours.loc[3, "high"] = np.nan
    paper = pd.DataFrame({"axis": "size", "classifier": list("abcde"), "rCE": [0.7, 0.9, 1.2, 0.7, np.nan]})
    found = axes.compared(ours, paper, column="rCE")
    assert found["verdict"].tolist() == ["agrees", "same direction", "opposite direction", "undecided"]
    assert found["difference"].tolist() == pytest.approx([0, -0.2, -0.5, 0])
    level = axes.compared(ours, paper.rename(columns={"rCE": "accuracy"}), column="accuracy")
    assert set(level["verdict"]) == {"not measured"}


def test_the_order_agrees_fully_with_the_papers_where_it_is_the_same():
    words = {"a": falling([1, 0.9, 0.8], 50), "b": falling([1, 0.6, 0.5], 50), "c": falling([1, 0.3, 0.1], 50)}
    errors = shares(predictions(words))
    paper = pd.DataFrame({"axis": ["x"] * 4 + ["y"] * 3, "classifier": list("abcd") + list("abc"), "drop": [1, 2, 3, 0, 3, 2, 1]})
    found = axes.order_agreement(axes.drops(errors).mean(-1)[:, -1], errors, paper, column="drop")
    assert found[["estimate", "low", "high"]].to_numpy().tolist() == [[1, 1, 1], [-1, -1, -1]]
    assert found["n"].tolist() == [3, 3]


def settings(**changes) -> Axes:
    members = {axis: ["alexnet", "resnet"] for axis in AXES}
    return changed(Axes(Bootstrap(100, 0.95, 1), members, "alexnet", 0.05), **changes)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({axis: ["vit", "deit"] for axis in AXES[1:]}, r"axes\.members: .*accepted: the axes architecture"),
        ({axis: ["vit", "vit"] for axis in AXES}, r"axes\.members\.architecture: .*without repetitions"),
        ({axis: ["vit"] for axis in AXES}, r"axes\.members\.architecture: \['vit'\]"),
    ],
)
def test_axes_are_the_papers_and_hold_different_classifiers(members, message):
    with pytest.raises(ValueError, match=message):
        settings(members=members)


@pytest.mark.parametrize(("old", "new"), [("[vit_xs, vit_s,", "[vgg, vit_s,"), ("margin: 0.05", 'margin: 0.05\n  reference: "vgg"')])
def test_a_classifier_that_is_not_evaluated_is_named_when_the_parameters_are_read(tmp_path: Path, old, new):
    before, section, after = PARAMS.read_text().partition("\naxes:\n")
    after = after.replace('  reference: "alexnet"', "  #", 1) if "reference" in new else after
    assert old in after
    (tmp_path / "params.yaml").write_text(before + section + after.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"axes\..*'vgg' is not accepted; accepted: the keys of evaluation\.classifiers: .*resnet"):
        read.load(tmp_path / "params.yaml")


def test_curves_keep_the_order_of_the_axis_and_have_their_own_looks():
    table = accuracy.accuracy_drop(shares(random_predictions(4))).query("shift == @accuracy.ALL")
    figure, panel = plt.subplots()
    curves.axis_lines(panel, table, order=["resnet", "alexnet"], ordered=True)
    assert panel.get_legend_handles_labels()[1] == ["resnet", "alexnet"]
    drawn = next(line for line in panel.lines if line.get_label() == "resnet")
    assert drawn.get_ydata().tolist() == estimates(table, model="resnet")
    looks = curves.looks([f"model {i}" for i in range(22)], ordered=False)
    assert len({(tuple(look["color"]), look["marker"]) for look in looks.values()}) == 22
    plt.close(figure)


def test_dots_stand_in_the_order_of_the_rows_with_the_papers_beside_them():
    table = pd.DataFrame({"model": ["b", "a"], "estimate": [0.5, 0.7], "low": [0.4, 0.6], "high": [0.6, 0.9]})
    figure, panel = plt.subplots()
    curves.axis_dots(panel, table, label="rCE", reference=1.0, published=pd.Series({"a": 0.9}))
    assert [text.get_text() for text in panel.get_yticklabels()] == ["b", "a"] and panel.yaxis_inverted()
    diamonds = next(line for line in panel.lines if line.get_marker() == "D")
    assert np.isnan(diamonds.get_xdata()[0]) and diamonds.get_xdata()[1] == 0.9
    plt.close(figure)


def test_the_list_of_verdicts_shows_every_claim_once(tmp_path: Path):
    family, by_drop = ["x", "x", "y", "y", "y"], ["agrees", "", "", "", ""]
    table = pd.DataFrame({"claim": list("abcde"), "family": family, "verdict": verdicts.WORDS, "drop_verdict": by_drop})
    table = table.assign(estimate=[0.1, 0.1, -0.1, 0.0, np.nan], low=-0.2, high=0.2)
    figure, panel = plt.subplots()
    curves.verdict_rows(panel, table)
    assert [text.get_text() for text in panel.get_yticklabels()] == list("abcde")
    marks = [tuple(line.get_xydata()[0]) for line in panel.lines if len(line.get_xdata()) == 1]
    assert marks == [(0, 0), (0.25, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
    figures.save(figure, tmp_path / "claims", table)
    plt.close(figure)
