"""Workers of a cluster: the one section of the files in clusters/, which `base.workers` names."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from cnslib.core.settings.method import STRICT, Count, Positive, Text


@dataclass(frozen=True, config=STRICT)
class Cluster:
    """How Parsl gets workers (`provider` and `launcher` are classes of parsl.providers and parsl.launchers), and how it treats them."""

    provider: Text
    options: dict[str, str | int | float | bool]
    launcher: Text
    workers: Count
    card_each: bool
    retries: Annotated[int, Field(ge=0)]
    idle: Positive
    address: str
    setup: str
