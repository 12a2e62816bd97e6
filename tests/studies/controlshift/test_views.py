"""Sentences and strips of the shifted data sets, from tables that are known."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib.core import tables
from cnslib.studies.controlshift import views

CHANGED = pd.DataFrame(
    [
        (kind, step, 5, step * size, step * size - 1, step * size + 1)
        for kind, size in (("truncation", 2), ("overlap", 10))
        for step in (0.0, 2.0)
    ],
    columns=["shift", "scale", "n", "estimate", "low", "high"],
)
STRENGTH = pd.DataFrame(
    [("overlap", 0.0, 0, 0.0), ("overlap", 1.0, 45, 0.25), ("overlap", 2.0, 90, 0.5)], columns=["shift", "scale", "set_to", "exact"]
).assign(n=9, estimate=lambda own: own["exact"], low=lambda own: own["exact"], high=lambda own: own["exact"])


def test_sentences_hold_the_numbers_of_their_tables():
    said = "At the last step truncation (4 grey levels) has changed the pictures least and overlap (20 grey levels) most"
    assert views.change_words(CHANGED) == said
    said = "By the last step overlap has changed a picture by 20 grey levels of 255 (19 to 21) on average"
    assert views.strip_words(CHANGED, "overlap") == said
    said = "In 2,048 dimensions the intensity at the first and at the last step is 0.25 and 0.50 (overlap)"
    assert views.intensity_words(STRENGTH, 2048) == said
    amounts = "20 (19 to 21) of 255 grey levels under overlap and 4 (3 to 5) under truncation"
    assert views.headline(CHANGED) == f"By its last step it changes a picture on average by {amounts}"


def test_the_closed_form_is_counted_where_the_interval_holds_it():
    apart = STRENGTH.assign(low=[0.0, 0.2, 0.55], high=[0.1, 0.3, 0.6])
    said = views.agreement_words(apart, 0.95)
    assert said.startswith("The closed form lies in the interval of the count in 2 of 3 cases; 95% intervals leave out 5% of the truths")


def test_pictures_drawn_twice_are_compared_byte_by_byte():
    picture = np.full((4, 4, 3), 100, np.uint8)
    other = picture.copy()
    other[0, 0, 0] = 103
    rows = pd.DataFrame([("extend", "bag", seed, 0.0) for seed in (1, 2)], columns=tables.KEY)
    stored = rows.assign(image=[tables.encode(picture)] * 2)
    again = rows.assign(image=[tables.encode(picture), tables.encode(other)])
    assert views.redrawn(stored, again) == "1 of 2 images are the same bytes; the largest difference of a pixel is 3 of 255"


def test_records_go_by_shift_and_step():
    found = views.by_step(CHANGED)
    assert set(found) == {"truncation", "overlap"} and found["overlap"]["step 2"]["estimate"] == 20


def test_a_sheet_has_a_column_per_step_and_a_panel_both_dimensions():
    _, heading = views.sheet(np.zeros((2, 3, 8, 8, 3), np.uint8), STRENGTH, rows=["bag", "coat"])
    assert heading == "theta in degrees" == views.axis("extend") and views.axis("truncation") == "R"
    _, axes = plt.subplots()
    views.intensity_panel(axes, STRENGTH, STRENGTH.assign(exact=0.1), kind="overlap")
    assert [line.get_ydata().tolist() for line in axes.lines[-2:]] == [[0, 0.25, 0.5], [0.1, 0.1, 0.1]]
    plt.close("all")
