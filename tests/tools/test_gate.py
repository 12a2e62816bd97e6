"""The clean-accuracy gate: published values are met, missed or undecided, and the preprocessing behind the paper's value is found."""

import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from cnslib.models import registry
from cnslib.tools import gate

MISTAKEN = {"vit_base_patch16_224.augreg_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k"}  # mean and deviation 0.5, by timm
WRONG = "the paper's value rests on the wrong preprocessing (statistics of the pixels, crop)"


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
    assert len(table) == 21
    assert set(table.index[table["verdict"].str.startswith(WRONG)]) == MISTAKEN
    assert set(table["explained_by"][list(MISTAKEN)]) == {"paper"}
    assert set(table["explained_by"].drop(list(MISTAKEN))) == {"either"}
    assert set(table["library"]) == {"agrees"}


@pytest.mark.parametrize(
    ("model", "own", "paper"),
    [("vit_base_patch16_224.augreg_in21k_ft_in1k", 0.8453, 0.717), ("vit_base_patch16_224.augreg_in1k", 0.7915, 0.768)],
)
def test_a_row_holds_the_two_measurements_and_what_they_explain(model, own, paper):
    row = report((model, "model", 50_000, own), (model, "paper", 50_000, paper)).loc[model]
    assert (row["accuracy_model"], row["accuracy_paper"], row["table7_top1"]) == pytest.approx((own, paper, paper))
    assert (row["library"], row["table7_model"], row["table7_paper"]) == ("agrees", "differs", "agrees")


def test_the_tolerance_is_three_tenths_of_a_point_on_the_whole_validation_set():
    name, published = "resnet50.a1_in1k", 0.80382
    for accuracy, word in (
        (published + 0.003, "agrees"),
        (published - 0.003, "agrees"),
        (published + 0.00302, "differs"),
        (0.79, "differs"),
    ):
        assert report((name, "model", 50_000, accuracy)).loc[name, "library"] == word


def test_a_sample_is_judged_by_its_interval():
    name = "resnet50.a1_in1k"
    assert report((name, "model", 500, 0.77)).loc[name, "library"] == "compatible"  # Wilson: 0.731 to 0.805
    assert report((name, "model", 500, 0.75)).loc[name, "library"] == "differs"  # to 0.786
    row = report((name, "paper", 500, 0.77)).loc[name]
    assert (row["low_paper"], row["high_paper"]) == pytest.approx(proportion_confint(385, 500, method="wilson"))
    assert row["n_model"] == 0 and row["n_paper"] == 500 and pd.isna(row["accuracy_model"])


def test_what_was_not_measured_or_published_is_said():
    table = report(
        ("alexnet", "model", 50_000, 0.56522), ("resnet50.a1_in1k", "model", 50_000, 0.80382), ("clip_resnet50", "paper", 50_000, 0.55)
    )
    assert table["library"].to_dict() == {"alexnet": "agrees", "clip_resnet50": "not measured", "resnet50.a1_in1k": "agrees"}
    assert table["explained_by"].to_dict() == {"alexnet": "not published", "clip_resnet50": "paper", "resnet50.a1_in1k": "model"}
    assert table.loc["clip_resnet50", "verdict"] == "reproduced by the paper's preprocessing alone (statistics of the pixels, crop)"
    assert table.loc["resnet50.a1_in1k", "table7_paper"] == "not measured"


def test_a_model_that_misses_the_paper_under_both_is_not_reproduced():
    row = report(("resnet50.a1_in1k", "model", 50_000, 0.7), ("resnet50.a1_in1k", "paper", 50_000, 0.7)).loc["resnet50.a1_in1k"]
    assert (row["library"], row["explained_by"], row["verdict"]) == ("differs", "neither", "not reproduced")


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
        gate.report(counts(("resnet50.a1_in1k", "model", 50, 0.8)).assign(**change))
    with pytest.raises(ValueError, match="breaks its schema"):
        gate.report(counts(*[("alexnet", "model", 50, 0.5)] * 2))
