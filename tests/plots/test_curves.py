"""Curves, dots and bars: what is drawn are the table's numbers, and names stay readable."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from tiny_answers import estimates, random_predictions, shares

from cnslib.plots import curves, figures
from cnslib.stats import accuracy, verdicts


def test_curves_keep_the_order_of_the_axis_and_have_their_names_at_their_ends():
    table = accuracy.accuracy_drop(shares(random_predictions(4))).query("shift == @accuracy.ALL")
    figure, panel = plt.subplots()
    curves.axis_lines(panel, table, order=["resnet", "alexnet"])
    assert panel.get_legend_handles_labels()[1] == ["resnet", "alexnet"]
    drawn = next(line for line in panel.lines if line.get_label() == "resnet")
    assert drawn.get_ydata().tolist() == estimates(table, model="resnet")
    figures.label_ends(panel)
    assert {text.get_text() for text in panel.texts} == {"resnet", "alexnet"}
    plt.close(figure)


def test_dots_stand_in_the_order_of_the_rows_with_the_papers_beside_them():
    table = pd.DataFrame({"model": ["b", "a"], "estimate": [0.5, 0.7], "low": [0.4, 0.6], "high": [0.6, 0.9]})
    figure, panel = plt.subplots()
    curves.axis_dots(panel, table, label="rCE", reference=1.0, published=pd.Series({"a": 0.9}))
    assert [text.get_text() for text in panel.get_yticklabels()] == ["b", "a"] and panel.yaxis_inverted()
    diamonds = next(line for line in panel.lines if line.get_marker() == "D")
    assert np.isnan(diamonds.get_xdata()[0]) and diamonds.get_xdata()[1] == 0.9
    plt.close(figure)


def test_every_axis_is_a_row_and_every_measure_a_column_with_the_papers_where_it_has_the_measure():
    table = pd.DataFrame({"axis": ["x", "x", "y"], "model": ["b", "a", "b"], "estimate": [0.5, 0.7, 0.4], "low": 0.3, "high": 0.9})
    published = pd.DataFrame({"axis": ["x", "y"], "classifier": ["a", "b"], "rCE": [0.9, 0.8]})
    measures, members = {"rCE": table, "drop": table.assign(estimate=0.2)}, {"x": ["b", "a"], "y": ["b"]}
    figure = curves.axis_panels(measures, members, references={"rCE": 1, "drop": 0}, published=published)
    assert [panel.get_title(loc="left") or panel.get_title() for panel in figure.axes] == ["x", "", "y", ""]
    assert [panel.get_xlabel() for panel in figure.axes] == ["", "", "rCE", "drop"]
    dots = [next(line for line in panel.lines if line.get_marker() == "o").get_xdata().tolist() for panel in figure.axes]
    assert dots == [[0.5, 0.7], [0.2, 0.2], [0.4], [0.2]]
    diamonds = [[line.get_xdata()[-1] for line in panel.lines if line.get_marker() == "D"] for panel in figure.axes]
    assert diamonds == [[0.9], [], [0.8], []]
    assert [panel.lines[-1].get_xdata()[0] for panel in figure.axes] == [1, 0, 1, 0]
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


TABLE = pd.DataFrame(
    {
        "shift": ["heavy snow"] * 4 + ["heavy fog"] * 4,
        "model": ["vit", "vit", "alexnet", "alexnet"] * 2,
        "scale": [0.0, 0.5] * 4,
        "n": 40,
        "estimate": [0.0, 0.25, 0.0, 0.5, 0.0, 0.125, 0.0, 1 / 3],
        "low": [0.0, 0.2, 0.0, 0.4, 0.0, 0.0, 0.0, 0.3],
        "high": [0.0, 0.3, 0.0, 0.6, 0.0, 0.2, 0.0, 0.4],
    }
)


@pytest.fixture(autouse=True)
def close_figures():
    figures.use_style()
    yield
    plt.close("all")


def test_curves_and_bands_are_estimates_and_intervals():
    _, axes = plt.subplots()
    curves.drop_lines(axes, TABLE.query("shift == 'heavy snow'"))
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines["alexnet"] == [0.0, 0.5] and lines["vit"] == [0.0, 0.25]
    band = axes.collections[0].get_paths()[0].vertices  # alexnet
    assert {0.4, 0.6} <= set(band[:, 1]) and (axes.get_xlabel(), axes.get_ylabel()) == ("slider scale", "accuracy drop")


def test_bars_are_estimates_and_bins_keep_their_order():
    _, axes = plt.subplots()
    table = TABLE.query("shift == 'heavy snow'").assign(scale=["0.0", "never"] * 2)
    curves.failure_bars(axes, table)
    assert [bar.get_height() for bar in axes.patches] == [0.0, 0.5, 0.0, 0.25]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.0", "never"]


def test_ranks_stand_one_above_the_other_at_the_right_and_only_the_shown_have_intervals():
    _, axes = plt.subplots()
    rows = [
        (model, scale, rank)
        for model, both in {"a": (1, 2.5), "b": (2, 1), "c": (3, 2.5)}.items()
        for scale, rank in zip((0.0, 1.0), both, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["model", "scale", "estimate"]).assign(low=1.0, high=3.0)
    curves.bump_lines(axes, table, shown=["b"])
    assert [(text.get_text(), text.get_position()[1]) for text in axes.texts] == [("b", 1), ("a", 2), ("c", 3)]
    assert len(axes.collections) == 1 and axes.yaxis_inverted()


def test_few_ranks_have_whole_ticks_and_the_first_is_on_top():
    _, axes = plt.subplots()
    table = pd.DataFrame({"model": ["a", "b", "c"], "scale": 1.0, "estimate": [1.0, 2.0, 3.0], "low": [1, 1, 2], "high": [2, 3, 3]})
    curves.rank_lines(axes, table)
    assert all(tick == round(tick) for tick in axes.get_yticks()) and axes.yaxis_inverted()


def test_curves_that_are_not_shown_are_grey_and_points_are_those_of_the_table():
    _, axes = plt.subplots()
    rows = [(shift, x, x / 2) for shift in ("fog", "snow") for x in (0.0, 0.4, 1.0)]
    table = pd.DataFrame(rows, columns=["shift", "severity", "estimate"])
    curves.highlighted_lines(axes, table, x="severity", hue="shift", shown=["snow"], label="accuracy")
    grey, shown = axes.lines
    assert grey.get_color() == curves.GREY and axes.get_legend_handles_labels()[1] == ["snow"]
    assert shown.get_xdata().tolist() == [0.0, 0.4, 1.0] and shown.get_ydata().tolist() == [0.0, 0.2, 0.5]


def test_names_at_the_ends_of_curves_do_not_overlap():
    figure, axes = plt.subplots()
    table = pd.DataFrame({"scale": 0.0, "model": [*"abcdef"], "estimate": [0.5] * 5 + [0.9], "low": 0.4, "high": 1.0})
    curves.estimate_lines(axes, table, x="scale", hue="model", label="accuracy", named=True)
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 6
    assert all(lower.y0 + 9 * figure.dpi / 72 <= upper.y0 for lower, upper in itertools.pairwise(boxes))


def test_dots_are_ordered_by_size_and_undefined_ones_stay_empty():
    _, axes = plt.subplots()
    table = pd.DataFrame(
        {"model": ["a", "b", "c"], "estimate": [0.5, 0.9, np.nan], "low": [0.4, 0.8, np.nan], "high": [0.6, np.nan, np.nan]}
    )
    curves.estimate_dots(axes, table, y="model", label="rCE", reference=1)
    assert axes.lines[0].get_xdata()[:2].tolist() == [0.9, 0.5] and axes.lines[-1].get_xdata()[0] == 1


def test_roc_curves_pass_through_their_points():
    _, axes = plt.subplots()
    table = pd.DataFrame({"detector": "clip", "fpr": [1.0, 0.0, 0.2], "tpr": [1.0, 0.0, 0.9]})
    curves.roc_curves(axes, table, hue="detector", points=pd.DataFrame({"name": ["ours"], "fpr": [0.1], "tpr": [0.8]}))
    curve = axes.lines[1]
    assert curve.get_xdata().tolist() == [0.0, 0.2, 1.0] and curve.get_ydata().tolist() == [0.0, 0.9, 1.0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["clip", "ours"]
    assert axes.lines[-1].get_xydata().tolist() == [[0.1, 0.8]]


def test_pairs_of_estimates_stand_side_by_side_in_the_order_of_the_first():
    table = pd.DataFrame({"source": ["a", "a", "b", "b"], "model": ["vit", "mixer"] * 2, "estimate": [0.7, 0.9, 0.8, 0.6]})
    axes = plt.figure().subplots()
    curves.estimate_pairs(axes, table.assign(low=table["estimate"] - 0.1, high=1.0), y="model", hue="source", label="accuracy")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["vit", "mixer"]
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.get_lines() if not line.get_label().startswith("_")}
    assert drawn == {"a": [0.7, 0.9], "b": [0.8, 0.6]}
    assert axes.get_lines()[0].get_ydata()[0] > axes.get_lines()[1].get_ydata()[0]


def test_ranks_have_a_panel_per_title():
    rows = [(shift, model, scale, rank) for shift in ("fog", "snow") for model, rank in (("a", 1), ("b", 2)) for scale in (0.0, 1.0)]
    table = pd.DataFrame(rows, columns=["shift", "model", "scale", "estimate"]).assign(low=1, high=2)
    figure = curves.bump_panels(table, {"snow": "snow, tau 1"}, shown=["a"])
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == ["snow, tau 1"]
    assert {text.get_text() for text in figure.axes[0].texts} == {"a", "b"}
    plt.close(figure)


def test_distances_stand_side_by_side_with_their_floor():
    table = pd.DataFrame(
        {"class": ["bag"] * 2, "prompt": ["in_star", "text"], "estimate": [0.3, 0.5], "low": [0.2, 0.4], "high": [0.4, 0.6]}
    )
    figure = curves.paired_distances(
        table, pd.DataFrame({"class": ["bag"], "estimate": [0.1]}), names={"text": "by name", "in_star": "by token"}
    )
    axes = figure.axes[0]
    assert [float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() in ("o", "x")] == [0.3, 0.5, 0.1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["real scenes", "by token", "by name"]
    plt.close(figure)


def test_a_path_goes_through_its_points_in_the_order_of_the_rows():
    table = pd.DataFrame({"method": ["b", "b", "a"], "gain": [0.0, 0.5, 0.3], "kept": [1.0, 0.6, 0.7]})
    figure, panel = plt.subplots()
    curves.paths(panel, table, x="gain", y="kept", hue="method", labels=("gained", "left"))
    assert [(line.get_label(), line.get_xdata().tolist(), line.get_ydata().tolist()) for line in panel.lines] == [
        ("b", [0.0, 0.5], [1.0, 0.6]),
        ("a", [0.3], [0.7]),
    ]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("gained", "left")
    plt.close(figure)
