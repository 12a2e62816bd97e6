"""What earlier steps made: the files that the parameters ask for and no others, their bytes and keys checked before anything is computed.

Errors name rot (other bytes than recorded), strangers, gaps, a file under another one's name, and a table of another grid. A table that was
imported holds a part of the grid; one that a step made holds all of it.
"""

import itertools
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow.parquet as parquet

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.method import Base
from cnslib.core.settings.read import Run
from cnslib.core.sources import document

MODELS = "models.csv"  # numbers of weights
SUMMARY = "heldout.csv"  # accuracies without a shift, where those of single images are unknown


def grid(base: Base, *, repeated: bool = False) -> pd.MultiIndex:
    """Every (shift, class, seed, scale) there is to be: scale 0 under the shift "unshifted", or `repeated` under each shift."""
    scales, axes = [float(scale) for scale in base.scales], [base.classes, range(1, base.seeds + 1)]
    others = [scale for scale in scales if scale != 0]
    parts = [(base.shifts, scales)] if repeated else [([UNSHIFTED], [0.0]), (base.shifts, others)]
    keys = [key for shifts, some in parts for key in itertools.product(shifts, *axes, some)]
    return pd.MultiIndex.from_tuples(keys, names=tables.KEY).sort_values()


def require(table: pd.DataFrame, wanted: pd.MultiIndex, name: str, *, whole: bool = True) -> None:
    """Raises ValueError unless all keys of a table are wanted and there once and, where it is to be `whole`, all wanted ones are there."""
    number, keys = tables.numbered(table, wanted.names)
    twice, rows = np.bincount(number, minlength=len(keys)) > 1, pd.MultiIndex.from_frame(keys)
    stale = "made for another grid than base.shifts, classes, seeds and scales tell: run its step again"
    faults = {"are there twice": rows[twice]}
    if not rows.equals(wanted):
        faults |= {"do not belong to the parameters": rows.difference(wanted), "are missing": wanted.difference(rows if whole else wanted)}
    for fault, faulty in faults.items():
        if len(faulty):
            raise ValueError(f"{name}: {len(faulty)} rows {fault}, the first {faulty.tolist()[0]}; {stale}")


def expected(folder: Path, names: Collection[str]) -> dict[str, Path]:
    """The table of each name in a folder, with the bytes that were recorded. ValueError for a table that nobody asks for."""
    files = {name: folder / f"{identifier(name)}.parquet" for name in names}
    if strangers := sorted({path.name for path in folder.glob("*.parquet")} - {path.name for path in files.values()}):
        shown, accepted = paths.shown(folder), ", ".join(sorted(path.name for path in files.values()))
        raise ValueError(f"{shown} holds {strangers[0]}, which the parameters do not ask for; accepted: {accepted}; run its step again")
    for path in files.values():
        units.verified(path)
    return files


def require_of(table: pd.DataFrame, column: str, name: str, path: Path) -> None:
    """Raises ValueError for a table of another shift or classifier than its name says."""
    if others := sorted(set(table[column].unique()) - {name}):
        raise ValueError(f"{paths.shown(path)} is of {column} {others[0]!r}; accepted: {name!r}, as its name says; run its step again")


def images(folder: Path, shift: str) -> pd.DataFrame:
    """The images of one shift, or the unshifted ones, of the generation step's folder; ValueError where they are of another shift."""
    return pd.concat(batches(folder, shift), ignore_index=True)


def keys(folder: Path, shift: str) -> pd.DataFrame:
    """Their keys, without the pictures; the same errors."""
    path = folder / f"{identifier(shift)}.parquet"
    units.verified(path)
    table = tables.keys(path)
    require_of(table, "shift", shift, path)
    return table


def batches(folder: Path, shift: str) -> Iterator[pd.DataFrame]:
    """The images, some rows at a time; the same errors."""
    keys(folder, shift)
    return tables.batches(folder / f"{identifier(shift)}.parquet")


def drawn_as(rows: pd.DataFrame) -> pd.MultiIndex:
    """The keys under which the images of rows were drawn: those of scale 0 once, unshifted."""
    return pd.MultiIndex.from_frame(rows[tables.KEY].assign(shift=rows["shift"].where(rows["scale"] != 0, UNSHIFTED)))


