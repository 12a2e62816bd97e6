import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tiny_answers import HAND, falling, predictions, random_predictions
from tiny_answers import errors as errors_of

from cnslib.core import paths
from cnslib.stats import accuracy, axes, bootstrap


def drops_of(errors: xr.DataArray) -> pd.DataFrame:
    return accuracy.interval(accuracy.drop(errors))


def measured(values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, {"confidence": 0.95}, ["resample", "model"])


def test_along_repeats_a_classifier_on_each_of_its_axes_in_their_order():
    table = drops_of(errors_of(predictions(HAND))).query("shift == @accuracy.ALL and scale == 1")
    found = axes.along(table, {"architecture": ["resnet", "alexnet"], "pre-training": ["resnet"]})
    assert found[["axis", "model"]].to_numpy().tolist() == [
        ["architecture", "resnet"],
        ["architecture", "alexnet"],
        ["pre-training", "resnet"],
    ]
    assert found["estimate"].tolist() == pytest.approx([1 / 3, 1, 1 / 3]) and found.index.tolist() == [0, 1, 2]


def test_a_shift_under_which_the_reference_loses_nothing_is_reported_and_left_out():
    perfect = predictions({"alexnet": ["..."] * 60, "resnet": [".xx"] * 60})
    some = predictions({"alexnet": ["..x"] * 2 + ["..."] * 58, "resnet": [".xx"] * 60}, "heavy rain")
    errors = errors_of(pd.concat([perfect, some, random_predictions(12, shifts=("heavy fog",), trajectories=60)]))
    guard = axes.reference_drop(errors, "alexnet").set_index("shift")
    assert guard["defined"].to_dict() == {"heavy fog": True, "heavy rain": False, "heavy snow": False}
    assert guard.loc["heavy snow", ["estimate", "low", "high"]].tolist() == [0, 0, 0]
    assert guard.loc["heavy rain", "estimate"] == pytest.approx(1 / 30) and guard.loc["heavy rain", "n"] == 60


def test_the_resamples_of_rce_give_the_table_of_rce():
    errors = errors_of(random_predictions(3, trajectories=60))
    table = accuracy.relative_corruption_error(errors, reference="alexnet").query("shift == @accuracy.MEAN")
    found = axes.relative_errors(errors, reference="alexnet")
    assert found[0].to_numpy() == pytest.approx(table["estimate"].to_numpy())
    assert bootstrap.percentiles(found[1:].to_numpy(), 0.95) == pytest.approx(table[["low", "high"]].to_numpy().T)
    errors[5, :, 0] = 0.0  # a resample in which the reference loses nothing
    assert np.isfinite(axes.relative_errors(errors, reference="alexnet")[5]).all()


def test_the_deviation_between_classifiers_without_chance_is_the_standard_deviation():
    values = np.repeat([[0.1, 0.2, 0.4]], 50, axis=0)
    assert axes.deviation_between(measured(values)).to_numpy() == pytest.approx(np.full(50, np.std([0.1, 0.2, 0.4], ddof=1)))


def test_chance_is_taken_once_from_the_sample_and_twice_from_a_resample():
    """Half the squared difference of two models is their variance; the resamples move each by 0.1 about its mean, which adds 0.02."""
    values = np.array([[0, 1], [0, 1.2], [0, 0.8]])
    expected = np.sqrt([1 / 2 - 0.02, 1.2**2 / 2 - 0.04, 0.8**2 / 2 - 0.04])
    assert axes.deviation_between(measured(values)).to_numpy() == pytest.approx(expected)


def test_a_counterpart_is_judged_from_the_reference():
    """From the reference's 1: 0.7 is in the interval, 0.9 on its side, 1.2 on the other; an open interval decides nothing."""
    ours = pd.DataFrame({"axis": "size", "model": list("abcde"), "n": 9, "estimate": 0.7, "low": 0.6, "high": 0.8})
    ours.loc[3, "high"] = np.nan
    paper = pd.DataFrame({"axis": "size", "classifier": list("abcde"), "rCE": [0.7, 0.9, 1.2, 0.7, np.nan]})
    found = axes.compared(ours, paper, column="rCE")
    assert found["verdict"].tolist() == ["agrees", "same direction", "opposite direction", "undecided"]
    assert found["difference"].tolist() == pytest.approx([0, -0.2, -0.5, 0])
    level = axes.compared(ours, paper.rename(columns={"rCE": "accuracy"}), column="accuracy")
    assert set(level["verdict"]) == {"not measured"}


