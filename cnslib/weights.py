"""Files of weights that others made: a local path first, then a hub id with its revision; each is checked before anything reads it."""

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError

from cnslib import paths, pickles, units
from cnslib.config import demand

WITHDRAWN = "stabilityai/stable-diffusion-2"
EXPLANATION = (
    "; Stable Diffusion 2 was withdrawn from the hub by its publisher in November 2025: name a directory that holds a copy of it, "
    "or another hub id that carries one, and its sha256"
)


def resolve(local: str = "", hub: str = "", revision: str = "", sha256: str = "", *, key: str, file: str) -> Path:
    """The path of one file of weights: `local` (the file, or a directory with `file` in it), else `file` of a hub repository.

    `revision` pins the repository (a branch, tag or commit; its main branch without), `sha256` is the file's digest or its first
    8 or more digits. Raises FileNotFoundError for a file that is nowhere, ValueError for one that is empty, an HTML page, a
    Git-LFS pointer or has another digest; all name the parameter `key`.
    """
    path = present(local, hub, key=key, file=file)
    if path is None:
        path = download(hub, revision, key=key, file=file)
    check(path, sha256, key=key)
    return path


def resolve_folder(local: str = "", hub: str = "", revision: str = "", *, key: str, sha256: Mapping[str, str]) -> Path:
    """The directory that holds all the files named in `sha256` (with "" where a digest is not known); errors as in `resolve`."""
    demand(bool(sha256), f"{key}.sha256", dict(sha256), "a digest, or an empty text, for each file")
    found = {file: resolve(local, hub, revision, digest, key=key, file=file) for file, digest in sha256.items()}
    file, path = next(iter(found.items()))
    return path.parents[len(Path(file).parts) - 1]


def present(local: str, hub: str, *, key: str, file: str) -> Path | None:
    """The file at a local path; None where nothing is at the path and a hub id is given."""
    place = paths.resolve(local)
    path = place / file if place.is_dir() else place
    if local and path.is_file():
        return path
    if hub and not (local and place.exists()):
        return None
    what = f"{path} does not exist" if local else "neither a local path nor a hub id is given"
    accepted = f"the file {file}, a directory that holds it, or no local path and a hub id with its revision"
    raise FileNotFoundError(f"{key}: {what}; accepted: {accepted}{explanation(local, hub)}")


def download(hub: str, revision: str, *, key: str, file: str) -> Path:
    """One file of a hub repository, from the hub's cache where it is there."""
    try:
        return Path(hf_hub_download(hub, file, revision=revision or None))
    except (OSError, ValueError, EntryNotFoundError) as error:
        short = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        where = f"{file} of {hub} at revision {revision or 'main'}"
        accepted = f"a local path in {key}, or a hub id and revision that can be reached"
        raise FileNotFoundError(f"{key}: {where} cannot be fetched ({short}); accepted: {accepted}{explanation(hub)}") from error


def explanation(*names: str) -> str:
    """What a user of Stable Diffusion 2 has to know where it cannot be found; nothing for other models."""
    return EXPLANATION if any(WITHDRAWN in name for name in names) else ""


def check(path: Path, sha256: str, *, key: str) -> None:
    """Raises ValueError for a file that is no weights at all, or not those whose digest is given."""
    if not path.stat().st_size:
        raise ValueError(f"{key}: {path} is empty; accepted: a file of weights")
    with named(key):
        pickles.require_downloaded(path)
    if sha256:
        check_digest(path, sha256.lower(), key=key)


def check_digest(path: Path, sha256: str, *, key: str) -> None:
    """Raises ValueError for a text that is no digest and for a file with another one."""
    plain = 8 <= len(sha256) <= 64 and set(sha256) <= set("0123456789abcdef")
    demand(plain, f"{key}.sha256", sha256, "8 to 64 hexadecimal digits")
    found = units.file_digest(path)
    if not found.startswith(sha256):
        raise ValueError(f"{key}: {path} has the sha256 {found}; accepted: {sha256}")


def read(path: Path, *, key: str) -> dict[str, Any]:
    """What a safetensors file or a torch checkpoint holds, on the CPU; nothing in it is executed.

    Raises ValueError, naming the key, for a damaged file and for a checkpoint that holds more than tensors and plain values.
    """
    with named(key):
        if path.suffix == ".safetensors":
            return dict(pickles.read_weights(path))
        with torch.serialization.safe_globals([argparse.Namespace]):  # training scripts store their settings in one; plain values
            found = pickles.load(path)
    if not isinstance(found, dict):
        raise ValueError(f"{key}: {path} holds a {type(found).__name__}; accepted: a mapping of names to tensors")
    return found


@contextlib.contextmanager
def named(key: str) -> Iterator[None]:
    """Puts the parameter in front of the errors of reading a file."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"{key}: {error}") from error
