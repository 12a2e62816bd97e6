import numpy as np
import torch

from cnslib.world import scenes

VIT = {"architecture": "vit_tiny_patch16_224", "img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 1, "num_heads": 2}


def garments(_pool: str = "catalog") -> scenes.Garments:
    grey = torch.zeros(20, 28, 28)
    for i in range(20):
        grey[i, 4 : 14 + i // 2, 4 : 24 - i // 2] = 0.7
    return scenes.Garments(grey, np.arange(20) // 2)


def few() -> scenes.Garments:
    """Those of two classes: a batch of all captions has 30 scenes, not 150."""
    everything = garments()
    return scenes.Garments(everything.grey[:4], everything.labels[:4], scenes.CLASSES[:2])


def squares() -> torch.Tensor:
    grey = torch.zeros(6, 28, 28)
    grey[:, 6:22, 6:22] = 0.8
    return grey


def rendered(grey: torch.Tensor, name: str, severity: float, keys: list[tuple] | None = None) -> torch.Tensor:
    keys = keys or [("test", i) for i in range(len(grey))]
    return scenes.render(grey, keys, style="web", shift=[name] * len(grey), severity=torch.full((len(grey),), severity))
