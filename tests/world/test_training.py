import dataclasses

import pytest
import torch
from torch import nn

from cnslib.core import paths, recipes
from cnslib.core.settings import read
from cnslib.world import training

SCHEDULE = training.Schedule(steps=40, batch_size=1, learning_rate=0.1, weight_decay=0.0, average=0.5)


def problem(*, dies_at: int | None = None, dropout: bool = False):
    """A line to fit to y = 3 x + 1 from one point per step, drawn from the step's own generator."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)

    def loss(step: int) -> torch.Tensor:
        if step == dies_at:
            raise KeyboardInterrupt
        x = torch.randn(8, 1, generator=torch.Generator().manual_seed(step))
        seen = nn.functional.dropout(x, 0.1) if dropout else x  # from torch's own generator, as a network's
        return (model(seen) - (3 * x + 1)).square().mean()

    return model, loss


@pytest.mark.parametrize("dropout", [False, True])
def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one_and_a_watch_sees_the_average(dropout, tmp_path):
    seen: list[tuple[int, float]] = []
    how = {"schedule": SCHEDULE, "every": 15, "watch": lambda steps, average: seen.append((steps, average.weight.item()))}
    model, loss = problem(dropout=dropout)
    whole = training.fit(model, loss, checkpoint=tmp_path / "whole.pt", **how)
    assert [steps for steps, _ in seen] == [15, 30, 40] and seen[-1] == (40, whole.weight.item())
    model, loss = problem(dies_at=27, dropout=dropout)
    with pytest.raises(KeyboardInterrupt):
        training.fit(model, loss, checkpoint=tmp_path / "killed.pt", **how)
    model, loss = problem(dropout=dropout)
    resumed = training.fit(model, loss, checkpoint=tmp_path / "killed.pt", **how)
    assert torch.equal(whole.weight, resumed.weight) and torch.equal(whole.bias, resumed.bias)
    assert seen[3:] == seen[:3]


def test_other_settings_classes_recipes_and_inputs_find_no_checkpoint_and_the_same_find_it():
    files = (paths.ROOT / "world.yaml",)
    run = read.Run("autoencoder", read.load(*files), files)
    base, settings = run.base, run.settings
    others = [
        {"autoencoder": dataclasses.replace(settings, seed=settings.seed + 1)},
        {"base": dataclasses.replace(base, classes=base.classes[:2])},
    ]
    found = [training.place(read.Run(run.step, run.sections | other, files), recipes.AUTOENCODER) for other in [{}, *others]]
    found += [training.place(run, dataclasses.replace(recipes.AUTOENCODER, number=99)), training.place(run, recipes.AUTOENCODER, "drawn")]
    assert len({place["checkpoint"] for place in found}) == 5
    assert training.place(run, recipes.AUTOENCODER) == found[0] and found[0]["device"] == "cpu"
