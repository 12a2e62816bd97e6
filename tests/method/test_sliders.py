import copy
import dataclasses
import functools
import json

import pytest
import torch
from diffusers import DDIMScheduler
from golden_units import difference
from safetensors.torch import load_file
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import units
from cnslib.method import sliders
from cnslib.method.sliders import PAPER, RECIPES
from cnslib.models import adapters, exports, text_to_image

RELEASED = RECIPES["released"]
PAIR = ("heavy snow", "sneaker")


@pytest.fixture(scope="module")
def train(pipe, origin):
    def call(folder, recipe="paper", shifts=SHIFTS, classes=CLASSES, *, origin=origin, **changes):
        given = {"settings": dataclasses.replace(SETTINGS, **changes), "origin": origin, "folder": folder}
        return sliders.make_sliders(pipe, shifts, classes, recipe=recipe, **given)

    return call


@pytest.fixture
def make(train, tmp_path):
    return lambda *inputs, **changes: train(tmp_path, *inputs, **changes)


@pytest.fixture(scope="module")
def one(train, tmp_path_factory):
    return functools.cache(lambda recipe: train(tmp_path_factory.mktemp(recipe), recipe, *([part] for part in PAIR))[PAIR])


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def contents(paths):
    return {key: path.read_bytes() for key, path in paths.items()}


def fitted(pipe, recipe=PAPER, *, seed=0, text=None, **changes):
    samples, settings = [], dataclasses.replace(SETTINGS, **changes)
    text = noise(0, 3, 24, 16) if text is None else text
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as weights:
        handle = pipe.unet.register_forward_pre_hook(lambda module, inputs: samples.append(len(inputs[0])))
        curve = sliders.fit(pipe, weights, text, settings=settings, generator=torch.Generator().manual_seed(seed), recipe=recipe)
        handle.remove()
        return curve, [weight.detach().clone() for weight in weights], sum(samples)


def point(pipe, recipe=PAPER, *, seed=0, text=None, **changes):
    settings, generator = dataclasses.replace(SETTINGS, **changes), torch.Generator().manual_seed(seed)
    text = noise(0, 1, 24, 16) if text is None else text
    prompt = text.expand(settings.batch_size, -1, -1)
    return sliders.training_point(pipe, prompt, settings=settings, generator=generator, recipe=recipe)


def test_the_target_is_equation_two_on_the_base_model_whatever_the_adapter(pipe):
    text, latents = noise(0, 2, 24, 16), noise(1, 2, 4, 16, 16)
    with torch.no_grad():
        c, c_plus = (pipe.unet(latents, 501, row.expand(2, -1, -1)).sample for row in text.split(1))
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        for parameter in parameters:
            parameter.data.copy_(noise(3, *parameter.shape))
        plain, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=4.0)
    assert torch.allclose(plain, c, atol=1e-5) and torch.allclose(target, 4.0 * c_plus - 3.0 * c, atol=1e-4)


def test_the_graded_target_moves_with_the_scale_and_by_the_same_shift_under_every_prompt(pipe):
    latents, text = noise(1, 1, 4, 16, 16).repeat(4, 1, 1, 1), noise(2, 3, 24, 16)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)):
        scales = torch.tensor([0.0, 1.0, 1.0, 2.0])
        plain, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=scales, prompt=text[[0, 0, 2, 2]])
        _, exact = sliders.teacher(pipe, latents[:1], torch.tensor(501), text[:2], eta=1.0)
    moved = target - plain
    assert torch.equal(target[0], plain[0]) and torch.allclose(target[1], exact[0], atol=1e-5)
    assert torch.allclose(moved[2], moved[1], atol=1e-5) and torch.allclose(moved[3], 2 * moved[1], atol=1e-5)
    assert not torch.allclose(plain[2], plain[0], atol=1e-3)


