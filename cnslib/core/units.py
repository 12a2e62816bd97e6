"""Units of work: a file, written atomically, beside a record of everything it was made from.

A rerun makes again what was made from something else, so a killed run loses at most one unit. The record (`<file>.digest`) is a line whose
first words are the stamp (digest of recipe and inputs) and the sha256 of the bytes; other files of a step have a record of their bytes
alone. Whoever reads either asks `verified` first. One process at a time works in a folder of units: it deletes what it takes for leftovers.
"""

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from cnslib.core.names import identifier

Key = TypeVar("Key")
YOUNG = 2 * 10**9  # nanoseconds: a file that was written just now may be written again within one tick of its clock
NOTHING = "-"  # in a record, in the place of what a unit was made from
REMEDY = "run the step named by its folder again, or restore it with `dvc checkout --force`"
hashed: dict[tuple, str] = {}


def digest(*parts) -> str:
    """The sha256 of the canonical JSON of plain values, mappings and dataclasses; TypeError for anything without a canonical form."""
    plain = lambda part: part.code if isinstance(part, Recipe) else dataclasses.asdict(part)  # noqa: E731
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":"), default=plain).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The sha256 of a file's bytes; a file that has not been touched since is hashed once in a process."""
    about = path.stat()
    key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if key in hashed:
        return hashed[key]
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) > YOUNG:
        hashed[key] = digest
    return digest


def directory_digest(folder: Path) -> str:
    """A digest of the names and contents of all files under a folder."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return digest([[p.relative_to(folder).as_posix(), file_digest(p)] for p in files])


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How one kind of unit is made. Raise `number`, or that of a recipe in `parts`, when the same inputs give other bytes than before."""

    name: str
    number: int
    parts: tuple["Recipe", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.number}"

    @property
    def lineage(self) -> set["Recipe"]:
        """This recipe and all of which it makes use."""
        return {self}.union(*(part.lineage for part in self.parts))

    @property
    def code(self) -> str:
        """Names and numbers, its own first, as they enter digests and the manifest of the base models."""
        return " ".join(map(str, [self, *sorted(self.lineage - {self}, key=lambda recipe: recipe.name)]))

    def stamp(self, *inputs) -> str:
        """The digest of what a unit is made from: this recipe and these inputs, which `digest` accepts."""
        return digest(self.code, *inputs)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder that replaces `path` on success, and vanishes on an error as what killed runs left.

    A full disk and the like is an OSError that names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
            if not Path("/proc", left.suffixes[-2][1:]).exists():
                left.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file atomically."""
    with atomic(path) as partial:
        partial.write_bytes(data)


def sidecar(path: Path) -> Path:
    """Where the record of a unit is kept."""
    return path.with_name(path.name + ".digest")


def record(path: Path) -> list[str]:
    """The words of a file's record, damaged bytes included: what it was made from and its sha256 come first. None without a record."""
    return sidecar(path).read_text(errors="replace").split() if sidecar(path).exists() else []


def record_bytes(path: Path, made_from: str = NOTHING) -> None:
    """Records the bytes of a file that is in place, and what it was made from if it is a unit; the last two words are not used."""
    write_bytes(sidecar(path), f"{made_from} {file_digest(path)} - -\n".encode())


def write_recorded(path: Path, data: bytes) -> None:
    """Writes a file atomically, and the record of its bytes."""
    write_bytes(path, data)
    record_bytes(path)


def is_recorded(path: Path) -> bool:
    """Whether a file has a record of its bytes alone."""
    return record(path)[:1] == [NOTHING]


