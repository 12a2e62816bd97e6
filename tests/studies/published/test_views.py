"""Figures of the published tables: what is drawn are the numbers of the tables."""

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.studies.published import views
from cnslib.studies.published.ledger import VERDICTS


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_averages_have_a_point_per_model_in_both_panels():
    rows = pd.DataFrame({"drop_recomputed": [0.02, 0.05], "drop": [0.03, 0.05], "rce": [0.7, 1.0]}, index=["vit", "mae"])
    left, right = views.averages(rows, pd.Series([False, True], rows.index)).axes
    assert left.collections[0].get_offsets().tolist() == [[0.02, 0.03], [0.05, 0.05]]
    assert right.collections[0].get_offsets()[:, 1].tolist() == [0.7, 1.0]
    colours = left.collections[0].get_facecolors()
    assert (colours[0] != colours[1]).any()


def test_the_partial_correlation_has_a_row_per_reading():
    table = pd.DataFrame({"accuracy": ["mean", "drop"], "estimate": [0.7, -0.4], "low": 0.0, "high": 0.1, "least": -1.0, "most": 1.0})
    axes = views.partial(table, -0.358).axes[0]
    assert list(axes.lines[0].get_xdata()) == [0.7, -0.4] and list(axes.lines[1].get_xdata()) == [-0.358] * 2
    assert len(axes.collections[0].get_segments()) == len(axes.collections[1].get_segments()) == 2


def test_scores_stand_in_one_column_and_in_three_colours():
    scores = pd.DataFrame({"printed": [0.9], "row_mean": [0.8], "as_defined": [0.7], "other": [1]}, index=pd.Index(["Swin"], name="model"))
    table = views.long(scores)
    assert table["score"].tolist() == list(views.SCORES.values()) and table["value"].tolist() == [0.9, 0.8, 0.7]
    assert [text.get_text() for text in views.scores(table).axes[0].get_legend().get_texts()] == list(views.SCORES.values())


def test_the_ledger_has_a_bar_per_document_and_verdict():
    counts = pd.DataFrame({"agrees": [3, 1], "differs": [2, 4]}, index=["CNS-Bench", "Control+Shift"])
    axes = views.ledger(counts).axes[0]
    assert sorted(patch.get_width() for patch in axes.patches) == [1, 2, 3, 4]


def test_a_verdict_keeps_its_colour_whatever_others_there_are():
    few, more = (pd.DataFrame(3, index=["CNS-Bench"], columns=names) for names in (["differs"], list(VERDICTS)))
    colours = [patch.get_facecolor() for patch in views.ledger(more).axes[0].patches]
    assert views.ledger(few).axes[0].patches[0].get_facecolor() == colours[VERDICTS.index("differs")]
    assert len(set(colours)) == len(VERDICTS)
