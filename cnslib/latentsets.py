"""The data sets of Control+Shift as they are stored: which file holds which set, and what each step of a shift is set to."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib import controlshift, intensity, latents, tables
from cnslib.config import demand
from cnslib.studies import Controlshift


def load(folder: Path, *names: str) -> pd.DataFrame:
    """The images of some files of the data sets, in their order. ValueError for no file; errors as those of `tables.read`."""
    demand(len(names) > 0, "controlshift: data set", list(names), "one or more files")
    return pd.concat([tables.read(folder / f"{name}.parquet", tables.images) for name in names], ignore_index=True)


def tested(settings: Controlshift, kind: str) -> list[str]:
    """The files of a shift's test set, step by step; overlap begins with extend's."""
    return [f"test_{'extend' if kind == 'overlap' and step == 0 else kind}_{step}" for step in range(len(settings.angles))]


def test_set(folder: Path, settings: Controlshift, kinds: tuple[str, ...] = latents.KINDS) -> pd.DataFrame:
    """The test images of some shifts at every step."""
    return pd.concat([load(folder, *tested(settings, kind)).assign(shift=kind) for kind in kinds], ignore_index=True)


def steps(settings: Controlshift, size: int) -> pd.DataFrame:
    """What each step of each shift is set to (R, or degrees), and its intensity of Definition 1 in closed form and by Monte Carlo.

    Columns shift, scale, set_to, exact, n, estimate, low, high; `size` is that of the latent space.
    """
    aims = latents.targets(size, seed=settings.seed)
    rows = []
    for kind in latents.KINDS:
        trained = controlshift.value(kind, 0, settings)
        for step, shown in enumerate(settings.factors if kind == "truncation" else settings.angles):
            own = (kind, controlshift.value(kind, step, settings), trained, aims)
            drawn = intensity.simulated(*own, draws=settings.draws, seed=settings.seed, confidence=settings.confidence)
            rows.append({"shift": kind, "scale": float(step), "set_to": shown, "exact": intensity.exact(*own), **drawn})
    return pd.DataFrame(rows)


def strips(images: pd.DataFrame, kind: str, seed: int) -> UInt8[np.ndarray, "classes steps side side 3"]:
    """The pictures of one shift with one seed: a row per class, a column per step."""
    chosen = images[(images["shift"] == kind) & (images["seed"] == seed)].sort_values(["class", "scale"])
    pictures = tables.pictures(chosen, "test set")
    return pictures.reshape(chosen["class"].nunique(), -1, *pictures.shape[1:])
