"""Makes data/ from two Debian packages, dataset-fashion-mnist (MIT) and tuxpaint-stamps-default (GPL-2).

`python -m cnslib.world.install` brings the garments, as `make world` does first; `python -m cnslib.world.install ROOT` the photo set,
from the stamps under the folder ROOT into which their package was unpacked, or / where it was installed. Which stamp shows which
ImageNet class was decided by hand and before any classifier saw one; stamps.csv tells it, with the reason for each that was left out.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd
from PIL import Image

from cnslib.core import paths, units
from cnslib.core.names import identifier
from cnslib.world import cutouts, scenes

FASHION = Path("/usr/share/datasets/fashion-mnist")
STAMPS = Path("usr/share/tuxpaint/stamps")
DOCUMENTS = {  # what the licence asks to pass on
    "COPYRIGHT.txt": Path("usr/share/doc/tuxpaint-stamps-default/copyright"),
    "CHANGES.txt.gz": Path("usr/share/doc/tuxpaint-stamps-default/changelog.gz"),
}
NOTE = """Photographs of ImageNet classes, cut out: stamps of Tux Paint, from the Debian package tuxpaint-stamps-default 2022.06.04-1.
Copyright 2002-2022 Bill Kendrick and contributors (COPYRIGHT.txt, CHANGES.txt.gz); GNU General Public License 2 (GPL-2.txt).
Changed: trimmed, reduced to at most 320 px, stored as WebP without loss. photos.csv names the original file of each.
"""
LICENCE = Path("/usr/share/common-licenses/GPL-2")
MAPPING = Path(__file__).with_name("stamps.csv")
LONGEST = 320  # pixels of the longer side of a cut-out


def garments(source: Path, target: Path) -> None:
    """Copies the four files of Fashion-MNIST that are not there yet, and checks all by sha256."""
    for name in scenes.FILES:
        if not (target / name).exists():
            units.write_bytes(target / name, require(source / name, "dataset-fashion-mnist").read_bytes())
        scenes.read_idx(target / name)


def require(path: Path, package: str) -> Path:
    """A path that exists. FileNotFoundError names one that does not."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install it with `apt-get install {package}`, or restore data/ with `dvc pull`")
    return path


def mapping() -> pd.DataFrame:
    """The stamps near an ImageNet class: index, wnid, class, file in the package, sha256, and why it was left out ("" where not)."""
    return pd.read_csv(MAPPING, keep_default_na=False, dtype={"index": "int64"})


def listed() -> pd.DataFrame:
    """The stamps that were taken as the set lists them: cut-outs of one class are numbered from 1, in the order of their files."""
    table = mapping().query("left_out == ''").reset_index(drop=True)
    table["seed"] = table.groupby("class", sort=False).cumcount() + 1
    table["file"] = [f"{identifier(name.split(' (')[0])}_{seed}.webp" for name, seed in zip(table["class"], table["seed"], strict=True)]
    return table.assign(licence="GPL-2")


def photos(root: Path, target: Path) -> None:
    """Writes the cut-outs, their list and the licence. FileNotFoundError or ValueError name a stamp that is missing or another one."""
    table, package = listed(), "tuxpaint-stamps-default"
    for row in table.itertuples():
        source = require(root / STAMPS / row.source, package)
        if units.file_digest(source) != row.sha256:
            raise ValueError(f"{source} has sha256 {units.file_digest(source)}, expected {row.sha256} (version 2022.06.04-1)")
        with units.atomic(target / row.file) as partial:
            cut(source).save(partial, format="WEBP", lossless=True, method=6)
    for name, source in {**{name: root / path for name, path in DOCUMENTS.items()}, "GPL-2.txt": LICENCE}.items():
        shutil.copyfile(require(source, package), target / name)
    units.write_bytes(target / "README.txt", NOTE.encode())
    units.write_bytes(target / cutouts.LIST, table[list(cutouts.COLUMNS)].to_csv(index=False, lineterminator="\n").encode())


def cut(path: Path) -> Image.Image:
    """A stamp with its alpha mask, trimmed to what is visible and reduced to at most 320 px."""
    picture = Image.open(path).convert("RGBA")
    picture = picture.crop(picture.getchannel("A").point(lambda alpha: 255 * (alpha > 8)).getbbox())
    picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return picture


if __name__ == "__main__":
    try:
        photos(Path(sys.argv[1]), paths.PHOTOS) if sys.argv[1:] else garments(FASHION, paths.GARMENTS)
    except (FileNotFoundError, ValueError) as problem:
        sys.exit(f"error: {problem}")
