"""Quality of the base models (notebook 00): what the entries of their manifest say, and whether it is within the bounds that we set."""

import pandas as pd

ACCURACY = "accuracy"  # what a classifier's quality is called
MET, MISSED = "met", "missed"


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
    rows = [{"quality": name, "bound": bound, **found[name]} for name, bound in bounds.items()]
    rows += [{"quality": f"classifier {name}", "bound": least, "at most": most, **record} for name, record in named.items()]
    table = pd.DataFrame(rows).fillna({"at most": float("inf")})
    holds = table["estimate"].between(table["bound"], table["at most"])
    return table.assign(verdict=holds.map({True: MET, False: MISSED}))
