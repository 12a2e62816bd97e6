"""AlexNet (Krizhevsky et al. 2012) for 64 px images, registered with timm: the reference model of CE and rCE."""

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn

CONFIG = {
    "input_size": (3, 64, 64),
    "num_classes": 10,
    "first_conv": "features.0",
    "classifier": "head",
    "mean": (0.5, 0.5, 0.5),
    "std": (0.25, 0.25, 0.25),
    "interpolation": "bicubic",
    "crop_pct": 1.0,
}
default_cfgs = generate_default_cfgs({"alexnet_64.untrained": CONFIG})  # the name under which timm looks it up


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
    """AlexNet's layout at 64 px and reduced width."""
    return build_model_with_cfg(AlexNet, "alexnet_64", pretrained, **kwargs)
