"""What pieces of work have cost: hours of whole steps from what was noted while some of their units were made, here or by workers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cnslib.core.names import UNSHIFTED


@dataclass(frozen=True)
class Kind:
    """Pieces of one kind: step and work as they are noted, the row of the plan that they belong to, and how many units there are.

    `of` is how the names of these pieces begin.
    """

    step: str
    work: str
    row: str
    total: Callable[[dict[str, Any]], int]
    of: str = ""


def classes(sections: dict[str, Any]) -> int:
    """The number of classes."""
    return len(sections["base"].classes)


def pairs(sections: dict[str, Any]) -> int:
    """The number of shifts and classes."""
    return len(sections["base"].shifts) * classes(sections)


IMAGES = "images"
KINDS = (
    Kind("sliders", "sliders", "sliders", pairs),
    Kind("sliders", "health", "images of the health report", pairs),
    Kind("generation", "starts", IMAGES, classes),
    Kind("generation", UNSHIFTED, IMAGES, classes, of=f"{UNSHIFTED}/"),
    Kind("generation", IMAGES, IMAGES, pairs),
    Kind("filtering", "alignment", "images judged by three encoders", lambda sections: len(sections["base"].shifts)),
    Kind("evaluation", "answers", "answers of classifiers", lambda sections: len(sections["evaluation"].classifiers)),
)


def units(sections: dict[str, Any]) -> dict[tuple[str, str], int]:
    """By step and row of the plan how many units workers can share: those of its most numerous kind."""
    counts: dict[tuple[str, str], int] = {}
    for kind in KINDS:
        counts[kind.step, kind.row] = max(counts.get((kind.step, kind.row), 0), kind.total(sections))
    return counts
