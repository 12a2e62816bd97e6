"""Recipes: their names are their own, their modules exist, and a raised number reaches all that make use of them."""

import dataclasses
import importlib.util
import json

import golden_units

from cnslib.core import kinds, units


def test_every_recipe_has_a_name_of_its_own_and_modules_that_exist():
    for recipe in kinds.every().values():
        assert recipe.number >= 1 and (recipe.modules or recipe.parts)
        for module in recipe.modules:
            assert importlib.util.find_spec(module), f"{recipe}: {module} does not exist"


def test_a_raised_number_outdates_what_makes_use_of_the_recipe_and_nothing_else():
    raised = dataclasses.replace(kinds.SHIFTS, number=kinds.SHIFTS.number + 1)
    photos = dataclasses.replace(kinds.PHOTOS, parts=tuple(raised if one == kinds.SHIFTS else one for one in kinds.PHOTOS.parts))
    assert photos.stamp("bag") != kinds.PHOTOS.stamp("bag") and str(photos) == str(kinds.PHOTOS)


def test_classifiers_of_unshifted_scenes_know_no_shift():
    unshifted = [kinds.PLAIN, kinds.AUGMENTED, *(kinds.PRETRAINED[name] for name in ("mae", "simclr", "web"))]
    assert not any(kinds.SHIFTS in recipe.lineage for recipe in unshifted)
    shifted = [kinds.AUTOENCODER, kinds.DIFFUSION, kinds.CONTRASTIVE, kinds.SELFSUPERVISED, kinds.ORACLE, kinds.PRETRAINED["clip"]]
    assert all(kinds.SHIFTS in recipe.lineage and kinds.SCENES in recipe.lineage for recipe in shifted)


def test_modules_name_themselves_nowhere_in_what_is_digested():
    assert all("cnslib" not in recipe.code for recipe in kinds.every().values())
    assert units.digest(kinds.EVALUATION) == units.digest(kinds.EVALUATION.code)


def test_every_kind_has_a_golden_result_of_its_present_number():
    """But those that copy what is given or are written in every run, those whose tiny units would be trainings, those seen in others."""
    copied = {kinds.GIVEN_TOKENS, kinds.GIVEN_SLIDERS, kinds.FILTERING}
    trained = {kinds.AUTOENCODER, kinds.DIFFUSION, kinds.CONTRASTIVE, kinds.SELFSUPERVISED, kinds.ORACLE, kinds.SEGMENTATION}
    trained |= {kinds.PRETRAINED[name] for name in ("simclr", "web", "clip")}
    seen = {kinds.ENCODERS, kinds.CLASSIFIERS, kinds.OWN_CLASSIFIERS, kinds.STRONG, kinds.STEPPER, kinds.PHOTOGRAPHS, kinds.EX1_PHOTOGRAPHS}
    others = {kinds.REGISTRY, kinds.EDM}  # their tests compare with the authors' own code
    for recipe in {*kinds.every().values()} - copied - trained - seen - others:
        path = golden_units.FOLDER / f"{recipe.name}.json"
        assert json.loads(path.read_text())["recipe"] == recipe.code, f"{path.name}: make it anew by GOLDEN=write python -m pytest"
    assert sum(path.stat().st_size for path in golden_units.FOLDER.iterdir()) < 300_000
