"""Sections of parameters with a few values changed, checked as those of a file are."""

import dataclasses
from typing import Any

from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Corruptions


def changed(settings: Any, **changes) -> Any:
    """The section with these values; ValueError in the one line that a reader of a parameter file gets."""
    plain = dataclasses.asdict(settings) | changes
    return read.build(type(settings).__name__.lower(), plain, {})


def corruption_settings() -> Corruptions:
    """Two pictures per class, with supplement D's seven levels of contrast."""
    return Corruptions(
        bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1, target="same classes"),
        images=2,
        side=64,
        contrast=[0.15, 0.075],
        contrast_severities=[3.5, 4.5],
        cutouts=2,
        reference="alexnet",
    )
