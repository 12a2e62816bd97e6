"""The legs of the VAE's and mini-SD's trainings, against plain loops that draw, descend and average by hand."""

import copy

import pytest
import torch
import torch.nn.functional as F
from tiny_garments import garments

from cnslib.core import seeds
from cnslib.core.settings import sections
from cnslib.world import autoencoder, diffusion, pool, scenes

LEG = {"steps": 3, "batch_size": 4, "ranks": 1, "learning_rate": 1e-3, "average": 0.9, "scenes": 24}
NETWORK = {"channels": [16, 16, 16], "width": 32, "layers": 1, "caption_dropout": 0.3}
SEEN = {"severities": [0.05, 0.9], "seed": 1}


def by_hand(model, losses, leg):
    """The averaged weights after AdamW, by one cycle, on the losses of each step's generators."""
    optimizer = torch.optim.AdamW(model.parameters(), leg.learning_rate, weight_decay=0.01)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, leg.learning_rate, leg.steps, pct_start=0.08, cycle_momentum=False)
    average = copy.deepcopy(model.state_dict())
    for step in range(leg.steps):
        optimizer.zero_grad()
        torch.stack(losses(step)).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        pace.step()
        weight = min(leg.average, (1 + step) / (10 + step))
        average = {key: weight * average[key] + (1 - weight) * value for key, value in copy.deepcopy(model.state_dict()).items()}
    return average


def close(found, expected):
    assert all(torch.allclose(value, expected[key], atol=2e-6) for key, value in found.items() if value.is_floating_point())


@pytest.mark.parametrize("ranks", [1, 2])
def test_mini_sd_takes_the_steps_of_a_plain_loop_alone_or_with_threads_that_share_a_batch(ranks, tmp_path):
    leg = sections.Leg(**LEG | {"name": "on", "ranks": ranks, "scenes": 20})
    settings = sections.Diffusion(legs=[leg], **NETWORK, **SEEN)
    g, size, noise = torch.Generator().manual_seed(0), 4 // ranks, diffusion.scheduler()
    data = {"latents": torch.randn(24, 4, 16, 16, generator=g).half(), "caption": torch.randint(150, (24,), generator=g)}
    tokens = diffusion.tokenizer()
    ids = diffusion.token_table(tokens)
    torch.manual_seed(0)
    model = diffusion.Denoiser(
        diffusion.text_encoder(tokens, width=32, layers=1), diffusion.unet([16, 16, 16], width=32, latent_channels=4)
    )
    start = copy.deepcopy(model)
    found = diffusion.learn(start, data, ids, settings, checkpoint=tmp_path / "sd.pt", device="cpu")

    def losses(step):
        shares = []
        for rank in range(ranks):
            g = seeds.generator("on", 1, step, rank) if ranks > 1 else seeds.generator("on", 1, step)
            rows = torch.randint(20, (size,), generator=g)
            eps, t = torch.randn(size, 4, 16, 16, generator=g), diffusion.timesteps(size, g, noise=noise)
            shown = torch.where(torch.rand(size, generator=g) < 0.3, len(ids) - 1, data["caption"][rows])
            x = data["latents"][rows].float()
            output = model(noise.add_noise(x, eps, t), t, ids[shown])
            shares.append(F.mse_loss(output, noise.get_velocity(x, eps, t)))
        return shares

    close(found.state_dict(), by_hand(model, losses, leg))


def test_a_leg_begins_with_the_average_of_the_one_before_and_a_finished_one_is_not_repeated(tmp_path):
    model, first = torch.nn.Linear(1, 1), sections.Leg(name="first", **LEG)
    still = sections.Leg(**LEG | {"name": "second", "learning_rate": 1e-12})
    calls: list[str] = []

    def loss(leg, shares):
        calls.append(leg.name)
        return (model(torch.rand(4, 1, generator=shares[0])) - 3).square().mean()

    where = {"seed": 1, "checkpoint": tmp_path / "line.pt", "device": "cpu"}
    alone = copy.deepcopy(pool.train(model, loss, [first], **where))
    both = pool.train(model, loss, [first, still], **where)
    assert torch.allclose(both.weight, alone.weight, atol=1e-6) and calls == ["first"] * 3 + ["second"] * 3


def test_the_pool_has_one_generator_a_part_and_its_first_scenes_do_not_depend_on_their_number(monkeypatch):
    monkeypatch.setattr(pool, "PART", 8)
    few, many = (list(pool.parts(garments(), count, **SEEN)) for count in (12, 16))
    assert [len(part.label) for part in few] == [8, 4]
    assert torch.equal(torch.cat([part.image for part in few]), torch.cat([part.image for part in many])[:12])
    shifted = torch.cat([part.severity for part in many])[torch.cat([part.shift for part in many]) < len(scenes.NAMES) - 1]
    assert ((shifted >= 0.05) & (shifted <= 0.9)).all()


def test_the_latents_are_those_of_the_scenes_as_the_vae_saw_them(monkeypatch):
    monkeypatch.setattr(pool, "PART", 8)
    leg = sections.Leg(**LEG | {"name": "diffusion", "scenes": 12})
    vae = autoencoder.build((8, 8, 8), latent_channels=4)
    data = diffusion.pool_latents(vae, garments(), sections.Diffusion(legs=[leg], **NETWORK, **SEEN), "cpu")
    parts = list(pool.parts(garments(), 12, **SEEN))
    wanted = autoencoder.encode(vae, torch.cat([part.image for part in parts])) * vae.config.scaling_factor
    assert torch.allclose(data["latents"].float(), wanted, atol=0.02)
    assert data["caption"].tolist() == torch.cat([part.caption for part in parts]).tolist()
