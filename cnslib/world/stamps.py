"""Makes data/photos from the Debian package tuxpaint-stamps-default (GPL-2): `python -m cnslib.world.stamps [ROOT]`.

ROOT is where the package was unpacked or installed (default /). Which stamp shows which ImageNet class was decided by hand and
before any classifier saw one; cnslib/world/stamps.csv tells it, with the reason for each stamp near a class that was left out.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
from PIL import Image

from cnslib.core import paths, tables, units
from cnslib.core.names import identifier
from cnslib.world import cutouts

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
MAPPING = Path(__file__).with_suffix(".csv")
LONGEST = 320  # pixels of the longer side
SMALLEST = 80  # below, a cut-out would be enlarged nearly threefold
chosen = tables.schema(
    ["index", "source"],
    {
        **{name: cutouts.COLUMNS[name] for name in ("index", "wnid", "class")},
        "source": pa.Column(str, unique=True),
        "sha256": pa.Column(str, pa.Check.str_matches("^[0-9a-f]{64}$")),
        "left_out": pa.Column(str),
    },
)


def mapping() -> pd.DataFrame:
    """The stamps near an ImageNet class: index, wnid, class, file in the package, sha256, and why it was left out ("" where not)."""
    table = pd.read_csv(MAPPING, keep_default_na=False, dtype={"index": "int64"})
    return cutouts.require_classes(tables.check(table, chosen, MAPPING.name), MAPPING.name)


def listed() -> pd.DataFrame:
    """The stamps that were taken as the set lists them: cut-outs of one class are numbered from 1, in the order of their files."""
    table = mapping().query("left_out == ''").reset_index(drop=True)
    table["seed"] = table.groupby("class", sort=False).cumcount() + 1
    table["file"] = [f"{identifier(name.split(' (')[0])}_{seed}.webp" for name, seed in zip(table["class"], table["seed"], strict=True)]
    return table.assign(licence="GPL-2")


def install(root: Path, target: Path) -> pd.DataFrame:
    """Writes the cut-outs, their list and the licence; returns the list. FileNotFoundError or ValueError name what is missing or other."""
    table = listed()
    for row in table.itertuples():
        with units.atomic(target / row.file) as partial:
            cut(require(root / STAMPS / row.source, row.sha256)).save(partial, format="WEBP", lossless=True, method=6)
    for name, source in {**{name: root / path for name, path in DOCUMENTS.items()}, "GPL-2.txt": LICENCE}.items():
        shutil.copyfile(require(source), target / name)
    units.write_bytes(target / "README.txt", NOTE.encode())
    units.prune(target, set(table["file"]), "*.webp")
    text = table[list(cutouts.COLUMNS)].to_csv(index=False, lineterminator="\n")
    units.write_bytes(target / cutouts.LIST, text.encode())
    return table


def require(path: Path, sha256: str | None = None) -> Path:
    """The path of a file that exists and, if told, has this sha256."""
    if not path.exists():
        advice = "`apt-get install tuxpaint-stamps-default`, or name the folder into which the package was unpacked"
        raise FileNotFoundError(f"{path} is missing: {advice}; `dvc pull` restores what is made from it")
    if sha256 and units.file_digest(path) != sha256:
        raise ValueError(f"{path} has sha256 {units.file_digest(path)}, expected {sha256} (version 2022.06.04-1)")
    return path


def cut(path: Path) -> Image.Image:
    """A stamp with its alpha mask, trimmed to what is visible and reduced to at most 320 px. ValueError for one below 80 px."""
    picture = Image.open(path).convert("RGBA")
    picture = picture.crop(picture.getchannel("A").point(lambda alpha: 255 * (alpha > 8)).getbbox())
    if max(picture.size) < SMALLEST:
        raise ValueError(f"{path}: {picture.size} px are too few; accepted: a longer side of at least {SMALLEST} px")
    picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return picture


if __name__ == "__main__":
    try:
        print(f"{len(install(Path(sys.argv[1] if sys.argv[1:] else '/'), paths.PHOTOS))} cut-outs in {paths.PHOTOS}")
    except (FileNotFoundError, ValueError) as problem:
        sys.exit(f"error: {problem}")
