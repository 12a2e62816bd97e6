"""The claims of CNS-Bench section 5.3: what each kind in published/claims.csv is measured by, and a verdict on every claim.

A function per kind returns values oriented so that the paper's direction is positive; dimensions read "in some group, for all members, in
any place" (see `bootstrap`). A verdict rests on simultaneous intervals and on Holm's correction within a family of claims.
"""

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.core.settings.sections import Axes
from cnslib.stats import axes, bootstrap, verdicts
from cnslib.stats.accuracy import ALL, drop
from cnslib.stats.axes import deviation_between
from cnslib.stats.bootstrap import Values, band, combine, placed
from cnslib.stats.failure import deviation
from cnslib.stats.ranking import differences
from cnslib.stats.verdicts import AGREES, SAME, UNDECIDED, UNMEASURED

SHOWN = {"source": "where", "rule": "holds if"} | {
    name: name for name in ("quantity", "published", *bootstrap.RECORD, "verdict", "smallest")
}
SHOWN |= {"drop_verdict": "by drop", "caution": "caution", "details": "more in"}
EVENNESS = ("gradual", "peak", "rising", "jump")  # kinds of claims about where along the scale classifiers fail
RULES = {"above 0": SAME, "exists": AGREES, "below margin": AGREES}  # and what a claim is called that passes


def listed(text: str) -> list[str]:
    """The names in a cell of the list of claims, separated by semicolons."""
    return text.split("; ") if text else []


@dataclass(frozen=True)
class Evidence:
    """What claims are judged on: errors and first failures on the shifted images, errors on held-out ones, numbers of parameters."""

    errors: xr.DataArray
    failures: xr.DataArray
    heldout: xr.DataArray
    parameters: dict[str, int]
    settings: Axes

    @functools.cached_property
    def drops(self) -> xr.DataArray:
        """Accuracy drops."""
        return drop(self.errors)

    @functools.cached_property
    def ratios(self) -> xr.DataArray:
        """Mean rCE."""
        return axes.relative_errors(self.errors, reference=self.settings.reference)

    def members(self, claim) -> list[str]:
        """The classifiers of a claim's axes."""
        return [name for axis in listed(claim.axis) for name in self.settings.members[axis]]

    def shifts(self, claim) -> list[str]:
        """The shifts of a claim that were evaluated; all of them where it names none."""
        known = self.drops["shift"].to_numpy().tolist()[:-1]
        return [name for name in (listed(claim.shift) or known) if name in known]

    def measurable(self, claim) -> bool:
        """Whether a claim has a kind and its classifiers, at least one shift of every list, and its scale were evaluated."""
        sides = [listed(claim.first), listed(claim.second)]
        if claim.kind == "gradual":
            return all(set(side) & set(self.errors["shift"].to_numpy()) for side in sides)
        there = {*self.members(claim), *sides[0], *sides[1]} <= set(self.errors["model"].to_numpy())
        at_scale = np.isnan(claim.scale) or claim.scale in self.errors["scale"].to_numpy()
        return claim.kind != "none" and there and bool(self.shifts(claim)) and at_scale

    def count(self, claim) -> int:
        """How many trajectories (held-out images, for accuracy without shift) a claim rests on."""
        if claim.measure == "held-out error":
            return int(self.heldout["n"].sel(shift=ALL))
        if claim.measure == "rCE":
            return int(self.ratios["n"])
        evaluated = [
            name for name in [*listed(claim.first), *listed(claim.second)] if claim.kind == "gradual" and name in self.errors["shift"]
        ]
        return int(self.errors["n"].sel(shift=evaluated or self.shifts(claim)).sum())

    def pooled(self, claim) -> xr.DataArray:
        """Drops over all shifts, every image with the same weight; the mean over the claim's shifts where it names some."""
        return self.drops.sel(shift=self.shifts(claim) if claim.shift else [ALL]).mean("shift", skipna=False)

    def loss(self, claim) -> xr.DataArray:
        """The claim's measure: rCE, the error on held-out images, or the accuracy drop, averaged over the scales or at the claim's."""
        if claim.measure == "rCE":
            return self.ratios
        if claim.measure == "held-out error":
            return self.heldout.sel(shift=ALL).isel(scale=0, drop=True)
        lost = self.pooled(claim)
        return lost.mean("scale", skipna=False) if np.isnan(claim.scale) else lost.sel(scale=claim.scale)

    def first_failures(self, claim) -> xr.DataArray:
        """Share of trajectories that fail first at each scale, under each of the claim's shifts."""
        shares = self.failures.isel(scale=slice(None, -1)).sel(shift=self.shifts(claim))
        return shares.assign_coords(scale=shares["scale"].astype(float))


