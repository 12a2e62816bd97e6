import itertools

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from sklearn.metrics import cohen_kappa_score
from tiny_alignment import CHOSEN, GRID, after_changes, picture, random_judges, write_all
from tiny_settings import resampled

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.data import annotations
from cnslib.method.filtering import DETECTORS
from cnslib.stats import accuracy
from cnslib.studies import labels as labelling

SETTINGS = resampled(100)
SCALES = [0.0, 1.0, 2.0]
KEYS = list(itertools.product(["heavy snow", "cartoon style"], ["bag"], [1, 2], SCALES))


def stages(wrong=None, **cosines):
    """Stages of the images of heavy snow by (seed, scale); text alignment 0.5 unless given as s<seed>_<scale>.

    `wrong` lists what each of three classifiers misclassifies; the cut is 0.3.
    """
    table = pd.DataFrame(KEYS, columns=tables.KEY)
    table["clip_class"] = [cosines.get(f"s{seed}_{scale:g}", 0.5) for _, _, seed, scale in KEYS]
    hit = {name: [(seed, scale) not in (wrong or {}).get(name, []) for *_, seed, scale in KEYS] for name in ("expert", "one", "two")}
    right = pd.DataFrame(hit, index=pd.MultiIndex.from_frame(table[tables.KEY]))
    found = labelling.staged(table, right, cut=0.3, expert="expert", peers=["one", "two"])
    return {(row.seed, row.scale): found[row.Index] for row in table.itertuples() if row.shift == "heavy snow"}


def test_a_weak_unshifted_image_drops_its_seed_and_easy_needs_the_expert_one_peer_and_the_text():
    for found in (stages(s2_0=0.2), stages({"expert": [(2, 0.0)]})):
        assert {key for key, stage in found.items() if stage == "dropped"} == {(2, scale) for scale in SCALES}
    found = stages({"expert": [(1, 1.0)], "one": [(2, 1.0)], "two": [(2, 1.0)]}, s1_2=0.2)
    assert {key for key, stage in found.items() if stage == "hard"} == {(1, 2.0), (1, 1.0), (2, 1.0)}
    every = list(itertools.product([1, 2], SCALES))
    assert stages({"one": every}) == dict.fromkeys(every, "easy")


def test_hits_repeat_the_unshifted_prediction_under_every_shift():
    predictions = [("unshifted", 0.0, "bag"), ("heavy snow", 1.0, "coat"), ("cartoon style", 1.0, "bag")]
    rows = pd.DataFrame([{"model": "m", "shift": s, "class": "bag", "seed": 1, "scale": k, "top1": top} for s, k, top in predictions])
    found = labelling.hits(rows, ["heavy snow", "cartoon style"], ["m"])["m"]
    assert found["heavy snow"].tolist() == [True, False] and found["cartoon style"].tolist() == [True, True]


def test_the_nine_pairs_of_answers_join_as_the_paper_says():
    answers = pd.DataFrame(list(itertools.product(annotations.ANSWERS, repeat=2)), columns=labelling.ANNOTATORS)
    inside, partly, out = "in class", "partly in class", "out of class"
    assert annotations.joined(answers).tolist() == [inside, inside, out, inside, partly, out, out, out, out]


