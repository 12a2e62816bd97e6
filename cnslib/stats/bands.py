"""Simultaneous intervals: bounds for the largest or the least of several values, from a band that holds all of them at once.

Values have the axes "in some group, for all members, in any place" behind that of the resamples; row 0 is the sample.
"""

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, "resamples+1 some all any"]
HUGE = 1e3  # beyond it a ratio stems from a denominator near zero, and its bound is not reported


def combine(values: Float[np.ndarray, "*rows some all any"]) -> Float[np.ndarray, "*rows"]:
    """The number that a claim is about: in some group, for all of its members, in any of their places, the largest such value."""
    return values.max(-1).min(-1).max(-1)


def error(values: Values) -> Float[np.ndarray, "some all any"]:
    """Standard error of every value: half the width of the middle 68 % of its resamples, which a few huge ratios cannot move."""
    quantile = np.nanquantile if np.isnan(values).any() else np.quantile  # the former takes four times as long
    low, high = quantile(values[1:], [0.1587, 0.8413], axis=0)
    return np.where(high > low, (high - low) / 2, np.nanstd(values[1:], axis=0))


def band(values: Values) -> tuple[Float[np.ndarray, "resamples"], Float[np.ndarray, "resamples"]]:
    """Lower and upper bounds of a claim's number, from the narrowest to the widest simultaneous band around its values.

    A band is as wide, in standard errors, as one resample lies away from the sample in its worst place; the band of a share c of
    all resamples holds all true values with confidence c, so that a claim about the largest or the least of them needs no correction.
    """
    sample, resamples, width = values[0], values[1:], error(values)
    away = np.abs(resamples - sample)
    score = np.divide(away, width, out=np.zeros_like(away), where=width > 0)
    reach = np.sort(np.nan_to_num(score, nan=np.inf).reshape(len(score), -1).max(-1))[:, None, None, None]
    return combine(sample - reach * width), combine(sample + reach * width)


def placed(lows: Float[np.ndarray, "resamples"], highs: Float[np.ndarray, "resamples"], confidence: float) -> tuple[float, float]:
    """The bounds of the band with this confidence; NaN for one that stems from a denominator near zero."""
    place = int(np.ceil(confidence * len(lows))) - 1
    low, high = (float(bound) if abs(bound) < HUGE else np.nan for bound in (lows[place], highs[place]))
    return low, high


def bounds(values: Values, confidence: float) -> tuple[float, float]:
    """The interval of a claim's number, from the band that holds all of its values at once; NaN without a value."""
    if np.isnan(values[0]).any() or np.isnan(values[1:]).all():
        return np.nan, np.nan
    return placed(*band(values), confidence)
