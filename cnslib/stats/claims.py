"""The claims of CNS-Bench section 5.3: what each kind in published/claims.csv is measured by, and a verdict on every claim.

One small function per kind of claim returns values oriented so that the paper's direction is positive, for the sample and every
resample; their axes read "in some group, for all members, in any place" (see `bands`). A claim about one number has one value.

A verdict rests on simultaneous intervals within a claim and on Holm's correction within a family of claims.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core.names import demand
from cnslib.core.settings.analyses import Axes
from cnslib.stats import axes, bootstrap, failure, verdicts
from cnslib.stats.accuracy import Shares
from cnslib.stats.axes import columns, deviation_between, drops
from cnslib.stats.bands import Values, band, combine, placed
from cnslib.stats.verdicts import AGREES, SAME, UNDECIDED, UNMEASURED

NUMBERS = ["quantity", "published", "n", "estimate", "low", "high", "verdict", "smallest"]
SHOWN = {"source": "where", "rule": "holds if"} | {name: name for name in NUMBERS}
SHOWN |= {"drop_verdict": "by drop", "caution": "caution", "details": "more in"}


@dataclass(frozen=True)
class Evidence:
    """What claims are judged on: errors and first failures on the shifted images, errors on held-out ones, numbers of parameters.

    Raises ValueError where the classifiers of the held-out images are not those of the shifted ones, or lack a parameter count.
    """

    errors: Shares
    failures: Shares
    heldout: Shares
    parameters: dict[str, int]
    settings: Axes

    def __post_init__(self):
        accepted = f"the classifiers of the predictions: {', '.join(self.errors.models)}"
        demand(self.heldout.models == self.errors.models, "held-out predictions", self.heldout.models, accepted)
        demand(set(self.parameters) >= set(self.errors.models), "parameter counts", sorted(self.parameters), accepted)


def listed(text: str) -> list[str]:
    """The names in a cell of the list of claims, separated by semicolons."""
    return text.split("; ") if text else []


def shifts(found: Evidence, claim) -> list[int]:
    """The shifts of a claim that were evaluated; all of them where it names none."""
    known = found.errors.groups[:-1]
    return [known.index(name) for name in (listed(claim.shift) or known) if name in known]


def measurable(found: Evidence, claim) -> bool:
    """Whether a claim has a kind and its classifiers, at least one shift of every list, and its scale were evaluated."""
    errors, members = found.errors, found.settings.members
    compared = [name for axis in listed(claim.axis) for name in members[axis]]
    sides = [listed(claim.first), listed(claim.second)]
    if claim.kind == "gradual":
        return all(set(side) & set(errors.groups) for side in sides)
    there = {*compared, *sides[0], *sides[1]} <= set(errors.models)
    return claim.kind != "none" and there and bool(shifts(found, claim)) and (np.isnan(claim.scale) or claim.scale in errors.bins)


def count(found: Evidence, claim) -> int:
    """How many trajectories (held-out images, for accuracy without shift) a claim rests on."""
    if claim.measure == "held-out error":
        return int(found.heldout.n[-1])
    if claim.measure == "rCE":
        table = axes.guarded(found.errors, reference=found.settings.reference)
        return int(table.loc[table["defined"], "n"].sum())
    names = [*listed(claim.first), *listed(claim.second)] if claim.kind == "gradual" else []
    used = [found.errors.groups.index(name) for name in names if name in found.errors.groups] or shifts(found, claim)
    return int(found.errors.n[used].sum())


def pooled(found: Evidence, claim) -> Float[np.ndarray, "resamples+1 models scales"]:
    """Accuracy drops over all shifts, every image with the same weight; the mean over the claim's shifts where it names some."""
    used = shifts(found, claim) if claim.shift else [-1]
    return drops(found.errors)[:, used].mean(1)


def loss(found: Evidence, claim) -> Float[np.ndarray, "resamples+1 models"]:
    """The claim's measure: rCE, the error on held-out images, or the accuracy drop, averaged over the scales or at the claim's."""
    if claim.measure == "rCE":
        return axes.relative_errors(found.errors, reference=found.settings.reference)
    if claim.measure == "held-out error":
        return found.heldout.samples[:, -1, :, 0]
    lost = pooled(found, claim)
    return lost.mean(-1) if np.isnan(claim.scale) else lost[..., found.errors.bins.index(claim.scale)]


