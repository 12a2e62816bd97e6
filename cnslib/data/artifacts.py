"""What earlier steps made, read through one door: the files that the parameters ask for and no others, their bytes and keys checked.

Before anything is computed an error names rot (other bytes than those of the file's record), strangers (files that the parameters do not
ask for), gaps (files that are missing), a file under another one's name, and a table that was made for another grid of shifts,
classes, seeds and scales. A table that was imported holds a part of the grid; one that a step made holds all of it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow.parquet as parquet
from jaxtyping import Int

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.method import Base
from cnslib.core.settings.read import Run

MODELS, SUMMARY = "models.csv", "heldout.csv"  # numbers of weights; accuracies without a shift, where answers to single images are unknown


@dataclass(frozen=True)
class Grid:
    """Every (shift, class, seed, scale) there is to be; scale 0 stands under the shift "unshifted", or with `repeated` under each."""

    shifts: list[str]
    classes: list[str]
    seeds: int
    scales: list[float]
    repeated: bool = False

    @property
    def wanted(self) -> np.ndarray:
        """Which places of [shifts classes seeds scales] are filled; the first shift is "unshifted"."""
        filled = np.zeros((len(self.shifts) + 1, len(self.classes), self.seeds, len(self.scales)), bool)
        above = np.array(self.scales) > 0
        filled[1:] = True if self.repeated else above
        filled[0] = False if self.repeated else ~above
        return filled

    def places(self, table: pd.DataFrame) -> Int[np.ndarray, "rows 4"]:
        """Where each row of a table with that key belongs; -1 for what the grid does not know."""
        names = {"shift": [UNSHIFTED, *self.shifts], "class": self.classes, "seed": range(1, self.seeds + 1), "scale": self.scales}
        columns = [pd.Index(known).get_indexer(pd.Index(table[column].to_numpy())) for column, known in names.items()]
        return np.stack(columns, axis=1)

    def key(self, place: Collection[int]) -> tuple:
        """The key of a place."""
        shift, name, seed, scale = place
        return ([UNSHIFTED, *self.shifts][shift], self.classes[name], int(seed) + 1, self.scales[scale])

    def require(self, table: pd.DataFrame, name: str, *, whole: bool) -> None:
        """Raises ValueError unless every row is one of the grid, none is there twice and, where it is to be `whole`, none is missing."""
        places, stale = self.places(table), "; made for another grid than base.shifts, classes, seeds and scales tell: run its step again"
        if (foreign := (places < 0).any(axis=1)).any():
            first = next(table[tables.KEY][foreign].astype({"seed": object, "scale": object}).itertuples(index=False, name=None))
            raise ValueError(f"{name}: {int(foreign.sum())} rows do not belong to the parameters, the first {first}{stale}")
        count = np.zeros(self.wanted.shape, int)
        np.add.at(count, tuple(places.T), 1)
        if (count > 1).any():
            raise ValueError(f"{name}: {self.key(np.argwhere(count > 1)[0])} is there twice; accepted: every key once")
        missing, extra = np.argwhere(self.wanted & (count == 0)), np.argwhere(~self.wanted & (count > 0))
        if whole and len(missing):
            raise ValueError(f"{name}: {len(missing)} rows are missing, the first {self.key(missing[0])}{stale}")
        if whole and len(extra):
            raise ValueError(f"{name}: {len(extra)} rows do not belong to the parameters, the first {self.key(extra[0])}{stale}")


def grid(base: Base, *, repeated: bool = False) -> Grid:
    """The grid of the parameters."""
    return Grid(list(base.shifts), list(base.classes), base.seeds, [float(scale) for scale in base.scales], repeated)


def expected(folder: Path, names: Collection[str]) -> dict[str, Path]:
    """The table of each name in a folder, with the bytes that were recorded. ValueError for a table that nobody asks for."""
    files = {name: folder / f"{identifier(name)}.parquet" for name in names}
    if strangers := sorted({path.name for path in folder.glob("*.parquet")} - {path.name for path in files.values()}):
        shown, asked = paths.shown(folder), ", ".join(sorted(path.name for path in files.values()))
        raise ValueError(f"{shown} holds {strangers[0]}, which the parameters do not ask for; accepted: {asked}; run its step again")
    for path in files.values():
        units.verified(path)
    return files


def images(folder: Path, shift: str) -> pd.DataFrame:
    """The images of one shift, or the unshifted ones, of the generation step's folder; ValueError where they are of another shift."""
    path = folder / f"{identifier(shift)}.parquet"
    units.verified(path)
    table = tables.read(path, tables.images)
    if others := sorted(set(table["shift"]) - {shift}):
        raise ValueError(f"{path} holds images of {others[0]!r}; accepted: {shift!r}, as its name says; run the generation step again")
    return table


