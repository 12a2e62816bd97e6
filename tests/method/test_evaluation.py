import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_work import contents

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.method import Evaluation
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.world import zoo

LABELS = ["sneaker", "ankle boot", "bag"]
CLASSES, SHIFTS, SCALES, SEEDS = ["ankle boot", "bag"], ["heavy snow", "cartoon style"], [0.0, 0.5, 1.0], 3
PAIR = ("vit", "deit")  # two networks with one transform
HELDOUT = {"ankle boot": [4, 7], "bag": [0, 1, 9]}  # seeds of the catalog's held-out pictures


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(PAIR):
        write_timm(folder / name, outputs=3, seed=seed)
    write_clip(folder / "clip")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = timm.create_model("resnet18", num_classes=3, channels=[4, 4, 8, 8])
    zoo.save(network, folder / "wide", architecture="resnet18", arguments={"channels": [4, 4, 8, 8]})
    return folder


@pytest.fixture(scope="module")
def group(models) -> list[classifiers.Classifier]:
    return [classifiers.load(name, str(models / name), LABELS) for name in (*PAIR, "clip", "wide")]


def write_shard(folder: Path, shift: str, scales: list[float]) -> None:
    rows = [{"shift": shift, "class": c, "seed": s, "scale": k} for c in CLASSES for s in range(1, SEEDS + 1) for k in scales]
    for row in rows:
        rng = np.random.default_rng(list("".join(map(str, row.values())).encode()))
        row["image"] = tables.encode(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
    tables.write(pd.DataFrame(rows), folder / f"{identifier(shift)}.parquet", tables.images)


@pytest.fixture
def bench(tmp_path, models) -> Path:
    for shift in (UNSHIFTED, *SHIFTS):
        write_shard(tmp_path / "images", shift, [0.0] if shift == UNSHIFTED else SCALES[1:])
    for name in PAIR:
        shutil.copytree(models / name, tmp_path / name)
    keys = [("heldout", name, seed) for name, seeds in HELDOUT.items() for seed in seeds]
    keys += [("train", "bag", 0), ("train", "ankle boot", 3), ("heldout", "sneaker", 2)]
    pictures = np.random.default_rng(5).integers(0, 256, (len(keys), 32, 32, 3), dtype=np.uint8)
    rows = [(*key, tables.encode(picture)) for key, picture in zip(keys, pictures, strict=True)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), tmp_path / "catalog.parquet", tables.catalog)
    return tmp_path


def run(bench: Path, names: tuple[str, ...] = PAIR, *, shifts: list[str] = SHIFTS, heldout: bool = False, **changes) -> pd.DataFrame:
    settings = Evaluation({name: str(bench / name) for name in names}, batch_size=2 if heldout else 4, preprocessing="model")
    given = {"labels": LABELS, "settings": dataclasses.replace(settings, **changes), "device": "cpu"}
    if heldout:
        paths = evaluation.evaluate_catalog(bench / "catalog.parquet", CLASSES, **given, folder=bench / "out" / "heldout")
    else:
        shards = evaluation.grid(bench / "images", shifts, CLASSES, scales=SCALES, seeds=SEEDS)
        paths = evaluation.evaluate(shards, **given, folder=bench / "out")
    return pd.concat([tables.read(path, tables.predictions) for path in paths.values()], ignore_index=True)


def stamps(bench: Path) -> dict[str, int]:
    return {path.relative_to(bench / "out").as_posix(): path.stat().st_mtime_ns for path in (bench / "out").rglob("*.parquet")}


def test_every_image_has_one_row_per_classifier_which_agrees_with_its_logits(bench):
    found = run(bench)
    assert not difference(recipes.EVALUATION, found)
    per_model = len(CLASSES) * SEEDS * (1 + len(SHIFTS) * 2)
    assert found.groupby("model").size().to_dict() == {"vit": per_model, "deit": per_model}
    assert (found["scale"] == 0).sum() == 2 * len(CLASSES) * SEEDS == (found["shift"] == UNSHIFTED).sum()
    where = "shift == 'heavy snow' and `class` == 'bag' and seed == 2 and scale == 0.5"
    row = found.query(f"model == 'vit' and {where}").iloc[0]
    image = tables.read(bench / "images" / "heavy_snow.parquet", tables.images).query(where)["image"].iloc[0]
    logits = classifiers.load("vit", str(bench / "vit"), LABELS).logits([tables.decode(image, "row")])[0].double()
    order = [LABELS[i] for i in logits.argsort(descending=True)]
    assert (row["top1"], list(row["top5"])) == (order[0], order)
    assert row["probability"] == pytest.approx(logits.softmax(0)[2].item(), abs=1e-6)
    assert row["margin"] == pytest.approx((logits[2] - logits[:2].max()).item(), abs=1e-5)


def test_held_out_rows_are_the_catalogs(bench):
    found = run(bench, heldout=True)
    assert not difference(recipes.CATALOG_PREDICTIONS, found)
    wanted = [(model, UNSHIFTED, name, seed, 0.0) for model in PAIR for name, seeds in HELDOUT.items() for seed in seeds]
    assert sorted(found[["model", *tables.KEY]].itertuples(index=False, name=None)) == sorted(wanted)