def test_kappa_is_scikit_learns_and_that_of_hand_counted_answers():
    """Of 100 pictures both say class to 40 and not class to 30; 70 agree, 50 would by chance: (0.7 - 0.5) / (1 - 0.5)."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"class": "bag", "seed": np.repeat(np.arange(30), 10)})
    first = rng.choice(annotations.ANSWERS, 300)
    second = np.where(rng.uniform(size=300) < 0.7, first, rng.choice(annotations.ANSWERS, 300))
    found = labelling.kappa(table, pd.DataFrame({"first": first, "second": second}), settings=SETTINGS)
    assert found["n"] == 300 and found["estimate"] == pytest.approx(cohen_kappa_score(first, second))
    assert found["low"] < found["estimate"] < found["high"]
    pairs = [("class", "class")] * 40 + [("class", "not class")] * 10 + [("not class", "class")] * 20 + [("not class", "not class")] * 30
    table, answers = pd.DataFrame({"class": "bag", "seed": range(100)}), pd.DataFrame(pairs, columns=labelling.ANNOTATORS)
    assert labelling.kappa(table, answers, settings=SETTINGS)["estimate"] == pytest.approx(0.4)
    assert np.isnan(labelling.kappa(table[:40], answers[:40], settings=SETTINGS)["estimate"])  # one answer alone
    assert labelling.kappa(table[:0], answers[:0], settings=SETTINGS)["n"] == 0


def test_the_oracle_answers_for_the_picture_and_for_its_mirror_image():
    table = pd.DataFrame({"class_probability": [0.4, 0.5, 0.49, 1.0, 0.1]}, index=[3, 1, 4, 7, 5])
    found = labelling.oracle_labels(table, np.array([1.0, 0.2, 0.25, 0.5, 0.24]), chance=0.25)
    partial = "partial class properties"
    assert found["first"].tolist() == [partial, "class", partial, "class", "not class"] and found.index.tolist() == [3, 1, 4, 7, 5]
    assert found["second"].tolist() == ["class", "not class", partial, "class", "not class"]


def test_every_image_is_judged_once_turned_round_and_scale_0_unshifted(tmp_path):
    oracle, images = random_judges(tmp_path / "judges").oracle, write_all(tmp_path / "images")

    def look(shifts=CHOSEN):
        return labelling.mirrored(images, shifts, oracle=oracle, folder=tmp_path / "mirrored").reset_index()

    table = look()
    assert not difference(recipes.MIRRORED, table)
    expected = [(UNSHIFTED, *pair, 0.0) for pair in GRID] + [(shift, *pair, k) for shift in CHOSEN for pair in GRID for k in (1.0, 2.0)]
    assert sorted(table[tables.KEY].itertuples(index=False, name=None)) == sorted(expected)
    for key in ((UNSHIFTED, "bag", 2, 0.0), ("heavy snow", "sneaker", 1, 2.0)):
        views = np.stack([picture(*key)[:, ::-1], picture(*key)])
        turned, plain = oracle.class_probability(views)[:, oracle.labels.index(key[1])].tolist()
        found = table.set_index(tables.KEY)["mirrored_probability"][key]
        assert found == pytest.approx(turned, abs=1e-6) and found != pytest.approx(plain, abs=1e-6)
    assert after_changes(look, images, tmp_path / "mirrored") == {"left alone": True, "new seen": True, "gone": True}


@pytest.fixture
def labelled() -> pd.DataFrame:
    """Images whose four alignments fall with the scale, each with noise of its own; a third of the heaviest is out of class."""
    rng = np.random.default_rng(0)
    shifts = ("heavy snow", "cartoon style", "heavy rain")
    table = pd.DataFrame(list(itertools.product(shifts, ["bag", "coat"], range(1, 21), SCALES)), columns=tables.KEY)
    outside = (table["scale"] == 2) & (rng.uniform(size=len(table)) < 0.33)
    values = {name: 1 - 0.2 * table["scale"] - 0.3 * outside + rng.normal(scale=0.2, size=len(table)) for name in DETECTORS}
    return table.assign(**values, oracle_ooc=outside)


def test_a_filter_that_agrees_with_the_labels_leaves_nothing_between_them(labelled):
    one = labelled[tables.KEY].assign(model="one", top1=labelled["class"].where(~labelled["oracle_ooc"], "none"))
    wrong = accuracy.wrong_predictions(pd.concat([one, one.assign(model="other")]))
    keep = pd.DataFrame({labelling.LABELS: ~labelled["oracle_ooc"], "same": ~labelled["oracle_ooc"], labelling.NONE: True})
    errors = labelling.screened(wrong, labelled, keep, settings=SETTINGS)
    np.testing.assert_allclose(errors[:, 2], accuracy.by_shift(wrong, SETTINGS).sel(shift=accuracy.ALL))
    lost = labelled["oracle_ooc"].sum()
    assert errors["n"].to_numpy().tolist() == [len(wrong) - lost, len(wrong) - lost, len(wrong)]
    drops = accuracy.drop(errors)
    np.testing.assert_array_equal(drops.sel(rule="same"), drops.sel(rule=labelling.LABELS))
    gap = drops.sel(rule=labelling.NONE, scale=2)[0] - drops.sel(rule=labelling.LABELS, scale=2)[0]
    np.testing.assert_allclose(gap, lost / len(wrong))


def test_the_user_study_is_seeded_and_every_shift_and_scale_has_its_proportion():
    keys = itertools.product(["heavy snow", "cartoon style"], ["bag", "coat"], range(1, 26), SCALES)
    table = pd.DataFrame([key for key in keys if key[0] == "heavy snow" or key[2] > 10], columns=tables.KEY)
    chosen = labelling.study_sample(table, 60, seed=1)
    assert len(chosen) == 60 and not chosen.duplicated(tables.KEY).any()
    assert chosen.equals(labelling.study_sample(table.sample(frac=1, random_state=5), 60, seed=1))
    sizes = pd.DataFrame({"all": table.groupby(["shift", "scale"]).size(), "chosen": chosen.groupby(["shift", "scale"]).size()})
    assert (sizes["chosen"] - 60 * sizes["all"] / len(table)).abs().max() < 1
    assert len(labelling.study_sample(table, 10_000, seed=1)) == len(table)
