"""Quality of the base models: which records are whose, and the bounds by hand."""

import numpy as np
import pytest

from cnslib.stats import quality

ENTRIES = {
    "classifiers/resnet": {"quality": {"accuracy": {"estimate": 0.9}}},
    "classifiers/vit": {"quality": {"accuracy": {"estimate": 0.96}}},
    "mini-sd": {"quality": {"vae_psnr_db": {"estimate": 31.0}, "text_class_accuracy": {"estimate": 0.7}}},
}


def test_accuracies_are_the_classifiers_and_everything_else_keeps_its_own_name():
    assert quality.accuracies(ENTRIES) == {"resnet": {"estimate": 0.9}, "vit": {"estimate": 0.96}}
    assert quality.measures(ENTRIES) == {"vae_psnr_db": {"estimate": 31.0}, "text_class_accuracy": {"estimate": 0.7}}


def test_a_classifier_is_called_by_the_last_part_of_its_path():
    entry = {"quality": {"accuracy": {"estimate": 0.5}}}
    assert set(quality.accuracies({"alone": entry, "models/classifiers/deep": entry})) == {"alone", "deep"}


def test_a_bound_is_met_from_itself_on_and_a_classifier_may_be_too_good():
    found, named = quality.measures(ENTRIES), quality.accuracies(ENTRIES)
    bounds = {"text_class_accuracy": 0.8, "vae_psnr_db": 31.0}
    table = quality.judged(found, named, bounds, classifiers=(0.9, 0.95))
    assert table["quality"].tolist() == ["text_class_accuracy", "vae_psnr_db", "classifier resnet", "classifier vit"]
    assert table["verdict"].tolist() == ["missed", "met", "met", "missed"]
    assert table["bound"].tolist() == [0.8, 31.0, 0.9, 0.9] and table["at most"].tolist() == [float("inf")] * 2 + [0.95] * 2


def test_without_classifiers_the_bounds_are_judged_all_the_same():
    table = quality.judged({"vae_psnr_db": {"estimate": 31.0}}, {}, {"vae_psnr_db": 30.0}, classifiers=(0.9, 0.95))
    assert table["verdict"].tolist() == ["met"] and table["at most"].tolist() == [float("inf")]


def test_a_quality_that_was_not_measured_is_named():
    with pytest.raises(KeyError, match="dino_knn_accuracy"):
        quality.judged({}, {}, {"dino_knn_accuracy": 0.75}, classifiers=(0.8, 0.95))


def test_the_five_most_similar_pictures_vote_and_the_most_frequent_error_is_named():
    def shown(*levels):
        """Pictures of 2 x 2 equal pixels."""
        return np.repeat(np.array(levels, np.uint8), 4).reshape(-1, 2, 2)

    known = shown(0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204)
    labels = np.repeat([0, 1, 2], 5)
    asked = shown(2, 90, 210, 102, 200, 203)
    given, of = (known, labels, asked, np.array([0, 0, 0, 1, 2, 2])), {"classes": ["bag", "coat", "dress"], "confidence": 0.95}
    table = quality.told_apart(*given, **of).set_index("class")
    assert table["n"].to_dict() == {"bag": 3, "coat": 1, "dress": 2}
    assert table["estimate"].to_dict() == pytest.approx({"bag": 1 / 3, "coat": 1, "dress": 1})
    assert table.loc["bag", "taken for"] == "coat" and table.loc["bag", "how often"] == pytest.approx(1 / 3)
    assert table.loc["bag", "low"] < 1 / 3 < table.loc["bag", "high"]
    pair = quality.told_apart(*given, **of, among=["bag", "dress"]).set_index("class")
    assert pair["n"].to_dict() == {"bag": 3, "dress": 2} and pair.loc["bag", "estimate"] == pytest.approx(2 / 3)
