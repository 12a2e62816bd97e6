"""Feeding: every picture decoded once, every distinct transform applied once, and the logits of the plain procedure bit for bit."""

import dataclasses
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from tiny_encoders import write_clip, write_timm

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Evaluation
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.world import zoo

LABELS = ["sneaker", "ankle boot", "bag"]
SIZE, COUNT, SIDE = 4, 30, 40
SAME, OTHER = ("vit", "deit"), ("clip", "wide")  # the first two have one transform, each of the others its own
NAMES = (*SAME, *OTHER)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """Two networks for 32 px alike, one for 32 px that squashes, and one for 64 px."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(SAME):
        write_timm(folder / name, outputs=3, seed=seed)
    write_clip(folder / "clip")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = timm.create_model("resnet18", num_classes=3, channels=[4, 4, 8, 8])
    zoo.save(network, folder / "wide", architecture="resnet18", arguments={"channels": [4, 4, 8, 8]})
    return folder


@pytest.fixture(scope="module")
def group(models) -> list[classifiers.Classifier]:
    """All four."""
    return [classifiers.load(name, str(models / name), LABELS) for name in NAMES]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Random pictures of one class as encoded bytes; the last batch is not full."""
    pictures = np.random.default_rng(0).integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)
    rows = [(UNSHIFTED, "bag", seed, 0.0, tables.encode(picture)) for seed, picture in enumerate(pictures, start=1)]
    return pd.DataFrame(rows, columns=[*tables.KEY, "image"])


@pytest.fixture
def shards(table, tmp_path) -> dict[Path, list[tuple]]:
    """The same as a benchmark of unshifted images."""
    tables.write(table, tmp_path / "images" / "unshifted.parquet", tables.images)
    return evaluation.grid(tmp_path / "images", [], ["bag"], scales=[0.0], seeds=COUNT)


def evaluate(shards: dict[Path, list[tuple]], models: Path, folder: Path) -> dict[str, bytes]:
    """The bytes of the tables that the evaluation writes."""
    settings = Evaluation({name: str(models / name) for name in NAMES}, SIZE, "model")
    found = evaluation.answered_shards(shards, labels=LABELS, settings=settings, device="cpu", folder=folder)
    return {name: path.read_bytes() for name, path in found.items()}


def counted(monkeypatch) -> Counter:
    """How often the real decoder is called, by the name of what it decodes."""
    calls, decode = Counter(), tables.decode
    monkeypatch.setattr(tables, "decode", lambda data, name: calls.update([name]) or decode(data, name))
    return calls


def test_every_picture_is_decoded_once_for_a_group(shards, group, monkeypatch):
    calls = counted(monkeypatch)
    evaluation.ask(group, evaluation.shard_batches(shards, size=SIZE), size=SIZE)
    assert calls == {f"unshifted.parquet {(UNSHIFTED, 'bag', seed, 0.0)}": 1 for seed in range(1, COUNT + 1)}


def test_equal_transforms_are_applied_once_to_each_picture(shards, group):
    applied: Counter = Counter()

    def counting(classifier: classifiers.Classifier) -> classifiers.Classifier:
        way = evaluation.way(classifier)
        return dataclasses.replace(classifier, transform=lambda image: applied.update([way]) or classifier.transform(image))

    evaluation.ask([counting(classifier) for classifier in group], evaluation.shard_batches(shards, size=SIZE), size=SIZE)
    assert evaluation.way(group[0]) == evaluation.way(group[1])
    assert applied == {evaluation.way(classifier): COUNT for classifier in group[1:]} and len(applied) == 3


def test_logits_are_those_of_asking_each_classifier_alone_bit_for_bit(shards, table, group):
    fed = list(evaluation.logits(group, evaluation.shard_batches(shards, size=SIZE), size=SIZE))
    assert pd.concat([rows for rows, _ in fed]).equals(table[tables.KEY])  # the order is kept
    for place, classifier in enumerate(group):
        parts = [[*tables.pictures(table[start : start + SIZE], "own")] for start in range(0, COUNT, SIZE)]
        alone = torch.cat([evaluation.batch_logits(classifier, part, size=SIZE) for part in parts])
        assert torch.equal(torch.cat([found[place] for _, found in fed]), alone)


