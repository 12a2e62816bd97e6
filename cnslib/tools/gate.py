"""The clean-accuracy gate: whether classifiers reach, on IN/val, the accuracy that their makers and the paper's Table 7 publish.

`cns gate --overlay paper.yaml` has the classifiers of the parameters predict all of IN/val, each under its own preprocessing ("model") and
the authors' ("paper", ImageNet statistics and one crop for all), and says which of them explains the paper's value.
"""

import argparse
import dataclasses
import sys
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import paths, tables, units
from cnslib.core.names import demand
from cnslib.data import imagenet
from cnslib.method import evaluation
from cnslib.models.registry import entry
from cnslib.tools import runner

TOLERANCE = 0.003 + 1e-9  # 0.3 points, and the rounding of a difference of two decimal fractions
WHOLE = 50_000  # images of IN/val
PREPROCESSINGS = ("model", "paper")
GOOD = ("agrees", "compatible")  # with the whole of IN/val, and with a sample of it
identity = {"model": pa.Column(str), "preprocessing": pa.Column(str, pa.Check.isin(PREPROCESSINGS))}
counts = {"n": pa.Column("int64", pa.Check.in_range(1, WHOLE)), "right": pa.Column("int64", pa.Check.ge(0))}
measured = tables.schema(["model", "preprocessing"], identity | counts)


def count(predictions: pd.DataFrame, preprocessing: str) -> pd.DataFrame:
    """Images and right predictions of each model, from one row per (model, image) with `class` and `top1`."""
    right = (predictions["top1"] == predictions["class"]).groupby(predictions["model"])
    return right.agg(n="size", right="sum").astype("int64").reset_index().assign(preprocessing=preprocessing)


def report(table: pd.DataFrame) -> pd.DataFrame:
    """One row per model: n, accuracy and 95 % Wilson interval under each preprocessing, the published values and the verdicts.

    `table` has a row for each model and preprocessing (`measured`). ValueError for one that breaks this schema, more right predictions than
    images, and a model that the registry lacks.
    """
    table = tables.check(table, measured, "measured accuracies")
    wrong = table[table["right"] > table["n"]]
    demand(wrong.empty, "measured accuracies", wrong.to_dict("records"), "at most n right answers")
    rows = []
    for name, cases in table.set_index("preprocessing").groupby("model"):
        known, row = entry(name), {"model": name}
        for how in PREPROCESSINGS:
            row |= {f"{key}_{how}": value for key, value in interval(cases, how).items()}
        verdicts = {f"table7_{how}": compare(row, how, known.table7_top1) for how in PREPROCESSINGS}
        row |= {"library_top1": known.library_top1, "table7_top1": known.table7_top1}
        rows.append(row | {"library": compare(row, "model", known.library_top1)} | verdicts | {"explained_by": explanation(verdicts)})
    return pd.DataFrame(rows)


def interval(cases: pd.DataFrame, how: str) -> dict[str, float]:
    """n, accuracy and its 95 % Wilson interval; no images and no numbers where nothing was measured."""
    if how not in cases.index:
        return {"n": 0, "accuracy": np.nan, "low": np.nan, "high": np.nan}
    n, right = (int(cases.loc[how, key]) for key in ("n", "right"))
    low, high = proportion_confint(right, n, method="wilson")
    return {"n": n, "accuracy": right / n, "low": low, "high": high}


def compare(row: dict[str, Any], how: str, published: float) -> str:
    """How a measured accuracy meets a published one: within 0.3 points on all of IN/val, on a sample inside its interval, so widened."""
    if not row[f"n_{how}"] or np.isnan(published):
        return "not published" if row[f"n_{how}"] else "not measured"
    if row[f"n_{how}"] == WHOLE:
        return "agrees" if abs(row[f"accuracy_{how}"] - published) <= TOLERANCE else "differs"
    return "compatible" if row[f"low_{how}"] - TOLERANCE <= published <= row[f"high_{how}"] + TOLERANCE else "differs"


def explanation(verdicts: dict[str, str]) -> str:
    """The preprocessing that explains the paper's value: "model", "paper", "either" or "neither", or why none can be told."""
    good = [how for how in PREPROCESSINGS if verdicts[f"table7_{how}"] in GOOD]
    if good:
        return good[0] if len(good) == 1 else "either"
    return next(word for word in ("not published", "differs", "not measured") if word in verdicts.values()).replace("differs", "neither")


def measure(sections: dict[str, Any], classes: list[str]) -> pd.DataFrame:
    """The counts of the classifiers of some parameters on IN/val under both preprocessings; predictions are kept, a unit per classifier."""
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
    parser.add_argument("--overlay", default="paper.yaml", help="file whose keys replace some values of params.yaml (default paper.yaml)")
    options = parser.parse_args(arguments)
    try:
        sections = runner.load("params.yaml", options.overlay)
        found = report(measure(sections, list(imagenet.labels())))
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = paths.Layout(sections["base"].out).artifacts("gate") / "gate.csv"
    units.write_bytes(path, found.to_csv(index=False, lineterminator="\n").encode())
    print(found[["model", "accuracy_model", "accuracy_paper", "library_top1", "table7_top1", "explained_by"]].to_string(index=False))
    return 0
