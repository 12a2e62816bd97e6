"""Sections of parameters with a few values changed, checked as those of a file are."""

import dataclasses
from pathlib import Path
from typing import Any

from cnslib.core.settings import read


def changed(settings: Any, **changes) -> Any:
    """The section with these values; ValueError in the one line that a reader of a parameter file gets."""
    plain = dataclasses.asdict(settings) | changes
    return read.build(type(settings).__name__.lower(), plain, {}, Path("params.yaml"), {})