def gap(values: xr.DataArray, claim) -> xr.DataArray:
    """The second classifiers' mean minus the first ones'."""
    first, second = (values.sel(model=listed(side)).mean("model", skipna=False) for side in (claim.first, claim.second))
    return second - first


def least(evidence: Evidence, claim) -> xr.DataArray:
    """Loss of each second classifier minus the first one's, which must lose less than all of them."""
    lost = evidence.loss(claim)
    return (lost.sel(model=listed(claim.second)) - lost.sel(model=claim.first, drop=True)).rename(model="all")


def slope(values: xr.DataArray, x: xr.DataArray) -> xr.DataArray:
    """Slope of the least-squares line along the dimension of x."""
    centred = x - x.mean()
    return xr.dot(values, centred, dim=str(x.dims[0])) / (centred**2).sum()


def trend(evidence: Evidence, claim) -> xr.DataArray:
    """Fall of the loss with each doubling of the parameters along an axis, by least squares."""
    names = evidence.members(claim)
    return -slope(
        evidence.loss(claim).sel(model=names), xr.DataArray(np.log2([evidence.parameters[name] for name in names]), {"model": names})
    )


def explained(evidence: Evidence, claim) -> xr.DataArray:
    """How much of a doubling's effect on accuracy under shift held-out accuracy explains (section F), each family with an intercept."""
    names, families = evidence.members(claim), [evidence.settings.members[axis] for axis in listed(claim.axis)]
    right = 1 - shifted(evidence.errors).sel(shift=ALL, model=names).mean("scale", skipna=False).to_numpy()
    plain = 1 - evidence.heldout.sel(shift=ALL, model=names).isel(scale=0).to_numpy()
    intercepts = np.array([[name in family for family in families] for name in names], float)
    simple = np.column_stack([np.log2([evidence.parameters[name] for name in names]), intercepts])
    full = np.concatenate([np.broadcast_to(simple, (len(plain), *simple.shape)), plain[..., None]], -1)
    return xr.DataArray(right @ np.linalg.pinv(simple)[0] - (np.linalg.pinv(full)[:, 0] * right).sum(-1), dims="resample")


def shifted(values: xr.DataArray) -> xr.DataArray:
    """Values at the scales above the first."""
    return values.isel(scale=slice(1, None))


def growth(values: xr.DataArray) -> xr.DataArray:
    """How much values grow from the first to the last shifted scale, along the line of least squares through all of them."""
    scales = shifted(values)["scale"]
    return slope(shifted(values), scales) * float(scales[-1] - scales[0])


def leads(evidence: Evidence, claim, *, every: bool = True) -> xr.DataArray:
    """By how much the first of every pair of an axis loses less than the second, per scale and shift (with `every`, also ALL)."""
    used = evidence.shifts(claim) if claim.shift or not every else evidence.drops["shift"].to_numpy()
    return differences(evidence.drops.sel(shift=used, model=evidence.members(claim)))


def turning(lead: xr.DataArray, dim: str, back: xr.DataArray | None = None) -> xr.DataArray:
    """A pair changes its order if the first leads in some place along `dim` and the second in another: both must be there."""
    both = xr.concat([lead, -(lead if back is None else back)], "all").rename({dim: "any"})
    return both.stack(some=[name for name in both.dims if name not in ("resample", "all", "any")], create_index=False)


def order_by_average(evidence: Evidence, claim) -> xr.DataArray:
    """Leads in average drop that are deficits at a scale, within a shift or over all of them."""
    lead = leads(evidence, claim)
    average, lead = lead.mean("scale", skipna=False).broadcast_like(shifted(lead)), shifted(lead)
    return xr.concat([turning(average, "scale", lead), turning(-average, "scale", -lead)], "some")


