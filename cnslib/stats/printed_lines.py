"""Lines of accuracy from published tables of accuracies (CNS-Bench Tables 5 and 7, Figs. 20 to 24), and its claims about lines.

A table of published accuracies has a row per classifier: `accuracy` without a shift, and OOD accuracy in a column per scale.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
import statsmodels.formula.api as smf
from jaxtyping import Bool

from cnslib.stats import line
from cnslib.stats.accuracy import ALL
from cnslib.stats.line import Points

OURS, THEIRS = ["ours", "low", "high"], ["published", "published_low", "published_high"]
COLUMNS = {"slope": ["estimate", "models_low", "models_high"], "R": ["r", "r_low", "r_high"]}
NUMBERS = ["n", "estimate", "low", "high"]
Drawn = Bool[np.ndarray, "models"] | None


def read(folder: Path) -> pd.DataFrame:
    """The published accuracies with parameters_millions and supervised, from validation.csv and accuracy.csv of a folder."""
    accuracies = pd.read_csv(folder / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
    return pd.read_csv(folder / "validation.csv").set_index("model").join(accuracies)


def scales(published: pd.DataFrame) -> list[float]:
    """The scales of published accuracies."""
    return [name for name in published if isinstance(name, float)]


def fits(published: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Per scale the slope of the least-squares line (estimate, models_low, models_high) and Pearson's r (r, r_low, r_high)."""
    rows = {}
    for scale in scales(published):
        table = published[["accuracy"]].assign(ood=published[scale]).dropna()
        fit = smf.ols("ood ~ accuracy", table).fit()
        close = scipy.stats.pearsonr(table["accuracy"], table["ood"])
        slope = [fit.params["accuracy"], *fit.conf_int(1 - confidence).loc["accuracy"]]
        rows[scale] = [*slope, close.statistic, *close.confidence_interval(confidence)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*COLUMNS["slope"], *COLUMNS["R"]]).rename_axis("scale")


def pooled(found: Points, drawn: Drawn, published: pd.DataFrame) -> pd.DataFrame:
    """Our lines over all shifts at the scales that were published, a row per scale, as `line.slopes`."""
    table = line.slopes(found, drawn)
    own = table[table["shift"] == ALL].set_index("scale")
    return own.loc[own.index.intersection(scales(published))]


def sides(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Slope and R with the intervals of other classifiers, of our lines and of the published ones: two tables (quantity, scale)."""
    own = side(ours, OURS).assign(n=np.tile(ours["models"], len(COLUMNS)))
    return own, side(theirs.loc[ours.index], THEIRS)


def side(table: pd.DataFrame, heads: list[str]) -> pd.DataFrame:
    """Slope and R of a table of lines one below the other (quantity, scale), under the same heads."""
    return pd.concat({name: table[own].set_axis(heads, axis=1) for name, own in COLUMNS.items()}, names=["quantity"])


def claims(
    found: dict[str, Points], ours: pd.DataFrame, theirs: pd.DataFrame, *, supervised: Drawn, played: dict[str, str]
) -> pd.DataFrame:
    """What the paper says about lines (claim, source, published) beside our records; `played` as `axes.roles` gives it."""
    linear, end = found["linear"], ours.iloc[-1]
    relation = dict(zip(NUMBERS, end[["models", *COLUMNS["R"]]], strict=True))
    rows = [(f"R at scale {end.name:g}, other classifiers", "Fig. 22; Tables 5, 7", round(theirs.loc[end.name, "r"], 3), relation)]
    rows += [("lines that rise with p below 0.05", "Fig. 21", "above 0.5", line.followed(linear, supervised))]
    graffiti = "Fig. 23 (graffiti style alone)"  # ours are over all shifts
    rows += [(f"growth of the slope, {axes} axes", graffiti, "above 0", line.steeper(own, supervised)) for axes, own in found.items()]
    first, second = (played.get(name, "") for name in ("convnext", "deit"))
    if {first, second} <= set(linear.shares.models):
        better = line.gain_difference(linear, first, second, supervised)
        rows += [("gain of ConvNeXt minus that of DeiT", "Fig. 24", "above 0", better)]
    return listed(rows)


def size_claims(correlation: pd.DataFrame) -> pd.DataFrame:
    """What supplement F says about size, beside the records of `size.noise_free`. The gain per doubling is biased and gets no verdict."""
    return listed([(f"partial correlation, {row['family']}", "suppl. F", -0.358, row[NUMBERS]) for _, row in correlation.iterrows()])


def listed(rows: list[tuple]) -> pd.DataFrame:
    """A table of claims from (claim, source, published, record)."""
    heads = ["claim", "source", "published"]
    found = [dict(zip(heads, row, strict=False)) | dict(row[-1]) for row in rows]
    return pd.DataFrame(found, columns=[*heads, *NUMBERS])


def given_accuracy(published: pd.DataFrame) -> dict[str, float]:
    """Partial correlation of size with the mean OOD accuracy above scale 0, given accuracy without a shift, its p value, and n."""
    above = [scale for scale in scales(published) if scale > 0]
    table = published.assign(weights=np.log2(published["parameters_millions"]), ood=published[above].mean(axis=1))
    result = smf.ols("ood ~ weights + accuracy", table).fit()
    t = result.tvalues["weights"]
    return {"n": len(table), "estimate": t / np.sqrt(t**2 + result.df_resid), "p": result.pvalues["weights"]}