def answers(run: Run) -> pd.DataFrame:
    """The first answers of all classifiers to all images, as `tables.read_answers`."""
    files = expected(run.layout.artifacts("evaluation"), run.evaluation.classifiers)
    found, whole = tables.read_answers(files.values()), grid(run.base)
    sizes = [parquet.read_metadata(path).num_rows for path in files.values()]
    for (name, path), end, size in zip(files.items(), np.cumsum(sizes), sizes, strict=True):
        require_of(found[end - size : end], name, path)
        whole.require(found[end - size : end], paths.shown(path), whole=not units.is_recorded(path))
    return found


def predictions(run: Run, names: Collection[str]) -> pd.DataFrame:
    """The whole predictions of some classifiers, all columns."""
    answers(run)
    folder = run.layout.artifacts("evaluation")
    return pd.concat([tables.read(folder / f"{identifier(name)}.parquet", tables.predictions) for name in names], ignore_index=True)


def require_of(table: pd.DataFrame, name: str, path: Path) -> None:
    """Raises ValueError for a table of answers of another classifier than its name says."""
    if others := sorted(set(table["model"].unique()) - {name}):
        raise ValueError(f"{paths.shown(path)} holds answers of {others[0]!r}; accepted: {name!r}, as its name says")


def answered(run: Run) -> Path:
    """The evaluation's folder, after a look at what lies in it about the catalog's held-out pictures, and the numbers of weights."""
    folder = run.layout.artifacts("evaluation")
    units.verified(folder / MODELS)
    if not any((folder / "heldout").glob("*.parquet")) and (folder / SUMMARY).exists():
        units.verified(folder / SUMMARY)
        return folder
    for name, path in expected(folder / "heldout", run.evaluation.classifiers).items():
        table = tables.load(path, columns=["model", "class"]).to_pandas()
        require_of(table, name, path)
        if set(table["class"]) != set(run.base.classes):
            first = sorted(set(table["class"]) ^ set(run.base.classes))[0]
            raise ValueError(f"{paths.shown(path)} and base.classes differ in {first!r}; run the evaluation step again")
    return folder


def sizes(run: Run) -> pd.Series:
    """Numbers of weights by classifier."""
    path = run.layout.artifacts("evaluation") / MODELS
    units.verified(path)
    return pd.read_csv(path).set_index("model")["parameters"]


def alignments(run: Run, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """The filter's four cosines of every image, scale 0 under each shift."""
    return by_shift(run, "alignment", kind)


def sights(run: Run, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """What the oracle sees in every image, scale 0 under each shift."""
    return by_shift(run, "sights", kind)


def by_shift(run: Run, name: str, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """The tables of all shifts in a folder of the filtering step, one row per image."""
    files = expected(run.layout.artifacts("filtering") / name, run.base.shifts)
    found = pd.concat([tables.read(path, kind) for path in files.values()], ignore_index=True)
    grid(run.base, repeated=True).require(found, f"artifacts/filtering/{name}", whole=True)
    return found


def scored(run: Run) -> units.Unit:
    """The table of scores and verdicts, made from the alignments by the filter's settings."""
    made = {
        shift: units.verified(path) for shift, path in expected(run.layout.artifacts("filtering") / "alignment", run.base.shifts).items()
    }
    asked = {"recall": run.filtering.recall, "passes": run.filtering.passes}
    return units.Unit(run.layout.artifacts("filtering") / "scores.parquet", recipes.FILTERING.stamp(made, asked, run.base.classes))


def filtered(run: Run) -> units.Unit:
    """The table of kept trajectories, made from the table of scores."""
    folder = run.layout.artifacts("filtering")
    return units.Unit(folder / "kept.parquet", recipes.FILTERING.stamp("kept", units.verified(folder / "scores.parquet")))


def scores(run: Run) -> pd.DataFrame:
    """Scores and verdict of every image, scale 0 under each shift."""
    unit = scored(run)
    unit.require()
    found = tables.read(unit.path, tables.scores)
    grid(run.base, repeated=True).require(found, paths.shown(unit.path), whole=True)
    return found


def kept(run: Run) -> pd.DataFrame:
    """The trajectories (shift, class, seed) that the filter keeps; of imported answers those that were answered."""
    path = run.layout.artifacts("filtering") / "kept.parquet"
    units.verified(path)
    found = tables.read(path, tables.kept_schema)
    if units.is_recorded(path):
        grid(run.base).require(found.assign(scale=0.0), paths.shown(path), whole=False)
    else:
        scores(run)
        filtered(run).require()
    return found
