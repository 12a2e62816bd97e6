"""What Control+Shift found: differences that a hand can take, and verdicts by the interval."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from tiny_trainings import SETTINGS

from cnslib.core import paths
from cnslib.stats import accuracy
from cnslib.studies.controlshift import findings


def shares(curves: dict[str, list[float]], shift: str = "overlap") -> accuracy.Shares:
    """Error rates of some classifiers along the steps, the same in every resample and in both groups."""
    values = np.array(list(curves.values()), float)
    samples = np.broadcast_to(values, (11, 2, *values.shape)).copy()
    return accuracy.Shares(samples, [shift, accuracy.ALL], np.array([20, 20]), list(curves), list(range(values.shape[1])), 0.95)


def test_findings_are_differences_that_a_hand_can_take():
    mixer = {"mixer": [0.9, 0.9, 0.9], "mixer + RandAugment": [0.2, 0.9, 0.9]}  # the first has learned nothing
    curves = {"resnet20": [0.1, 0.2, 0.3], "vit": [0.1, 0.3, 0.5], "resnet20 + RandAugment": [0.1, 0.1, 0.2]}
    errors = shares(curves | mixer)
    slopes = dataclasses.replace(errors, samples=-(errors.samples[..., -1:] - errors.samples[..., :1]), bins=[0.0])
    sets = shares({"full support": [0.1, 0.1, 0.1], "standard": [0.1, 0.2, 0.3], "twice as many": [0.1, 0.2, 0.2]})
    found = {name: row["estimate"] for name, row in findings.findings(errors, slopes, sets, least=0.2).items()}
    expected = {"decline": 0.3, "augmented": 0.1, "baseline": 0.0, "augmentation": 0.1, "size": 1 / 3, "support": 0.1, "complete": 0.0}
    unknown = {"strongest_extend": np.nan, "strongest_overlap": np.nan}  # there is no truncation here
    assert found == pytest.approx(expected | unknown | {"bias": 0.2}, nan_ok=True)


def several(curves: dict[str, dict[str, list[float]]]) -> accuracy.Shares:
    """Error rates by shift, classifier and step, the same in every resample; the last group is the mean of the shifts."""
    values = np.array([list(own.values()) for own in curves.values()], float)
    samples = np.broadcast_to(np.concatenate([values, values.mean(0, keepdims=True)]), (11, len(curves) + 1, *values.shape[1:])).copy()
    models = list(next(iter(curves.values())))
    return accuracy.Shares(samples, [*curves, accuracy.ALL], np.full(len(curves) + 1, 20), models, list(range(values.shape[2])), 0.95)


THREE = {
    "extend": {"resnet20": [0.1, 0.3], "svm": [0.1, 0.5]},
    "overlap": {"resnet20": [0.1, 0.2], "svm": [0.1, 0.6]},
    "truncation": {"resnet20": [0.2, 0.3], "svm": [0.2, 0.5]},
}
SETS = shares({"standard": [0.1, 0.3], "twice as many": [0.1, 0.2], "full support": [0.1, 0.1]})


def test_a_part_of_a_drop_is_a_share_only_where_something_is_lost_for_certain():
    assert findings.share_of(np.array([0.1, 0.2]), np.array([0.2, 0.2])).tolist() == [0.5, 1.0]
    assert np.isnan(findings.share_of(np.array([0.1, 0.2]), np.array([0.2, -0.1]))).all()


def test_training_sets_are_compared_under_names_for_a_reader_with_their_runs_averaged():
    wrong = {("half sphere", 1): 0, ("half sphere", 2): 1, ("large", 1): 1, ("full support", 1): 0, ("truncation", 1): 1}
    rows = [
        {"network": "vit", "augmented": False, "training": training, "run": run, "shift": "extend", "class": "bag", "scale": scale}
        | {"seed": seed, "top1": "coat" if bad and scale else "bag"}
        for (training, run), bad in wrong.items()
        for scale in (0.0, 1.0)
        for seed in (1, 2)
    ]
    found = findings.by_set(pd.DataFrame(rows), "vit", settings=SETTINGS.bootstrap)
    assert found.models == ["standard", "twice as many", "full support"]
    assert found.samples[0, 0].tolist() == [[0, 0.5], [0, 1], [0, 0]]


def test_truncation_is_compared_with_each_other_shift_and_bias_under_overlap():
    errors = several(THREE)
    slopes = dataclasses.replace(errors, samples=-(errors.samples[..., -1:] - errors.samples[..., :1]), bins=[0.0])
    found = findings.findings(errors, slopes, SETS, least=0.0)
    own = {name: row["estimate"] for name, row in found.items()}
    assert own["strongest_extend"] == pytest.approx(0.2 - 0.3) and own["strongest_overlap"] == pytest.approx(0.2 - 0.3)
    assert own["bias"] == pytest.approx(-0.1 - -0.5) and own["complete"] == 0
    assert findings.loss_words(found).endswith("(n = 20), surely least of it under truncation, where the paper's lose most")
    table = findings.levels(errors, slopes)
    assert table.loc["svm", "truncation"].to_dict() == pytest.approx({"step 0": 0.8, "last step": 0.5, "lost": 0.3})
    assert table["slope"].tolist() == pytest.approx([-0.4 / 3, -1.2 / 3])
    steep = "svm loses accuracy fastest with distance (-0.40 (-0.40 to -0.40) per unit), surely so beside 1 of 1 others; resnet20 slowest"
    pairs = dataclasses.replace(slopes, samples=np.repeat(slopes.samples, 2, 2), models=["vit", "vit + RandAugment", "svm", "mixer"])
    assert "svm" not in findings.steepest(pairs)  # who was trained in one way alone does not stand in the figure
    assert findings.steepest(slopes).startswith(steep) and findings.steepest(slopes).endswith("surely so beside 1 of 1 others")


def test_sentences_hold_the_numbers_of_their_tables():
    fits = pd.DataFrame({"shift": ["extend", "truncation", accuracy.ALL], "estimate": [0.96, 0.7, 0.9]})
    assert findings.line_words(fits) == "a line in the distance explains 0.96 (extend), 0.70 (truncation) of the change"
    steps = "0.00 (0.00 to 0.00) with 'full support', 0.10 (0.10 to 0.10) with 'twice as many', 0.20 (0.20 to 0.20) with 'standard'"
    assert findings.set_words(SETS) == f"Averaged over the steps it loses {steps}"
    own, everybody = (pd.DataFrame({"finding": ["a", "b"], "verdict": words}) for words in (["agrees", "undecided"], ["undecided"] * 2))
    assert findings.tally(own, everybody, []) == "2 tests of 2 claims of the paper: 1 holds, 0 opposite, 1 undecided and 0 not measured"
    assert findings.tally(own, everybody, ["vit"]).endswith("; with vit, who learned nothing, 0 hold")
    silent = pd.DataFrame({"finding": ["a", "more do not help", "more do not help"], "verdict": ["agrees", *["not measured"] * 2]})
    assert findings.tally(silent, everybody, []).endswith("0 undecided and 2 not measured; without a verdict: that more do not help")
    against = pd.DataFrame({"finding": ["a", "a", "b"], "verdict": ["opposite direction", "opposite direction", "agrees"]})
    one = "1 holds, 2 opposite, 0 undecided and 0 not measured; the opposite ones contradict 1 of the claims"
    assert findings.tally(against, against, []) == f"3 tests of 2 claims of the paper: {one}"
    falls = "extend 0.90 to 0.50, by 0.40 (0.40 to 0.40); overlap 0.90 to 0.40, by 0.50 (0.50 to 0.50); truncation 0.80 to 0.50, by 0.30"
    assert falls in findings.drop_words(several(THREE), ["svm"])


def test_who_has_not_learned_is_named_and_the_weakest_start_told():
    errors = shares({"vit": [0.8, 0.9], "vgg": [0.1, 0.3]})
    assert findings.idle(errors, 0.3) == ["vit"] and findings.idle(errors, 0.1) == []
    said = findings.learned_words(errors, 0.3, 0.125)
    assert (
        said
        == "1 of 2 classifiers reach an accuracy of 0.3 at step 0; not vit. The weakest start is that of vit, 0.20; guessing gives 0.12."
    )


@pytest.mark.parametrize(
    ("ahead", "words"),
    [((0.1, 0.2), "surely most of it under"), ((-0.2, -0.1), "surely least of it under"), ((-0.1, 0.2), "as in the paper, is undecided")],
)
def test_truncation_costs_most_or_least_only_by_whole_intervals(ahead, words):
    record = {"n": 60, "estimate": sum(ahead) / 2, "low": ahead[0], "high": ahead[1]}
    results = {"decline": {"n": 60, "estimate": 0.2, "low": 0.1, "high": 0.3}, "strongest_extend": record, "strongest_overlap": record}
    assert words in findings.loss_words(results)
    unknown = results | {"strongest_extend": record | {"estimate": np.nan}}
    plain = "At the last step classifiers trained without augmentation lose 0.20 (0.10 to 0.30) of accuracy (n = 60)"
    assert findings.loss_words(unknown) == plain


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, 0.9, "Pooled over the shifts the two orders agree more than chance would:"),
        (-0.9, -0.1, "Pooled over the shifts the two orders are rather reversed:"),
        (-0.1, 0.9, "Pooled over the shifts it is undecided whether the two orders agree:"),
    ],
)
def test_the_bridge_is_told_by_its_interval(low, high, words):
    tau = {"extend": {"estimate": 0.5, "low": 0.4, "high": 0.6}, accuracy.ALL: {"estimate": 0.4, "low": low, "high": high}}
    assert findings.bridge_words(tau).startswith(words)
    slopes = dataclasses.replace(shares({"a": [-0.1], "b": [0.1], "c": [-0.2]}), bins=[0.0])
    seen = findings.bridge_seen(tau, slopes)
    assert seen == "By shift tau is 0.50 (0.40 to 0.60) under extend. 2 of 3 slopes are surely below zero, 1 surely above."
    flat = dataclasses.replace(slopes, samples=abs(slopes.samples))
    assert "0 of 3 slopes are surely below zero, 3 surely above: where few lose anything" in findings.bridge_seen(tau, flat)


def test_networks_trained_in_both_ways_stand_in_pairs():
    table = pd.DataFrame({"model": ["vit", "vit + RandAugment", "svm"], "estimate": [1, 2, 3]})
    assert findings.by_training(table)[["model", "training", "estimate"]].to_numpy().tolist() == [
        ["vit", "plain", 1],
        ["vit", "RandAugment", 2],
    ]


def test_every_published_statement_is_measured():
    said = pd.read_csv(paths.PUBLISHED / "controlshift.csv").set_index("id")
    errors = several(THREE)
    slopes = dataclasses.replace(errors, samples=-(errors.samples[..., -1:] - errors.samples[..., :1]), bins=[0.0])
    assert {*findings.findings(errors, slopes, SETS, least=0.0), "linear"} == set(said.index)


def test_verdicts_follow_from_the_interval():
    said = ["above 0"] * 3 + ["about 0"] * 3 + ["0.1"]
    tolerance = [np.nan] * 3 + [0.15] * 3 + [np.nan]
    table = {"id": list("abcdefg"), "finding": "f", "quantity": "q", "published": said, "tolerance": tolerance, "unmeasured": np.nan}
    published = pd.DataFrame(table)
    bounds = [(0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.1, 0.2), (0.2, 0.3), (0.05, 0.3)]
    found = {name: {"n": 1, "estimate": sum(own) / 2, "low": own[0], "high": own[1]} for name, own in zip("abcdefg", bounds, strict=True)}
    table = findings.against(found, published)
    directions = ["same direction", "undecided", "opposite direction"]
    assert table["verdict"].tolist() == [*directions, "agrees", "undecided", "opposite direction", "agrees"]
    assert table.loc["g", "difference"] == pytest.approx(0.175 - 0.1)
    larger = findings.against(found, published.assign(unmeasured=["about larger sets" if name == "c" else np.nan for name in "abcdefg"]))
    assert larger.loc["c", ["rule", "verdict"]].tolist() == ["about larger sets", "not measured"]
    assert larger.drop(index="c").equals(table.drop(index="c"))


def test_the_claim_that_more_images_do_not_help_is_about_larger_sets_and_gets_no_verdict():
    """Twice as many images take away half of the drop: no contradiction of what is said of far larger sets."""
    said = pd.read_csv(paths.PUBLISHED / "controlshift.csv")
    found = {"size": {"n": 9, "estimate": 0.5, "low": 0.4, "high": 0.6}, "complete": {"n": 9, "estimate": 0.5, "low": 0.4, "high": 0.6}}
    assert findings.against(found, said)["verdict"].tolist() == ["not measured", "opposite direction"]


def test_change_of_accuracy_stands_beside_the_distance_of_its_step():
    errors = shares({"vit": [0.1, 0.4]})
    means = pd.DataFrame({"shift": "overlap", "scale": [0, 1], "pixel": [2.0, 2.5]})
    found = findings.against_distance(errors, means, space="pixel")
    assert found["estimate"].tolist() == pytest.approx([0, -0.3]) and found["distance"].tolist() == [2.0, 2.5]
