"""The corrupted photo set: which objects, which keys, and answers of a tiny classifier that are made once."""

import dataclasses

import numpy as np
import pytest
from golden_units import difference
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.studies.corruptions import levels, photographs

SETTINGS = corruption_settings()


@pytest.fixture(scope="module")
def asked():
    """The photo set's section with one classifier."""
    section = read.load(paths.resolve("params.yaml"))["photos"]
    return dataclasses.replace(section, classifiers={"lite0": "lite:0"}, reference="lite0")


def test_the_objects_are_evenly_spaced_and_no_more_than_there_are(asked):
    found = photographs.chosen(paths.PHOTOS, SETTINGS, asked)
    whole = photographs.chosen(paths.PHOTOS, dataclasses.replace(SETTINGS, cutouts=asked.cutouts), asked)
    assert [(own.label, own.seed) for own in found] == [(own.label, own.seed) for own in (whole[0], whole[asked.cutouts // 2])]
    with pytest.raises(ValueError, match=r"corruptions\.cutouts: 89.*at most photos\.cutouts, 88"):
        photographs.chosen(paths.PHOTOS, dataclasses.replace(SETTINGS, cutouts=89), asked)


def test_an_object_is_asked_as_it_is_and_at_five_severities(asked):
    own = photographs.chosen(paths.PHOTOS, SETTINGS, asked)[0]
    keys, plain = photographs.graded(own, UNSHIFTED, seed=1)
    assert plain.shape == (1, 256, 256, 3) and keys["scale"].tolist() == [0.0]
    keys, made = photographs.graded(own, levels.CONTRAST, seed=1)
    assert keys["scale"].tolist() == [1, 2, 3, 4, 5] and set(keys["class"]) == {own.label}
    spread = made.astype(float).std((1, 2, 3))
    assert (np.diff(spread) < 0).all() and spread[0] < plain.std()


@pytest.mark.slow
def test_answers_are_made_once_and_are_the_golden_ones(asked, tmp_path):
    settings = SETTINGS
    files = photographs.answer(settings=settings, asked=asked, device="cpu", folder=tmp_path)
    assert set(files) == {UNSHIFTED, *levels.EFFECTS}
    table = tables.read(files[levels.JPEG], tables.predictions)
    assert len(table) == 2 * 5 and not difference(recipes.CORRUPTED_PHOTOGRAPHS, table, within=1e-3)
    before = {name: path.stat().st_mtime_ns for name, path in files.items()}
    again = photographs.answer(settings=settings, asked=asked, device="cpu", folder=tmp_path)
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == before
