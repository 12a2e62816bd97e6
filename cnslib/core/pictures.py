"""Pictures from outside, opened in one place: PNG, JPEG and WebP alone, of bounded size, 16 bits per channel as well as 8."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

FORMATS = ("PNG", "JPEG", "WEBP")  # every other decoder of Pillow stays shut: nobody needs them, and they have had most of its faults
MOST = 80_000_000  # pixels; the largest picture of ImageNet has 61 million
DAMAGE = (UnidentifiedImageError, OSError, SyntaxError, TypeError, ValueError, EOFError, struct.error, zlib.error)
BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError)


def read(source: Path | bytes, name: str, *, formats: tuple[str, ...] = FORMATS) -> UInt8[np.ndarray, "height width 3"]:
    """The RGB picture in a file or in bytes. ValueError, naming it, for what is no such picture and for one of too many pixels."""
    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source), formats=formats) as found:
            if found.width * found.height <= MOST:
                return np.asarray(eight_bit(found).convert("RGB"))
            size = f"{found.width} x {found.height} pixels"
    except BOMBS:
        size = "far too many pixels"
    except DAMAGE as error:
        raise ValueError(f"{name} is not a picture ({type(error).__name__}); accepted: {', '.join(formats)}") from None
    raise ValueError(f"{name} has {size}; accepted: at most {MOST:,}") from None


def eight_bit(found: Image.Image) -> Image.Image:
    """A grey picture of 16 bits at 8: converting it as it is would cut every value above 255, which makes it white."""
    if not found.mode.startswith("I"):
        return found
    values = np.asarray(found).astype(np.float64)
    return Image.fromarray(np.clip(np.round(values / 257), 0, 255).astype(np.uint8))