def sides(found: Evidence, claim, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [resamples+1, models, ...] of the first and of the second classifiers of a claim."""
    return values[:, columns(found.errors, listed(claim.first))], values[:, columns(found.errors, listed(claim.second))]


def one(value: Float[np.ndarray, "resamples+1"]) -> Values:
    """A claim about a single number."""
    return value[:, None, None, None]


def less(found: Evidence, claim) -> Values:
    """The second classifiers' mean loss minus the first ones'."""
    first, second = sides(found, claim, loss(found, claim))
    return one(second.mean(1) - first.mean(1))


def least(found: Evidence, claim) -> Values:
    """Loss of each second classifier minus the first one's, which must lose less than all of them."""
    first, second = sides(found, claim, loss(found, claim))
    return (second - first)[:, None, :, None]


def most(found: Evidence, claim) -> Values:
    """The same the other way round: the first classifier must lose more than each second one."""
    return -least(found, claim)


def alike(found: Evidence, claim) -> Values:
    """Differences of the first classifier to each second one, in both directions."""
    difference = least(found, claim)[:, 0]
    return np.concatenate([difference, -difference], 1)[:, :, None]


def trend(found: Evidence, claim) -> Values:
    """Fall of the loss with each doubling of the parameters along an axis, by least squares."""
    names = found.settings.members[claim.axis]
    doublings = np.log2([found.parameters[name] for name in names])
    centred = doublings - doublings.mean()
    return one(-loss(found, claim)[:, columns(found.errors, names)] @ centred / (centred**2).sum())


def explained(found: Evidence, claim) -> Values:
    """How much of a doubling's effect on the accuracy under shift disappears once held-out accuracy is in the regression (section F).

    Ordinary least squares over the classifiers of the size axes, each family with its own intercept.
    """
    families = [found.settings.members[axis] for axis in listed(claim.axis)]
    names = [name for family in families for name in family]
    place = columns(found.errors, names)
    shifted, plain = 1 - found.errors.samples[:, -1, place, 1:].mean(-1), 1 - found.heldout.samples[:, -1, place, 0]
    intercepts = np.array([[name in family for family in families] for name in names], float)
    simple = np.column_stack([np.log2([found.parameters[name] for name in names]), intercepts])
    full = np.concatenate([np.broadcast_to(simple, (len(plain), *simple.shape)), plain[..., None]], -1)
    alone = np.linalg.pinv(simple)[0] @ shifted.T
    return one(alone - (np.linalg.pinv(full)[:, 0] * shifted).sum(-1))


def growth(values: Float[np.ndarray, "*rows scales"], found: Evidence) -> Float[np.ndarray, "*rows"]:
    """How much values grow from the first to the last shifted scale, along the line of least squares through all of them."""
    scales = np.array(found.errors.bins[1:])
    centred = scales - scales.mean()
    return values[..., 1:] @ centred / (centred**2).sum() * (scales[-1] - scales[0])


def gap(found: Evidence, claim, lost: Float[np.ndarray, "resamples+1 models *rest"]) -> Float[np.ndarray, "resamples+1 *rest"]:
    """Drop of the second minus that of the first classifiers."""
    first, second = sides(found, claim, lost)
    return second.mean(1) - first.mean(1)


def every_scale(found: Evidence, claim) -> Values:
    """Gap at each shifted scale, all shifts; it must be positive at all of them."""
    return gap(found, claim, pooled(found, claim))[:, None, 1:, None]


def widens(found: Evidence, claim) -> Values:
    """How much the gap grows with the scale."""
    return one(growth(gap(found, claim, pooled(found, claim)), found))


def widens_somewhere(found: Evidence, claim) -> Values:
    """How much the gap grows with the scale under each shift; one of them is enough."""
    each = drops(found.errors)[:, shifts(found, claim)].swapaxes(1, 2)
    return growth(gap(found, claim, each), found)[:, :, None, None]


def gaps_grow(found: Evidence, claim) -> Values:
    """How much the deviation between the classifiers of an axis, without what chance adds, grows with the scale under a shift."""
    lost = pooled(found, claim)[:, columns(found.errors, found.settings.members[claim.axis])]
    between = [deviation_between(lost[..., place]) for place in range(lost.shape[-1])]
    return one(growth(np.stack(between, -1), found))


def differences(values: Float[np.ndarray, "resamples+1 items *rest"]) -> Float[np.ndarray, "resamples+1 pairs *rest"]:
    """The second minus the first of every pair of items."""
    first, second = np.triu_indices(values.shape[1], 1)
    return values[:, second] - values[:, first]


def leads(found: Evidence, claim, used: list[int]) -> Float[np.ndarray, "resamples+1 pairs groups scales"]:
    """By how much the first classifier of every pair of an axis loses less than the second, per group and scale."""
    lost = drops(found.errors)[:, used][:, :, columns(found.errors, found.settings.members[claim.axis])]
    return differences(lost.swapaxes(1, 2))


def everywhere(found: Evidence, claim) -> list[int]:
    """The claim's shifts, or every shift and all of them together where it names none."""
    return shifts(found, claim) if claim.shift else list(range(len(found.errors.groups)))


def turning(lead: Float[np.ndarray, "resamples+1 pairs places"], back: Float[np.ndarray, "resamples+1 pairs places"]) -> Values:
    """A pair changes its order if the first leads in some place and the second in another: both must be there."""
    return np.stack([lead, -back], 2)


def order_over_scales(found: Evidence, claim) -> Values:
    """Leads that turn round from one scale to another, within a shift or over all of them."""
    lead = leads(found, claim, everywhere(found, claim))[..., 1:]
    lead = lead.reshape(len(lead), -1, lead.shape[-1])
    return turning(lead, lead)


def order_over_shifts(found: Evidence, claim) -> Values:
    """Leads in average drop that turn round from one shift to another."""
    lead = leads(found, claim, shifts(found, claim)).mean(-1)
    return turning(lead, lead)


def order_by_average(found: Evidence, claim) -> Values:
    """Leads in average drop that are deficits at a scale, within a shift or over all of them."""
    lead = leads(found, claim, everywhere(found, claim))
    lead = lead.reshape(len(lead), -1, lead.shape[-1])
    average = np.broadcast_to(lead.mean(-1, keepdims=True), lead[..., 1:].shape)
    return np.concatenate([turning(average, lead[..., 1:]), turning(-average, -lead[..., 1:])], 1)


def mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is known along an axis; NaN where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0).sum(axis) / known.sum(axis)


