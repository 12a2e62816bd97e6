"""Where classifiers look under the scenarios (XIMAGENET-12, section 5.2, Fig. 4): the share of their attribution on the foreground.

Attributions are captum's: "gradient" is the absolute gradient of the true class's logit, summed over the colours (Simonyan et al. 2014);
"Grad-CAM" (Selvaraju et al. 2017) is taken at the last convolution of an EfficientNet. Each lies on the pixels that the classifier sees,
and so does the mask.
"""

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
from cnslib.core.settings.sections import Segmentation
from cnslib.models import classifiers
from cnslib.models.classifiers import Classifier
from cnslib.studies.scenarios import subjects
from cnslib.studies.scenarios.subjects import ENDS, Experiment, Subject

GRADIENT, GRAD_CAM = "gradient", "Grad-CAM"
schema = tables.schema(
    ["model", *tables.KEY, "method"],
    {"model": pa.Column(str), **tables.IDENTITY, "method": pa.Column(str, pa.Check.isin([GRADIENT, GRAD_CAM]))}
    | {"share": pa.Column(float, pa.Check.in_range(0, 1.0001)), "area": pa.Column(float, pa.Check.in_range(0, 1)), "top1": pa.Column(str)},
)


def garments(sources: dict[str, str], experiment: Experiment, *, folder: Path) -> pd.DataFrame:
    """Shares on held-out garments of every classifier, a file each; makes what is missing or outdated."""
    settings, labels, device = experiment.settings, experiment.labels, experiment.device
    shown = [labels, experiment.classes, settings.images, settings.seed, experiment.digest]
    stamps = {name: recipes.SALIENCY.stamp(name, classifiers.digest(source), shown) for name, source in sources.items()}
    make = partial(looks, sources, labels, settings.seed, device)
    return workers.stored(stamps, make, schema, device=device, folder=folder, common=lambda: [experiment.garments()])


def photographs(labels: list[str], *, settings: Segmentation, device: str, folder: Path) -> pd.DataFrame:
    """The same of ImageNet classifiers on the photo set."""
    shown, sources = [settings.photographs, settings.seed, units.directory_digest(paths.PHOTOS)], settings.photo_classifiers
    stamps = {name: recipes.SALIENCY.stamp(name, classifiers.digest(source), shown) for name, source in sources.items()}
    make, selection = partial(looks, sources, labels, settings.seed, device), {"count": settings.photographs, "seed": settings.seed}
    return workers.stored(stamps, make, schema, device=device, folder=folder, common=lambda: [subjects.spread(paths.PHOTOS, **selection)])


def looks(sources: dict[str, str], labels: list[str], seed: int, device: str, name: str, photo_subjects: list[Subject]) -> pd.DataFrame:
    """A classifier's shares on some subjects, without a scenario and at the end of each."""
    classifier = classifiers.user_classifier(sources[name], name=name, labels=labels, device=device)
    return pd.concat([evaluate(classifier, subject, seed=seed) for subject in photo_subjects], ignore_index=True)


def evaluate(classifier: Classifier, subject: Subject, *, seed: int) -> pd.DataFrame:
    """Share of the attribution on the foreground, by every method that the classifier admits, and its prediction."""
    geometry = Compose([step for step in classifier.transform.transforms if not isinstance(step, Normalize)])  # type: ignore[attr-defined]
    white = np.repeat(np.round(subject.mask * 255).astype(np.uint8)[..., None], 3, axis=-1)
    mask = geometry(Image.fromarray(white))[0].double().clamp(0, 1)
    images = subjects.pictures(subject, ENDS, seed=seed)
    rows = subjects.keys(subject, ENDS).assign(model=classifier.name, area=float(mask.mean()))
    rows["top1"] = [classifier.labels[i] for i in classifier.logits(images).argmax(1).tolist()]
    return pd.concat([rows.assign(method=name, share=share(one, mask)) for name, one in maps(classifier, images, subject.label).items()])


def maps(classifier: Classifier, images: UInt8[np.ndarray, "n height width 3"], label: str) -> dict[str, Float[Tensor, "n rows columns"]]:
    """Attributions to the pixels that the classifier sees, none below 0, of one class, by method."""
    pixels = torch.stack([classifier.transform(Image.fromarray(image)) for image in images]).to(classifier.device).requires_grad_()
    target = torch.full((len(images),), classifier.labels.index(label), device=classifier.device)
    attributions = {GRADIENT: Saliency(classifier.network).attribute(pixels, target).sum(1)}
    layer = getattr(classifier.network, "conv_head", None)
    if isinstance(layer, nn.Module):
        coarse = LayerGradCam(classifier.network, layer).attribute(pixels, target, relu_attributions=True)
        attributions[GRAD_CAM] = LayerAttribution.interpolate(coarse, tuple(pixels.shape[2:]), "bilinear")[:, 0]
    return {name: attribution.detach().double().cpu() for name, attribution in attributions.items()}


def share(attribution: Float[Tensor, "n rows columns"], mask: Float[Tensor, "rows columns"]) -> Float[np.ndarray, "n"]:
    """Share of each map that lies on the foreground; the foreground's share of the area where a map is zero and points nowhere."""
    whole, inside = attribution.sum((1, 2)), (attribution * mask).sum((1, 2))
    return torch.where(whole > 0, inside / whole.clamp(min=torch.finfo(whole.dtype).tiny), mask.mean()).numpy()
