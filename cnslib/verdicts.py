"""Verdicts on the paper's claims: simultaneous intervals, Holm's correction within a family, and one line per claim."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from statsmodels.stats.multitest import multipletests

from cnslib import claims, patterns
from cnslib.claims import Evidence, Values, count, measurable
from cnslib.config import demand

HUGE = 1e3  # beyond it a ratio stems from a denominator near zero, and its bound is not reported
RULES = ("above 0", "exists", "below margin")
LEVELS = (claims.less, claims.least, claims.most, claims.alike, claims.trend, claims.explained)
GAPS = (patterns.every_scale, patterns.widens, patterns.widens_somewhere, patterns.gaps_grow)
ORDERS = (patterns.order_over_scales, patterns.order_over_shifts, patterns.order_by_average)
FAILURES = (patterns.gradual, patterns.peak, patterns.rising, patterns.jump, patterns.differ_over_shifts, patterns.differ_over_models)
KINDS = {kind.__name__: kind for kind in (*LEVELS, *GAPS, *ORDERS, *FAILURES)}
WORDS = ["holds", "opposite", "undecided", "not measured here"]


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
    reach = np.sort(np.nan_to_num(score).reshape(len(score), -1).max(-1))[:, None, None, None]
    return combine(sample - reach * width), combine(sample + reach * width)


def judged(values: Values, *, rule: str, margin: float, confidence: float) -> dict:
    """Estimate, interval, p value and the direction in which it points, "holds" or "opposite".

    "above 0": the number is positive; the opposite is that it is negative. "exists": a positive value is among them; the opposite is
    that none reaches the margin. "below margin": none reaches the margin; the opposite is that one is above it.
    """
    lows, highs = band(values)
    tests = {
        "above 0": (lows <= 0, highs >= 0),
        "exists": (lows <= 0, highs >= margin),
        "below margin": (highs >= margin, lows <= margin),
    }
    p = [(np.sum(fails) + 1) / (len(fails) + 1) for fails in tests[rule]]
    place = int(np.ceil(confidence * len(lows))) - 1
    low, high = (bound if abs(bound) < HUGE else np.nan for bound in (lows[place], highs[place]))
    return {"estimate": combine(values[0]), "low": low, "high": high, "p": min(p), "direction": WORDS[int(p[0] > p[1])]}


def measured(listed: pd.DataFrame, found: Evidence) -> pd.DataFrame:
    """n, estimate, low, high, p and direction of every claim.

    The direction is "not measured here" where its classifiers, shifts (two, to compare them) or scale are not there, or where rCE is
    defined under no shift.
    """
    settings, rows = found.settings, []
    for claim in listed.itertuples():
        values = KINDS[claim.kind](found, claim) if measurable(found, claim) else np.full((1, 1, 1, 1), np.nan)
        if not values[0].size or np.isnan(values[0]).any():
            rows.append({"n": 0, **dict.fromkeys(("estimate", "low", "high", "p"), np.nan), "direction": WORDS[3]})
        else:
            result = judged(values, rule=claim.rule, margin=settings.margin, confidence=settings.bootstrap.confidence)
            rows.append({"n": count(found, claim), **result})
    return pd.DataFrame(rows, index=listed.index)


def decided(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Adds p_holm, corrected over the measured claims of each family, and the verdict: the direction if that p is small enough."""
    p = table.groupby("family")["p"].transform(corrected)
    sure = (p < 1 - confidence) | (table["direction"] == WORDS[3])
    return table.assign(p_holm=p, verdict=table["direction"].where(sure, WORDS[2])).drop(columns="direction")


def corrected(p: pd.Series) -> pd.Series:
    """Holm's correction of the p values that are there."""
    known = p.dropna()
    return pd.Series(multipletests(known, method="holm")[1] if len(known) else [], index=known.index, dtype=float).reindex(p.index)


def judge(listed: pd.DataFrame, found: Evidence) -> pd.DataFrame:
    """One line per claim with n, estimate, low, high, p, p_holm and verdict.

    For claims about rCE the columns that begin with `drop_` say what the average accuracy drop shows, which divides by nothing.
    """
    table, relative = listed.join(measured(listed, found)), listed["measure"] == "rCE"
    other = measured(listed[relative].assign(measure="drop"), found)
    by_drop = table.copy()
    by_drop[other.columns] = other.reindex(table.index).where(relative, table[other.columns], axis=0)
    own, by_drop = (decided(part, confidence=found.settings.bootstrap.confidence) for part in (table, by_drop))
    beside = by_drop.loc[relative, ["n", "estimate", "low", "high", "verdict"]]
    return own.join(beside.add_prefix("drop_")).fillna({"drop_verdict": ""})


def read(path: Path) -> pd.DataFrame:
    """The list of claims. ValueError names a kind or rule that is not known."""
    table = pd.read_csv(path, keep_default_na=False, na_values={"published": [""], "scale": [""]})
    for claim in table.itertuples():
        demand(claim.kind in ("none", *KINDS), f"{path.name}: kind of {claim.id}", claim.kind, ", ".join(("none", *KINDS)))
        demand(claim.kind == "none" or claim.rule in RULES, f"{path.name}: rule of {claim.id}", claim.rule, ", ".join(RULES))
    return table
