"""Figures of accuracy on the line: what is drawn are the table's numbers, and names stay readable."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text
from scipy.stats import norm
from tiny_lines import catalog, scattered, shares

from cnslib.plots import figures, scatter
from cnslib.stats import line
from cnslib.stats.accuracy import ALL

GAINS = pd.DataFrame(
    {
        "line": ["all"] * 4 + ["few"] * 4,
        "axes": ["linear", "linear", "probit", "probit"] * 2,
        "model": ["vit", "resnet"] * 4,
        "estimate": [0.2, -0.1, 0.1, 0.0, -0.3, 0.4, 0.0, 0.0],
        "low": -0.4,
        "high": 0.5,
    }
)


@pytest.fixture(autouse=True)
def close_figures():
    figures.use_style()
    yield
    plt.close("all")


def test_points_and_line_are_those_of_the_table_on_both_axes():
    for kind in line.AXES:
        table = line.scatter(scattered(3, axes=kind), shift="heavy snow", scale=1.0)
        _, axes = plt.subplots()
        scatter.fitted_points(axes, table, families={model: [model] for model in table["model"]})
        drawn = [(float(bars.lines[0].get_xdata()[0]), float(bars.lines[0].get_ydata()[0])) for bars in axes.containers]
        assert drawn == list(zip(table["id"], table["ood"], strict=True))
        fitted = next(own for own in axes.lines if len(own.get_xdata()) == len(table))
        x, y = (values if kind == "linear" else norm.ppf(values) for values in fitted.get_data())
        assert np.abs(np.diff(np.diff(y) / np.diff(x))).max() < 1e-6  # one slope on the axes that it was fitted on


def test_a_family_has_one_colour_and_its_name_lies_over_no_point_and_no_other_name():
    _, axes = plt.subplots()
    start = np.linspace(0.5, 0.9, 6)
    columns = {"axes": "linear", "model": list("abcdef"), "id": start, "id_low": start, "id_high": start, "expected": start}
    ood = start + np.array([0.2, 0.19, 0, 0, 0, -0.3])
    families = {"early": ["a", "b"], "middle": ["c", "d"], "late": ["e", "f"]}
    scatter.fitted_points(axes, pd.DataFrame(columns).assign(ood=ood, ood_low=ood, ood_high=ood), families=families)
    assert [len(bars.lines[0].get_xdata()) for bars in axes.containers] == [2, 2, 2]
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert set(boxes) == set(families) and {text.get_color() for text in axes.texts} == {
        bars.lines[0].get_color() for bars in axes.containers
    }
    points = axes.transData.transform(np.column_stack([start, ood]))
    assert not any(box.count_contains(points) for box in boxes.values())
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes.values(), 2))


def test_a_family_in_a_crowd_has_its_name_further_off_with_a_line_to_its_point():
    _, axes = plt.subplots()
    around = [(0.5, 0.5), *((0.5 + 0.03 * x, 0.5 + 0.03 * y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y), (0.2, 0.8), (0.8, 0.2)]
    place = pd.DataFrame(around, columns=["id", "ood"]).assign(axes="linear", model=[f"m{i}" for i in range(len(around))], expected=0.5)
    table = place.assign(**{f"{name}_{end}": place[name] for name in ("id", "ood") for end in ("low", "high")})
    scatter.fitted_points(axes, table, families={"single": ["m0"], "others": table["model"].tolist()[1:]})
    text = next(text for text in axes.texts if text.get_text() == "single")
    text.get_window_extent()
    box, points = Text.get_window_extent(text), axes.transData.transform(place[["id", "ood"]].to_numpy())
    assert text.arrow_patch is not None and not box.count_contains(points)
    assert np.abs([box.x0 + box.width / 2, box.y0 + box.height / 2] - points[0]).max() > 20


def test_a_name_without_room_is_left_out():
    _, axes = plt.subplots()
    table = pd.DataFrame({"model": list("abcdefghijkl"), "rce": 0.5, "slope": 0.5})
    scatter.named_points(axes, table, x="rce", y="slope")
    assert 0 < len(axes.texts) < len(table)


def test_the_panels_of_gains_share_the_order_of_the_first():
    figure = scatter.gain_panels(GAINS, by="line")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["resnet", "vit"]
    first = [bars.lines[0].get_xdata().tolist() for bars in figure.axes[0].containers]
    second = [bars.lines[0].get_xdata().tolist() for bars in figure.axes[1].containers]
    assert first == [[-0.1, 0.2], [0.0, 0.1]] and second == [[0.4, -0.3], [0.0, 0.0]]


def test_the_map_of_gains_writes_only_what_is_not_zero():
    table = pd.DataFrame({"model": ["a", "b"], "shift": ALL, "estimate": [0.2, 0.1], "low": [0.1, -0.1], "high": [0.3, 0.3]})
    figure = scatter.gain_map(table, order=["b", "a"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["", "+0.20"]


def test_slope_bands_are_images_inside_models_and_the_probit_slope_is_a_line():
    _, axes = plt.subplots()
    row = {"models_low": 0.5, "low": 0.8, "estimate": 1.0, "high": 1.2, "models_high": 1.5}
    table = pd.DataFrame([{"scale": scale, **row} for scale in (0.0, 1.0)])
    scatter.slope_lines(axes, pd.concat([table.assign(axes="linear"), table.assign(axes="probit", estimate=0.7)]))
    models, images = (band.get_paths()[0].vertices[:, 1] for band in axes.collections)
    assert (models.min(), models.max()) == (0.5, 1.5) and (images.min(), images.max()) == (0.8, 1.2)
    assert [curve.get_ydata().tolist() for curve in axes.lines[:2]] == [[1.0, 1.0], [0.7, 0.7]]


def test_families_of_several_sizes_stand_side_by_side_and_none_is_no_error():
    _, axes = plt.subplots()
    rows = [{"family": name, "scale": 1.0, "estimate": 0.5, "low": 0.1, "high": 0.6} for name in ("resnet", "vit")]
    scatter.size_bars(axes, pd.DataFrame(rows))
    left, right = (bars.lines[0].get_xdata()[0] for bars in axes.containers)
    assert left < 1.0 < right and [text.get_text() for text in axes.get_legend().get_texts()] == ["resnet", "vit"]
    scatter.size_bars(plt.subplots()[1], pd.DataFrame(rows)[:0])


def test_a_model_without_errors_is_drawn_half_an_image_from_the_edge_of_probit_axes():
    accuracy = np.array([0.5, 0.6, 0.7, 0.8, 1.0])
    found = line.points(shares(accuracy[:, None], [1.0], n=50), catalog(accuracy, n=100), axes="probit")
    table = line.scatter(found, shift="heavy snow", scale=1.0)
    assert table["id"].max() == pytest.approx(0.995) and table["ood"].max() == pytest.approx(0.99)
    _, axes = plt.subplots()
    scatter.fitted_points(axes, table, families={model: [model] for model in table["model"]})
    assert 0.995 < axes.get_xlim()[1] < 1 and 0.99 < axes.get_ylim()[1] < 1
