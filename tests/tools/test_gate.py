"""The clean-accuracy gate: published values are met, missed or undecided, and the preprocessing behind the paper's value is found."""

import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from cnslib.models import registry
from cnslib.tools import gate

MISTAKEN = {"vit_base_patch16_224.augreg_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k"}  # mean and deviation 0.5, by timm
RESNET = "resnet50.a1_in1k"


def counts(*cases):
    """Rows (model, preprocessing, n, accuracy) as the gate takes them."""
    rows = [{"model": model, "preprocessing": how, "n": n, "right": round(accuracy * n)} for model, how, n, accuracy in cases]
    return pd.DataFrame(rows)


def report(*cases):
    return gate.report(counts(*cases)).set_index("model")


def test_two_vits_of_the_paper_rest_on_the_wrong_preprocessing_and_no_other_timm_model():
    cases = []
    for found in registry.entries().values():
        if found.kind == "timm":
            cases += [(found.model, "model", 50_000, found.library_top1), (found.model, "paper", 50_000, found.table7_top1)]
    table = report(*cases)
    assert len(table) == 21 and set(table["library"]) == {"agrees"}
    assert set(table.index[table["explained_by"] == "paper"]) == MISTAKEN
    assert set(table["explained_by"].drop(list(MISTAKEN))) == {"either"}


def test_a_row_holds_the_two_measurements_and_what_they_explain():
    model = "vit_base_patch16_224.augreg_in21k_ft_in1k"
    row = report((model, "model", 50_000, 0.8453), (model, "paper", 50_000, 0.717)).loc[model]
    assert (row["accuracy_model"], row["accuracy_paper"], row["table7_top1"]) == pytest.approx((0.8453, 0.717, 0.717))
    assert (row["library"], row["table7_model"], row["table7_paper"]) == ("agrees", "differs", "agrees")


@pytest.mark.parametrize(
    ("n", "accuracy", "word"),
    [
        (50_000, 0.80382 + 0.003, "agrees"),
        (50_000, 0.80382 - 0.003, "agrees"),
        (50_000, 0.80382 + 0.00302, "differs"),
        (50_000, 0.79, "differs"),
        (500, 0.77, "compatible"),  # Wilson: 0.731 to 0.805
        (500, 0.75, "differs"),  # to 0.786
    ],
)
def test_the_tolerance_is_three_tenths_of_a_point_and_a_sample_is_judged_by_its_interval(n, accuracy, word):
    row = report((RESNET, "model", n, accuracy)).loc[RESNET]
    assert row["library"] == word
    assert (row["low_model"], row["high_model"]) == pytest.approx(proportion_confint(round(n * accuracy), n, method="wilson"))
    assert row["n_paper"] == 0 and row["table7_paper"] == "not measured" and pd.isna(row["accuracy_paper"])


def test_what_was_not_measured_or_published_is_said():
    table = report(("alexnet", "model", 50_000, 0.56522), (RESNET, "model", 50_000, 0.7), ("clip_resnet50", "paper", 50_000, 0.55))
    assert table["library"].to_dict() == {"alexnet": "agrees", "clip_resnet50": "not measured", RESNET: "differs"}
    assert table["explained_by"].to_dict() == {"alexnet": "not published", "clip_resnet50": "paper", RESNET: "neither"}


def test_predictions_are_counted_by_model():
    rows = [("a", "hen", "hen"), ("a", "hen", "lion"), ("a", "lion", "lion"), ("b", "lion", "hen")]
    found = gate.count(pd.DataFrame(rows, columns=["model", "class", "top1"]), "paper")
    assert found[["model", "preprocessing", "n", "right"]].to_numpy().tolist() == [["a", "paper", 3, 2], ["b", "paper", 1, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": 60}, "at most n right answers"),
        ({"preprocessing": "own"}, "preprocessing"),
        ({"n": 50_001}, "breaks its schema"),
        ({"model": "resnet50"}, r"'resnet50' is not accepted; accepted: .*resnet50\.a1_in1k"),
    ],
)
def test_measurements_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        gate.report(counts((RESNET, "model", 50, 0.8)).assign(**change))
