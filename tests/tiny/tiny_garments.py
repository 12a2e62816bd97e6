"""Synthetic garments for the builders' tests: rectangles, each class another size."""

import numpy as np
import torch

from cnslib.world import scenes

VIT = {"architecture": "vit_tiny_patch16_224", "img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 1, "num_heads": 2}


def garments(_pool: str = "catalog") -> scenes.Garments:
    """Two rectangles per class."""
    grey = torch.zeros(20, 28, 28)
    for i in range(20):
        grey[i, 4 : 14 + i // 2, 4 : 24 - i // 2] = 0.7
    return scenes.Garments(grey, np.arange(20) // 2)
