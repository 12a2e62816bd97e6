import copy
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from sklearn.metrics import roc_auc_score
from tiny_alignment import CHOSEN, GRID, LABELS, after_changes, picture, random_judges, write_all, write_images
from tiny_encoders import write_clip, write_timm
from tiny_settings import resampled

from cnslib.core import recipes, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.core.settings.method import Filtering
from cnslib.data import annotations, artifacts
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS
from cnslib.models import encoders
from cnslib.stats import bootstrap

SETTINGS = Filtering(recall=0.9, passes=3, bootstrap=resampled(100))
LIMITS = dict.fromkeys(DETECTORS, 0.5)


def scores(rows):
    table = pd.DataFrame(rows, columns=["shift", "class", "seed", "scale", "oracle_ooc", "value"])
    return table.assign(**dict.fromkeys(DETECTORS, table["value"])).drop(columns="value")


def benchmark(seeds=10, noise=0.0, seed=0):
    """Two classes and shifts; the images of scale 2 are out of class and less aligned, up to some noise."""
    rng = np.random.default_rng(seed)
    keys = itertools.product(["heavy snow", "cartoon style"], ["bag", "coat"], range(1, seeds + 1), [0.0, 1.0, 2.0])
    rows = [(*key, key[3] == 2, 0.9 - 0.4 * (key[3] == 2) + noise * rng.normal()) for key in keys]
    return scores(rows).assign(class_probability=0.9)


def test_the_threshold_on_ten_numbers_is_the_ninth():
    labelled = scores([("heavy snow", "bag", i, 1.0, True, i / 10) for i in range(10)] + [("heavy snow", "bag", 10, 1.0, False, 0.95)])
    limits = filtering.thresholds(labelled, 0.9)
    assert limits == dict.fromkeys(DETECTORS, pytest.approx(0.8))


def test_without_out_of_class_images_nothing_is_dropped():
    labelled = benchmark().assign(oracle_ooc=False)
    limits = filtering.thresholds(labelled, 0.9)
    assert filtering.keeps(filtering.rules(4)["ours"], labelled, limits).all()
    assert filtering.cross_validated(filtering.rules(3)["ours"], labelled, recall=0.9).all()
    assert filtering.roc(labelled).empty and filtering.areas(labelled, settings=SETTINGS.bootstrap).empty
    record = filtering.quality(labelled, pd.Series(True, index=labelled.index), settings=SETTINGS.bootstrap)["tpr"]
    assert record["n"] == 0 and np.isnan(record["estimate"])


@pytest.mark.parametrize("passes", [1, 2, 3, 4])
def test_k_of_four_on_all_sixteen_combinations(passes):
    """An image at a threshold fails. The paper's "drop if two are active" is passes 3, its released code keeps at 2."""
    combinations = list(itertools.product([0.5, 0.6], repeat=4))
    table, rules = pd.DataFrame(combinations, columns=list(DETECTORS)), filtering.rules(passes)
    keep = filtering.keeps(rules["ours"], table, LIMITS)
    assert keep.tolist() == [values.count(0.6) >= passes for values in combinations]
    assert keep.sum() == {1: 15, 2: 11, 3: 5, 4: 1}[passes]
    assert filtering.keeps(rules["clip"], table, LIMITS).tolist() == [values[0] > 0.5 for values in combinations]
    assert filtering.keeps(rules["clip_pair"], table, LIMITS).tolist() == [values[:2] == (0.6, 0.6) for values in combinations]


def test_one_dropped_image_drops_its_whole_trajectory_and_no_other():
    table = benchmark(seeds=2)
    keep = ~((table["shift"] == "heavy snow") & (table["class"] == "bag") & (table["seed"] == 1) & (table["scale"] == 0))
    whole = filtering.whole(table, keep)
    assert table[~whole][tables.TRAJECTORY].drop_duplicates().to_numpy().tolist() == [["heavy snow", "bag", 1]]
    assert (~whole).sum() == 3


def test_a_trajectory_that_does_not_start_in_class_neither_enters_the_benchmark_nor_its_rates():
    table = benchmark(seeds=2)
    lost = (table["class"] == "bag") & (table["seed"] == 1)
    table.loc[lost & (table["scale"] == 0), "class_probability"] = 0.4
    entered = filtering.enters(table, pd.Series(True, index=table.index))
    assert (entered == ~lost).all() and filtering.whole(table, pd.Series(True, index=table.index)).all()
    assert not filtering.enters(table, ~lost | (table["scale"] < 1)).loc[lost].any()
    labelled = filtering.labelled_images(table)
    assert (labelled["scale"] > 0).all() and len(labelled) == 3 * 2 * 2  # three garments, two shifts, two scales
    assert ("bag", 1) not in set(labelled[["class", "seed"]].itertuples(index=False, name=None))


