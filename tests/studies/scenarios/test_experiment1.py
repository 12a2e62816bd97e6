"""Subjects with their masks, scenes drawn around them, and both experiments on a tiny network."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import agrees
from tiny_garments import VIT, garments
from tiny_settings import changed

from cnslib.core import kinds, paths, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Scenarios
from cnslib.models import classifiers, text_to_image
from cnslib.studies.scenarios import experiment1, experiment2, scenarios, subjects, views
from cnslib.studies.scenarios.experiment2 import Experiment
from cnslib.world import cutouts, scenes, zoo

LABELS = list(scenes.CLASSES)
CLASSES = ["sneaker", "ankle boot"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Scenarios:
    """Two objects per class, and one tiny network with random weights."""
    folder = tmp_path_factory.mktemp("networks") / "tiny"
    network = zoo.network_of(VIT)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        zoo.save(timm.create_model(network["architecture"], num_classes=len(LABELS), **network["arguments"]), folder, **network)
    return Scenarios(
        bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1), seed=1, classifiers={"lite0": "lite:0"},
        cutouts=2, backbones={"tiny": str(folder)}, images=2,
        severities=[0.0, 0.5, 1.0], photo_severities=[0.0, 1.0], drawing_steps=2, guidance=2.0, training_images=2, steps=2,
        batch_size=4, learning_rate=1e-3, average=0.5,
    )  # fmt: skip


@pytest.fixture
def found():
    return subjects.garments(garments(), "heldout", CLASSES, count=2, seed=1)


@pytest.fixture
def few(monkeypatch):
    """Rectangles in place of Fashion-MNIST, in this process alone."""
    monkeypatch.setattr(scenes, "garments", lambda _folder, pool: garments(pool))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    experiment2.read.cache_clear()
    yield
    experiment2.read.cache_clear()


def test_a_subject_belongs_to_its_class_and_number(found):
    """Fewer garments, or one class alone, are the same garments."""
    (alone,) = subjects.garments(garments(), "heldout", ["ankle boot"], count=1, seed=1)
    same = found[2]
    assert (alone.label, alone.seed) == (same.label, same.seed) == ("ankle boot", 0)
    assert all(np.allclose(getattr(alone, part), getattr(same, part), atol=1e-6) for part in ("image", "mask", "other"))
    with pytest.raises(ValueError, match=r"scenarios\.images: 3 is not accepted; accepted: at most 2, the garments of class 'sneaker'"):
        subjects.garments(garments(), "heldout", CLASSES, count=3, seed=1)


def test_a_photograph_is_the_photo_sets_scene_and_another_one_stands_behind_it():
    first, second = subjects.photographs(paths.PHOTOS, count=2, seed=1)
    assert np.array_equal(first.other, second.image) and np.array_equal(second.other, first.image)
    objects = cutouts.read(paths.PHOTOS, count=1)
    ours, theirs = subjects.shown(first, UNSHIFTED, 1.0, seed=1), cutouts.shifted(objects[0], UNSHIFTED, [0.0], seed=1)[0]
    apart = np.abs(ours.astype(int) - theirs)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01  # ties of rounding: double precision here, single there


@pytest.mark.parametrize("name", [*scenarios.NAMES, scenarios.SUMMED])
def test_what_is_shown_keeps_its_part_and_its_random_numbers_along_the_severity(found, name):
    """A hue drawn anew at every severity would not lie between the image and the scenario."""
    own = dataclasses.replace(found[0], drawn=found[1].image)
    start, half, end = (subjects.shown(own, name, severity, seed=1).astype(int) for severity in (0.0, 0.5, 1.0))
    assert np.array_equal(start, subjects.rounded(own.image))
    if "blurred" not in name:
        assert (abs(2 * half - start - end) <= 3).mean() > (0.5 if name == scenarios.SUMMED else 0.999)
    if name != scenarios.SUMMED:
        kept = own.mask == (0 if name.endswith("object") else 1)
        assert np.array_equal(end[kept], start[kept])


def test_a_transparent_picture_is_white_behind_the_object(found):
    sheet, rows = views.sheet(found[:1], [UNSHIFTED, views.TRANSPARENT], side=32, seed=1)
    assert sheet.shape == (1, 2, 32, 32, 3) and rows["class"].tolist() == ["sneaker"]
    outside = found[0].mask[::2, ::2] == 0
    assert (sheet[0, 1][outside] == 255).all() and not (sheet[0, 0][outside] == 255).all()


def test_what_is_kept_stays_and_what_is_free_is_painted(tiny_pipeline_dir, settings):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    generator = torch.Generator().manual_seed(1)
    known, noise = (torch.randn(1, 4, 16, 16, generator=generator) for _ in range(2))
    kept = torch.zeros(1, 1, 16, 16)
    kept[..., :8] = 1
    words = text_to_image.embed(pipe, ["", "a picture of a sneaker"])
    made = subjects.repaint(pipe, known, kept, noise, words, settings=settings)
    assert torch.equal(made[..., :8], known[..., :8]) and not torch.allclose(made[..., 8:], known[..., 8:], atol=0.1)


def test_a_drawn_scene_belongs_to_its_object_and_is_drawn_once(tiny_pipeline_dir, settings, found, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    given = {"pipeline": tiny_pipeline_dir, "settings": settings, "device": "cpu", "folder": tmp_path}
    drawn = subjects.draw_all(found, **given)
    alone = subjects.draw(text_to_image.load_pipeline(tiny_pipeline_dir, "cpu"), found[3:], settings=settings)
    assert np.abs(drawn[3].drawn * 255 - alone[0].numpy()).max() <= 1
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / "sneaker.parquet").unlink()
    again = subjects.draw_all(found, **given)
    assert all(np.array_equal(one.drawn, other.drawn) for one, other in zip(drawn, again, strict=True))
    unchanged = {path.name for path, time in times.items() if path.stat().st_mtime_ns == time}
    assert unchanged == {"ankle_boot.parquet", "ankle_boot.parquet.digest"}


def test_ex1_asks_every_scenario_severity_and_object_once_and_the_answers_are_the_classifiers(tiny_pipeline_dir, settings, tmp_path, few):
    given = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": tmp_path / "garments"}
    replies = experiment1.garments(CLASSES, **given, drawn=tmp_path / "drawn", pipeline=tiny_pipeline_dir)
    counts = replies.groupby(["shift", "scale"]).size().to_dict()
    graded = [(name, scale) for name in (*scenarios.NAMES, scenarios.SUMMED) for scale in (0.5, 1.0)]
    assert counts == {(UNSHIFTED, 0.0): 4} | dict.fromkeys(graded, 4)
    judge = classifiers.load("tiny", settings.backbones["tiny"], LABELS)
    own = subjects.garments(garments(), "heldout", CLASSES, count=2, seed=1)[1]
    logits = judge.logits([subjects.shown(own, "red", 1.0, seed=1)])
    row = replies.query("shift == 'red' and scale == 1 and `class` == 'sneaker' and seed == 1")
    assert row["top1"].tolist() == [LABELS[int(logits.argmax())]]


def test_ex2_trains_each_backbone_within_each_scenario_of_table_1_and_repeats_to_the_bit(settings, tmp_path, few):
    parts = []
    for run in ("first", "second"):
        experiment = Experiment(settings, CLASSES, LABELS, tmp_path / run / "checkpoints", "cpu")
        parts.append(experiment2.outcome(experiment, folder=tmp_path / run / "within"))
        assert not list((tmp_path / run / "checkpoints").iterdir())
    assert parts[0].groupby("shift").size().to_dict() == dict.fromkeys(experiment2.TRAINED, 4)
    pd.testing.assert_frame_equal(*parts)


def test_all_scenarios_train_on_the_same_garments_and_on_none_of_the_test(settings, few):
    experiment = Experiment(settings, CLASSES, LABELS, paths.ROOT, "cpu")
    plain, original, label = experiment2.examples(experiment, UNSHIFTED, "catalog", 2)
    same, changed, again = experiment2.examples(experiment, "segmented", "catalog", 2)
    assert torch.equal(label, again) and [own.label for own in plain] == [own.label for own in same]
    inside = plain[0].mask == 1
    assert np.array_equal(original[0][inside], changed[0][inside]) and (changed[0][plain[0].mask == 0] == 0).all()
    heldout, _, _ = experiment2.examples(experiment, UNSHIFTED, "heldout", 2)
    assert not np.allclose(heldout[0].image, plain[0].image)


def test_another_setting_of_the_training_is_another_unit(settings, tmp_path):
    experiment = Experiment(settings, CLASSES, LABELS, tmp_path, "cpu")
    longer = dataclasses.replace(experiment, settings=dataclasses.replace(settings, steps=3))
    bootstrap = dataclasses.replace(experiment, settings=dataclasses.replace(settings, bootstrap=Bootstrap(7, 0.95, 1)))
    assert experiment.stamp("tiny", "grey") == bootstrap.stamp("tiny", "grey") != longer.stamp("tiny", "grey")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"severities": [0.0, 0.5]}, r"scenarios\.severities: \[0\.0, 0\.5\] is not accepted; accepted: ascending from 0\.0 to 1\.0"),
        ({"backbones": {}}, r"scenarios\.backbones: \{\} is not accepted; accepted: .*at least 1 item"),
        ({"steps": 0}, r"scenarios\.steps: 0 is not accepted; accepted: greater than or equal to 1"),
        ({"cutouts": 1}, r"scenarios\.cutouts: 1 is not accepted; accepted: greater than or equal to 2"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, change, message):
    with pytest.raises(ValueError, match=message):
        changed(settings, **change)


def test_replies_have_one_row_per_question():
    row = {"model": "a", "shift": "grey", "class": "bag", "seed": 1, "scale": 1.0, "top1": "bag"}
    with pytest.raises(ValueError, match="breaks its schema"):
        tables.check(pd.DataFrame([row, row]), experiment1.replies)


def test_the_tiny_units_are_the_golden_ones(tiny_pipeline_dir, settings, found, tmp_path, few):
    drawn = subjects.draw_all(found, pipeline=tiny_pipeline_dir, settings=settings, device="cpu", folder=tmp_path / "drawn")
    agrees(kinds.DRAWN_BACKGROUNDS, np.stack([own.drawn * 255 for own in drawn]))
    given = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": tmp_path / "garments"}
    agrees(kinds.EX1, experiment1.garments(CLASSES, **given, drawn=tmp_path / "drawn", pipeline=tiny_pipeline_dir))
    names = [name for name in scenarios.NAMES if name != subjects.NAME]
    agrees(kinds.SUBJECTS, np.stack([subjects.shown(found[0], name, 1.0, seed=1) for name in names]))


def test_what_a_backbone_is_trained_on_is_the_golden_one(settings, tmp_path, few):
    """The training itself is in bf16, which processors round in their own way."""
    experiment = Experiment(settings, CLASSES, LABELS, tmp_path, "cpu")
    pictures = [experiment2.examples(experiment, name, "catalog", 2)[1] for name in experiment2.TRAINED]
    agrees(kinds.EX2, np.concatenate(pictures))
