"""1-NN distance of shifted images from the training set (Control+Shift Eq. 3), and how accuracy falls with it (sections 3.1, 4.2, 4.3).

Distances are taken in pixels and in features. Shifts of latents stand in the shared tables: `shift` is the kind (truncation, extend,
overlap), `seed` the number of the image in its class and `scale` the intensity, whose smallest value is the training distribution.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Float
from matplotlib.axes import Axes
from sklearn.neighbors import NearestNeighbors

from cnslib.core import recipes, tables, units
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Controlshift
from cnslib.models.encoders import ImageEncoder
from cnslib.stats import accuracy, bootstrap
from cnslib.stats.accuracy import Outcomes
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.training import ON_SPHERE, SETS, flat


def nearest(training: Float[np.ndarray, "n d"], shifted: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m"]:
    """Euclidean distance of every shifted point from its nearest training point; their mean is the 1-NN distance (Eq. 3).

    Raises ValueError for an empty set and for points of different size.
    """
    for name, points in (("training", training), ("shifted", shifted)):
        if not len(points):
            raise ValueError(f"1-NN distance: the {name} set is empty; accepted: at least one point")
    if training.shape[1] != shifted.shape[1]:
        raise ValueError(f"1-NN distance: points of {training.shape[1]} and of {shifted.shape[1]} numbers; accepted: the same size")
    return NearestNeighbors(n_neighbors=1, algorithm="brute").fit(training).kneighbors(shifted)[0][:, 0]


def arranged(found: Outcomes, distances: pd.DataFrame) -> Float[np.ndarray, "trajectories 1 scales"]:
    """Distances (shift, class, seed, scale, distance) in the order of some outcomes. ValueError if a trajectory has none."""
    wide = distances.pivot(index=tables.TRAJECTORY, columns="scale", values="distance")
    wanted = pd.MultiIndex.from_frame(found.trajectories[tables.TRAJECTORY])
    rows = wide.reindex(index=wanted, columns=found.scales)
    if rows.isna().any(axis=None):
        missing = rows.index[rows.isna().any(axis=1)]
        first = " ".join(map(str, missing[0]))
        raise ValueError(f"distances: {len(missing)} trajectories lack a distance, first {first}")
    return rows.to_numpy()[:, None, :]


def slopes(found: Outcomes, distances: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Robustness slope of every model under every kind: change of accuracy per unit of 1-NN distance, 0 if fully robust (section 4.2).

    Returns (shift, model, n, estimate, low, high); accuracies and distances are resampled together.
    """
    change, away, errors = along(found, distances, settings=settings)
    return accuracy.tabulate(slope(away, change)[..., None], errors, [0]).drop(columns="scale")


def along(found: Outcomes, distances: pd.DataFrame, *, settings: Bootstrap) -> tuple[np.ndarray, np.ndarray, accuracy.Shares]:
    """Change of accuracy [resamples+1, kinds, models, scales] and mean 1-NN distance [resamples+1, kinds, 1, scales]."""
    errors = accuracy.error_shares(found, settings=settings)
    away = accuracy.resample(found, arranged(found, distances), found.scales, settings=settings)
    return errors.samples[..., :1] - errors.samples, away.samples, errors


def slope(x: Float[np.ndarray, "*rows points"], y: Float[np.ndarray, "*rows points"]) -> Float[np.ndarray, "*rows"]:
    """Slope of the least-squares line with an intercept."""
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    return (x * y).sum(-1) / (x * x).sum(-1)


def linearity(found: Outcomes, distances: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Share of the variance of the change of accuracy that a line in the 1-NN distance explains, all models of a kind (Fig. 6).

    Each model has a line of its own. Returns (shift, n, estimate, low, high).
    """
    change, away, errors = along(found, distances, settings=settings)
    steep = slope(away, change)[..., None]
    rest = change - change.mean(-1, keepdims=True) - steep * (away - away.mean(-1, keepdims=True))
    spread = ((change - change.mean(-1, keepdims=True)) ** 2).sum((-2, -1))
    explained = 1 - np.divide((rest**2).sum((-2, -1)), spread, out=np.full(spread.shape, np.nan), where=spread > 0)
    return accuracy.tabulate(explained[..., None, None], errors, [0], models=["all models"], within=bootstrap.SHARE).drop(
        columns=["model", "scale"]
    )


def thin_lines(panels: Iterable[Axes], table: pd.DataFrame, *, label: str) -> None:
    """Adds a thin grey line per classifier (shift, model, distance, estimate) to the panel whose title is its shift."""
    for axes in panels:
        title = axes.get_title(loc="left") or axes.get_title()
        wide = table[table["shift"] == title].pivot(index="distance", columns="model", values="estimate")
        axes.plot(wide.index, wide, color="0.6", linewidth=0.5, zorder=0)
        axes.set_xlabel(label)


SPACES = ("pixel", "feature")
schema = tables.schema(tables.KEY, {**tables.IDENTITY, **{space: pa.Column(float, pa.Check.ge(0)) for space in SPACES}})


def distances(sets: Path, settings: Controlshift, encoder: ImageEncoder, path: Path) -> pd.DataFrame:
    """Distance of every test image from its nearest training image; made where the file is missing or outdated.

    Training images are those of the standard sets, of all classes. Pixel values lie in [0, 1]; features have length 1.
    """
    files = [units.verified(sets / name) for name in sorted(f"{piece.name}.parquet" for piece in datasets.plan(settings))]
    unit = units.Unit(path, recipes.NEIGHBOURS.stamp(files, encoder.digest))
    if not unit.done:
        groups = {"truncation": ("truncation",), "half sphere": ON_SPHERE}
        parts = [from_training(sets, settings, encoder, training, kinds) for training, kinds in groups.items()]
        tables.write_unit(pd.concat(parts, ignore_index=True), unit, schema)
    return tables.read(path, schema)


def from_training(sets: Path, settings: Controlshift, encoder: ImageEncoder, training: str, kinds: tuple[str, ...]) -> pd.DataFrame:
    """Distances of the test images of some shifts from one training set."""
    table = datasets.evaluation_set(sets, settings, kinds)
    known, asked = (tables.pictures(one, "images") for one in (datasets.load(sets, *SETS[training]), table))
    spaces = {"pixel": flat, "feature": lambda pictures: encoder.features(pictures).double().numpy()}
    return table[tables.KEY].assign(**{space: nearest(seen(known), seen(asked)) for space, seen in spaces.items()})


def means(away: pd.DataFrame) -> pd.DataFrame:
    """The 1-NN distance of every step (shift, scale, n and one column per space)."""
    groups = away.groupby(["shift", "scale"])
    return groups[list(SPACES)].mean().assign(n=groups.size()).reset_index()
