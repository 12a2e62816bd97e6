import dataclasses
import functools
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.data import artifacts

# What the steps generation, filtering and evaluation leave, for two classes, shifts, seeds and scales and two classifiers.
SHIFTS, CLASSES, SEEDS, SCALES, MODELS = ["heavy snow", "heavy fog"], ["bag", "dress"], 2, [0.0, 1.0], ["resnet", "vit"]
COSINES = ("clip_class", "clip_class_shift", "clip_reference", "image_reference")
alignment = tables.schema(tables.KEY, {**tables.IDENTITY, **{name: pa.Column(float) for name in (*COSINES, "class_probability")}})

sight = tables.schema(tables.KEY, {**tables.IDENTITY, "oracle": pa.Column(float)})


@functools.cache
def committed() -> dict:
    return read.load(paths.resolve("params.yaml"))


def run_in(folder: Path, **changes) -> read.Run:
    sections = committed()
    grid = {"classes": CLASSES, "shifts": SHIFTS, "scales": SCALES, "seeds": SEEDS}
    base = dataclasses.replace(sections["base"], out=str(folder), **grid | changes)
    asked = dataclasses.replace(sections["evaluation"], classifiers={name: f"weights/{name}" for name in MODELS})
    return read.Run("accuracy", sections | {"base": base, "evaluation": asked}, ())


def keys(shifts: list[str], scales: list[float]) -> pd.DataFrame:
    return pd.DataFrame(itertools.product(shifts, CLASSES, range(1, SEEDS + 1), scales), columns=tables.KEY)


def write_images(folder: Path) -> None:
    for number, (shift, scales) in enumerate([(UNSHIFTED, [0.0]), *((shift, [1.0]) for shift in SHIFTS)]):
        rows = keys([shift], scales)
        pictures = [tables.encode(np.full((4, 4, 3), 40 * number + row, np.uint8)) for row in range(len(rows))]
        path = folder / f"{identifier(shift)}.parquet"
        tables.write_unit(rows.assign(image=pictures), units.Unit(path, recipes.GENERATION.stamp(shift)), tables.images)


def write_answers(folder: Path) -> None:
    rows = pd.concat([keys([UNSHIFTED], [0.0]), keys(SHIFTS, [1.0])])
    right = rows["class"].where((rows["shift"] != "heavy fog") | (rows["class"] != "dress"), "bag")
    for name in MODELS:
        table = rows.assign(model=name, top1=right, top5=[[answer] for answer in right], probability=0.5, margin=0.0, preprocessing="x")
        tables.write_unit(table, units.Unit(folder / f"{name}.parquet", recipes.EVALUATION.stamp(name)), tables.predictions)
        plain = table[table["shift"] == UNSHIFTED]
        tables.write_unit(
            plain, units.Unit(folder / "heldout" / f"{name}.parquet", recipes.CATALOG_PREDICTIONS.stamp(name)), tables.predictions
        )
    units.write_recorded(folder / artifacts.MODELS, b"model,parameters\nresnet,10\nvit,20\n")


def write_filter(run: read.Run) -> None:
    for shift in SHIFTS:
        table = keys([shift], SCALES).assign(class_probability=0.9, **dict.fromkeys(COSINES, 0.5))
        path = run.layout.artifacts("filtering") / "alignment" / f"{identifier(shift)}.parquet"
        tables.write_unit(table, units.Unit(path, recipes.ALIGNMENT.stamp(shift)), alignment)
        seen = keys([shift], SCALES).assign(oracle=0.5)
        path = run.layout.artifacts("filtering") / "oracle" / path.name
        tables.write_unit(seen, units.Unit(path, recipes.ORACLE_PREDICTIONS.stamp(shift)), sight)
    rows = keys(SHIFTS, SCALES).assign(oracle_ooc=False, **dict.fromkeys(COSINES, 0.5))
    rows["keep"] = (rows["shift"] != "heavy fog") | (rows["class"] != "dress")
    tables.write_unit(rows, artifacts.scored(run), tables.scores)
    kept = rows.loc[rows["keep"] & (rows["scale"] == 0), tables.TRAJECTORY]
    tables.write_unit(kept, artifacts.filtered(run), tables.kept_schema)


def write_all(folder: Path) -> read.Run:
    run = run_in(folder)
    write_images(run.layout.artifacts("generation"))
    write_answers(run.layout.artifacts("evaluation"))
    write_filter(run)
    return run


