import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import timm
import torch
from golden_units import difference
from PIL import Image
from tiny_garments import VIT, garments
from tiny_settings import RESAMPLED

from cnslib.core import recipes
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.sections import Synthetic
from cnslib.data import imagenet
from cnslib.models import encoders
from cnslib.studies import synthetic
from cnslib.studies.synthetic import BEFORE, CATALOG, MIXED, REAL, STYLES, EvaluationSet, Experiment, Stock
from cnslib.world import scenes, zoo

LABELS = list(scenes.CLASSES)
LEARNING = {"runs": 2, "steps": 2, "batch_size": 8, "learning_rate": 1e-3, "average": 0.5, "style_images": 1, "lowest": 0.35}
SETTINGS = Synthetic(bootstrap=RESAMPLED, seed=1, tests={}, network="", share=0.5, **LEARNING)


def many(_folder=None, _pool=None, _classes=None) -> scenes.Garments:
    few = garments()
    return scenes.Garments(few.grey.repeat(10, 1, 1), np.tile(few.labels, 10))


@pytest.fixture
def experiment(tmp_path) -> Experiment:
    network = zoo.network_of(VIT)
    torch.manual_seed(0)
    model = timm.create_model(network["architecture"], num_classes=len(LABELS), **network["arguments"])
    zoo.save(model, tmp_path / "network", **network)
    rng = np.random.default_rng(0)
    stock = Stock(rng.integers(0, 256, (2, 64, 64, 3), dtype=np.uint8), np.array([3, 7]), "made up")
    plan, pictures = synthetic.styled(many(), ["bag", "coat"], settings=SETTINGS)
    settings = dataclasses.replace(SETTINGS, network=str(tmp_path / "network"))
    return Experiment(settings, stock, EvaluationSet(plan, pictures), LABELS, tmp_path / "checkpoints", "cpu")


def test_half_of_a_batch_is_generated_and_the_other_half_is_that_of_the_real_arm(experiment):
    real, named = synthetic.batch(many(), experiment.generated, ("key", 1), experiment, share=0.0)
    mixed, mixed_named = synthetic.batch(many(), experiment.generated, ("key", 1), experiment, share=0.5)
    assert torch.equal(real[:4], mixed[:4]) and torch.equal(named[:4], mixed_named[:4]) and len(mixed) == len(real) == 8
    stored = torch.from_numpy(experiment.generated.pictures).permute(0, 3, 1, 2) / 255
    own = {3: stored[0], 7: stored[1]}
    assert all(torch.equal(image, own[int(label)]) for image, label in zip(mixed[4:], mixed_named[4:], strict=True))


@pytest.mark.usefixtures("in_place")
def test_real_pictures_train_and_a_published_test_set_is_scored_among_its_classes(experiment, tmp_path, monkeypatch):
    """ImageNet's folders and ImageNet-R's; no answer to the latter is a class that it lacks, such as the first of ImageNet's."""
    monkeypatch.setattr(synthetic, "SIDE", 64)
    labels, wnid = list(imagenet.labels()), imagenet.wnids()[1]
    for tree in ("imagenet/train", "imagenet/val", "imagenet-r"):
        (tmp_path / tree / wnid).mkdir(parents=True)
        for number in range(2):
            noise = np.random.default_rng(number).integers(0, 256, (70, 80, 3), dtype=np.uint8)
            Image.fromarray(noise).save(tmp_path / tree / wnid / f"art_{number}.JPEG")
    network = zoo.network_of(VIT)
    zoo.save(timm.create_model(network["architecture"], num_classes=1000, **network["arguments"]), tmp_path / "large", **network)
    settings = dataclasses.replace(SETTINGS, network=str(tmp_path / "large"), tests={"imagenet-r": str(tmp_path / "imagenet-r")}, runs=1)
    shown = synthetic.real_evaluation_set(tmp_path / "imagenet", ["goldfish"], settings=settings)
    own = dataclasses.replace(experiment, settings=settings, evaluation_set=shown, labels=labels)
    files = synthetic.training_files(tmp_path / "imagenet", ["goldfish"])
    replies = synthetic.outcome(own, folder=tmp_path / "runs", photographs=files)
    assert replies.groupby(["exam", "arm"]).size().to_dict() == {(e, a): 2 for e in (CATALOG, "imagenet-r") for a in (BEFORE, REAL, MIXED)}
    assert set(replies.loc[replies["exam"] == "imagenet-r", "top1"]) <= {*shown.tests["imagenet-r"].outputs}
    logits, (model, _) = np.eye(1, 1000).repeat(4, 0), encoders.timm_model("x", settings.network, "cpu")
    monkeypatch.setattr(synthetic.pools, "outputs", lambda *_: logits)
    assert synthetic.predictions(model, shown, labels, "cpu") == ["tench"] * 2 + [next(iter(shown.tests["imagenet-r"].outputs))] * 2


