"""The fast recipe: what it shares with the exact one, what it costs, and that it is a recipe like the others."""

import dataclasses
import itertools
import json

import pytest
import torch
from golden_units import difference
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import paths, recipes, units
from cnslib.core.settings import read
from cnslib.method import provision, sliders, sliders_fast
from cnslib.models import adapters, text_to_image
from cnslib.tools import plan


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
        return provision.make_sliders(pipe, shifts, classes, recipe="fast", **given)

    return call


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def fitted(pipe, fit, seed=0, **changes):
    """The curve, the trained weights, and how many samples passed the UNet."""
    samples, generator = [], torch.Generator().manual_seed(seed)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as weights:
        handle = pipe.unet.register_forward_pre_hook(lambda module, inputs: samples.append(len(inputs[0])))
        settings = dataclasses.replace(SETTINGS, **changes)
        curve = fit(pipe, weights, noise(0, 2, 24, 16), settings=settings, generator=generator)
        handle.remove()
        return curve, [weight.detach().clone() for weight in weights], sum(samples)


def one_point(*given, **settings):
    return sliders_fast.fit(*given, points=1, **settings)


def two_points(*given, **settings):
    return sliders_fast.fit(*given, points=2, **settings)


def first(seed, steps):
    """The k that a generator of this seed draws."""
    return int(torch.randint(1, steps, (), generator=torch.Generator().manual_seed(seed)))


def test_with_one_point_per_trajectory_it_is_the_exact_form_bit_for_bit(pipe):
    exact, fast = (fitted(pipe, fit, iterations=2) for fit in (sliders.fit, one_point))
    assert fast[0] == exact[0] and fast[2] == exact[2]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(fast[1], exact[1], strict=True))
    assert not torch.equal(fast[1][0], fitted(pipe, sliders_fast.fit, iterations=2)[1][0])


def test_every_state_is_a_training_point_equally_often_and_the_points_are_spread():
    for steps, points in ((10, 4), (5, 4), (10, 3), (4, 2)):
        found = [sliders_fast.visited(k, steps=steps, points=points) for k in range(1, steps)]
        assert all(k in chosen for k, chosen in enumerate(found, start=1))
        assert sorted(itertools.chain(*found)) == sorted([*range(1, steps)] * points)  # uniform, and so none twice in one trajectory
    assert sliders_fast.visited(2, steps=10, points=4) == [2, 4, 6, 8] and sliders_fast.visited(5, steps=10, points=4) == [2, 5, 7, 9]
    assert sliders_fast.visited(3, steps=3, points=4) == [1, 2]


def test_the_points_are_states_of_one_trajectory_at_their_own_noise_level(pipe):
    """Adapter as it was drawn: the library's own loop from the same noise passes through each of them."""
    text, generator = noise(0, 1, 24, 16), torch.Generator().manual_seed(3)
    settings = dataclasses.replace(SETTINGS, denoising_steps=6)
    found = list(sliders_fast.trajectory(pipe, text, settings=settings, generator=generator, points=3))
    generator.manual_seed(3)
    chosen = sliders_fast.visited(int(torch.randint(1, 6, (), generator=generator)), steps=6, points=3)
    states, start = {}, torch.randn((2, 4, 16, 16), generator=generator)

    def keep(pipe, step, timestep, values):
        states[step + 1] = values["latents"]
        return values

    options = {"prompt_embeds": text.expand(2, -1, -1), "latents": start, "num_inference_steps": 6, "guidance_scale": 1.0}
    pipe(**options, output_type="latent", callback_on_step_end=keep)
    assert [timestep.item() for _, timestep in found] == [pipe.scheduler.timesteps[k].item() for k in chosen]
    assert all(torch.allclose(latents, states[k], atol=1e-5) for (latents, _), k in zip(found, chosen, strict=True))


def test_the_steps_between_two_points_are_made_with_the_newest_adapter(pipe):
    """An adapter that is changed between two points changes the second, but not what came before."""
    text, drawn = noise(0, 1, 24, 16), {}
    for changed in (False, True):
        generator = torch.Generator().manual_seed(0)
        with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as weights:
            points = sliders_fast.trajectory(pipe, text, settings=SETTINGS, generator=generator, points=3)
            drawn[changed] = [next(points)[0]]
            assert torch.is_grad_enabled()
            for weight in weights:
                weight.data += 0.1 * changed
            drawn[changed].append(next(points)[0])
    assert torch.equal(drawn[True][0], drawn[False][0]) and not torch.allclose(drawn[True][1], drawn[False][1], atol=1e-3)


@pytest.mark.parametrize(("iterations", "denoising"), [(3, 3), (4, 3 + 1), (5, 3 + 2), (6, 3 + 3)])
def test_as_many_samples_pass_the_unet_as_are_expected(pipe, iterations, denoising):
    """Where each of three states is a point nothing is left to chance; the last trajectory ends at the last point that is needed."""
    counted = fitted(pipe, sliders_fast.fit, iterations=iterations)[2]
    assert counted == SETTINGS.batch_size * (denoising + 3 * iterations)
    assert counted == sliders_fast.evaluations(dataclasses.replace(SETTINGS, iterations=iterations))


