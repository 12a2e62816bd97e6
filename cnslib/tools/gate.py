"""The clean-accuracy gate: whether a classifier reaches, on IN/val, the accuracy that its makers and the paper's Table 7 publish.

`cns gate --overlay paper.yaml` asks the classifiers of the parameters about all of IN/val and writes the report.
Each is measured under its own preprocessing ("model") and the authors' ("paper", ImageNet statistics and one crop for all), and the
gate says which of them explains the paper's value.
"""

import argparse
import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import paths, tables, units
from cnslib.core.names import demand
from cnslib.core.settings import read
from cnslib.data import imagenet
from cnslib.method import evaluation
from cnslib.models.classifiers import paper_settings
from cnslib.models.registry import Entry, entry

TOLERANCE = 0.003  # 0.3 points
ROUNDING = 1e-9  # of a difference of two decimal fractions
WHOLE = 50_000  # images of IN/val
PREPROCESSINGS = ("model", "paper")
GOOD = ("agrees", "compatible")  # with the whole of IN/val, and with a sample of it
VERDICTS = {
    "model": "reproduced by the model's own preprocessing alone",
    "either": "reproduced by either preprocessing",
    "neither": "not reproduced",
    "not measured": "not measured",
    "not published": "not published",
}
measured = tables.schema(
    ["model", "preprocessing"],
    {
        "model": pa.Column(str),
        "preprocessing": pa.Column(str, pa.Check.isin(PREPROCESSINGS)),
        "n": pa.Column("int64", pa.Check.in_range(1, WHOLE)),
        "right": pa.Column("int64", pa.Check.ge(0)),
    },
)


def count(predictions: pd.DataFrame, preprocessing: str) -> pd.DataFrame:
    """Images and right answers of each model, from one prediction row per (model, image) with `class` and `top1`."""
    demand(preprocessing in PREPROCESSINGS, "preprocessing", preprocessing, ", ".join(PREPROCESSINGS))
    right = (predictions["top1"] == predictions["class"]).groupby(predictions["model"])
    found = right.agg(n="size", right="sum").astype("int64").reset_index().assign(preprocessing=preprocessing)
    return tables.check(found, measured, "measured accuracies")


def report(counts: pd.DataFrame) -> pd.DataFrame:
    """One row per model: n, accuracy and 95 % Wilson interval under each preprocessing, the published values and the verdicts.

    `counts` has a row for each model and preprocessing (see `measured`). Raises ValueError for a table that breaks this schema, more
    right answers than images, and a model that the registry lacks.
    """
    table = tables.check(counts, measured, "measured accuracies")
    wrong = table[table["right"] > table["n"]]
    demand(wrong.empty, "measured accuracies", wrong.to_dict("records"), "at most n right answers")
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for case in table.to_dict("records"):
        found.setdefault(case["model"], {})[case["preprocessing"]] = (case["right"], case["n"])
    return pd.DataFrame([row(entry(name), cases) for name, cases in found.items()])


