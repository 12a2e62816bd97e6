"""What pieces of work have cost: hours of whole steps from what was noted while some of their units were made, here or by workers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cnslib.core import paths, sites
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


def costs(sections: dict[str, Any]) -> pd.DataFrame:
    """One row per kind: step, row, work, units noted and in all, hours of all by the mean of those noted, devices, most bytes held."""
    layout = paths.Layout(sections["base"].out)
    found = []
    for kind in KINDS:
        noted = sites.costs(layout.workers / kind.step, sites.conditions(kind.step, sections))
        noted = noted[(noted["work"] == kind.work) & noted["name"].str.startswith(kind.of)]
        count, total = int(noted["units"].sum()), kind.total(sections)
        hours = noted["seconds"].sum() / count * total / 3600 if count else float("nan")
        about = {"device": ", ".join(sorted(set(noted["device"]))), "memory": int(noted["memory"].max()) if count else 0}
        found.append({"step": kind.step, "row": kind.row, "work": kind.work, "noted": count, "total": total, "hours": hours, **about})
    return pd.DataFrame(found)


def units(sections: dict[str, Any]) -> dict[tuple[str, str], int]:
    """By step and row of the plan how many units workers can share: those of its most numerous kind."""
    counts: dict[tuple[str, str], int] = {}
    for kind in KINDS:
        counts[kind.step, kind.row] = max(counts.get((kind.step, kind.row), 0), kind.total(sections))
    return counts


def hours(found: pd.DataFrame) -> pd.Series:
    """Hours by step and row of the plan; not a number where a kind of piece was never noted."""
    return found.groupby(["step", "row"])["hours"].sum(min_count=1).where(found.groupby(["step", "row"])["noted"].min() > 0)


def lines(found: pd.DataFrame) -> list[str]:
    """What was noted, in words."""
    return [
        f"noted, {one.step}: {one.noted:,} of {one.total:,} {one.work}, {one.hours * 3600 / one.total:.3g} s each, "
        f"{one.memory / 2**30:.2g} GiB at most, on {one.device}"
        for one in found[found["noted"] > 0].itertuples()
    ]
