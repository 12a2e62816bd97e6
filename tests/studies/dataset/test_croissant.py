"""Croissant metadata that follow the specification and find every row; a datasheet whose numbers are counted by hand."""

import dataclasses
import hashlib
import json
from pathlib import Path

import mlcroissant
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from tiny_dataset import ABOUT
from tiny_settings import changed

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.studies.dataset import croissant

PYTHON = {"sc:Text": str, "sc:Integer": int, "sc:Float": float, "sc:ImageObject": bytes}


@pytest.fixture
def folder(tmp_path) -> Path:
    """Image tables of one shift and the table of the one trajectory that was kept."""
    for shift, scales in {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0]}.items():
        keys = [(shift, name, 1, scale) for name in ("bag", "coat") for scale in scales]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(
            image=[tables.encode(np.full((2, 2, 3), place, np.uint8)) for place in range(len(keys))]
        )
        tables.write(table, tmp_path / "images" / f"{identifier(shift)}.parquet", tables.images)
    kept = pd.DataFrame({"shift": ["heavy snow"], "class": ["bag"], "seed": [1]})
    tables.write(kept, tmp_path / "kept.parquet", tables.kept_schema)
    return tmp_path


def written(folder: Path, **changes) -> dict:
    """The metadata as a reader finds it."""
    about = dataclasses.replace(ABOUT, **changes)
    croissant.write_croissant(folder / "croissant.json", folder / "images", folder / "kept.parquet", about=about)
    return json.loads((folder / "croissant.json").read_text())


def nodes(tree: object) -> list[dict]:
    """Every object in a tree."""
    if isinstance(tree, dict):
        return [tree, *(node for value in tree.values() for node in nodes(value))]
    return [node for value in tree for node in nodes(value)] if isinstance(tree, list) else []


def content(found: dict) -> list[dict]:
    """Every object but the context."""
    return nodes({key: value for key, value in found.items() if key != "@context"})


def test_what_the_specification_requires_of_a_data_set_is_there(folder):
    found = written(folder)
    required = {"@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished", "distribution"}
    assert required <= found.keys() and all(found[key] for key in required)
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0" and found["@type"] == "sc:Dataset"
    context = found["@context"]
    assert context["@vocab"] == context["sc"] == "https://schema.org/"
    assert context["cr"] == "http://mlcommons.org/croissant/" and context["conformsTo"] == "dct:conformsTo"


def test_every_term_is_of_schema_org_or_in_the_context(folder):
    found = written(folder)
    schema_org = {"name", "description", "version", "url", "license", "creator", "datePublished", "keywords", "distribution"}
    schema_org |= {"contentUrl", "contentSize", "encodingFormat", "sha256"}
    data = {key for record in found["recordSet"] for row in record.get("data", []) for key in row}
    used = {key for node in content(found) for key in node if not key.startswith("@")} - data
    assert used - schema_org <= found["@context"].keys()
    assert found["@context"]["recordSet"] == "cr:recordSet" and found["@context"]["column"] == "cr:column"


def test_every_file_is_where_it_says_with_its_size_and_checksum(folder):
    files = written(folder)["distribution"]
    assert [file["name"] for file in files] == ["unshifted.parquet", "heavy_snow.parquet", "kept.parquet"]
    for file in files:
        data = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest() and file["contentSize"] == f"{len(data)} B"
        assert file["@type"] == "cr:FileObject" and file["encodingFormat"] == "application/x-parquet"


def test_identifiers_are_unique_and_every_reference_leads_somewhere(folder):
    found = content(written(folder))
    defined = [node["@id"] for node in found if "@id" in node and len(node) > 1]
    referred = {node["@id"] for node in found if set(node) == {"@id"}}
    assert len(defined) == len(set(defined)) and referred <= set(defined)


