import contextlib
import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch
from diffusers import AutoPipelineForText2Image
from golden_units import difference
from peft.utils import get_peft_model_state_dict
from PIL import Image
from ruamel.yaml import YAML
from safetensors.torch import load_file
from tiny_families import FAMILIES, write_family
from tiny_pipeline import write_pipeline
from tiny_sliders import SETTINGS

from cnslib.core import recipes
from cnslib.core.names import PROMPT, token
from cnslib.core.settings.method import Generation
from cnslib.method import generation, pipelines, sliders
from cnslib.method.pipelines import Call, denoiser
from cnslib.models import adapters, text_to_image
from cnslib.tools import strip

LEARN = dataclasses.replace(SETTINGS, alpha=4.0, iterations=10, batch_size=4, learning_rate=3e-3)
CALL, NEVER, ALWAYS = Call(steps=4, size=32), 0.0, 1.0
PAIR, SCALES = ("heavy snow", "sneaker"), [0.0, 0.25, 0.5]
CAPTION = "a picture of a sneaker"


@pytest.fixture(scope="module", params=["sd", *FAMILIES])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("families") / request.param
    write_pipeline(path) if request.param == "sd" else write_family(request.param, path)
    return path


@pytest.fixture(scope="module")
def pipe(folder):
    return pipelines.load(folder, "cpu")


@pytest.fixture(scope="module")
def learn(pipe):
    def call(path, recipe="paper", *, given=CALL, **changes):
        settings = dataclasses.replace(LEARN, **changes)
        pipelines.train(pipe, *PAIR, path, settings=settings, recipe=recipe, base="digest", call=given)
        return path

    return call


@pytest.fixture(scope="module")
def slider(learn, tmp_path_factory):
    return learn(tmp_path_factory.mktemp("sliders") / "sneaker.safetensors")


def plain(pipe, copies, **arguments):
    noise = [torch.Generator().manual_seed(1) for _ in range(copies)]
    given = CALL.arguments(pipe) | arguments
    return text_to_image.as_bytes(pipe(CAPTION, num_images_per_prompt=copies, generator=noise, output_type="pt", **given).images)


def draw(pipe, scales=SCALES, sigma=pipelines.SIGMA, call=CALL):
    return pipelines.draw(pipe, CAPTION, 1, scales, call=call, sigma=sigma)


def distance(one, other):
    return (one.float() - other.float()).abs().mean().item()


def test_the_slider_learns_its_target(pipe, slider, learn, tmp_path):
    for recipe, path in {"paper": slider, "graded": learn(tmp_path / "graded.safetensors", "graded")}.items():
        curve = sliders.loss_curve(path)
        assert len(curve) == LEARN.iterations and curve["loss"][0] == pytest.approx(curve["untrained"][0], rel=1e-3), recipe
        ratio = curve["loss"] / curve["untrained"]
        assert ratio.iloc[-3:].mean() < 0.95, recipe  # of what it would be without slider, as it is in the first update
    changed = {key.rsplit(".lora_", 1)[0] for key, value in load_file(slider).items() if "lora_B" in key and value.any()}
    assert len(changed) == len(load_file(slider)) / 2  # every adapted layer learns
    assert not [key for key in changed if "attn2" in key and "SD3" not in type(denoiser(pipe)).__name__]  # no cross-attention
    assert not [key for key in changed if "add_" in key or "context" in key]  # nor the text's own layers


def test_scale_zero_is_the_base_bit_for_bit_and_twice_the_scale_moves_about_twice_as_far(pipe, slider):
    base = plain(pipe, len(SCALES))
    with pipelines.loaded(pipe, slider):
        drawn = draw(pipe, sigma=ALWAYS)
    assert torch.equal(drawn[0], base[0]) and torch.equal(plain(pipe, len(SCALES)), base)
    once, twice = distance(drawn[1], base[0]), distance(drawn[2], base[0])
    assert once > 0.02 and 1.5 < twice / once < 2.5


def test_the_file_reloads_exactly_and_by_the_one_line_of_diffusers(pipe, folder, slider):
    with pipelines.loaded(pipe, slider):
        kept = get_peft_model_state_dict(denoiser(pipe), adapter_name=adapters.NAME)
        drawn = draw(pipe, [1.0], ALWAYS)
    stored = load_file(slider)
    assert kept.keys() == stored.keys() and all(torch.equal(kept[key], stored[key]) for key in stored)
    absent = {key: None for key, value in json.loads((folder / "model_index.json").read_text()).items() if value == [None, None]}
    other = AutoPipelineForText2Image.from_pretrained(folder, local_files_only=True, **absent)
    if hasattr(denoiser(other), "load_lora_adapter"):  # PixArt's has no such line
        denoiser(other).load_lora_adapter(slider, prefix=None, use_safetensors=True)
        assert torch.equal(plain(other, 1), drawn)
    else:
        assert folder.name == "pixart"


def test_the_slider_acts_from_the_stated_noise_level_on(pipe, slider):
    base = plain(pipe, 2)
    levels = pipelines.noise_levels(pipe.scheduler)
    assert (levels.diff() < 0).all() and levels[-1] > 0 and levels[0] <= 1
    with pipelines.loaded(pipe, slider):
        drawn = [draw(pipe, [0.0, 1.0], float(level)) for level in (NEVER, levels[2], levels[1], ALWAYS)]
    assert torch.equal(drawn[0], base) and torch.equal(base[0], base[1])
    moved = [distance(pictures[1], base[1]) for pictures in drawn]
    assert moved[0] == 0 and min(moved[1:]) > 0 and len(set(moved)) == 4


