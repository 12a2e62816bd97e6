"""Slider training: what is adapted, what is learned, and what a slider's bytes depend on."""

import dataclasses
import json

import pytest
import torch
from golden_units import difference
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import recipes
from cnslib.method import sliders
from cnslib.models import adapters, text_to_image


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


@pytest.fixture(scope="module")
def undisturbed(tiny_pipeline_dir, tiny_tokens_dir, origin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sliders")
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return sliders.train_all(pipe, SHIFTS, CLASSES, settings=SETTINGS, origin=origin, folder=folder)


@pytest.fixture
def train(pipe, origin, tmp_path):
    def call(shifts=SHIFTS, classes=CLASSES, **changes):
        settings = dataclasses.replace(SETTINGS, **changes)
        return sliders.train_all(pipe, shifts, classes, settings=settings, origin=origin, folder=tmp_path)

    return call


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def output(pipe, seed=0):
    with torch.no_grad():
        return pipe.unet(noise(seed, 2, 4, 16, 16), 501, noise(seed + 1, 2, 24, 16)).sample


def stamps(paths):
    return {key: path.stat().st_mtime_ns for key, path in paths.items()}


def test_there_is_nothing_to_learn_when_the_shift_means_nothing(pipe):
    text, latents = noise(0, 1, 24, 16).repeat(2, 1, 1), noise(1, 2, 4, 16, 16)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        once = dataclasses.replace(SETTINGS, iterations=1)
        curve = sliders.fit(pipe, parameters, text, settings=once, generator=torch.Generator().manual_seed(0))
        _, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=4.0)
    assert curve["loss"][0] < 1e-12 and curve["untrained"][0] < 1e-12
    with torch.no_grad():
        assert torch.allclose(target, pipe.unet(latents, 501, text).sample, atol=1e-6)


def test_the_target_is_equation_two_on_the_base_model_whatever_the_adapter(pipe):
    text, latents = noise(0, 2, 24, 16), noise(1, 2, 4, 16, 16)
    with torch.no_grad():
        c, c_plus = (pipe.unet(latents, 501, row.expand(2, -1, -1)).sample for row in text.split(1))
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        for parameter in parameters:
            parameter.data.copy_(noise(3, *parameter.shape).half())  # what half precision keeps
        plain, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=4.0)
    assert torch.allclose(plain, c, atol=1e-5)
    assert torch.allclose(target, 4.0 * c_plus - 3.0 * c, atol=1e-4)


def test_every_point_is_one_update_and_its_loss_is_the_squared_distance_to_the_target(pipe):
    text, points = noise(0, 2, 24, 16), [(noise(seed, 2, 4, 16, 16), torch.tensor(501)) for seed in (1, 2, 3)]
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator().manual_seed(0)) as parameters:
        plain, target = sliders.teacher(pipe, *points[0], text, eta=SETTINGS.eta)
        before = [parameter.detach().clone() for parameter in parameters]
        curve = sliders.descend(pipe, parameters, text, iter(points), settings=SETTINGS)
        moved = [not torch.equal(old, new) for old, new in zip(before, parameters, strict=True)]
    assert len(curve["loss"]) == len(curve["untrained"]) == 3 and any(moved)
    wanted = (plain - target).square().mean().item()  # the fresh adapter changes nothing yet
    assert curve["loss"][0] == pytest.approx(wanted, abs=1e-6) and curve["untrained"][0] == pytest.approx(wanted, abs=1e-6)


def test_without_points_nothing_is_trained(pipe):
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        assert sliders.descend(pipe, parameters, noise(0, 2, 24, 16), [], settings=SETTINGS) == {"loss": [], "untrained": []}


def test_a_header_holds_what_was_told_as_json_and_a_loss_that_is_no_number_is_refused():
    entries, more = {"class": "bag", "shift": "heavy snow"}, {"prompts": ("c", "c+"), "settings": dataclasses.asdict(SETTINGS)}
    found = sliders.told(entries, **more, curve={"loss": [0.5], "untrained": [0.5]})
    assert found["class"] == "bag" and json.loads(found["prompts"]) == ["c", "c+"] and json.loads(found["curve"])["loss"] == [0.5]
    with pytest.raises(FloatingPointError, match=r"slider of bag in heavy snow: the loss is not a number; lower sliders\.learning_rate"):
        sliders.told(entries, **more, curve={"loss": [float("nan")], "untrained": [0.5]})


def test_training_closes_part_of_the_gap(pipe):
    text, latents = noise(0, 2, 24, 16), noise(1, 4, 4, 16, 16)
    generator = torch.Generator().manual_seed(0)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=generator) as parameters:
        settings = dataclasses.replace(SETTINGS, iterations=10, batch_size=4)
        curve = sliders.fit(pipe, parameters, text, settings=settings, generator=generator)
        plain, target = sliders.teacher(pipe, latents, torch.tensor(501), text, eta=4.0)
        with torch.no_grad():
            adapted = pipe.unet(latents, 501, text[:1].expand(4, -1, -1)).sample
    assert curve["loss"][0] == pytest.approx(curve["untrained"][0], rel=1e-3)
    assert (adapted - target).square().mean() < 0.5 * (plain - target).square().mean()


