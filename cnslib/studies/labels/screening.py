"""The out-of-class filter against the labels (Table 2b, Fig. 3, section J): rules by name, and what they do to the results.

A rule judges images; the benchmark keeps the trajectories whose images it keeps at all scales.
"""

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS, MEASURES, Rule
from cnslib.stats import accuracy, bootstrap

NAMES = {0: "0 of 4 (no filter)", 2: "2 of 4 (released code)", 3: "3 of 4 (paper's text)"}
NONE, RELEASED, TEXT = NAMES.values()
ALONE = "CLIP alone"
LABELS = "labels"  # keeps what the labels call in class, or partly so
FILTER = "filter of notebook 04"  # its vote, at its own thresholds
RULES = {NAMES.get(k, f"{k} of 4"): Rule(DETECTORS, k) for k in range(len(DETECTORS) + 1)} | {ALONE: Rule(DETECTORS[:1], 1)}
SINGLES = {name: Rule((name,), 1) for name in DETECTORS}


def verdicts(scores: pd.DataFrame, limits: dict[str, float], rules: dict[str, Rule] = RULES) -> pd.DataFrame:
    """Whether each rule keeps each image: one column per rule."""
    return pd.DataFrame({name: filtering.keeps(rule, scores, limits) for name, rule in rules.items()})


def judged(labelled: pd.DataFrame, keep: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """TPR, FPR and accuracy of every rule on some parts of the labelled images (Table 2b), with intervals."""
    rows = []
    for part, chosen in parts.items():
        for name in keep:
            quality = filtering.quality(labelled[chosen], keep.loc[chosen, name], settings=settings)
            rows += [{"part": part, "rule": name, "measure": measure, **quality[measure]} for measure in MEASURES]
    return pd.DataFrame(rows)


def screened(wrong: xr.DataArray, scores: pd.DataFrame, keep: pd.DataFrame, *, settings: Bootstrap) -> xr.DataArray:
    """Error rates over the trajectories that each rule keeps at all scales, [resample, rule, model, scale], on the same resamples.

    Trajectories without scores count as not kept; a rule that keeps nothing is NaN.
    """
    whole = keep.groupby([scores[key] for key in tables.TRAJECTORY]).all()
    kept = whole.reindex(pd.MultiIndex.from_frame(accuracy.trajectories(wrong)), fill_value=False).to_numpy(bool).T
    weights, units = bootstrap.resampling_weights(accuracy.trajectories(wrong), settings=settings)
    weights, values = weights[:, units], wrong.to_numpy().astype(float)
    with np.errstate(invalid="ignore"):
        rates = [np.tensordot(weights[:, rows], values[rows], 1) / weights[:, rows].sum(1)[:, None, None] for rows in kept]
    labels = {"rule": list(keep), "n": ("rule", kept.sum(1)), "model": wrong["model"], "scale": wrong["scale"]}
    return xr.DataArray(np.stack(rates, 1), labels | {"confidence": settings.confidence}, ["resample", "rule", "model", "scale"])


def from_labels(values: xr.DataArray) -> xr.DataArray:
    """Values of every rule less those of the labels."""
    return values - values.sel(rule=LABELS).drop_vars(["rule", "n"])


def study_sample(rows: pd.DataFrame, size: int, seed: int) -> pd.DataFrame:
    """A seeded sample in which every (shift, scale) has its proportional number of images, up to one (section J).

    Rows are put in random order within their stratum, and every N/n-th is taken from a random start. All rows where there are no more.
    """
    rng = np.random.default_rng(seed)
    shuffled = rows.sort_values(tables.KEY).iloc[rng.permutation(len(rows))].sort_values(["shift", "scale"], kind="stable")
    count = min(size, len(rows))
    places = ((np.arange(count) + rng.uniform()) * len(rows) / max(count, 1)).astype(int)
    return shuffled.iloc[places].sort_values(tables.KEY)