READERS = {  # who reads what, and a file that must not be read unchecked
    "answers": (artifacts.top1, "evaluation/vit.parquet"),
    "predictions": (lambda run: artifacts.predictions(run, ["vit"]), "evaluation/vit.parquet"),
    "answered": (artifacts.answered, "evaluation/heldout/vit.parquet"),
    "sizes": (artifacts.sizes, "evaluation/models.csv"),
    "alignments": (lambda run: artifacts.by_shift(run, "alignment", alignment), "filtering/alignment/heavy_fog.parquet"),
    "oracle": (lambda run: artifacts.by_shift(run, "oracle", sight), "filtering/oracle/heavy_fog.parquet"),
    "scores": (artifacts.scores, "filtering/scores.parquet"),
    "kept": (artifacts.kept, "filtering/kept.parquet"),
    "images": (lambda run: artifacts.images(run.layout.artifacts("generation"), "heavy fog"), "generation/heavy_fog.parquet"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("written")).layout.root


@pytest.fixture
def run(written, tmp_path):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return run_in(tmp_path)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place // 8 % len(data)] ^= 1 << place % 8
    path.write_bytes(data)


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_anywhere_in_a_file_is_named(run, name):
    read, file = READERS[name]
    path = run.layout.root / "artifacts" / file
    whole = path.read_bytes()
    for place in np.random.default_rng(1).integers(0, 8 * len(whole), 12):
        flip(path, int(place))
        with pytest.raises(ValueError, match=rf"{path.name} is not as it was written.*run the step named by its folder again"):
            read(run)
        path.write_bytes(whole)
    read(run)


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_a_missing_record_and_a_damaged_one_are_named(run, name):
    read, file = READERS[name]
    path = run.layout.root / "artifacts" / file
    record = units.sidecar(path)
    kept = record.read_bytes()
    for damage in (b"", b"\xff\xfe rot", b"- 0123 - -\n"):
        record.write_bytes(damage)
        with pytest.raises(ValueError, match=rf"{path.name} is not as it was written"):
            read(run)
    record.unlink()
    with pytest.raises(ValueError, match=rf"{path.name} has no record {record.name}"):
        read(run)
    record.write_bytes(kept)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{path.name} does not exist; `dvc pull` restores it"):
        read(run)


@pytest.mark.parametrize(
    ("name", "folder"), [("answers", "evaluation"), ("answered", "evaluation/heldout"), ("kept", "filtering/alignment")]
)
def test_a_table_that_nobody_asks_for_is_named(run, name, folder):
    folder = run.layout.root / "artifacts" / folder
    shutil.copy(next(folder.glob("*.parquet")), folder / "guest.parquet")
    with pytest.raises(ValueError, match=r"holds guest\.parquet, which the parameters do not ask for; accepted: .*\.parquet"):
        READERS[name][0](run)


@pytest.mark.parametrize(
    ("name", "folder", "first", "second", "message"),
    [
        ("answers", "evaluation", "vit", "resnet", r"resnet\.parquet is of model 'vit'; accepted: 'resnet'"),
        ("answered", "evaluation/heldout", "vit", "resnet", r"resnet\.parquet is of model 'vit'"),
        ("images", "generation", "heavy_fog", "heavy_snow", r"heavy_fog\.parquet is of shift 'heavy snow'; accepted: 'heavy fog'"),
    ],
)
def test_a_table_under_another_ones_name_is_named(run, name, folder, first, second, message):
    one, other = (run.layout.root / "artifacts" / folder / f"{file}.parquet" for file in (first, second))
    for left, right in ((one, other), (units.sidecar(one), units.sidecar(other))):
        held = left.read_bytes()
        left.write_bytes(right.read_bytes())
        right.write_bytes(held)
    with pytest.raises(ValueError, match=message):
        READERS[name][0](run)


@pytest.mark.parametrize("changes", [{"scales": [0.0, 1.0, 2.0]}, {"seeds": 3}, {"classes": ["bag", "shirt"]}, {"shifts": ["heavy snow"]}])
@pytest.mark.parametrize("name", ["answers", "kept"])
def test_tables_of_another_grid_are_refused(run, changes, name):
    with pytest.raises((ValueError, FileNotFoundError), match=r"parameters|rows are missing|does not exist"):
        READERS[name][0](run_in(run.layout.root, **changes))


def test_verdicts_of_other_filter_settings_and_of_other_alignments_are_refused(run):
    for changes in ({"passes": 4}, {"recall": 0.5}):
        other = dataclasses.replace(run, sections=run.sections | {"filtering": dataclasses.replace(run.filtering, **changes)})
        with pytest.raises(ValueError, match=r"scores\.parquet was made from other inputs or parameters; run the step"):
            artifacts.kept(other)
    path = run.layout.artifacts("filtering") / "alignment" / "heavy_fog.parquet"
    tables.write(tables.read(path, alignment).assign(clip_class=0.4), path, alignment)
    with pytest.raises(ValueError, match=r"scores\.parquet was made from other inputs"):
        artifacts.kept(run)


def test_another_process_names_the_same_rot(run):
    path = run.layout.artifacts("filtering") / "kept.parquet"
    artifacts.kept(run)
    flip(path, 5000)
    code = "import sys; from pathlib import Path; from test_artifacts import run_in; from cnslib.data import artifacts"
    code += "; artifacts.kept(run_in(Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(run.layout.root)]
    place = {"cwd": Path(__file__).parent, "env": os.environ | {"PYTHONPATH": str(paths.ROOT)}}
    found = subprocess.run(command, **place, capture_output=True, text=True)
    assert found.returncode and "kept.parquet is not as it was written" in found.stderr
