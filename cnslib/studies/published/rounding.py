"""The partial correlation of CNS-Bench supplement F from its Tables 5 and 7, and every value that their rounding allows.

Accuracies of a model must round to the printed ones, and so must their differences and averages, which Table 5 prints as well.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats
import statsmodels.api as sm
from jaxtyping import Float

from cnslib.data import published

HALF = 0.005  # half of the last digit of Table 5
HALF_ID = 0.0005  # half of the last digit of Table 7, which prints one decimal of a percent and a zero
HALF_MILLION = 0.5  # Table 7 prints whole millions of parameters
SLACK = 1e-9  # what binary fractions may add
FAMILY = tuple(f"deit3_{size}" for size in ("small", "medium", "base", "large", "huge"))
SCALES = published.SCALES
MEAN, DROP = "mean above 0", "drop to the mean above 0"


def family() -> pd.DataFrame:
    """The five DeiT3 models by size: parameters in millions, ImageNet accuracy in [0, 1], accuracy per scale of Table 5."""
    size = published.read("cns_table7_parameters").set_index("architecture")["parameters_millions"]
    validation = published.read("cns_table7").set_index("model")["accuracy_percent"] / 100
    names = [next(name for name in validation.index if name.startswith(own)) for own in FAMILY]
    shifted = published.by_scale("cns_table5").loc[names]
    return shifted.assign(parameters=size[list(FAMILY)].to_numpy(), id_accuracy=validation[names].to_numpy())


def combinations() -> Float[np.ndarray, "printed scales"]:
    """Weights on the six accuracies that give the other printed numbers of a row: both averages and the drops at scales 1 to 2.5."""
    mean, start = np.full(len(SCALES), 1 / len(SCALES)), np.eye(len(SCALES))[0]
    return np.array([mean, start - mean, *(start - own for own in np.eye(len(SCALES))[2:])])


def printed(model: str) -> tuple[Float[np.ndarray, "scales"], Float[np.ndarray, "printed"]]:
    """The printed accuracies of a model, and its printed numbers in the order of `combinations`."""
    averages, drops = published.averages("cns_table5").loc[model], published.by_scale("cns_table5", "drop").loc[model]
    others = [averages["accuracy"], averages["drop"], *drops[list(SCALES[2:])]]
    return published.by_scale("cns_table5").loc[model].to_numpy(), np.array(others)


def outcomes() -> dict[str, Float[np.ndarray, "scales"]]:
    """What size may be correlated with, as weights on the six accuracies: the mean above 0, its drop from scale 0, each scale above 0."""
    above, start = np.array(SCALES) > 0, np.eye(len(SCALES))[0]
    mean = above / above.sum()
    single = {f"scale {scale:g}": row for scale, row in zip(SCALES, np.eye(len(SCALES)), strict=True) if scale > 0}
    return {MEAN: mean, DROP: start - mean, **single}


def bounds(model: str, target: Float[np.ndarray, "scales"]) -> tuple[float, float]:
    """Smallest and largest sum of weighted accuracies that all printed numbers of a model allow (linear programme, scipy)."""
    accuracies, others = printed(model)
    rows = combinations()
    limits = {"A_ub": np.vstack([rows, -rows]), "b_ub": np.concatenate([others + HALF, HALF - others]) + SLACK}
    box = np.column_stack([accuracies - HALF, accuracies + HALF])
    low, high = (sign * scipy.optimize.linprog(sign * target, bounds=box, **limits).fun for sign in (1, -1))
    return float(low), float(high)


def draws(model: str, count: int, generator: np.random.Generator) -> Float[np.ndarray, "count scales"]:
    """Accuracies drawn evenly from those that all printed numbers of a model allow, by rejection."""
    accuracies, others = printed(model)
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        tried = accuracies + generator.uniform(-HALF, HALF, (20 * count, len(SCALES)))
        found.append(tried[(np.abs(tried @ combinations().T - others) <= HALF + SLACK).all(1)])
    return np.concatenate(found)[:count]


def partial(size: np.ndarray, ood: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """Partial correlation of size and OOD accuracy given ID accuracy, and its p value, by least squares (statsmodels)."""
    result = sm.OLS(ood, np.column_stack([size, own, np.ones(len(size))])).fit()
    t = result.tvalues[0]
    return float(t / np.sqrt(t**2 + result.df_resid)), float(result.pvalues[0])


def correlation(point: Float[np.ndarray, "3models"], measure: Callable[[np.ndarray], np.ndarray] = np.log2) -> float:
    """The same correlation for numbers of parameters, OOD accuracies and ID accuracies in one vector, from residuals.

    `measure` makes a size of the number of parameters.
    """
    size, ood, own = point.reshape(3, -1)
    columns = np.stack([measure(size), ood, own])
    x, y, z = columns - columns.mean(1, keepdims=True)
    x, y = x - (x @ z) / (z @ z) * z, y - (y @ z) / (z @ z) * z
    return float(x @ y / np.sqrt(max((x @ x) * (y @ y), 1e-30)))


def extremes(function: Callable[[np.ndarray], float], low: np.ndarray, high: np.ndarray, *, starts: int, seed: int) -> tuple[float, float]:
    """Smallest and largest value found in a box. The search (L-BFGS-B) starts at the best of many corners: a range that is at least
    as wide exists."""
    corners = np.where(np.random.default_rng(seed).random((starts, len(low))) < 0.5, low, high)
    values, ends = np.array([function(corner) for corner in corners]), []
    for sign in (1, -1):
        begin, limits = corners[np.argmin(sign * values)], list(zip(low, high, strict=True))
        found = scipy.optimize.minimize(lambda point, sign=sign: sign * function(point), begin, bounds=limits, method="L-BFGS-B")
        ends.append(sign * min(found.fun, (sign * values).min()))
    return float(ends[0]), float(ends[1])


def correlations(*, starts: int, confidence: float, seed: int) -> pd.DataFrame:
    """Partial correlation of size for DeiT3 and what rounding allows, for each of `outcomes` given ID accuracy.

    Size is the logarithm to base 2 of the number of parameters; `counted` is the value with that number itself, and `counted_low` and
    `counted_high` are its quantiles. `low` and `high` are quantiles over `starts` evenly drawn tables that round to the printed ones,
    `least` and `most` the extremes; `below` is the number of draws at or below the printed value. n counts models.
    """
    table, generator = family(), np.random.default_rng(seed)
    said = float(published.facts("cns_text")["partial_correlation"])
    size, own = table["parameters"].to_numpy(), table["id_accuracy"].to_numpy()
    cells = np.stack([draws(model, starts, generator) for model in table.index], axis=1)
    drawn = [values + half * generator.uniform(-1, 1, (starts, len(values))) for values, half in ((size, HALF_MILLION), (own, HALF_ID))]
    rows = []
    for title, weights in outcomes().items():
        ood, points = table[list(SCALES)].to_numpy() @ weights, np.concatenate([drawn[0], cells @ weights, drawn[1]], axis=1)
        r, p = partial(np.log2(size), ood, own)
        many, plain = (np.array([correlation(point, measure) for point in points]) for measure in (np.log2, np.asarray))
        ends = np.array([bounds(model, weights) for model in table.index]).T
        box = [np.concatenate([size + sign * HALF_MILLION, end, own + sign * HALF_ID]) for sign, end in zip((-1, 1), ends, strict=True)]
        least, most = extremes(correlation, *box, starts=starts, seed=seed)
        (low, counted_low), (high, counted_high) = (
            np.quantile([many, plain], q, axis=1) for q in ((1 - confidence) / 2, (1 + confidence) / 2)
        )
        row = {"accuracy": title, "n": len(table), "estimate": r, "low": low, "high": high, "p": p, "least": least, "most": most}
        counted = {"counted": partial(size, ood, own)[0], "counted_low": counted_low, "counted_high": counted_high}
        rows.append(row | {"below": int((many <= said).sum())} | counted)
    return pd.DataFrame(rows)


def p_value(r: float, models: int) -> float:
    """The p value of a partial correlation given one variable, with one value per model."""
    freedom = models - 3
    return float(2 * scipy.stats.t.sf(abs(r) * np.sqrt(freedom / (1 - r * r)), freedom))


def models_needed(r: float, alpha: float) -> int:
    """How many points a partial correlation needs before its p value falls below alpha."""
    return next(n for n in range(4, 10_000) if p_value(r, n) < alpha)
