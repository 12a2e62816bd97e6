"""Evaluation: one row per image, only what changed is evaluated again, and nothing broken gets into a table."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import difference
from safetensors.torch import load_file
from tiny_encoders import write_clip, write_timm

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.method import Evaluation
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.world import zoo

LABELS = ["sneaker", "ankle boot", "bag"]
CLASSES, SHIFTS, SCALES, SEEDS = ["ankle boot", "bag"], ["heavy snow", "cartoon style"], [0.0, 0.5, 1.0], 3


def write_shard(folder: Path, shift: str, scales: list[float]) -> None:
    """A table of random pictures that depend on their key alone."""
    rows = [{"shift": shift, "class": c, "seed": s, "scale": k} for c in CLASSES for s in range(1, SEEDS + 1) for k in scales]
    for row in rows:
        rng = np.random.default_rng(list("".join(map(str, row.values())).encode()))
        row["image"] = tables.encode(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
    tables.write(pd.DataFrame(rows), folder / f"{identifier(shift)}.parquet", tables.images)


@pytest.fixture
def bench(tmp_path) -> Path:
    """Image tables of two shifts and two tiny classifiers."""
    for shift in (UNSHIFTED, *SHIFTS):
        write_shard(tmp_path / "images", shift, [0.0] if shift == UNSHIFTED else SCALES[1:])
    for seed, name in enumerate(("vit", "deit")):
        write_timm(tmp_path / name, outputs=3, seed=seed)
    return tmp_path


def run(bench: Path, names: tuple[str, ...] = ("vit", "deit"), *, shifts: list[str] = SHIFTS, **changes) -> pd.DataFrame:
    """Evaluates and reads the predictions."""
    settings = Evaluation({name: str(bench / name) for name in names}, batch_size=4, preprocessing="model")
    settings = dataclasses.replace(settings, **changes)
    grid = {"scales": SCALES, "seeds": SEEDS, "labels": LABELS, "device": "cpu"}
    paths = evaluation.evaluate(bench / "images", shifts, CLASSES, settings=settings, folder=bench / "out", **grid)
    return pd.concat([tables.read(path, tables.predictions) for path in paths.values()], ignore_index=True)


def stamp(bench: Path, name: str) -> int:
    """When a prediction table was last written."""
    return (bench / "out" / f"{name}.parquet").stat().st_mtime_ns


def test_every_image_has_one_row_per_classifier_and_unshifted_images_are_stored_once(bench):
    found = run(bench)
    per_model = len(CLASSES) * SEEDS * (1 + len(SHIFTS) * 2)
    assert found.groupby("model").size().to_dict() == {"vit": per_model, "deit": per_model}
    assert (found["scale"] == 0).sum() == 2 * len(CLASSES) * SEEDS == (found["shift"] == UNSHIFTED).sum()


def test_rows_agree_with_the_models_own_logits(bench):
    row = run(bench, ("vit",)).query("shift == 'heavy snow' and `class` == 'bag' and seed == 2 and scale == 0.5").iloc[0]
    table = tables.read(bench / "images" / "heavy_snow.parquet", tables.images)
    image = table.query("`class` == 'bag' and seed == 2 and scale == 0.5")["image"].iloc[0]
    logits = classifiers.load("vit", str(bench / "vit"), LABELS).logits([tables.decode(image, "row")])[0].double()
    order = [LABELS[i] for i in logits.argsort(descending=True)]
    assert (row["top1"], list(row["top5"])) == (order[0], order)
    assert row["probability"] == pytest.approx(logits.softmax(0)[2].item(), abs=1e-6)
    assert row["margin"] == pytest.approx((logits[2] - logits[:2].max()).item(), abs=1e-5)


def test_answers_counted_by_hand():
    model = classifiers.Classifier("hand", "", [*"abcdefg"], None, None, {}, 0, "cpu")
    table = pd.DataFrame({"shift": "heavy snow", "class": ["b", "a"], "seed": 1, "scale": [0.5, 1.0]})
    logits = torch.tensor([[0.0, 3, 1, 2, -1, -2, 5], [2.0, 2, 0, 0, 0, 0, 0]])
    found = evaluation.answers(model, table, logits)
    assert found["top5"].tolist() == [["g", "b", "d", "c", "a"], ["a", "b", "c", "d", "e"]]  # equal logits: order of the labels
    assert found["margin"].tolist() == [-2.0, 0.0]
    assert found["probability"][1] == pytest.approx(np.exp(2) / (2 * np.exp(2) + 5))


def test_the_batch_size_does_not_change_the_answers(bench):
    small, large = run(bench, batch_size=3), run(bench, batch_size=50)
    pd.testing.assert_frame_equal(small, large, check_exact=False, rtol=1e-4, atol=1e-5)
    assert small["top1"].equals(large["top1"])


def test_every_batch_has_the_same_size(bench):
    """A matrix product of another shape may round differently, so a last batch of another size could change its answers."""
    classifier, shapes = classifiers.load("vit", str(bench / "vit"), LABELS), []
    classifier.network.register_forward_pre_hook(lambda module, inputs: shapes.append(tuple(inputs[0].shape)))
    shards = evaluation.grid(bench / "images", SHIFTS, CLASSES, scales=SCALES, seeds=SEEDS)
    found = evaluation.predict(classifier, shards, batch_size=5)
    assert set(shapes) == {(5, 3, 32, 32)} and len(found) == 30


def test_another_shift_changes_no_bit_of_the_others(bench):
    one = run(bench, ("vit",), shifts=["heavy snow"])
    both = run(bench, ("vit",)).query("shift != 'cartoon style'").reset_index(drop=True)
    pd.testing.assert_frame_equal(one, both, check_exact=True)


def test_a_second_run_evaluates_nothing_and_equal_runs_write_equal_bytes(bench):
    run(bench)
    before = (bench / "out" / "vit.parquet").read_bytes()
    shutil.rmtree(bench / "out")
    run(bench)
    assert (bench / "out" / "vit.parquet").read_bytes() == before
    stamps = stamp(bench, "vit"), stamp(bench, "deit")
    run(bench)
    assert stamps == (stamp(bench, "vit"), stamp(bench, "deit"))


def test_adding_a_classifier_evaluates_only_it_and_removing_one_prunes_it(bench):
    run(bench, ("vit",))
    first = stamp(bench, "vit")
    run(bench, ("vit", "deit"))
    assert stamp(bench, "vit") == first and (bench / "out" / "deit.parquet").exists()
    run(bench, ("deit",))
    assert sorted(path.name for path in (bench / "out").iterdir()) == ["deit.parquet", "deit.parquet.digest"]


@pytest.mark.parametrize("change", ["weights", "images", "preprocessing"])
def test_whatever_a_table_is_made_from_makes_it_outdated(bench, change):
    before, first = run(bench), stamp(bench, "vit")
    if change == "weights":
        shutil.rmtree(bench / "vit")
        write_timm(bench / "vit", outputs=3, seed=7)
    if change == "images":
        table = tables.read(bench / "images" / "heavy_snow.parquet", tables.images)
        table["image"] = table["image"].iloc[::-1].tolist()
        tables.write(table, bench / "images" / "heavy_snow.parquet", tables.images)
    after = run(bench, preprocessing="paper" if change == "preprocessing" else "model")
    assert stamp(bench, "vit") != first and not after["margin"].equals(before["margin"])


def test_an_interrupted_run_keeps_the_finished_group(bench, monkeypatch):
    """Groups of one, and the second classifier cannot be loaded: the first is complete, and a restart gives the undisturbed bytes."""
    run(bench)
    monkeypatch.setattr(evaluation, "TOGETHER", 1)
    undisturbed = {name: (bench / "out" / f"{name}.parquet").read_bytes() for name in ("vit", "deit")}
    shutil.rmtree(bench / "out")
    shutil.move(bench / "deit", bench / "away")
    with pytest.raises(FileNotFoundError, match=r"evaluation\.classifiers\.deit"):
        run(bench)
    assert sorted(path.name for path in (bench / "out").iterdir()) == ["vit.parquet", "vit.parquet.digest"]
    first = stamp(bench, "vit")
    shutil.move(bench / "away", bench / "deit")
    run(bench)
    assert stamp(bench, "vit") == first
    assert {name: (bench / "out" / f"{name}.parquet").read_bytes() for name in ("vit", "deit")} == undisturbed


def broken_image(folder: Path) -> None:
    table = tables.read(folder / "heavy_snow.parquet", tables.images)
    table.loc[3, "image"] = b"not a picture"
    tables.write(table, folder / "heavy_snow.parquet", tables.images)


def missing_row(folder: Path) -> None:
    table = tables.read(folder / "heavy_snow.parquet", tables.images)
    tables.write(table.drop(index=0), folder / "heavy_snow.parquet", tables.images)


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (broken_image, ValueError, r"heavy_snow\.parquet \('heavy snow', 'ankle boot', 2, 1.0\): its image is not a picture"),
        (missing_row, ValueError, r"heavy_snow\.parquet: 1 rows missing .*ankle boot.*0\.5"),
        (lambda folder: (folder / "unshifted.parquet").unlink(), FileNotFoundError, r"unshifted\.parquet does not exist"),
    ],
)
def test_broken_image_tables_are_named_and_old_predictions_stay(bench, damage, error, message):
    run(bench)
    before = {path.name: path.read_bytes() for path in (bench / "out").iterdir()}
    damage(bench / "images")
    with pytest.raises(error, match=message):
        run(bench)
    assert {path.name: path.read_bytes() for path in (bench / "out").iterdir()} == before


def test_a_class_without_a_label_is_named(bench):
    with pytest.raises(ValueError, match=r"base\.classes: 'crane' is not accepted"):
        evaluation.evaluate(
            bench / "images", SHIFTS, ["bag", "crane"], scales=SCALES, seeds=SEEDS, labels=LABELS,
            settings=Evaluation({}, 4, "model"), device="cpu", folder=bench / "out",
        )  # fmt: skip


HELDOUT = {"ankle boot": [4, 7], "bag": [0, 1, 9]}  # seeds of the catalog's held-out pictures


@pytest.fixture
def catalog(bench) -> Path:
    """A catalog with other pictures for training and a class that is not asked for."""
    keys = [("heldout", name, seed) for name, seeds in HELDOUT.items() for seed in seeds]
    keys += [("train", "bag", 0), ("train", "ankle boot", 3), ("heldout", "sneaker", 2)]
    pictures = np.random.default_rng(5).integers(0, 256, (len(keys), 32, 32, 3), dtype=np.uint8)
    rows = [(*key, tables.encode(picture)) for key, picture in zip(keys, pictures, strict=True)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), bench / "catalog.parquet", tables.catalog)
    return bench / "catalog.parquet"


def run_catalog(catalog: Path, names: tuple[str, ...] = ("vit", "deit"), **changes) -> pd.DataFrame:
    """Evaluates the held-out pictures beside the benchmark's and reads the predictions."""
    settings = Evaluation({name: str(catalog.parent / name) for name in names}, batch_size=2, preprocessing="model")
    settings = dataclasses.replace(settings, **changes)
    where = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": catalog.parent / "out" / "heldout"}
    paths = evaluation.evaluate_catalog(catalog, CLASSES, **where)
    return pd.concat([tables.read(path, tables.predictions) for path in paths.values()], ignore_index=True)


