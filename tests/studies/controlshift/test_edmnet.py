"""EDM's networks: names and shapes of the public ones, predictions of the authors' code, and the preconditioning of Table 1."""

import hashlib
import math
from pathlib import Path

import pytest
import torch
from tiny_edm import TINY, filled, numbered

from cnslib.studies.controlshift import edm
from cnslib.studies.controlshift.edmnet import ADM, PLUS, Architecture, Denoiser

PUBLIC = {  # as the authors' code builds cifar10-32x32-cond and imagenet-64x64-cond
    PLUS: Architecture(PLUS, 32, 3, 128, 512, (256, 256, 256), (False, True, False), 4, classes=10, augmentations=9),
    ADM: Architecture(ADM, 64, 3, 192, 768, (192, 384, 576, 768), (False, True, True, True), 3, classes=1000, augmentations=0),
}


@pytest.mark.parametrize(
    ("family", "tensors", "parameters", "digest"),
    [
        (PLUS, 427, 55_735_299, "740b096010232034dff94eb5d05d5ff968025bd853ba989c97a3334ac33656c1"),
        (ADM, 553, 295_899_267, "a59bb78fad0da4fa29f9b3a2aa6f9f90b8498dfc3b531c9b26c20c22e80fee2a"),
    ],
)
def test_the_public_networks_have_the_published_tensors(family, tensors, parameters, digest):
    """The digest is that of the sorted lines "name shape" of the networks as the authors' code builds them."""
    with torch.device("meta"):
        denoiser = Denoiser(PUBLIC[family])
    shapes = {key: tuple(value.shape) for key, value in denoiser.state_dict().items()}
    assert len(shapes) == tensors and sum(value.numel() for value in denoiser.parameters()) == parameters
    assert hashlib.sha256("\n".join(sorted(f"{key} {shape}" for key, shape in shapes.items())).encode()).hexdigest() == digest
    assert edm.architecture(denoiser.state_dict(), Path()) == PUBLIC[family]


def test_some_names_and_shapes_of_the_cifar_network_by_hand():
    with torch.device("meta"):
        shapes = {key: tuple(value.shape) for key, value in Denoiser(PUBLIC[PLUS]).state_dict().items()}
    assert shapes["model.map_label.weight"] == (128, 10) and shapes["model.map_augment.weight"] == (128, 9)
    assert shapes["model.enc.32x32_conv.weight"] == (128, 3, 3, 3) and shapes["model.dec.32x32_aux_conv.weight"] == (3, 256, 3, 3)
    assert shapes["model.enc.16x16_down.conv0.resample_filter"] == (1, 1, 2, 2)
    assert shapes["model.enc.16x16_block0.qkv.weight"] == (768, 256, 1, 1) and "model.dec.16x16_block0.qkv.weight" not in shapes
    assert shapes["model.dec.8x8_block4.skip.weight"] == (256, 512, 1, 1) and "model.dec.8x8_block5.skip.weight" not in shapes


@pytest.mark.parametrize(
    ("family", "published"),
    [
        (PLUS, [0.02947, -0.10681, -0.01407, -0.18063, 0.02924, -0.39291]),
        (ADM, [-0.0657, 0.06931, 0.03745, -0.19914, 0.00365, -0.22159]),
    ],
)
def test_a_network_predicts_what_the_authors_code_predicts(family, published):
    """Pixel (3, 5) of two images under sigma 0.7, classes 1 and 2; weights, images and noise are numbered as here."""
    noisy = 8 * 1.7 / math.sqrt(3 * 8 * 8) * numbered(torch.Size((2, 3, 8, 8)), 0)
    found = filled(TINY[family])(noisy, torch.tensor(0.7), torch.eye(3)[[1, 2]])
    assert found[:, :, 3, 5].flatten().tolist() == pytest.approx(published, abs=2e-5)


@pytest.mark.parametrize(
    ("sigma", "skip", "out", "inside", "noise"),
    [(0.5, 0.5, 0.3535534, 1.4142136, -0.1732868), (80.0, 3.90610e-05, 0.4999902, 0.01249976, 1.0955067)],
)
def test_preconditioning_is_that_of_table_1(sigma, skip, out, inside, noise):
    """Where the network answers 1, the denoiser answers c_skip x + c_out; it sees c_in x and c_noise = ln(sigma) / 4."""
    denoiser, seen = filled(TINY[PLUS]), []
    denoiser.model.dec["8x8_aux_conv"].weight.zero_()
    denoiser.model.dec["8x8_aux_conv"].bias.fill_(1)
    denoiser.model.register_forward_pre_hook(lambda module, given: seen.extend(given))
    x = torch.full((1, 3, 8, 8), 3.0)
    answer = denoiser(x, torch.tensor(sigma), torch.eye(3)[:1])
    assert answer.flatten()[0].item() == pytest.approx(3 * skip + out, rel=1e-5)
    assert seen[0].flatten()[0].item() == pytest.approx(3 * inside, rel=1e-5) and seen[1].tolist() == pytest.approx([noise], rel=1e-5)