def test_a_published_number_of_the_wrong_preprocessing_gets_no_verdict_and_its_caution_is_shown():
    ours = pd.DataFrame({"axis": "size", "model": list("abc"), "n": 9, "estimate": 0.7, "low": 0.6, "high": 0.8})
    paper = pd.DataFrame({"axis": "size", "classifier": list("abc"), "rCE": 0.9, "caution": [axes.UNUSABLE, "another recipe", np.nan]})
    found = axes.compared(ours, paper, column="rCE")
    assert found["verdict"].tolist() == ["not measured", "same direction", "same direction"]
    assert found["caution"].tolist() == [axes.UNUSABLE, "another recipe", ""]
    named = PAPER[PAPER["note"].str.contains("wrong preprocessing")]
    assert set(named["caution"]) == {axes.UNUSABLE} and set(named["classifier"]) == {"vit", "web"}


def test_the_order_agrees_fully_with_the_papers_where_it_is_the_same():
    words = {"a": falling([1, 0.9, 0.8], 50), "b": falling([1, 0.6, 0.5], 50), "c": falling([1, 0.3, 0.1], 50)}
    errors = errors_of(predictions(words))
    paper = pd.DataFrame({"axis": ["y"] * 4 + ["x"] * 3, "classifier": [*"abcdabc"], "drop": [1, 2, 3, 0, 3, 2, 1]})
    found = axes.order_agreement(accuracy.drop(errors).mean("scale")[:, -1], paper, column="drop")
    assert found[["estimate", "low", "high"]].to_numpy().tolist() == [[1, 1, 1], [-1, -1, -1]]
    assert found["n"].tolist() == [3, 3]


PAPER = pd.read_csv(paths.PUBLISHED / "axes.csv")
CONVNEXT, DINO = "convnext_base.fb_in1k", "dinov1_ft_vit_base_patch16"


def test_an_evaluated_classifier_of_the_paper_stands_for_itself_without_a_note():
    found = axes.themselves(PAPER, [CONVNEXT], {"classifier": "paper_model"}).query("axis == 'architecture'")
    assert found["classifier"].tolist()[:5] == ["resnet", "vit", "deit", CONVNEXT, "vmamba"]
    assert found.set_index("classifier")["note"][CONVNEXT] == "" != found.set_index("classifier")["note"]["deit"]
    vit = axes.themselves(PAPER, ["vit_base_patch16_224.augreg_in1k"], {"classifier": "paper_model"}).set_index("paper_model")
    assert set(vit.loc["vit_base_patch16_224.augreg_in1k", "caution"]) == {""}  # like with like
    same = {"convnext": 0, "dino": 0}
    assert axes.roles(PAPER, [CONVNEXT, DINO]) | same == axes.roles(PAPER, []) | same
    assert axes.roles(PAPER, [DINO])["dino"] == DINO and "dino" not in axes.roles(PAPER, [])


def test_averages_run_over_shared_classifiers_if_there_are_enough():
    ours = pd.DataFrame({"x": range(6)}, index=list("abcdef"))
    published = pd.DataFrame({"x": range(5)}, index=list("fedcz"))
    one, other = axes.alike(ours, published)
    assert one.index.tolist() == other.index.tolist() == list("fedc") and one["x"].tolist() == [5, 4, 3, 2]
    one, other = axes.alike(ours, published.drop(index="c"))
    assert one is ours and len(other) == 4
    errors = errors_of(predictions({name: ["..x"] for name in "abcdef"}))
    assert axes.same(errors, published)["model"].to_numpy().tolist() == list("cdef")
