"""Every kind of picture draws the numbers of its table, in the order of the figure."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import curves, figures, maps, scatter, stacks, strips
from cnslib.stats import verdicts
from cnslib.stats.accuracy import ALL, NEVER

SCALES = [0.0, 0.5, 1.0]
GRID = np.arange(3, dtype=np.uint8)[None, :, None, None, None].repeat(4, 2).repeat(4, 3).repeat(3, 4)


@pytest.fixture(autouse=True)
def axes():
    figures.use_style()
    yield plt.subplots()[1]
    plt.close("all")


def estimates(**columns) -> pd.DataFrame:
    """A table of estimates with intervals of a tenth to each side."""
    table = pd.DataFrame(columns)
    return table.assign(n=40, low=table["estimate"] - 0.1, high=table["estimate"] + 0.1)


def ticks(axes, which: str = "y") -> list[str]:
    return [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes if axes.get_visible()]


def lines(axes) -> dict[str, list[float]]:
    return {str(line.get_label()): line.get_ydata().tolist() for line in axes.lines if not str(line.get_label()).startswith("_")}


CURVES = estimates(model=["vit", "vit", "alexnet", "alexnet"], shift="fog", scale=[0.0, 1.0] * 2, estimate=[0.1, 0.4, 0.2, 0.5])


@pytest.mark.parametrize(
    "draw",
    [curves.drop_lines, curves.accuracy_lines, curves.rank_lines, curves.survival_lines],
    ids=lambda f: f.__name__,
)
def test_lines_and_bands_are_estimates_and_intervals(axes, draw):
    more = {"accuracy_lines": {"chance": 0.1}}
    draw(axes, CURVES, **more.get(draw.__name__, {}))
    drawn = lines(axes)
    assert drawn["vit"][-2:] == [0.1, 0.4] and drawn["alexnet"][-2:] == [0.2, 0.5]
    heights = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in axes.collections])
    assert {0.0, 0.2, 0.3, 0.6} <= set(heights.round(6))


def test_ranks_stand_one_above_the_other_at_the_right_and_only_the_shown_have_intervals(axes):
    table = estimates(model=[*"aabbcc"], scale=[0.0, 1.0] * 3, estimate=[1, 2.5, 2, 1, 3, 2.5])
    curves.bump_lines(axes, table, shown=["b"])
    assert [(text.get_text(), text.get_position()[1]) for text in axes.texts] == [("b", 1), ("a", 2), ("c", 3)]
    assert len(axes.collections) == 1 and axes.yaxis_inverted()


def test_dots_are_ordered_by_size_and_undefined_ones_stay_empty(axes):
    curves.estimate_dots(axes, estimates(model=[*"abc"], estimate=[0.5, 0.9, np.nan]), y="model", label="rCE", reference=1)
    assert axes.lines[0].get_xdata()[:2].tolist() == [0.9, 0.5] and axes.lines[-1].get_xdata()[0] == 1


def test_dots_of_an_axis_keep_its_order_with_the_papers_beside_them():
    table = estimates(axis=["x", "x", "y"], model=["b", "a", "b"], estimate=[0.5, 0.7, 0.4])
    published = pd.DataFrame({"axis": ["x", "y"], "classifier": ["a", "b"], "rCE": [0.9, 0.8]})
    figure = curves.axis_panels({"rCE": table}, {"x": ["b", "a"], "y": ["b"]}, references={"rCE": 1}, published=published)
    assert titles(figure) == ["x", "y"] and ticks(figure.axes[0]) == ["b", "a"]
    marked = [[line.get_xdata().tolist() for line in panel.lines if line.get_marker() == mark] for mark in "oD" for panel in figure.axes]
    assert [own[0][-1] for own in marked] == [0.7, 0.4, 0.9, 0.8]


def test_pairs_of_estimates_stand_side_by_side_in_the_order_of_the_first(axes):
    table = estimates(source=[*"aabb"], model=["vit", "mixer"] * 2, estimate=[0.7, 0.9, 0.8, 0.6])
    curves.estimate_pairs(axes, table, y="model", hue="source", label="accuracy")
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.lines if not str(line.get_label()).startswith("_")}
    assert ticks(axes) == ["vit", "mixer"] and drawn == {"a": [0.7, 0.9], "b": [0.8, 0.6]}


def test_distances_stand_side_by_side_with_their_floor():
    table = estimates(**{"class": "bag", "prompt": ["in_star", "text"], "estimate": [0.3, 0.5]})
    floor = pd.DataFrame({"class": ["bag"], "estimate": [0.1]})
    figure = curves.paired_distances(table, floor, names={"text": "by name", "in_star": "by token"})
    assert [float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() in ("o", "x")] == [0.3, 0.5, 0.1]


def test_roc_curves_pass_through_their_points(axes):
    table = pd.DataFrame({"detector": "clip", "fpr": [1.0, 0.0, 0.2], "tpr": [1.0, 0.0, 0.9]})
    curves.roc_curves(axes, table, hue="detector", points=pd.DataFrame({"name": ["ours"], "fpr": [0.1], "tpr": [0.8]}))
    assert lines(axes)["clip"] == [0.0, 0.9, 1.0] and axes.lines[-1].get_xydata().tolist() == [[0.1, 0.8]]


def test_a_path_goes_through_its_points_in_the_order_of_the_rows(axes):
    table = pd.DataFrame({"method": ["b", "b", "a"], "gain": [0.5, 0.0, 0.3], "kept": [1.0, 0.6, 0.7]})
    curves.paths(axes, table, x="gain", y="kept", hue="method", labels=("gained", "left"))
    assert axes.lines[0].get_xdata().tolist() == [0.5, 0.0] and lines(axes)["a"] == [0.7]


def test_the_list_of_verdicts_shows_every_claim_once(axes):
    table = estimates(claim=[*"abcde"], family=["x"] * 2 + ["y"] * 3, verdict=verdicts.WORDS, estimate=[0.1, 0.1, -0.1, 0.0, np.nan])
    curves.verdict_rows(axes, table.assign(drop_verdict=["agrees", "", "", "", ""]))
    assert ticks(axes) == [*"abcde"]
    marks = [tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert marks == [(0, 0), (0.25, 0), (1, 1), (2, 2), (3, 3), (4, 4)]


def test_names_at_the_ends_of_curves_do_not_overlap(axes):
    table = estimates(scale=0.0, model=[*"abcdef"], estimate=[0.5] * 5 + [0.9])
    curves.estimate_lines(axes, table, x="scale", hue="model", label="accuracy", named=True)
    heights = sorted(text.get_window_extent().y0 for text in axes.texts)
    assert len(heights) == 6 and np.diff(heights).min() >= 9 * axes.figure.dpi / 72


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_points_of_the_line_are_those_of_the_table_and_no_name_lies_over_a_point(axes, kind):
    start, step = np.linspace(0.5, 0.9, 6), np.array([0.05, 0.04, 0, 0, 0, -0.3])
    table = pd.DataFrame({"axes": kind, "model": [*"abcdef"], "id": start, "ood": start + step, "expected": start})
    table = table.assign(**{f"{name}_{end}": table[name] for name in ("id", "ood") for end in ("low", "high")})
    scatter.fitted_points(axes, table, families={"early": ["a", "b"], "middle": ["c", "d"], "late": ["e", "f"]})
    points = np.column_stack([np.concatenate([bars.lines[0].get_data()[i] for bars in axes.containers]) for i in (0, 1)])
    np.testing.assert_allclose(points.astype(float), table[["id", "ood"]])
    shown, placed = axes.transData.transform(points.astype(float)), [text.get_window_extent() for text in axes.texts]
    assert not any(box.count_contains(shown) for box in placed)


def test_a_name_without_room_is_left_out(axes):
    table = pd.DataFrame({"model": [*"abcdefghijkl"], "rce": 0.5, "slope": 0.5})
    scatter.named_points(axes, table, x="rce", y="slope")
    assert 0 < len(axes.texts) < len(table)


def test_the_panels_of_gains_share_the_order_of_the_first():
    rows = {"line": ["all"] * 2 + ["few"] * 2, "axes": "linear", "model": ["vit", "resnet"] * 2, "estimate": [0.2, -0.1, -0.3, 0.4]}
    figure = scatter.gain_panels(estimates(**rows), by="line")
    assert ticks(figure.axes[0]) == ["resnet", "vit"]
    assert [panel.containers[0].lines[0].get_xdata().tolist() for panel in figure.axes] == [[-0.1, 0.2], [0.4, -0.3]]


def test_the_map_of_gains_writes_only_what_is_not_zero():
    table = pd.DataFrame({"model": ["a", "b"], "shift": ALL, "estimate": [0.2, 0.1], "low": [0.1, -0.1], "high": [0.3, 0.3]})
    figure = scatter.gain_map(table, order=["b", "a"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["", "+0.20"]


def test_slopes_have_the_band_of_images_inside_that_of_models(axes):
    row = {"models_low": 0.5, "low": 0.8, "estimate": 1.0, "high": 1.2, "models_high": 1.5}
    table = pd.DataFrame([{"scale": scale, **row} for scale in (0.0, 1.0)])
    scatter.slope_lines(axes, pd.concat([table.assign(axes="linear"), table.assign(axes="probit", estimate=0.7)]))
    models, images = (band.get_paths()[0].vertices[:, 1] for band in axes.collections)
    assert (models.min(), models.max(), images.min(), images.max()) == (0.5, 1.5, 0.8, 1.2)


def test_families_of_several_sizes_stand_side_by_side(axes):
    scatter.size_bars(axes, estimates(family=["resnet", "vit"], scale=1.0, estimate=[0.5, 0.6]))
    left, right = (bars.lines[0].get_xdata()[0] for bars in axes.containers)
    assert left < 1.0 < right


SHARES = {"vit": [0.4, 0.1, 0.2, 0.3], "alexnet": [0.05, 0.25, 0.3, 0.4]}
STACK = pd.concat(
    [pd.DataFrame({"shift": "snow", "model": model, "scale": [0.0, 1.0, 2.0, NEVER], "estimate": own}) for model, own in SHARES.items()]
)


def test_every_bar_adds_up_and_only_its_two_ends_carry_numbers_where_there_is_room(axes):
    stacks.failure_stacks(axes, STACK)
    for place, model in enumerate(ticks(axes)):
        assert [bars[place].get_width() for bars in axes.containers] == pytest.approx(SHARES[model])
    assert sorted(text.get_text() for text in axes.texts) == ["30%", "40%", "40%"]


def test_stacks_have_a_panel_per_shift_in_the_order_of_the_titles():
    figure = stacks.stack_panels(pd.concat([STACK, STACK.assign(shift="fog")]), {"fog": "hardest", "snow": "mildest"})
    assert titles(figure) == ["hardest", "mildest"] and len(figure.legends) == 1


def test_scenarios_stand_by_their_survivors_with_the_dots_of_each_beside_them():
    mild = STACK.assign(estimate=STACK["estimate"].where(STACK["scale"] == NEVER, 0.0) + 0.5 * (STACK["scale"] == NEVER))
    failures = pd.concat([mild.assign(scenario="grey"), STACK.assign(scenario="random")])
    dots = estimates(scenario=["random", "grey"], model="vit", estimate=[0.2, 0.8])
    figure = stacks.stacks_and_dots(failures, dots, rows=stacks.survivors(failures), label="accuracy", reference=0.85)
    assert ticks(figure.axes[0]) == ["random", "grey"]
    drawn = next(line for line in figure.axes[1].lines if line.get_label() == "vit")
    assert drawn.get_xdata().tolist() == [0.2, 0.8]


def test_each_answer_has_its_mark_under_its_picture_and_each_failure_point_a_ring():
    rows = [("vit", scale, True, np.nan) for scale in SCALES] + [("alexnet", scale, scale != 0.5, 0.5) for scale in SCALES]
    figure = strips.answered(GRID, pd.DataFrame(rows, columns=["model", "scale", "right", "failure_point"]))
    marks = {drawn.get_label(): set(map(tuple, drawn.get_offsets().tolist())) for drawn in figure.axes[1].collections}
    assert marks == {"right": {(0, 0), (2, 0), (0, 1), (1, 1), (2, 1)}, "wrong": {(1, 0)}, "failure point": {(1, 0)}}


def test_the_curves_of_a_strip_are_the_probabilities_in_the_order_of_the_scale():
    rows = pd.DataFrame([("vit", 1.0, 0.2), ("vit", 0.0, 0.9), ("vit", 0.5, 0.7)], columns=["model", "scale", "probability"])
    (line,) = strips.sure(GRID, rows).axes[1].lines
    assert line.get_ydata().tolist() == [0.9, 0.7, 0.2]


def test_drops_stand_by_axis_and_significant_ones_are_bold():
    rows = {"axis": "size", "model": [*"bbaa"], "shift": ["fog", "snow"] * 2, "estimate": [0.05, 0.5] * 2}
    figure = maps.drop_map(estimates(**rows), {"size": ["b", "a"]})
    assert ticks(figure.axes[0]) == ["b", "a"]
    assert {(text.get_text(), text.get_weight()) for text in figure.axes[0].texts} == {("0.50", "bold"), ("0.05", "normal")}


def test_the_map_of_lines_marks_small_p_values_and_leaves_out_what_is_not_known():
    columns = {"r": [0.5, np.nan], "free": [0.6, np.nan], "p_holm": [0.0001, 0.2]}
    figure = maps.line_map(pd.DataFrame({"shift": ["fog", "snow"], "scale": 1.0, **columns}), alpha=0.05)
    assert [(text.get_text(), text.get_weight()) for text in figure.axes[0].texts] == [("0.50", "bold"), ("0.60", "normal")]


def test_a_change_of_ranks_has_a_field_per_pair():
    table = pd.DataFrame({"first": ["a", "a", "b"], "second": ["b", "c", "c"], "probability": [0.2, 0.4, 0.9]})
    assert sorted(maps.flip_map(table).axes[0].collections[0].get_array().compressed()) == [0.2, 0.4, 0.9]


def test_predictions_stand_below_the_pictures_they_are_about():
    said = pd.DataFrame({"model": ["vit", "vit", "mae", "mae"], "scale": [0.0, 1.0] * 2, "top1": ["bag", "coat", "bag", "bag"]})
    figure = maps.answer_sheet(np.zeros((1, 2, 4, 4, 3), np.uint8), said.assign(probability=0.5), title="bag, fog", scales=[0.0, 1.0])
    assert sorted(text.get_text() for text in figure.axes[1].texts) == ["bag", "bag", "bag", "coat"]