def test_guidance_is_classifier_free_in_every_family(pipe, folder):
    by_itself = dataclasses.replace(CALL, guidance=1.0)
    towards = dataclasses.replace(CALL, guidance=5.0, negative_prompt=CAPTION)
    away = dataclasses.replace(towards, negative_prompt="in heavy snow")
    passes = []
    handle = denoiser(pipe).register_forward_hook(lambda module, inputs, output: passes.append(len(output[0])))
    drawn = [draw(pipe, [0.0], call=call) for call in (by_itself, towards, away)]
    handle.remove()
    assert sum(passes) == 4 + 8 + 8 and distance(drawn[2], drawn[0]) > 0
    if folder.name != "sana":  # rewrites a prompt by its instruction, and not the negative one: they never are the same
        assert (drawn[1].int() - drawn[0].int()).abs().max() <= 1  # u + g (c - u) = c where u = c


def test_embedded_guidance_reaches_the_denoiser_of_those_that_take_it(pipe, folder):
    told = dataclasses.replace(CALL, embedded=1.5)
    if folder.name != "flux":
        with pytest.raises(ValueError, match=rf"embedded guidance: 1\.5 is not accepted; accepted: none: {type(pipe).__name__}"):
            told.arguments(pipe)
        return
    found = pipelines.inputs_at(pipe, [CAPTION], 0, generator=torch.Generator(), **told.arguments(pipe))
    assert found["guidance"].tolist() == [1.5]
    assert distance(draw(pipe, [0.0], call=told), draw(pipe, [0.0])) > 0


def test_a_released_slider_has_the_prompts_of_the_code_and_a_made_one_is_left_alone(pipe, slider, learn, tmp_path):
    before = slider.stat().st_mtime_ns
    assert learn(slider).stat().st_mtime_ns == before
    half = learn(tmp_path / "released.safetensors", "released", iterations=1)
    assert json.loads(adapters.header(half)["prompts"]) == ["sneaker", "sneaker, in heavy snow"]
    assert json.loads(adapters.header(slider)["prompts"]) == [CAPTION, f"{CAPTION} in heavy snow"]
    with pytest.raises(ValueError, match=r"base\.recipe: 'quick' is not accepted; accepted: paper, released, graded"):
        learn(tmp_path / "quick.safetensors", "quick")


# The path of the mini world is known to be right: here both ways must agree.


@pytest.fixture(scope="module")
def stable(tiny_pipeline_dir):
    return pipelines.load(tiny_pipeline_dir, "cpu")


@pytest.mark.parametrize("recipe", ["paper", "graded"])
def test_stable_diffusion_learns_what_it_learns_by_its_own_path(stable, recipe):
    settings, made = dataclasses.replace(LEARN, denoising_steps=4, learning_rate=1e-3), sliders.RECIPES[recipe]
    words = pipelines.words(*PAIR, settings=settings, recipe=made)
    curves = []
    for way in ("own", "any"):
        generator = torch.Generator().manual_seed(0)
        with pipelines.fresh(stable, settings=settings, generator=generator, recipe=made) as parameters:
            if way == "own":
                text = text_to_image.embed(stable, [*words, ""])
                curves.append(sliders.fit(stable, parameters, text, settings=settings, generator=generator, recipe=made))
                continue
            given = {"settings": settings, "call": Call(steps=4, guidance=1.0), "generator": generator, "recipe": made}
            with contextlib.closing(pipelines.lessons(stable, words, **given)) as endless:
                taken = itertools.islice(endless, settings.iterations)
                curves.append(sliders.descend(parameters, taken, settings=settings, recipe=made))
    for name in ("loss", "untrained"):
        assert curves[1][name] == pytest.approx(curves[0][name], rel=1e-3, abs=1e-7)


def test_stable_diffusion_draws_what_it_draws_by_its_own_path(stable, tmp_path):
    pipelines.train(stable, *PAIR, tmp_path / "a.safetensors", settings=LEARN, recipe="paper", base="digest", call=CALL)
    given = {"guided": [0.0, 1.0], "guidances": [3.0], "start_fraction": 0.75, "negative_prompt": "", "quality": 0, "side": 0}
    settings = Generation(steps=8, guidance=3.0, **given)
    with pipelines.loaded(stable, tmp_path / "a.safetensors"):
        own = generation.Sampler(stable, settings=settings).shifted("sneaker", 1, SCALES)
        found = pipelines.draw(stable, PROMPT.format(token=token("sneaker")), 1, SCALES, call=Call(steps=8, guidance=3.0))
    assert (own.int() - found.int()).abs().max() <= 1 and distance(own[1], own[0]) > 1
    assert not difference(recipes.PIPELINE_SLIDERS, tmp_path / "a.safetensors", within=1e-3)


def test_the_command_trains_a_slider_and_draws_its_strip(tiny_pipeline_dir, tmp_path, capsys):
    YAML().dump({"sliders": {"iterations": 1, "batch_size": 1, "denoising_steps": 2}}, tmp_path / "overlay.yaml")
    given = ["--shift", PAIR[0], "--class", PAIR[1], "--overlay", str(tmp_path / "overlay.yaml"), "--folder", str(tmp_path / "out")]
    assert strip.main(["--pipeline", str(tiny_pipeline_dir), *given, "--steps", "2", "--scales", "-1", "0", "1"]) == 0
    written = capsys.readouterr().out.split()
    assert written == [str(tmp_path / "out" / "heavy_snow" / name) for name in ("sneaker.safetensors", "sneaker_seed_1.png")]
    picture = np.asarray(Image.open(written[1]).convert("L"))
    assert picture.shape[1] > 3 * 128 and picture.std() > 10
    assert strip.main(["--pipeline", str(tmp_path), *given]) == 2
    assert capsys.readouterr().err.startswith(f"error: pipeline: {tmp_path / 'model_index.json'} does not exist")
