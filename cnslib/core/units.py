"""Units of work: a file, written atomically, beside a record of everything it was made from.

A rerun recomputes just the units whose inputs or recipe differ, so a killed run loses at most one unit. The record (`<file>.digest`)
is one line of four words: the stamp (digest of recipe and inputs), the sha256 of the bytes, the recipe, and the digest of its source.
The last is provenance alone: changed code outdates nothing, a raised number of the recipe (see `kinds`) does. Other files of a step
have a record of their bytes alone. Whoever reads either asks `verified` first.
"""

import ast
import contextlib
import dataclasses
import functools
import glob
import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from cnslib.core import locks

Key = TypeVar("Key")


def digest(*parts) -> str:
    """The sha256 of the canonical JSON of plain values, mappings and dataclasses.

    Raises TypeError for anything without a canonical form.
    """
    plain = [canonical(part) for part in parts]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def canonical(part):
    """A recipe by its names and numbers, a dataclass by its fields, anything else as it is."""
    if isinstance(part, Recipe):
        return part.code
    return dataclasses.asdict(part) if dataclasses.is_dataclass(part) and not isinstance(part, type) else part


YOUNG = 2 * 10**9  # nanoseconds: a file that was written just now may be written again within one tick of its clock
hashed: dict[tuple, str] = {}


def file_digest(path: Path) -> str:
    """The sha256 of a file's bytes; a file that has not been touched since is hashed once in a process."""
    with open(path, "rb") as stream:
        about = os.fstat(stream.fileno())
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if key in hashed:
            return hashed[key]
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) > YOUNG:
        hashed[key] = found
    return found


def directory_digest(folder: Path) -> str:
    """A digest of the names and contents of all files under a folder."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return digest([[p.relative_to(folder).as_posix(), file_digest(p)] for p in files])


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How one kind of unit is made. Raise `number` when the same inputs give other bytes than before.

    `parts` are recipes of which this one makes use: a raised number of theirs counts as one of its own. `modules` hold the code.
    """

    name: str
    number: int
    modules: tuple[str, ...]
    parts: tuple["Recipe", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.number}"

    @property
    def lineage(self) -> tuple["Recipe", ...]:
        """This recipe and all of which it makes use, each once, by name."""
        found = {self, *(one for part in self.parts for one in part.lineage)}
        return tuple(sorted(found, key=lambda recipe: recipe.name))

    @property
    def code(self) -> str:
        """Names and numbers, as they enter digests and the manifest of the base models."""
        return " ".join([str(self), *(str(one) for one in self.lineage if one != self)])

    @property
    def source(self) -> str:
        """The digest of the present source, for provenance."""
        return source_digest(tuple(sorted({module for one in self.lineage for module in one.modules})))

    def stamp(self, *inputs) -> "Stamp":
        """What a unit is made from: this recipe and these inputs, which `digest` accepts."""
        return Stamp(digest(self.code, *inputs), self)


class Stamp(str):
    """The digest of a recipe and its inputs; it knows the recipe."""

    recipe: Recipe

    def __new__(cls, text: str, recipe: Recipe) -> "Stamp":
        """Marks a digest with its recipe."""
        stamp = super().__new__(cls, text)
        stamp.recipe = recipe
        return stamp

    def __reduce__(self) -> tuple[type["Stamp"], tuple[str, Recipe]]:
        return Stamp, (str(self), self.recipe)


@functools.cache
def source_digest(modules: tuple[str, ...]) -> str:
    """A digest of the code of modules, which are found and not imported.

    Comments, docstrings, layout, imports at the top, the order of definitions and names of modules do not enter: code may move.
    """
    found: set[str] = set()
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"module {name}, which a recipe names, does not exist")
        found |= set(definitions(Path(spec.origin).read_text()))
    return digest(sorted(found))


