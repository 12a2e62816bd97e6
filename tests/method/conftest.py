"""What the tests of the method share: the tiny pipeline with the tokens of two classes, and what it is made from."""

import pytest
from tiny_sliders import CLASSES, pipeline

from cnslib.models import text_to_image


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