def test_every_point_is_one_update_and_the_first_loss_is_the_squared_distance_to_the_target(pipe):
    text = noise(0, 2, 24, 16)
    curve, weights, _ = fitted(pipe, text=text)
    assert len(curve["loss"]) == len(curve["untrained"]) == SETTINGS.iterations
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as before:
        latents, timestep = point(pipe, text=text[:1])
        plain, target = sliders.teacher(pipe, latents, timestep, text, eta=SETTINGS.eta)
        assert any(not torch.equal(old, new) for old, new in zip(before, weights, strict=True))
    wanted = (plain - target).square().mean().item()  # the fresh adapter changes nothing yet
    assert curve["loss"][0] == pytest.approx(wanted, abs=1e-6) and curve["untrained"][0] == pytest.approx(wanted, abs=1e-6)


def test_training_closes_part_of_the_gap(pipe):
    text, latents = noise(0, 2, 24, 16), noise(1, 4, 4, 16, 16)
    generator = torch.Generator().manual_seed(0)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=generator) as parameters:
        settings = dataclasses.replace(SETTINGS, iterations=10, batch_size=4)
        sliders.fit(pipe, parameters, text, settings=settings, generator=generator)
        plain, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=4.0)
        with torch.no_grad():
            adapted = pipe.unet(latents, 501, text[:1].expand(4, -1, -1)).sample
    assert (adapted - target).square().mean() < 0.5 * (plain - target).square().mean()


def test_the_rate_is_whole_for_a_half_and_ends_near_zero():
    assert [sliders.rate(number / 8) for number in range(8)] == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]


def noiseless(pipe, monkeypatch):
    """A model that finds no image leaves noise whose size is the square root of 1 - abar at the timestep."""
    share = pipe.scheduler.alphas_cumprod

    def find_nothing(latents, timestep, text):
        return type("Output", (), {"sample": latents * (share[timestep] / (1 - share[timestep])).sqrt()})

    monkeypatch.setattr(pipe.unet, "forward", find_nothing)
    return (1 - share).sqrt()


def test_the_timestep_is_the_noise_level_of_the_latents(pipe, monkeypatch):
    level = noiseless(pipe, monkeypatch)
    latents, timestep = point(pipe, seed=1, denoising_steps=10, batch_size=64)
    assert timestep.item() in range(1, 802, 100)
    assert latents.std() * level[901] == pytest.approx(level[timestep].item(), rel=0.02)


def test_a_training_point_is_a_state_of_the_pipelines_own_trajectory_at_its_noise_level(pipe):
    text, generator = noise(0, 1, 24, 16), torch.Generator().manual_seed(3)
    latents, timestep = point(pipe, seed=3, text=text, denoising_steps=6)
    k = int(torch.randint(1, 6, (), generator=generator))
    states, start = {}, torch.randn((2, 4, 16, 16), generator=generator)

    def keep(pipe, step, timestep, values):
        states[step + 1] = values["latents"]
        return values

    options = {"prompt_embeds": text.expand(2, -1, -1), "latents": start, "num_inference_steps": 6, "guidance_scale": 1.0}
    pipe(**options, output_type="latent", callback_on_step_end=keep)
    assert timestep == pipe.scheduler.timesteps[k] and torch.allclose(latents, states[k], atol=1e-5)


def test_as_many_samples_pass_the_unet_as_are_expected(pipe):
    """With two denoising steps every trajectory has one step, so that nothing is left to chance."""
    two = {"iterations": 3, "denoising_steps": 2}
    assert fitted(pipe, **two)[2] == sliders.evaluations(dataclasses.replace(SETTINGS, **two)) == 3 * SETTINGS.batch_size * (1 + 3)


def test_the_prompts_of_the_released_code_are_the_bare_token_and_the_comma_form():
    assert sliders.prompts("heavy snow", "ankle boot", texts={}, recipe=RELEASED) == ("<ankle-boot*>", "<ankle-boot*>, in heavy snow")
    whole = ("a picture of a <hen*>", "a picture of a <hen*> as a cartoon")
    assert sliders.prompts("cartoon style", "hen", texts={"cartoon style": "as a cartoon"}) == whole


