"""Small networks: shapes, sizes counted by hand, and the names under which timm and open_clip find them."""

import pytest
import timm
import torch
from torch import nn

from cnslib.models import networks


def weights(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", ["alexnet_64", "mixer_64", "vit_64"])
def test_timm_finds_the_networks_by_their_names_at_64_pixels(name):
    model = timm.create_model(name, num_classes=3).eval()
    assert model(torch.zeros(2, 3, 64, 64)).shape == (2, 3)
    config = timm.data.resolve_data_config({}, model=model)
    assert (config["input_size"], config["mean"], config["std"]) == ((3, 64, 64), (0.5,) * 3, (0.25,) * 3)


def test_alexnet_has_the_weights_of_five_convolutions_and_three_layers():
    channels, kernels, width, hidden = (3, 8, 16, 24, 16, 16), (7, 5, 3, 3, 3), 8, 32
    convolutions = sum(i * o * k * k + o for i, o, k in zip(channels, channels[1:], kernels, strict=False))
    layers = sum(i * o + o for i, o in ((16 * 16, hidden), (hidden, hidden), (hidden, 10)))
    assert weights(networks.AlexNet(width=width, hidden=hidden)) == convolutions + layers


def test_a_backbone_has_no_head():
    assert networks.AlexNet(num_classes=0, width=8, hidden=32).eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 32)


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_every_network_answers_for_pictures_of_32_pixels(name):
    network = networks.build(name, 3).eval()
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 3)


def test_resnet20_has_twenty_layers_with_weights():
    kinds = (nn.Conv2d, nn.Linear)
    layers = [name for name, module in networks.build("resnet20", 10).named_modules() if isinstance(module, kinds)]
    assert len([name for name in layers if "downsample" not in name]) == 20


def test_an_unknown_network_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"controlshift\.networks: 'lenet' is not accepted; accepted: resnet20, vgg, .*svm"):
        networks.build("lenet", 2)