def definitions(source: str) -> list[str]:
    """The syntax tree of every statement of a module but imports; docstrings removed, and the module's name before what is its own."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body[:1] = [] if body[1:] or isinstance(node, ast.Module) else [ast.Pass()]
    return [ast.dump(Unqualified(imported).visit(node)) for node in tree.body if node not in imports]


class Unqualified(ast.NodeTransformer):
    """Takes the names of imported modules off: `adapters.loaded` is what `loaded` is after its import."""

    def __init__(self, imported: set[str]):
        self.imported = imported

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A name in place of `module.name`."""
        if isinstance(node.value, ast.Name) and node.value.id in self.imported:
            return ast.Name(node.attr, node.ctx)
        return self.generic_visit(node)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder that replaces `path` on success and vanishes on an error.

    What killed processes left half written of the same file goes, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
            if not psutil.pid_exists(int(left.suffixes[-2][1:])):
                left.unlink(missing_ok=True)
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
    """The words of a unit's record, damaged bytes included: what it was made from, its sha256, recipe and source. OSError without one."""
    return sidecar(path).read_text(errors="replace").split()


SEALED = "-"  # in a record, in the place of what a unit was made from
REMEDY = "run the step named by its folder again, or restore it with `dvc checkout --force`"


def done(path: Path, made_from: Stamp) -> bool:
    """Whether a unit exists and was made from what `made_from` says, with the bytes that were written then."""
    return path.exists() and sidecar(path).exists() and record(path)[:2] == [made_from, file_digest(path)]


def finish(path: Path, made_from: Stamp) -> None:
    """Records what a unit was made from, after the unit itself is in place."""
    line = f"{made_from} {file_digest(path)} {made_from.recipe} {made_from.recipe.source}\n"
    write_bytes(sidecar(path), line.encode())


def seal(path: Path) -> None:
    """Records the bytes of a file that is no unit: it is written whenever its step runs, or was brought from elsewhere."""
    write_bytes(sidecar(path), f"{SEALED} {file_digest(path)} {SEALED} {SEALED}\n".encode())


def write_sealed(path: Path, data: bytes) -> None:
    """Writes a file atomically, and the record of its bytes."""
    write_bytes(path, data)
    seal(path)


def sealed(path: Path) -> bool:
    """Whether a file was recorded by `seal`."""
    return record(path)[:1] == [SEALED]


def verified(path: Path, *, required: bool = True) -> str:
    """The sha256 of a file's bytes, which are those of its record; without `required` it need not have one.

    Raises FileNotFoundError for a missing file, ValueError, naming it, for a missing record and for bytes that were changed since.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; `dvc pull` restores it, the step named by its folder makes it")
    found, beside = file_digest(path), sidecar(path)
    if not beside.exists():
        if required:
            raise ValueError(f"{path} has no record {beside.name} of its bytes; {REMEDY}")
        return found
    if (noted := record(path)[1:2]) != [found]:
        said = noted[0][:12] if noted else "nothing"
        raise ValueError(f"{path} is not as it was written: its bytes have the sha256 {found[:12]}..., its record says {said}; {REMEDY}")
    return found


def prune(folder: Path, keep: set[str], pattern: str) -> list[str]:
    """Deletes units under `folder` that match `pattern` and are not in `keep` (posix paths relative to the folder)."""
    found = {p.relative_to(folder).as_posix(): p for p in folder.glob(pattern)}
    extra = sorted(set(found) - keep)
    for name in extra:
        sidecar(found[name]).unlink(missing_ok=True)  # first: a record without its unit would never be found again
        found[name].unlink()
    return extra


@dataclasses.dataclass(frozen=True)
class Unit:
    """A file and what it is to be made from."""

    path: Path
    made_from: Stamp

    @property
    def done(self) -> bool:
        """Whether it is there and was made from that."""
        return done(self.path, self.made_from)

    def require(self) -> None:
        """Raises what `verified` raises, and ValueError for a unit that was made from something else."""
        verified(self.path)
        if not self.done:
            raise ValueError(f"{self.path} was made from other inputs or parameters; run the step named by its folder")

    def finish(self) -> None:
        """Records what it was made from, after the file is in place."""
        finish(self.path, self.made_from)


@dataclasses.dataclass(frozen=True)
class Shelf(Generic[Key]):
    """All units of one kind: files under a folder by key, each with its stamp. Files of that pattern under other names are leftovers."""

    folder: Path
    files: Mapping[Key, tuple[str, Stamp]]
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

        From now on, and as long as the shelf exists, the folder is this process's. RuntimeError names another one that has it.
        """
        locks.hold(self.folder, self)
        prune(self.folder, {name for name, _ in self.files.values()}, self.pattern)
        prune(self.folder, set(), "**/.*.partial")
        return [key for key in self.files if not self[key].done]