def test_two_peoples_word_stands_for_the_oracles_under_the_shifts_that_they_saw(align, images, tmp_path):
    """Bags in snow: seed 1 is in class, partly and out of class along the scales, seed 2 is out of class from the start."""
    kept, partly, lost = annotations.ANSWERS
    scores = align().assign(class_probability=0.9)
    asked = artifacts.with_pictures(images, scores.query("shift == 'heavy snow' and `class` == 'bag'").sort_values(["seed", "scale"]))
    names, files = annotations.file_names(asked), [tmp_path / "anna.json", tmp_path / "ben.json"]
    for file, last in zip(files, (kept, lost), strict=True):
        annotations.write(asked, file, answers=dict(zip(names, [kept, partly, last, lost, kept, kept], strict=True)))
    found, labelled = filtering.labelled_by(scores, images, files=[str(file) for file in files], labels=3)
    bags = found[found["class"] == "bag"].set_index(["shift", "seed", "scale"])["class_probability"].round(3).to_dict()
    snow = {("heavy snow", 1, 1.0): 0.333, ("heavy snow", 1, 2.0): 0.0, ("heavy snow", 2, 1.0): 1.0, ("heavy snow", 2, 2.0): 1.0}
    cartoon = {("cartoon style", seed, scale): 0.9 for seed in (1, 2) for scale in (1.0, 2.0)}
    starts = {(shift, seed, 0.0): value for shift in ("heavy snow", "cartoon style") for seed, value in ((1, 1.0), (2, 0.0))}
    assert bags == snow | cartoon | starts and (found.loc[found["class"] != "bag", "class_probability"] == 0.9).all()
    assert set(labelled["shift"]) == {"heavy snow"} and set(labelled.loc[labelled["class"] == "bag", "seed"]) == {1}
    assert labelled.loc[labelled["oracle_ooc"], tables.KEY].to_numpy().tolist() == [["heavy snow", "bag", 1, 2.0]]


def test_rates_of_ten_hand_counted_images():
    # out of class: 4, of which 3 are dropped; in class: 6, of which 1 is dropped; right: 3 + 5
    outside = [True] * 4 + [False] * 6
    dropped = [True, True, True, False, True] + [False] * 5
    table = scores([("heavy snow", "bag", i, 1.0, o, 0.0) for i, o in enumerate(outside)])
    found = filtering.quality(table, ~pd.Series(dropped), settings=SETTINGS.bootstrap)
    assert {name: (record["n"], record["estimate"]) for name, record in found.items()} == {
        "tpr": (4, 3 / 4),
        "fpr": (6, pytest.approx(1 / 6)),
        "accuracy": (10, 8 / 10),
    }
    assert all(0 <= record["low"] <= record["estimate"] <= record["high"] <= 1 for record in found.values())
    named = filtering.outcomes(table[::-1], ~pd.Series(dropped)[::-1])
    assert named.sort_index().tolist() == ["caught"] * 3 + ["missed", "lost"] + ["kept"] * 5


def test_the_oracles_label_is_a_probability_below_chance():
    assert filtering.out_of_class(pd.Series([0.09, 0.1, 0.11, 0.9]), labels=10).tolist() == [True, False, False, False]


def test_cross_validation_never_uses_an_images_own_seed():
    """One class has lost its first seed, so that numbers of (class, seed) and of seeds no longer go together."""
    table = benchmark(seeds=10)
    table = table[(table["class"] == "bag") | (table["seed"] > 1)].reset_index(drop=True)
    bag, first = table["class"] == "bag", table["seed"] == 1
    # out-of-class images of one seed are as well aligned as those in class: only their own labels could catch them
    table.loc[bag & first & table["oracle_ooc"], list(DETECTORS)] = 0.85
    own = filtering.thresholds(table[bag & first], 0.9)
    assert not filtering.keeps(filtering.rules(3)["ours"], table[bag & first & table["oracle_ooc"]], own).any()
    assert filtering.cross_validated(filtering.rules(3)["ours"], table, recall=0.9)[bag & first & table["oracle_ooc"]].all()


def test_a_stricter_label_has_more_out_of_class_images_and_each_recall_its_own_row():
    table = benchmark(seeds=5).drop(columns="oracle_ooc")
    table["class_probability"] = table["scale"].map({0.0: 0.9, 1.0: 0.3, 2.0: 0.05})  # below one half from scale 1, below a tenth at 2
    found = filtering.sensitivity(table, {"below chance": 10, "below one half": 2}, [0.8, 0.9], settings=SETTINGS)
    assert found.index.tolist() == [(label, recall) for label in ("below chance", "below one half") for recall in (0.8, 0.9)]
    assert found["out of class"].tolist() == [20, 20, 40, 40]  # two shifts, two classes, five seeds, and one or two scales
    assert found.loc["below chance", ["tpr", "fpr", "accuracy"]].to_numpy().tolist() == [[1, 0, 1]] * 2
    assert np.isnan(found.loc["below one half", "fpr"]).all()  # no shifted image is left that is in class


