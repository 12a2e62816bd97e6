"""The data sets of Control+Shift as they are stored: which file holds which set, and what each step of a shift is set to."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib import clustered, controlshift, intensity, latents, tables
from cnslib.config import Bootstrap, demand
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


def strength(settings: Controlshift, size: int) -> pd.DataFrame:
    """What each step of each shift is set to (R, or degrees), and its intensity of Definition 1 in closed form and by Monte Carlo.

    Columns shift, scale, set_to, exact, n, estimate, low, high; `size` is that of the latent space.
    """
    aims = latents.targets(size, seed=settings.seed)
    rows = []
    for kind in latents.KINDS:
        trained = controlshift.value(kind, 0, settings)
        for step, shown in enumerate(settings.factors if kind == "truncation" else settings.angles):
            own = (kind, controlshift.value(kind, step, settings), trained, aims)
            drawn = intensity.simulated(*own, draws=settings.draws, seed=settings.seed, confidence=settings.bootstrap.confidence)
            rows.append({"shift": kind, "scale": float(step), "set_to": shown, "exact": intensity.exact(*own), **drawn})
    return pd.DataFrame(rows)


def along(images: pd.DataFrame, kind: str) -> tuple[pd.DataFrame, UInt8[np.ndarray, "trajectories steps side side 3"]]:
    """The class and seed of every trajectory of a shift, and its pictures from step 0 on."""
    chosen = images[images["shift"] == kind].sort_values(["class", "seed", "scale"])
    pictures = tables.pictures(chosen, "test set")
    keys = chosen[["class", "seed"]].drop_duplicates().reset_index(drop=True)
    return keys, pictures.reshape(len(keys), -1, *pictures.shape[1:])


def strips(images: pd.DataFrame, kind: str, seed: int) -> UInt8[np.ndarray, "classes steps side side 3"]:
    """The pictures of one shift with one seed: a row per class in the order of their names, a column per step."""
    return along(images[images["seed"] == seed], kind)[1]


def change(images: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean absolute difference from the picture at step 0 in grey levels (shift, scale, n, estimate, low, high), n trajectories."""
    rows = []
    for kind in images["shift"].unique():
        keys, pictures = along(images, kind)
        away = np.abs(pictures.astype(int) - pictures[:, :1]).mean((2, 3, 4))
        means = clustered.resampling_weights(len(keys), settings=settings) @ away / len(keys)
        columns = clustered.estimates(means, len(keys), settings.confidence)
        rows.append(pd.DataFrame({"shift": kind, "scale": np.arange(away.shape[1], dtype=float), **columns}))
    return pd.concat(rows, ignore_index=True)


def against(ours: dict[str, float], published: pd.Series) -> pd.DataFrame:
    """Some of our numbers beside those of the paper's text (`id`, `value`): difference and verdict.

    "less than 1" is met up to the rounding of 64 bits: in many dimensions an intensity is closer to 1 than they can tell.
    """
    table = pd.DataFrame({"ours": ours, "published": published.loc[list(ours)]})
    number = pd.to_numeric(table["published"], errors="coerce")
    within = number.isna() & (table["ours"] <= 1)
    table["difference"] = table["ours"] - number
    return table.assign(verdict=np.select([within, np.isclose(table["difference"], 0)], ["agrees up to rounding", "agrees"], "differs"))
