"""`cns reproduce`: executes every notebook again on the restored artifacts and compares the results with the committed ones."""

import argparse
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from dvc.api import DVCFileSystem
from dvc.repo import Repo
from dvc.stage import PipelineStage
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from cnslib.core import paths, tables, units
from cnslib.tools import kernels, numbers, runner

# Another processor may round a pixel the other way. That moves a share by a few images and turns the odd verdict around.
RELATIVE, ABSOLUTE, LABELS = 1e-2, 5e-3, 0.99
# Steps whose tables are made again. What judges and classifiers see in each picture is restored: it would take minutes more.
ANALYSES = ("world", "filtering")
GOOD = ("identical", "within tolerance")
WATCHED = ("metrics/*.json", "figures/**/*.csv", *(f"artifacts/{step}/**/*.parquet*" for step in ANALYSES))


def committed(root: Path) -> dict[str, bytes]:
    """The results of the current commit by path: metrics, numbers of figures, and the analyses' tables with their records."""
    files = DVCFileSystem(str(root), rev="HEAD")
    contents = {path: files.read_bytes(path) for pattern in WATCHED for path in files.glob(pattern)}
    if missing := [step for step in ANALYSES if not any(path.startswith(f"artifacts/{step}/") for path in contents)]:
        raise ValueError(f"dvc.lock: no committed results of {', '.join(missing)}; `dvc repro` makes them, commit them first")
    return contents


def current(root: Path, *patterns: str) -> dict[str, bytes]:
    """The results now on disk by path: all, or those that match."""
    files = [path for pattern in patterns or WATCHED for path in sorted(root.glob(pattern))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def frame(name: str, data: bytes) -> pd.DataFrame:
    """A result as a table: csv as it is, parquet with the mean grey level in place of a picture, one row per number of a metrics file."""
    if name.endswith(".csv"):
        return pd.read_csv(io.BytesIO(data))
    if name.endswith(".json"):
        return pd.json_normalize(json.loads(data)).T.astype(float, errors="ignore").reset_index()
    table = pd.read_parquet(io.BytesIO(data))
    return table.assign(image=[tables.decode(png, name).mean() for png in table["image"]]) if "image" in table else table


def verdict(name: str, old: bytes | None, new: bytes | None) -> str:
    """One of "identical", "within tolerance", or what differs.

    Rows are compared in the order of their keys, the columns that hold the same values in both, those of fewer values first.
    """
    if old is None or new is None:
        return "is not committed" if old is None else "was not made"
    if old == new:
        return "identical"
    both = before, after = frame(name, old), frame(name, new)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return f"differs: {before.shape} rows and columns are committed, {after.shape} were made"
    texts = {column: [sorted(table[column].astype(str)) for table in both] for column in before}
    order = sorted(before, key=lambda column: (texts[column][0] != texts[column][1], before[column].nunique()))
    before, after = (table.sort_values(order, ignore_index=True) for table in both)
    apart = [str(column) for column in before if not close(before[column], after[column])]
    return f"differs in {', '.join(apart)}" if apart else "within tolerance"


def close(old: pd.Series, new: pd.Series) -> bool:
    """Whether all numbers of a column agree up to the tolerances, or, for a column of labels, the stated share of its rows."""
    if all(is_numeric_dtype(column) and not is_bool_dtype(column) for column in (old, new)):
        return bool(np.allclose(old, new, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))
    return bool((old.astype(str).to_numpy() == new.astype(str).to_numpy()).mean() >= LABELS)


def compare(old: dict[str, bytes], new: dict[str, bytes]) -> dict[str, str]:
    """The verdict on every result that was committed or made; a table's record follows from the table."""
    names = sorted(name for name in old.keys() | new.keys() if not name.endswith(".digest"))
    return {name: verdict(name, old.get(name), new.get(name)) for name in names}


def execute(root: Path, launch: Callable[[str], object], stored: dict[str, bytes]) -> dict[str, bytes]:
    """Launches every stage of root/dvc.yaml whether or not anything changed, side by side, and has DVC record what they made.

    A stage loses first what DVC would take from it; `world` also its catalog. Returns the tables that the analyses made (see `settled`).
    """
    made: dict[str, bytes] = {}
    with Repo(root) as repo:
        stages = {stage.name: stage for stage in repo.index.stages if isinstance(stage, PipelineStage)}

        def again(name: str) -> None:
            for out in stages[name].outs:
                if name == "world" or not out.persist:  # the filter writes its tables in any case
                    out.remove()
            launch(name)
            if name in ANALYSES:
                made.update(settled(root, name, stored))

        runner.schedule(runner.predecessors(root), again)
        repo.commit("dvc.yaml", force=True, relink=False)
    return made


def settled(root: Path, step: str, stored: dict[str, bytes]) -> dict[str, bytes]:
    """The tables that an analysis has just made, in whose place the stored ones are put if they all agree.

    A pixel that another processor rounds the other way would else outdate tokens, sliders and pictures, which take hours.
    """
    made = current(root, f"artifacts/{step}/**/*.parquet")
    ours = {name: data for name, data in stored.items() if name.startswith(f"artifacts/{step}/")}
    if set(compare(ours, made).values()) <= set(GOOD):
        for name, data in ours.items():
            units.write_bytes(root / name, data)
    return made


def main(arguments: list[str]) -> int:
    """Runs, compares and checks the numbers in the prose; 0 if all agrees, 1 if not or if a stage fails, 2 if nothing is committed."""
    argparse.ArgumentParser(prog="cns reproduce", description=__doc__.splitlines()[0]).parse_args(arguments)
    try:
        kernels.warm()  # first: the process to fork from imports meanwhile
        old = committed(paths.ROOT)
        made = execute(paths.ROOT, lambda step: runner.run(step, "params.yaml"), old)
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    verdicts = compare(old, current(paths.ROOT) | made)
    print(*(f"{name} {text}" for name, text in verdicts.items() if text != "identical"), sep="\n")
    print("look at: figures/ (pictures), metrics/ (numbers), executed/ (notebooks)")
    for what, texts in (("results", verdicts), ("figures", {name: text for name, text in verdicts.items() if name.startswith("figures/")})):
        same, near = (list(texts.values()).count(text) for text in GOOD)
        print(f"reproduced: {same + near} of {len(texts)} {what} ({same} identical, {near} within tolerance)")
    return int(not set(verdicts.values()) <= set(GOOD)) or numbers.main([])
