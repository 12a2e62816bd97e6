"""The builder of the VAE: its losses, its measure of quality and its start."""

import numpy as np
import pytest
import torch

from cnslib.world import autoencoder


def test_psnr_of_a_perfect_and_of_a_known_reconstruction(monkeypatch):
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    image = torch.rand(2, 3, 64, 64) * 0.8
    for error in (0.1, 0.01):
        changed = (image + error) * 2 - 1
        monkeypatch.setattr(vae, "decode", lambda _latents, c=changed: type("Output", (), {"sample": c}))
        expected = -20 * np.log10(error)
        assert autoencoder.psnr(vae, image).numpy() == pytest.approx([expected] * 2, rel=1e-3)


def test_the_untrained_vae_passes_brightness_on_and_adds_little_noise():
    torch.manual_seed(0)
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    dark, bright = (vae.encode(torch.full((1, 3, 64, 64), value)).latent_dist for value in (-0.6, 0.6))
    assert (dark.mean - bright.mean).abs().mean() > 10 * dark.std.max()  # PyTorch's own start: 0.2 times the noise


def test_the_reconstruction_loss_is_zero_only_for_equal_images():
    image = torch.rand(1, 3, 8, 8)
    assert autoencoder.reconstruction_loss(image, image) == 0
    flat = image + 0.1  # equal gradients: L1 0.1 plus 5 times 0.01
    assert autoencoder.reconstruction_loss(flat, image).item() == pytest.approx(0.15, rel=1e-4)
