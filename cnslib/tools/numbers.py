"""`cns numbers`: compares every marked number in the notebooks, README.md and docs/ with metrics/*.json or a figure's csv.

`0.49<!-- accuracy/accuracy_scale_2.5/estimate -->` is that number of metrics/accuracy.json at the digits written (`15 %` as a percentage),
`0.12<!-- accuracy/by_shift.csv: shift=heavy fog, model=resnet, scale=2.5; estimate -->` that of one row of figures/accuracy/by_shift.csv.
`<!-- holds: a > b -->` states a relation between two of these, or with a number. `<!-- paper -->` and `<!-- set -->` behind a number say
that it is printed in a paper or chosen in params.yaml. `--write` puts the present digits in.
"""

import argparse
import json
import re
import sys
from functools import cache
from pathlib import Path

import pandas as pd

from cnslib.core import paths

NUMBER = re.compile(r"([-−]?\d[\d,]*(?:\.\d+)?|[-−]?\.\d+)(\s?%)?<!-- (?!holds|paper|set)([^>]*?) -->")
HOLDS = re.compile(r"<!-- holds: (.+?) ([<>]) (.+?) -->")
UNMARKED = re.compile(r"(?<![\w.=^{/-])[-−]?(?:\d+\.\d\d+|\d+(?:\.\d+)?\s?%(?! intervals?| confidence))(?!\w|<!--)")
NO_PROSE = re.compile(r"```.*?```|`[^`]*`|\$[^$]*\$|\]\([^)]*\)|<!-- holds.*?-->", re.DOTALL)


@cache
def table(file: Path) -> pd.DataFrame:
    """The numbers behind a figure, its keys as they are written in the file."""
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def value(root: Path, key: str) -> float:
    """The number that a mark names. KeyError says which part of the mark leads nowhere."""
    if re.fullmatch(r"-?\d+\.?\d*", key):
        return float(key)
    step, _, rest = key.partition("/")
    if ".csv:" not in rest:
        entry = json.loads((root / "metrics" / f"{step}.json").read_text())
        for part in rest.split("/"):
            if not isinstance(entry, dict) or part not in entry:
                raise KeyError(f"{key}: no {part!r}; there are {', '.join(entry) if isinstance(entry, dict) else 'no keys below'}")
            entry = entry[part]
        return float(entry)
    file, _, place = rest.partition(":")
    where, _, column = place.partition(";")
    rows = table(root / "figures" / step / file)
    for name, wanted in (condition.strip().split("=") for condition in where.split(",")):
        rows = rows[rows[name] == wanted]
    if len(rows) != 1:
        raise KeyError(f"{key}: {len(rows)} rows of {file} fit; accepted: one")
    return float(rows[column.strip()].iloc[0])


def written(number: float, like: str, percent: str) -> str:
    """A number with the digits and the commas of another."""
    digits, comma = len(like.partition(".")[2]), "," if "," in like or number >= 10_000 else ""
    text = f"{number * (100 if percent else 1):{comma}.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def problems(text: str, root: Path, *, results: bool = True) -> list[str]:
    """What a text says and the results do not; where it is about `results`, the numbers without a mark come last."""
    faults = []
    for shown, percent, key in NUMBER.findall(text):
        now = written(value(root, key), shown, percent)
        if now.replace(",", "") != shown.replace(",", "").replace("−", "-"):
            faults.append(f"{shown}{percent} should be {now}{percent} ({key})")
    for left, sign, right in HOLDS.findall(text):
        a, b = value(root, left), value(root, right)
        if not (a < b if sign == "<" else a > b):
            faults.append(f"no longer holds: {left} {sign} {right} ({a:.3g}, {b:.3g})")
    return faults + [f"{number} has no mark" for number in UNMARKED.findall(NO_PROSE.sub("", text)) if results]


def corrected(text: str, root: Path) -> str:
    """A page, or the json of a notebook, with the present digits in all marked numbers."""
    return NUMBER.sub(lambda m: f"{written(value(root, m[3]), m[1], m[2] or '')}{m[2] or ''}<!-- {m[3]} -->", text)


def texts(file: Path) -> list[str]:
    """The prose of a page, or of each cell of a notebook."""
    if file.suffix == ".md":
        return [file.read_text()]
    return ["".join(cell["source"]) for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "markdown"]


def pages(root: Path) -> list[Path]:
    """What is checked: the ordered notebooks and their start, README and docs/."""
    notebooks = [root / "notebooks" / "start_here.ipynb", *sorted((root / "notebooks").glob("[0-9]*.ipynb"))]
    return [*notebooks, root / "README.md", *sorted((root / "docs").glob("*.md"))]


def main(arguments: list[str]) -> int:
    """Prints what no longer holds, by page; 1 if there is anything."""
    parser = argparse.ArgumentParser(prog="cns numbers", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the present digits in; read the sentences afterwards")
    parser.add_argument("pages", nargs="*", type=Path, help="these pages only")
    options = parser.parse_args(arguments)
    files = options.pages or pages(paths.ROOT)
    if options.write:
        for file in files:
            file.write_text(corrected(file.read_text(), paths.ROOT))
    about = {file: file.suffix == ".ipynb" or file.name in ("README.md", "results.md") for file in files}
    faults = [f"{f.name}: {problem}" for f in files for text in texts(f) for problem in problems(text, paths.ROOT, results=about[f])]
    print("\n".join(faults) or f"all numbers of {len(files)} pages hold", file=sys.stderr if faults else sys.stdout)
    return int(bool(faults))