def row(known: Entry, cases: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The report on one model from its (right, n) under each preprocessing that was measured."""
    numbers: dict[str, Any] = {}
    for preprocessing in PREPROCESSINGS:
        numbers |= {f"{name}_{preprocessing}": value for name, value in interval(cases.get(preprocessing)).items()}
    words = {name: compare(cases.get(name), known.table7_top1) for name in PREPROCESSINGS}
    library = compare(cases.get("model"), known.library_top1)
    explained = explanation(words)
    published = {"library_top1": known.library_top1, "table7_top1": known.table7_top1}
    verdicts = {"library": library, "table7_model": words["model"], "table7_paper": words["paper"], "explained_by": explained}
    return {"model": known.model, **numbers, **published, **verdicts, "verdict": verdict(known, explained, library)}


def interval(case: tuple[int, int] | None) -> dict[str, float]:
    """n, accuracy and its 95 % Wilson interval; NaN and no images where nothing was measured."""
    if case is None:
        return {"n": 0, "accuracy": np.nan, "low": np.nan, "high": np.nan}
    right, n = case
    low, high = proportion_confint(right, n, method="wilson")
    return {"n": n, "accuracy": right / n, "low": low, "high": high}


def compare(case: tuple[int, int] | None, published: float) -> str:
    """How a measured accuracy meets a published one.

    On all of IN/val: "agrees" within 0.3 points, else "differs". On a sample: "compatible" where the published value lies in the
    interval, widened by 0.3 points. "not measured" and "not published" where one of them is missing.
    """
    if case is None or np.isnan(published):
        return "not measured" if case is None else "not published"
    found = interval(case)
    if found["n"] == WHOLE:
        return "agrees" if abs(found["accuracy"] - published) <= TOLERANCE + ROUNDING else "differs"
    return "compatible" if found["low"] - TOLERANCE <= published <= found["high"] + TOLERANCE else "differs"


def explanation(words: Mapping[str, str]) -> str:
    """The preprocessing that explains the paper's value: "model", "paper", "either" or "neither"."""
    good = [name for name in PREPROCESSINGS if words[name] in GOOD]
    if good:
        return good[0] if len(good) == 1 else "either"
    for silence in ("not published", "not measured"):
        if all(words[name] in (silence, "not measured") for name in PREPROCESSINGS):
            return silence
    return "neither"


def verdict(known: Entry, explained: str, library: str) -> str:
    """The finding in words; a published value is called wrongly preprocessed where the model is shown to do better with its own."""
    if explained != "paper":
        return VERDICTS[explained]
    differing = ", ".join(differences(known))
    if library in GOOD and known.library_top1 > known.table7_top1 + TOLERANCE:
        return f"the paper's value rests on the wrong preprocessing ({differing}); the model's own gives what its makers publish"
    return f"reproduced by the paper's preprocessing alone ({differing})"


def differences(known: Entry) -> list[str]:
    """What the paper's preprocessing changes for a model."""
    own, theirs = known.settings, paper_settings(known.settings["input_size"])
    statistics = own["mean"] != theirs["mean"] or own["std"] != theirs["std"]
    parts = {"statistics of the pixels": statistics, "crop": own["crop_pct"] != theirs["crop_pct"]}
    return [name for name, differs in parts.items() if differs] or ["interpolation"]


def measure(sections: dict[str, Any], classes: list[str]) -> pd.DataFrame:
    """The counts of the classifiers of some parameters on IN/val under both preprocessings; answers are kept, one unit per classifier."""
    base, layout = sections["base"], paths.Layout(sections["base"].out)
    parts = []
    for preprocessing in PREPROCESSINGS:
        settings = dataclasses.replace(sections["evaluation"], preprocessing=preprocessing)
        shared = {"labels": list(imagenet.labels()), "settings": settings, "device": base.device}
        folder = layout.artifacts("gate") / preprocessing
        files = evaluation.evaluate_catalog(layout.locate(base.catalog), classes, **shared, folder=folder)
        parts += [count(tables.read(path, tables.predictions), preprocessing) for path in files.values()]
    return pd.concat(parts, ignore_index=True)


def main(arguments: list[str]) -> int:
    """Command line; returns 2, with one line, where parameters, weights or pictures are not what they should be."""
    parser = argparse.ArgumentParser(prog="cns gate", description=__doc__.splitlines()[0])
    parser.add_argument("--params", default="params.yaml", help="parameter file (default params.yaml)")
    parser.add_argument("--overlay", default="paper.yaml", help="file whose keys replace some of its values (default paper.yaml)")
    options = parser.parse_args(arguments)
    try:
        sections = read.load(paths.resolve(options.params), paths.resolve(options.overlay))
        found = report(measure(sections, list(imagenet.labels())))
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = paths.Layout(sections["base"].out).artifacts("gate") / "gate.csv"
    units.write_bytes(path, found.to_csv(index=False, lineterminator="\n").encode())
    print(found[["model", "accuracy_model", "accuracy_paper", "library_top1", "table7_top1", "verdict"]].to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
