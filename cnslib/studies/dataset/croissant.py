"""The benchmark's Croissant 1.0 metadata, from its tables.

Croissant is JSON-LD (http://mlcommons.org/croissant/1.0). Every table is a FileObject with its sha256 and a RecordSet whose fields are
its columns; so any Croissant loader reads it as it lies.
"""

import json
import os
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.studies import Dataset
from cnslib.data import benchmark

VERSION = "http://mlcommons.org/croissant/1.0"
ALIASES = (
    *(
        "citeAs",
        "column",
        "equivalentProperty",
        "extract",
        "field",
        "fileObject",
        "fileProperty",
        "fileSet",
        "format",
        "includes",
        "isLiveDataset",
    ),
    *(
        "jsonPath",
        "key",
        "md5",
        "parentField",
        "path",
        "recordSet",
        "references",
        "regex",
        "repeated",
        "replace",
        "samplingRate",
        "separator",
    ),
    *("source", "subField", "transform"),
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in ALIASES},
}
TYPES = {"string": "sc:Text", "int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean", "binary": "sc:ImageObject"}
MEANINGS = {
    "shift": "nuisance shift; 'unshifted' for the images of scale 0, which all shifts share",
    "class": "what the image shows: the label",
    "seed": "seed of the initial noise, shared by all scales, shifts and classes",
    "scale": "slider scale, 0 without a shift",
    "image": "the picture, PNG or JPEG",
}
ENUMERATIONS = {"shift": "shifts", "class": "classes"}
KEPT = "kept"


def write_croissant(path: Path, images: Path, kept: Path, *, about: Dataset) -> dict:
    """Writes the metadata as JSON-LD; the same tables give the same bytes. Returns it."""
    found = metadata(images, kept, about=about, root=path.parent)
    units.write_bytes(path, (json.dumps(found, indent=2) + "\n").encode())
    return found


def metadata(images: Path, kept: Path, *, about: Dataset, root: Path) -> dict:
    """The metadata of the image tables in a folder and of the table of kept trajectories; places are relative to `root`.

    Raises FileNotFoundError where there is no image table or no table of trajectories, ValueError for a damaged one.
    """
    files = {path.stem: path for path in benchmark.shards(images, None)} | {KEPT: kept}
    held = {name: tables.load(path, columns=columns(name)) for name, path in files.items()}
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": about.name,
        "description": about.description,
        "version": about.version,
        "url": about.url,
        "license": about.license,
        "creator": {"@type": "sc:Organization", "name": about.creator},
        "datePublished": about.date_published,
        "citeAs": about.cite_as,
        "keywords": about.keywords,
        "isLiveDataset": False,
        "distribution": [file_object(name, path, root) for name, path in files.items()],
        "recordSet": [*enumerations(list(held.values())), *(record_set(name, path, held[name].num_rows) for name, path in files.items())],
    }


def columns(name: str) -> list[str]:
    """The columns that the counts and enumerations need: the key, without the pictures."""
    return tables.TRAJECTORY if name == KEPT else tables.KEY


def file_object(name: str, path: Path, root: Path) -> dict:
    """One table as a file with its checksum."""
    return {
        "@type": "cr:FileObject",
        "@id": f"{name}.parquet",
        "name": f"{name}.parquet",
        "contentUrl": Path(os.path.relpath(path, root)).as_posix(),
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": units.file_digest(path),
    }


def enumerations(held: list[arrow.Table]) -> list[dict]:
    """The shifts and the classes of all tables, with the number of images of each, as sets of records that others refer to."""
    pictures = arrow.concat_tables([table.select(tables.TRAJECTORY) for table in held if "scale" in table.column_names])
    found = []
    for column, name in ENUMERATIONS.items():
        counted = pictures.group_by(column).aggregate([(column, "count")]).sort_by(column)
        records = [{f"{name}/name": row[column], f"{name}/images": row[f"{column}_count"]} for row in counted.to_pylist()]
        fields = [field(name, "name", "sc:Text", MEANINGS[column]), field(name, "images", "sc:Integer", "stored images")]
        described = {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "description": f"{len(records)} {name}" + (", the images without a shift among them" if column == "shift" else ""),
            "dataType": "sc:Enumeration",
        }
        found.append({**described, "key": {"@id": f"{name}/name"}, "field": fields, "data": records})
    return found


def record_set(name: str, path: Path, rows: int) -> dict:
    """One table as a set of records: its columns with their types, its key, and where they come from."""
    fields = []
    for column in parquet.read_schema(path):
        demand(str(column.type) in TYPES, f"column {column.name} of {path}", str(column.type), ", ".join(TYPES))
        origin = {"fileObject": {"@id": f"{name}.parquet"}, "extract": {"column": column.name}}
        entry = field(name, column.name, TYPES[str(column.type)], MEANINGS[column.name]) | {"source": origin}
        if column.name in ENUMERATIONS:
            entry["references"] = {"field": {"@id": f"{ENUMERATIONS[column.name]}/name"}}
        if column.name == "class":
            entry["dataType"] = ["sc:Text", "cr:Label"]
        fields.append(entry)
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{rows} {described(name)}",
        "key": [{"@id": f"{name}/{column}"} for column in columns(name)],
        "field": fields,
    }


def described(name: str) -> str:
    """What the records of a table are."""
    if name == KEPT:
        return "trajectories (shift, class, seed) that passed the filter at all scales"
    return "images without a shift, one per class and seed" if name == UNSHIFTED else f"images under the shift {name.replace('_', ' ')}"


def field(record: str, name: str, kind: str, meaning: str) -> dict:
    """One field of a set of records."""
    return {"@type": "cr:Field", "@id": f"{record}/{name}", "name": name, "description": meaning, "dataType": kind}