def test_a_reader_of_the_metadata_alone_finds_every_row(folder):
    """Follows the specification by hand: field, source, file, column, type."""
    found = written(folder)
    places = {file["@id"]: folder / file["contentUrl"] for file in found["distribution"]}
    for record in found["recordSet"][2:]:
        columns = {}
        for field in record["field"]:
            source = field["source"]
            columns[field["name"]] = parquet.read_table(places[source["fileObject"]["@id"]])[source["extract"]["column"]].to_pylist()
            kinds = field["dataType"] if isinstance(field["dataType"], list) else [field["dataType"]]
            assert all(type(value) is PYTHON[kinds[0]] for value in columns[field["name"]])
        rows = pd.DataFrame(columns)
        keys = [key["@id"].split("/")[1] for key in record["key"]]
        assert not rows.duplicated(keys).any()
        pd.testing.assert_frame_equal(rows, pd.read_parquet(places[f"{record['@id']}.parquet"]))
        assert record["description"].split()[0] == str(len(rows))


def test_shifts_and_classes_are_enumerations_that_hold_every_value(folder):
    shifts, classes, *_ = written(folder)["recordSet"]
    assert shifts["data"] == [{"shifts/name": "heavy snow", "shifts/images": 4}, {"shifts/name": "unshifted", "shifts/images": 2}]
    assert classes["data"] == [{"classes/name": "bag", "classes/images": 3}, {"classes/name": "coat", "classes/images": 3}]
    assert shifts["dataType"] == classes["dataType"] == "sc:Enumeration"
    assert shifts["key"] == {"@id": "shifts/name"} and [field["@id"] for field in shifts["field"]] == list(shifts["data"][0])


def test_equal_tables_give_equal_bytes_and_a_changed_one_another_checksum(folder):
    first = written(folder)
    before = (folder / "croissant.json").read_bytes()
    written(folder)
    assert (folder / "croissant.json").read_bytes() == before
    tables.write(pd.DataFrame({"shift": ["heavy snow"], "class": ["coat"], "seed": [1]}), folder / "kept.parquet", tables.kept_schema)
    changed = [old["sha256"] != new["sha256"] for old, new in zip(first["distribution"], written(folder)["distribution"], strict=True)]
    assert changed == [False, False, True]


@pytest.mark.parametrize(
    ("key", "value"),
    [("version", "1.0"), ("url", "example"), ("date_published", "2026"), ("license", []), ("name", ""), ("creator", "")],
)
def test_metadata_that_the_specification_would_refuse_cannot_be_described(key, value):
    with pytest.raises(ValueError, match=rf"dataset\.{key}"):
        changed(ABOUT, **{key: value})


def test_missing_tables_are_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no image table"):
        croissant.metadata(folder / "none", folder / "kept.parquet", about=ABOUT, root=folder)
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        croissant.metadata(folder / "images", folder / "none.parquet", about=ABOUT, root=folder)


def test_tables_in_other_folders_are_found_from_where_the_metadata_lie(folder):
    croissant.write_croissant(folder / "about" / "croissant.json", folder / "images", folder / "kept.parquet", about=ABOUT)
    found = json.loads((folder / "about" / "croissant.json").read_text())["distribution"]
    assert [file["contentUrl"] for file in found] == ["../images/unshifted.parquet", "../images/heavy_snow.parquet", "../kept.parquet"]
    assert all((folder / "about" / file["contentUrl"]).exists() for file in found)


def test_mlcroissant_finds_no_issue_and_reads_every_record(folder):
    croissant.write_croissant(folder / "about" / "croissant.json", folder / "images", folder / "kept.parquet", about=ABOUT)
    found = mlcroissant.Dataset(jsonld=str(folder / "about" / "croissant.json"))
    assert not found.metadata.ctx.issues.errors
    records = list(found.records(record_set="heavy_snow"))
    assert [(record["heavy_snow/seed"], record["heavy_snow/scale"]) for record in records] == [(1, 0.5), (1, 1.0)] * 2
    assert [record["heavy_snow/class"] for record in records] == [b"bag", b"bag", b"coat", b"coat"]
