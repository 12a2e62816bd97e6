"""The base models of a parameter file, made sure of before a step reads them: local directory or hub, digests, noise schedule."""

import contextlib
import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from cnslib.core import paths, units
from cnslib.core.names import demand
from cnslib.core.settings.method import STRIDES, Base

WITHDRAWN = "stabilityai/stable-diffusion-2"
EXPLANATION = (
    "; Stable Diffusion 2 was withdrawn from the hub by its publisher in November 2025: name a directory that holds a copy of it, "
    "or another hub id that carries one, and its sha256"
)
# How files begin that are no weights: an answer of a login or error page, and what Git LFS leaves in place of a file.
STAND_INS = dict.fromkeys((b"<!doctype", b"<html", b"<head", b"<?xml"), "is a web page, not weights: the download was answered by a page")
STAND_INS[b"version https://git-lfs"] = "is a Git LFS pointer, not weights; `git lfs pull` fetches the file itself"
SCHEDULER = "scheduler/scheduler_config.json"


def require_downloaded(path: Path, *, sha256: str = "") -> None:
    """Raises FileNotFoundError or ValueError unless the file is there, holds data rather than a stand-in, and has the digest if given."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    with open(path, "rb") as stream:
        start = stream.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for begin, problem in STAND_INS.items():
        if not start or start.startswith(begin):
            raise ValueError(f"{path} {problem if start else 'is empty; accepted: a file of weights'}")
    if sha256 and not (digest := units.file_digest(path)).startswith(sha256.lower()):
        raise ValueError(f"{path} has sha256 {digest}; accepted: {sha256.lower()}")


def resolve(local: str = "", hub: str = "", revision: str = "", sha256: str = "", *, key: str, file: str) -> Path:
    """The path of one file of weights: `local` (the file, or a directory with `file` in it), else `file` of a hub repository.

    `revision` is a branch, tag or commit, `sha256` the digest or its first 8 or more digits.
    """
    plain = not sha256 or (8 <= len(sha256) <= 64 and set(sha256.lower()) <= set("0123456789abcdef"))
    demand(plain, f"{key}.sha256", sha256, "8 to 64 hexadecimal digits")
    place = paths.resolve(local)
    path = place / file if place.is_dir() else place
    if not (local and path.is_file()):
        if not hub or (local and place.exists()):
            what = f"{path} does not exist" if local else "neither a local path nor a hub id is given"
            accepted = f"the file {file}, a directory that holds it, or no local path and a hub id with its revision"
            raise FileNotFoundError(f"{key}: {what}; accepted: {accepted}{EXPLANATION if WITHDRAWN in local else ''}")
        path = download(hub, revision, key=key, file=file)
    with errors_naming(key):
        require_downloaded(path, sha256=sha256)
    return path


def resolve_folder(local: str = "", hub: str = "", revision: str = "", *, key: str, sha256: Mapping[str, str]) -> Path:
    """The directory that holds all the files named in `sha256` (with "" where a digest is not known); errors as in `resolve`."""
    demand(bool(sha256), f"{key}.sha256", dict(sha256), "a digest, or an empty text, for each file")
    resolved = {file: resolve(local, hub, revision, digest, key=key, file=file) for file, digest in sha256.items()}
    file, path = next(iter(resolved.items()))
    return path.parents[len(Path(file).parts) - 1]


def download(hub: str, revision: str, *, key: str, file: str) -> Path:
    """One file of a hub repository, from the hub's cache where it is there."""
    from huggingface_hub import hf_hub_download  # most steps start without it
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(hf_hub_download(hub, file, revision=revision or None))
    except (OSError, ValueError, EntryNotFoundError) as error:
        short = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        where = f"{file} of {hub} at revision {revision or 'main'}"
        accepted = f"a local path in {key}, or a hub id and revision that can be reached{EXPLANATION if WITHDRAWN in hub else ''}"
        raise FileNotFoundError(f"{key}: {where} cannot be fetched ({short}); accepted: {accepted}") from error


@contextlib.contextmanager
def errors_naming(key: str) -> Iterator[None]:
    """Puts the parameter in front of the errors of reading a file."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise (FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError)(f"{key}: {error}") from error


def document(path: Path, *, key: str, remedy: str = "copy it again") -> Any:
    """What a JSON file holds. ValueError names the parameter and a file that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{key}: {path} is no JSON file ({error}); {remedy}") from None


def manifest(path: Path, *, key: str) -> dict:
    """The entries of a manifest by model; none where there is no manifest. ValueError for one that is damaged."""
    return document(path, key=key, remedy="`dvc checkout data.dvc --force` restores it") if path.is_file() else {}


def require_recorded(folder: Path, *, key: str) -> None:
    """Raises ValueError, naming the parameter, unless a model directory has the files of which the manifest above it, if any, tells."""
    for shelf in folder.resolve().parents[:2]:
        path = shelf / "manifest.json"
        entry = manifest(path, key=key).get(folder.resolve().relative_to(shelf).as_posix())
        if entry and entry.get("files") != (digest := units.directory_digest(folder)):
            difference = f"its files have the digest {digest[:12]}..., {path} tells of {str(entry.get('files'))[:12]}"
            raise ValueError(f"{key}: {folder} is not as it was built: {difference}; `dvc checkout data.dvc --force` restores it")


def provide(base: Base, needed: Collection[str]) -> Base:
    """The shared parameters with the directory of each needed model in its key.

    `needed` are keys of `base`. A model in `base.sources` lies in the directory of its key, or comes from its hub id and revision, its
    files checked against their sha256.
    """
    fetched: dict[str, Any] = {}
    for key in base.sources.keys() & needed:
        place = base.sources[key]  # type: ignore[index]
        folder = resolve_folder(getattr(base, key), place.hub, place.revision, key=f"base.{key}", sha256=place.sha256)
        fetched[key] = paths.shown(folder)
    provided = dataclasses.replace(base, **fetched)
    if "pipeline" in needed:
        require_schedule(paths.resolve(provided.pipeline), base.prediction)
    return provided


def require_schedule(pipeline: Path, prediction: str) -> None:
    """Raises ValueError unless the scheduler's file says what the parameters say of the prediction, which no later step can notice."""
    path = pipeline / SCHEDULER
    if not path.exists():
        return  # the loader of the pipeline tells what a whole directory holds
    config = json.loads(path.read_text())
    schedule = config.get("prediction_type", "epsilon"), config.get("timestep_spacing", "leading")  # the library's own defaults
    if schedule[0] != prediction or schedule[1] not in STRIDES:
        accepted = f"{prediction} (base.prediction), {' or '.join(STRIDES)}"
        raise ValueError(f"base.pipeline: {path} says prediction_type {schedule[0]}, timestep_spacing {schedule[1]}; accepted: {accepted}")