def gradual(evidence: Evidence, claim) -> xr.DataArray:
    """Spread of the failure points above scale 0 under the first shifts minus that under the second, mean over the classifiers."""
    shares = evidence.failures.isel(scale=slice(1, -1))
    counts = (shares * evidence.failures["n"]).transpose("resample", "shift", "model", "scale")
    spread = shares.isel(scale=0, drop=True).copy(data=deviation(counts.to_numpy(), shares["scale"].to_numpy().tolist()))
    sides = [[name for name in listed(side) if name in shares["shift"]] for side in (claim.first, claim.second)]
    first, second = (spread.sel(shift=names).mean("shift") for names in sides)
    return (first - second).mean("model")


def peak(evidence: Evidence, claim) -> xr.DataArray:
    """Share failing first at the claim's scale minus that at each other shifted scale, mean over the classifiers."""
    share = shifted(evidence.first_failures(claim).mean(["shift", "model"], skipna=False))
    return (share.sel(scale=claim.scale, drop=True) - share.drop_sel(scale=claim.scale)).rename(scale="all")


def both_ways(difference: xr.DataArray) -> xr.DataArray:
    """Differences of either sign, all of their dimensions as one."""
    flat = difference.drop_vars(difference.coords).stack(flat=[name for name in difference.dims if name != "resample"], create_index=False)
    return xr.concat([flat, -flat], "flat").rename(flat="some")


def failed_apart(first: xr.DataArray, dim: str) -> xr.DataArray:
    """Differences, between any two along `dim`, in the share failed so far at each scale, from the shares failing first."""
    return both_ways(differences(first.cumsum("scale", skipna=False), dim))


KINDS: dict[str, Callable[[Evidence, Any], xr.DataArray]] = {
    # levels: the first loses less than the second, than all of them, more than all, or as much; it falls with size
    "less": lambda evidence, claim: gap(evidence.loss(claim), claim),
    "least": least,
    "most": lambda evidence, claim: -least(evidence, claim),
    "alike": lambda evidence, claim: both_ways(least(evidence, claim)),
    "trend": trend,
    "explained": explained,
    # gaps: at every scale, growing with it over all shifts, under some shift, or between all classifiers of an axis
    "every_scale": lambda evidence, claim: shifted(gap(evidence.pooled(claim), claim)).rename(scale="all"),
    "widens": lambda evidence, claim: growth(gap(evidence.pooled(claim), claim)),
    "widens_somewhere": lambda evidence, claim: growth(gap(evidence.drops.sel(shift=evidence.shifts(claim)), claim)).rename(shift="some"),
    "gaps_grow": lambda evidence, claim: growth(deviation_between(evidence.pooled(claim).sel(model=evidence.members(claim)))),
    # orders: leads that turn round along the scale, from shift to shift, or between the average and a scale
    "order_over_scales": lambda evidence, claim: turning(shifted(leads(evidence, claim)), "scale"),
    "order_over_shifts": lambda evidence, claim: turning(leads(evidence, claim, every=False).mean("scale", skipna=False), "shift"),
    "order_by_average": order_by_average,
    # first failures: how spread out, most frequent where, growing with the scale, jumping, and failed so far by shift or by classifier
    "gradual": gradual,
    "peak": peak,
    "rising": lambda evidence, claim: growth(evidence.first_failures(claim).mean(["shift", "model"], skipna=False)),
    "jump": lambda evidence, claim: (
        -gap(evidence.first_failures(claim).mean("shift", skipna=False).diff("scale").sel(scale=claim.scale), claim)
    ),
    "differ_over_shifts": lambda evidence, claim: failed_apart(evidence.first_failures(claim).mean("model", skipna=False), "shift"),
    "differ_over_models": lambda evidence, claim: failed_apart(
        evidence.first_failures(claim).sel(model=evidence.members(claim)).mean("shift", skipna=False), "model"
    ),
}


