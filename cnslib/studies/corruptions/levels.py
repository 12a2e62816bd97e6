"""The fifteen corruptions of ImageNet-C by severity, with the parameters that their authors published, and how a picture is corrupted.

The operations are ours, made of SciPy, scikit-image, NumPy and Pillow; the parameters are those of the released code, which has one set
for pictures of 64 px (Tiny ImageNet-C) and one for 224 px. Two things differ: frost is drawn and not photographed, and blurs mirror
or repeat the rim by the rules of these libraries.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core import paths
from cnslib.core.names import demand
from cnslib.core.seeds import seed_of
from cnslib.core.settings.studies import Corruptions
from cnslib.studies.corruptions import blurs, effects, weather

CONTRAST, NOISE, BLUR, JPEG = "contrast", "gaussian noise", "defocus blur", "jpeg compression"
KINDS: dict[str, dict[str, Callable]] = {  # the four kinds of the paper, in its order
    "noise": {NOISE: effects.gaussian_noise, "shot noise": effects.shot_noise, "impulse noise": effects.impulse_noise},
    "blur": {BLUR: blurs.defocus, "glass blur": blurs.glass, "motion blur": blurs.motion, "zoom blur": blurs.zoom},
    "weather": {"snow": weather.snow, "frost": weather.frost, "fog": weather.fog, "brightness": weather.brightness},
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


def published(side: int) -> Levels:
    """For each corruption its parameters by severity, 1 to 5, for pictures of this side. ValueError for a side without parameters."""
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv", dtype={"parameters": str})
    demand(side in set(table["side"]), "corruptions: side", side, ", ".join(map(str, sorted(set(table["side"])))))
    own = table[table["side"] == side].set_index("corruption")
    rows = {name: zip(own.loc[name, "severity"], own.loc[name, "parameters"], strict=True) for name in EFFECTS}
    return {name: {float(severity): numbers(text) for severity, text in levels} for name, levels in rows.items()}


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of a cell."""
    return tuple(float(number) for number in text.split())


def levels(settings: Corruptions) -> Levels:
    """The same with the further levels of contrast, in ascending order of severity."""
    between = dict(zip(settings.contrast_severities, [(value,) for value in settings.contrast], strict=True))
    graded = published(settings.side)
    return graded | {CONTRAST: dict(sorted((graded[CONTRAST] | between).items()))}


def corrupt(name: str, pictures: Pictures, parameters: tuple[float, ...], *, keys: list[tuple]) -> Pictures:
    """Some pictures under one corruption, cut off to 8 bits as ImageNet-C does.

    `keys` (class, seed) seed what is drawn: every picture has its own draws, the same at every severity. ValueError for an unknown name.
    """
    demand(name in EFFECTS, "corruption", name, ", ".join(EFFECTS))
    made = [
        EFFECTS[name](picture / 255, np.random.default_rng(seed_of(name, *key)), *parameters)
        for picture, key in zip(pictures, keys, strict=True)
    ]
    return (np.clip(np.stack(made), 0, 1) * 255 + TINY).astype(np.uint8)


TINY = 1e-6  # a value that rounding has put just below a whole number is that number


def table(graded: Levels) -> pd.DataFrame:
    """The parameters in words, a row per corruption and a column per severity; empty where a corruption has no such level."""
    cells = {name: {severity: ", ".join(f"{value:g}" for value in own) for severity, own in row.items()} for name, row in graded.items()}
    return pd.DataFrame(cells).sort_index().rename_axis("severity").T.fillna("")
