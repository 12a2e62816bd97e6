"""Small networks for pictures of 32 px, from timm's building blocks: the families that Control+Shift trains (section 4.2).

timm's stems halve a picture of 224 px twice; at 32 px the second halving, a pooling, is left out. Residual networks have three stages,
as those that their authors made for CIFAR-10.
"""

from collections.abc import Callable
from functools import partial

import timm
from timm.models.vgg import VGG
from torch import nn

import cnslib.backbones  # noqa: F401  (registers mixer_64)
from cnslib.config import demand

SIDE = 32  # px of a picture
CLASSIC = (16, "M", 32, "M", 64, 64, "M", 128)  # channels of VGG's convolutions, and its poolings
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "resnet20": partial(timm.create_model, "resnet18", layers=(3, 3, 3), channels=(16, 32, 64)),
    "vgg": partial(VGG, list(CLASSIC), mlp_ratio=1 / 64, norm_layer=nn.BatchNorm2d),
    "densenet": partial(timm.create_model, "densenet121", growth_rate=8, block_config=(2, 4, 4)),
    "resnext": partial(timm.create_model, "resnext50_32x4d", layers=(2, 2, 2), channels=(8, 16, 32), cardinality=4, base_width=16),
    "vit": partial(timm.create_model, "vit_tiny_patch16_224", img_size=SIDE, patch_size=4, embed_dim=64, depth=4, num_heads=4),
    "mixer": partial(timm.create_model, "mixer_64", img_size=SIDE, patch_size=4, embed_dim=64, num_blocks=4),
}


def build(name: str, outputs: int) -> nn.Module:
    """A network with random weights for so many classes. ValueError for an unknown name."""
    demand(name in NETWORKS, "degradation.networks", name, ", ".join([*NETWORKS, "svm"]))
    network = NETWORKS[name](num_classes=outputs)
    if hasattr(network, "maxpool"):
        network.maxpool, network.layer4 = nn.Identity(), nn.Identity()
    if name == "densenet":
        network.get_submodule("features").pool0 = nn.Identity()
    return network
