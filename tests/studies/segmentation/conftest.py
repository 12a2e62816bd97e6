"""One garment with its mask."""

import pytest
from tiny_segmentation import SETTINGS

from cnslib.studies.scenarios import subjects
from cnslib.studies.segmentation import inputs


@pytest.fixture(scope="session")
def garment() -> subjects.Subject:
    return inputs.garments(["trouser"], settings=SETTINGS)[0]
