"""Rendered weather of the OOD-CV comparison: one weather a garment, known severities on the ladder, no dependence on neighbours."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_oodcv import CLASSES, SETTINGS, plentiful
from tiny_settings import changed

from cnslib.core import recipes
from cnslib.core.names import UNSHIFTED
from cnslib.studies.oodcv import weather


def test_a_garment_of_the_reference_has_one_weather_and_unshifted_ones_no_severity():
    plan = weather.reference_plan(CLASSES, settings=SETTINGS)
    assert not plan.duplicated(["class", "seed"]).any()
    counts = plan.groupby("shift").size().to_dict()
    assert counts == {"heavy snow": 8, "heavy fog": 8, "heavy sandstorm": 4, UNSHIFTED: 4}
    assert (plan.loc[plan["shift"] == UNSHIFTED, "scale"] == 0).all() and plan["scale"].between(0, 1).all()
    many = weather.reference_plan(CLASSES, settings=dataclasses.replace(SETTINGS, reference_images=500))
    means = many[many["shift"].isin(SETTINGS.shifts)].groupby("shift")["scale"].mean()
    assert means.between(0.5 - 3 / np.sqrt(12 * 1000), 0.5 + 3 / np.sqrt(12 * 1000)).all()


def test_the_ladder_has_other_garments_and_begins_at_the_same_picture_under_every_weather():
    reference = weather.reference_plan(CLASSES, settings=SETTINGS)
    plans = [weather.ladder_plan(CLASSES, shift, settings=SETTINGS) for shift in SETTINGS.shifts]
    both = [reference[["class", "seed"]].drop_duplicates(), plans[0][["class", "seed"]].drop_duplicates()]
    assert not pd.concat(both).duplicated().any()
    assert sorted(plans[0]["scale"].unique()) == [0.0, 0.5, 1.0]
    pictures = [weather.rendered(plentiful(), plan, seed=1) for plan in plans]
    start = (plans[0]["scale"] == 0).to_numpy()
    assert np.array_equal(pictures[0][start], pictures[1][start]) and not np.array_equal(pictures[0][~start], pictures[1][~start])


def test_a_picture_does_not_depend_on_its_neighbours():
    plan = weather.reference_plan(CLASSES, settings=SETTINGS)
    whole = weather.rendered(plentiful(), plan, seed=1)
    assert np.array_equal(weather.rendered(plentiful(), plan.iloc[5:7].reset_index(drop=True), seed=1), whole[5:7])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shifts": ["heavy hail"]}, r"oodcv\.shifts\.0: 'heavy hail'"),
        ({"scales": [0.5, 1.0]}, r"oodcv\.scales: \[0\.5"),
        ({"unknown": "no weather"}, r"oodcv\.unknown: 'no weather'"),
        ({"zoom": 0.5}, r"oodcv\.zoom: 0\.5"),
        ({"patience": 0}, r"oodcv\.patience: 0"),
    ],
)
def test_settings_that_cannot_be_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **change)


def test_a_class_that_is_no_garment_is_named():
    with pytest.raises(ValueError, match=r"base\.classes: 'aeroplane'"):
        weather.heldout(["aeroplane"])


def test_the_tiny_unit_is_the_golden_one(studio, tmp_path):
    """But for the answers of trained networks: a training enlarges the differences with which processors round."""
    found = weather.reference(CLASSES, panel=studio.panel, folder=tmp_path)
    assert not difference(recipes.WEATHER, found, within=1e-3, skip=tuple(SETTINGS.networks))
