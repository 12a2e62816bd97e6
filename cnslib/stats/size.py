"""Model size and OOD accuracy given ID accuracy, within families of one architecture at several sizes (CNS-Bench supplement F).

Size is the logarithm to base 2 of the number of weights, so that a slope is accuracy per doubling.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm
from jaxtyping import Float, Int

from cnslib.stats.accuracy import ALL, over_images, tabulate
from cnslib.stats.bootstrap import ANYWHERE, CORRELATION, holm
from cnslib.stats.line import Points, above, gain, overall, ratio, without_noise


@dataclass(frozen=True)
class Sized:
    """Some of the models with their sizes; `family` numbers the family of each, and every family has a level of its own."""

    index: Int[np.ndarray, "members"]
    log_size: Float[np.ndarray, "members"]
    family: Int[np.ndarray, "members"]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a partial correlation: members without the families' levels, size and ID accuracy."""
        return len(self.index) - self.family.max() - 3

    def centred(self, values: Float[np.ndarray, "... models scales"]) -> Float[np.ndarray, "... members scales"]:
        """The members' values about the mean of their family."""
        own = values[..., self.index, :]
        same = self.family[:, None] == self.family
        return own - (same / same.sum(1)) @ own


def sized(found: Points, parameters: dict[str, int], families: dict[str, list[str]]) -> dict[str, Sized]:
    """The families that were evaluated in enough sizes for a test, and all of them together under their joined names.

    Raises ValueError for a member whose number of weights is not known.
    """
    present = {name: [m for m in own if m in found.shares.models] for name, own in families.items()}
    if unknown := sorted({m for own in present.values() for m in own} - parameters.keys()):
        raise ValueError(f"line.sizes: number of weights of {', '.join(unknown)} is not known; known: {', '.join(parameters)}")
    enough = {name: own for name, own in present.items() if len(own) > 3}
    groups = {name: [name] for name in enough} | ({" + ".join(enough): list(enough)} if len(enough) > 1 else {})
    return {title: members(found, parameters, [enough[name] for name in names]) for title, names in groups.items()}


def members(found: Points, parameters: dict[str, int], families: list[list[str]]) -> Sized:
    """The models of some families as indices, sizes and family numbers."""
    names = [name for own in families for name in own]
    index = np.array([found.shares.models.index(name) for name in names])
    return Sized(index, np.log2([parameters[name] for name in names]), np.repeat(np.arange(len(families)), [len(own) for own in families]))


def residuals(found: Points, own: Sized) -> tuple[np.ndarray, np.ndarray]:
    """Size and OOD accuracy of the members after regression on ID accuracy, families about their own level."""
    x, y = own.centred(found.x), own.centred(found.y)
    size = own.centred(own_column(found, own))
    across = (x * x).sum(2, keepdims=True)
    return size - ratio((size * x).sum(2, keepdims=True), across) * x, y - ratio((y * x).sum(2, keepdims=True), across) * x


def own_column(found: Points, own: Sized) -> Float[np.ndarray, "models 1"]:
    """Sizes in the order of all models; those that are no members stay 0 and are not read."""
    column = np.zeros((len(found.shares.models), 1))
    column[own.index, 0] = own.log_size
    return column


def partial(found: Points, families: dict[str, Sized]) -> pd.DataFrame:
    """Partial correlation of size and OOD accuracy given ID accuracy per family, shift and scale, its interval over the images.

    Value and p value are those of ordinary least squares (statsmodels); Holm's correction runs over the shifts and scales of a family.
    """
    columns = ["shift", "family", "scale", "n", "estimate", "low", "high", "models", "p", "p_holm"]
    parts = [pd.DataFrame(columns=columns)] if not families else []
    for name, own in families.items():
        size, y = residuals(found, own)
        r = ratio((size * y).sum(2), np.sqrt((size * size).sum(2) * (y * y).sum(2)))
        table = tabulate(r[:, :, None], found.shares, found.scales, models=[name], within=CORRELATION).rename(columns={"model": "family"})
        tests = np.full((2, *r.shape[1:]), np.nan)
        for group, scale in np.argwhere(~np.isnan(r[0])):
            tests[:, group, scale] = least_squares(found, own, group, scale)
        table = table.assign(models=len(own.index), estimate=tests[0].ravel(), p=tests[1].ravel())
        parts.append(table.assign(p_holm=table.groupby(table["shift"] == ALL)["p"].transform(holm)))
    return pd.concat(parts, ignore_index=True)


