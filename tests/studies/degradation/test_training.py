"""Classifiers of shifted data sets: what they learn, who sees the same batches, and findings that are known by hand."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import tiny_shifts
import torch
from golden_units import agrees
from tiny_settings import changed

from cnslib.core import kinds, tables, units, workers
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Degradation
from cnslib.models import networks
from cnslib.stats import accuracy
from cnslib.studies.controlshift import datasets, latents
from cnslib.studies.degradation import distance, findings, training
from cnslib.studies.degradation.training import Course, Lesson

SHIFTED = dataclasses.replace(tiny_shifts.SHIFTED, train_images=6, validation_images=2)
SETTINGS = Degradation(
    bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1),
    seed=1,
    networks=["resnet20", "svm"],
    runs=2,
    reference="resnet20",
    rce_reference="a",
    steps=15,
    batch_size=8,
    learning_rate=5e-3,
    penalties=[1.0, 10.0],
    least=0.0,
)
CLASSES = ["bag", "coat"]
LEVELS = {"bag": 60, "coat": 190}


def picture(name: str, seed: int, step: float) -> bytes:
    """A grey square with some noise: dark for a bag, light for a coat; at the last step of overlap both are of the same grey."""
    level = LEVELS[name] if step == 0 else 125
    noise = np.random.default_rng(seed).integers(-20, 20, (32, 32, 3))
    return tables.encode((level + noise).astype(np.uint8))


class Means:
    """An encoder whose only feature is the mean grey."""

    def features(self, pictures):
        return torch.from_numpy(pictures.mean((1, 2, 3)))[:, None]


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    """Data sets whose classes are told apart by their grey, until a shift takes that away."""
    folder = tmp_path_factory.mktemp("sets")
    for piece in datasets.plan(SHIFTED):
        numbers = range(piece.first, piece.first + piece.count)
        step = float(piece.step) if piece.split == "test" else 0.0
        rows = [
            {"shift": piece.kind, "class": name, "seed": n, "scale": float(piece.step), "image": picture(name, n + len(piece.split), step)}
            for name in CLASSES
            for n in numbers
        ]
        tables.write(pd.DataFrame(rows), folder / f"{piece.name}.parquet", tables.images)
    return Course(SETTINGS, SHIFTED, folder, CLASSES, tmp_path_factory.mktemp("checkpoints"), "cpu")


@pytest.fixture(scope="module")
def answers(course, tmp_path_factory) -> pd.DataFrame:
    """The answers of all trainings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        return training.outcome(course, tmp_path_factory.mktemp("answers"))


def test_every_network_is_trained_in_both_ways_and_the_reference_on_every_set():
    found = training.lessons(SETTINGS)
    plain = {(one.training, one.run) for one in found if one.network == "resnet20" and not one.augmented}
    assert plain == {("truncation", 1), *((training, run) for training in ("half sphere", "large", "full support") for run in (1, 2))}
    assert Lesson("truncation", "resnet20", True, 1) in found and len(set(found)) == len(found) == 7 + 2 + 2
    assert not any(one.augmented for one in found if one.network == training.SVM)


def test_what_can_be_learned_is_learned_and_fails_where_it_is_gone(answers):
    right = answers.assign(right=answers["top1"] == answers["class"]).groupby(["network", "augmented", "shift", "scale"])["right"].mean()
    assert right["svm", False, :, 0.0].min() == 1 and right["resnet20", False, :, 0.0].min() == 1
    assert right["svm", False, :, 1.0].max() <= 0.75


def test_the_answers_are_those_of_the_shifts_that_belong_to_the_training_set(answers):
    shifts = answers.groupby("training")["shift"].unique().map(sorted).to_dict()
    assert shifts == {"truncation": ["truncation"]} | {key: ["extend", "overlap"] for key in ("half sphere", "large", "full support")}
    found = findings.standard(answers)
    assert found.models == ["resnet20", "resnet20 + RandAugment", "svm"] and len(found.trajectories) == 3 * 2 * 2


def test_a_lost_training_comes_back_with_the_same_answers(course, answers, tmp_path):
    lesson = Lesson("truncation", "resnet20", True, 1)
    unit = units.Unit(tmp_path / "again.parquet", course.stamp(lesson))
    workers.each(training.sit, [(course, lesson, unit)], device="cpu")
    again = tables.read(unit.path, training.schema)
    same = answers.query("training == 'truncation' and network == 'resnet20' and augmented").reset_index(drop=True)
    pd.testing.assert_frame_equal(again, same)
    assert not list(course.checkpoints.iterdir())


