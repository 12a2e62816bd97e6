"""The fifteen corruptions of ImageNet-C by severity, with the parameters of the released code, and how a picture is corrupted.

There is one set of parameters for pictures of 64 px (Tiny ImageNet-C) and one for 224 px.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core import paths
from cnslib.core.names import demand
from cnslib.core.seeds import seed_of
from cnslib.core.settings.sections import Corruptions
from cnslib.studies.corruptions import effects

CONTRAST, JPEG = "contrast", "jpeg compression"
KINDS: dict[str, dict[str, Callable]] = {  # the four kinds of the paper, in its order
    "noise": {"gaussian noise": effects.gaussian_noise, "shot noise": effects.shot_noise, "impulse noise": effects.impulse_noise},
    "blur": {"defocus blur": effects.defocus, "glass blur": effects.glass, "motion blur": effects.motion, "zoom blur": effects.zoom},
    "weather": {"snow": effects.snow, "frost": effects.frost, "fog": effects.fog, "brightness": effects.brightness},
    "digital": {
        CONTRAST: effects.contrast,
        "elastic transform": effects.elastic_transform,
        "pixelate": effects.pixelate,
        JPEG: effects.jpeg_compression,
    },
}
EFFECTS = {name: effect for kind in KINDS.values() for name, effect in kind.items()}
Levels = dict[str, dict[float, tuple[float, ...]]]
Pictures = UInt8[np.ndarray, "images height width 3"]
TINY = 1e-6  # a value that rounding has put just below a whole number is that number


def published(side: int) -> Levels:
    """For each corruption its parameters by severity, 1 to 5, for pictures of this side. ValueError for a side without parameters."""
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv", dtype={"parameters": str})
    demand(side in set(table["side"]), "corruptions: side", side, ", ".join(map(str, sorted(set(table["side"])))))
    rows = table[table["side"] == side].set_index(["corruption", "severity"])["parameters"]
    numbers = rows.map(lambda text: tuple(float(number) for number in text.split()))
    return {name: {float(severity): own for severity, own in numbers[name].items()} for name in EFFECTS}


def levels(settings: Corruptions) -> Levels:
    """The same with the further levels of contrast, in ascending order of severity."""
    graded = published(settings.side)
    between = zip(settings.contrast_severities, [(value,) for value in settings.contrast], strict=True)
    return graded | {CONTRAST: dict(sorted((graded[CONTRAST] | dict(between)).items()))}


def corrupt(name: str, pictures: Pictures, parameters: tuple[float, ...], *, keys: list[tuple]) -> Pictures:
    """Some pictures under one corruption, cut off to 8 bits as ImageNet-C does.

    `keys` (class, seed) seed what is drawn: every picture has its own draws, the same at every severity.
    """
    given = ((picture / 255, np.random.default_rng(seed_of(name, *key))) for picture, key in zip(pictures, keys, strict=True))
    made = np.stack([EFFECTS[name](*own, *parameters) for own in given])
    return (np.clip(made, 0, 1) * 255 + TINY).astype(np.uint8)
