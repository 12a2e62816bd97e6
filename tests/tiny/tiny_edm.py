import math

import torch

from cnslib.studies.controlshift.edm import ADM, PLUS, PRECONDITIONING, Architecture, Denoiser

TINY = {
    PLUS: Architecture(PLUS, 8, 3, 8, 32, (8, 16), (False, True), 1, classes=3, augmentations=9),
    ADM: Architecture(ADM, 8, 3, 64, 256, (64, 128), (False, True), 1, classes=3, augmentations=0),
}

TOLD = {"preconditioning": PRECONDITIONING}  # in the header of a checkpoint's file


class EDMPrecond(Denoiser):
    """Named as the EDM training names it."""


def numbered(shape: torch.Size, number: int) -> torch.Tensor:
    """Numbers in (-1, 1) that follow from their places alone."""
    places = torch.arange(shape.numel())
    return (((places * places + (2 * number + 1) * places) % 1009) / 504.5 - 1).reshape(shape)


def filled(sizes: Architecture, kind: type[Denoiser] = Denoiser) -> Denoiser:
    denoiser = kind(sizes).eval().requires_grad_(False)
    names = sorted(key for key in denoiser.state_dict() if "resample_filter" not in key)
    for number, name in enumerate(names):
        weight = denoiser.get_parameter(name)
        scale = 1.7 / (math.sqrt(weight[0].numel()) if weight.ndim > 1 else 3)
        weight.copy_(numbered(weight.shape, number) * scale)
    return denoiser