def stamps(bench: Path) -> dict[str, int]:
    """When each prediction table was last written."""
    return {path.relative_to(bench / "out").as_posix(): path.stat().st_mtime_ns for path in (bench / "out").rglob("*.parquet")}


def test_held_out_rows_are_the_catalogs_and_agree_with_the_models_logits(catalog):
    found = run_catalog(catalog)
    wanted = [(model, UNSHIFTED, name, seed, 0.0) for model in ("vit", "deit") for name, seeds in HELDOUT.items() for seed in seeds]
    assert len(found) == 10  # two classifiers, two boots and three bags
    assert sorted(found[["model", *tables.KEY]].itertuples(index=False, name=None)) == sorted(wanted)
    row = found.query("model == 'deit' and `class` == 'bag' and seed == 9").iloc[0]
    held = tables.read(catalog, tables.catalog).query("split == 'heldout' and `class` == 'bag' and seed == 9")
    logits = classifiers.load("deit", str(catalog.parent / "deit"), LABELS).logits(tables.pictures(held, "held"))[0].double()
    assert row["top1"] == LABELS[logits.argmax()] and row["margin"] == pytest.approx((logits[2] - logits[:2].max()).item(), abs=1e-5)


@pytest.mark.parametrize("change", ["weights", "pictures", "preprocessing"])
def test_whatever_a_held_out_table_is_made_from_makes_it_outdated(bench, catalog, change):
    before, first = run_catalog(catalog), stamps(bench)
    if change == "weights":
        shutil.rmtree(bench / "vit")
        write_timm(bench / "vit", outputs=3, seed=7)
    if change == "pictures":
        table = tables.read(catalog, tables.catalog)
        table["image"] = table["image"].iloc[::-1].tolist()
        tables.write(table, catalog, tables.catalog)
    after = run_catalog(catalog, preprocessing="paper" if change == "preprocessing" else "model")
    again = {name for name, stamp in stamps(bench).items() if stamp != first[name]}
    assert again == {"heldout/vit.parquet"} | ({"heldout/deit.parquet"} if change != "weights" else set())
    assert not after["margin"].equals(before["margin"])


