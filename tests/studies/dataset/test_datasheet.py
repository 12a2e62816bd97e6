"""The datasheet: counts made by hand, the settings in force, limits and licences."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_dataset import ABOUT

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.studies.dataset import datasheet

SECTIONS = read.load(paths.resolve("params.yaml"))
PICTURE = tables.encode(np.zeros((6, 8, 3), np.uint8))
KEPT = [("heavy snow", "bag", 1), ("heavy snow", "coat", 1), ("heavy fog", "bag", 1)]
SETTINGS = datasheet.Settings(
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
    facts = datasheet.gather(
        scored_folder / "images", scored_folder / "scores.parquet", scored_folder / "kept.parquet", scored_folder, SETTINGS
    )
    datasheet.write_datasheet(scored_folder / "DATASHEET.md", facts, about=ABOUT)
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
    assert datasheet.drawn(fast).startswith("20 UniPC steps at guidance 2.25, slider on") and datasheet.drawn(fast).endswith(
        "stored as PNG"
    )
    assert [datasheet.percent(*pair) for pair in ((35, 13138), (1, 4), (0, 5), (0, 0))] == ["0.3 %", "25 %", "0 %", "none"]


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
        datasheet.gather(*facts)
    broken = tables.read(scored_folder / "images" / "heavy_fog.parquet", tables.images)
    broken.loc[1, "image"] = b"<html>"
    tables.write(broken, scored_folder / "images" / "heavy_fog.parquet", tables.images)
    with pytest.raises(ValueError, match=r"heavy_fog\.parquet, row 1: the bytes are not a picture"):
        datasheet.gather(*facts)


def counted_facts() -> datasheet.Facts:
    """Two classes and two shifts with two seeds each; all bags in fog and one in snow are kept, one of them out of class at scale 1."""
    keys = [(shift, name, seed) for shift in ("heavy fog", "heavy snow") for name in ("bag", "coat") for seed in (1, 2)]
    scores = pd.DataFrame([(*key, scale) for key in keys for scale in (0.0, 1.0)], columns=tables.KEY)
    kept = pd.DataFrame([("heavy fog", "bag", 1), ("heavy fog", "bag", 2), ("heavy snow", "bag", 1)], columns=tables.TRAJECTORY)
    scores["oracle_ooc"] = (scores[tables.KEY] == ["heavy fog", "bag", 1, 1.0]).all(axis=1)
    plain = scores.query("scale == 0").drop_duplicates(["class", "seed"]).assign(shift=UNSHIFTED)
    rows = pd.concat([plain, scores.query("scale > 0")])[tables.KEY]
    return datasheet.Facts(rows, {}, 0, scores, kept, {}, None)


def test_fields_count_what_is_kept_of_every_class_and_shift():
    kept, drawn = datasheet.fields(counted_facts())
    assert kept.to_numpy().tolist() == [[2, 1], [0, 0]] and (drawn.to_numpy() == 2).all()


def test_sizes_beside_the_paper_are_counted_and_nothing_is_decided():
    said = {"classes": "100", "shifts": "14", "scales": "6", "seeds": "50", "images_total": "40", "images_generated": "80"}
    table = datasheet.beside_paper(counted_facts(), said)
    assert table["ours"].to_dict() == {"classes": 2, "shifts": 2, "scales": 2, "seeds": 2, "images kept": 6, "share kept": 3 / 8}
    assert table.loc["share kept", "published"] == 0.5 and set(table["verdict"]) == {"not measured"}


def test_shares_are_those_of_a_hand():
    found = datasheet.shares(counted_facts(), settings=ABOUT.bootstrap)
    assert {name: (own["n"], own["estimate"]) for name, own in found.items()} == {
        "kept_trajectories": (8, 3 / 8),
        "out_of_class_among_kept": (5, 1 / 5),  # the bag of seed 1 starts in fog and in snow with one picture
    }


def test_a_picture_without_a_shift_counts_once_for_its_class_and_seed():
    rows = [("fog", "bag", 1, 0.0), ("snow", "bag", 1, 0.0), ("fog", "bag", 1, 1.0), ("snow", "bag", 1, 1.0), ("fog", "bag", 2, 0.0)]
    table = pd.DataFrame(rows, columns=tables.KEY)
    assert datasheet.distinct(table).index.tolist() == [0, 2, 3, 4]
