"""Quality of the base models (notebook 00): what the entries of their manifest say, and whether it is within the bounds that we set."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8
from sklearn.neighbors import KNeighborsClassifier

from cnslib.stats import bootstrap

ACCURACY = "accuracy"  # what a classifier's quality is called
MET, MISSED = "met", "missed"
NEIGHBOURS = 5


def measures(entries: dict[str, dict]) -> dict[str, dict]:
    """The quality records of all models by their own names, without the accuracies of the classifiers."""
    return {name: record for entry in entries.values() for name, record in entry["quality"].items() if name != ACCURACY}


def accuracies(entries: dict[str, dict]) -> dict[str, dict]:
    """The accuracy of every classifier, by its name without the folder."""
    return {name.split("/")[-1]: entry["quality"][ACCURACY] for name, entry in entries.items() if ACCURACY in entry["quality"]}


def judged(found: dict[str, dict], named: dict[str, dict], bounds: dict[str, float], *, classifiers: tuple[float, float]) -> pd.DataFrame:
    """Each quality with its bound, its record and the verdict, `MET` from the bound on; then the accuracies, which must not be too good.

    `classifiers` are the least and the largest accuracy that a classifier may have. KeyError names a quality that was not measured.
    """
    least, most = classifiers
    rows = [{"quality": name, "bound": bound, "at most": float("inf"), **found[name]} for name, bound in bounds.items()]
    rows += [{"quality": f"classifier {name}", "bound": least, "at most": most, **record} for name, record in named.items()]
    table = pd.DataFrame(rows)
    holds = table["estimate"].between(table["bound"], table["at most"])
    return table.assign(verdict=holds.map({True: MET, False: MISSED}))


def told_apart(
    known: UInt8[np.ndarray, "known height width"],
    known_labels: Int[np.ndarray, "known"],
    asked: UInt8[np.ndarray, "asked height width"],
    asked_labels: Int[np.ndarray, "asked"],
    *,
    classes: Sequence[str],
    confidence: float,
    among: Sequence[str] | None = None,
) -> pd.DataFrame:
    """How well the classes can be told apart by their bare pixels: the nearest known pictures vote on each that is asked about.

    One row per class with n, the share that is named right and its Wilson interval, the class that it is taken for most often
    otherwise, and how often. Pictures of classes that are not `among` those given neither vote nor are asked about. Distances of
    bytes are whole numbers, so that the votes are the same on every machine.
    """
    places = [place for place, name in enumerate(classes) if among is None or name in among]
    voting, heard = np.isin(known_labels, places), np.isin(asked_labels, places)
    vote = KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(flat(known[voting]), known_labels[voting])
    named, truth, rows = vote.predict(flat(asked[heard])), asked_labels[heard], []
    for place in places:
        own = named[truth == place]
        counts = np.bincount(own, minlength=len(classes))
        others = np.where(np.arange(len(classes)) == place, -1, counts)
        record = bootstrap.independent_share(own == place, confidence=confidence)
        rows.append({"class": classes[place], **record, "taken for": classes[int(others.argmax())], "how often": others.max() / len(own)})
    return pd.DataFrame(rows)


def flat(pictures: UInt8[np.ndarray, "n height width"]) -> np.ndarray:
    """Each picture as a row of numbers whose squares add up without rounding."""
    return pictures.reshape(len(pictures), -1).astype(np.float64)
