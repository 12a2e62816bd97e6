"""Does another sampler lead to the same conclusions? Accuracy curves and orders of the classifiers, paired on the trajectory."""

import itertools

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib import clustered, ranking, stats, tables
from cnslib.config import Bootstrap
from cnslib.stats import ALL, Outcomes, Shares, over_images, tabulate


def by_sampler(answers: pd.DataFrame, *, settings: Bootstrap) -> dict[str, Shares]:
    """Error rates of each sampler's images with their resamples, the same ones for every sampler.

    Raises ValueError where a sampler lacks an answer.
    """
    found = {name: stats.outcomes(part.drop(columns="sampler")) for name, part in answers.groupby("sampler", sort=False)}
    return {name: stats.error_shares(outcomes, settings=settings) for name, outcomes in found.items()}


def curves(shares: dict[str, Shares]) -> pd.DataFrame:
    """Accuracy averaged over the models per sampler, shift and scale: (sampler, shift, scale, n, estimate, low, high)."""
    parts = [stats.mean_accuracy(one).assign(sampler=name) for name, one in shares.items()]
    return pd.concat(parts, ignore_index=True).drop(columns="model")


def differences(shares: dict[str, Shares], reference: str) -> pd.DataFrame:
    """Mean accuracy of each sampler's images minus that of the reference's, paired; columns as those of `curves`."""
    base = shares[reference].samples.mean(2, keepdims=True)
    others = {name: one for name, one in shares.items() if name != reference}
    parts = [
        tabulate(base - one.samples.mean(2, keepdims=True), one, one.bins, models=["difference"]).assign(sampler=name)
        for name, one in others.items()
    ]
    return pd.concat(parts, ignore_index=True).drop(columns="model")


def drop_differences(shares: dict[str, Shares], reference: str) -> dict[str, dict]:
    """Accuracy drop at the last scale (mean over the models, all shifts) of each sampler minus the reference's, as records."""
    drops = {name: overall(one)[..., -1].mean(1) - overall(one)[..., 0].mean(1) for name, one in shares.items()}
    return {name: over_images(drop - drops[reference], shares[name]) for name, drop in drops.items() if name != reference}


def orders(shares: dict[str, Shares], reference: str) -> dict[str, dict]:
    """Kendall's tau of the models' order by accuracy over all scales above 0 with the reference's order, as records.

    Shares are rounded to nine digits: two that are equal are then tied, whatever the order in which they were summed.
    """
    scored = {name: overall(one)[..., 1:].mean(-1).round(9) for name, one in shares.items()}
    return {name: over_images(ranking.kendall(rows, scored[reference]), shares[name]) for name, rows in scored.items() if name != reference}


def overall(shares: Shares) -> Float[np.ndarray, "resamples+1 models scales"]:
    """Error rates over all shifts."""
    return shares.samples[:, shares.groups.index(ALL)]


def other_seeds(found: Outcomes, seeds: int, *, confidence: float) -> dict:
    """What drawing other garments changes: tau between the orders of two disjoint sets of `seeds` seeds, by the same sampler.

    The mean over all pairs of neighbouring sets and the middle range of them; NaN where there are too few seeds. n counts pairs.
    """
    numbers = sorted(found.trajectories["seed"].unique())
    groups = [numbers[start : start + seeds] for start in range(0, len(numbers) - seeds + 1, seeds)]
    scored = [found.wrong[found.trajectories["seed"].isin(group)][..., 1:].mean((0, 2)) for group in groups]
    pairs = [ranking.kendall(one[None], other[None])[0] for one, other in itertools.combinations(scored, 2)]
    return clustered.record(np.array([np.mean(pairs), *pairs]), len(pairs), confidence) if pairs else dict(clustered.NOTHING)


def likeness(looks: pd.DataFrame, reference: str, *, settings: Bootstrap) -> pd.DataFrame:
    """How far each sampler's pictures are from the reference's, and how much alignment they gain over scale 0, at each scale.

    Columns sampler, scale, measure (change, likeness or gain), n, estimate, low, high.
    """
    ordered = looks.sort_values(["sampler", *tables.KEY], ignore_index=True)
    start = ordered.groupby(["sampler", *tables.TRAJECTORY])["alignment"].transform("first")
    rows = ordered.assign(gain=ordered["alignment"] - start)
    others = clustered.means(rows[rows["sampler"] != reference], ["change", "likeness"], ["sampler", "scale"], settings=settings)
    return pd.concat([others, clustered.means(rows, ["gain"], ["sampler", "scale"], settings=settings)], ignore_index=True)