def test_more_passes_drop_more():
    table = benchmark(noise=0.3)
    table[list(DETECTORS)] += np.random.default_rng(1).normal(scale=0.1, size=(len(table), 4))
    rows = filtering.sweep(table, table, settings=SETTINGS)
    assert set(rows.query("measure == 'kept'")["n"]) == {40}  # trajectories
    sweep = rows.pivot(index="passes", columns="measure", values="estimate")
    assert list(sweep.index) == [1, 2, 3, 4] and set(sweep) == {"tpr", "fpr", "accuracy", "kept"}
    assert sweep["tpr"].is_monotonic_increasing and sweep["fpr"].is_monotonic_increasing and sweep["kept"].is_monotonic_decreasing


def test_roc_of_separable_and_of_reversed_scores():
    table = benchmark()
    areas = filtering.areas(table, settings=SETTINGS.bootstrap).set_index("detector")
    assert areas["estimate"].tolist() == [1] * 4 and areas["low"].tolist() == [1] * 4
    assert list(areas.index) == list(DETECTORS) and set(areas["n"]) == {len(table)}
    curve = filtering.roc(table)
    assert set(curve["detector"]) == set(DETECTORS)
    assert ((curve["fpr"] == 0) & (curve["tpr"] == 1)).groupby(curve["detector"]).any().all()
    reverse = table.assign(**{name: -table[name] for name in DETECTORS})
    assert filtering.areas(reverse, settings=SETTINGS.bootstrap)["estimate"].tolist() == [0] * 4


def test_a_single_class_and_seed_has_no_other_labels_and_keeps_all():
    table = benchmark().query("`class` == 'bag' and seed == 1")
    assert filtering.cross_validated(filtering.rules(3)["ours"], table, recall=0.9).all()
    empty = table.iloc[:0]
    assert filtering.compare(empty, recall=0.9, settings=SETTINGS).set_index("rule")["n"].eq(0).all()


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    return random_judges(tmp_path_factory.mktemp("judges"))


@pytest.fixture
def images(tmp_path):
    return write_all(tmp_path / "images")


@pytest.fixture
def predict(images, judges, tmp_path):
    return lambda shifts=CHOSEN: filtering.predict_all(images, shifts, oracle=judges.oracle, folder=tmp_path / "oracle")


@pytest.fixture
def align(images, judges, predict, tmp_path):
    def call(shifts=CHOSEN):
        return filtering.align(images, shifts, judges=judges, readings=predict(shifts), folder=tmp_path / "alignment")

    return call


def test_cosines_are_those_of_single_images_and_prompts_at_all_scales(align, judges):
    table = align()
    assert not difference(recipes.ALIGNMENT, table)
    expected = [(shift, *pair, scale) for shift in CHOSEN for pair in GRID for scale in (0.0, 1.0, 2.0)]
    assert sorted(table[tables.KEY].itertuples(index=False, name=None)) == sorted(expected)
    assert np.allclose(table.loc[table["scale"] == 0, ["clip_reference", "image_reference"]], 1, atol=1e-5)
    row = table.set_index(tables.KEY).loc[("heavy snow", "bag", 2, 1.0)]
    pair = np.stack([picture("heavy snow", "bag", 2, 1.0), picture("unshifted", "bag", 2, 0.0)])
    clip, dino = judges.clip.image_features(pair), judges.image_encoder.features(pair)
    plain, shifted = judges.clip.text_features(["a picture of a bag", "a picture of a bag in heavy snow"])
    expected = [clip[0] @ plain, clip[0] @ shifted, clip[0] @ clip[1], dino[0] @ dino[1]]
    assert row[list(DETECTORS)].tolist() == pytest.approx([float(value) for value in expected], abs=1e-5)
    assert row["class_probability"] == pytest.approx(float(judges.oracle.class_probability(pair)[0, 1]), abs=1e-5)


def test_the_prediction_of_an_image_is_the_oracles_answer_to_it(predict, judges):
    oracle, found = judges.oracle, predict()
    assert not difference(recipes.ORACLE_PREDICTIONS, found)
    table = found.set_index(tables.KEY)
    for key, shown in {("heavy snow", "bag", 2, 1.0): "heavy snow", ("cartoon style", "bag", 2, 0.0): UNSHIFTED}.items():
        own = picture(shown, *key[1:])[None]
        _, shift, logit = oracle.parts(own)
        severity, probability = float(logit[0, 0].sigmoid()), shift.softmax(dim=1)[0, SHIFTS.index(key[0])]
        assert table.loc[key, "oracle"] == pytest.approx(severity, abs=1e-5)
        assert table.loc[key, "asked"] == pytest.approx(severity * float(probability), abs=1e-5)
        assert table.loc[key, "named"] == (*SHIFTS, UNSHIFTED)[shift.argmax()]
        known = oracle.class_probability(own)[0, oracle.labels.index(key[1])]
        assert table.loc[key, "class_probability"] == pytest.approx(float(known), abs=1e-5)


