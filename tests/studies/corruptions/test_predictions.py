"""Predictions for corrupted pictures: which there are, of the catalog and of the photo set, and that they are made once."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_encoders import write_timm
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.method import Evaluation
from cnslib.studies.corruptions import effects, predictions

SETTINGS = corruption_settings()
LABELS = ["bag", "coat", "shirt"]


def pictures(count=4, side=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def test_the_originals_are_the_first_of_each_class_and_then_comes_every_corruption_at_every_severity(tmp_path):
    rows = [("heldout", name, seed, tables.encode(pictures(1, 64 if seed else 96, seed)[0])) for name in LABELS[:2] for seed in range(3)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), tmp_path / "catalog.parquet", tables.catalog)
    rows, plain = predictions.originals(tmp_path / "catalog.parquet", LABELS[:2], 2, side=64)
    assert rows.to_numpy().tolist() == [["bag", 0], ["bag", 1], ["coat", 0], ["coat", 1]] and plain.shape == (4, 64, 64, 3)
    np.testing.assert_array_equal(plain[1], pictures(1, 64, 1)[0])
    graded = {name: dict(list(own.items())[:2]) for name, own in effects.published(64).items()}
    parts = list(predictions.corrupted(rows, plain, graded))
    assert len(parts) == 1 + 2 * 15 and parts[0][1] is plain
    assert [tuple(keys[["shift", "scale"]].iloc[0]) for keys, _ in parts[1:3]] == [("gaussian noise", 1.0), ("gaussian noise", 2.0)]
    assert all(keys[["class", "seed"]].equals(rows) and made.shape == plain.shape for keys, made in parts)


def test_every_picture_is_answered_once_per_severity_and_is_the_golden_one(tmp_path):
    """A catalog of two classes and a tiny classifier."""
    rows = [("heldout", name, seed, tables.encode(pictures(1, 32, seed)[0])) for name in LABELS[:2] for seed in range(3)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), tmp_path / "catalog.parquet", tables.catalog)
    write_timm(tmp_path / "model", outputs=len(LABELS))
    how = Evaluation({"tiny": str(tmp_path / "model")}, batch_size=8, preprocessing="model")
    given = {"labels": LABELS, "settings": SETTINGS, "classifiers": how, "device": "cpu", "folder": tmp_path / "answers"}
    made = predictions.evaluate(tmp_path / "catalog.parquet", LABELS[:2], **given)["tiny"]
    table, written = tables.read(made, tables.predictions), made.stat().st_mtime_ns
    graded = [(name, severity) for name, own in effects.levels(SETTINGS).items() for severity in own]
    wanted = [(shift, name, seed, scale) for shift, scale in [("unshifted", 0.0), *graded] for name in LABELS[:2] for seed in range(2)]
    assert len(tables.complete(table, wanted, tables.KEY, "answers")) == len(table) == len(wanted)
    again = predictions.evaluate(tmp_path / "catalog.parquet", LABELS[:2], **given)["tiny"]
    assert not difference(recipes.CORRUPTIONS, table) and again.stat().st_mtime_ns == written


@pytest.fixture(scope="module")
def asked():
    """The photo set's section with one classifier."""
    section = read.load(paths.resolve("params.yaml"))["photos"]
    return dataclasses.replace(section, classifiers={"lite0": "lite:0"}, reference="lite0")


def test_the_objects_are_evenly_spaced_and_no_more_than_there_are(asked):
    found = predictions.chosen(paths.PHOTOS, SETTINGS, asked)
    whole = predictions.chosen(paths.PHOTOS, dataclasses.replace(SETTINGS, cutouts=asked.cutouts), asked)
    assert [(own.label, own.seed) for own in found] == [(own.label, own.seed) for own in (whole[0], whole[asked.cutouts // 2])]
    with pytest.raises(ValueError, match=r"corruptions\.cutouts: 89.*at most photos\.cutouts, 88"):
        predictions.chosen(paths.PHOTOS, dataclasses.replace(SETTINGS, cutouts=89), asked)


def test_photographs_are_answered_once_as_they_are_and_at_five_severities_and_are_the_golden_ones(asked, tmp_path, monkeypatch):
    two = {name: own for name, own in effects.published(predictions.SIDE).items() if name in (effects.CONTRAST, effects.JPEG)}
    monkeypatch.setattr(predictions, "published", lambda side: two)
    files = predictions.evaluate_photographs(settings=SETTINGS, shown=asked, device="cpu", folder=tmp_path)
    assert set(files) == {UNSHIFTED, *two} and len(tables.read(files[UNSHIFTED], tables.predictions)) == 2
    table = tables.read(files[effects.JPEG], tables.predictions)
    assert len(table) == 2 * 5 and not difference(recipes.CORRUPTED_PHOTOGRAPHS, table, within=1e-3)
    before = {name: path.stat().st_mtime_ns for name, path in files.items()}
    again = predictions.evaluate_photographs(settings=SETTINGS, shown=asked, device="cpu", folder=tmp_path)
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == before
