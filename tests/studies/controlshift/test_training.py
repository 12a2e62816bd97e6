import pandas as pd
import pytest
from golden_units import difference
from tiny_settings import TRAINED as SETTINGS

from cnslib.core import recipes, tables, workers
from cnslib.studies.controlshift import training
from cnslib.studies.controlshift.training import TrainingRun


@pytest.fixture(scope="module")
def predictions(experiment, tmp_path_factory) -> pd.DataFrame:
    return training.outcome(experiment, tmp_path_factory.mktemp("answers"))


def test_every_network_is_trained_in_both_ways_and_the_reference_on_every_set():
    found = training.training_runs(SETTINGS)
    plain = {(one.training, one.run) for one in found if one.network == "resnet20" and not one.augmented}
    assert plain == {("truncation", 1), ("half sphere", 1), ("large", 1), ("full support", 1)}
    assert TrainingRun("truncation", "resnet20", True, 1) in found and len(set(found)) == len(found) == 2 * 3 + 2
    assert not any(one.augmented for one in found if one.network == training.SVM)


def test_what_can_be_learned_is_learned_and_fails_where_it_is_gone(predictions):
    table = predictions.assign(right=predictions["top1"] == predictions["class"])
    right = table.groupby(["network", "augmented", "shift", "scale"])["right"].mean()
    assert right["svm", False, :, 0.0].min() == 1 and right["resnet20", False, :, 0.0].min() == 1
    assert right["svm", False, :, 1.0].max() <= 0.75
    shifts = predictions.groupby("training")["shift"].unique().map(sorted).to_dict()
    assert shifts == {"truncation": ["truncation"]} | {key: ["extend", "overlap"] for key in ("half sphere", "large", "full support")}
    assert not difference(recipes.DEGRADATION, predictions[predictions["network"] == training.SVM])  # alike on every processor


def test_a_lost_training_comes_back_with_the_same_predictions(experiment, predictions, tmp_path):
    run = TrainingRun("truncation", "resnet20", True, 1)
    (again,) = workers.each(training.train, [(experiment, {"again": run}, "again")], device="cpu")
    same = predictions.query("training == 'truncation' and network == 'resnet20' and augmented").reset_index(drop=True)
    pd.testing.assert_frame_equal(tables.check(again, training.schema, "again"), same)
    assert not list(experiment.checkpoints.iterdir())
