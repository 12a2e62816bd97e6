"""Staged elimination of classes by a diffusion classifier (Li et al. 2023, adaptive evaluation; CNS-Bench section 5.3).

All classes start. Each stage compares those that are left on more timesteps, and the best of them go on; the last one is the answer.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from cnslib.analyses import Denoiser

LOSSES = ("l1", "l2")
Errors = Float[np.ndarray, "timesteps classes"]
Ask = Callable[[int, list[int]], Float[np.ndarray, "losses classes"]]


def timesteps(settings: Denoiser, length: int) -> list[int]:
    """The timesteps of the last stage, evenly spaced over a schedule of `length` steps: the middles of equal parts of it.

    Raises ValueError where the schedule has fewer steps than the last stage asks for.
    """
    count = settings.trials[-1]
    if count > length:
        raise ValueError(f"denoiser.trials: {count} is not accepted; accepted: at most the {length} timesteps of the noise schedule")
    return [int((place + 0.5) * length / count) for place in range(count)]


def stages(settings: Denoiser) -> list[tuple[int, list[int]]]:
    """How many classes each stage keeps, and all places in the list of timesteps that are known by its end.

    A stage asks for evenly spaced places, those of the earlier stages stay: a few more trials than its number where they differ.
    """
    count, known, found = settings.trials[-1], set(), []
    for keep, trials in zip(settings.keep, settings.trials, strict=True):
        known |= {int((number + 0.5) * count / trials) for number in range(trials)}
        found.append((keep, sorted(known)))
    return found


def best(errors: Errors, left: list[int], places: list[int], keep: int) -> list[int]:
    """The `keep` classes with the smallest mean error on some timesteps; of equal ones those that stand first in the list."""
    order = np.argsort(errors[np.ix_(places, left)].mean(0), kind="stable")
    return sorted(left[place] for place in order[:keep])


def eliminate(ask: Ask, classes: int, settings: Denoiser) -> Float[np.ndarray, "losses timesteps classes"]:
    """The errors of one image that its elimination needs; NaN where nobody had to ask.

    Every loss prunes for itself. What two of them need is evaluated once: `ask` gets a timestep's place and all classes to try there.
    """
    found = np.full((len(LOSSES), settings.trials[-1], classes), np.nan)
    left = [list(range(classes)) for _ in LOSSES]
    for keep, places in stages(settings):
        for place in places:
            missing = [name for name in sorted(set().union(*left)) if np.isnan(found[0, place, name])]
            if missing:
                found[:, place, missing] = ask(place, missing)
        left = [best(errors, own, places, keep) for errors, own in zip(found, left, strict=True)]
    return found


def logits(errors: Errors, settings: Denoiser, *, size: int) -> Float[np.ndarray, "classes"]:
    """How much worse each class explains the noise than the answer, summed over the `size` values of a latent; the answer has 0.

    A class is compared with the answer on the timesteps that were known when it was dropped, so each difference is paired: the
    same noise, the same input. It is never positive, since whoever drops out was behind the answer then.
    """
    left, seen = list(range(errors.shape[1])), dict[int, list[int]]()
    for keep, places in stages(settings):
        staying = best(errors, left, places, keep)
        seen |= dict.fromkeys(left, places)
        left = staying
    behind = errors[:, left] - errors  # of the answer, which is the only class left
    return np.array([size * behind[seen[name], name].mean() for name in range(errors.shape[1])])


def cost(settings: Denoiser, *, classes: int) -> dict[str, int]:
    """Network evaluations per image, before any is made: with every class at every timestep, and bounds for the stages.

    "least" is where both losses keep the same classes, "most" where they share none.
    """
    bounds = {"whole": classes * settings.trials[-1]}
    for name, factor in (("least", 1), ("most", len(LOSSES))):
        left, known, total = classes, 0, 0
        for keep, places in stages(settings):
            total += left * (len(places) - known)
            left, known = min(classes, factor * keep), len(places)
        bounds[name] = total
    return bounds
