"""One garment with its mask and another picture in place of a drawn scene, and what scenes are drawn with."""

import dataclasses
from pathlib import Path

import pytest
from tiny_scenarios import SETTINGS as SCENARIOS

from cnslib.core import paths
from cnslib.studies.scenarios import subjects
from cnslib.studies.segmentation.inputs import Drawing
from cnslib.world import scenes


@pytest.fixture(scope="session")
def garment() -> subjects.Subject:
    (own,) = subjects.garments(scenes.garments(paths.GARMENTS, "heldout"), "heldout", ["trouser"], count=1, seed=1)
    return dataclasses.replace(own, drawn=own.other[::-1].copy())


@pytest.fixture(scope="session")
def drawing(tiny_pipeline_dir: Path, tmp_path_factory) -> Drawing:
    return Drawing(tiny_pipeline_dir, dataclasses.replace(SCENARIOS, drawing_steps=2), "cpu", tmp_path_factory.mktemp("drawn"))
