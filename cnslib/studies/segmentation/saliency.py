"""Where classifiers look under the scenarios of XIMAGENET-12 (section 5.2, Fig. 4): the share of their attribution on the foreground.

Attributions are captum's: "gradient" is the absolute gradient of the true class's logit, summed over the colours (Simonyan et al. 2014);
"Grad-CAM" (Selvaraju et al. 2017) is taken at the last convolution of an EfficientNet. Each lies on the pixels that the classifier is
given, and so does the mask.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from captum.attr import LayerAttribution, LayerGradCam, Saliency
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import Compose, Normalize

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.settings.studies import Segmentation
from cnslib.models import classifiers
from cnslib.models.classifiers import Classifier
from cnslib.studies.scenarios import subjects
from cnslib.studies.scenarios.subjects import Subject
from cnslib.studies.segmentation import inputs
from cnslib.studies.segmentation.inputs import ENDS, Drawing

GRADIENT, GRAD_CAM = "gradient", "Grad-CAM"
Pictures = UInt8[np.ndarray, "n height width 3"]
looks = tables.schema(
    ["model", *tables.KEY, "method"],
    {
        "model": pa.Column(str),
        **tables.IDENTITY,
        "method": pa.Column(str, pa.Check.isin([GRADIENT, GRAD_CAM])),
        "share": pa.Column(float, pa.Check.in_range(0, 1.0001)),
        "area": pa.Column(float, pa.Check.in_range(0, 1)),
        "top1": pa.Column(str),
    },
)


def garments(
    sources: dict[str, str],
    labels: list[str],
    classes: list[str],
    *,
    settings: Segmentation,
    drawing: Drawing,
    device: str,
    folder: Path,
) -> dict[str, Path]:
    """The tables `looks` of classifiers of garments, one file each; makes what is missing or outdated."""
    asked = [labels, classes, settings.images, settings.seed, drawing.digest]
    found = partial(inputs.garments, classes, settings=settings, drawing=drawing)
    return answer(sources, labels, found, asked, device=device, folder=folder / "garments", seed=settings.seed)


def photographs(labels: list[str], *, settings: Segmentation, device: str, folder: Path, photos: Path = paths.PHOTOS) -> dict[str, Path]:
    """The same of ImageNet classifiers on the photo set."""
    asked = [settings.photographs, settings.seed, units.directory_digest(photos)]
    found = partial(inputs.photographs, photos, settings=settings)
    return answer(settings.photo_classifiers, labels, found, asked, device=device, folder=folder / "photographs", seed=settings.seed)


def answer(
    sources: dict[str, str], labels: list[str], found: Callable, asked: list, *, device: str, folder: Path, seed: int
) -> dict[str, Path]:
    """Makes the tables that are missing or outdated. A unit depends on its classifier's weights, and on what is asked."""
    files = {name: (f"{name}.parquet", recipes.SALIENCY.stamp(name, classifiers.digest(source), asked)) for name, source in sources.items()}
    shelf = units.Shelf(folder, files)
    waiting = list(shelf.waiting())
    subjects = found() if waiting else []  # once for all pieces: the folder of what is drawn for them is one process's
    pieces = [(name, sources[name], labels, subjects, device, shelf[name], seed) for name in waiting]
    workers.each(write, pieces, device=device, desc=folder.name)
    return shelf.paths


def write(name: str, source: str, labels: list[str], subjects: list[Subject], device: str, unit: units.Unit, seed: int) -> None:
    """One unit: a classifier's shares on some subjects, without a scenario and at the end of each."""
    classifier = classifiers.own_classifier(source, name=name, labels=labels, device=device)
    tables.write_unit(pd.concat([ask(classifier, own, seed=seed) for own in subjects], ignore_index=True), unit, looks)


