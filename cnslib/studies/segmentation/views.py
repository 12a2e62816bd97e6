"""What notebook 41 shows: contact sheets of segmentations and saliency maps, and the shares of attribution put together."""

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from cnslib.core import tables
from cnslib.core.settings.studies import Segmentation
from cnslib.models.classifiers import Classifier
from cnslib.plots import sheets
from cnslib.plots.curves import estimate_dots
from cnslib.plots.scatter import place_names
from cnslib.stats import accuracy, bootstrap
from cnslib.stats.accuracy import Shares
from cnslib.studies import photos
from cnslib.studies.scenarios.subjects import Subject
from cnslib.studies.segmentation import inputs, masks, saliency
from cnslib.studies.segmentation.inputs import ENDS

ORIGINAL = "original"
Sheet = UInt8[np.ndarray, "rows columns height width 3"]


def columns(own: Subject) -> list[str]:
    """What stands above the states of a subject."""
    return [ORIGINAL, *inputs.names(own)]


def palette() -> UInt8[np.ndarray, "labels 3"]:
    """A colour per label: pale grey for the background, ten that are told apart for the garments."""
    colours = np.array([(0.92, 0.92, 0.92), *sns.color_palette("tab10", len(masks.LABELS) - 1)])
    return np.round(colours * 255).astype(np.uint8)


def key(axes: Axes, classes: list[str]) -> None:
    """A legend below the axes: the colour of every class that the networks know."""
    colours = dict(zip(masks.LABELS, palette() / 255, strict=True))
    patches = [Rectangle((0, 0), 1, 1, color=colours[name], label=name) for name in classes]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(patches), fontsize="x-small", handlelength=1)


def segmentations(own: Subject, files: list[dict[str, Path]], *, seed: int) -> tuple[Sheet, list[str]]:
    """Pictures, the exact mask and some trainings' maps of one garment in its original and at the end of each scenario (Fig. 7)."""
    colours = palette()
    truth = np.broadcast_to(colours[masks.truth(own.mask, own.label)], (len(columns(own)), *own.image.shape))
    drawn = [colours[predicted(tables.read(file["maps"], tables.images), own)] for file in files]
    return np.stack([inputs.pictures(own, ENDS, seed=seed), truth, *drawn]), columns(own)


def predicted(maps: pd.DataFrame, own: Subject) -> UInt8[np.ndarray, "states height width"]:
    """The kept maps of one garment, in the order of its states."""
    wanted = pd.DataFrame(inputs.keys(own, ENDS))
    rows = wanted.merge(maps, on=tables.KEY, how="left", validate="one_to_one")
    return np.stack([tables.decode(data, f"map {own.label} {own.seed}")[..., 0] for data in rows["image"]])


def attributions(own: Subject, asked: dict[str, Classifier], method: str, *, seed: int) -> tuple[Sheet, list[str]]:
    """Pictures and each classifier's map of one subject in its original and at the end of each scenario (Fig. 4)."""
    drawn = [saliency.sheet(classifier, own, method, states=inputs.states(own, ENDS), seed=seed) for classifier in asked.values()]
    return np.stack([inputs.pictures(own, ENDS, seed=seed), *drawn]), columns(own)


def photograph(own: Subject, asked: Classifier, *, seed: int) -> tuple[Sheet, list[str]]:
    """A photograph as a classifier is given it, its gradient and its Grad-CAM, at half their side."""
    mean, std = (torch.tensor(asked.settings[key])[:, None, None] for key in ("mean", "std"))
    given = [asked.transform(Image.fromarray(image)) * std + mean for image in inputs.pictures(own, ENDS, seed=seed)]
    pictures = torch.stack(given).clamp(0, 1).mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    methods = (saliency.GRADIENT, saliency.GRAD_CAM)
    drawn = [saliency.sheet(asked, own, method, states=inputs.states(own, ENDS), seed=seed) for method in methods]
    return np.stack([photos.shrunk(images) for images in (pictures, *drawn)]), columns(own)