def least_squares(found: Points, own: Sized, group: int, scale: int) -> tuple[float, float]:
    """Partial correlation of size and its p value, from the t value of size beside ID accuracy and the families' levels."""
    levels = own.family[:, None] == np.arange(own.family.max() + 1)
    x = np.broadcast_to(found.x, found.y.shape)[0, group, own.index, scale]
    with np.errstate(all="ignore"):
        result = sm.OLS(found.y[0, group, own.index, scale], np.column_stack([own.log_size, x, levels])).fit()
        t = result.tvalues[0]
        return t / np.sqrt(t**2 + result.df_resid), result.pvalues[0]


def pooled(found: Points, families: dict[str, Sized]) -> pd.DataFrame:
    """Partial correlation of size over all shifts and scales above 0 at once, each with its own level and its own slope on ID accuracy.

    It has no p value: the points of one model are not independent, and as many as there are members are all that can be. Its interval
    is not published: the noise of ID accuracy moves it, so that it holds the truth more rarely than it says (tests/stats/test_coverage.py).
    """
    rows = []
    for name, own in families.items():
        size, y = np.broadcast_arrays(*(above(values, found) for values in residuals(found, own)))
        r = ratio((size * y).sum((1, 2, 3)), np.sqrt((size * size).sum((1, 2, 3)) * (y * y).sum((1, 2, 3))))
        rows.append({"family": name, "models": len(own.index), **over_images(r, found.shares, within=CORRELATION)})
    return pd.DataFrame(rows, columns=["family", "models", "n", "estimate", "low", "high"])


def noise_free(found: Points, families: dict[str, Sized]) -> pd.DataFrame:
    """The same with the noise of ID accuracy taken out of the products above the fraction bar, which makes its sign a fair one.

    A noisy ID accuracy explains too little and leaves its share to size. Below the bar stands what stands there for `pooled`.
    """
    rows = []
    for name, own in families.items():
        x, y, size = own.centred(found.x), own.centred(found.y), own.centred(own_column(found, own))
        xx, xy = without_noise((x * x).sum(2)), without_noise((x * y).sum(2))
        products = ratio((size * y).sum(2) * xx - (size * x).sum(2) * xy, (x * x)[:1].sum(2))
        size_left, y_left = np.broadcast_arrays(*(above(values[:1], found) for values in residuals(found, own)))
        r = ratio(above(products, found).sum((1, 2)), np.sqrt((size_left**2).sum() * (y_left**2).sum()))
        rows.append({"family": name, "models": len(own.index), **over_images(r, found.shares, within=CORRELATION)})
    return pd.DataFrame(rows, columns=["family", "models", "n", "estimate", "low", "high"])


def per_doubling(found: Points, families: dict[str, Sized], drawn: np.ndarray | None = None) -> pd.DataFrame:
    """OOD accuracy per doubling of the size, mean over shifts and scales above 0: all of it, and what is left above the line."""
    rows = []
    for name, own in families.items():
        size = own.centred(own_column(found, own))
        for title, values in {"OOD accuracy": found.ood, "gain": gain(found, drawn)}.items():
            slope = (size * own.centred(overall(values, found)[..., None])).sum((1, 2)) / (size * size).sum()
            rows.append({"family": name, "models": len(own.index), "of": title, **over_images(slope, found.shares, within=ANYWHERE)})
    return pd.DataFrame(rows, columns=["family", "models", "of", "n", "estimate", "low", "high"])
