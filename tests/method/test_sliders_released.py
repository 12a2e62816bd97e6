"""The released training: what differs from the paper's, by the numbers of the released code, and what does not."""

import copy
import dataclasses
import json

import pytest
import torch
from diffusers import DDIMScheduler
from golden_units import difference
from safetensors.torch import load_file
from tiny_sliders import CLASSES, SETTINGS

from cnslib.core import recipes
from cnslib.method import sliders, sliders_released
from cnslib.models import adapters, text_to_image


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def plain(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


@pytest.fixture
def pipe(plain):
    return sliders_released.pipeline(plain)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_prompts_are_the_bare_token_and_the_comma_form():
    assert sliders_released.prompts("heavy snow", "ankle boot", texts={}) == ("<ankle-boot*>", "<ankle-boot*>, in heavy snow")
    assert sliders_released.prompts("cartoon style", "hen", texts={})[1] == "<hen*>, in cartoon style"


@pytest.mark.parametrize(("k", "timestep"), [(1, 979), (25, 499), (49, 19)])
def test_the_teacher_stands_at_the_timesteps_of_the_released_code(k, timestep):
    assert sliders_released.teacher_timestep(k, steps=50) == timestep


@pytest.mark.parametrize("spacing", ["leading", "trailing"])
@pytest.mark.parametrize("steps", [4, 5, 50])
def test_the_teacher_is_one_step_less_one_above_the_latents(plain, steps, spacing):
    """19 at 50 steps, whatever spacing the base has. The scheduler's own list is what its set_timesteps gives for 50 and for 1000 steps."""
    base = copy.copy(plain)
    base.scheduler = DDIMScheduler.from_config(plain.scheduler.config, timestep_spacing=spacing)
    pipe = sliders_released.pipeline(base)
    pipe.scheduler.set_timesteps(1000)
    entries = pipe.scheduler.timesteps.tolist()
    pipe.scheduler.set_timesteps(steps)
    levels = pipe.scheduler.timesteps.tolist()
    assert levels[0] == 1000 - 1000 // steps and entries[0] == 999
    for k in range(1, steps):
        found = sliders_released.teacher_timestep(k, steps=steps)
        assert found == entries[int(k * 1000 / steps)]
        assert found - levels[k] == 1000 // steps - 1


def test_the_latents_lie_below_the_timestep_they_are_said_to_be_at(plain, monkeypatch):
    """A model that finds no image leaves noise whose size is the square root of 1 - abar at the latents' own level."""
    share = plain.scheduler.alphas_cumprod
    pipe = sliders_released.pipeline(plain)
    pipe.unet.float()

    def find_nothing(latents, timestep, text):
        return type("Output", (), {"sample": latents * (share[timestep] / (1 - share[timestep])).sqrt()})

    monkeypatch.setattr(pipe.unet, "forward", find_nothing)
    settings = dataclasses.replace(SETTINGS, denoising_steps=10, batch_size=64)
    latents, timestep = sliders_released.partial_denoise(
        pipe, noise(0, 1, 24, 16), settings=settings, generator=torch.Generator().manual_seed(3)
    )
    level = timestep.item() - 99
    assert level in range(0, 900, 100)
    assert latents.std() * (1 - share[900]).sqrt() == pytest.approx((1 - share[level]).sqrt().item(), rel=0.02)


def test_everything_that_is_trained_and_predicted_is_bf16(pipe):
    text = text_to_image.embed(pipe, list(sliders_released.prompts("heavy snow", "sneaker", texts={})))
    assert text.dtype == torch.bfloat16
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        assert {parameter.dtype for parameter in parameters} == {torch.bfloat16}
        latents, timestep = sliders_released.partial_denoise(pipe, text[:1], settings=SETTINGS, generator=torch.Generator())
        predictions = sliders.teacher(pipe, latents, timestep, text, eta=4.0)
    assert {latents.dtype, *(p.dtype for p in predictions)} == {torch.bfloat16}


def test_the_given_pipeline_stays_as_it_is(plain):
    before = {key: value.clone() for key, value in plain.unet.state_dict().items()}
    pipe = sliders_released.pipeline(plain)
    assert (pipe.scheduler.config.steps_offset, plain.scheduler.config.steps_offset) == (0, 1)
    assert pipe.unet.dtype == torch.bfloat16 and plain.unet.dtype == plain.text_encoder.dtype == torch.float32
    assert all(torch.equal(value, before[key]) for key, value in plain.unet.state_dict().items())


def test_guidance_between_equal_prompts_changes_nothing(pipe):
    """Why the released 7.5 is left out: its pipeline's mix of c and c, computed in full, gives the latents of c alone."""
    pipe.unet.float()
    text = noise(0, 1, 24, 16)
    generator = torch.Generator().manual_seed(0)
    latents, timestep = sliders_released.partial_denoise(pipe, text, settings=SETTINGS, generator=generator)
    generator.manual_seed(0)
    pipe.scheduler.set_timesteps(SETTINGS.denoising_steps)
    k = int(torch.randint(1, SETTINGS.denoising_steps, (), generator=generator))
    mixed = torch.randn((2, 4, 16, 16), generator=generator)
    for step in pipe.scheduler.timesteps[:k]:
        with torch.no_grad():
            unguided, guided = pipe.unet(mixed.repeat(2, 1, 1, 1), step, text.expand(4, -1, -1)).sample.chunk(2)
        mixed = pipe.scheduler.step(unguided + 7.5 * (guided - unguided), step, mixed).prev_sample
    assert timestep == sliders_released.teacher_timestep(k, steps=SETTINGS.denoising_steps)
    assert torch.allclose(mixed, latents, atol=1e-3)


def test_stable_diffusion_2_is_trained_at_512_pixels(pipe):
    assert sliders_released.latent_shape(pipe) == (4, 16, 16)
    pipe.unet.register_to_config(sample_size=96)
    pipe.vae_scale_factor = 8
    assert sliders_released.latent_shape(pipe) == (4, 64, 64)


def test_a_model_that_predicts_noise_is_refused(plain):
    pipe = sliders_released.pipeline(plain)
    pipe.scheduler.register_to_config(prediction_type="epsilon")
    with pytest.raises(ValueError, match="predicts epsilon"):
        sliders_released.pipeline(pipe)


@pytest.mark.slow
def test_training_closes_part_of_the_gap(pipe):
    text = noise(0, 2, 24, 16).bfloat16()
    latents, timestep = noise(1, 4, 4, 16, 16).bfloat16(), torch.tensor(499)
    generator = torch.Generator().manual_seed(0)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=generator) as parameters:
        settings = dataclasses.replace(SETTINGS, iterations=20, batch_size=4)
        sliders_released.fit(pipe, parameters, text, settings=settings, generator=generator)
        before, target = sliders.teacher(pipe, latents, timestep, text, eta=4.0)
        with torch.no_grad():
            after = pipe.unet(latents, timestep, text[:1].expand(4, -1, -1)).sample
    assert (after - target).float().square().mean() < 0.8 * (before - target).float().square().mean()


