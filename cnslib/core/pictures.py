"""Pictures from outside, opened in one place: PNG, JPEG and WebP alone, of bounded size, upright, 16 bits per channel as well as 8."""

import contextlib
import io
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}  # every other decoder of Pillow stays shut: nobody needs them
FORMATS = tuple(ENDINGS)
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")  # of their files, in any case
BESIDE = (".json", ".csv", ".txt", ".md", ".html", ".yaml")  # of files that describe them
MOST = 80_000_000  # pixels; the largest picture of ImageNet has 61 million
DAMAGE = (UnidentifiedImageError, OSError, SyntaxError, TypeError, ValueError, EOFError, struct.error, zlib.error)
BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError)


def read(source: Path | bytes, name: str) -> UInt8[np.ndarray, "height width 3"]:
    """The RGB picture in a file or in bytes, turned as its EXIF orientation says, which every viewer obeys; errors as in `opened`."""
    with opened(source, name) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):  # grey of 16 bits: converting it as it is would cut every value above 255, which makes it white
            upright = Image.fromarray(np.clip(np.round(np.asarray(upright).astype(np.float64) / 257), 0, 255).astype(np.uint8))
        return np.asarray(upright.convert("RGB"))


@contextlib.contextmanager
def opened(source: Path | bytes, name: str) -> Iterator[Image.Image]:
    """A picture that is read while it is open. ValueError, naming it, for what is no such picture and for one of too many pixels."""
    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source), formats=FORMATS) as image:
            size = f"{image.width} x {image.height}"
            if image.width * image.height <= MOST:
                yield image
                return
    except BOMBS:
        size = "far too many"
    except DAMAGE as error:
        raise ValueError(f"{name} is not a picture ({type(error).__name__}); accepted: {', '.join(FORMATS)}") from None
    raise ValueError(f"{name} has {size} pixels; accepted: at most {MOST:,}") from None


def readable(names: Iterable[str], where: object) -> list[str]:
    """The names of picture files among some names; warns of others that are not read. ValueError for a folder with nothing but others."""
    files = [path for path in map(PurePosixPath, sorted(names)) if path.suffix.lower() not in BESIDE]
    read = [path for path in files if path.suffix.lower() in SUFFIXES]
    folders, depths = {path.parent for path in read}, {len(path.parts) for path in read}  # a licence beside the folders is no class
    if empty := [path for path in files if path.parent not in folders and len(path.parts) in depths]:
        raise ValueError(f"{where}: no file beside {empty[0]} is a picture; accepted: files that end in {', '.join(SUFFIXES)}")
    if others := Counter(path.suffix for path in files if path.suffix.lower() not in SUFFIXES):
        kinds = ", ".join(f"{count} {suffix or 'without an ending'}" for suffix, count in sorted(others.items()))
        warnings.warn(f"{where}: {others.total()} files were not read ({kinds}); accepted: {', '.join(SUFFIXES)}", stacklevel=2)
    return [str(path) for path in read]
