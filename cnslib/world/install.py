"""Brings the Fashion-MNIST files into data/fashion-mnist: the first step of `make world`."""

import sys
from pathlib import Path

from cnslib.core import paths, units
from cnslib.world import scenes

PACKAGE = Path("/usr/share/datasets/fashion-mnist")  # where the Debian package dataset-fashion-mnist puts its files


def install(source: Path, target: Path) -> None:
    """Copies the four files that are not there yet; checks all by sha256. FileNotFoundError or ValueError name what is missing or other."""
    for name in scenes.FILES:
        if not (target / name).exists():
            if not (source / name).exists():
                advice = f"install it with `apt-get install dataset-fashion-mnist`, or restore {target} with `dvc pull`"
                raise FileNotFoundError(f"{source / name} is missing: {advice}")
            units.write_bytes(target / name, (source / name).read_bytes())
        scenes.read_idx(target / name)


if __name__ == "__main__":
    try:
        install(PACKAGE, paths.GARMENTS)
    except (FileNotFoundError, ValueError) as problem:
        sys.exit(f"error: {problem}")