def drawn_sheet(pictures: Sheet, rows: list[str], names: list[str], *, height: float) -> Figure:
    """A sheet as a figure with the names of its rows, and of its columns slanted above them; `height` in inches."""
    figure, axes = plt.subplots(figsize=(9.5, height))
    sheets.contact_sheet(axes, pictures, rows=rows, columns=names)
    plt.setp(axes.get_xticklabels(), rotation=30, ha="left")
    return figure


def single(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of single scenarios at their end."""
    return rows[(rows["severity"] == 1) & (rows["scenario"] != masks.ALL_SCENARIOS)]


def shares_side_by_side(plain: pd.DataFrame, overall: pd.DataFrame, *, reference: float) -> Figure:
    """Shares on the object, of every classifier without a scenario and, right of it, of all classifiers in each scenario."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 0.8 + 0.17 * len(plain)), sharex=True, layout="constrained")
    for axes, part, y in zip(panels, (plain, overall), ("model", "scenario"), strict=True):
        estimate_dots(axes, part, y=y, label="share of the attribution on the garment", reference=reference)
    return figure


def over_models(shares: Shares) -> pd.DataFrame:
    """The mean over classifiers, for the originals and at the end of each scenario (scenario, n, estimate, low, high)."""
    rows = masks.named(accuracy.tabulate(shares.samples.mean(2, keepdims=True), shares, shares.bins, models=["mean"]))
    plain = rows[rows["severity"] == 0].iloc[:1].assign(scenario=ORIGINAL)
    changed = rows[(rows["severity"] == 1) & rows["scenario"].isin(inputs.NAMES)]
    return pd.concat([plain, changed], ignore_index=True).drop(columns=["model", "severity"])


def changes(shares: Shares) -> pd.DataFrame:
    """The mean over classifiers at the end of each scenario minus that on the originals, paired (scenario, n, estimate, low, high)."""
    mean = shares.samples.mean(2)
    places = [shares.groups.index(name) for name in inputs.NAMES]
    numbers = bootstrap.estimates(mean[:, places, -1] - mean[:, places, 0], shares.n[0], shares.confidence)
    return pd.DataFrame({"scenario": list(inputs.NAMES), **numbers})


def on_photographs(rows: pd.DataFrame, *, settings: Segmentation) -> dict:
    """Shares of one method, averaged over classifiers, as `table`; the share of the area with its resamples as `area`."""
    found, resampling = accuracy.outcomes(rows), settings.bootstrap
    area = masks.means(found, rows, "area", settings=resampling)
    return {
        "table": over_models(masks.means(found, rows, "share", settings=resampling)),
        "area": area.samples[:, 0, :, 0].mean(1),
    }


def by_method(rows: pd.DataFrame, *, settings: Segmentation) -> dict[str, dict]:
    """The same for every method."""
    return {name: on_photographs(part, settings=settings) for name, part in rows.groupby("method")}


def long(parts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The tables of all methods as one with the column method."""
    return pd.concat(parts, names=["method"]).reset_index("method").reset_index(drop=True)


def cloud(axes: Axes, points: pd.DataFrame, *, reference: float) -> None:
    """Lost accuracy against the share on the foreground, a point per classifier with both intervals, named where there is room."""
    arms = {name: np.abs(points[[f"{name} low", f"{name} high"]].sub(points[name], axis=0)).T for name in ("share", "drop")}
    axes.errorbar(points["share"], points["drop"], arms["drop"], arms["share"], fmt="o", markersize=4, elinewidth=0.5, ecolor="0.75")
    axes.axvline(reference, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="share of the attribution on the garment", ylabel="accuracy lost to backgrounds")
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # names are placed in pixels
    dark = {model: {"color": "0.3"} for model in points["model"]}
    place_names(axes, points[["model", "share", "drop"]], points[["share", "drop"]].to_numpy(), dark)
