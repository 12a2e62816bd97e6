"""What the recipes share: one update of AdamW for each training point, and what a slider's file tells."""

import dataclasses
import json

import pytest
import torch
from tiny_sliders import CLASSES, SETTINGS, pipeline

from cnslib.method import recipes, sliders
from cnslib.models import adapters


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_every_point_is_one_update_and_its_loss_is_the_squared_distance_to_the_target(pipe):
    text, points = noise(0, 2, 24, 16), [(noise(seed, 2, 4, 16, 16), torch.tensor(501)) for seed in (1, 2, 3)]
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as parameters:
        plain, target = sliders.teacher(pipe, *points[0], text, eta=SETTINGS.eta)
        before = [parameter.detach().clone() for parameter in parameters]
        curve = recipes.descend(pipe, parameters, text, iter(points), settings=SETTINGS)
        moved = [not torch.equal(old, new) for old, new in zip(before, parameters, strict=True)]
    assert len(curve["loss"]) == len(curve["untrained"]) == 3 and any(moved)
    wanted = (plain - target).square().mean().item()  # the fresh adapter changes nothing yet
    assert curve["loss"][0] == pytest.approx(wanted, abs=1e-6) and curve["untrained"][0] == pytest.approx(wanted, abs=1e-6)


def test_without_points_nothing_is_trained(pipe):
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        assert recipes.descend(pipe, parameters, noise(0, 2, 24, 16), [], settings=SETTINGS) == {"loss": [], "untrained": []}


def test_a_header_holds_what_was_told_as_json_and_a_loss_that_is_no_number_is_refused():
    entries, more = {"class": "bag", "shift": "heavy snow"}, {"prompts": ("c", "c+"), "settings": dataclasses.asdict(SETTINGS)}
    found = recipes.told(entries, **more, curve={"loss": [0.5], "untrained": [0.5]})
    assert found["class"] == "bag" and json.loads(found["prompts"]) == ["c", "c+"] and json.loads(found["curve"])["loss"] == [0.5]
    with pytest.raises(FloatingPointError, match=r"slider of bag in heavy snow: the loss is not a number; lower sliders\.learning_rate"):
        recipes.told(entries, **more, curve={"loss": [float("nan")], "untrained": [0.5]})