def ask(classifier: Classifier, own: Subject, *, seed: int) -> pd.DataFrame:
    """Share of the attribution on the foreground, by every method that the classifier admits, and its first answer."""
    images, mask = inputs.pictures(own, ENDS, seed=seed), seen(classifier, own.mask)
    keys = pd.DataFrame(inputs.keys(own, ENDS)).assign(model=classifier.name, area=float(mask.mean()))
    keys["top1"] = [classifier.labels[i] for i in classifier.logits(images).argmax(1).tolist()]
    return pd.concat([keys.assign(method=name, share=share(found, mask)) for name, found in maps(classifier, images, own.label).items()])


def maps(classifier: Classifier, images: Pictures, label: str) -> dict[str, Float[Tensor, "n rows columns"]]:
    """Attributions to the pixels that the classifier is given, none below 0, of one class, by method."""
    pixels = torch.stack([classifier.transform(Image.fromarray(image)) for image in images]).to(classifier.device).requires_grad_()
    target = torch.full((len(images),), classifier.labels.index(label), device=classifier.device)
    found = {GRADIENT: Saliency(classifier.network).attribute(pixels, target).sum(1)}
    layer = getattr(classifier.network, "conv_head", None)
    if isinstance(layer, nn.Module):
        coarse = LayerGradCam(classifier.network, layer).attribute(pixels, target, relu_attributions=True)
        found[GRAD_CAM] = LayerAttribution.interpolate(coarse, tuple(pixels.shape[2:]), "bilinear")[:, 0]
    return {name: own.detach().double().cpu() for name, own in found.items()}


def seen(classifier: Classifier, mask: Float[np.ndarray, "height width"]) -> Float[Tensor, "rows columns"]:
    """A mask through the classifier's resizing and cropping, which its pictures go through as well."""
    geometry = Compose([step for step in classifier.transform.transforms if not isinstance(step, Normalize)])  # type: ignore[attr-defined]
    picture = Image.fromarray(np.repeat(np.round(mask * 255).astype(np.uint8)[..., None], 3, axis=-1))
    return geometry(picture)[0].double().clamp(0, 1)


def share(found: Float[Tensor, "n rows columns"], mask: Float[Tensor, "rows columns"]) -> Float[np.ndarray, "n"]:
    """Share of each map that lies on the foreground; the foreground's share of the area where a map is zero and points nowhere.

    Raises ValueError for a mask of another size or without foreground, and for negative or infinite attributions.
    """
    if found.shape[1:] != mask.shape:
        raise ValueError(f"mask of shape {tuple(mask.shape)} for maps of {tuple(found.shape[1:])}; accepted: the same height and width")
    if not mask.any():
        raise ValueError("mask is empty; accepted: at least one pixel of the object")
    if not torch.isfinite(found).all() or (found < 0).any():
        raise ValueError("attributions hold negative or infinite values; accepted: 0 or more")
    whole = found.sum((1, 2))
    inside = (found * mask).sum((1, 2))
    return torch.where(whole > 0, inside / whole.clamp(min=torch.finfo(whole.dtype).tiny), mask.mean()).numpy()


def sheet(
    classifier: Classifier, own: Subject, method: str, *, states: list[tuple[str, float]], seed: int
) -> UInt8[np.ndarray, "n rows columns 3"]:
    """One method's maps as pictures: the brighter, the more; each is scaled to its own 99th percentile."""
    images = np.stack([subjects.shown(own, name, severity, seed=seed) for name, severity in states])
    found = maps(classifier, images, own.label)[method]
    top = torch.quantile(found.flatten(1), 0.99, dim=1).clamp(min=1e-12)[:, None, None]
    grey = (found / top).clamp(max=1).mul(255).round().to(torch.uint8).numpy()
    return np.repeat(grey[..., None], 3, axis=-1)


def read(files: dict[str, Path]) -> pd.DataFrame:
    """The tables of all classifiers as one."""
    return pd.concat([tables.read(path, looks) for path in files.values()], ignore_index=True)
