"""What is shown: pictures byte for byte, answers and places as the tables say, words in place of colour alone."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.tools.play import state, views
from cnslib.tools.play.state import Look, Round

PICTURE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
SCALES = (0.0, 0.5, 1.0)


def asked(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    columns = ["model", "answer", "confidence", "true_probability"]
    return pd.DataFrame(rows, columns=columns).assign(right=lambda table: table["answer"] == "bag")


def cells(text: str) -> list[list[str]]:
    """The words of a table, row by row, below its head."""
    return [[re.sub("<[^>]+>", "", cell).strip() for cell in re.findall("<td[^>]*>(.*?)</td>", row)] for row in text.split("<tr>")[2:]]


def test_a_picture_is_shown_with_its_own_bytes_and_a_text():
    shown = views.picture(PICTURE, text='a "bag"')
    data = base64.b64decode(re.search('base64,([^"]+)', shown)[1])
    assert np.array_equal(tables.decode(data, "shown"), PICTURE)
    assert 'alt="a &quot;bag&quot;"' in shown and "pixelated" in shown


def test_a_look_in_words():
    assert views.named(Look("heavy snow", "bag", 3, 0.5)) == "bag in heavy snow, seed 3, scale 0.5"


def test_answers_are_told_by_word_and_number():
    shown = views.answers(asked(("vit", "bag", 0.9, 0.9), ("resnet", "coat", 0.6, 0.3)), scale=0.5)
    assert "answer at scale 0.5" in shown
    assert cells(shown) == [["vit", "bag", "&#10003; right", "90%"], ["resnet", "coat", "&#10007; wrong", "60%"]]


def test_classifiers_stand_in_the_order_of_the_true_class_with_their_place_at_scale_0():
    start = asked(("vit", "bag", 0.9, 0.9), ("resnet", "bag", 0.8, 0.8), ("mixer", "bag", 0.7, 0.7))
    now = asked(("vit", "coat", 0.6, 0.1), ("resnet", "bag", 0.7, 0.7), ("mixer", "bag", 0.7, 0.7))
    rows = cells(views.ranks(now, start, scale=1.0))
    assert [row[:3] for row in rows] == [["1", "3 &#8593; up", "mixer"], ["1", "2 &#8593; up", "resnet"], ["3", "1 &#8595; down", "vit"]]
    assert [row[-1] for row in rows] == ["70%", "70%", "10%"]


@pytest.mark.parametrize(("before", "now", "said"), [(2, 2, "2 ="), (3, 1, "3 &#8593; up"), (1, 3, "1 &#8595; down")])
def test_a_move_is_told_by_sign_and_word(before, now, said):
    assert views.moved(before, now) == said


def played(scale: float) -> Round:
    return Round("heavy snow", "bag", 3, SCALES, 2).turned(scale).answered("bag")


def test_the_end_of_a_round_names_the_garment_the_failure_point_and_the_others():
    said = views.outcome(played(0.0), np.array([0, 1, 3]), ["vit", "resnet", "mixer"])
    assert "bag in heavy snow" in said and "Your failure point is scale 0.5" in said
    assert "Of 3 classifiers fail earlier: 1; at the same scale: 1; later or never: 1." in said
    assert "You can name it at every scale" in views.outcome(played(1.0), np.array([3]), ["vit"])


def test_reader_and_classifiers_stand_under_the_picture_at_which_they_fail():
    shown = views.failure_points(played(0.0), np.array([0, 1, 3]), ["vit", "resnet", "mixer"], [PICTURE] * 3)
    assert cells(shown)[1] == ["vit", "youresnet", "", "mixer"]
    assert shown.count("<img") == 3 and [f"scale {scale:g}" in shown for scale in SCALES] == [True] * 3


def test_the_garment_is_not_told_before_the_round_is_over():
    opened = Round("heavy snow", "bag", 3, SCALES, 2)
    assert "bag" not in views.progress(opened) and "Lowest scale seen: 1." in views.progress(opened)
    assert "Not so at scale 1" in views.progress(opened.answered("coat"))


def test_the_tally_shows_the_reader_among_the_nearest():
    finished = [(1, np.array([0, 1, 2, 3, 3, 3]))]
    table = state.standing(finished, ["a", "b", "c", "d", "e", "f"], SCALES)
    said = views.tally(table, 1)
    assert "Over 1 garment you are at place 5 of 7" in said
    assert [row[1:] for row in cells(said)] == [["f", "1.00"], ["b", "0.50"], ["you", "0.50"], ["a", "0.00"]]


def test_a_note_has_its_lines_under_each_other():
    assert re.sub("<br>", "|", views.note("a", "b & c")).count("a|b &amp; c") == 1


def test_an_error_is_shown_as_text():
    assert views.problem(ValueError("a < b")) == "<p>a &lt; b</p>"