def with_pictures(folder: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the bytes of their images, PNG or JPEG, from the generation step's folder. ValueError for one that is not there."""
    keys = drawn_as(rows)
    wanted, parts = keys.to_frame(index=False), [pd.DataFrame(columns=[*tables.KEY, "image"])]
    for shift, of_shift in wanted.groupby("shift"):
        units.verified(path := folder / f"{identifier(shift)}.parquet")
        parts.append(tables.pick(path, of_shift, tables.KEY))
    images = pd.concat(parts).set_index(tables.KEY)["image"].reindex(keys)
    require(wanted[images.notna().to_numpy()].drop_duplicates(), keys.unique().sort_values(), paths.shown(folder))
    return rows.assign(image=images.to_numpy())


def top1(run: Run) -> pd.DataFrame:
    """The first choice of every classifier for every image, as `tables.read_top1`."""
    files = expected(run.layout.artifacts("evaluation"), run.evaluation.classifiers)
    predictions, whole, end = tables.read_top1(files.values()), grid(run.base), 0
    labels = document(paths.resolve(run.base.labels), key="base.labels")
    imported = whole.union(grid(run.base, repeated=True))  # the authors have an image of scale 0 under each shift
    for name, path in files.items():
        start, end = end, end + parquet.read_metadata(path).num_rows
        part = units.is_recorded(path)
        require_of(predictions[start:end], "model", name, path)
        require(predictions[start:end], imported if part else whole, paths.shown(path), whole=not part)
        require_possible(predictions[start:end], labels, path, probabilities=not part)
    return predictions


def require_possible(table: pd.DataFrame, labels: list[str], path: Path, *, probabilities: bool) -> None:
    """Raises ValueError for a first answer that is no label and, but for imported ones, for a `probability` outside of [0, 1]."""
    strange = {"top1": sorted(set(table["top1"].unique()) - set(labels))}
    if probabilities:
        given = tables.load(path, columns=["probability"])["probability"].to_numpy()
        strange["probability"] = given[~((given >= 0) & (given <= 1.0001))].tolist()
    for column, values in strange.items():
        if values:
            accepted = "a label of base.labels" if column == "top1" else "numbers from 0 to 1"
            raise ValueError(f"{paths.shown(path)}: {column} is {values[0]!r}; accepted: {accepted}; run its step again")


def predictions(run: Run, names: Collection[str]) -> pd.DataFrame:
    """The whole predictions of some classifiers, all columns."""
    top1(run)
    folder = run.layout.artifacts("evaluation")
    return pd.concat([tables.read(folder / f"{identifier(name)}.parquet", tables.predictions) for name in names], ignore_index=True)


def complete_predictions(folder: Path, names: Collection[str]) -> pd.DataFrame:
    """All columns of the predictions of some classifiers, made here or imported: what the authors' files do not hold is absent."""
    return pd.concat([tables.read(folder / f"{identifier(name)}.parquet", tables.imported) for name in names], ignore_index=True)


def answered(run: Run) -> Path:
    """The evaluation's folder, after a look at what lies in it about the catalog's held-out pictures, and the numbers of weights."""
    folder = run.layout.artifacts("evaluation")
    units.verified(folder / MODELS)
    if not any((folder / "heldout").glob("*.parquet")) and (folder / SUMMARY).exists():
        units.verified(folder / SUMMARY)
        return folder
    for name, path in expected(folder / "heldout", run.evaluation.classifiers).items():
        table = tables.load(path, columns=["model", "class"]).to_pandas()
        require_of(table, "model", name, path)
        if others := sorted(set(table["class"]) ^ set(run.base.classes)):
            raise ValueError(f"{paths.shown(path)} and base.classes differ in {others[0]!r}; run the evaluation step again")
    return folder


def sizes(run: Run) -> pd.Series:
    """Numbers of weights by classifier."""
    path = run.layout.artifacts("evaluation") / MODELS
    units.verified(path)
    return pd.read_csv(path).set_index("model")["parameters"]


def by_shift(run: Run, name: str, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """What the filter measured ("alignment") or the oracle saw ("oracle") in every image, scale 0 under each shift."""
    files = expected(run.layout.artifacts("filtering") / name, run.base.shifts)
    table = pd.concat([tables.read(path, kind) for path in files.values()], ignore_index=True)
    require(table, grid(run.base, repeated=True), f"artifacts/filtering/{name}")
    return table


def scored(run: Run) -> units.Unit:
    """The table of scores and verdicts, made from the alignments by the filter's settings."""
    folder = run.layout.artifacts("filtering")
    made = {shift: units.verified(path) for shift, path in expected(folder / "alignment", run.base.shifts).items()}
    deciding: dict[str, Any] = {"recall": run.filtering.recall, "passes": run.filtering.passes}
    if run.labels.files:  # people's; without them the oracle's, which the alignments hold
        deciding["labels"] = [units.file_digest(paths.resolve(file)) for file in run.labels.files]
    return units.Unit(folder / "scores.parquet", recipes.FILTERING.stamp(made, deciding, run.base.classes))


def filtered(run: Run) -> units.Unit:
    """The table of kept trajectories, made from the table of scores."""
    folder = run.layout.artifacts("filtering")
    return units.Unit(folder / "kept.parquet", recipes.FILTERING.stamp("kept", units.verified(folder / "scores.parquet")))


def scores(run: Run) -> pd.DataFrame:
    """Scores and verdict of every image, scale 0 under each shift."""
    unit = scored(run)
    unit.require()
    table = tables.read(unit.path, tables.scores)
    require(table, grid(run.base, repeated=True), paths.shown(unit.path))
    return table


def kept(run: Run) -> pd.DataFrame:
    """The trajectories (shift, class, seed) that the filter keeps; of imported ones those that were predicted."""
    path = run.layout.artifacts("filtering") / "kept.parquet"
    units.verified(path)
    table = tables.read(path, tables.kept_schema)
    if units.is_recorded(path):
        require(table, grid(run.base).droplevel("scale").unique(), paths.shown(path), whole=False)
    else:
        every = scores(run)
        filtered(run).require()
        require(
            table, pd.MultiIndex.from_frame(every.loc[every["keep"], tables.TRAJECTORY].drop_duplicates()).sort_values(), paths.shown(path)
        )
    return table


def version(run: Run) -> dict[str, str]:
    """Name and version of the benchmark, and a digest of its pictures and of what the filter keeps: digests must agree for a comparison."""
    pictures = {path.name: units.verified(path) for path in sorted(run.layout.artifacts("generation").glob("*.parquet"))}
    digest = units.digest(pictures, units.verified(run.layout.artifacts("filtering") / "kept.parquet"))
    return {"name": run.dataset.name, "version": run.dataset.version, "digest": digest[:16]}


def of_kept(rows: pd.DataFrame, kept: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of whole kept trajectories; where scale 0 is stored once, each shift takes it from there. ValueError counts missing ones."""
    shifted = rows[rows["scale"] != 0]  # scale 0 is the same under every shift, and would be found for trajectories without other rows
    tables.select(shifted, kept, tables.TRAJECTORY, name)
    whole = tables.trajectories(rows, sorted(set(kept["shift"]))) if (rows["shift"] == UNSHIFTED).any() else rows
    return tables.select(whole, kept, tables.TRAJECTORY, name)
