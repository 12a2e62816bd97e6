"""Kinds of claims about how classifiers differ along the scale and between shifts: orders, gaps and failure points (section 5.3).

Functions and the axes of their values as in cnslib.claims.
"""

import numpy as np
from jaxtyping import Float

from cnslib import failure
from cnslib.axes import columns, deviation_between, drops
from cnslib.claims import Evidence, Values, listed, one, pooled, shifts, sides


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
