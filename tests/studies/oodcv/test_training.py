"""Fine-tuning of the OOD-CV comparison: early stopping, and that what can be learned is learned."""

import dataclasses

import torch
from golden_units import difference

from cnslib.core import recipes
from cnslib.studies.oodcv import training


def test_training_stops_after_the_patience_and_returns_the_best_epoch(study, monkeypatch):
    accuracies, states = [0.2, 0.6, 0.6, 0.5, 0.9], []

    def spy(model, _found):
        states.append({key: value.clone() for key, value in model.state_dict().items()})
        return accuracies[len(states) - 1]

    monkeypatch.setattr(training, "share_correct", spy)
    scenes = torch.rand(4, 3, 64, 64), torch.tensor([0, 1, 0, 1])
    tuning = dataclasses.replace(study.tuning, settings=dataclasses.replace(study.tuning.settings, epochs=5, patience=2))
    model, history = training.finetune(tuning, "one", scenes, scenes)
    assert history["accuracy"].tolist() == accuracies[:4]  # a tie is no gain: two epochs after the second the training ends
    assert history["best"].tolist() == [False, True, False, False]
    assert all(torch.equal(value, states[1][key]) for key, value in model.state_dict().items())
    assert any(not torch.equal(value, states[3][key]) for key, value in model.state_dict().items())


def test_training_learns_what_can_be_learned(study):
    label = torch.arange(16) % 2
    scenes = (0.2 + 0.6 * label.float())[:, None, None, None].expand(-1, 3, 64, 64).contiguous(), label
    settings = dataclasses.replace(study.tuning.settings, epochs=6, patience=6, batch_size=8, learning_rate=1e-2)
    _, history = training.finetune(dataclasses.replace(study.tuning, settings=settings), "one", scenes, scenes)
    assert history["accuracy"].max() == 1.0 and history["loss"].iloc[-1] < history["loss"].iloc[0]


def test_the_tiny_unit_is_the_golden_one(study):
    """Losses alone, and these roughly: a training enlarges the differences with which processors round."""
    assert not difference(recipes.FINETUNED, study.tuning.histories().drop(columns=["accuracy", "best"]), within=0.05)
