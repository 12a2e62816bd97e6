"""The benchmark's Croissant metadata (MLCommons), from its tables, built by the format's library.

Every parquet table is a file with its sha256 and a set of records whose fields are its columns, so any Croissant loader reads it.
"""

import json
import os
from pathlib import Path

import mlcroissant as mlc
import pyarrow as arrow
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
ENUMERATIONS = {"shift": "shifts", "class": "classes"}


def write_croissant(path: Path, images: Path, kept: Path, *, about: Dataset) -> None:
    """Writes the metadata of the image tables in a folder and of the table of kept trajectories; the same tables give the same bytes.

    Raises FileNotFoundError where there is no image table or no table of trajectories, ValueError for a damaged one.
    """
    files = {table.stem: table for table in benchmark.shards(images, None)} | {"kept": kept}
    metadata = mlc.Metadata(
        name=about.name,
        description=about.description,
        version=about.version,
        url=about.url,
        license=about.license,
        creators=[mlc.Organization(name=about.creator)],
        date_published=about.date_published,
        cite_as=about.cite_as,
        keywords=about.keywords,
        distribution=[file_object(name, file, path.parent) for name, file in files.items()],
        record_sets=[*enumerations(list(files.values())[:-1]), *(record_set(name, file) for name, file in files.items())],
    )
    units.write_bytes(path, (json.dumps(metadata.to_json(), indent=2, default=str) + "\n").encode())


def file_object(name: str, file: Path, root: Path) -> mlc.FileObject:
    """A table as a file with its size and checksum, its place relative to `root`."""
    identity = {"id": f"{name}.parquet", "name": f"{name}.parquet", "encoding_formats": ["application/x-parquet"]}
    place = Path(os.path.relpath(file, root)).as_posix()
    return mlc.FileObject(**identity, content_url=place, content_size=f"{file.stat().st_size} B", sha256=units.verified(file))


def enumerations(files: list[Path]) -> list[mlc.RecordSet]:
    """All shifts and all classes with the number of stored images of each, as sets of records that others refer to."""
    images, sets = arrow.concat_tables([tables.load(file, columns=tables.KEY) for file in files]), []
    for column, name in ENUMERATIONS.items():
        counts = images.group_by(column).aggregate([(column, "count")]).sort_by(column).to_pylist()
        fields = [field(name, "name", mlc.DataType.TEXT, MEANINGS[column]), field(name, "images", mlc.DataType.INTEGER, "stored images")]
        data = [{f"{name}/name": row[column], f"{name}/images": row[f"{column}_count"]} for row in counts]
        sets.append(mlc.RecordSet(id=name, name=name, key=[f"{name}/name"], fields=fields, data=data, data_types=["sc:Enumeration"]))
    return sets


def record_set(name: str, file: Path) -> mlc.RecordSet:
    """A table as a set of records: its columns with their types, its key, and where they come from."""
    schema, rows = parquet.read_schema(file), parquet.read_metadata(file).num_rows
    key = tables.TRAJECTORY if name == "kept" else tables.KEY
    what = f"images under the shift {name.replace('_', ' ')}"
    what = {"kept": "trajectories that passed the filter at all scales", UNSHIFTED: "images without a shift"}.get(name, what)
    fields = [field(name, column.name, TYPES[str(column.type)], MEANINGS[column.name]) for column in schema]
    for entry, column in zip(fields, schema.names, strict=True):
        entry.source = mlc.Source(file_object=f"{name}.parquet", extract=mlc.Extract(column=column))
        if column in ENUMERATIONS:
            entry.references = mlc.Source(field=f"{ENUMERATIONS[column]}/name")
    return mlc.RecordSet(id=name, name=name, description=f"{rows} {what}", key=[f"{name}/{column}" for column in key], fields=fields)


def field(record: str, name: str, kind: str, meaning: str) -> mlc.Field:
    """A field of a set of records."""
    return mlc.Field(id=f"{record}/{name}", name=name, description=meaning, data_types=[kind])
