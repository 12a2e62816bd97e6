"""Predictions of a classifier without files, such as a module built in a notebook, cached by what it predicts for a few pictures.

Nothing on disk tells such a classifier from another one of the same name.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core import recipes, tables, units
from cnslib.core.names import identifier
from cnslib.method import evaluation
from cnslib.models.classifiers import Classifier

SAMPLED = 4  # pictures of each table
DIGITS = 3  # of a logit, after the point: what processors agree on


def predict(classifier: Classifier, shards: dict[Path, list[tuple]], *, batch_size: int, folder: Path) -> pd.DataFrame:
    """The predictions of a classifier for every image of the tables, made where they are missing, outdated or another classifier's."""
    pictures = [picture for path in shards for picture in sample(path)]
    batches = [pictures[start : start + batch_size] for start in range(0, len(pictures), batch_size)]
    logits = [evaluation.batch_logits(classifier, batch, size=batch_size).double().numpy().round(DIGITS).tolist() for batch in batches]
    known = [classifier.name, classifier.labels, classifier.preprocessing, [row for part in logits for row in part]]
    made_from = recipes.OWN_ANSWERS.stamp(known, evaluation.shard_digests(shards), batch_size)
    shelf = units.Shelf(folder, {classifier.name: (f"{identifier(classifier.name)}.parquet", made_from)})
    for name in shelf.waiting():
        tables.write_unit(evaluation.predict(classifier, shards, batch_size=batch_size), shelf[name], tables.predictions)
    return tables.read_units(shelf, tables.predictions)


def sample(path: Path) -> list[UInt8[np.ndarray, "height width 3"]]:
    """A few pictures of a table, evenly spaced from the first to the last."""
    column = tables.load(path, columns=["image"])["image"]
    rows = np.unique(np.linspace(0, len(column) - 1, SAMPLED).round().astype(int))
    return [tables.decode(column[int(row)].as_py(), f"{path.name}, row {row}") for row in rows]
