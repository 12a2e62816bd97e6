"""Small networks with random weights for pictures of 64 px, under names of timm."""

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

CONFIG = {"input_size": (3, 64, 64), "num_classes": 10, "classifier": "head", "mean": (0.5,) * 3, "std": (0.25,) * 3}
CONFIG |= {"interpolation": "bicubic", "crop_pct": 1.0}
FIRST = {"alexnet_64": "features.0", "mixer_64": "stem.proj", "vit_64": "patch_embed.proj"}
default_cfgs = generate_default_cfgs(  # the names under which timm looks them up
    {f"{name}.untrained": CONFIG | {"first_conv": first} for name, first in FIRST.items()}
)


class AlexNet(nn.Module):
    """Five convolutions without normalisation, three pooling steps, two hidden layers with dropout."""

    def __init__(self, num_classes: int = 10, in_chans: int = 3, width: int = 48, hidden: int = 256, drop_rate: float = 0.5):
        super().__init__()
        self.num_classes, self.num_features = num_classes, hidden
        channels = [in_chans, width, 2 * width, 3 * width, 2 * width, 2 * width]
        kernels, strides, pooled = (7, 5, 3, 3, 3), (2, 1, 1, 1, 1), (True, True, False, False, True)
        layers: list[nn.Module] = []
        for i, (kernel, stride, pool) in enumerate(zip(kernels, strides, pooled, strict=True)):
            layers += [nn.Conv2d(channels[i], channels[i + 1], kernel, stride, kernel // 2), nn.ReLU()]
            layers += [nn.MaxPool2d(3, 2, 1)] if pool else []
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.hidden = nn.Sequential(
            nn.Dropout(drop_rate), nn.Linear(channels[-1] * 16, hidden), nn.ReLU(),
            nn.Dropout(drop_rate), nn.Linear(hidden, hidden), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(hidden, num_classes) if num_classes else nn.Identity()

    def forward(self, image: Tensor) -> Tensor:
        """Class scores of normalised images."""
        return self.head(self.hidden(self.features(image)))


@register_model
def alexnet_64(pretrained: bool = False, **kwargs) -> AlexNet:
    """AlexNet's layout (Krizhevsky et al. 2012) at 64 px and reduced width: the reference model of CE and rCE."""
    return build_model_with_cfg(AlexNet, "alexnet_64", pretrained, **kwargs)


VIT = {"img_size": 64, "patch_size": 8, "embed_dim": 128, "depth": 4, "num_heads": 4}  # those of the zoo's `vit`


@register_model
def mixer_64(pretrained: bool = False, **kwargs) -> MlpMixer:
    """MLP-Mixer (Tolstikhin et al. 2021) for 64 px images; timm's own names fix patch size and width."""
    return build_model_with_cfg(MlpMixer, "mixer_64", pretrained, **({"img_size": 64, "patch_size": 8} | kwargs))


@register_model
def vit_64(pretrained: bool = False, **kwargs) -> VisionTransformer:
    """The zoo's ViT under one name, because an open_clip configuration holds a name and no arguments."""
    return build_model_with_cfg(VisionTransformer, "vit_64", pretrained, **(VIT | kwargs))
