"""Croissant metadata: the format's reference library finds no issue and reads every row, and checksums are those of the files."""

import hashlib
import json
from pathlib import Path

import mlcroissant
import numpy as np
import pandas as pd
import pytest
from tiny_dataset import ABOUT
from tiny_settings import changed

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.data import croissant


@pytest.fixture
def metadata(tmp_path) -> Path:
    """Metadata of image tables of one shift, in another folder, and of the one trajectory that was kept."""
    for shift, scales in {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0]}.items():
        keys = [(shift, name, 1, scale) for name in ("bag", "coat") for scale in scales]
        images = [tables.encode(np.full((2, 2, 3), place, np.uint8)) for place in range(len(keys))]
        file = tmp_path / "images" / f"{identifier(shift)}.parquet"
        tables.write(pd.DataFrame(keys, columns=tables.KEY).assign(image=images), file, tables.images)
        units.record_bytes(file)
    kept = pd.DataFrame({"shift": ["heavy snow"], "class": ["bag"], "seed": [1]})
    tables.write(kept, tmp_path / "kept.parquet", tables.kept_schema)
    units.record_bytes(tmp_path / "kept.parquet")
    return tmp_path / "about" / "croissant.json"


def write(path: Path) -> dict:
    croissant.write_croissant(path, path.parents[1] / "images", path.parents[1] / "kept.parquet", about=ABOUT)
    return json.loads(path.read_text())


def test_the_library_of_the_format_finds_no_issue_and_reads_every_row(metadata):
    write(metadata)
    dataset = mlcroissant.Dataset(jsonld=str(metadata))
    assert not dataset.metadata.ctx.issues.errors and not dataset.metadata.ctx.issues.warnings
    records = list(dataset.records(record_set="heavy_snow"))
    assert [(record["heavy_snow/seed"], record["heavy_snow/scale"]) for record in records] == [(1, 0.5), (1, 1.0)] * 2
    assert [record["heavy_snow/class"] for record in records] == [b"bag", b"bag", b"coat", b"coat"]
    shifts = [(record["shifts/name"], record["shifts/images"]) for record in dataset.records(record_set="shifts")]
    assert shifts == [("heavy snow", 4), ("unshifted", 2)]


def test_every_file_is_where_it_says_with_its_size_and_checksum(metadata):
    files = write(metadata)["distribution"]
    assert [file["contentUrl"] for file in files] == ["../images/unshifted.parquet", "../images/heavy_snow.parquet", "../kept.parquet"]
    for file in files:
        data = (metadata.parent / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest() and file["contentSize"] == f"{len(data)} B"


def test_equal_tables_give_equal_bytes(metadata):
    write(metadata)
    before = metadata.read_bytes()
    write(metadata)
    assert metadata.read_bytes() == before


@pytest.mark.parametrize(("key", "value"), [("version", "1.0"), ("url", "example"), ("date_published", "2026"), ("license", [])])
def test_metadata_that_the_format_would_refuse_cannot_be_described(key, value):
    with pytest.raises(ValueError, match=rf"dataset\.{key}"):
        changed(ABOUT, **{key: value})


def test_missing_tables_are_named(metadata):
    with pytest.raises(FileNotFoundError, match="holds no image table"):
        croissant.write_croissant(metadata, metadata.parent / "none", metadata.parents[1] / "kept.parquet", about=ABOUT)