def verified(path: Path, *, required: bool = True) -> str:
    """The sha256 of a file's bytes, which are those of its record; without `required` it need not have one.

    FileNotFoundError for a missing file, ValueError, naming it, for a missing record and for bytes that were changed since.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; `dvc pull` restores it, the step named by its folder makes it")
    digest, noted = file_digest(path), record(path)
    if noted[1:2] != [digest] and (required or sidecar(path).exists()):
        if not sidecar(path).exists():
            raise ValueError(f"{path} has no record {sidecar(path).name} of its bytes; {REMEDY}")
        raise ValueError(f"{path} is not as it was written: its sha256 is {digest[:12]}..., its record says {noted[:2]}; {REMEDY}")
    return digest


def prune(folder: Path, keep: set[str], pattern: str) -> None:
    """Deletes units under `folder` that match `pattern` and are not in `keep` (posix paths relative to the folder)."""
    for path in sorted(folder.glob(pattern)):
        if path.relative_to(folder).as_posix() not in keep:
            sidecar(path).unlink(missing_ok=True)  # first: a record without its unit would never be deleted
            path.unlink()


class Lock:
    """Exclusive access to a folder as long as the object, or its process, exists. RuntimeError names the process that has it."""

    def __init__(self, folder: Path):
        handle = os.open(folder, os.O_RDONLY)
        weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = holder(folder.stat().st_ino)
            raise RuntimeError(f"{folder} is in the hands of {who}; accepted: one process at a time; wait for its end, or end it") from None


present: weakref.WeakValueDictionary[Path, Lock] = weakref.WeakValueDictionary()  # by folder: in a process many may work in one


def hold(folder: Path, owner: object) -> None:
    """Keeps other processes out of a folder, which is created, for as long as `owner` exists."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    lock = present[place] = present.get(place) or Lock(place)
    weakref.finalize(owner, lambda kept: None, lock)


def holder(inode: int) -> str:
    """The process that has locked a folder, with its command, as far as Linux tells."""
    with contextlib.suppress(OSError):
        for _, kind, _, _, process, where, *_ in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if kind == "FLOCK" and where.endswith(f":{inode}"):
                command = Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
                return f"process {process} ({command[:100].strip()})"
    return "another process"


@dataclasses.dataclass(frozen=True)
class Unit:
    """A file and what it is to be made from."""

    path: Path
    made_from: str

    @property
    def done(self) -> bool:
        """Whether it is there and was made from that, with the bytes that were written then."""
        return self.path.exists() and record(self.path)[:2] == [self.made_from, file_digest(self.path)]

    def require(self) -> None:
        """Raises what `verified` raises, and ValueError for a unit that was made from something else."""
        verified(self.path)
        if not self.done:
            raise ValueError(f"{self.path} was made from other inputs or parameters; run the step named by its folder")

    def finish(self) -> None:
        """Records what it was made from, after the file is in place."""
        record_bytes(self.path, self.made_from)


def file_of(key: Any) -> str:
    """The file of a table in parts by its key: words and numbers."""
    return "_".join(identifier(str(part)) for part in (key if isinstance(key, tuple) else (key,))) + ".parquet"


def file_below(key: tuple) -> str:
    """The same in a folder for the first part, the shift."""
    return f"{identifier(key[0])}/{file_of(key[1:])}"


@dataclasses.dataclass(frozen=True)
class Shelf(Generic[Key]):
    """All units of one kind: files under a folder by key, each with its stamp. Files of that pattern under other names are leftovers."""

    folder: Path
    files: Mapping[Key, tuple[str, str]]
    pattern: str = "*.parquet"

    def __getitem__(self, key: Key) -> Unit:
        """The unit of a key."""
        name, made_from = self.files[key]
        return Unit(self.folder / name, made_from)

    @property
    def paths(self) -> dict[Key, Path]:
        """The file of every key."""
        return {key: self[key].path for key in self.files}

    def waiting(self) -> list[Key]:
        """The keys whose units are missing, damaged or outdated; leftovers, also those of a killed run, are deleted first.

        As long as the shelf exists, the folder is this process's. RuntimeError names another one that has it.
        """
        hold(self.folder, self)
        prune(self.folder, {name for name, _ in self.files.values()}, self.pattern)
        prune(self.folder, set(), "**/.*.partial")
        return [key for key in self.files if not self[key].done]
