"""What the reader has chosen and done: a look at one picture, and the rounds of the game. No widget, no picture, no network."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int

from cnslib.core import tables, units
from cnslib.core.names import demand
from cnslib.core.settings.method import Base
from cnslib.stats.accuracy import Outcomes
from cnslib.stats.failure import first_failure

STEP = 0.1  # of the slider that the reader drags
YOU = "you"


@dataclass(frozen=True)
class Look:
    """One picture: a trajectory, and the scale at which the slider stands."""

    shift: str
    name: str  # of the class
    seed: int
    scale: float

    def require(self, base: Base) -> None:
        """Raises ValueError, naming the first key whose value the benchmark of these parameters does not have."""
        demand(self.shift in base.shifts, "shift", self.shift, ", ".join(base.shifts))
        demand(self.name in base.classes, "class", self.name, ", ".join(base.classes))
        demand(self.seed in range(1, base.seeds + 1), "seed", self.seed, f"1 to {base.seeds}")
        demand(self.scale in scales(base.scales), "scale", self.scale, f"multiples of {STEP:g} up to {base.scales[-1]:g}")


def scales(grid: Sequence[float]) -> list[float]:
    """Where the dragged slider can stand: all multiples of `STEP` up to the benchmark's last scale, and the benchmark's own."""
    count = int(grid[-1] / STEP + 1e-9)
    return sorted({round(number * STEP, 6) for number in range(count + 1)} | set(map(float, grid)))


@dataclass(frozen=True)
class Round:
    """One garment of the game. The slider begins at the last scale; the reader turns it down until they can name the garment.

    So nobody names what they remember from a lower scale. `lowest` is the place, among `scales`, of the lowest one looked at, `wrong`
    holds the places at which a wrong name was given. As classifiers do, the reader has one answer at each scale.
    """

    shift: str
    name: str
    seed: int
    scales: tuple[float, ...]
    lowest: int
    wrong: tuple[int, ...] = ()
    right: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """The trajectory."""
        return self.shift, self.name, self.seed

    @property
    def over(self) -> bool:
        """Whether the garment was named, or missed even without a shift."""
        return self.right or 0 in self.wrong

    @property
    def may_answer(self) -> bool:
        """Whether there is an answer left at the lowest scale seen."""
        return not self.over and self.lowest not in self.wrong

    @property
    def failure(self) -> int:
        """Place of the reader's failure point, the first scale at which they could not name it; one past the last where there is none.

        ValueError before the round is over.
        """
        demand(self.over, "round", "still open", "a round whose garment was named, or missed at scale 0")
        return self.lowest + 1 if self.right else 0

    def turned(self, scale: float) -> "Round":
        """The round after the slider was set to a scale; turning it up again shows nothing new."""
        demand(scale in self.scales, "scale", scale, ", ".join(f"{known:g}" for known in self.scales))
        return dataclasses.replace(self, lowest=min(self.lowest, self.scales.index(scale)))

    def answered(self, name: str) -> "Round":
        """The round after the reader said what the garment is, at the lowest scale seen. ValueError where no answer is left there."""
        demand(self.may_answer, "answer", name, "one answer at each scale, until the garment is named")
        if name == self.name:
            return dataclasses.replace(self, right=True)
        return dataclasses.replace(self, wrong=(*self.wrong, self.lowest))


def rounds(found: Outcomes) -> list[tuple[Round, Int[np.ndarray, "models"]]]:
    """Every kept trajectory as a round, in a fixed order without pattern, each with the places of the classifiers' failure points."""
    keys = list(found.trajectories[tables.TRAJECTORY].itertuples(index=False, name=None))
    first, last = first_failure(found.wrong), len(found.scales) - 1
    order = sorted(range(len(keys)), key=lambda row: units.digest("round", *map(str, keys[row])))
    made = [(keys[row], first[row]) for row in order]
    return [(Round(shift, name, int(seed), tuple(found.scales), last), own) for (shift, name, seed), own in made]


def compared(own: int, first: Int[np.ndarray, "models"]) -> dict[str, int]:
    """How many classifiers fail before the reader, at the same scale, and later or never."""
    return {"earlier": int((first < own).sum()), "same": int((first == own).sum()), "later": int((first > own).sum())}


def standing(finished: Sequence[tuple[int, Int[np.ndarray, "models"]]], models: Sequence[str], grid: Sequence[float]) -> pd.DataFrame:
    """Reader and classifiers by their mean failure point over the finished rounds, the best first: name, mean_scale, place.

    Who never fails counts with the last scale. Equal means share the better place. `finished` holds the reader's failure and the
    classifiers' of each round, as places.
    """
    values = np.array([*map(float, grid), float(grid[-1])])
    places = np.array([[own, *first] for own, first in finished])
    table = pd.DataFrame({"name": [YOU, *models], "mean_scale": values[places].mean(0).round(6)})
    table["place"] = table["mean_scale"].rank(method="min", ascending=False).astype(int)
    return table.sort_values(["place", "name"], ignore_index=True)
