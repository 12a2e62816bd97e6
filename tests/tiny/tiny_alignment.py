from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from tiny_encoders import write_clip, write_timm

from cnslib.core import tables
from cnslib.core.names import SHIFTS
from cnslib.method import filtering
from cnslib.models import encoders

LABELS = ["sneaker", "bag", "coat"]
CHOSEN = ["heavy snow", "cartoon style"]
GRID = [(name, seed) for name in ("sneaker", "bag") for seed in (1, 2)]


def picture(*key: str | float) -> np.ndarray:
    return np.random.default_rng([sum(map(ord, str(part))) for part in key]).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def write_images(folder: Path, shift: str, scales: list[float], skip: tuple[tuple[str, int], ...] = ()) -> None:
    rows = [
        {"shift": shift, "class": name, "seed": seed, "scale": scale, "image": tables.encode(picture(shift, name, seed, scale))}
        for name, seed in GRID
        for scale in scales
        if (name, seed) not in skip
    ]
    tables.write(pd.DataFrame(rows), folder / f"{shift.replace(' ', '_')}.parquet", tables.images)


def write_all(folder: Path) -> Path:
    write_images(folder, "unshifted", [0.0])
    for shift in CHOSEN:
        write_images(folder, shift, [1.0, 2.0])
    return folder


def random_judges(folder: Path) -> filtering.Judges:
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2, seed=1)
    clip, dino = encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino"))
    return filtering.Judges(clip, dino, encoders.Oracle(str(folder / "oracle"), labels=LABELS))


def after_changes(look: Callable[..., pd.DataFrame], images: Path, folder: Path) -> dict[str, bool]:
    """What becomes of a shift's file: left alone when another shift comes, its new pictures seen, gone with the shift."""
    look(["heavy snow"])
    path = folder / "heavy_snow.parquet"
    stamp = path.stat().st_mtime_ns
    look()
    found = {"left alone": path.stat().st_mtime_ns == stamp}
    write_images(images, "heavy snow", [1.0, 2.0, 2.5])
    found["new seen"] = 2.5 in set(look()["scale"])
    look(["cartoon style"])
    return found | {"gone": not path.exists()}
