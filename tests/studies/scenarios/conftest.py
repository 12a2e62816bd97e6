import pytest
import timm
import torch
from tiny_garments import VIT, garments
from tiny_scenarios import CLASSES, LABELS
from tiny_settings import RESAMPLED

from cnslib.core.settings.sections import Scenarios
from cnslib.studies.scenarios import subjects
from cnslib.studies.scenarios.subjects import Experiment
from cnslib.world import scenes, zoo


@pytest.fixture(scope="session")
def settings(tmp_path_factory) -> Scenarios:
    folder = tmp_path_factory.mktemp("networks") / "tiny"
    network = zoo.network_of(VIT)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        zoo.save(timm.create_model(network["architecture"], num_classes=len(LABELS), **network["arguments"]), folder, **network)
    return Scenarios(
        bootstrap=RESAMPLED, seed=1, tree="", classifiers={"lite0": "lite:0"},
        cutouts=2, backbones={"tiny": str(folder)}, images=2,
        severities=[0.0, 0.5, 1.0], photo_severities=[0.0, 1.0], roughness=[-0.1, 0.0, 0.1],
        drawing_steps=2, guidance=2.0, training_images=2, steps=2, checks=2, batch_size=4, learning_rate=1e-3, average=0.5,
    )  # fmt: skip


@pytest.fixture
def found() -> list[subjects.Subject]:
    return subjects.garments(garments(), "heldout", CLASSES, count=2, seed=1)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(scenes, "garments", lambda _folder, pool, *_classes: garments(pool))


@pytest.fixture
def experiment(tiny_pipeline_dir, settings, tmp_path, few) -> Experiment:
    return Experiment(settings, CLASSES, LABELS, tiny_pipeline_dir, "cpu", tmp_path / "drawn")
