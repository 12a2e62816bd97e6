"""The benchmark as a torch data set and as plain parquet."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset
import pyarrow.parquet as parquet
import pytest
import torch
from torch.utils.data import DataLoader

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.data.benchmark import Benchmark

LABELS = ["coat", "bag", "ankle boot"]
CLASSES, SEEDS, SCALES = ["ankle boot", "bag"], (1, 2), {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0], "cartoon style": [0.5, 1.0]}


def picture(*key) -> np.ndarray:
    """A picture of 8 px that depends on its key alone."""
    return np.random.default_rng(list("".join(map(str, key)).encode())).integers(0, 256, (8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Image tables of two shifts, two classes, two seeds and three scales."""
    for shift, scales in SCALES.items():
        keys = [(shift, name, seed, scale) for name in CLASSES for seed in SEEDS for scale in scales]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(image=[tables.encode(picture(*key)) for key in keys])
        tables.write(table, tmp_path / f"{identifier(shift)}.parquet", tables.images)
    return tmp_path


KEPT = pd.DataFrame([("heavy snow", "bag", 2), ("cartoon style", "bag", 2), ("heavy snow", "ankle boot", 1)], columns=tables.TRAJECTORY)


def test_every_stored_image_comes_once_with_its_class_index_and_origin(folder):
    found = Benchmark(folder, labels=LABELS)
    assert len(found) == 4 + 8 + 8
    for image, target, origin in (found[number] for number in range(len(found))):
        key = (origin["shift"], LABELS[target], origin["seed"], origin["scale"])
        assert torch.equal(image, torch.from_numpy(picture(*key)).permute(2, 0, 1) / 255)
    assert not found.rows.duplicated(tables.KEY).any()


def test_kept_trajectories_are_whole_and_share_their_unshifted_image(folder):
    found = Benchmark(folder, labels=LABELS, kept=KEPT)
    counted = found.rows.groupby(tables.TRAJECTORY)["scale"].apply(list)
    assert set(counted.index) == set(KEPT.itertuples(index=False, name=None))
    assert all(scales == [0.0, 0.5, 1.0] for scales in counted)
    shared = [image for image, target, origin in found if target == 1 and origin["scale"] == 0]
    assert len(shared) == 2 and torch.equal(*shared)
    assert torch.equal(shared[0], torch.from_numpy(picture(UNSHIFTED, "bag", 2, 0.0)).permute(2, 0, 1) / 255)


def test_a_shift_of_ones_own_comes_with_the_others_and_alone(folder, tmp_path):
    own = tables.load(folder / "heavy_snow.parquet").to_pandas().assign(shift="at night")
    shutil.copytree(folder, tmp_path / "own")
    tables.write(own, tmp_path / "own" / "at_night.parquet", tables.images)
    assert "at night" in set(Benchmark(tmp_path / "own", labels=LABELS).rows["shift"])
    assert set(Benchmark(tmp_path / "own", labels=LABELS, shifts=["at night"]).rows["shift"]) == {UNSHIFTED, "at night"}


def test_some_shifts_alone(folder):
    assert set(Benchmark(folder, labels=LABELS, shifts=["heavy snow"]).rows["shift"]) == {UNSHIFTED, "heavy snow"}
    assert len(Benchmark(folder, labels=LABELS, shifts=["heavy snow"], kept=KEPT)) == 6


def test_tables_with_scale_zero_under_each_shift_are_read_as_well(folder):
    plain = tables.read(folder / "unshifted.parquet", tables.images)
    own = pd.concat([tables.read(folder / "heavy_snow.parquet", tables.images), plain.assign(shift="heavy snow")])
    tables.write(own, folder / "own" / "heavy_snow.parquet", tables.images)
    kept = KEPT[KEPT["shift"] == "heavy snow"]
    one, other = (Benchmark(place, labels=LABELS, shifts=["heavy snow"], kept=kept) for place in (folder, folder / "own"))
    assert [origin for _, _, origin in one] == [origin for _, _, origin in other]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gives_the_same_batches_with_and_without_workers(folder, workers):
    found = Benchmark(folder, labels=LABELS, kept=KEPT)
    batches = list(DataLoader(found, batch_size=4, num_workers=workers))
    images, targets = torch.cat([batch[0] for batch in batches]), torch.cat([batch[1] for batch in batches])
    assert images.shape == (9, 3, 8, 8) and targets.tolist() == found.targets
    assert torch.equal(images, torch.stack([image for image, _, _ in found]))
    assert [seed for batch in batches for seed in batch[2]["seed"].tolist()] == found.rows["seed"].tolist()
    assert [shift for batch in batches for shift in batch[2]["shift"]] == found.rows["shift"].tolist()


def test_a_transform_gets_the_picture(folder):
    found = Benchmark(folder, labels=LABELS, transform=lambda image: (image.size, image.mode))
    assert found[0][0] == ((8, 8), "RGB")


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing holds no image table"):
        Benchmark(tmp_path / "nothing", labels=LABELS)
    with pytest.raises(FileNotFoundError, match=r"heavy_fog\.parquet"):
        Benchmark(folder, labels=LABELS, shifts=["heavy fog"])
    with pytest.raises(ValueError, match="shifts: 'frost'"):
        Benchmark(folder, labels=LABELS, shifts=["frost"])
    with pytest.raises(ValueError, match="class: 'ankle boot'"):
        Benchmark(folder, labels=["bag"])
    with pytest.raises(ValueError, match="images of kept trajectories: 3 rows missing"):
        Benchmark(folder, labels=LABELS, kept=KEPT.assign(seed=7))
    with pytest.raises(ValueError, match="images of kept trajectories: 1 rows missing"):  # the unshifted pictures of it are there
        Benchmark(folder, labels=LABELS, kept=pd.concat([KEPT, KEPT[:1].assign(shift="heavy rain")]))


def test_all_shards_are_one_table_for_any_reader_of_parquet(folder):
    """What `datasets.load_dataset("parquet", data_files=...)` relies on: one schema, plain types, bytes that are pictures."""
    found = pyarrow.dataset.dataset(sorted(map(str, folder.glob("*.parquet"))), format="parquet")
    types = {"shift": "string", "class": "string", "seed": "int64", "scale": "double", "image": "binary"}
    assert {field.name: str(field.type) for field in found.schema} == types
    assert all(parquet.read_schema(path).equals(found.schema) for path in folder.glob("*.parquet"))
    rows = [row for batch in found.to_batches(batch_size=3) for row in batch.to_pylist()]
    assert len(rows) == 20
    for row in rows:
        assert np.array_equal(tables.decode(row["image"], "row"), picture(*(row[name] for name in tables.KEY)))
