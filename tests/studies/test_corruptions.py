"""Corruptions against their definitions: known pixels, the same bits every time, and answers that are made once."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_encoders import write_timm
from tiny_settings import changed

from cnslib.core import kinds, tables
from cnslib.core.settings.method import Bootstrap, Evaluation
from cnslib.core.settings.studies import Corruptions
from cnslib.studies import corruptions

SETTINGS = Corruptions(
    bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1, target="same classes"),
    images=2,
    contrast=[0.4, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05],
    contrast_severities=[1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0],
    noise=[0.04, 0.08, 0.12, 0.15, 0.18],
    blur=[0.5, 0.75, 1.0, 1.25, 1.5],
    jpeg=[65.0, 58.0, 50.0, 40.0, 25.0],
    reference="alexnet",
)
LABELS = ["bag", "coat", "shirt"]


def pictures(count=4, side=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def keys(count=4):
    return [("bag", number) for number in range(count)]


@pytest.mark.parametrize("value", [0.4, 0.05])
def test_contrast_draws_each_channel_to_its_own_mean(value):
    plain = pictures()
    pixels = plain / 255
    means = pixels.mean(axis=(1, 2), keepdims=True)
    expected = np.clip((pixels - means) * value + means, 0, 1) * 255
    made = corruptions.corrupt(corruptions.CONTRAST, plain, value, keys=keys())
    assert np.abs(made - expected).max() < 1 + 1e-6 and (made <= expected + 1e-6).all()  # cut off to 8 bits, not rounded


def test_two_grey_levels_keep_the_wanted_share_of_their_difference():
    half = np.zeros((1, 4, 4, 3), np.uint8)
    half[:, :, 2:] = 200
    made = corruptions.corrupt(corruptions.CONTRAST, half, 0.2, keys=keys(1))
    low, high = np.unique(made)
    assert low in (79, 80) and high in (119, 120)  # the mean is 100; a value just below a whole number is cut off


def test_a_flat_picture_has_no_contrast_to_lose_and_nothing_to_blur():
    flat = np.full((1, 8, 8, 3), 100, np.uint8)
    for name in (corruptions.CONTRAST, corruptions.BLUR):
        assert np.abs(corruptions.corrupt(name, flat, 0.5, keys=keys(1)).astype(int) - 100).max() <= 1


def test_noise_has_the_wanted_deviation_and_belongs_to_the_picture():
    grey = np.full((2, 64, 64, 3), 128, np.uint8)
    made = corruptions.corrupt(corruptions.NOISE, grey, 0.08, keys=keys(2)) / 255
    assert made.std() == pytest.approx(0.08, rel=0.03) and made.mean() == pytest.approx(0.5, abs=0.005)
    alone = corruptions.corrupt(corruptions.NOISE, grey[1:], 0.08, keys=keys(2)[1:])
    np.testing.assert_array_equal(alone[0], corruptions.corrupt(corruptions.NOISE, grey, 0.08, keys=keys(2))[1])
    assert (made[0] != made[1]).any()


def test_noise_grows_along_one_direction():
    grey = np.full((1, 16, 16, 3), 128, np.uint8)
    mild, strong = (corruptions.corrupt(corruptions.NOISE, grey, value, keys=keys(1)).astype(float) - 128 for value in (0.05, 0.1))
    assert np.corrcoef(mild.ravel(), strong.ravel())[0, 1] > 0.99 and strong.std() == pytest.approx(2 * mild.std(), rel=0.05)


def test_blur_of_a_point_is_a_gaussian_that_stays_in_its_picture_and_channel():
    point = np.zeros((2, 15, 15, 3))
    point[0, 7, 7, 1] = 1
    made = corruptions.gaussian_blur(point, 1.5)
    assert made[1].max() == 0 and made[0, :, :, [0, 2]].max() == 0 and made[0].sum() == pytest.approx(1)
    x = np.arange(-6, 7)  # four standard deviations
    weights = np.exp(-(x**2) / (2 * 1.5**2))
    np.testing.assert_allclose(made[0, 7, 1:14, 1] / made[0, 7, 7, 1], weights, atol=1e-12)


def test_a_lower_jpeg_quality_leaves_less_of_the_picture():
    plain = pictures(2, 32)
    apart = [
        np.abs(corruptions.corrupt(corruptions.JPEG, plain, value, keys=keys(2)).astype(int) - plain).mean() for value in SETTINGS.jpeg
    ]
    assert apart == sorted(apart) and apart[0] > 0


@pytest.mark.parametrize("name", corruptions.NAMES)
def test_equal_inputs_give_equal_bytes_and_leave_the_original_alone(name):
    plain = pictures()
    before = plain.copy()
    value = next(iter(corruptions.levels(SETTINGS)[name].values()))
    first, second = (corruptions.corrupt(name, plain, value, keys=keys()) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(plain, before)
    assert first.dtype == np.uint8 and first.shape == plain.shape and (first != plain).any()


def test_severities_one_to_five_are_those_of_tiny_imagenet_c():
    levels = corruptions.levels(SETTINGS)
    assert {name: [own[float(s)] for s in range(1, 6)] for name, own in levels.items()} == {
        "contrast": [0.4, 0.3, 0.2, 0.1, 0.05],
        "gaussian noise": [0.04, 0.08, 0.12, 0.15, 0.18],
        "gaussian blur": [0.5, 0.75, 1.0, 1.25, 1.5],
        "jpeg compression": [65, 58, 50, 40, 25],
    }
    assert len(levels["contrast"]) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contrast": [0.4]}, r"corruptions\.contrast: \[0\.4\].*one value for each of 7"),
        ({"contrast_severities": [1.0, 1.0]}, r"corruptions\.contrast_severities.*ascending"),
        ({"noise": [0.1]}, r"corruptions\.noise: \[0\.1\].*as many values as blur and jpeg"),
        ({"images": 0}, r"corruptions\.images: 0"),
    ],
)
def test_settings_that_do_not_fit_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **change)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A catalog of two classes and a tiny classifier that has answered."""
    folder = tmp_path_factory.mktemp("corruptions")
    rows = [("heldout", name, seed, tables.encode(pictures(1, 32, seed)[0])) for name in LABELS[:2] for seed in range(3)]
    tables.write(pd.DataFrame(rows, columns=["split", "class", "seed", "image"]), folder / "catalog.parquet", tables.catalog)
    write_timm(folder / "model", outputs=len(LABELS))

    def call(settings=SETTINGS):
        how = Evaluation({"tiny": str(folder / "model")}, batch_size=8, preprocessing="model")
        given = {"labels": LABELS, "settings": settings, "classifiers": how, "device": "cpu", "folder": folder / "answers"}
        return corruptions.evaluate(folder / "catalog.parquet", LABELS[:2], **given)["tiny"]

    return call


def test_every_picture_is_answered_once_per_severity(answered):
    table = tables.read(answered(), tables.predictions)
    graded = [(name, severity) for name, own in corruptions.levels(SETTINGS).items() for severity in own]
    wanted = [(shift, name, seed, scale) for shift, scale in [("unshifted", 0.0), *graded] for name in LABELS[:2] for seed in range(2)]
    assert len(tables.complete(table, wanted, tables.KEY, "answers")) == len(table) == len(wanted)


def test_answers_are_kept_until_a_level_changes(answered):
    first = answered().stat().st_mtime_ns
    assert answered().stat().st_mtime_ns == first
    changed = dataclasses.replace(SETTINGS, blur=[0.5, 0.75, 1.0, 1.25, 2.0])
    assert answered(changed).stat().st_mtime_ns != first


def test_the_tiny_unit_is_the_golden_one(answered):
    assert not difference(kinds.CORRUPTIONS, tables.read(answered(), tables.predictions))
