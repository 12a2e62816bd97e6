"""One order and one look: the same name is drawn alike in every figure, whatever stands beside it."""

import itertools
import math

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.core.names import SHIFTS
from cnslib.plots import curves, figures, palette

GROUPED = {"alexnet": ["alexnet"], "resnet": ["resnet_s", "resnet"], "CLIP": ["clip_probe"]}


@pytest.fixture(autouse=True)
def fixed():
    figures.use_style(shifts=["heavy snow", "cartoon style"], families=GROUPED)
    yield
    figures.use_style()
    plt.close("all")


def test_every_classifier_is_in_one_family_in_the_order_of_the_classifiers():
    members = {"resnet": ["resnet_s", "resnet", "absent"], "CLIP": ["clip_probe"]}
    assert palette.families(["alexnet", "resnet_s", "clip_probe", "resnet"], members) == {
        "alexnet": ["alexnet"],
        "resnet": ["resnet_s", "resnet"],
        "CLIP": ["clip_probe"],
    }


def test_a_name_looks_the_same_whoever_stands_beside_it():
    alone, among = palette.looks(["resnet"]), palette.looks(["clip_probe", "resnet", "alexnet", "zebra"])
    assert alone["resnet"] == among["resnet"] and list(among) == ["zebra", "alexnet", "resnet", "clip_probe"]


def test_a_name_without_a_fixed_look_takes_a_colour_that_nobody_beside_it_has():
    names = ["alexnet", "clip_probe", "heavy snow", "one", "other"]
    looks = palette.looks(names)
    assert len({look["color"] for look in looks.values()}) == len(names) - 1  # the first shift and the first family share theirs
    many = palette.looks(["alexnet", *(f"name {i:02d}" for i in range(palette.PLACES - 1))])
    assert len({(look["color"], look["marker"]) for look in many.values()}) == palette.PLACES


def test_fourteen_shifts_have_fourteen_colours_that_differ_by_a_tenth_of_the_range_at_least():
    palette.fix(shifts=SHIFTS, grouped={})
    colours = [palette.FIXED[shift]["color"] for shift in SHIFTS]
    assert min(math.dist(one, other) for one, other in itertools.combinations(colours, 2)) > 0.1


def test_a_family_has_the_colour_of_its_last_member_and_the_others_are_paler():
    looks = palette.looks(["resnet", "resnet_s", "CLIP", "clip_probe", "alexnet"])
    assert looks["CLIP"]["color"] == looks["clip_probe"]["color"] != looks["resnet"]["color"]
    assert all(pale >= full for pale, full in zip(looks["resnet_s"]["color"], looks["resnet"]["color"], strict=True))
    assert looks["resnet_s"]["color"] != looks["resnet"]["color"] and looks["resnet_s"]["marker"] != looks["resnet"]["marker"]


def test_what_has_no_place_stands_first_as_it_comes():
    assert palette.ordered(["cartoon style", "all shifts", "heavy snow", "all shifts"]) == ["all shifts", "heavy snow", "cartoon style"]


def test_panels_stand_in_the_fixed_order_and_not_in_that_of_the_rows():
    rows = [
        {"shift": shift, "model": "alexnet", "scale": scale, "estimate": 0.1, "low": 0.0, "high": 0.2}
        for shift in ("cartoon style", "heavy snow")
        for scale in (0.0, 1.0)
    ]
    figure = figures.panels(pd.DataFrame(rows), curves.drop_lines, named=True)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["heavy snow", "cartoon style"]
    assert not figure.legends and all("alexnet" in [text.get_text() for text in axes.texts] for axes in figure.axes)


def test_a_new_notebook_starts_without_the_names_of_the_last_one():
    figures.use_style(shifts=["heavy fog"])
    assert list(palette.FIXED) == ["heavy fog"]
