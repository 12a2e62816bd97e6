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
from tiny_settings import changed

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Dataset
from cnslib.studies import dataset

ABOUT = Dataset(
    bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"),
    name="CNS-Bench mini",
    description="Garments under continuous nuisance shifts.",
    version="1.0.0",
    url="https://example.org/cns",
    license=["https://spdx.org/licenses/MIT"],
    creator="The authors",
    date_published="2026-01-02",
    cite_as="@inproceedings{cns, title={CNS-Bench}}",
    keywords=["robustness"],
    parts={"code": "MIT", "Fashion-MNIST": "MIT, Zalando SE"},
)
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
    dataset.write_croissant(folder / "croissant.json", folder / "images", folder / "kept.parquet", about=about)
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
        dataset.metadata(folder / "none", folder / "kept.parquet", about=ABOUT, root=folder)
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        dataset.metadata(folder / "images", folder / "none.parquet", about=ABOUT, root=folder)


def test_tables_in_other_folders_are_found_from_where_the_metadata_lie(folder):
    dataset.write_croissant(folder / "about" / "croissant.json", folder / "images", folder / "kept.parquet", about=ABOUT)
    found = json.loads((folder / "about" / "croissant.json").read_text())["distribution"]
    assert [file["contentUrl"] for file in found] == ["../images/unshifted.parquet", "../images/heavy_snow.parquet", "../kept.parquet"]
    assert all((folder / "about" / file["contentUrl"]).exists() for file in found)


def test_mlcroissant_finds_no_issue_and_reads_every_record(folder):
    dataset.write_croissant(folder / "about" / "croissant.json", folder / "images", folder / "kept.parquet", about=ABOUT)
    found = mlcroissant.Dataset(jsonld=str(folder / "about" / "croissant.json"))
    assert not found.metadata.ctx.issues.errors
    records = list(found.records(record_set="heavy_snow"))
    assert [(record["heavy_snow/seed"], record["heavy_snow/scale"]) for record in records] == [(1, 0.5), (1, 1.0)] * 2
    assert [record["heavy_snow/class"] for record in records] == [b"bag", b"bag", b"coat", b"coat"]


SECTIONS = read.load(paths.resolve("params.yaml"))
PICTURE = tables.encode(np.zeros((6, 8, 3), np.uint8))
KEPT = [("heavy snow", "bag", 1), ("heavy snow", "coat", 1), ("heavy fog", "bag", 1)]
SETTINGS = dataset.Settings(
    SECTIONS["base"].pipeline, SECTIONS["base"].drawing, *(SECTIONS[name] for name in ("sliders", "generation", "filtering"))
)


def scored(shift: str, name: str, scale: float) -> dict:
    """A row of scores; one kept image is out of class."""
    outside = (shift, name, scale) == ("heavy fog", "bag", 1.0)
    aligned = dict.fromkeys(("clip_class", "clip_class_shift", "clip_reference", "image_reference"), 0.5)
    kept = (shift, name, 1) in KEPT
    return {"shift": shift, "class": name, "seed": 1, "scale": scale, **aligned, "oracle_ooc": outside, "keep": kept}


@pytest.fixture
def scored_folder(tmp_path) -> Path:
    """Two shifts, two classes, one seed, scales 0, 0.5 and 1; three of four trajectories are kept; two base models."""
    for shift, scales in {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0], "heavy fog": [0.5, 1.0]}.items():
        keys = [(shift, name, 1, scale) for name in ("bag", "coat") for scale in scales]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(image=PICTURE)
        tables.write(table, tmp_path / "images" / f"{identifier(shift)}.parquet", tables.images)
    rows = [scored(shift, name, scale) for shift in ("heavy snow", "heavy fog") for name in ("bag", "coat") for scale in (0.0, 0.5, 1.0)]
    tables.write(pd.DataFrame(rows), tmp_path / "scores.parquet", tables.scores)
    tables.write(pd.DataFrame(KEPT, columns=tables.TRAJECTORY), tmp_path / "kept.parquet", tables.kept_schema)
    models = {"mini-sd": {"licence": "MIT (ours)"}, "mini-clip": {"licence": "MIT (ours)"}, "judge": {"licence": "CC0"}}
    (tmp_path / "manifest.json").write_text(json.dumps(models))
    return tmp_path


