"""Frechet distance against closed forms and another program; intervals against a hand count."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy import stats

from cnslib.method import inversion

CLASSES = ["sneaker", "ankle boot"]


def normal(rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.mark.parametrize("rows", [4, 300])
def test_distance_of_a_set_with_itself_is_zero(rows):
    assert inversion.frechet_distance(normal(rows, 16), normal(rows, 16)) == pytest.approx(0, abs=1e-9)


def test_distance_of_shifted_sets_is_the_squared_shift():
    sample, shift = normal(300, 8), np.arange(8) / 4
    assert inversion.frechet_distance(sample, sample + shift) == pytest.approx((shift**2).sum())


def test_distance_of_a_scaled_set_is_that_of_its_standard_deviations():
    sample = normal(300, 8)
    sample -= sample.mean(axis=0)
    assert inversion.frechet_distance(sample, 3 * sample) == pytest.approx(4 * np.trace(np.cov(sample.T)))


def test_distance_is_that_of_the_matrix_root():
    a, b = normal(200, 6) @ normal(6, 6, 1), normal(150, 6, 2) @ normal(6, 6, 3) + 1
    s, t = np.cov(a.T), np.cov(b.T)
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(s + t - 2 * scipy.linalg.sqrtm(s @ t).real)
    assert inversion.frechet_distance(a, b) == pytest.approx(expected)


def test_distance_in_one_dimension_of_two_points_each():
    # means 1 and 5, standard deviations sqrt(2) and 3 sqrt(2)
    a, b = np.array([[0.0], [2.0]]), np.array([[2.0], [8.0]])
    assert inversion.frechet_distance(a, b) == pytest.approx(16 + (3 * np.sqrt(2) - np.sqrt(2)) ** 2)


def test_distance_is_symmetric_and_does_not_depend_on_the_order_of_rows():
    a, b = normal(10, 16), normal(7, 16, 1) + 0.3
    assert inversion.frechet_distance(a, b) == pytest.approx(inversion.frechet_distance(b[::-1], a[::-1]))


def test_a_single_row_has_no_distance():
    with pytest.raises(ValueError, match="sets of 1 and 5 rows"):
        inversion.frechet_distance(normal(1, 3), normal(5, 3))


def test_the_jackknife_of_a_mean_is_its_t_interval():
    sample = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    values = np.array([sample.mean(), *[np.delete(sample, i).mean() for i in range(5)]])
    found = inversion.jackknife(values, 5, confidence=0.9)
    low, high = stats.t.interval(0.9, 4, loc=sample.mean(), scale=sample.std(ddof=1) / np.sqrt(5))
    assert (found["n"], found["estimate"]) == (5, 4.0)
    assert (found["low"], found["high"]) == pytest.approx((low, high))


def grid(seeds):
    rows = [(prompt, name, seed) for prompt in ("text", "in_star") for name in CLASSES for seed in range(1, seeds + 1)]
    return pd.DataFrame(rows, columns=["prompt", "class", "seed"])


def test_images_nearer_to_their_class_have_a_negative_difference():
    drawn, references = grid(30), {"sneaker": normal(50, 4, 1), "ankle boot": normal(50, 4, 2) + 5}
    centre = drawn["class"].map({"sneaker": 0.0, "ankle boot": 5.0}) + drawn["prompt"].map({"text": 2.0, "in_star": 0.0})
    table = inversion.frechet_table(drawn, normal(len(drawn), 4) + centre.to_numpy()[:, None], references)
    difference = table[table["prompt"] == "difference"].set_index("class")
    assert list(difference.index) == ["all", "sneaker", "ankle boot"]
    assert (difference["high"] < -5).all()
    assert table.set_index(["class", "prompt"]).loc[("all", "text"), "n"] == 60
    assert (table.loc[table["prompt"] != "difference", "low"] >= 0).all()


def test_accuracy_is_counted_by_class_and_its_interval_by_seed():
    drawn = grid(4)
    correct = ((drawn["prompt"] == "in_star") | (drawn["seed"] <= 2)).to_numpy()
    table = inversion.accuracy_table(drawn, correct).set_index(["class", "prompt"])
    assert table.loc[("all", "in_star"), ["n", "estimate", "low", "high"]].tolist() == [8, 1, 1, 1]
    assert table.loc[("sneaker", "text"), ["n", "estimate"]].tolist() == [4, 0.5]
    low, high = stats.t.interval(0.95, 3, loc=0.5, scale=np.std([1, 1, 0, 0], ddof=1) / 2)
    assert table.loc[("all", "difference"), ["low", "high"]].tolist() == pytest.approx([low, high])
    assert table.loc[("all", "text"), ["low", "high"]].tolist() == [max(1 - high, 0), min(1 - low, 1)]


def drawn_table(prompts, classes, seeds):
    rows = [(prompt, name, seed) for prompt in prompts for name in classes for seed in range(1, seeds + 1)]
    return pd.DataFrame(rows, columns=["prompt", "class", "seed"])


def test_the_nearest_real_image_is_that_of_the_class_with_the_largest_cosine():
    table = drawn_table(["in_star"], CLASSES, 2)
    features = np.array([[1.0, 0], [0, 2], [3, 3], [-1, 0]])
    learned = {"sneaker": np.array([[0.0, 1], [1, 1]]), "ankle boot": np.array([[0.0, 5], [4, 4], [-2, 0]])}
    found = inversion.neighbours(table, features, {"learned": learned})
    assert found["learned_place"].tolist() == [1, 0, 1, 2]
    assert found["learned"].tolist() == pytest.approx([1 - np.sqrt(0.5), 0, 0, 0], abs=1e-12)
    with pytest.raises(ValueError, match="the reference is empty"):
        inversion.nearest(features, np.empty((0, 2)))


def test_copies_lie_nearer_to_what_they_copy_and_strangers_to_neither_side():
    table = drawn_table(["in_star"], ["sneaker"], 400)
    learned, heldout = normal(50, 16, 1), normal(50, 16, 2)
    copies = np.tile(learned, (8, 1)) + 0.01 * normal(400, 16, 3)
    for features, low, high in ((copies, 1, 1), (normal(400, 16, 4), 0.4, 0.6)):
        found = inversion.neighbours(table, features, {"learned": {"sneaker": learned}, "heldout": {"sneaker": heldout}})
        record = inversion.nearer(found, "learned", "heldout")
        assert low <= record["estimate"] <= high and record["n"] == 400
        assert record["low"] <= record["estimate"] <= record["high"]


def test_an_image_as_near_to_both_sides_counts_half():
    found = drawn_table(["in_star"], ["sneaker"], 4).assign(learned=[0.1, 0.2, 0.3, 0.1], heldout=[0.1, 0.1, 0.4, 0.3])
    assert inversion.nearer(found, "learned", "heldout")["estimate"] == (0.5 + 0 + 1 + 1) / 4
