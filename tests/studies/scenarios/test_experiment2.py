"""EX2: what a backbone is trained on, within each scenario of Table 1, and that a training repeats to the bit."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_scenarios import CLASSES, LABELS

from cnslib.core import paths, recipes
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.scenarios import experiment2
from cnslib.studies.scenarios.experiment2 import Experiment

OBJECTS = Bootstrap(200, 0.95, 1, "other objects")


def test_ex2_trains_each_backbone_within_each_scenario_of_table_1_and_repeats_to_the_bit(settings, tmp_path, few):
    parts = []
    for run in ("first", "second"):
        experiment = Experiment(settings, CLASSES, LABELS, tmp_path / run / "checkpoints", "cpu")
        parts.append(experiment2.outcome(experiment, folder=tmp_path / run / "within"))
        assert not list((tmp_path / run / "checkpoints").iterdir())
    assert parts[0].groupby("shift").size().to_dict() == dict.fromkeys(experiment2.TRAINED, 4 * settings.checks)
    assert sorted(set(parts[0]["steps"])) == [1, 2] and experiment2.final(parts[0]).groupby("shift").size().eq(4).all()
    pd.testing.assert_frame_equal(*parts)


def test_all_scenarios_train_on_the_same_garments_and_on_none_of_the_test(settings, few):
    experiment = Experiment(settings, CLASSES, LABELS, paths.ROOT, "cpu")
    plain, original, label = experiment2.examples(experiment, UNSHIFTED, "catalog", 2)
    same, changed, again = experiment2.examples(experiment, "segmented", "catalog", 2)
    assert torch.equal(label, again) and [own.label for own in plain] == [own.label for own in same]
    inside = plain[0].mask == 1
    assert np.array_equal(original[0][inside], changed[0][inside]) and (changed[0][plain[0].mask == 0] == 0).all()
    heldout, _, _ = experiment2.examples(experiment, UNSHIFTED, "heldout", 2)
    assert not np.allclose(heldout[0].image, plain[0].image)


def test_another_setting_of_the_training_is_another_unit(settings, tmp_path):
    experiment = Experiment(settings, CLASSES, LABELS, tmp_path, "cpu")
    longer = dataclasses.replace(experiment, settings=dataclasses.replace(settings, steps=3))
    bootstrap = dataclasses.replace(experiment, settings=dataclasses.replace(settings, bootstrap=Bootstrap(7, 0.95, 1, "same classes")))
    assert experiment.stamp("tiny", "grey") == bootstrap.stamp("tiny", "grey") != longer.stamp("tiny", "grey")


def test_answers_of_a_training_that_was_stopped_are_found_again(tmp_path):
    experiment2.kept(tmp_path / "said.json", 40, ["bag", "coat"])
    experiment2.kept(tmp_path / "said.json", 80, ["bag", "bag"])
    assert json.loads((tmp_path / "said.json").read_text()) == {"40": ["bag", "coat"], "80": ["bag", "bag"]}


def trained(shares: dict[str, list[float]], garments: int = 20) -> pd.DataFrame:
    """Answers of one model at steps 10, 20 and 30, of which these shares are right."""
    rows = [
        ("x", name, "bag", seed, 1.0, "bag" if seed < share * garments else "coat", steps)
        for name, own in shares.items()
        for steps, share in zip((10, 20, 30), own, strict=True)
        for seed in range(garments)
    ]
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1", "steps"])


def test_what_is_still_learned_is_the_gain_of_the_last_third():
    found = trained({"grey": [0.9, 0.9, 0.9], "segmented": [0.1, 0.2, 0.7]})
    gains = experiment2.still_learning(found, settings=OBJECTS).set_index("scenario")
    assert gains["estimate"].to_dict() == pytest.approx({"segmented": 0.5, "grey": 0.0})
    assert gains.loc["segmented", "low"] > 0 and gains.loc["grey", "low"] == gains.loc["grey", "high"] == 0
    curve = experiment2.curve(found, settings=OBJECTS).set_index(["scenario", "steps"])["estimate"]
    assert curve["segmented"].tolist() == pytest.approx([0.1, 0.2, 0.7])


def test_what_a_backbone_is_trained_on_is_the_golden_one(settings, tmp_path, few):
    """The training itself is rounded by every processor in its own way."""
    experiment = Experiment(settings, CLASSES, LABELS, tmp_path, "cpu")
    pictures = [experiment2.examples(experiment, name, "catalog", 2)[1] for name in experiment2.TRAINED]
    assert not difference(recipes.EX2, np.concatenate(pictures))
