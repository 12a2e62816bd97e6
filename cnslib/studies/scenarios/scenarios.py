"""Foreground and background scenarios from an image and its mask (XIMAGENET-12, section 3.1), each at a continuous severity.

An image has values in [0, 1]; the mask is 1 on the object, 0 on the background and between at a soft edge. Severity 0 is the image
itself and 1 the scenario as published. What a scenario does not change keeps its bits: outside the object, or inside, as it says.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from scipy.ndimage import gaussian_filter

Image = Float[np.ndarray, "height width 3"]
Mask = Float[np.ndarray, "height width"]

SIGMA, RADIUS = 3.0, 7  # a 15 x 15 Gaussian, as in the released code
BANDS = {"red": [(0, 29), (150, 180)], "green": [(30, 89)], "blue": [(90, 149)]}  # hues in units of two degrees, as in the released code
RAINBOW = 90  # largest shift of the hue in the same unit, as in the released code
SATURATION = 0.8  # at least, of a coloured background: ours. The released code keeps it, and on a pale ground a hue is hardly seen
GREY = np.array([0.299, 0.587, 0.114])  # luma, Rec. 601
GAIN, LIFT, SHARPEN = 1.5, 0.1, 1.0  # brightness is ours: the paper gives no amounts, and those of the released code saturate

COLOURS = ("grey", *BANDS, "rainbow")
DRAWN, SUMMED = "drawn background", "summed background"  # the second is the random background of the released code
COMPOSED = ("random background", DRAWN)
NAMES = (*COLOURS, "bright background", "bright object", "blurred background", "blurred object", "segmented", *COMPOSED)  # keep a part
UNDRAWN = tuple(name for name in NAMES if name != DRAWN)  # those that need no text-to-image model
FOLDERS = {  # as the released code writes them, and Tables 2 and 3 name what no released code writes
    "grey": "image_grey",
    "red": "image_r",
    "green": "image_g",
    "blue": "image_b",
    "rainbow": "image_rainbow",
    "blurred background": "blur_background",
    "blurred object": "blur_object",
    "segmented": "segmented_image",
    "random background": "random_background",
    DRAWN: "generated_background",
}
TABLE1 = ("blurred background", "blurred object", "green", "blue", "grey", "red", "random background", "segmented")  # in its order


def scenario(name: str, image: Image, mask: Mask, severity: float, *, generator: Any = None, background: Any = None) -> Image:
    """An image under a scenario of `NAMES`, or under `SUMMED` (section 3.1); colours, which draw from the generator, change the background.

    A background of the same size is needed where another one comes in: a random picture, or one drawn around the object. `SUMMED` is
    the saturating sum of object and new background, as the released code has it: the background shines through the object.
    """
    if name == SUMMED:
        return np.clip(scenario("segmented", image, mask, severity) + severity * background, 0, 1) if severity else image
    if name == "grey":
        changed = mixed(image, np.repeat((image @ GREY)[..., None], 3, axis=-1), severity)
    elif name in COLOURS:
        changed = coloured(image, name, severity, generator)
    elif name == "segmented":
        changed = mixed(image, np.zeros_like(image), severity)
    elif name in COMPOSED:
        changed = mixed(image, background, severity)
    else:
        changed = (bright if name.startswith("bright") else blur)(image, severity)
    cover = (mask if name.endswith("object") else 1 - mask)[..., None]
    return np.where(cover > 0, cover * changed + (1 - cover) * image, image)


def coloured(image: Image, colour: str, severity: float, generator: np.random.Generator) -> Image:
    """Towards one random hue of a band of colours; for the rainbow all hues are turned by the same random angle of at most 180 degrees.

    At least `SATURATION` of them; the value of each pixel, its brightest channel, is kept.
    """
    hues, saturation, value = np.moveaxis(rgb_to_hsv(image), -1, 0)
    if colour == "rainbow":
        hues = (hues + generator.uniform(0, RAINBOW) / 180) % 1
    else:
        low, high = BANDS[colour][generator.integers(len(BANDS[colour]))]
        hues = np.full_like(hues, generator.uniform(low, high) / 180)
    return mixed(image, hsv_to_rgb(np.stack([hues, np.maximum(saturation, SATURATION), value], axis=-1)), severity)


def bright(image: Image, severity: float) -> Image:
    """Brighter and sharper: a weighted sum, then unsharp masking."""
    lifted = np.clip(GAIN * image + LIFT, 0, 1)
    return mixed(image, np.clip(lifted + SHARPEN * (lifted - blur(lifted, 1.0)), 0, 1), severity)


def blur(image: Image, severity: float) -> Image:
    """Blurred by a Gaussian whose width grows with the severity."""
    return gaussian_filter(image, SIGMA * severity, radius=RADIUS, axes=(0, 1)) if severity else image


def mixed(image: Image, changed: Image, severity: float) -> Image:
    """On the way from an image to a changed one; the image itself at severity 0, the changed one at 1, both bit for bit."""
    return image if severity == 0 else changed if severity == 1 else (1 - severity) * image + severity * changed
