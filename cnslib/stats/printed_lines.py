"""Lines of accuracy from published tables of accuracies (CNS-Bench Tables 5 and 7, Figs. 20 to 24), and its claims about lines.

A table of published accuracies has a row per classifier: `accuracy` without a shift, and OOD accuracy in a column per scale.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import linregress, pearsonr, t

from cnslib.stats import line
from cnslib.stats.accuracy import ALL, metric
from cnslib.stats.bootstrap import ANYWHERE, RECORD

SIDES = {"slope": ["estimate", "models_low", "models_high"], "R": ["r", "r_low", "r_high"]}


def fits(published: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Per scale the slope of the least-squares line and Pearson's R, with the columns that `line.slopes` has for them."""
    rows = {}
    for scale in (name for name in published if isinstance(name, float)):
        known = published[["accuracy", scale]].dropna().T.to_numpy()
        fit, close = linregress(*known), pearsonr(*known)
        half = t.ppf((1 + confidence) / 2, known.shape[1] - 2) * fit.stderr
        rows[scale] = [fit.slope, fit.slope - half, fit.slope + half, close.statistic, *close.confidence_interval(confidence)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*SIDES["slope"], *SIDES["R"]]).rename_axis("scale")


def sides(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Slope and R over all shifts with the intervals of other classifiers, ours and the published ones: two tables (quantity, scale)."""
    own = ours[(ours["shift"] == ALL) & ours["scale"].isin(theirs.index)].set_index("scale")
    mine, printed = stacked(own, ["ours", "low", "high"]), stacked(theirs.loc[own.index], ["published", "published_low", "published_high"])
    return mine.assign(n=np.tile(own["models"], len(SIDES))), printed


def stacked(table: pd.DataFrame, heads: list[str]) -> pd.DataFrame:
    """Slope and R of a table of lines one below the other (quantity, scale), under the same heads."""
    return pd.concat({name: table[own].set_axis(heads, axis=1) for name, own in SIDES.items()}, names=["quantity"])


def claims(found: dict[str, xr.Dataset], correlation: pd.DataFrame, models: Sequence[str], played: dict[str, str]) -> pd.DataFrame:
    """What the paper says about the lines through some models (claim, source, published) beside our records.

    The claim about R at the last scale is one of `sides`. `correlation` is that of `size.noise_free`; the gain per doubling is biased and
    gets no verdict. `played` as `axes.roles` gives it.
    """
    linear = found["linear"]
    rows: list[tuple] = [("lines that rise with p below 0.05", "Fig. 21", "above 0.5", line.followed(linear, models))]
    graffiti = "Fig. 23 (graffiti style alone)"  # ours are over all shifts
    rows += [(f"growth of the slope, {axes} axes", graffiti, "above 0", line.steeper(own, models)) for axes, own in found.items()]
    pair = [played.get(name) for name in ("convnext", "deit")]
    if set(pair) <= set(linear["model"].to_numpy()):
        gains = line.overall(line.gain(linear, models)).sel(model=pair)
        better = metric(gains[:, 0] - gains[:, 1], within=ANYWHERE)
        rows.append(("gain of ConvNeXt minus that of DeiT", "Fig. 24", "above 0", better))
    rows += [(f"partial correlation, {own['family']}", "suppl. F", -0.358, own[RECORD].to_dict()) for _, own in correlation.iterrows()]
    table = [{"claim": claim, "source": source, "published": said, **record} for claim, source, said, record in rows]
    return pd.DataFrame(table).set_index("claim")
