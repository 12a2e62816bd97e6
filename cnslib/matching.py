"""Which rendered severity a slider scale is worth, and which scale a reference: equal accuracy on two curves with intervals.

Errors are made monotone (isotonic regression, as in `calibration`), so that each error belongs to one severity. What lies beyond the
ends of a curve is set to its end: a bound of 0 or 1 says "at most" or "at least". The two sides are resampled independently.
"""

import dataclasses

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib import calibration, stats
from cnslib.config import Bootstrap
from cnslib.stats import Shares

MEAN = "mean over classifiers"


def independent(settings: Bootstrap, number: int) -> Bootstrap:
    """Settings with another seed, for a sample that is independent of the first: equal seeds would draw equal resamples."""
    return dataclasses.replace(settings, seed=settings.seed + number)


def with_mean(errors: Shares) -> Shares:
    """The classifiers, and their mean as one more."""
    samples = np.concatenate([errors.samples, errors.samples.mean(2, keepdims=True)], 2)
    return dataclasses.replace(errors, samples=samples, models=[*errors.models, MEAN])


def relative(errors: Shares) -> Shares:
    """Share of the answers right at the first scale that are lost: 1 - accuracy / accuracy at the first scale."""
    start = 1 - errors.samples[..., :1]
    return dataclasses.replace(errors, samples=1 - (1 - errors.samples) / start)


def at_equal_error(
    curve: Shares, wanted: Float[np.ndarray, "resamples+1 groups models bins"]
) -> Float[np.ndarray, "resamples+1 groups models bins"]:
    """Where the monotone curve reaches each wanted error, linear between its bins, and its ends for errors beyond them."""
    rising = calibration.monotone(curve).samples
    clipped = np.clip(wanted, rising[..., :1], rising[..., -1:])
    bins = np.broadcast_to(np.array(curve.bins, float), rising.shape)
    return calibration.read(bins, calibration.position(rising, clipped))


def severities(drawn: Shares, ladder: Shares) -> pd.DataFrame:
    """The severity on the ladder at which accuracy equals that at each slider scale, per shift and classifier, with intervals.

    n counts trajectories, `n_ladder` rendered garments; `beyond` says where even the end of the ladder is more or less accurate.
    """
    wanted = drawn.samples[:, :-1]
    found = stats.tabulate(at_equal_error(ladder, wanted), dataclasses.replace(drawn, groups=drawn.groups[:-1], n=drawn.n[:-1]), drawn.bins)
    ends = calibration.monotone(ladder).samples[0]
    outside = np.select([wanted[0] < ends[..., :1], wanted[0] > ends[..., -1:]], ["below", "above"], "")
    return found.assign(n_ladder=np.repeat(ladder.n[:-1], wanted[0, 0].size), beyond=outside.ravel())


def scales(drawn: Shares, reference: Shares) -> pd.DataFrame:
    """The slider scale at which accuracy falls to that on the reference, per shift and classifier, with intervals."""
    wanted = reference.samples[:, :-1]
    found = stats.tabulate(at_equal_error(drawn, wanted), dataclasses.replace(drawn, groups=drawn.groups[:-1], n=drawn.n[:-1]), [0.0])
    ends = calibration.monotone(drawn).samples[0]
    outside = np.select([wanted[0] < ends[..., :1], wanted[0] > ends[..., -1:]], ["below", "above"], "")
    return found.drop(columns="scale").assign(n_reference=np.repeat(reference.n[:-1], wanted[0, 0].size), beyond=outside.ravel())


def differences(drawn: Shares, reference: Shares) -> pd.DataFrame:
    """Accuracy at each scale minus that on the reference: above zero where the generated images are easier (section 4.3)."""
    return stats.tabulate(reference.samples - drawn.samples, drawn, drawn.bins)