def test_a_training_depends_on_its_own_files_alone(course):
    other = dataclasses.replace(
        course, settings=dataclasses.replace(SETTINGS, runs=5, bootstrap=Bootstrap(7, 0.95, 1), networks=["vit"], reference="vit")
    )
    slower = dataclasses.replace(course, settings=dataclasses.replace(SETTINGS, learning_rate=1e-3))
    for lesson in training.lessons(SETTINGS):
        assert other.stamp(lesson) == course.stamp(lesson) != slower.stamp(lesson)


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_every_network_answers_for_pictures_of_32_pixels(name):
    network = networks.build(name, 3).eval()
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 3)


def test_resnet20_has_twenty_layers_with_weights():
    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    layers = [name for name, module in networks.build("resnet20", 10).named_modules() if isinstance(module, kinds)]
    assert len([name for name in layers if "downsample" not in name]) == 20


def test_distances_are_those_of_brute_force_to_the_own_training_set(course):
    found = distance.from_training(course.sets, SHIFTED, Means(), "truncation", ("truncation",))
    known, _ = training.stock(course, ["train_truncation"])
    asked = tables.pictures(datasets.test_set(course.sets, SHIFTED, ("truncation",)), "test")
    flat = [pictures.reshape(len(pictures), -1) / 255 for pictures in (known, asked)]
    assert np.allclose(found["pixel"], np.linalg.norm(flat[1][:, None] - flat[0][None], axis=-1).min(1))
    means = [pictures.mean((1, 2, 3)) for pictures in (known, asked)]
    assert np.allclose(found["feature"], np.abs(means[1][:, None] - means[0][None]).min(1))
    table = distance.means(found)
    assert table["n"].tolist() == [4, 4] and table["pixel"].tolist() == found.groupby("scale")["pixel"].mean().tolist()


def shares(curves: dict[str, list[float]], shift: str = "overlap") -> accuracy.Shares:
    """Error rates of some classifiers along the steps, the same in every resample and in both groups."""
    values = np.array(list(curves.values()), float)
    samples = np.broadcast_to(values, (11, 2, *values.shape)).copy()
    return accuracy.Shares(samples, [shift, accuracy.ALL], np.array([20, 20]), list(curves), list(range(values.shape[1])), 0.95)


def test_findings_are_differences_that_a_hand_can_take():
    mixer = {"mixer": [0.9, 0.9, 0.9], "mixer + RandAugment": [0.2, 0.9, 0.9]}  # the first has learned nothing
    curves = {"resnet20": [0.1, 0.2, 0.3], "vit": [0.1, 0.3, 0.5], "resnet20 + RandAugment": [0.1, 0.1, 0.2]}
    errors = shares(curves | mixer)
    slopes = dataclasses.replace(errors, samples=-(errors.samples[..., -1:] - errors.samples[..., :1]), bins=[0.0])
    sets = shares({"full support": [0.1, 0.1, 0.1], "half sphere": [0.1, 0.2, 0.3], "large": [0.1, 0.2, 0.2]})
    found = {name: row["estimate"] for name, row in findings.findings(errors, slopes, sets, least=0.2).items()}
    expected = {"decline": 0.3, "augmented": 0.1, "augmentation": 0.1, "size": 0.05, "support": 0.1, "bias": 0.2}
    assert found == pytest.approx(expected)


def test_verdicts_follow_from_the_interval():
    said = ["above 0"] * 3 + ["about 0"] * 3 + ["0.1"]
    tolerance = [np.nan] * 3 + [0.15] * 3 + [np.nan]
    published = pd.DataFrame({"id": list("abcdefg"), "finding": "f", "quantity": "q", "published": said, "tolerance": tolerance})
    bounds = [(0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.1, 0.2), (0.2, 0.3), (0.05, 0.3)]
    found = {name: {"n": 1, "estimate": sum(own) / 2, "low": own[0], "high": own[1]} for name, own in zip("abcdefg", bounds, strict=True)}
    table = findings.against(found, published)
    directions = ["same direction", "undecided", "opposite direction"]
    assert table["verdict"].tolist() == [*directions, "agrees", "undecided", "opposite direction", "agrees"]
    assert table.loc["g", "difference"] == pytest.approx(0.175 - 0.1)


