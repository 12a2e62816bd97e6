"""Classifiers of shifted data sets: what they learn, who sees the same batches, and what a training depends on."""

import dataclasses

import pandas as pd
import pytest
from golden_units import difference
from tiny_trainings import SETTINGS

from cnslib.core import recipes, tables, units, workers
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.controlshift import results, training
from cnslib.studies.controlshift.training import TrainingRun


@pytest.fixture(scope="module")
def answers(experiment, tmp_path_factory) -> pd.DataFrame:
    """The answers of all trainings."""
    return training.outcome(experiment, tmp_path_factory.mktemp("answers"))


def test_every_network_is_trained_in_both_ways_and_the_reference_on_every_set():
    found = training.training_runs(SETTINGS)
    plain = {(one.training, one.run) for one in found if one.network == "resnet20" and not one.augmented}
    assert plain == {("truncation", 1), *((training, run) for training in ("half sphere", "large", "full support") for run in (1, 2))}
    assert TrainingRun("truncation", "resnet20", True, 1) in found and len(set(found)) == len(found) == 7 + 2 + 2
    assert not any(one.augmented for one in found if one.network == training.SVM)


def test_what_can_be_learned_is_learned_and_fails_where_it_is_gone(answers):
    right = answers.assign(right=answers["top1"] == answers["class"]).groupby(["network", "augmented", "shift", "scale"])["right"].mean()
    assert right["svm", False, :, 0.0].min() == 1 and right["resnet20", False, :, 0.0].min() == 1
    assert right["svm", False, :, 1.0].max() <= 0.75


def test_the_answers_are_those_of_the_shifts_that_belong_to_the_training_set(answers):
    shifts = answers.groupby("training")["shift"].unique().map(sorted).to_dict()
    assert shifts == {"truncation": ["truncation"]} | {key: ["extend", "overlap"] for key in ("half sphere", "large", "full support")}
    found = results.standard(answers)
    assert found["model"].to_numpy().tolist() == ["resnet20", "resnet20 + RandAugment", "svm"] and found.sizes["trajectory"] == 3 * 2 * 2


def test_a_lost_training_comes_back_with_the_same_answers(experiment, answers, tmp_path):
    training_run = TrainingRun("truncation", "resnet20", True, 1)
    unit = units.Unit(tmp_path / "again.parquet", experiment.stamp(training_run))
    workers.each(training.train, [(experiment, training_run, unit)], device="cpu")
    again = tables.read(unit.path, training.schema)
    same = answers.query("training == 'truncation' and network == 'resnet20' and augmented").reset_index(drop=True)
    pd.testing.assert_frame_equal(again, same)
    assert not list(experiment.checkpoints.iterdir())


def test_a_training_depends_on_its_own_files_alone(experiment):
    other = dataclasses.replace(
        experiment,
        settings=dataclasses.replace(SETTINGS, runs=5, bootstrap=Bootstrap(7, 0.95, 1, "same classes"), networks=["vit"], reference="vit"),
    )
    slower = dataclasses.replace(experiment, settings=dataclasses.replace(SETTINGS, learning_rate=1e-3))
    for training_run in training.training_runs(SETTINGS):
        assert other.stamp(training_run) == experiment.stamp(training_run) != slower.stamp(training_run)


def test_pictures_of_another_size_are_named(experiment):
    with pytest.raises(ValueError, match=r"controlshift\.side: 64 is not accepted; accepted: 32"):
        dataclasses.replace(experiment, settings=dataclasses.replace(SETTINGS, side=64)).stock("train_extend")


def test_the_tiny_unit_is_the_golden_one(answers):
    """The support vector machine's answers, which are the same on every processor."""
    assert not difference(recipes.DEGRADATION, answers[answers["network"] == training.SVM])
