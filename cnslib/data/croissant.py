"""The benchmark's Croissant metadata (MLCommons), from its tables, built by the format's library.

Every parquet table is a file with its sha256 and a set of records whose fields are its columns, so any Croissant loader reads it.
"""

import json
import os
from pathlib import Path

import mlcroissant as mlc
import pyarrow.parquet as parquet

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.sections import Dataset
from cnslib.data import benchmark

TYPES = {
    "string": mlc.DataType.TEXT,
    "int64": mlc.DataType.INTEGER,
    "double": mlc.DataType.FLOAT,
    "binary": mlc.DataType.IMAGE_OBJECT,
}
MEANINGS = {
    "shift": "nuisance shift; 'unshifted' for the images of scale 0, which all shifts share",
    "class": "what the image shows: the label",
    "seed": "seed of the initial noise, shared by all scales, shifts and classes",
    "scale": "slider scale, 0 without a shift",
    "image": "the picture, PNG or JPEG",
}


def write_croissant(path: Path, images: Path, kept: Path, *, about: Dataset) -> None:
    """Writes the metadata of the image tables in a folder and of the table of kept trajectories; the same tables give the same bytes."""
    files = {table.stem: table for table in benchmark.shards(images)} | {"kept": kept}
    entries = {name: value for name, value in vars(about).items() if name != "creator"}
    metadata = mlc.Metadata(
        **entries,
        creators=[mlc.Organization(name=about.creator)],
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
    what = {"kept": "trajectories that passed the filter at all scales", UNSHIFTED: "images without a shift"}.get(name, what)
    fields = []
    for column in parquet.read_schema(file):
        source = mlc.Source(file_object=f"{name}.parquet", extract=mlc.Extract(column=column.name))
        about = {"id": f"{name}/{column.name}", "name": column.name, "description": MEANINGS[column.name], "source": source}
        fields.append(mlc.Field(**about, data_types=[TYPES[str(column.type)]]))
    key = [f"{name}/{column}" for column in (tables.TRAJECTORY if name == "kept" else tables.KEY)]
    return mlc.RecordSet(id=name, name=name, description=f"{parquet.read_metadata(file).num_rows} {what}", key=key, fields=fields)
