"""What the oracle sees in the generated images: its answer to each, once per shift, and beside it the filter's cosines."""

from pathlib import Path

import numpy as np
import pytest
from golden_units import difference
from tiny_alignment import CHOSEN, GRID, after_changes, picture, random_judges, write_all

from cnslib.core import recipes, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.method import filtering, oracle_predictions


@pytest.fixture(scope="module")
def judges(tmp_path_factory) -> filtering.Judges:
    return random_judges(tmp_path_factory.mktemp("judges"))


@pytest.fixture
def images(tmp_path) -> Path:
    return write_all(tmp_path / "images")


@pytest.fixture
def look(images, judges, tmp_path):
    def call(shifts=CHOSEN):
        return oracle_predictions.predict_all(images, shifts, oracle=judges.oracle, folder=tmp_path / "sights")

    return call


def test_every_trajectory_has_all_scales(look):
    expected = [(shift, *pair, scale) for shift in CHOSEN for pair in GRID for scale in (0.0, 1.0, 2.0)]
    assert sorted(look()[tables.KEY].itertuples(index=False, name=None)) == sorted(expected)


def test_the_sight_of_an_image_is_the_oracles_answer_to_it(look, judges):
    oracle, table = judges.oracle, look().set_index(tables.KEY)
    for key, shown in {("heavy snow", "bag", 2, 1.0): "heavy snow", ("cartoon style", "bag", 2, 0.0): UNSHIFTED}.items():
        own = picture(shown, *key[1:])[None]
        _, shift, logit = oracle.parts(own)
        severity, probability = float(logit[0, 0].sigmoid()), shift.softmax(dim=1)[0, SHIFTS.index(key[0])]
        assert table.loc[key, "oracle"] == pytest.approx(severity, abs=1e-5)
        assert table.loc[key, "asked"] == pytest.approx(severity * float(probability), abs=1e-5)
        assert table.loc[key, "named"] == (*SHIFTS, UNSHIFTED)[shift.argmax()]
        known = oracle.class_probability(own)[0, oracle.labels.index(key[1])]
        assert table.loc[key, "class_probability"] == pytest.approx(float(known), abs=1e-5)


def test_a_new_shift_leaves_the_others_alone_and_new_images_are_seen(look, images, tmp_path):
    assert after_changes(look, images, tmp_path / "sights") == {"left alone": True, "new seen": True, "gone": True}


def test_scores_of_other_images_are_refused(look, images, judges, tmp_path):
    scores = filtering.align(images, CHOSEN, judges=judges, seen=look(), folder=tmp_path / "alignment").assign(keep=True)
    with pytest.raises(ValueError, match=r"the oracle's sights: 0 rows missing \[\], 1 foreign"):
        oracle_predictions.beside(look(), scores.iloc[1:])


def test_an_oracle_of_the_class_alone_sees_no_shift_and_one_that_does_not_know_it_no_reading(look, judges, images, tmp_path):
    class Blind:
        labels, digest, device = judges.oracle.labels, "blind", "cpu"
        class_probability = judges.oracle.class_probability

    table = oracle_predictions.predict_all(images, ["heavy snow"], oracle=Blind(), folder=tmp_path / "blind")
    assert (
        len(table) == len(look(["heavy snow"]))
        and table[["oracle", "asked"]].isna().all(axis=None)
        and set(table["named"]) == {"not asked"}
    )
    known = oracle_predictions.predict(
        table, np.stack([picture(*key) for key in table[tables.KEY].itertuples(index=False)]), oracle=judges.oracle
    )
    assert oracle_predictions.of_shift(known, "heavy rain at night")["asked"].isna().all() and known["oracle"].notna().all()


def test_the_tiny_unit_is_the_golden_one(look):
    assert not difference(recipes.SIGHTS, look())
