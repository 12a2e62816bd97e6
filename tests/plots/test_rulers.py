"""Panels per ruler: every ruler has its panel, with the rows and the numbers of the table."""

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import figures, rulers

RULERS = ["oracle", "alignment"]
ROWS = [
    (ruler, shift, name, i / 10) for ruler in RULERS for i, (shift, name) in enumerate([("fog", "bag"), ("fog", "coat"), ("snow", "bag")])
]
TABLE = pd.DataFrame(ROWS, columns=["ruler", "shift", "class", "estimate"]).assign(low=0.0, high=1.0)


@pytest.fixture(autouse=True)
def close_figures():
    figures.use_style()
    yield
    plt.close("all")


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_dots_have_a_panel_per_ruler_in_the_order_of_the_table():
    figure = rulers.dot_panels(TABLE[TABLE["class"] == "bag"], y="shift", label="rho", reference=1.0, columns=2, sharex=True)
    assert titles(figure) == RULERS and figure.axes[1].get_xlabel() == "rho"
    assert sorted(figure.axes[0].lines[0].get_xdata()) == [0.0, 0.2]


def test_sliders_have_a_field_per_shift_and_class_and_one_colour_bar():
    figure = rulers.slider_maps(TABLE, rulers=RULERS)
    assert titles(figure)[:2] == RULERS and len(figure.axes) == 3
    assert figure.axes[0].collections[0].get_array().shape == (2, 2)


def test_steps_have_a_row_per_shift():
    steps = pd.DataFrame({"ruler": "oracle", "shift": "fog", "step": [0, 1, 2], "estimate": [0, 1.5, 2.5], "low": 0.0, "high": 2.5})
    figure = rulers.step_panels(pd.concat([steps, steps.assign(ruler="alignment")]), rulers=RULERS, rows=["fog"])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["fog"] and titles(figure) == RULERS


def test_accuracy_is_drawn_against_what_the_ruler_reads():
    table = TABLE.assign(severity=[0.1, 0.2, 0.3] * 2)
    figure = rulers.accuracy_panels(table, rulers=["scale", "oracle"], titles={"oracle": "severity"}, shown=["snow"])
    assert titles(figure)[:2] == ["slider scale", "severity"]
    snow = next(line for line in figure.axes[1].lines if line.get_label() == "snow")
    assert (list(snow.get_xdata()), list(snow.get_ydata())) == ([0.3], [0.2])
