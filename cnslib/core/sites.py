"""Where the units of a step are made, and what they cost: one line per piece of work in workers/<step>/costs.jsonl of the run's folder.

A notebook's process has one site, which `settings.read.start` sets. Costs differ from run to run, so they lie beside no result.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cnslib.core import units
from cnslib.core.settings.cluster import Cluster

COSTS = "costs.jsonl"
DECIDING = ("device", "pipeline", "clip", "scales", "seeds", "recipe", "drawing")  # keys of base that the cost of a piece depends on
WHOLE = {"evaluation": ("classes", "shifts"), "filtering": ("classes",)}  # lists of base of which each piece of a step sees all


@dataclass(frozen=True)
class Cost:
    """Seconds of a piece of work, the device, and the most bytes that were held at once: of the card, or by a process on a CPU."""

    seconds: float
    device: str
    memory: int


@dataclass(frozen=True)
class Site:
    """The folder for logs and costs, the conditions under which costs compare, and the workers; without a folder nothing is noted."""

    folder: Path | None = None
    conditions: str = ""
    cluster: Cluster | None = None

    def note(self, work: str, name: str, count: int, cost: Cost) -> None:
        """Adds the cost of a piece that made `count` units, or computed one value."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        line = {"work": work, "name": name, "units": count, **dataclasses.asdict(cost), "conditions": self.conditions}
        with open(self.folder / COSTS, "ab+") as stream:
            stream.seek(max(stream.tell() - 1, 0))
            halved = stream.read(1) not in (b"", b"\n")  # by a run that was killed while it wrote
            stream.write(b"\n" * halved + json.dumps(line).encode() + b"\n")


current = Site()


def use(site: Site) -> None:
    """Sets the site of this process."""
    global current
    current = site


def conditions(step: str, sections: Mapping[str, Any]) -> str:
    """The digest of the parameters that decide what one piece of a step costs: numbers of classes and shifts where it sees them all."""
    base, settings = sections["base"], dataclasses.asdict(sections[step])
    settings.pop("classifiers", None)
    settings.pop("bootstrap", None)
    grid = [len(getattr(base, key)) for key in WHOLE.get(step, ())]
    return units.digest(step, settings, {key: getattr(base, key) for key in DECIDING}, grid)


def costs(folder: Path, conditions: str) -> pd.DataFrame:
    """The pieces that were noted in a folder under these conditions: work, name, units, seconds, device, memory; one row each.

    The latest line of a piece counts. A line that a killed run left half written is passed over.
    """
    lines = (folder / COSTS).read_text().splitlines() if (folder / COSTS).exists() else []
    found = [line for line in map(parsed, lines) if line.get("conditions") == conditions]
    columns = ["work", "name", "units", *(field.name for field in dataclasses.fields(Cost))]
    return pd.DataFrame(found, columns=columns).drop_duplicates(["work", "name"], keep="last", ignore_index=True)


def parsed(line: str) -> dict[str, Any]:
    """One line of costs; nothing for what is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