@pytest.mark.usefixtures("in_place")
def test_runs_are_made_once_and_a_lost_one_comes_back_with_the_same_bytes(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(scenes, "garments", many)
    replies = synthetic.outcome(experiment, folder=tmp_path / "runs")
    assert replies.groupby(["arm", "run"]).size().to_dict() == {(BEFORE, 0): 16} | {
        (arm, run): 16 for arm in (REAL, MIXED) for run in (1, 2)
    }
    before = {path.name: path.read_bytes() for path in (tmp_path / "runs").glob("*.parquet")}
    (tmp_path / "runs" / "real_2.parquet").unlink()
    made, original = [], synthetic.train_and_answer
    monkeypatch.setattr(synthetic, "train_and_answer", lambda *a: made.append(a[1]) or original(*a))
    synthetic.outcome(experiment, folder=tmp_path / "runs")
    assert made == [(REAL, 2)]
    assert {path.name: path.read_bytes() for path in (tmp_path / "runs").glob("*.parquet")} == before
    assert not list(experiment.checkpoints.glob("*"))


def replies(right: dict[tuple[str, int], list[bool]], evaluation_set: str = STYLES) -> pd.DataFrame:
    rows = [
        (arm, run, evaluation_set, "cartoon style", "bag", i, "bag" if ok else "coat")
        for (arm, run), own in right.items()
        for i, ok in enumerate(own)
    ]
    return pd.DataFrame(rows, columns=["arm", "run", *synthetic.PICTURE, "top1"])


KNOWN = {
    (BEFORE, 0): [True, False, False, False],
    (REAL, 1): [True, False, False, False],
    (MIXED, 1): [True, True, False, False],
    (REAL, 2): [True, True, False, False],
    (MIXED, 2): [True, True, True, True],
    (REAL, 3): [False, True, False, False],
    (MIXED, 3): [False, True, True, False],
}


def test_gains_are_paired_by_run_with_the_t_interval_of_the_differences():
    found = synthetic.gains(replies(KNOWN), by="exam", confidence=0.95).iloc[0]
    differences = np.array([0.25, 0.5, 0.25])
    low, high = scipy.stats.t.interval(0.95, 2, differences.mean(), differences.std(ddof=1) / np.sqrt(3))
    assert (found["n"], found["estimate"]) == (3, pytest.approx(1 / 3))
    assert (found["low"], found["high"]) == pytest.approx((low, high))


def test_over_garments_runs_are_averaged_before_arms_are_compared():
    both = pd.concat([replies(KNOWN), replies(KNOWN, CATALOG).assign(shift=UNSHIFTED)])
    found = synthetic.over_garments(both, first=MIXED, second=BEFORE, settings=SETTINGS.bootstrap)
    assert found["n"].tolist() == [4, 4] and found["estimate"].tolist() == pytest.approx([2 / 3 - 1 / 4] * 2)


def test_the_styled_test_set_is_the_golden_one():
    _, pictures = synthetic.styled(many(), ["bag", "coat"], settings=SETTINGS)
    assert not difference(recipes.SYNTHETIC, pictures)