@pytest.mark.parametrize(("spacing", "steps"), [("leading", 4), ("trailing", 50)])
def test_the_released_teacher_is_one_step_less_one_above_the_latents(pipe, steps, spacing):
    """19 at 50 steps, whatever spacing the base has. The scheduler's own list is what its set_timesteps gives for 50 and for 1000 steps."""
    base = copy.copy(pipe)
    base.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, timestep_spacing=spacing)
    scheduler = sliders.released_pipeline(base).scheduler
    scheduler.set_timesteps(1000)
    entries = scheduler.timesteps.tolist()
    scheduler.set_timesteps(steps)
    levels = scheduler.timesteps.tolist()
    assert levels[0] == 1000 - 1000 // steps and entries[0] == 999
    for k in range(1, steps):
        found = sliders.released_timestep(k, steps=steps)
        assert found == entries[int(k * 1000 / steps)] and found - levels[k] == 1000 // steps - 1
    assert [sliders.released_timestep(k, steps=50) for k in (1, 25, 49)] == [979, 499, 19]


def test_everything_that_the_released_recipe_trains_and_predicts_is_bf16_and_the_given_pipeline_stays(pipe):
    before, rounded = {key: value.clone() for key, value in pipe.unet.state_dict().items()}, sliders.released_pipeline(pipe)
    text = text_to_image.embed(rounded, list(sliders.prompts(*PAIR, texts={}, recipe=RELEASED)))
    with adapters.fresh(rounded, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        latents, timestep = point(rounded, RELEASED, text=text[:1])
        predictions = sliders.teacher(rounded, latents, timestep, text, eta=4.0)
        assert {text.dtype, latents.dtype, *(p.dtype for p in (*predictions, *parameters))} == {torch.bfloat16}
    assert (rounded.scheduler.config.steps_offset, pipe.scheduler.config.steps_offset) == (0, 1)
    assert pipe.unet.dtype == pipe.text_encoder.dtype == torch.float32
    assert all(torch.equal(value, before[key]) for key, value in pipe.unet.state_dict().items())


def test_stable_diffusion_2_is_trained_at_512_pixels_by_the_released_recipe_alone(pipe):
    large = sliders.released_pipeline(pipe)
    assert sliders.latent_shape(large, RELEASED) == (4, 16, 16)
    large.unet.register_to_config(sample_size=96)
    large.vae_scale_factor = 8
    assert sliders.latent_shape(large, RELEASED) == (4, 64, 64) and sliders.latent_shape(large, PAPER) == (4, 96, 96)
    large.scheduler.register_to_config(prediction_type="epsilon")
    with pytest.raises(ValueError, match=r"base\.recipe: 'released' trains on v, the pipeline predicts epsilon; accepted here: paper, "):
        sliders.released_pipeline(large)


@pytest.mark.parametrize(("recipe", "within"), [("paper", 1e-3), ("graded", 1e-3), ("released", 0.05)])  # bf16 rounds
def test_a_slider_file_says_what_it_is_and_loads(one, pipe, origin, recipe, within):
    path = one(recipe)
    assert not difference(RECIPES[recipe].kind, path, within=within)
    entries = adapters.header(path)
    assert path == sliders.slider_path(path.parents[1], *PAIR)
    assert (entries["shift"], entries["class"], entries["base"]) == (*PAIR, origin.base)
    assert entries.get("recipe") == (None if recipe == "paper" else recipe)
    assert json.loads(entries["prompts"]) == list(sliders.prompts(*PAIR, texts={}, recipe=RECIPES[recipe]))
    told = {"rank", "alpha", "eta", "learning_rate", "iterations", "batch_size", "denoising_steps", "seed"}
    assert json.loads(entries["settings"]) == {key: getattr(SETTINGS, key) for key in told}
    curve = sliders.loss_curve(path)
    assert list(curve.columns) == ["iteration", "loss", "untrained"] and len(curve) == SETTINGS.iterations
    assert {value.dtype for value in load_file(path).values()} == {torch.bfloat16 if recipe == "released" else torch.float16}
    with adapters.loaded(pipe, path):
        assert pipe.unet.peft_config[adapters.NAME].lora_alpha == 1.0 and len(adapters.layers(pipe.unet)) == 47


def test_a_killed_run_continues_to_the_same_bytes_which_do_not_depend_on_other_sliders(make, one):
    whole, before = contents(make()), make("paper", ["heavy snow"])
    assert whole[PAIR] == one("paper").read_bytes() and len(set(whole.values())) == 4
    finished = before[PAIR].stat().st_mtime_ns
    units.sidecar(killed := before["heavy snow", "ankle boot"]).unlink()
    killed.write_bytes(b"half a file")
    (partial := killed.with_name(f".{killed.name}.1.partial")).write_bytes(b"half a write")
    resumed = make()
    assert not partial.exists() and contents(resumed) == whole and resumed[PAIR].stat().st_mtime_ns == finished


def test_only_sliders_whose_inputs_changed_are_trained_again_and_others_are_deleted(make, origin, tmp_path):
    def times(**changes):
        return {key: path.stat().st_mtime_ns for key, path in make("paper", ["heavy snow"], iterations=1, **changes).items()}

    before = times()
    assert times(health_seeds=5, least_gain=-1.0) == before
    after = times(origin=dataclasses.replace(origin, tokens=origin.tokens | {"sneaker": "another token"}))
    assert {name for (shift, name), time in after.items() if time != before[shift, name]} == {"sneaker"}
    kept = make("paper", ["heavy snow"], ["ankle boot"], iterations=1)
    assert sorted(tmp_path.rglob("*.safetensors")) == list(kept.values())


def test_a_shift_has_its_own_eta_and_iterations_and_another_shift_stays_as_it_is(make):
    before, longer = contents(make("graded", classes=CLASSES[:1])), SETTINGS.iterations + 1
    for pair, path in make("graded", classes=CLASSES[:1], etas={"heavy snow": 2.0}, longer={"heavy snow": longer}).items():
        own = pair[0] == "heavy snow"
        assert (path.read_bytes() == before[pair]) != own
        told = json.loads(adapters.header(path)["settings"])
        assert told["eta"] == (2.0 if own else SETTINGS.eta)
        assert told["iterations"] == len(sliders.loss_curve(path)) == SETTINGS.iterations + own


def test_the_authors_sliders_are_taken_as_they_are(make, one, pipe, origin, tmp_path):
    stem, pair = "heavy_snow_class_770_alpha1.0_rank4_noxattn", ("heavy snow", "running shoe")
    (given := tmp_path / "given" / stem / f"{stem}_last.pt").parent.mkdir(parents=True)
    exports.export_slider(pipe.unet, one("paper"), given)
    more = dataclasses.replace(origin, tokens=origin.tokens | {"running shoe": "its token"})
    path = make(str(tmp_path / "given"), *([part] for part in pair), origin=more)[pair]
    told, weights, wanted = adapters.header(path), load_file(path), load_file(one("paper"))
    assert [told[key] for key in ("shift", "class", "base", "recipe", "settings")] == [*pair, origin.base, "imported", "{}"]
    assert json.loads(told["prompts"]) == list(sliders.prompts(*pair, texts={}, recipe=RELEASED))
    assert weights.keys() == wanted.keys() and all(torch.equal(weights[key], wanted[key]) for key in wanted)


def test_the_recipes_do_not_take_each_others_sliders(origin):
    stamps = {recipe: sliders.stamp(*PAIR, settings=SETTINGS, origin=origin, recipe=recipe) for recipe in RECIPES}
    assert len(set(stamps.values())) == len(RECIPES)


@pytest.mark.parametrize("recipe", ["paper", "released"])
def test_a_diverging_slider_is_named_and_not_written(make, tmp_path, recipe):
    said = r"slider of sneaker in heavy snow: the loss is not a number; lower sliders\.learning_rate"
    with pytest.raises(FloatingPointError, match=said):
        make(recipe, ["heavy snow"], ["sneaker"], eta=1e38)
    assert not list(tmp_path.rglob("*.safetensors"))