def judged(values: Values, *, rule: str, margin: float, confidence: float) -> dict:
    """Estimate, interval, p value and the direction in which it points, for or against the claim.

    "above 0": positive, or negative. "exists": a positive value is among them, or none reaches the margin. "below margin": none reaches the
    margin, or one is above it.
    """
    lows, highs = band(values)
    tests = {
        "above 0": (~(lows > 0), ~(highs < 0)),  # a bound that is not known fails, too
        "exists": (~(lows > 0), ~(highs < margin)),
        "below margin": (~(highs < margin), ~(lows > margin)),
    }
    p = [(np.sum(fails) + 1) / (len(fails) + 1) for fails in tests[rule]]
    low, high = placed(lows, highs, confidence)
    direction = verdicts.word(bool(p[0] <= p[1]), True, confirmed=RULES[rule])
    return {"estimate": combine(values[0]), "low": low, "high": high, "p": min(p), "direction": direction}


def measured(claims: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """n, estimate, low, high, p and direction of every claim; not measured where classifiers, shifts or a scale are not there."""
    settings, rows = evidence.settings, []
    for claim in claims.itertuples():
        values = np.full((1, 1, 1, 1), np.nan)
        if evidence.measurable(claim):
            array = KINDS[claim.kind](evidence, claim)
            array = array.drop_vars(set(array.coords)).expand_dims([name for name in ("some", "all", "any") if name not in array.dims])
            values = array.transpose("resample", "some", "all", "any").to_numpy()
        if not values[0].size or np.isnan(values[0]).any() or (len(values) > 1 and np.isnan(values[1:]).all()):
            rows.append({"n": 0, **dict.fromkeys(("estimate", "low", "high", "p"), np.nan), "direction": UNMEASURED})
        else:
            result = judged(values, rule=claim.rule, margin=settings.margin, confidence=settings.bootstrap.confidence)
            rows.append({"n": evidence.count(claim), **result})
    return pd.DataFrame(rows, index=claims.index)


def decided(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Adds p_holm, corrected within each family, the verdict, and the smallest effect that an undecided claim could have shown."""
    p = table.groupby("family")["p"].transform(bootstrap.holm)
    sure = (p < 1 - confidence) | (table["direction"] == UNMEASURED)
    half = np.maximum(table["high"] - table["estimate"], table["estimate"] - table["low"])
    columns = {"verdict": table["direction"].where(sure, UNDECIDED), "smallest": half.mask(sure)}
    return table.assign(p_holm=p, **columns).drop(columns="direction")


def judge(claims: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """One row per claim with n, estimate, low, high, p, p_holm, verdict and smallest; `drop_` columns say it by average drop, not rCE."""
    table, relative = claims.join(measured(claims, evidence)), claims["measure"] == "rCE"
    by_drop = table.copy()
    by_drop.update(measured(claims[relative].assign(measure="drop"), evidence))
    by_measure, by_drop = (decided(part, confidence=evidence.settings.bootstrap.confidence) for part in (table, by_drop))
    beside = by_drop.loc[relative, ["n", "estimate", "low", "high", "verdict"]]
    return by_measure.join(beside.add_prefix("drop_")).fillna({"drop_verdict": ""})


def cautioned(claims: pd.DataFrame, uneven: Collection[str]) -> pd.DataFrame:
    """Claims about how evenly classifiers fail, with a caution where a slider that makes most of its change in one step is among theirs."""
    about = claims["kind"].isin(EVENNESS)
    named = [
        ", ".join(name for cell in cells for name in listed(cell) if name in uneven)
        for cells in claims[["first", "second", "shift"]].to_numpy()
    ]
    words = pd.Series(named, claims.index).where(about, "")
    words = words.mask(words != "", "uneven sliders: " + words)
    return claims.assign(caution=[" and ".join(filter(None, pair)) for pair in zip(claims["caution"], words, strict=True)])


def read(path: Path) -> pd.DataFrame:
    """The list of claims."""
    return pd.read_csv(path, keep_default_na=False, na_values={"published": [""], "scale": [""]})


def cast(claims: pd.DataFrame, played: dict[str, str]) -> pd.DataFrame:
    """The list of claims with the classifiers that play its roles."""
    cells = {side: claims[side].str.split("; ") for side in ("first", "second")}
    return claims.assign(**{side: ["; ".join(played.get(name, name) for name in cell) for cell in rows] for side, rows in cells.items()})