def test_answers_counted_by_hand():
    model = classifiers.Classifier("hand", "", [*"abcdefg"], None, None, {}, 0, "cpu")
    table = pd.DataFrame({"shift": "heavy snow", "class": ["b", "a"], "seed": 1, "scale": [0.5, 1.0]})
    logits = torch.tensor([[0.0, 3, 1, 2, -1, -2, 5], [2.0, 2, 0, 0, 0, 0, 0]])
    found = evaluation.predictions(model, table, logits)
    assert found["top5"].tolist() == [["g", "b", "d", "c", "a"], ["a", "b", "c", "d", "e"]]  # equal logits: order of the labels
    assert found["margin"].tolist() == [-2.0, 0.0]
    assert found["probability"][1] == pytest.approx(np.exp(2) / (2 * np.exp(2) + 5))


def test_the_batch_size_does_not_change_the_answers(bench):
    small, large = run(bench, batch_size=3), run(bench, batch_size=50)
    pd.testing.assert_frame_equal(small, large, check_exact=False, rtol=1e-4, atol=1e-5)
    assert small["top1"].equals(large["top1"])


def test_every_batch_has_the_same_size_so_that_another_shift_changes_no_bit_of_the_others(bench, models):
    classifier, shapes = classifiers.load("vit", str(models / "vit"), LABELS), []
    classifier.network.register_forward_pre_hook(lambda module, inputs: shapes.append(tuple(inputs[0].shape)))
    shards = evaluation.grid(bench / "images", SHIFTS, CLASSES, scales=SCALES, seeds=SEEDS)
    assert len(evaluation.predict(classifier, shards, batch_size=5)) == 30 and set(shapes) == {(5, 3, 32, 32)}
    both = run(bench, ("vit",)).query("shift != 'cartoon style'").reset_index(drop=True)
    pd.testing.assert_frame_equal(run(bench, ("vit",), shifts=["heavy snow"]), both, check_exact=True)


def test_a_second_run_evaluates_nothing_and_equal_runs_write_equal_bytes(bench):
    run(bench)
    before = contents(bench / "out")
    shutil.rmtree(bench / "out")
    run(bench)
    assert contents(bench / "out") == before
    first = stamps(bench)
    run(bench)
    assert stamps(bench) == first


@pytest.mark.parametrize(("change", "heldout"), [("weights", False), ("images", False), ("images", True), ("preprocessing", True)])
def test_whatever_a_table_is_made_from_makes_it_outdated(bench, change, heldout):
    before, first = run(bench, heldout=heldout), stamps(bench)
    if change == "weights":
        shutil.rmtree(bench / "vit")
        write_timm(bench / "vit", outputs=3, seed=7)
    if change == "images":
        path, kind = (bench / "catalog.parquet", tables.catalog) if heldout else (bench / "images" / "heavy_snow.parquet", tables.images)
        table = tables.read(path, kind)
        tables.write(table.assign(image=table["image"].iloc[::-1].tolist()), path, kind)
    after = run(bench, heldout=heldout, preprocessing="paper" if change == "preprocessing" else "model")
    again = {Path(name).stem for name, stamp in stamps(bench).items() if stamp != first[name]}
    assert again == ({"vit"} if change == "weights" else set(PAIR)) and not after["margin"].equals(before["margin"])


def test_a_classifier_whose_answers_are_no_numbers_is_named_in_place_of_ranked():
    class Broken:
        name, labels = "broken", ["bag", "coat"]

    keys = pd.DataFrame([("heavy fog", "bag", 1, 0.5), ("heavy fog", "coat", 2, 0.5)], columns=tables.KEY)
    named = r"evaluation\.classifiers\.broken: the answer to \('heavy fog', 'coat', 2, 0\.5\) is not finite"
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=named):
            evaluation.predictions(Broken(), keys, torch.tensor([[0.0, 1.0], [bad, 1.0]]))


SIZE, COUNT = 4, 30  # so that the last batch is not full


@pytest.fixture
def shards(tmp_path) -> dict[Path, list[tuple]]:
    pictures = np.random.default_rng(0).integers(0, 256, (COUNT, 40, 40, 3), dtype=np.uint8)
    rows = [(UNSHIFTED, "bag", seed, 0.0, tables.encode(picture)) for seed, picture in enumerate(pictures, start=1)]
    tables.write(pd.DataFrame(rows, columns=[*tables.KEY, "image"]), tmp_path / "unshifted.parquet", tables.images)
    return evaluation.grid(tmp_path, [], ["bag"], scales=[0.0], seeds=COUNT)


def test_logits_are_those_of_asking_each_classifier_alone_bit_for_bit(shards, group):
    table = tables.read(next(iter(shards)), tables.images)
    fed = list(evaluation.logits(group, evaluation.shard_batches(shards, size=SIZE), size=SIZE))
    assert pd.concat([rows for rows, _ in fed]).equals(table[tables.KEY])  # the order is kept
    for place, classifier in enumerate(group):
        parts = [[*tables.pictures(table[start : start + SIZE], "own")] for start in range(0, COUNT, SIZE)]
        alone = torch.cat([evaluation.batch_logits(classifier, part, size=SIZE) for part in parts])
        assert torch.equal(torch.cat([found[place] for _, found in fed]), alone)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_a_card_gets_pinned_batches_and_its_answers_are_those_of_the_plain_procedure(models):
    one = classifiers.load("vit", str(models / "vit"), LABELS, "cuda")
    pictures = np.random.default_rng(1).integers(0, 256, (SIZE, 40, 40, 3), dtype=np.uint8)
    batch = next(evaluation.array_batches(pd.DataFrame({"row": range(SIZE)}), pictures, size=SIZE))
    _, inputs = next(evaluation.prepared([batch], {evaluation.transform_digest(one): one.transform}, size=SIZE, device="cuda"))
    assert all(pixels.is_pinned() for pixels in inputs.values())
    assert torch.equal(evaluation.outputs([one], inputs)[0], one.logits(pictures))
