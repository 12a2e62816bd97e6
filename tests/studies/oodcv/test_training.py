"""Fine-tuning of the OOD-CV comparison: early stopping, and that what can be learned is learned."""

import dataclasses

import torch
from golden_units import difference

from cnslib.core import recipes
from cnslib.studies.oodcv import training
from cnslib.studies.oodcv.training import Scenes


def test_training_stops_after_the_patience_and_returns_the_best_epoch(studio, monkeypatch):
    tuning, accuracies, calls = studio.panel.tuning, [0.2, 0.6, 0.6, 0.5, 0.9], []
    settings = dataclasses.replace(tuning.settings, epochs=5, patience=2)
    states = []

    def spy(model, _found):
        states.append({key: value.clone() for key, value in model.state_dict().items()})
        calls.append(1)
        return accuracies[len(calls) - 1]

    monkeypatch.setattr(training, "share_correct", spy)
    scenes = Scenes(torch.rand(4, 3, 64, 64), torch.tensor([0, 1, 0, 1]))
    own = dataclasses.replace(tuning, settings=settings)
    model, history = training.finetune(settings.networks["one"], scenes, scenes, name="one", outputs=2, tuning=own)
    assert history["accuracy"].tolist() == accuracies[:4]  # a tie is no gain: two epochs after the second the training ends
    assert history["best"].tolist() == [False, True, False, False]
    assert all(torch.equal(value, states[1][key]) for key, value in model.state_dict().items())
    assert any(not torch.equal(value, states[3][key]) for key, value in model.state_dict().items())


def test_training_learns_what_can_be_learned(studio):
    settings = dataclasses.replace(studio.panel.tuning.settings, epochs=6, patience=6, batch_size=8, learning_rate=1e-2)
    label = torch.arange(16) % 2
    scenes = Scenes((0.2 + 0.6 * label.float())[:, None, None, None].expand(-1, 3, 64, 64).contiguous(), label)
    own = dataclasses.replace(studio.panel.tuning, settings=settings)
    _, history = training.finetune(settings.networks["one"], scenes, scenes, name="one", outputs=2, tuning=own)
    assert history["accuracy"].max() == 1.0 and history["loss"].iloc[-1] < history["loss"].iloc[0]


def test_the_tiny_unit_is_the_golden_one(studio):
    """Losses alone, and these roughly: a training enlarges the differences with which processors round."""
    assert not difference(recipes.FINETUNED, studio.panel.tuning.histories().drop(columns=["accuracy", "best"]), within=0.05)