def gradual(found: Evidence, claim) -> Values:
    """Spread of the failure points above scale 0 under the first shifts minus that under the second, mean over the classifiers."""
    spread, groups = failure.deviations(found.failures), found.failures.groups
    first, second = (mean(spread[:, [groups.index(s) for s in listed(side) if s in groups]], 1) for side in (claim.first, claim.second))
    return one(mean(first - second, 1))


def first_failures(found: Evidence, claim) -> Float[np.ndarray, "resamples+1 models scales"]:
    """Share of trajectories that fail first at each scale, mean over the claim's shifts."""
    return found.failures.samples[:, shifts(found, claim), :, :-1].mean(1)


def peak(found: Evidence, claim) -> Values:
    """Share failing first at the claim's scale minus that at each other shifted scale, mean over the classifiers."""
    share, place = first_failures(found, claim).mean(1), found.errors.bins.index(claim.scale)
    return (share[:, [place]] - np.delete(share, [0, place], 1))[:, None, :, None]


def rising(found: Evidence, claim) -> Values:
    """How much the share failing first grows with the scale, mean over the classifiers."""
    return one(growth(first_failures(found, claim).mean(1), found))


def jump(found: Evidence, claim) -> Values:
    """Rise of the share failing first from the scale before to the claim's, first minus second classifier."""
    share, place = first_failures(found, claim), found.errors.bins.index(claim.scale)
    return one(-gap(found, claim, share[..., place] - share[..., place - 1]))


def both_ways(difference: Float[np.ndarray, "resamples+1 *rest"]) -> Values:
    """Differences of either sign."""
    flat = difference.reshape(len(difference), -1)
    return np.concatenate([flat, -flat], 1)[:, :, None, None]


def differ_over_shifts(found: Evidence, claim) -> Values:
    """Difference between two shifts in the share failed so far, at each scale, mean over the classifiers."""
    failed = found.failures.samples[:, shifts(found, claim), :, :-1].cumsum(-1)
    return both_ways(differences(failed.mean(2)))


def differ_over_models(found: Evidence, claim) -> Values:
    """Difference between two classifiers of an axis in the share failed so far, at each scale."""
    failed = first_failures(found, claim).cumsum(-1)
    return both_ways(differences(failed[:, columns(found.errors, found.settings.members[claim.axis])]))


