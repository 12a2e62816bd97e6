"""Foreground and background scenarios from an image and its mask (XIMAGENET-12, section 3.1), each at a continuous severity.

An image has values in [0, 1]; the mask is 1 on the object, 0 on the background and between at a soft edge. Severity 0 is the image
itself and 1 the scenario as published. What a scenario does not change keeps its bits: outside the object, or inside, as it says.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from scipy.ndimage import gaussian_filter

from cnslib.core.names import UNSHIFTED, demand

Image = Float[np.ndarray, "height width 3"]
Mask = Float[np.ndarray, "height width"]

SIGMA, RADIUS = 3.0, 7  # a 15 x 15 Gaussian, as in the released code
BANDS = {"red": [(0, 29), (150, 180)], "green": [(30, 89)], "blue": [(90, 149)]}  # hues in units of two degrees, as in the released code
RAINBOW = 90  # largest shift of the hue in the same unit, as in the released code
SATURATION = 0.8  # at least, of a coloured background: ours. The released code keeps it, and on a pale ground a hue is hardly seen
GREY = np.array([0.299, 0.587, 0.114])  # luma, Rec. 601
GAIN, LIFT, SHARPEN = 1.5, 0.1, 1.0  # brightness is ours: the paper gives no amounts, and those of the released code saturate


def grey(image: Image, severity: float) -> Image:
    """Towards its grey values."""
    return mixed(image, np.repeat((image @ GREY)[..., None], 3, axis=-1), severity)


def hue(image: Image, severity: float, *, band: str, generator: np.random.Generator) -> Image:
    """Towards one random hue of a band of colours, saturated."""
    ranges = BANDS[band]
    low, high = ranges[generator.integers(len(ranges))]
    return mixed(image, saturated(image, np.full(image.shape[:2], generator.uniform(low, high) / 180)), severity)


def rainbow(image: Image, severity: float, *, generator: np.random.Generator) -> Image:
    """All hues turned by the same random angle of at most 180 degrees, saturated."""
    return mixed(image, saturated(image, (rgb_to_hsv(image)[..., 0] + generator.uniform(0, RAINBOW) / 180) % 1), severity)


def saturated(image: Image, hues: Float[np.ndarray, "height width"]) -> Image:
    """Other hues in [0, 1], and at least `SATURATION` of them; the value of each pixel, its brightest channel, is kept."""
    _, saturation, value = np.moveaxis(rgb_to_hsv(image), -1, 0)
    return hsv_to_rgb(np.stack([hues, np.maximum(saturation, SATURATION), value], axis=-1))


def bright(image: Image, severity: float) -> Image:
    """Brighter and sharper: a weighted sum, then unsharp masking."""
    lifted = np.clip(GAIN * image + LIFT, 0, 1)
    sharpened = np.clip(lifted + SHARPEN * (lifted - blur(lifted, 1.0)), 0, 1)
    return mixed(image, sharpened, severity)


def blur(image: Image, severity: float) -> Image:
    """Blurred by a Gaussian whose width grows with the severity."""
    return gaussian_filter(image, SIGMA * severity, radius=RADIUS, axes=(0, 1)) if severity else image


def mixed(image: Image, changed: Image, severity: float) -> Image:
    """On the way from an image to a changed one; the image itself at severity 0, the changed one at 1, both bit for bit."""
    return image if severity == 0 else changed if severity == 1 else (1 - severity) * image + severity * changed


def on_object(image: Image, changed: Image, mask: Mask) -> Image:
    """The changed image on the object, the image elsewhere."""
    return np.where(mask[..., None] > 0, mask[..., None] * changed + (1 - mask[..., None]) * image, image)


def on_background(image: Image, changed: Image, mask: Mask) -> Image:
    """The changed image on the background, the image elsewhere."""
    return on_object(image, changed, 1 - mask)


def segmented(image: Image, mask: Mask, severity: float) -> Image:
    """The background faded to black."""
    return on_background(image, mixed(image, np.zeros_like(image), severity), mask)


def replaced(image: Image, mask: Mask, severity: float, *, background: Image) -> Image:
    """Another background behind the object, by alpha compositing."""
    return on_background(image, mixed(image, background, severity), mask)


def summed(image: Image, mask: Mask, severity: float, *, background: Image) -> Image:
    """The saturating sum of object and new background, as the released code does it: the background shines through the object."""
    if severity == 0:
        return image
    return np.clip(segmented(image, mask, severity) + severity * background, 0, 1)


COLOURS: dict[str, Callable] = {
    "grey": lambda image, severity, generator: grey(image, severity),
    "red": lambda image, severity, generator: hue(image, severity, band="red", generator=generator),
    "green": lambda image, severity, generator: hue(image, severity, band="green", generator=generator),
    "blue": lambda image, severity, generator: hue(image, severity, band="blue", generator=generator),
    "rainbow": lambda image, severity, generator: rainbow(image, severity, generator=generator),
}
DRAWN, SUMMED = "drawn background", "summed background"  # the second is the random background of the released code
COMPOSED = ("random background", DRAWN)
NAMES = (*COLOURS, "bright background", "bright object", "blurred background", "blurred object", "segmented", *COMPOSED)  # keep a part
UNDRAWN = tuple(name for name in NAMES if name != DRAWN)  # those that need no text-to-image model
FOLDERS = {  # as the released code writes them, and Tables 2 and 3 name what no released code writes
    UNSHIFTED: "image",
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


def scenario(
    name: str, image: Image, mask: Mask, severity: float, *, generator: np.random.Generator, background: Image | None = None
) -> Image:
    """An image under a scenario of `NAMES`, or under `SUMMED` (section 3.1); colours change the background.

    A background of the same size is needed where another one comes in: a random picture, or one drawn around the object.
    Raises ValueError for an unknown scenario, a severity outside [0, 1], and an image, mask or background of the wrong form.
    """
    check(name, image, mask, severity, background)
    if name in COLOURS:
        return on_background(image, COLOURS[name](image, severity, generator), mask)
    if name == "segmented":
        return segmented(image, mask, severity)
    if background is not None and name in (*COMPOSED, SUMMED):
        return (summed if name == SUMMED else replaced)(image, mask, severity, background=background)
    change, part = name.split()
    changed = {"bright": bright, "blurred": blur}[change](image, severity)
    return (on_object if part == "object" else on_background)(image, changed, mask)


def check(name: str, image: np.ndarray, mask: np.ndarray, severity: float, background: np.ndarray | None) -> None:
    """Raises ValueError for what a scenario cannot be made from."""
    demand(name in (*NAMES, SUMMED), "scenario", name, ", ".join((*NAMES, SUMMED)))
    demand(0 <= severity <= 1, f"severity of {name!r}", severity, "0 to 1")
    unit = image.ndim == 3 and image.shape[-1] == 3 and np.issubdtype(image.dtype, np.floating) and image.min() >= 0 and image.max() <= 1
    demand(unit, "image", f"{image.dtype} of shape {image.shape}", "height x width x 3, floats in [0, 1]")
    demand(mask.shape == image.shape[:2], "mask", f"of shape {mask.shape}", f"{image.shape[:2]}, the image's height and width")
    demand(bool(mask.any()), "mask", "empty", "at least one pixel of the object")
    if name in (*COMPOSED, SUMMED):
        shape = None if background is None else background.shape
        demand(shape == image.shape, f"background of {name!r}", shape, f"one of shape {image.shape}")
