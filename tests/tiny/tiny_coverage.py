"""Is a measured coverage that of 95 % intervals? The band that is promised, and the error of a measurement by simulation."""

import numpy as np
import pandas as pd

PROMISED = (0.92, 0.98)


def error(hits: pd.Series) -> float:
    """The standard error of a mean over data sets, not below that of as many single intervals at the upper end of the band."""
    return max(hits.std(), np.sqrt(0.98 * 0.02)) / np.sqrt(len(hits))


def covers(hits: pd.Series, *, whole: bool = False) -> bool:
    """Whether the coverage lies in the band, up to three standard errors; numbers of `whole` steps may be covered more often.

    `hits` has one value per data set: whether its interval holds the truth, or the share of its intervals of one kind that do.
    """
    low, high = PROMISED
    return bool(low - 3 * error(hits) <= hits.mean() <= (np.inf if whole else high + 3 * error(hits)))
