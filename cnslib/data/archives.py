"""Folders and zip archives of other people's files, read alike: nothing is unpacked, and no path leaves the archive."""

import contextlib
import itertools
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cnslib.core import units

LARGEST = 2**28  # bytes of an entry; a picture of 768 px has 1.5 million, the predictions of a classifier 50 million
GROWTH = 60  # times the archive's size; csv files of predictions shrink to a twentieth, pictures not at all
STAMP = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip: equal contents make equal bytes


@dataclass(frozen=True)
class Archive:
    """The files of a folder or zip by their posix names, sorted, and what reads one of them."""

    path: Path
    names: list[str]
    read: Callable[[str], bytes]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A folder, or a zip archive without unpacking it; hidden files and what macOS adds are left out."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; accepted: a folder or a zip archive")
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        for file in files:
            if file.is_symlink() and not file.resolve().is_relative_to(path.resolve()):
                raise ValueError(f"{path}: the link {file.relative_to(path)} leads out of the folder")
        names = visible(path, [file.relative_to(path).as_posix() for file in files])
        yield Archive(path, names, lambda name: (path / name).read_bytes())
        return
    try:
        packed = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        raise ValueError(f"{path} is not a zip archive; accepted: a folder or a complete zip archive") from None
    with packed:
        entries = [entry for entry in packed.infolist() if not entry.is_dir()]
        for entry in entries:
            if (size := entry.file_size) > LARGEST:
                raise ValueError(f"{path}: the entry {entry.filename!r} has {size:,} bytes unpacked; accepted: at most {LARGEST:,}")
        total, size = sum(entry.file_size for entry in entries), path.stat().st_size
        if total > LARGEST and total > GROWTH * size:
            raise ValueError(f"{path} would grow from {size:,} to {total:,} bytes; accepted: at most {GROWTH} times its size")
        names = [entry.filename.replace("\\", "/") for entry in entries]
        by_name = dict(zip(names, entries, strict=True))
        yield Archive(path, visible(path, names), lambda name: member(packed, path, by_name[name]))


def visible(path: Path, names: list[str]) -> list[str]:
    """Safe names in order, without hidden files; ValueError names an unsafe one and one that is there twice."""
    for name in names:
        if name.startswith("/") or "\\" in name or ":" in name.split("/")[0] or ".." in PurePosixPath(name).parts:
            raise ValueError(f"{path}: the entry {name!r} would lie outside; accepted: relative paths without '..'")
    kept = sorted(name for name in names if not any(part.startswith((".", "__MACOSX")) for part in name.split("/")))
    if twice := [first for first, second in itertools.pairwise(kept) if first == second]:
        raise ValueError(f"{path}: the entry {twice[0]!r} is there twice; accepted: every name once")
    return kept


def member(file: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of one entry; ValueError names an entry whose checksum is wrong, or that is longer than the archive says."""
    try:
        with file.open(entry) as stream:
            data = stream.read(entry.file_size + 1)
        if len(data) != entry.file_size:
            raise ValueError(f"{len(data):,} bytes or more, {entry.file_size:,} announced")
        return data
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{path}: the entry {entry.filename!r} is damaged ({error})") from None


def write(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """Writes files into a new zip archive (where the name ends in .zip) or folder, which appears when it is complete."""
    if path.exists():
        raise FileExistsError(f"{path} exists; accepted: a path where there is nothing yet")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", suffix=".partial") as folder:
        whole = Path(folder) / "whole"
        if path.suffix == ".zip":
            with zipfile.ZipFile(whole, "w") as archive:
                for name, data in files:
                    entry = zipfile.ZipInfo(name, STAMP)
                    entry.external_attr = 0o644 << 16  # without it some programs unpack unreadable files
                    archive.writestr(entry, data)
        else:
            whole.mkdir()
            for name, data in files:
                target = whole / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        whole.rename(path)
    return path


@contextlib.contextmanager
def replaced_tables(folder: Path) -> Iterator[Path]:
    """A folder whose tables take the place of all tables in `folder`, with records of their bytes; after an error nothing has changed."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, suffix=".partial") as staging:
        yield Path(staging)
        made = [path.replace(folder / path.name) for path in Path(staging).glob("*.parquet")]
    for path in made:
        units.record_bytes(path)
    units.prune(folder, {path.name for path in made}, "*.parquet")