def described(scored_folder: Path) -> list[str]:
    """The lines of the datasheet."""
    facts = dataset.gather(
        scored_folder / "images", scored_folder / "scores.parquet", scored_folder / "kept.parquet", scored_folder, SETTINGS
    )
    dataset.write_datasheet(scored_folder / "DATASHEET.md", facts, about=ABOUT)
    return (scored_folder / "DATASHEET.md").read_text().splitlines()


def test_counts_are_those_made_by_hand(scored_folder):
    lines, stored = described(scored_folder), sum(path.stat().st_size for path in (scored_folder / "images").glob("*.parquet"))
    assert f"- 10 images in {stored / 1e6:.1f} MB, of 2 classes under 2 shifts" in lines
    assert "- slider scales 0, 0.5, 1; seeds 1 to 1" in lines
    assert "- 2 images have scale 0; each is part of the trajectories of its class and seed under all shifts" in lines
    assert "- 3 of 4 trajectories (shift, class, seed) passed the filter" in lines
    assert "- pictures: 10 of 6 x 8 px" in lines
    assert "| heavy fog | 4 | 2 | 1 | 50 % |" in lines and "| heavy snow | 4 | 2 | 2 | 100 % |" in lines
    assert "| bag | 5 | 2 | 2 | 100 % |" in lines and "| coat | 5 | 2 | 1 | 50 % |" in lines


def test_limits_are_computed(scored_folder):
    text = "\n".join(described(scored_folder))
    assert "1 of 8 distinct kept images (12 %) are out of class" in text
    assert "the 3 kept trajectories come from 1 seed(s)" in text
    assert "shift 'heavy fog' has 1 trajectories, 'heavy snow' 2" in text
    assert "class 'coat' has 1 trajectories, 'bag' 2" in text


def test_how_it_was_made_repeats_the_settings_in_force(scored_folder):
    text = "\n".join(described(scored_folder))
    drawing, sliders = SECTIONS["generation"], SECTIONS["sliders"]
    assert f"{drawing.steps} DDIM steps at guidance {drawing.guidance:g}" in text
    assert f"rank {sliders.rank}, alpha {sliders.alpha:g}, {sliders.iterations} iterations of {sliders.batch_size}" in text
    assert f"pass {SECTIONS['filtering'].passes} of 4 tests" in text
    assert "iterations of 8 (60 under heavy rain, heavy sandstorm)" in text  # `sliders.longer`
    assert (
        "eta 1.3 (0.6 under heavy rain; 0.7 under heavy fog, heavy smog, heavy dust, heavy sandstorm; 0.8 under heavy snow; 1 under" in text
    )
    assert "(from 0.3 to 1 of the time)" in text and "stored as JPEG of quality 90" in text


def test_a_fast_drawing_tells_its_own_sampler_and_a_small_share_its_decimal():
    fast = dataclasses.replace(SETTINGS, drawing="fast", generation=dataclasses.replace(SETTINGS.generation, quality=0, guided=[0.0, 1.0]))
    assert dataset.drawn(fast).startswith("20 UniPC steps at guidance 2.25, slider on") and dataset.drawn(fast).endswith("stored as PNG")
    assert [dataset.percent(*pair) for pair in ((35, 13138), (1, 4), (0, 5), (0, 0))] == ["0.3 %", "25 %", "0 %", "none"]


def test_every_part_has_its_licence(scored_folder):
    lines = described(scored_folder)
    rows = lines[lines.index("## Licences") + 2 :][:7]
    assert rows[2:] == [
        *("| benchmark | https://spdx.org/licenses/MIT |", "| code | MIT |", "| Fashion-MNIST | MIT, Zalando SE |"),
        *("| 1 base models | CC0 |", "| 2 base models | MIT (ours) |"),
    ]


