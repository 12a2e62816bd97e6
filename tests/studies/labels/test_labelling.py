"""The labelled set: stages, annotators, agreement, and the table that is left to others."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.data import annotations
from cnslib.studies.labels import staging

SETTINGS = Filtering(recall=0.9, passes=2, bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes"))
SCALES = [0.0, 1.0, 2.0]
GRID = list(itertools.product(["heavy snow", "cartoon style"], ["bag"], [1, 2], SCALES))


def aligned(**values):
    """One image per shift, seed and scale with its text alignment, 0.5 unless given as s<seed>_<scale>."""
    table = pd.DataFrame(GRID, columns=tables.KEY)
    names = [f"s{seed}_{scale:g}" for _, _, seed, scale in GRID]
    return table.assign(clip_class=[values.get(name, 0.5) for name in names])


def right(table, **wrong):
    """What three classifiers get right: all but the (seed, scale) listed for a classifier."""
    hit = {name: [(row.seed, row.scale) not in wrong.get(name, []) for row in table.itertuples()] for name in ("expert", "one", "two")}
    return pd.DataFrame(hit, index=pd.MultiIndex.from_frame(table[tables.KEY]))


def stages(table, **wrong):
    """Stages of the images of heavy snow, by (seed, scale)."""
    found = staging.staged(table, right(table, **wrong), cut=0.3, expert="expert", peers=["one", "two"])
    return {(row.seed, row.scale): found[row.Index] for row in table.itertuples() if row.shift == "heavy snow"}


def test_the_cut_is_reached_by_the_wanted_share():
    cosines = np.arange(10) / 10
    for share in (0.1, 0.5, 0.75, 0.9):
        assert (cosines >= staging.text_cut(cosines, share)).mean() >= share


def test_a_weak_unshifted_image_drops_all_images_of_its_seed():
    for found in (stages(aligned(s2_0=0.2)), stages(aligned(), expert=[(2, 0.0)])):
        assert {key for key, stage in found.items() if stage == "dropped"} == {(2, scale) for scale in SCALES}


def test_easy_needs_the_expert_one_peer_and_the_text():
    found = stages(aligned(s1_2=0.2), expert=[(1, 1.0)], one=[(2, 1.0)], two=[(2, 1.0)])
    assert {key for key, stage in found.items() if stage == "hard"} == {(1, 2.0), (1, 1.0), (2, 1.0)}
    assert stages(aligned(), one=list(itertools.product([1, 2], SCALES))) == dict.fromkeys(itertools.product([1, 2], SCALES), "easy")


def test_counts_by_stage_and_scale():
    table = aligned(s2_0=0.2).assign(stage="easy", kind="in class")
    table.loc[table["seed"] == 2, "stage"] = "dropped"
    table.loc[(table["seed"] == 1) & (table["scale"] == 2), ["stage", "kind"]] = ["hard", "out of class"]
    counts = staging.stage_counts(table)
    assert counts.loc[2.0].tolist() == [4, 2, 0, 0] and counts.loc[0.0].tolist() == [4, 2, 2, 2]


def test_hits_repeat_the_unshifted_answer_under_every_shift():
    answers = [("unshifted", 0.0, "bag"), ("heavy snow", 1.0, "coat"), ("cartoon style", 1.0, "bag")]
    rows = pd.DataFrame([{"model": "m", "shift": s, "class": "bag", "seed": 1, "scale": k, "top1": top} for s, k, top in answers])
    found = staging.hits(rows, ["heavy snow", "cartoon style"], ["m"])["m"]
    assert found["heavy snow"].tolist() == [True, False] and found["cartoon style"].tolist() == [True, True]
    with pytest.raises(ValueError, match=r"labels\.expert and labels\.peers: 'absent'"):
        staging.hits(rows, ["heavy snow"], ["absent"])


def test_the_nine_pairs_of_answers_join_as_the_paper_says():
    answers = pd.DataFrame(list(itertools.product(annotations.ANSWERS, repeat=2)), columns=staging.ANNOTATORS)
    inside, partly, out = "in class", "partly in class", "out of class"
    assert staging.joined(answers).tolist() == [inside, inside, out, inside, partly, out, out, out, out]


def test_kappa_is_scikit_learns_and_its_interval_resamples_garments():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"class": "bag", "seed": np.repeat(np.arange(30), 10)})
    first = rng.choice(annotations.ANSWERS, 300)
    second = np.where(rng.uniform(size=300) < 0.7, first, rng.choice(annotations.ANSWERS, 300))
    found = staging.kappa(table, pd.DataFrame({"first": first, "second": second}), settings=SETTINGS.bootstrap)
    assert found["n"] == 300 and found["estimate"] == pytest.approx(cohen_kappa_score(first, second))
    assert found["low"] < found["estimate"] < found["high"]


def test_kappa_of_hand_counted_answers():
    # of 100 pictures both say class to 40 and not class to 30; 70 agree, 50 would by chance: (0.7 - 0.5) / (1 - 0.5)
    pairs = [("class", "class")] * 40 + [("class", "not class")] * 10 + [("not class", "class")] * 20 + [("not class", "not class")] * 30
    table = pd.DataFrame({"class": "bag", "seed": range(100)})
    assert staging.kappa(table, pd.DataFrame(pairs, columns=staging.ANNOTATORS), settings=SETTINGS.bootstrap)["estimate"] == pytest.approx(
        0.4
    )


def test_kappas_of_weighted_counts_are_scikit_learns():
    rng = np.random.default_rng(1)
    pairs = pd.DataFrame(list(itertools.product(annotations.ANSWERS, repeat=2)), columns=staging.ANNOTATORS)
    counts = rng.uniform(0, 5, (20, len(pairs)))
    given = {"labels": annotations.ANSWERS}
    expected = [cohen_kappa_score(pairs["first"], pairs["second"], sample_weight=weights, **given) for weights in counts]
    assert staging.kappas(counts) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(staging.kappas(np.eye(1, len(pairs)))).all()


def test_pairs_are_counted_in_their_units():
    answers = pd.DataFrame({"first": ["class", "class", "not class"], "second": ["class", "class", "class"]})
    found = staging.pair_counts(answers, np.array([0, 0, 2]))
    assert found.shape == (3, 9) and found.sum() == 3
    assert (found[0, 0], found[2, 3 * annotations.ANSWERS.index("not class")]) == (2, 1)


def test_kappa_of_one_answer_alone_is_no_number():
    table = pd.DataFrame({"class": "bag", "seed": range(3)})
    same = pd.DataFrame({"first": ["class"] * 3, "second": ["class"] * 3})
    assert np.isnan(staging.kappa(table, same, settings=SETTINGS.bootstrap)["estimate"])
    assert staging.kappa(table[:0], same[:0], settings=SETTINGS.bootstrap)["n"] == 0


def pictured(count=4):
    pictures = [tables.encode(np.full((4, 4, 3), i, np.uint8)) for i in range(count)]
    return pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": np.arange(count), "scale": 1.0, "image": pictures})


def test_two_annotators_are_read_and_one_is_refused(tmp_path):
    table, names = pictured(), annotations.file_names(pictured())
    for who, answer in (("anna", "class"), ("ben", "not class")):
        annotations.write(table, tmp_path / f"{who}.json", answers=dict.fromkeys(names, answer))
    found = staging.annotated([tmp_path / "anna.json", tmp_path / "ben.json"], table, "labels.files")
    assert found["first"].tolist() == ["class"] * 4 and found["second"].tolist() == ["not class"] * 4
    with pytest.raises(ValueError, match=r"validation\.study_files: .*anna\.json.*accepted: two VIA projects, one per annotator"):
        staging.annotated([tmp_path / "anna.json"], table, "validation.study_files")


def test_the_oracle_answers_for_the_picture_and_for_its_mirror_image():
    table = pd.DataFrame({"class_probability": [0.4, 0.5, 0.49, 1.0, 0.1]}, index=[3, 1, 4, 7, 5])
    found = staging.oracle_answers(table, np.array([1.0, 0.2, 0.25, 0.5, 0.24]), chance=0.25)
    partial = "partial class properties"
    assert found["first"].tolist() == [partial, "class", partial, "class", "not class"] and found.index.tolist() == [3, 1, 4, 7, 5]
    assert found["second"].tolist() == ["class", "not class", partial, "class", "not class"]
    assert staging.oracle_answers(table[:0], np.zeros(0), chance=0.25).empty


def test_a_shift_that_was_not_drawn_cannot_set_thresholds():
    found = staging.parts(aligned(), ["heavy snow"])
    assert found["the pair"].sum() == 6 and not (found["the pair"] & found["the other shifts"]).any()
    with pytest.raises(ValueError, match=r"labels\.pair: 'heavy rain'"):
        staging.parts(aligned(), ["heavy rain"])


def test_images_are_counted_by_scale_and_kind_and_examples_are_of_their_kind():
    table = pd.DataFrame({"scale": [0.0, 0.0, 2.5], "kind": ["in class, easy", "in class", "out of class"]})
    counted = staging.by_scale({"the pair": table})
    assert counted.loc[("the pair", 0.0)].tolist() == [1, 1, 0, 0] and counted.loc[("the pair", 2.5)].tolist() == [0, 0, 0, 1]
    assert {kind: len(rows) for kind, rows in staging.examples(table, 6, 1).items()} == dict(zip(staging.KINDS, (1, 0, 1), strict=True))


def test_shares_of_the_stages_stand_beside_those_of_table_8():
    stages = pd.DataFrame({"i": [10, 10], "ii": [5, 5], "iii": [4, 1], "iv": [5, 2]}, index=[0.0, 2.5])
    printed = [(scale, stage, 100 / place) for scale in (0.0, 2.5) for place, stage in enumerate(("i", "ii", "iii", "iv"), start=1)]
    found = staging.beside_table8(stages, pd.DataFrame(printed, columns=["scale", "stage", "images"]))
    assert found["ours"].tolist() == pytest.approx([0.5, 0.2, 0.4])
    assert found["published"].tolist() == pytest.approx([1 / 2, 2 / 3, 2 / 4])
    assert "people" in staging.source_of(["a.json", "b.json"]) and "no people" in staging.source_of([])


def test_the_labelled_set_comes_back_with_the_alignments_that_it_was_made_from(tmp_path):
    table = aligned(s2_0=0.1).assign(kind="in class", stage=(["easy", "hard", "hard"] + ["dropped"] * 3) * 2)
    table.loc[2, "kind"] = "out of class"
    left = staging.labelled_table(table)
    staging.write(left, tmp_path / "labelled.parquet")
    again = staging.read(tmp_path / "labelled.parquet", aligned(s2_0=0.1))
    assert again.index.tolist() == left.index.tolist() == [0, 1, 2, 6, 7, 8]
    pd.testing.assert_frame_equal(again[left.columns], left)
    with pytest.raises(ValueError, match=r"labelled\.parquet holds 3 images that the parameters do not ask for: run the step labels"):
        staging.read(tmp_path / "labelled.parquet", aligned()[:6])
