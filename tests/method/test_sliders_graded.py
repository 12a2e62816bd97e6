"""The graded recipe: what its targets are, what it costs, and that it is a recipe like the others."""

import dataclasses
import json

import pytest
import torch
from golden_units import difference
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import recipes
from cnslib.method import provision, sliders, sliders_graded
from cnslib.models import adapters, text_to_image


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


@pytest.fixture
def make(pipe, origin, tmp_path):
    def call(shifts=SHIFTS, classes=CLASSES, **changes):
        given = {"settings": dataclasses.replace(SETTINGS, **changes), "origin": origin, "folder": tmp_path}
        return provision.make_sliders(pipe, shifts, classes, recipe="graded", **given)

    return call


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_target_moves_with_the_scale_and_by_the_same_shift_under_every_prompt(pipe):
    latents, text = noise(1, 1, 4, 16, 16).repeat(4, 1, 1, 1), noise(2, 3, 24, 16)
    own = text[[0, 0, 2, 2]]
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)):
        plain, target = sliders_graded.teacher(pipe, latents, torch.tensor(501), text, own, amount=torch.tensor([0.0, 1.0, 1.0, 2.0]))
        _, exact = sliders.teacher(pipe, latents[:1], torch.tensor(501), text[:2], eta=1.0)
    moved = target - plain
    assert torch.equal(target[0], plain[0])
    assert torch.allclose(target[1], exact[0], atol=1e-5)
    assert torch.allclose(moved[2], moved[1], atol=1e-5) and torch.allclose(moved[3], 2 * moved[1], atol=1e-5)
    assert not torch.allclose(plain[2], plain[0], atol=1e-3)


def test_the_rate_is_whole_for_a_half_and_ends_near_zero():
    rates = [sliders_graded.rate(number, iterations=8) for number in range(8)]
    assert rates == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]


@pytest.mark.slow
def test_a_slider_costs_what_is_told(pipe):
    samples, settings = [], dataclasses.replace(SETTINGS, iterations=60, denoising_steps=5)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as weights:
        handle = pipe.unet.register_forward_pre_hook(lambda module, inputs: samples.append(len(inputs[0])))
        sliders_graded.fit(pipe, weights, noise(0, 3, 24, 16), settings=settings, generator=torch.Generator().manual_seed(1))
        handle.remove()
    assert sum(samples) == pytest.approx(sliders_graded.evaluations(settings), rel=0.05)


@pytest.mark.slow
def test_training_lowers_the_distance_to_a_shift_that_the_base_model_knows(pipe):
    settings = dataclasses.replace(SETTINGS, iterations=40, batch_size=8, learning_rate=3e-3, eta=1.0)
    with adapters.fresh(pipe, rank=4, alpha=4.0, generator=torch.Generator().manual_seed(0)) as weights:
        curve = sliders_graded.fit(pipe, weights, noise(0, 3, 24, 16), settings=settings, generator=torch.Generator().manual_seed(1))
    share = torch.tensor(curve["loss"]) / torch.tensor(curve["untrained"])
    assert share[0] == pytest.approx(1.0) and share[-10:].mean() < 0.6


def test_a_shift_has_its_own_eta_and_another_shift_stays_as_it_is(make):
    first = {pair: path.read_bytes() for pair, path in make().items()}
    again = make(etas={"heavy snow": 2.0})
    for pair, path in again.items():
        assert (path.read_bytes() == first[pair]) == (pair[0] != "heavy snow")
        assert json.loads(adapters.header(path)["settings"])["eta"] == (2.0 if pair[0] == "heavy snow" else SETTINGS.eta)


def test_a_shift_has_its_own_number_of_iterations_and_another_shift_stays_as_it_is(make):
    first = {pair: path.read_bytes() for pair, path in make().items()}
    again = make(longer={"heavy snow": SETTINGS.iterations + 1})
    for pair, path in again.items():
        assert (path.read_bytes() == first[pair]) == (pair[0] != "heavy snow")
        assert len(json.loads(adapters.header(path)["curve"])["loss"]) == SETTINGS.iterations + (pair[0] == "heavy snow")


def test_the_same_settings_give_the_same_bytes_and_the_header_names_the_recipe(make):
    first = make(["heavy snow"], ["sneaker"])["heavy snow", "sneaker"]
    before = first.read_bytes()
    first.unlink()
    assert make(["heavy snow"], ["sneaker"])["heavy snow", "sneaker"].read_bytes() == before
    assert adapters.header(first)["recipe"] == "graded"


def test_the_tiny_unit_is_the_golden_one(make):
    assert not difference(recipes.GRADED_SLIDERS, make(["heavy snow"], ["sneaker"])["heavy snow", "sneaker"])
