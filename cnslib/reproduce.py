"""`make repro`: executes every notebook anew on the restored artifacts and compares the results with the committed ones."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from ruamel.yaml import YAML

from cnslib import paths, schedule, tables

# Another processor may round a pixel the other way. That moves a share by a few images and turns the odd verdict around.
RELATIVE, ABSOLUTE, LABELS = 1e-2, 5e-3, 0.99
ANALYSES = ("world", "filtering")  # steps with tables that are made anew; the 23 classifiers' answers would take minutes more
WATCHED = ("metrics/*.json", "figures/*.csv", *(f"artifacts/{step}/**/*.parquet" for step in ANALYSES))


def git(root: Path, *arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def committed(root: Path) -> dict[str, bytes]:
    """The results of the current commit by path: metrics and figure tables from git, parquet tables as its dvc.lock names them."""
    listed = git(root, "ls-tree", "-r", "--name-only", "HEAD", "metrics", "figures").decode().split()
    small = {name: git(root, "show", f"HEAD:{name}") for name in listed if name.endswith((".json", ".csv"))}
    return small | locked(root, git(root, "show", "HEAD:dvc.lock").decode())


def locked(root: Path, lock: str) -> dict[str, bytes]:
    """The parquet tables of the analyses that a dvc.lock records, read from DVC's cache by their md5.

    Raises ValueError, naming the stages, where the lock lacks an analysis.
    """
    stages = YAML(typ="safe", pure=True).load(lock)["stages"]
    if missing := [step for step in ANALYSES if step not in stages]:
        raise ValueError(f"dvc.lock: no committed results of {', '.join(missing)}; `dvc repro` makes them, commit them first")
    outs = [out for step in ANALYSES for out in stages[step]["outs"] if out["path"] == f"artifacts/{step}"]
    listed = {f"{out['path']}/{file['relpath']}": file["md5"] for out in outs for file in json.loads(cached(root, out["md5"]))}
    return {name: cached(root, md5) for name, md5 in listed.items() if name.endswith(".parquet")}


def cached(root: Path, md5: str) -> bytes:
    """A file, or the json listing of a folder, from DVC's cache, which `dvc pull` fills."""
    return (root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]).read_bytes()


def current(root: Path) -> dict[str, bytes]:
    """The results now on disk by path."""
    found = [path for pattern in WATCHED for path in sorted(root.glob(pattern))]
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
    before, after = frame(name, old), frame(name, new)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return f"differs: {before.shape} rows and columns are committed, {after.shape} were made"
    apart = [str(column) for column in before if not close(before[column], after[column])]
    return f"differs in {', '.join(apart)}" if apart else "within tolerance"


def close(old: pd.Series, new: pd.Series) -> bool:
    """Whether all numbers of a column agree up to the tolerances, or, for a column of labels, the stated share of its rows."""
    if all(is_numeric_dtype(column) and not is_bool_dtype(column) for column in (old, new)):
        return bool(np.allclose(old, new, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))
    return bool((old.astype(str).to_numpy() == new.astype(str).to_numpy()).mean() >= LABELS)


def compare(old: dict[str, bytes], new: dict[str, bytes]) -> dict[str, str]:
    """The verdict on every result that was committed or made."""
    return {name: verdict(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())}


def summary(verdicts: dict[str, str]) -> str:
    """The closing line: how many results and figures agree."""
    good = {name for name, text in verdicts.items() if text in ("identical", "within tolerance")}
    figures = [name for name in verdicts if name.startswith("figures/")]
    same = sum(verdicts[name] == "identical" for name in figures)
    near = len(good.intersection(figures)) - same
    within = f", {near} within tolerance" if near else ""
    rest = f"; {len(good)} of {len(verdicts)} tables, metrics and figures agree"
    return f"reproduced: {same} of {len(figures)} figures identical{within}{rest}"


def headline(root: Path) -> str:
    """The benchmark's main numbers, read from the metrics just written."""
    accuracy = json.loads((root / "metrics" / "accuracy.json").read_text())
    lines = [f"{key}: {q['estimate']:.3f} ({q['low']:.3f} to {q['high']:.3f}, n = {q['n']})" for key, q in accuracy.items() if "n" in q]
    return "\n".join([*lines, "look at: figures/ (pictures), metrics/ (numbers), executed/ (notebooks)"])


def execute(root: Path) -> None:
    """Executes every stage. The analyses lose their tables first, the steps before them verify their restored units."""
    for step in ANALYSES:
        shutil.rmtree(root / "artifacts" / step, ignore_errors=True)
    stages(root)


def stages(root: Path) -> None:
    """Executes every stage of root/dvc.yaml whether or not anything changed, under DVC's locks, side by side."""
    command = ["dvc", "--wait-for-lock", "repro", "--force", "--single-item"]
    schedule.run(schedule.predecessors(root), lambda stage: schedule.finish(stage, [*command, stage], root))


def main() -> int:
    """Runs and compares; 0 if everything agrees, 1 if not or if a stage fails, 2 if nothing is committed to compare with."""
    try:
        old = committed(paths.ROOT)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        execute(paths.ROOT)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    verdicts = compare(old, current(paths.ROOT))
    bad = {name: text for name, text in verdicts.items() if text not in ("identical", "within tolerance")}
    for name, text in bad.items():
        print(f"{name} {text}")
    print(headline(paths.ROOT))
    print(summary(verdicts))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
