import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from cnslib.core import pictures, tables

GREY = np.arange(0, 64, dtype=np.uint8).reshape(8, 8)


def stored(image: Image.Image, form: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **({"lossless": True} if form == "WEBP" else {}))
    return buffer.getvalue()


@pytest.mark.parametrize(("form", "mode"), [("PNG", "RGB"), ("PNG", "L"), ("PNG", "RGBA"), ("PNG", "P"), ("WEBP", "RGBA")])
def test_pictures_of_every_mode_come_as_rgb(form, mode):
    given = Image.fromarray(GREY).convert("RGB").convert(mode)
    found = pictures.read(stored(given, form), "one")
    assert np.array_equal(found, np.asarray(given.convert("RGB"))) and found.dtype == np.uint8


def test_sixteen_bits_look_like_eight():
    """65535 is white, 257 k is k; Pillow's own conversion turns all above 255 white."""
    deep = Image.fromarray(GREY.astype(np.uint16) * 257)
    found = pictures.read(stored(deep, "PNG"), "deep")
    assert np.array_equal(found, np.repeat(GREY[..., None], 3, axis=2))
    assert tables.decode(stored(deep, "PNG"), "deep").max() == 63


@pytest.mark.parametrize("form", ["GIF", "TIFF", "JPEG2000"])
def test_no_other_decoder_runs(form):
    data = stored(Image.fromarray(GREY).convert("RGB"), form)
    assert Image.open(io.BytesIO(data)).size == (8, 8)  # Pillow would have read it
    with pytest.raises(ValueError, match=r"row is not a picture \(UnidentifiedImageError\); accepted: PNG, JPEG, WEBP"):
        pictures.read(data, "row")


def bomb(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])
def test_a_decompression_bomb_is_one_line_and_not_unpacked(side, tmp_path):
    (tmp_path / "bomb.png").write_bytes(bomb(side))
    message = r"has (9000 x 9000|12000 x 12000|far too many) pixels; accepted: at most 80,000,000"
    for ask in (lambda: tables.decode(bomb(side), "row"), lambda: pictures.read(tmp_path / "bomb.png", "file")):
        with pytest.raises(ValueError, match=message) as raised:
            ask()
        assert "\n" not in str(raised.value)
