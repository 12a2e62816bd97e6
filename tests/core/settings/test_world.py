"""Sections of the base models' trainings: the committed file fits them, and nothing else does."""

import pytest
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read, world

SECTIONS = read.load(paths.ROOT / "world.yaml")


def test_every_section_of_the_file_is_one_of_the_trainings():
    assert {type(SECTIONS[recipe.__name__.lower()]) for recipe in world.RECIPES} == set(world.RECIPES)


@pytest.mark.parametrize("recipe", world.RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_training_names_a_key_that_it_does_not_know(recipe):
    section = recipe.__name__.lower()
    with pytest.raises(ValueError, match=rf"unknown key {section}\.momentum; accepted: "):
        changed(SECTIONS[section], momentum=0.9)


def test_a_learning_rate_in_quotes_is_no_number():
    with pytest.raises(ValueError, match=r"autoencoder\.learning_rate: '1e-3' is not accepted"):
        changed(SECTIONS["autoencoder"], learning_rate="1e-3")