def test_the_expected_samples_are_their_mean_over_the_trajectories(pipe):
    """Two of three states: the last one is 2 where 1 comes first, else 3; each is first equally often."""
    seeds = {first(seed, 4): seed for seed in range(30)}
    counted = [fitted(pipe, two_points, seed=seeds[k], iterations=2)[2] for k in (1, 2, 3)]
    assert counted == [2 * (last + 6) for last in (2, 3, 3)]
    expected = sliders_fast.evaluations(dataclasses.replace(SETTINGS, iterations=2), points=2)
    assert expected == pytest.approx(sum(counted) / 3)


def test_at_the_released_settings_it_needs_a_fifth_of_the_exact_forms_evaluations():
    """Four of nine states end at 8, 9, 9, 9, 9, 7, 8, 8 or 8 (mean 75 / 9), and three predictions each; the exact form needs 448."""
    released = dataclasses.replace(SETTINGS, iterations=4, batch_size=16, denoising_steps=50)
    assert sliders_fast.evaluations(released) / 4 == pytest.approx(16 * (75 / 9 / 4 + 3))
    assert sliders.evaluations(released) / 4 == 448
    assert sliders_fast.evaluations(released, points=1) == sliders.evaluations(dataclasses.replace(released, denoising_steps=10))


def test_no_trajectory_has_more_than_ten_steps(pipe):
    long, ten = (fitted(pipe, sliders_fast.fit, denoising_steps=steps) for steps in (50, 10))
    assert long[0] == ten[0] and long[2] == ten[2] != fitted(pipe, sliders_fast.fit, denoising_steps=9)[2]


def test_training_closes_part_of_the_gap(pipe):
    text, latents, timestep = noise(0, 2, 24, 16), noise(1, 4, 4, 16, 16), torch.tensor(501)
    generator = torch.Generator().manual_seed(0)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=generator) as weights:
        settings = dataclasses.replace(SETTINGS, iterations=10, batch_size=4)
        sliders_fast.fit(pipe, weights, text, settings=settings, generator=generator)
        before, target = sliders.teacher(pipe, latents, timestep, text, eta=4.0)
        with torch.no_grad():
            after = pipe.unet(latents, timestep, text[:1].expand(4, -1, -1)).sample
    assert (after - target).square().mean() < 0.5 * (before - target).square().mean()


def test_a_slider_says_its_recipe_and_the_steps_it_was_made_with_and_loads(pipe, make):
    path = make(["heavy snow"], ["sneaker"], denoising_steps=50)["heavy snow", "sneaker"]
    entries = adapters.header(path)
    assert entries["recipe"] == "fast" and json.loads(entries["prompts"]) == list(sliders.prompts("heavy snow", "sneaker", texts={}))
    assert json.loads(entries["settings"])["denoising_steps"] == 10
    assert len(sliders.loss_curve(path)) == SETTINGS.iterations
    with adapters.loaded(pipe, path):
        assert len(adapters.layers(pipe.unet)) == 47


def test_a_killed_run_continues_to_the_same_bytes(make):
    """Both half-written kinds are replaced, what was finished is left alone, and the same seed gives the same bytes."""
    before = make()
    undisturbed = {pair: path.read_bytes() for pair, path in before.items()}
    finished = before["heavy snow", "sneaker"].stat().st_mtime_ns
    units.sidecar(killed := before["heavy snow", "ankle boot"]).unlink()
    killed.write_bytes(b"half a file")
    (partial := killed.with_name(f".{killed.name}.1.partial")).write_bytes(b"half a write")
    resumed = make()
    assert not partial.exists() and len(set(undisturbed.values())) == 4
    assert {pair: path.read_bytes() for pair, path in resumed.items()} == undisturbed
    assert resumed["heavy snow", "sneaker"].stat().st_mtime_ns == finished
    assert sorted(killed.parents[1].rglob("*.safetensors")) == sorted(resumed.values())
    assert list(make(["heavy snow"], ["sneaker"]).values()) == list(killed.parents[1].rglob("*.safetensors"))


def test_another_seed_gives_other_bytes_and_the_recipes_do_not_share_units(pipe, origin, make):
    def content(**changes):
        return make(["heavy snow"], ["sneaker"], **changes)["heavy snow", "sneaker"].read_bytes()

    assert content() != content(seed=2)
    digests = {module: module.stamp("heavy snow", "sneaker", settings=SETTINGS, origin=origin) for module in (sliders_fast, sliders)}
    assert len(set(digests.values())) == 2


def test_a_diverging_slider_is_named_and_not_written(make, tmp_path):
    with pytest.raises(FloatingPointError, match="sneaker in heavy snow"):
        make(["heavy snow"], ["sneaker"], eta=1e38)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_the_plan_counts_the_recipes_own_passes():
    """112 sliders, 40 updates on 8 latents each: 75 / 36 steps and two teachers per update without gradient, one student with it."""
    sections = read.load(paths.resolve("params.yaml"))
    settings = dataclasses.replace(sections["sliders"], denoising_steps=50, iterations=40, longer={})
    found = {}
    for recipe in ("paper", "fast"):
        base = dataclasses.replace(sections["base"], recipe=recipe)
        found[recipe] = next(one for one in plan.work(sections | {"base": base, "sliders": settings}) if one.what == "sliders")
    latents = 112 * 40 * 8
    assert found["fast"].passes == pytest.approx(latents * (75 / 36 + 2)) and found["paper"].passes == latents * 27
    assert found["fast"].training == found["paper"].training == latents


def test_the_tiny_unit_is_the_golden_one(make):
    assert not difference(recipes.FAST_SLIDERS, make(["heavy snow"], ["sneaker"])["heavy snow", "sneaker"], within=1e-3)