@pytest.mark.parametrize("seed", range(5))
def test_the_timestep_is_the_noise_level_of_the_latents(pipe, monkeypatch, seed):
    """A model that finds no image in the noise leaves noise whose size is the square root of 1 - abar at the timestep."""
    share = pipe.scheduler.alphas_cumprod

    def find_nothing(latents, timestep, text):
        return type("Output", (), {"sample": latents * (share[timestep] / (1 - share[timestep])).sqrt()})

    monkeypatch.setattr(pipe.unet, "forward", find_nothing)
    settings = dataclasses.replace(SETTINGS, denoising_steps=10, batch_size=64)
    generator = torch.Generator().manual_seed(seed)
    latents, timestep = sliders.partial_denoise(pipe, noise(0, 1, 24, 16), settings=settings, generator=generator)
    assert timestep.item() in range(1, 802, 100)
    start = (1 - share[901]).sqrt()
    assert latents.std() * start == pytest.approx((1 - share[timestep]).sqrt().item(), rel=0.02)


def test_the_partial_denoise_runs_with_the_adapter_on(pipe):
    latents = []
    for factor in (0.0, 1.0):
        with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
            for parameter in parameters:
                parameter.data.copy_(factor * noise(3, *parameter.shape))
            generator = torch.Generator().manual_seed(0)
            latents.append(sliders.partial_denoise(pipe, noise(0, 1, 24, 16), settings=SETTINGS, generator=generator)[0])
    assert not torch.allclose(*latents, atol=1e-3)


def test_a_slider_file_says_what_it_is(undisturbed, origin):
    entries = adapters.header(undisturbed["cartoon style", "ankle boot"])
    assert (entries["shift"], entries["class"], entries["base"]) == ("cartoon style", "ankle boot", origin.base)
    assert json.loads(entries["prompts"])[1] == "a picture of a <ankle-boot*> in cartoon style"
    assert json.loads(entries["settings"])["eta"] == 4.0
    curve = sliders.loss_curve(undisturbed["cartoon style", "ankle boot"])
    assert list(curve.columns) == ["iteration", "loss", "untrained"] and len(curve) == SETTINGS.iterations


def test_a_slider_does_not_depend_on_which_others_are_trained(train, undisturbed):
    alone = train(["cartoon style"], ["ankle boot"])["cartoon style", "ankle boot"]
    assert alone.read_bytes() == undisturbed["cartoon style", "ankle boot"].read_bytes()
    assert len({path.read_bytes() for path in undisturbed.values()}) == 4


def test_a_killed_run_continues_to_the_same_bytes(train, undisturbed):
    first = train(["heavy snow"])
    before = stamps(first)
    (killed := first["heavy snow", "ankle boot"]).with_name(f"{killed.name}.digest").unlink()
    killed.write_bytes(b"half a file")
    (partial := killed.with_name(f".{killed.name}.1.partial")).write_bytes(b"half a write")
    resumed = train()
    assert not partial.exists()
    assert {key: path.read_bytes() for key, path in resumed.items()} == {k: p.read_bytes() for k, p in undisturbed.items()}
    assert stamps(resumed)["heavy snow", "sneaker"] == before["heavy snow", "sneaker"]


def test_only_sliders_whose_inputs_changed_are_trained_again(pipe, origin, train, tmp_path):
    before = stamps(train())
    assert stamps(train(health_seeds=5, least_gain=-1.0)) == before
    changed = dataclasses.replace(origin, tokens=origin.tokens | {"sneaker": "another token"})
    after = stamps(sliders.train_all(pipe, SHIFTS, CLASSES, settings=SETTINGS, origin=changed, folder=tmp_path))
    assert {name for (_, name), stamp in after.items() if stamp != before[_, name]} == {"sneaker"}


def test_sliders_that_are_no_longer_asked_for_are_deleted(train, tmp_path):
    train()
    kept = train(["heavy snow"], ["sneaker"])
    assert sorted(tmp_path.rglob("*.safetensors")) == list(kept.values())


def test_training_leaves_the_base_model_as_it_was(pipe, train):
    before = output(pipe)
    train(["heavy snow"], ["sneaker"])
    assert torch.equal(output(pipe), before)


def test_a_diverging_slider_is_named_and_not_written(train, tmp_path):
    with pytest.raises(FloatingPointError, match="sneaker in heavy snow"):
        train(["heavy snow"], ["sneaker"], eta=1e38)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_the_released_code_spends_twice_the_evaluations():
    released = dataclasses.replace(SETTINGS, iterations=1, batch_size=16, denoising_steps=50)
    assert sliders.evaluations(released) == 448  # 25 + 2 + 1 predictions of 16 samples; the released code makes 928


def test_the_tiny_unit_is_the_golden_one(undisturbed):
    assert not difference(recipes.SLIDERS, undisturbed["heavy snow", "sneaker"], within=1e-3)