@pytest.mark.parametrize("judged", ["alignment", "oracle"])
def test_a_new_shift_leaves_the_others_alone_and_new_images_are_seen(align, predict, images, tmp_path, judged):
    look = align if judged == "alignment" else predict
    assert after_changes(look, images, tmp_path / judged) == {"left alone": True, "new seen": True, "gone": True}


def test_the_stamp_of_an_alignment_tells_its_shift_its_images_and_each_model_from_others(images, judges, tmp_path):
    write_timm(tmp_path / "other", outputs=len(LABELS) + len(SHIFTS) + 2, seed=2)
    write_clip(tmp_path / "clip", seed=2)
    renamed = copy.copy(judges.oracle)
    renamed.labels = LABELS[::-1]
    others = [
        replace(judges, clip=encoders.Clip(str(tmp_path / "clip"))),
        replace(judges, image_encoder=encoders.ImageEncoder(str(tmp_path / "other"))),
        replace(judges, oracle=encoders.Oracle(str(tmp_path / "other"), labels=LABELS)),
        replace(judges, oracle=renamed),
    ]
    stamps = [filtering.stamp(images, "heavy snow", other) for other in (*others, judges)]
    stamps.append(filtering.stamp(images, CHOSEN[1], judges))
    write_images(images, "unshifted", [0.0], skip=(("bag", 2),))
    assert len({*stamps, filtering.stamp(images, "heavy snow", judges)}) == 7


def test_what_the_oracle_does_not_know_is_named_or_no_number(predict, judges, images, tmp_path):
    class Blind:
        labels, digest, device = judges.oracle.labels, "blind", "cpu"
        class_probability = judges.oracle.class_probability

    table = filtering.predict_all(images, ["heavy snow"], oracle=Blind(), folder=tmp_path / "blind")
    assert table[["oracle", "asked"]].isna().all(axis=None) and set(table["named"]) == {"not asked"}
    assert len(table) == len(predict(["heavy snow"]))
    pictures = np.stack([picture(*key) for key in table[tables.KEY].itertuples(index=False)])
    known = filtering.predict(table, pictures, oracle=judges.oracle)
    assert filtering.of_shift(known, "heavy rain at night")["asked"].isna().all() and known["oracle"].notna().all()
    with pytest.raises(ValueError, match="labels: the oracle knows no class 'barrow'"):
        filtering.predict(table.assign(**{"class": "barrow"}), pictures, oracle=judges.oracle)


def test_a_gallery_shows_the_rows_pictures_and_white_elsewhere(align, images):
    table = align()
    one = table.query("shift == 'heavy snow' and `class` == 'bag' and seed == 1")
    sheet = filtering.gallery(images, {"all": one, "none": one.head(0), "last": one.tail(1)}, columns=4)
    assert sheet.shape == (3, 4, 32, 32, 3)
    expected = [picture("unshifted", "bag", 1, 0.0), picture("heavy snow", "bag", 1, 1.0), picture("heavy snow", "bag", 1, 2.0)]
    assert np.array_equal(sheet[0, :3], expected)
    assert np.array_equal(sheet[2, 0], expected[2])
    assert (sheet[0, 3] == 255).all() and (sheet[1] == 255).all() and (sheet[2, 1:] == 255).all()


@pytest.mark.parametrize("levels", [2, 7, 10**6])
@pytest.mark.parametrize("rows", [2, 3, 40, 300])
def test_the_area_is_scikit_learns(rows, levels):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        score = rng.integers(0, levels, rows) / levels
        positive = np.arange(rows) % 2 == 0
        weights = (np.rint(rng.standard_gamma(0.1 + seed, (3, rows)) * bootstrap.EXACT) + 1) / bootstrap.EXACT
        weights[:, 2:][rng.random((3, rows - 2)) < 0.2] = 0
        expected = [roc_auc_score(positive, score, sample_weight=weight) for weight in weights]
        assert filtering.roc_auc_scores(positive, score, sample_weights=weights) == pytest.approx(expected, abs=1e-12)


def test_without_one_of_the_two_kinds_there_is_no_area():
    positive, score = np.array([True, True, False]), np.array([0.1, 0.2, 0.3])
    found = filtering.roc_auc_scores(positive, score, sample_weights=np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]))
    assert np.isnan(found).tolist() == [True, True, False]
