"""What segmentation and saliency are asked about: states, garments and photographs of the scenarios."""

import dataclasses

import numpy as np
import pytest
from tiny_segmentation import SETTINGS, key

from cnslib.core import paths
from cnslib.studies.scenarios import scenarios
from cnslib.studies.segmentation import inputs


def test_states_begin_with_the_image_itself_and_every_scenario_changes_it(garment):
    pictures = inputs.pictures(garment, [0.0, 1.0], seed=1)
    assert inputs.keys(garment, [0.0, 1.0])[0] == key()
    assert np.array_equal(pictures[0], np.round(garment.image * 255).astype(np.uint8))
    assert all((picture != pictures[0]).any() for picture in pictures[1:])


def test_the_garments_are_those_of_the_scenarios_each_with_a_scene_drawn_around_it(garment, drawing):
    (made,) = inputs.garments(["trouser"], settings=SETTINGS, drawing=drawing)
    assert np.array_equal(made.image, garment.image) and np.array_equal(made.other, garment.other) and made.drawn.shape == made.image.shape


@pytest.mark.parametrize(("name", "part"), [("random background", "other"), ("drawn background", "drawn")])
def test_another_background_stands_behind_the_garment(garment, name, part):
    place = inputs.states(garment, [0.0, 1.0]).index((name, 1.0))
    made = inputs.pictures(garment, [0.0, 1.0], seed=1)[place]
    assert np.array_equal(made[garment.mask == 0], np.round(getattr(garment, part) * 255).astype(np.uint8)[garment.mask == 0])


def test_a_subject_without_a_drawn_scene_has_no_such_scenario(garment):
    plain = dataclasses.replace(garment, drawn=None)
    assert set(inputs.names(garment)) - set(inputs.names(plain)) == {"drawn background"}
    assert len(inputs.keys(plain, [0.0, 1.0])) == len(inputs.pictures(plain, [0.0, 1.0], seed=1)) == 1 + len(scenarios.UNDRAWN)


def test_more_photographs_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"segmentation\.photographs: 999.*at most 88"):
        inputs.photographs(paths.PHOTOS, settings=dataclasses.replace(SETTINGS, photographs=999))
