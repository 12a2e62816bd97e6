"""EX2: what a backbone is trained on, within each scenario of Table 1, and that a training repeats to the bit."""

import dataclasses

import numpy as np
import pandas as pd
import torch
from golden_units import difference
from tiny_scenarios import CLASSES, LABELS

from cnslib.core import kinds, paths
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.scenarios import experiment2
from cnslib.studies.scenarios.experiment2 import Experiment


def test_ex2_trains_each_backbone_within_each_scenario_of_table_1_and_repeats_to_the_bit(settings, tmp_path, few):
    parts = []
    for run in ("first", "second"):
        experiment = Experiment(settings, CLASSES, LABELS, tmp_path / run / "checkpoints", "cpu")
        parts.append(experiment2.outcome(experiment, folder=tmp_path / run / "within"))
        assert not list((tmp_path / run / "checkpoints").iterdir())
    assert parts[0].groupby("shift").size().to_dict() == dict.fromkeys(experiment2.TRAINED, 4)
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


def test_what_a_backbone_is_trained_on_is_the_golden_one(settings, tmp_path, few):
    """The training itself is in bf16, which processors round in their own way."""
    experiment = Experiment(settings, CLASSES, LABELS, tmp_path, "cpu")
    pictures = [experiment2.examples(experiment, name, "catalog", 2)[1] for name in experiment2.TRAINED]
    assert not difference(kinds.EX2, np.concatenate(pictures))
