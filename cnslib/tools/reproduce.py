"""`cns reproduce`: executes every notebook anew on the restored artifacts and compares the results with the committed ones."""

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from dvc.repo import Repo
from dvc.stage import PipelineStage
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from ruamel.yaml import YAML

from cnslib.core import paths, tables, units
from cnslib.tools import kernels, runner, schedule

# Another processor may round a pixel the other way. That moves a share by a few images and turns the odd verdict around.
RELATIVE, ABSOLUTE, LABELS = 1e-2, 5e-3, 0.99
ANALYSES = ("world", "filtering")  # steps with tables that are made anew; the 23 classifiers' answers would take minutes more
GOOD = ("identical", "within tolerance")
WATCHED = ("metrics/*.json", "figures/**/*.csv", *(f"artifacts/{step}/**/*.parquet" for step in ANALYSES))


def git(root: Path, *arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout  # whichever git there is  # nosec B607


def committed(root: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Of the current commit, by path: its results (metrics and tables), and all files of the analyses as its dvc.lock names them."""
    listed = git(root, "ls-tree", "-r", "--name-only", "HEAD", "metrics", "figures").decode().split()
    small = {name: git(root, "show", f"HEAD:{name}") for name in listed if name.endswith((".json", ".csv"))}
    stored = locked(root, git(root, "show", "HEAD:dvc.lock").decode())
    return small | {name: data for name, data in stored.items() if name.endswith(".parquet")}, stored


def locked(root: Path, lock: str) -> dict[str, bytes]:
    """The tables of the analyses and their records that a dvc.lock names, read from DVC's cache by their md5.

    Raises ValueError, naming the stages, where the lock lacks an analysis.
    """
    stages = YAML(typ="safe", pure=True).load(lock)["stages"]
    if missing := [step for step in ANALYSES if step not in stages]:
        raise ValueError(f"dvc.lock: no committed results of {', '.join(missing)}; `dvc repro` makes them, commit them first")
    outs = [out for step in ANALYSES for out in stages[step]["outs"] if out["path"] == f"artifacts/{step}"]
    listed = {f"{out['path']}/{file['relpath']}": file["md5"] for out in outs for file in json.loads(cached(root, out["md5"]))}
    return {name: cached(root, md5) for name, md5 in listed.items()}


def cached(root: Path, md5: str) -> bytes:
    """A file, or the json listing of a folder, from DVC's cache, which `dvc pull` fills."""
    return (root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]).read_bytes()


def current(root: Path, *patterns: str) -> dict[str, bytes]:
    """The results now on disk by path: all, or those that match."""
    found = [path for pattern in patterns or WATCHED for path in sorted(root.glob(pattern))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def frame(name: str, data: bytes) -> pd.DataFrame:
    """A result as a table: csv as it is, parquet with the mean grey level in place of a picture, one row per number of a metrics file."""
    if name.endswith(".csv"):
        return pd.read_csv(io.BytesIO(data))
    if name.endswith(".json"):
        return pd.json_normalize(json.loads(data)).T.astype(float).reset_index()
    table = pd.read_parquet(io.BytesIO(data))
    return table.assign(image=[tables.decode(png, name).mean() for png in table["image"]]) if "image" in table else table


def verdict(name: str, old: bytes | None, new: bytes | None) -> str:
    """One of "identical", "within tolerance", or what differs."""
    if old is None or new is None:
        return "is not committed" if old is None else "was not made"
    if old == new:
        return "identical"
    before, after = aligned(frame(name, old), frame(name, new))
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return f"differs: {before.shape} rows and columns are committed, {after.shape} were made"
    apart = [str(column) for column in before if not close(before[column], after[column])]
    return f"differs in {', '.join(apart)}" if apart else "within tolerance"


def aligned(old: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables in the order of their keys: the columns that hold the same values in both, those of fewer values first.

    So a row is compared with its own, also where two estimates that order the file are equal but for the last digit.
    """
    held = {name: [sorted(table[name].astype(str)) for table in (old, new)] for name in old if name in new}
    keys = sorted((name for name, (before, after) in held.items() if before == after), key=lambda name: old[name].nunique())
    order = [*keys, *(name for name in held if name not in keys)]
    return tuple(table.sort_values(order, ignore_index=True) if order else table for table in (old, new))


def close(old: pd.Series, new: pd.Series) -> bool:
    """Whether all numbers of a column agree up to the tolerances, or, for a column of labels, the stated share of its rows."""
    if all(is_numeric_dtype(column) and not is_bool_dtype(column) for column in (old, new)):
        return bool(np.allclose(old, new, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))
    return bool((old.astype(str).to_numpy() == new.astype(str).to_numpy()).mean() >= LABELS)


def compare(old: dict[str, bytes], new: dict[str, bytes]) -> dict[str, str]:
    """The verdict on every result that was committed or made."""
    return {name: verdict(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())}


def summary(verdicts: dict[str, str]) -> str:
    """The closing line: how many figures, and how many results in all, are reproduced, and how."""
    figures = {name: text for name, text in verdicts.items() if name.startswith("figures/")}
    return f"reproduced: {counted(figures, 'figures')}; {counted(verdicts, 'tables, metrics and figures')}"


def counted(verdicts: dict[str, str], what: str) -> str:
    """How many results are reproduced, and how many of them to the byte."""
    same, near = (list(verdicts.values()).count(text) for text in GOOD)
    return f"{same + near} of {len(verdicts)} {what} ({same} identical, {near} within tolerance)"


def headline(root: Path) -> str:
    """The benchmark's main numbers, read from the metrics just written."""
    accuracy = json.loads((root / "metrics" / "accuracy.json").read_text())
    lines = [f"{key}: {q['estimate']:.3f} ({q['low']:.3f} to {q['high']:.3f}, n = {q['n']})" for key, q in accuracy.items() if "n" in q]
    return "\n".join([*lines, "look at: figures/ (pictures), metrics/ (numbers), executed/ (notebooks)"])


def execute(root: Path, launch: Callable[[str], object], stored: dict[str, bytes]) -> dict[str, bytes]:
    """Launches every stage of root/dvc.yaml whether or not anything changed, side by side, and has DVC record what they made.

    A stage loses first what DVC would take from it; an analysis also its tables, which the steps before it would only verify. Returns
    the tables that the analyses made (see `settled`). The working folder is root, from which DVC resolves paths.
    """
    waits, made = schedule.predecessors(root), {}
    with Repo(root) as repo:
        stages = {stage.name: stage for stage in repo.index.stages if isinstance(stage, PipelineStage)}

        def anew(name: str) -> None:
            for out in stages[name].outs:
                if name in ANALYSES or not out.persist:
                    out.remove()
            launch(name)
            if name in ANALYSES:
                made.update(settled(root, name, stored))

        schedule.run(waits, anew)
        repo.commit("dvc.yaml", force=True, relink=False)
    return made


def settled(root: Path, step: str, stored: dict[str, bytes]) -> dict[str, bytes]:
    """The tables that an analysis has just made, in whose place the stored ones are put if they all agree.

    Tokens, sliders and pictures were made from the stored tables to the last bit. A pixel that another processor rounds the other way
    would outdate them all, and they would be made anew, in hours.
    """
    made = current(root, f"artifacts/{step}/**/*.parquet")
    own = {name: data for name, data in stored.items() if name.startswith(f"artifacts/{step}/")}
    agreed = compare({name: data for name, data in own.items() if name.endswith(".parquet")}, made)
    if set(agreed.values()) <= set(GOOD):
        for name, data in own.items():
            units.write_bytes(root / name, data)
    return made


def notebooks(root: Path) -> Callable[[str], Path]:
    """What runs a step's notebook with the committed parameters, on a kernel that is forked warm."""
    runner.warm(list(schedule.predecessors(root)))
    return lambda step: runner.run(step, "params.yaml", kernel_manager_class=kernels.Manager)


def main(arguments: list[str]) -> int:
    """Runs and compares; 0 if everything agrees, 1 if not or if a stage fails, 2 if nothing is committed to compare with."""
    argparse.ArgumentParser(prog="cns reproduce", description=__doc__.splitlines()[0]).parse_args(arguments)
    launch = notebooks(paths.ROOT)  # first: the process of the kernels imports meanwhile
    try:
        old, stored = committed(paths.ROOT)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        made = execute(paths.ROOT, launch, stored)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    verdicts = compare(old, current(paths.ROOT) | made)
    for name, text in verdicts.items():
        if text != "identical":
            print(f"{name} {text}")
    print(headline(paths.ROOT))
    print(summary(verdicts))
    return 0 if set(verdicts.values()) <= set(GOOD) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