def test_sliders_are_written_in_bf16_say_their_recipe_and_load(plain, origin, tmp_path):
    paths = sliders_released.train_all(plain, ["heavy snow"], CLASSES, settings=SETTINGS, origin=origin, folder=tmp_path)
    path = paths["heavy snow", "sneaker"]
    assert path == sliders.slider_path(tmp_path, "heavy snow", "sneaker")
    entries = adapters.header(path)
    assert entries["recipe"] == "released" and json.loads(entries["prompts"]) == ["<sneaker*>", "<sneaker*>, in heavy snow"]
    assert {value.dtype for value in load_file(path).values()} == {torch.bfloat16}
    assert len(sliders.loss_curve(path)) == SETTINGS.iterations
    with adapters.loaded(plain, path):
        assert plain.unet.peft_config[adapters.NAME].lora_alpha == 1.0


def test_a_second_run_trains_nothing_and_the_recipes_do_not_share_units(plain, origin, tmp_path):
    def run():
        paths = sliders_released.train_all(plain, ["heavy snow"], ["sneaker"], settings=SETTINGS, origin=origin, folder=tmp_path)
        return paths["heavy snow", "sneaker"].stat().st_mtime_ns

    assert run() == run()
    ours = sliders.stamp("heavy snow", "sneaker", settings=SETTINGS, origin=origin)
    assert sliders_released.stamp("heavy snow", "sneaker", settings=SETTINGS, origin=origin) != ours


def test_the_tiny_unit_is_the_golden_one(plain, origin, tmp_path):
    """In bf16, of which processors round in their own way."""
    made = sliders_released.train_all(plain, ["heavy snow"], ["sneaker"], settings=SETTINGS, origin=origin, folder=tmp_path)
    assert not difference(recipes.RELEASED_SLIDERS, made["heavy snow", "sneaker"], within=0.05)
