"""`make repro`: executes every notebook anew on the restored artifacts and compares the results with the committed ones."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from cnslib import paths

RELATIVE, ABSOLUTE = 1e-2, 5e-3  # another processor may round a pixel the other way, which moves a share by a few images
WATCHED = ("metrics/*.json", "figures/*.csv", "artifacts/filtering/*.parquet", "artifacts/evaluation/*.parquet")


def committed(root: Path) -> dict[str, bytes]:
    """The results of the current commit by path: metrics and figure tables from git, parquet tables as restored by DVC."""
    listed = subprocess.run(["git", "ls-files", "metrics", "figures"], cwd=root, check=True, capture_output=True, text=True)
    tracked = [name for name in listed.stdout.split() if name.endswith((".json", ".csv"))]
    show = {n: subprocess.run(["git", "show", f"HEAD:{n}"], cwd=root, check=True, capture_output=True).stdout for n in tracked}
    tables = [path for pattern in WATCHED[2:] for path in sorted(root.glob(pattern))]
    return show | {path.relative_to(root).as_posix(): path.read_bytes() for path in tables}


def current(root: Path) -> dict[str, bytes]:
    """The results now on disk by path."""
    found = [path for pattern in WATCHED for path in sorted(root.glob(pattern))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def frame(name: str, data: bytes) -> pd.DataFrame:
    """A result as a table: csv and parquet as they are, a metrics file as one row per number."""
    if name.endswith(".csv"):
        return pd.read_csv(io.BytesIO(data))
    if name.endswith(".parquet"):
        return pd.read_parquet(io.BytesIO(data))
    return pd.json_normalize(json.loads(data)).T.reset_index()


def verdict(name: str, old: bytes | None, new: bytes | None) -> str:
    """One of "identical", "within tolerance", or what differs."""
    if old is None or new is None:
        return "is not committed" if old is None else "was not made"
    if old == new:
        return "identical"
    try:
        pd.testing.assert_frame_equal(frame(name, old), frame(name, new), check_exact=False, rtol=RELATIVE, atol=ABSOLUTE)
    except AssertionError as error:
        return "differs: " + " ".join(str(error).split())[:160]
    return "within tolerance"


def compare(old: dict[str, bytes], new: dict[str, bytes]) -> dict[str, str]:
    """The verdict on every result that was committed or made."""
    return {name: verdict(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())}


def summary(verdicts: dict[str, str]) -> str:
    """The closing line: how many results and figures agree."""
    good = {name for name, text in verdicts.items() if text in ("identical", "within tolerance")}
    figures = [name for name in verdicts if name.startswith("figures/")]
    same = sum(verdicts[name] == "identical" for name in figures)
    close = len(good.intersection(figures)) - same
    within = f", {close} within tolerance" if close else ""
    rest = f"; {len(good)} of {len(verdicts)} tables, metrics and figures agree"
    return f"reproduced: {same} of {len(figures)} figures identical{within}{rest}"


def headline(root: Path) -> str:
    """The benchmark's main numbers, read from the metrics just written."""
    accuracy = json.loads((root / "metrics" / "accuracy.json").read_text())
    lines = [f"{key}: {q['estimate']:.3f} ({q['low']:.3f} to {q['high']:.3f}, n = {q['n']})" for key, q in accuracy.items() if "n" in q]
    return "\n".join([*lines, "look at: figures/ (pictures), metrics/ (numbers), executed/ (notebooks)"])


def main() -> int:
    """Runs and compares; 0 if everything agrees, 1 otherwise."""
    old = committed(paths.ROOT)
    subprocess.run([sys.executable, "-m", "dvc", "repro", "--force"], cwd=paths.ROOT, check=True)
    verdicts = compare(old, current(paths.ROOT))
    bad = {name: text for name, text in verdicts.items() if text not in ("identical", "within tolerance")}
    for name, text in bad.items():
        print(f"{name} {text}")
    print(headline(paths.ROOT))
    print(summary(verdicts))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