def test_a_class_without_held_out_pictures_is_named(catalog):
    table = tables.read(catalog, tables.catalog).query("split == 'train' or `class` != 'bag'")
    tables.write(table, catalog, tables.catalog)
    with pytest.raises(ValueError, match="no heldout pictures of class 'bag'"):
        run_catalog(catalog)


def test_the_sizes_are_those_of_the_stored_weights_that_act(tmp_path):
    """A network with running statistics, which are not trained, and a zero-shot model whose text tower is done by then."""
    network = timm.create_model("resnet18", num_classes=3, channels=[4, 4, 8, 8])
    zoo.save(network, tmp_path / "resnet", architecture="resnet18", arguments={"channels": [4, 4, 8, 8]})
    write_clip(tmp_path / "clip")
    roster = [classifiers.load(name, str(tmp_path / name), LABELS).describe() for name in ("resnet", "clip")]
    evaluation.write_sizes(roster, tmp_path / "models.csv")
    stored = load_file(tmp_path / "resnet" / "model.safetensors")
    weights = sum(value.numel() for key, value in stored.items() if "running" not in key and "num_batches" not in key)
    tower = sum(v.numel() for key, v in load_file(tmp_path / "clip" / "open_clip_model.safetensors").items() if key.startswith("visual."))
    assert (tmp_path / "models.csv").read_text() == f"model,parameters\nclip,{tower + 3 * 8}\nresnet,{weights}\n"


def test_the_tiny_units_are_the_golden_ones(bench, catalog):
    assert not difference(recipes.EVALUATION, run(bench))
    assert not difference(recipes.CATALOG_ANSWERS, run_catalog(catalog))


def test_a_classifier_whose_answers_are_no_numbers_is_named_in_place_of_ranked():
    class Broken:
        name, labels = "broken", ["bag", "coat"]

    keys = pd.DataFrame([("heavy fog", "bag", 1, 0.5), ("heavy fog", "coat", 2, 0.5)], columns=tables.KEY)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(
            ValueError, match=r"evaluation\.classifiers\.broken: the answer to \('heavy fog', 'coat', 2, 0\.5\) is not finite"
        ):
            evaluation.answers(Broken(), keys, torch.tensor([[0.0, 1.0], [bad, 1.0]]))
