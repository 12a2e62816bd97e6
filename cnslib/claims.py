"""What the claims of CNS-Bench section 5.3 are measured by: one small function per kind of claim in published/claims.csv.

A function returns values oriented so that the paper's direction is positive, for the sample and every resample; their axes read
"in some group, for all members, in any place" (see verdicts.combine). A claim about one number has one value. Claims about orders,
gaps and failure points are in cnslib.patterns.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cnslib import axes
from cnslib.analyses import Axes
from cnslib.axes import columns, drops
from cnslib.config import demand
from cnslib.stats import Shares

Values = Float[np.ndarray, "resamples+1 some all any"]


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
