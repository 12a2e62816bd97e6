import dataclasses

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from PIL import Image
from tiny_encoders import write_timm
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.method import Evaluation
from cnslib.data import imagenet
from cnslib.studies import corruptions

SETTINGS = corruption_settings()
LABELS = ["bag", "coat", "shirt"]


def pictures(count=4, side=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def test_every_picture_is_answered_once_per_severity_and_is_the_golden_one(tmp_path):
    rows = [("heldout", name, seed, tables.encode(pictures(1, 32, seed)[0])) for name in LABELS[:2] for seed in range(3)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), tmp_path / "catalog.parquet", tables.catalog)
    write_timm(tmp_path / "model", outputs=len(LABELS))
    how = Evaluation({"tiny": str(tmp_path / "model")}, batch_size=8, preprocessing="model")
    given = {"labels": LABELS, "settings": SETTINGS, "classifiers": how, "device": "cpu", "folder": tmp_path / "answers"}
    made = corruptions.evaluate(tmp_path / "catalog.parquet", LABELS[:2], **given)["tiny"]
    table = tables.read(made, tables.predictions)
    graded = [(name, severity) for name, own in corruptions.levels(SETTINGS).items() for severity in own]
    wanted = [(shift, name, seed, scale) for shift, scale in [("unshifted", 0.0), *graded] for name in LABELS[:2] for seed in range(2)]
    assert len(tables.complete(table, wanted, tables.KEY, "answers")) == len(table) == len(wanted)
    assert not difference(recipes.CORRUPTIONS, table)


def test_official_folders_are_answered_beside_ours_and_another_pictures_folder_is_refused(tmp_path):
    """ImageNet-C's tree: one corruption at five severities, whose files have the names of the validation pictures."""
    place = imagenet.wnids()[imagenet.index("hen")]
    for tree in ("imagenet/train", "imagenet/val", *(f"imagenet-c/shot_noise/{severity}" for severity in range(1, 6))):
        (tmp_path / tree / place).mkdir(parents=True)
        for number, picture in enumerate(pictures(3, 32)):
            image = Image.fromarray(picture if number != 1 else 0 * picture)
            image.save(tmp_path / tree / place / f"ILSVRC2012_val_0000000{number}.JPEG")
    write_timm(tmp_path / "model", outputs=len(LABELS))
    how = Evaluation({"tiny": str(tmp_path / "model")}, batch_size=2, preprocessing="model")
    given = {"labels": ["hen", "bag", "coat"], "classifiers": how, "device": "cpu", "folder": tmp_path / "official"}
    settings = dataclasses.replace(SETTINGS, official=str(tmp_path / "imagenet-c"))
    made = corruptions.evaluate_official(tmp_path / "imagenet", ["hen"], settings=settings, **given)["tiny"]
    table = tables.read(made, tables.predictions)
    assert table.groupby(["shift", "class", "scale"], observed=True).size().to_dict() == {
        ("shot noise", "hen", s): 2.0 for s in range(1, 6)
    }
    assert table.groupby("seed")["margin"].nunique().to_dict() == {0: 1, 1: 1} and table["margin"].nunique() == 2
    gone = tmp_path / "imagenet-c" / "shot_noise" / "5" / place / "ILSVRC2012_val_00000000.JPEG"
    gone.rename(gone.with_stem("test_1"))
    with pytest.raises(FileNotFoundError, match=r"corruptions\.official: .*5/n01514859/.*_val_00000000\.JPEG does not exist; accepted: "):
        corruptions.evaluate_official(tmp_path / "imagenet", ["hen"], settings=settings, **given)
    with pytest.raises(FileNotFoundError, match=r"corruptions\.official: .*model has no folder gaussian_noise, nor any other"):
        corruptions.official(tmp_path / "model", tmp_path / "imagenet", ["hen"], 2)


@pytest.fixture(scope="module")
def asked():
    section = read.load(paths.resolve("params.yaml"))["photos"]
    return dataclasses.replace(section, classifiers={"lite0": "lite:0"}, reference="lite0", bisected="lite0")


def test_photographs_are_answered_once_as_they_are_and_at_five_severities_and_are_the_golden_ones(asked, tmp_path, monkeypatch):
    two = {name: own for name, own in corruptions.published(corruptions.SIDE).items() if name == corruptions.JPEG}
    monkeypatch.setattr(corruptions, "published", lambda side: two)
    found = corruptions.evaluate_photographs(settings=SETTINGS, shown=asked, device="cpu", folder=tmp_path)
    assert set(found["shift"]) == {UNSHIFTED, *two} and (found["shift"] == UNSHIFTED).sum() == 2
    table = found[found["shift"] == corruptions.JPEG].reset_index(drop=True)
    assert len(table) == 2 * 5 and not difference(recipes.CORRUPTED_PHOTOGRAPHS, table, within=1e-3)