RULES = {"above 0": SAME, "exists": AGREES, "below margin": AGREES}  # and what a claim is called that passes
LEVELS = (less, least, most, alike, trend, explained)
GAPS = (every_scale, widens, widens_somewhere, gaps_grow)
ORDERS = (order_over_scales, order_over_shifts, order_by_average)
FAILURES = (gradual, peak, rising, jump, differ_over_shifts, differ_over_models)
KINDS = {kind.__name__: kind for kind in (*LEVELS, *GAPS, *ORDERS, *FAILURES)}


def judged(values: Values, *, rule: str, margin: float, confidence: float) -> dict:
    """Estimate, interval, p value and the direction in which it points, for or against the claim.

    "above 0": the number is positive; the opposite is that it is negative. "exists": a positive value is among them; the opposite is
    that none reaches the margin. "below margin": none reaches the margin; the opposite is that one is above it.
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


def measured(listed: pd.DataFrame, found: Evidence) -> pd.DataFrame:
    """n, estimate, low, high, p and direction of every claim.

    The claim is not measured where its classifiers, shifts (two, to compare them) or scale are not there, or where rCE is
    defined under no shift.
    """
    settings, rows = found.settings, []
    for claim in listed.itertuples():
        values = KINDS[claim.kind](found, claim) if measurable(found, claim) else np.full((1, 1, 1, 1), np.nan)
        if not values[0].size or np.isnan(values[0]).any() or (len(values) > 1 and np.isnan(values[1:]).all()):
            rows.append({"n": 0, **dict.fromkeys(("estimate", "low", "high", "p"), np.nan), "direction": UNMEASURED})
        else:
            result = judged(values, rule=claim.rule, margin=settings.margin, confidence=settings.bootstrap.confidence)
            rows.append({"n": count(found, claim), **result})
    return pd.DataFrame(rows, index=listed.index)


def decided(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Adds p_holm, corrected over the measured claims of each family, and the verdict: the direction if that p is small enough.

    What is undecided has the smallest effect that could have been seen by itself, the half of its interval; Holm's correction asks more.
    """
    p = table.groupby("family")["p"].transform(bootstrap.holm)
    sure = (p < 1 - confidence) | (table["direction"] == UNMEASURED)
    half = np.maximum(table["high"] - table["estimate"], table["estimate"] - table["low"])
    judged = {"verdict": table["direction"].where(sure, UNDECIDED), "smallest": half.mask(sure)}
    return table.assign(p_holm=p, **judged).drop(columns="direction")


def judge(listed: pd.DataFrame, found: Evidence) -> pd.DataFrame:
    """One line per claim with n, estimate, low, high, p, p_holm, verdict and the smallest effect that could have been seen.

    For claims about rCE the columns that begin with `drop_` say what the average accuracy drop shows, which divides by nothing.
    """
    table, relative = listed.join(measured(listed, found)), listed["measure"] == "rCE"
    other = measured(listed[relative].assign(measure="drop"), found)
    by_drop = table.copy()
    by_drop[other.columns] = other.reindex(table.index).where(relative, table[other.columns], axis=0)
    own, by_drop = (decided(part, confidence=found.settings.bootstrap.confidence) for part in (table, by_drop))
    beside = by_drop.loc[relative, ["n", "estimate", "low", "high", "verdict"]]
    return own.join(beside.add_prefix("drop_")).fillna({"drop_verdict": ""})


def readable(judged: pd.DataFrame) -> pd.DataFrame:
    """Claims and verdicts for a reader: one row per claim, rounded, with an empty cell where there is nothing to say."""
    return judged.set_index("claim")[list(SHOWN)].rename(columns=SHOWN).round(3).fillna("")


def saved(judged: pd.DataFrame) -> pd.DataFrame:
    """Claims and verdicts for a file: the same columns by their own names, and what the average drop says of each."""
    return judged[["id", "family", "claim", *SHOWN, *sorted(judged.filter(like="drop_").columns.difference(list(SHOWN)))]]


def read(path: Path) -> pd.DataFrame:
    """The list of claims. ValueError names a kind or rule that is not known."""
    table = pd.read_csv(path, keep_default_na=False, na_values={"published": [""], "scale": [""]})
    for claim in table.itertuples():
        demand(claim.kind in ("none", *KINDS), f"{path.name}: kind of {claim.id}", claim.kind, ", ".join(("none", *KINDS)))
        demand(claim.kind == "none" or claim.rule in RULES, f"{path.name}: rule of {claim.id}", claim.rule, ", ".join(RULES))
    return table
