"""ImageNet-C's corruptions of real pictures (CNS-Bench supplement D and E; Hendrycks and Dietterich 2019), answered by every classifier.

Rows take the form of the benchmark's: the corruption is the shift, its severity the scale, and severity 0 the picture as it is.
"""

import functools
import io
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from scipy.ndimage import gaussian_filter
from torchvision.transforms.v2 import functional as transforms

from cnslib.core import kinds
from cnslib.core.names import UNSHIFTED
from cnslib.core.seeds import seed_of
from cnslib.core.settings.method import Evaluation
from cnslib.core.settings.studies import Corruptions
from cnslib.data import catalog
from cnslib.method import evaluation

CONTRAST, NOISE, BLUR, JPEG = NAMES = ("contrast", "gaussian noise", "gaussian blur", "jpeg compression")
Pictures = UInt8[np.ndarray, "images height width 3"]
Pixels = Float[np.ndarray, "images height width 3"]


def levels(settings: Corruptions) -> dict[str, dict[float, float]]:
    """For each corruption its parameter by severity; 1 to 5 are ImageNet-C's."""
    own = dict(zip((NOISE, BLUR, JPEG), (settings.noise, settings.blur, settings.jpeg), strict=True))
    graded = {name: {float(severity): value for severity, value in enumerate(values, start=1)} for name, values in own.items()}
    return {CONTRAST: dict(zip(settings.contrast_severities, settings.contrast, strict=True))} | graded


def contrast(pixels: Pixels, value: float) -> Pixels:
    """Each colour channel drawn towards its mean over the picture: torchvision's contrast of three grey pictures."""
    channels = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    grey = transforms.adjust_contrast(channels.reshape(-1, 1, *channels.shape[2:]), value)
    return grey.reshape(channels.shape).permute(0, 2, 3, 1).numpy()


def gaussian_noise(pixels: Pixels, value: float, keys: list[tuple]) -> Pixels:
    """Independent noise of standard deviation `value`; a picture's noise belongs to its key, and grows with the severity."""
    noise = [np.random.default_rng(seed_of(NOISE, *key)).normal(size=picture.shape) for picture, key in zip(pixels, keys, strict=True)]
    return pixels + value * np.stack(noise)


def gaussian_blur(pixels: Pixels, value: float) -> Pixels:
    """A blur of `value` pixels, nearest pixels beyond the rim: SciPy's filter, which ImageNet-C calls through scikit-image."""
    return gaussian_filter(pixels, sigma=(0, value, value, 0), mode="nearest", truncate=4.0)


def jpeg_compression(picture: UInt8[np.ndarray, "height width 3"], value: float) -> UInt8[np.ndarray, "height width 3"]:
    """A picture after Pillow's JPEG of this quality."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="JPEG", quality=int(value))
    return np.asarray(Image.open(buffer, formats=("JPEG",)))


def corrupt(name: str, pictures: Pictures, value: float, *, keys: list[tuple]) -> Pictures:
    """Some pictures under one corruption of this parameter, cut off to 8 bits as ImageNet-C does; `keys` (class, seed) seed the noise."""
    if name == JPEG:
        return np.stack([jpeg_compression(picture, value) for picture in pictures])
    pixels = pictures.astype(float) / 255
    if name == NOISE:
        made = gaussian_noise(pixels, value, keys)
    else:
        made = contrast(pixels, value) if name == CONTRAST else gaussian_blur(pixels, value)
    return (np.clip(made, 0, 1) * 255).astype(np.uint8)


def originals(pictures: Path, classes: list[str], count: int) -> tuple[pd.DataFrame, Pictures]:
    """The first held-out pictures of each class of the catalog: their class and seed, and the pictures. Errors as `catalog.whole`."""
    found = [(name, seeds[:count], own[:count]) for name, seeds, own in catalog.whole(pictures, "heldout", classes)]
    rows = pd.DataFrame([(name, seed) for name, seeds, _ in found for seed in seeds], columns=["class", "seed"])
    return rows, np.stack([picture for _, _, own in found for picture in own])


def evaluate(
    pictures: Path,
    classes: list[str],
    *,
    labels: list[str],
    settings: Corruptions,
    classifiers: Evaluation,
    device: str,
    folder: Path,
) -> dict[str, Path]:
    """Makes the tables of answers that are missing or outdated, one per classifier; a killed run keeps the finished ones.

    Errors are those of `evaluation.evaluate_catalog`.
    """
    evaluation.require_labels(classes, labels)
    graded = levels(settings)
    contents = [catalog.digest(pictures, "heldout", classes), settings.images, [[name, *own.items()] for name, own in graded.items()]]
    made = functools.cache(lambda: corrupted(*originals(pictures, classes, settings.images), graded))  # once, if anybody must be asked
    return evaluation.answered(
        kinds.CORRUPTIONS,
        contents,
        lambda: evaluation.array_batches(*made(), size=classifiers.batch_size),
        labels=labels,
        settings=classifiers,
        device=device,
        folder=folder,
    )


def corrupted(rows: pd.DataFrame, plain: Pictures, graded: dict[str, dict[float, float]]) -> tuple[pd.DataFrame, Pictures]:
    """The originals (shift "unshifted", scale 0), then every corruption at every severity: the key of each picture, and the pictures."""
    keys = list(rows[["class", "seed"]].itertuples(index=False, name=None))
    grid = [(name, severity, value) for name, own in graded.items() for severity, value in own.items()]
    tables_of = [rows.assign(shift=UNSHIFTED, scale=0.0), *(rows.assign(shift=name, scale=severity) for name, severity, _ in grid)]
    made = [plain, *(corrupt(name, plain, value, keys=keys) for name, _, value in grid)]
    return pd.concat(tables_of, ignore_index=True), np.concatenate(made)
