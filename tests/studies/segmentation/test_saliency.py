"""Saliency: shares by hand, and classifiers whose gradient is known."""

import numpy as np
import pytest
import torch
from golden_units import difference
from torch import nn
from torchvision.transforms import Compose, Normalize, PILToTensor

from cnslib.core import recipes
from cnslib.models import classifiers
from cnslib.studies.segmentation import inputs, saliency

CLASSES = ["trouser", "bag"]


def test_the_share_is_that_of_a_hand_and_of_the_area_where_a_map_points_nowhere():
    mask = torch.tensor([[1.0, 0.5], [0.0, 0.0]])
    maps = torch.tensor([[[3.0, 2.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert saliency.share(maps, mask).tolist() == pytest.approx([(3 + 1) / 8, 1.5 / 4])


def observer(weights: torch.Tensor) -> classifiers.Classifier:
    """A linear classifier of two labels: its gradient is its weights."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(weights.numel(), 2, bias=False))
    network[1].weight.data = torch.stack([weights.flatten(), -weights.flatten()])
    transform = Compose([PILToTensor(), lambda picture: picture.float() / 255, Normalize([0.5] * 3, [0.25] * 3)])
    return classifiers.Classifier("observer", "test", CLASSES, network.requires_grad_(False), transform, {}, 0, "cpu")


def test_who_looks_at_the_object_alone_has_share_one_and_who_looks_elsewhere_has_none(garment):
    whole = torch.from_numpy((garment.mask == 1).astype(np.float32))
    for weights, expected in ((whole, 1.0), (torch.from_numpy((garment.mask == 0).astype(np.float32)), 0.0)):
        rows = saliency.ask(observer(weights.expand(3, -1, -1).contiguous()), garment, seed=1)
        assert len(rows) == 1 + len(inputs.NAMES) and set(rows["method"]) == {saliency.GRADIENT}
        assert rows["share"].tolist() == pytest.approx([expected] * len(rows))


def test_who_looks_everywhere_alike_has_the_share_of_the_area(garment):
    rows = saliency.ask(observer(torch.ones(3, 64, 64)), garment, seed=1)
    assert rows["share"].tolist() == pytest.approx(rows["area"].tolist())
    assert rows["area"].iloc[0] == pytest.approx(garment.mask.mean(), abs=1 / 255)


@pytest.mark.parametrize(
    ("maps", "mask", "message"),
    [
        (torch.ones(1, 4, 4), torch.ones(3, 4), r"mask of shape \(3, 4\) for maps of \(4, 4\)"),
        (torch.ones(1, 4, 4), torch.zeros(4, 4), "mask is empty; accepted: at least one pixel"),
        (-torch.ones(1, 4, 4), torch.ones(4, 4), "negative or infinite values; accepted: 0 or more"),
    ],
)
def test_a_mask_that_does_not_fit_its_map_is_refused(maps, mask, message):
    with pytest.raises(ValueError, match=message):
        saliency.share(maps, mask)


def test_the_tiny_unit_is_the_golden_one(garment):
    classifier = observer(torch.linspace(0, 1, 3 * 64 * 64).view(3, 64, 64))
    assert not difference(recipes.SALIENCY, saliency.ask(classifier, garment, seed=1), within=1e-3)
