"""Picture files of a classification data set."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

SUFFIXES = (".png", ".jpg", ".jpeg", ".JPEG")


def open_picture(file: Path) -> UInt8[np.ndarray, "height width 3"]:
    """One picture file; ValueError names a file that is none."""
    try:
        return np.asarray(Image.open(file).convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"catalog: {file} is not a picture ({type(error).__name__})") from None
