"""Stacked failures: the parts of a bar are the shares of the table, before and after the shift apart, and add up to the whole."""

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import figures, stacks
from cnslib.stats.accuracy import NEVER

SHARES = {"vit": [0.4, 0.1, 0.2, 0.3], "alexnet": [0.05, 0.25, 0.3, 0.4]}
TABLE = pd.DataFrame(
    [
        {"shift": "heavy snow", "model": model, "scale": scale, "estimate": share}
        for model, own in SHARES.items()
        for scale, share in zip([0.0, 1.0, 2.0, NEVER], own, strict=True)
    ]
)


@pytest.fixture(autouse=True)
def close_figures():
    figures.use_style()
    yield
    plt.close("all")


def test_every_bar_adds_up_to_all_trajectories_and_begins_with_those_wrong_before_the_shift():
    _, axes = plt.subplots()
    stacks.failure_stacks(axes, TABLE)
    rows = [label.get_text() for label in axes.get_yticklabels()]
    widths = {
        title: [bar.get_width() for bar in bars] for bars, title in zip(axes.containers, axes.get_legend_handles_labels()[1], strict=True)
    }
    assert list(widths) == ["already at scale 0", "at 1", "at 2", "never"]
    for place, model in enumerate(rows):
        assert [own[place] for own in widths.values()] == pytest.approx(SHARES[model])
    ends = [bar.get_x() + bar.get_width() for bar in axes.containers[-1]]
    assert ends == pytest.approx([1.0, 1.0])


def test_only_the_two_ends_carry_numbers_and_only_where_there_is_room():
    _, axes = plt.subplots()
    stacks.failure_stacks(axes, TABLE)
    assert sorted(text.get_text() for text in axes.texts) == ["30%", "40%", "40%"]  # alexnet's 5 % has no room


def test_there_is_one_panel_per_shift_in_the_order_of_the_titles():
    both = pd.concat([TABLE, TABLE.assign(shift="heavy fog")])
    figure = stacks.stack_panels(both, {"heavy fog": "hardest", "heavy snow": "mildest"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["hardest", "mildest"] and len(figure.legends) == 1


def test_scenarios_stand_by_their_survivors_with_the_dots_of_each_beside_them():
    mild = TABLE.assign(estimate=TABLE["estimate"].where(TABLE["scale"] == NEVER, 0.0) + 0.5 * (TABLE["scale"] == NEVER))
    failures = pd.concat([mild.assign(scenario="grey"), TABLE.assign(scenario="random")])
    rows = stacks.survivors(failures)
    assert rows == ["random", "grey"]
    dots = pd.DataFrame({"scenario": rows, "model": "vit", "estimate": [0.2, 0.8], "low": 0.1, "high": 0.9})
    figure = stacks.stacks_and_dots(failures, dots, rows=rows, label="accuracy", reference=0.85)
    left, right = figure.axes
    assert left.get_xlabel() == "share of trajectories, by where they fail first"
    other = stacks.stacks_and_dots(failures, dots, rows=rows, label="accuracy", reference=0.85, things="garments")
    assert other.axes[0].get_xlabel() == "share of garments, by where they fail first"
    assert [label.get_text() for label in left.get_yticklabels()] == rows
    assert [bar.get_width() for bar in left.containers[-1]] == pytest.approx([0.35, 0.85])
    drawn = next(line for line in right.lines if line.get_label() == "vit")
    assert drawn.get_xdata().tolist() == [0.2, 0.8] and right.lines[-1].get_xdata()[0] == 0.85


def test_every_definition_of_a_failure_point_distribution_has_a_height_and_labels_of_its_own():
    heights = dict(zip(stacks.OF, (0.5, 0.25, 0.01, 1.0, 0.5), strict=True))
    rows = [(name, model, scale, high) for name, high in heights.items() for model in ("a", "b") for scale in (0.0, 1.0)]
    table = pd.DataFrame(rows, columns=["definition", "model", "scale", "estimate"])
    figure = stacks.definition_panels(table.assign(low=table["estimate"], high=table["estimate"]))
    drawn = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible()}
    assert list(drawn) == list(stacks.OF) and len(figure.legends) == 1
    for name, axes in drawn.items():
        assert heights[name] < axes.get_ylim()[1] < 2 * heights[name]
        assert (axes.get_ylabel(), axes.get_xlabel()) == stacks.OF[name]
    assert "failure" not in drawn["error count"].get_xlabel()
