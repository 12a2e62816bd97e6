"""The diffusion classifier beside the discriminative ones on the same images: which images, its answers, and the differences."""

from pathlib import Path

import numpy as np
import pandas as pd

from cnslib import denoiser, pruning, tables, units, workers
from cnslib.analyses import Denoiser
from cnslib.config import UNSHIFTED, identifier
from cnslib.denoiser import Judge


def choose(kept: pd.DataFrame, classes: list[str], *, settings: Denoiser) -> pd.DataFrame:
    """The first `seeds` kept trajectories of each shift and class, in the order of their seeds: no answer has a say.

    Raises ValueError where none is left.
    """
    asked = kept[kept["shift"].isin(settings.shifts) & kept["class"].isin(classes)]
    chosen = asked.sort_values(tables.TRAJECTORY).groupby(["shift", "class"]).head(settings.seeds)
    if chosen.empty:
        raise ValueError(f"denoiser.shifts: none of {len(kept)} kept trajectories is of {settings.shifts}")
    return chosen[tables.TRAJECTORY].reset_index(drop=True)


def keys(chosen: pd.DataFrame, *, settings: Denoiser) -> pd.DataFrame:
    """The images of some trajectories: every scale above 0, and the unshifted image of each class and seed once."""
    above = chosen.merge(pd.DataFrame({"scale": [scale for scale in settings.scales if scale > 0]}), how="cross")
    plain = chosen[["class", "seed"]].drop_duplicates().assign(shift=UNSHIFTED, scale=0.0)
    return pd.concat([plain, above])[tables.KEY].sort_values(tables.KEY, ignore_index=True)


def pictures(folder: Path, wanted: pd.DataFrame) -> pd.DataFrame:
    """The images of some keys; ValueError counts and shows those that the tables of `folder` lack."""
    shards = [tables.read(folder / f"{identifier(shift)}.parquet", tables.images) for shift in wanted["shift"].unique()]
    return tables.select(pd.concat(shards, ignore_index=True), wanted, tables.KEY, "images of the chosen trajectories")


def judge_all(judge: Judge, plan: dict[Path, pd.DataFrame], *, folder: Path, settings: Denoiser) -> pd.DataFrame:
    """Makes the units that are missing or outdated, deletes those of other trajectories, and reads all errors."""
    units.prune(folder, {path.relative_to(folder).as_posix() for path in plan}, "*/*.parquet")
    units.prune(folder, set(), "*/.*.partial")  # what a killed run left half written
    waiting = [(judge, part, path, settings) for path, part in plan.items() if not denoiser.done(judge, part, path, settings)]
    workers.each(denoiser.unit, waiting, device=judge.parts.vae.device, desc="trajectories")
    return pd.concat([tables.read(path, denoiser.errors_schema) for path in plan], ignore_index=True)


def answers(errors: pd.DataFrame, classes: list[str], loss: str, *, size: int, settings: Denoiser) -> pd.DataFrame:
    """The predictions table of one loss, model "denoiser_<loss>".

    A logit is minus the error that a class has more than the answer, summed over the `size` values of a latent (Li et al., Eq. 6).
    So the margin is above 0 where the answer is right; the probability is the softmax of the logits and is not calibrated.
    """
    parts = [
        answer(own, classes, loss, size=size, settings=settings).assign(**dict(zip(tables.KEY, key, strict=True)))
        for key, own in errors.groupby(tables.KEY)
    ]
    named = pd.concat(parts, ignore_index=True).assign(model=f"denoiser_{loss}", preprocessing="latent mean")
    return tables.check(named, tables.predictions, f"answers by {loss}")


def answer(errors: pd.DataFrame, classes: list[str], loss: str, *, size: int, settings: Denoiser) -> pd.DataFrame:
    """Top-1, top-5, probability and margin of one image; `errors` are its rows of the table of errors."""
    grid = errors.pivot(index="timestep", columns="candidate", values=loss)[classes].to_numpy()
    logits = pruning.logits(grid, settings, size=size)
    order = np.argsort(-logits, kind="stable")
    true = classes.index(errors["class"].iloc[0])
    margin = logits[true] - np.delete(logits, true).max(initial=-np.inf)
    probability = np.exp(logits[true]) / np.exp(logits).sum()
    top5 = [classes[place] for place in order[:5]]
    return pd.DataFrame({"top1": top5[:1], "top5": [top5], "probability": probability, "margin": margin})
