"""The datasheet: its numbers are those counted by hand, and follow the data."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_croissant import ABOUT

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.studies import dataset

SECTIONS = read.load(paths.resolve("params.yaml"))
PICTURE = tables.encode(np.zeros((6, 8, 3), np.uint8))
KEPT = [("heavy snow", "bag", 1), ("heavy snow", "coat", 1), ("heavy fog", "bag", 1)]
SETTINGS = dataset.Settings(SECTIONS["base"].pipeline, *(SECTIONS[name] for name in ("sliders", "generation", "filtering")))


def scored(shift: str, name: str, scale: float) -> dict:
    """A row of scores; one kept image is out of class."""
    outside = (shift, name, scale) == ("heavy fog", "bag", 1.0)
    aligned = dict.fromkeys(("clip_class", "clip_class_shift", "clip_reference", "image_reference"), 0.5)
    kept = (shift, name, 1) in KEPT
    return {"shift": shift, "class": name, "seed": 1, "scale": scale, **aligned, "oracle_ooc": outside, "keep": kept}


@pytest.fixture
def folder(tmp_path) -> Path:
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


def written(folder: Path) -> list[str]:
    """The lines of the datasheet."""
    facts = dataset.gather(folder / "images", folder / "scores.parquet", folder / "kept.parquet", folder, SETTINGS)
    dataset.write_datasheet(folder / "DATASHEET.md", facts, about=ABOUT)
    return (folder / "DATASHEET.md").read_text().splitlines()


def test_counts_are_those_made_by_hand(folder):
    lines, stored = written(folder), sum(path.stat().st_size for path in (folder / "images").glob("*.parquet"))
    assert f"- 10 images in {stored / 1e6:.1f} MB, of 2 classes under 2 shifts" in lines
    assert "- slider scales 0, 0.5, 1; seeds 1 to 1" in lines
    assert "- 2 images have scale 0; each is part of the trajectories of its class and seed under all shifts" in lines
    assert "- 3 of 4 trajectories (shift, class, seed) passed the filter" in lines
    assert "- pictures: 10 of 6 x 8 px" in lines
    assert "| heavy fog | 4 | 2 | 1 | 50 % |" in lines and "| heavy snow | 4 | 2 | 2 | 100 % |" in lines
    assert "| bag | 5 | 2 | 2 | 100 % |" in lines and "| coat | 5 | 2 | 1 | 50 % |" in lines


def test_limits_are_computed(folder):
    text = "\n".join(written(folder))
    assert "1 of 9 kept images (11 %) are out of class" in text
    assert "the 3 kept trajectories come from 2 (class, seed)" in text
    assert "shift 'heavy fog' has 1 trajectories, 'heavy snow' 2" in text
    assert "class 'coat' has 1 trajectories, 'bag' 2" in text


def test_how_it_was_made_repeats_the_settings_in_force(folder):
    text = "\n".join(written(folder))
    drawing, sliders = SECTIONS["generation"], SECTIONS["sliders"]
    assert f"{drawing.steps} DDIM steps at guidance {drawing.guidance:g}" in text
    assert f"rank {sliders.rank}, alpha {sliders.alpha:g}, {sliders.iterations} iterations of {sliders.batch_size}" in text
    assert f"pass {SECTIONS['filtering'].passes} of 4 tests" in text


def test_every_part_has_its_licence(folder):
    lines = written(folder)
    rows = lines[lines.index("## Licences") + 2 :][:7]
    assert rows[2:] == [
        *("| benchmark | https://spdx.org/licenses/MIT |", "| code | MIT |", "| Fashion-MNIST | MIT, Zalando SE |"),
        *("| 1 base models | CC0 |", "| 2 base models | MIT (ours) |"),
    ]


def test_a_benchmark_of_which_nothing_is_kept_is_described_as_well(folder):
    tables.write(pd.DataFrame(KEPT, columns=tables.TRAJECTORY)[:0], folder / "kept.parquet", tables.kept_schema)
    lines = written(folder)
    assert "- 0 of 4 trajectories (shift, class, seed) passed the filter" in lines
    assert "| heavy snow | 4 | 2 | 0 | 0 % |" in lines


def test_trajectories_that_were_never_scored_and_pictures_that_are_none_are_named(folder):
    facts = [folder / "images", folder / "scores.parquet", folder / "kept.parquet", folder, SETTINGS]
    tables.write(pd.DataFrame([("heavy rain", "bag", 1)], columns=tables.TRAJECTORY), folder / "kept.parquet", tables.kept_schema)
    with pytest.raises(ValueError, match="scores of kept trajectories: 1 rows missing"):
        dataset.gather(*facts)
    broken = tables.read(folder / "images" / "heavy_fog.parquet", tables.images)
    broken.loc[1, "image"] = b"<html>"
    tables.write(broken, folder / "images" / "heavy_fog.parquet", tables.images)
    with pytest.raises(ValueError, match=r"heavy_fog\.parquet, row 1: the bytes are not a picture"):
        dataset.gather(*facts)
