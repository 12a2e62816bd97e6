"""Units of work: a file, written atomically, beside the digest of everything it was made from.

A rerun recomputes just the units whose digest differs, so a killed run loses at most one unit.
"""

import ast
import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType


def digest(*parts) -> str:
    """The sha256 of the canonical JSON of plain values, mappings and dataclasses.

    Raises TypeError for anything without a canonical form.
    """
    plain = [dataclasses.asdict(p) if dataclasses.is_dataclass(p) and not isinstance(p, type) else p for p in parts]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def directory_digest(folder: Path) -> str:
    """A digest of the names and contents of all files under a folder."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return digest([[p.relative_to(folder).as_posix(), file_digest(p)] for p in files])


def code_digest(*modules: ModuleType) -> str:
    """A digest of modules' code without comments, docstrings and layout."""
    return digest([[m.__name__, hashlib.sha256(code_only(inspect.getsource(m)).encode()).hexdigest()] for m in modules])


def code_only(source: str) -> str:
    """The syntax tree of a source text as a string, docstrings removed."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body[:1] = [] if body[1:] else [ast.Pass()]
    return ast.dump(tree)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder that replaces `path` on success and vanishes on an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file atomically."""
    with atomic(path) as partial:
        partial.write_bytes(data)


def sidecar(path: Path) -> Path:
    """Where the digest of a unit is kept."""
    return path.with_name(path.name + ".digest")


def done(path: Path, made_from: str) -> bool:
    """Whether a unit exists and was made from what `made_from` says, with the bytes that were written then."""
    record = sidecar(path)
    return path.exists() and record.exists() and record.read_text().split() == [made_from, file_digest(path)]


def finish(path: Path, made_from: str) -> None:
    """Records what a unit was made from, after the unit itself is in place."""
    write_bytes(sidecar(path), f"{made_from} {file_digest(path)}\n".encode())


def prune(folder: Path, keep: set[str], pattern: str) -> list[str]:
    """Deletes units under `folder` that match `pattern` and are not in `keep` (posix paths relative to the folder)."""
    found = {p.relative_to(folder).as_posix(): p for p in folder.glob(pattern)}
    extra = sorted(set(found) - keep)
    for name in extra:
        found[name].unlink()
        sidecar(found[name]).unlink(missing_ok=True)
    return extra