def test_a_benchmark_of_which_nothing_is_kept_is_described_as_well(scored_folder):
    tables.write(pd.DataFrame(KEPT, columns=tables.TRAJECTORY)[:0], scored_folder / "kept.parquet", tables.kept_schema)
    lines = described(scored_folder)
    assert "- 0 of 4 trajectories (shift, class, seed) passed the filter" in lines
    assert "| heavy snow | 4 | 2 | 0 | 0 % |" in lines


def test_trajectories_that_were_never_scored_and_pictures_that_are_none_are_named(scored_folder):
    facts = [scored_folder / "images", scored_folder / "scores.parquet", scored_folder / "kept.parquet", scored_folder, SETTINGS]
    tables.write(pd.DataFrame([("heavy rain", "bag", 1)], columns=tables.TRAJECTORY), scored_folder / "kept.parquet", tables.kept_schema)
    with pytest.raises(ValueError, match="scores of kept trajectories: 1 rows missing"):
        dataset.gather(*facts)
    broken = tables.read(scored_folder / "images" / "heavy_fog.parquet", tables.images)
    broken.loc[1, "image"] = b"<html>"
    tables.write(broken, scored_folder / "images" / "heavy_fog.parquet", tables.images)
    with pytest.raises(ValueError, match=r"heavy_fog\.parquet, row 1: the bytes are not a picture"):
        dataset.gather(*facts)


def counted_facts() -> dataset.Facts:
    """Two classes and two shifts with two seeds each; all bags in fog and one in snow are kept, one of them out of class at scale 1."""
    keys = [(shift, name, seed) for shift in ("heavy fog", "heavy snow") for name in ("bag", "coat") for seed in (1, 2)]
    scores = pd.DataFrame([(*key, scale) for key in keys for scale in (0.0, 1.0)], columns=tables.KEY)
    kept = pd.DataFrame([("heavy fog", "bag", 1), ("heavy fog", "bag", 2), ("heavy snow", "bag", 1)], columns=tables.TRAJECTORY)
    scores["oracle_ooc"] = (scores[tables.KEY] == ["heavy fog", "bag", 1, 1.0]).all(axis=1)
    plain = scores.query("scale == 0").drop_duplicates(["class", "seed"]).assign(shift=UNSHIFTED)
    rows = pd.concat([plain, scores.query("scale > 0")])[tables.KEY]
    return dataset.Facts(rows, {}, 0, scores, kept, {}, None)


def test_fields_count_what_is_kept_of_every_class_and_shift():
    kept, drawn = dataset.fields(counted_facts())
    assert kept.to_numpy().tolist() == [[2, 1], [0, 0]] and (drawn.to_numpy() == 2).all()


def test_sizes_beside_the_paper_are_counted_and_nothing_is_decided():
    said = {"classes": "100", "shifts": "14", "scales": "6", "seeds": "50", "images_total": "40", "images_generated": "80"}
    table = dataset.beside_paper(counted_facts(), said)
    assert table["ours"].to_dict() == {"classes": 2, "shifts": 2, "scales": 2, "seeds": 2, "images kept": 6, "share kept": 3 / 8}
    assert table.loc["share kept", "published"] == 0.5 and set(table["verdict"]) == {"not measured"}


def test_shares_are_those_of_a_hand():
    found = dataset.shares(counted_facts(), settings=ABOUT.bootstrap)
    assert {name: (own["n"], own["estimate"]) for name, own in found.items()} == {
        "kept_trajectories": (8, 3 / 8),
        "out_of_class_among_kept": (5, 1 / 5),  # the bag of seed 1 starts in fog and in snow with one picture
    }


def test_a_picture_without_a_shift_counts_once_for_its_class_and_seed():
    rows = [("fog", "bag", 1, 0.0), ("snow", "bag", 1, 0.0), ("fog", "bag", 1, 1.0), ("snow", "bag", 1, 1.0), ("fog", "bag", 2, 0.0)]
    table = pd.DataFrame(rows, columns=tables.KEY)
    assert dataset.distinct(table).index.tolist() == [0, 2, 3, 4]