def predictions(lost: dict[str, list[int]], shifts: list[str], steps: list[float]) -> pd.DataFrame:
    """Answers to ten bags per shift; at step i a model gets the first `lost[model][i]` of them wrong."""
    rows = [
        {"model": model, "shift": shift, "class": "bag", "seed": seed, "scale": step, "top1": "coat" if seed <= count else "bag"}
        for model, counts in lost.items()
        for step, count in zip(steps, counts, strict=True)
        for shift in ([UNSHIFTED] if UNSHIFTED in shifts and step == 0 else [s for s in shifts if s != UNSHIFTED])
        for seed in range(1, 11)
    ]
    return pd.DataFrame(rows)


def test_the_bridge_says_one_for_the_same_order_and_minus_one_for_the_reverse():
    lost = {"a": [0, 5], "b": [0, 7], "c": [0, 9]}
    benchmark = accuracy.error_shares(
        accuracy.outcomes(predictions(lost, [UNSHIFTED, "heavy snow"], [0.0, 1.0])), settings=SETTINGS.bootstrap
    )
    away = predictions({"a": [0, 0]}, ["extend", "overlap"], [0.0, 1.0]).drop(columns=["model", "top1"])
    away = away.assign(pixel=1 + away["scale"])
    for sign, own in ((1, lost), (-1, dict(zip(lost, reversed(lost.values()), strict=True)))):
        found = accuracy.outcomes(predictions(own, ["extend", "overlap"], [0.0, 1.0]))
        tau = findings.agreement(found, away, benchmark, space="pixel", reference="a", settings=SETTINGS.bootstrap)
        assert {record["estimate"] for record in tau.values()} == {sign}
        slopes = findings.steepness(found, away, space="pixel", settings=SETTINGS.bootstrap)
        assert slopes.samples[0, -1, :, 0].tolist() == pytest.approx([-row[1] / 10 for row in own.values()])
        beside = findings.both(slopes, benchmark, reference="a")
        assert beside["rce"].tolist() == pytest.approx([1, 1.4, 1.8])


def test_change_of_accuracy_stands_beside_the_distance_of_its_step():
    errors = shares({"vit": [0.1, 0.4]})
    means = pd.DataFrame({"shift": "overlap", "scale": [0, 1], "pixel": [2.0, 2.5]})
    found = findings.against_distance(errors, means, space="pixel")
    assert found["estimate"].tolist() == pytest.approx([0, -0.3]) and found["distance"].tolist() == [2.0, 2.5]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reference": "vit"}, r"degradation\.reference: 'vit'.*resnet20, svm"),
        ({"penalties": [0.0]}, r"degradation\.penalties"),
        ({"networks": []}, r"degradation\.networks"),
        ({"steps": 0}, r"degradation\.steps: 0"),
    ],
)
def test_what_is_no_setting_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **values)


def test_an_unknown_network_and_an_empty_set_are_named(course, tmp_path):
    with pytest.raises(ValueError, match=r"degradation\.networks: 'lenet'.*resnet20"):
        networks.build("lenet", 2)
    empty = datasets.load(course.sets, "train_extend").head(0)
    tables.write(empty.astype({"seed": int, "scale": float}), tmp_path / "train_extend.parquet", tables.images)
    with pytest.raises(ValueError, match=r"data set: .*at least one image"):
        training.stock(dataclasses.replace(course, sets=tmp_path), ["train_extend"])
    with pytest.raises(ValueError, match=r"controlshift\.side: 64 is not accepted; accepted: 32"):
        training.stock(dataclasses.replace(course, shifted=dataclasses.replace(SHIFTED, side=64)), ["train_extend"])


def test_kinds_of_shifts_are_those_of_the_latents():
    assert {*training.EXAMS["truncation"], *training.ON_SPHERE} == set(latents.KINDS)
    assert distance.slope(np.array([0.0, 1.0]), np.array([0.0, -2.0])) == -2


def test_the_tiny_units_are_the_golden_ones(course, answers):
    exact = answers[answers["network"] == training.SVM]
    agrees(kinds.DEGRADATION, exact)
    agrees(kinds.NEIGHBOURS, distance.from_training(course.sets, SHIFTED, Means(), "truncation", ("truncation",)))