def test_pictures_that_take_different_times_keep_their_order(group):
    """Each grey picture shows its own number, and the first of a batch are read last."""
    grey = [np.full((32, 32, 3), number, np.uint8) for number in range(24)]

    def late(number: int) -> np.ndarray:
        time.sleep(0.003 * (6 - number % 6))
        return grey[number]

    batches = [(pd.DataFrame({"number": part}), [partial(late, number) for number in part]) for part in np.arange(24).reshape(4, 6)]
    found = torch.cat([own for _, (own, *_) in evaluation.logits(group, batches, size=6)])
    assert torch.equal(found, torch.cat([group[0].logits(grey[start : start + 6]) for start in range(0, 24, 6)]))
    assert len({tuple(row) for row in found.tolist()}) == 24


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_a_card_gets_pinned_batches_and_its_answers_are_those_of_the_plain_procedure(models):
    one = classifiers.load("vit", str(models / "vit"), LABELS, "cuda")
    pictures = np.random.default_rng(1).integers(0, 256, (SIZE, SIDE, SIDE, 3), dtype=np.uint8)
    batch = next(evaluation.array_batches(pd.DataFrame({"row": range(SIZE)}), pictures, size=SIZE))
    _, inputs = next(evaluation.prepared([batch], {evaluation.way(one): one.transform}, size=SIZE, device="cuda"))
    assert all(pixels.is_pinned() for pixels in inputs.values())
    assert torch.equal(evaluation.outputs([one], inputs)[0], one.logits(pictures))


def test_no_more_batches_are_read_than_are_promised(group):
    read: list[int] = []

    def batches():
        for number in range(12):
            read.append(number)
            yield pd.DataFrame({"number": [number]}), [lambda: np.zeros((32, 32, 3), np.uint8)]

    for rows, _ in evaluation.logits(group[:1], batches(), size=1):
        time.sleep(0.02)  # a network that is slower than the reader
        assert len(read) <= rows["number"].iloc[0] + 1 + evaluation.AHEAD
    assert read == list(range(12))


def test_the_networks_compute_in_as_many_threads_as_before_and_nothing_is_left_running(group):
    picture, before, running = np.zeros((32, 32, 3), np.uint8), torch.get_num_threads(), threading.active_count()
    seen = [torch.get_num_threads() for _ in evaluation.logits(group, [(pd.DataFrame({"row": [0]}), [lambda: picture])] * 3, size=1)]
    assert seen == [before] * 3
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == before == torch.get_num_threads()
    fed = evaluation.logits(group, [(pd.DataFrame({"row": [0]}), [lambda: picture])] * 9, size=1)
    next(fed)
    fed.close()  # as a killed run does
    assert threading.active_count() == running


def test_a_killed_run_keeps_the_finished_groups_and_decodes_for_the_others_alone(shards, models, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "TOGETHER", 2)
    undisturbed, ask, asked = evaluate(shards, models, tmp_path / "undisturbed"), evaluation.ask, []

    def killed(group, batches, **how):
        asked.append([classifier.name for classifier in group])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return ask(group, batches, **how)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(evaluation, "ask", killed)
        evaluate(shards, models, tmp_path / "out")
    finished = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    assert sorted(finished) == ["deit.parquet", "vit.parquet"] and asked == [["vit", "deit"], ["clip", "wide"]]
    calls = counted(monkeypatch)
    assert evaluate(shards, models, tmp_path / "out") == undisturbed
    assert set(calls.values()) == {1}
    assert all((tmp_path / "out" / name).stat().st_mtime_ns == stamp for name, stamp in finished.items())
