"""Hours of whole steps from the costs of some of their pieces: counted by hand, and as the plan shows them."""

import dataclasses

import pandas as pd
import pytest

from cnslib.core import paths, sites
from cnslib.tools import plan, recorded


@pytest.fixture
def here(mini, tmp_path, tiny_pipeline_dir):
    """The default benchmark, 14 shifts and 10 classes, in a folder of its own."""
    return mini | {"base": dataclasses.replace(mini["base"], out=str(tmp_path), pipeline=str(tiny_pipeline_dir))}


def note(sections, step, work, names, seconds, count=1):
    site = sites.Site(paths.Layout(sections["base"].out).workers / step, sites.conditions(step, sections))
    for name in names:
        site.note(work, name, count, sites.Cost(seconds, "a card", 3 * 2**30))


def found(sections):
    return recorded.hours(recorded.costs(sections)).to_dict()


def test_hours_are_the_mean_of_what_was_noted_times_all_there_is(here):
    """112 sliders of 90 s; 8 starts of 36 s, 8 unshifted parts of 36 s and 112 parts of 360 s; groups of 4 classifiers, 7.2 s each."""
    note(here, "sliders", "sliders", ["heavy_snow/bag"], 60.0)
    note(here, "sliders", "sliders", ["heavy_snow/coat"], 120.0)
    note(here, "generation", "starts", ["0 bag 40"], 36.0)
    note(here, "generation", "unshifted", ["unshifted/bag"], 36.0)
    note(here, "generation", "unshifted", ["1.5/bag"], 1e6)  # at another guidance
    note(here, "generation", "images", ["heavy_snow/bag"], 360.0)
    note(here, "evaluation", "answers", ["evaluation/a, evaluation/b, evaluation/c, evaluation/d"], 4 * 7.2, count=4)
    note(here, "evaluation", "held-out answers", ["heldout/a"], 1e6)
    hours = found(here)
    assert hours["sliders", "sliders"] == pytest.approx(112 * 90 / 3600)
    assert hours["generation", "images"] == pytest.approx((8 * 36 + 8 * 36 + 112 * 360) / 3600)
    assert hours["evaluation", "answers of classifiers"] == pytest.approx(len(here["evaluation"].classifiers) * 7.2 / 3600)
    assert pd.isna(hours["sliders", "images of the health report"])


def test_a_row_of_which_one_kind_is_unknown_has_no_hours(here):
    note(here, "generation", "images", ["heavy_snow/bag"], 360.0)
    assert pd.isna(found(here)["generation", "images"])


def test_what_was_noted_under_other_parameters_does_not_count(here):
    note(here | {"sliders": dataclasses.replace(here["sliders"], iterations=7)}, "sliders", "sliders", ["heavy_snow/bag"], 60.0)
    assert pd.isna(found(here)["sliders", "sliders"])


def test_the_plan_simulates_the_run_on_many_workers(here):
    """112 sliders of an hour each on 7 workers: 16 hours and more, and of all steps the longest; no step has more than 112 units."""
    note(here, "sliders", "sliders", ["heavy_snow/bag"], 3600.0)
    text = plan.report(here, seconds=0, workers=[1, 7])
    walls = [float(line.split(": ")[1].split(" hours")[0].replace(",", "")) for line in text.splitlines() if " workers: " in line]
    assert 112 <= walls[0] < 150 and 16 <= walls[1] < 25 and "longest: sliders" in text
    assert "more than 112 workers change nothing" in text and "simulated" not in plan.report(here, seconds=0)


def test_the_plan_shows_what_was_noted_and_sums_it_in_place_of_its_own_measurement(here):
    """A million hours for one slider leave no doubt which one is summed."""
    without = plan.report(here, seconds=0)
    note(here, "sliders", "sliders", ["heavy_snow/bag"], 3.6e9)
    text = plan.report(here, seconds=0)
    assert "noted, sliders" not in without and "noted, sliders: 1 of 112 sliders, 3.6e+09 s each, 3 GiB at most, on a card" in text
    assert "sum: 112,000," in text and "sum: 112,000," not in without
