"""The benchmark's Croissant metadata (MLCommons), from its tables, built by the format's library.

Every parquet table is a file with its sha256 and a set of records whose fields are its columns, so any Croissant loader reads it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlcroissant as mlc
import pyarrow.parquet as parquet

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED

TYPES = {
    "string": mlc.DataType.TEXT,
    "int64": mlc.DataType.INTEGER,
    "double": mlc.DataType.FLOAT,
    "binary": mlc.DataType.IMAGE_OBJECT,
    "list": mlc.DataType.TEXT,
}
KEYS = {"kept": tables.TRAJECTORY, "predictions": ["model", *tables.KEY]}
CONFORMS = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
MEANINGS = {
    "model": "which classifier predicts",
    "top1": "the label that it gives the highest score",
    "top5": "the five labels with the highest scores, best first",
    "probability": "probability of the class",
    "margin": "logit of the class less the largest other one",
    "preprocessing": "a digest of how the classifier is shown pictures",
    "shift": "nuisance shift; 'unshifted' for the images of scale 0, which all shifts share",
    "class": "what the image shows: the label",
    "seed": "seed of the initial noise, shared by all scales, shifts and classes",
    "scale": "slider scale, 0 without a shift",
    "image": "the picture, PNG or JPEG",
}


def write(path: Path, files: Mapping[str, Path], *, about: Mapping[str, Any]) -> None:
    """Writes the metadata of some tables by name, equal bytes for equal ones; `about` is the section `dataset` of the parameters."""
    metadata = mlc.Metadata(
        **{name: value for name, value in about.items() if name != "creator"},
        conforms_to=CONFORMS,
        creators=[mlc.Organization(name=about["creator"])],
        distribution=[file_object(name, file, path.parent) for name, file in files.items()],
        record_sets=[record_set(name, file) for name, file in files.items()],
    )
    units.write_bytes(path, (json.dumps(metadata.to_json(), indent=2, default=str) + "\n").encode())


def file_object(name: str, file: Path, root: Path) -> mlc.FileObject:
    """A table as a file with its size and checksum, its place relative to `root`."""
    identity = {"id": f"{name}.parquet", "name": f"{name}.parquet", "encoding_formats": ["application/x-parquet"]}
    place = Path(os.path.relpath(file, root)).as_posix()
    return mlc.FileObject(**identity, content_url=place, content_size=f"{file.stat().st_size} B", sha256=units.verified(file))


def record_set(name: str, file: Path) -> mlc.RecordSet:
    """A table as a set of records: its columns with their types, its key, and where they come from."""
    what = f"images under the shift {name.replace('_', ' ')}"
    what = {
        "predictions": "predictions of images",
        "kept": "trajectories that passed the filter at all scales",
        UNSHIFTED: "images without a shift",
    }.get(name, what)
    fields = []
    for column in parquet.read_schema(file):
        source = mlc.Source(file_object=f"{name}.parquet", extract=mlc.Extract(column=column.name))
        about = {"id": f"{name}/{column.name}", "name": column.name, "description": MEANINGS[column.name], "source": source}
        plain = str(column.type).partition("<")[0]
        kind = {"is_array": True, "array_shape": "-1"} if plain == "list" else {}
        fields.append(mlc.Field(**about, **kind, data_types=[TYPES[plain]]))
    key = [f"{name}/{column}" for column in KEYS.get(name, tables.KEY)]
    return mlc.RecordSet(id=name, name=name, description=f"{parquet.read_metadata(file).num_rows} {what}", key=key, fields=fields)
