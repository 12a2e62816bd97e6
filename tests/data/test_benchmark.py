import hashlib
import json
from pathlib import Path

import mlcroissant
import pandas as pd
import pytest
import torch
from official_files import noise

from cnslib.core import paths, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.data import croissant
from cnslib.data.benchmark import Benchmark, shards

LABELS = ["coat", "bag", "ankle boot"]
CLASSES, SEEDS, SCALES = ["ankle boot", "bag"], (1, 2), {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0], "cartoon style": [0.5, 1.0]}
KEPT = pd.DataFrame([("heavy snow", "bag", 2), ("cartoon style", "bag", 2), ("heavy snow", "ankle boot", 1)], columns=tables.TRAJECTORY)


@pytest.fixture
def folder(tmp_path) -> Path:
    for shift, scales in SCALES.items():
        keys = [(shift, name, seed, scale) for name in CLASSES for seed in SEEDS for scale in scales]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(image=[tables.encode(noise(*key)) for key in keys])
        tables.write(table, tmp_path / "images" / f"{identifier(shift)}.parquet", tables.images)
    return tmp_path / "images"


def test_every_stored_image_comes_once_with_its_class_index_and_origin(folder):
    found = Benchmark(folder, labels=LABELS)
    assert len(found) == 4 + 8 + 8 and not found.rows.duplicated(tables.KEY).any()
    for image, target, origin in (found[number] for number in range(len(found))):
        key = (origin["shift"], LABELS[target], origin["seed"], origin["scale"])
        assert torch.equal(image, torch.from_numpy(noise(*key)).permute(2, 0, 1) / 255)
    assert Benchmark(folder, labels=LABELS, transform=lambda image: (image.size, image.mode))[0][0] == ((8, 8), "RGB")


@pytest.mark.parametrize("imported", [False, True], ids=["scale 0 once", "scale 0 under each shift"])
def test_kept_trajectories_are_whole_and_share_their_unshifted_image(folder, imported):
    if imported:
        plain = tables.read(folder / "unshifted.parquet", tables.images)
        for path in set(folder.glob("*.parquet")) - {folder / "unshifted.parquet"}:
            table = tables.read(path, tables.images)
            tables.write(pd.concat([table, plain.assign(shift=table["shift"][0])]), path, tables.images)
        units.prune(folder, {"heavy_snow.parquet", "cartoon_style.parquet"}, "*.parquet")
    found = Benchmark(folder, labels=LABELS, kept=KEPT)
    counted = found.rows.groupby(tables.TRAJECTORY)["scale"].apply(list)
    assert set(counted.index) == set(KEPT.itertuples(index=False, name=None))
    assert all(scales == [0.0, 0.5, 1.0] for scales in counted)
    shared = [image for image, target, origin in found if target == 1 and origin["scale"] == 0]
    assert len(shared) == 2 and torch.equal(*shared)
    assert torch.equal(shared[0], torch.from_numpy(noise(UNSHIFTED, "bag", 2, 0.0)).permute(2, 0, 1) / 255)


def test_a_kept_trajectory_without_images_is_named(folder):
    rain = pd.concat([KEPT, KEPT[:1].assign(shift="heavy rain")])  # the unshifted pictures of it are there
    with pytest.raises(ValueError, match="images of kept trajectories: 1 rows missing"):
        Benchmark(folder, labels=LABELS, kept=rain)


ABOUT = read.load(paths.resolve("params.yaml"))["dataset"]


def test_croissant_metadata_are_without_issues_and_every_file_and_row_is_where_they_say(folder):
    kept, target = folder.parent / "kept.parquet", folder.parent / "about" / "croissant.json"
    tables.write(KEPT, kept, tables.kept_schema)
    files = {path.stem: path for path in shards(folder)} | {"kept": kept}
    croissant.write(target, files, about=vars(ABOUT))
    before = target.read_bytes()
    croissant.write(target, files, about=vars(ABOUT))
    assert target.read_bytes() == before
    card = json.loads(before)
    files = card["distribution"]
    assert card["conformsTo"][0].endswith("/1.1") and {"rai:dataCollection", "rai:dataBiases", "rai:dataUseCases"} <= card.keys()
    assert [file["contentUrl"] for file in files][::3] == ["../images/unshifted.parquet", "../kept.parquet"]
    for file in files:
        data = (target.parent / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest() and file["contentSize"] == f"{len(data)} B"
    dataset = mlcroissant.Dataset(jsonld=str(target))
    assert not dataset.metadata.ctx.issues.errors and not dataset.metadata.ctx.issues.warnings
    records = [tuple(record[f"heavy_snow/{name}"] for name in tables.KEY[1:]) for record in dataset.records(record_set="heavy_snow")]
    assert records == [(name.encode(), seed, scale) for name in CLASSES for seed in SEEDS for scale in (0.5, 1.0)]
    assert len(list(dataset.records(record_set="kept"))) == len(KEPT)
