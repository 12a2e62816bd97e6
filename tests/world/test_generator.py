import math
from types import SimpleNamespace

import pytest
import torch

from cnslib.world import autoencoder, diffusion


def test_psnr_of_a_known_reconstruction(monkeypatch):
    vae, image = autoencoder.build((8, 8, 8), latent_channels=4), torch.rand(2, 3, 64, 64) * 0.8
    monkeypatch.setattr(vae, "decode", lambda _latents: SimpleNamespace(sample=(image + 0.1) * 2 - 1))
    assert autoencoder.psnr(vae, image).numpy() == pytest.approx([20.0] * 2, rel=1e-3)  # -20 log10 of the error


def test_the_reconstruction_loss_is_zero_only_for_equal_images():
    image = torch.rand(1, 3, 8, 8)
    assert autoencoder.reconstruction_loss(image, image) == 0
    flat = image + 0.1  # equal gradients: L1 0.1 plus 5 times 0.01
    assert autoencoder.reconstruction_loss(flat, image).item() == pytest.approx(0.15, rel=1e-4)


def test_the_vocabulary_is_the_same_each_time_spells_every_caption_and_none_exceeds_the_context():
    tokens = diffusion.tokenizer()
    assert tokens.get_vocab() == diffusion.tokenizer().get_vocab() and len(set(diffusion.captions())) == 150
    for caption in diffusion.captions():
        ids = tokens(caption).input_ids
        assert len(ids) <= diffusion.CONTEXT and ids.count(tokens.eos_token_id) == 1
        assert "".join(tokens.tokenize(caption)).replace("</w>", "") == caption.replace(" ", "")


def test_the_noise_is_lognormal_and_has_its_median_and_quartiles_but_for_the_even_fifth():
    noise = diffusion.scheduler()
    drawn = diffusion.timesteps(200_000, torch.Generator().manual_seed(0), noise=noise)
    ratio = ((1 - noise.alphas_cumprod) / noise.alphas_cumprod).sqrt()
    below = torch.stack([ratio < bound for bound in (0.8 * math.exp(-1.2 * 0.6745), 0.8, 0.8 * math.exp(1.2 * 0.6745))])
    expected = 0.8 * torch.tensor([0.25, 0.5, 0.75]) + 0.2 * below.float().mean(1)
    assert below[:, drawn].float().mean(1).numpy() == pytest.approx(expected.numpy(), abs=0.006)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_the_recorded_passes_answer_as_the_model_and_give_its_gradients():
    tokens = diffusion.tokenizer()
    text, unet = diffusion.text_encoder(tokens, width=32, layers=1), diffusion.unet([16, 16, 16], width=32, latent_channels=4)
    model, ids = diffusion.Denoiser(text, unet).to("cuda"), diffusion.token_table(tokens).to("cuda")
    given = torch.randn(2, 4, 16, 16, device="cuda"), torch.tensor([10, 900], device="cuda"), ids[:2]
    found = []
    for predict in (model, diffusion.recorded(model, torch.zeros(2, 4, 16, 16), ids)):
        model.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            output = predict(*given).float()
        output.square().mean().backward()
        found.append([output.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    assert len(found[0]) == len(found[1]) > 100
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=0.02, atol=1e-3)
