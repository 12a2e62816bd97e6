"""Samplers: DDIM is the benchmark's bit for bit, the others are diffusers' own; conclusions counted by hand."""

import dataclasses
import itertools

import diffusers
import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_settings import changed
from tiny_sliders import pipeline, random_sliders

from cnslib.core import names, recipes, tables
from cnslib.core.settings import sections
from cnslib.core.settings.method import Bootstrap, Generation
from cnslib.method import generation, health
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.models.classifiers import Classifier
from cnslib.studies.ablation import samplers

CLASSES = ["sneaker", "ankle boot"]
SHIFTS = ["heavy snow", "cartoon style"]
SCALES = [0.0, 1.0, 2.0]
SETTINGS = Generation(steps=8, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=0.75, negative_prompt="", quality=0)
BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")
SAMPLERS = {
    "DDIM": {"scheduler": "DDIMScheduler", "steps": 8, "spacing": "leading"},
    "UniPC": {"scheduler": "UniPCMultistepScheduler", "steps": 8, "spacing": "linspace"},
    "DPM++": {"scheduler": "DPMSolverMultistepScheduler", "steps": 8, "spacing": "trailing"},
}
SCHEDULING = {name: sections.Scheduling(**one) for name, one in SAMPLERS.items()}


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def sliders(pipe, tmp_path_factory):
    return random_sliders(pipe, tmp_path_factory.mktemp("sliders"), SHIFTS, CLASSES)


def tiny_classifier(name: str, seed: int) -> Classifier:
    """A random network that tells the classes apart in its own way."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = timm.create_model("resnet10t", num_classes=2).eval()
    config = {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.25,) * 3, "interpolation": "bicubic", "crop_pct": 1.0}
    return Classifier(name, name, CLASSES, network, timm.data.create_transform(**config), {"seed": seed}, 1, "cpu")


@pytest.fixture(scope="module")
def bench(pipe, sliders, tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    judge = health.Judge(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino")))
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    asked = [tiny_classifier(name, seed) for seed, name in enumerate(("one", "two"))]
    steppers = samplers.steppers(pipe, SCHEDULING, settings=SETTINGS)
    return samplers.Bench(steppers, "DDIM", origin, judge, asked, sliders, folder / "ablation")


def plain_pipeline(pipe, sampler: sections.Scheduling, seed: int, scales: dict[int, float]) -> np.ndarray:
    """Images of diffusers' own pipeline and scheduler; the slider's scale is set when `scales` names the step that comes next."""

    def switch(pipe, step, timestep, kwargs):
        if step + 1 in scales:
            pipe.unet.set_adapters(adapters.NAME, scales[step + 1])
        return kwargs

    own = pipe.scheduler
    pipe.scheduler = getattr(diffusers, sampler.scheduler).from_config(own.config, timestep_spacing=sampler.spacing)
    try:
        images = pipe(
            f"a picture of a {names.token('sneaker')}",
            num_inference_steps=SETTINGS.steps,
            guidance_scale=SETTINGS.guidance,
            generator=torch.Generator().manual_seed(seed),
            callback_on_step_end=switch,
            output_type="np",
        ).images
    finally:
        pipe.scheduler = own
    return (images * 255).round().astype(int)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_is_diffusers_pipeline_with_its_adapter_switched_on_midway(pipe, sliders, name):
    """Several scales share the memory of their prefix; each must be what the pipeline draws alone, but for rounding."""
    stepper, sampler = samplers.steppers(pipe, SCHEDULING, settings=SETTINGS)[name], SCHEDULING[name]
    assert abs(stepper.unshifted("sneaker", 5).numpy().astype(int) - plain_pipeline(pipe, sampler, 5, {})).max() <= 1
    with adapters.loaded(pipe, slider_path(sliders, "heavy snow", "sneaker")):
        ours = stepper.shifted("sneaker", 5, [0.5, 2.5]).numpy().astype(int)
        for image, scale in zip(ours, (0.5, 2.5), strict=True):
            pipe.unet.set_adapters(adapters.NAME, 0.0)
            assert abs(image - plain_pipeline(pipe, sampler, 5, {2: scale})[0]).max() <= 1


def test_unipc_with_20_steps_starts_its_slider_where_the_released_code_does(pipe):
    """Its start_noise of 750 leaves 5 of 20 steps without the slider; it runs from 999 down by 50, as SD 2's own file has it."""
    settings = dataclasses.replace(SETTINGS, steps=20)
    stepper = generation.Sampler(pipe, settings=settings, way=generation.WAYS["fast"])
    assert stepper.scheduler.timesteps[:3].tolist() == [999, 949, 899]
    assert (stepper.scheduler.timesteps > 750).sum() == generation.steps_without_slider(settings) == 5


@pytest.mark.slow
def test_every_sampler_is_answered_once_and_the_reference_is_like_itself(bench):
    answers, looks = samplers.compare(bench, SHIFTS, CLASSES, scales=SCALES, seeds=1)
    keys = {(shift, name, 1, scale) for shift in SHIFTS for name in CLASSES for scale in SCALES}
    tables.complete(looks, {(sampler, *key) for sampler in SAMPLERS for key in keys}, ["sampler", *tables.KEY], "looks")
    stored = {("unshifted" if key[3] == 0 else key[0], *key[1:]) for key in keys}
    wanted = {(sampler, model, *key) for sampler in SAMPLERS for model in ("one", "two") for key in stored}
    tables.complete(answers, wanted, ["sampler", "model", *tables.KEY], "answers")
    own = looks[looks["sampler"] == "DDIM"]
    assert (own["change"] == 0).all() and np.allclose(own["likeness"], 1, atol=1e-5)
    assert (looks[looks["sampler"] != "DDIM"]["change"] > 0).any()
    samplers.films(bench, SHIFTS[0], CLASSES[0], 1, SCALES)
    before = {path: path.stat().st_mtime_ns for path in bench.folder.rglob("*.parquet")}
    assert len(before) == 5  # answers and looks of two classes, and the pictures of a figure
    samplers.compare(bench, SHIFTS, CLASSES, scales=SCALES, seeds=1)
    assert {path: path.stat().st_mtime_ns for path in bench.folder.rglob("*.parquet")} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "Euler"}, "ablation.reference: 'Euler'"),
        ({"samplers": {"DDIM": {"scheduler": "Euler", "steps": 8, "spacing": "leading"}}}, r"DDIM.scheduler: 'Euler'"),
        ({"samplers": {"DDIM": SAMPLERS["DDIM"] | {"spacing": "linspace"}}}, r"of a DDIMScheduler: 'linspace'.*leading or trailing$"),
    ],
)
def test_bad_settings_are_named(change, message):
    plain = {"samplers": SAMPLERS, "reference": "DDIM", "rce_reference": "one", "shifts": SHIFTS, "seeds": 1, "counts": [2]}
    with pytest.raises(ValueError, match=message):
        changed(sections.Ablation(bootstrap=BOOTSTRAP, **plain), **change)


def answered(wrong: dict[str, list[list[int]]]) -> pd.DataFrame:
    """Answers of two models to one garment per seed, by sampler; 1 where both are wrong, 2 where only "b", 3 where only "a" is."""
    rows = []
    for sampler, garments in wrong.items():
        for (seed, garment), model in itertools.product(enumerate(garments, start=1), "ab"):
            for scale, value in enumerate(garment):
                missed = value == 1 or (value, model) in ((2, "b"), (3, "a"))
                rows.append((sampler, model, "heavy snow", "bag", seed, float(scale), "coat" if missed else "bag"))
    return pd.DataFrame(rows, columns=["sampler", "model", *tables.KEY, "top1"])


@pytest.mark.parametrize(("count", "surely"), [(1, False), (6, True)])
def test_samplers_differ_surely_only_where_enough_units_do(count, surely):
    """Of eight garments `count` lose the last scale by the second sampler, the others nothing."""
    same, worse = [[0, 0]] * 8, [[0, 1]] * count + [[0, 0]] * (8 - count)
    shares = samplers.by_sampler(answered({"A": same, "B": worse}), settings=BOOTSTRAP)
    last = samplers.differences(shares, "A").query("scale == 1 and shift == 'all shifts'").iloc[0]
    drop = samplers.drop_differences(shares, "A")["B"]
    assert last["estimate"] == -count / 8 and drop["estimate"] == count / 8 and drop["n"] == 8
    assert (last["high"] < 0) == surely and (drop["low"] > 0) == surely
    assert surely or last["high"] == drop["low"] == 0


def test_the_order_of_the_models_is_compared_over_the_shifted_scales():
    shares = samplers.by_sampler(answered({"A": [[1, 2, 0]] * 2, "B": [[1, 2, 2]] * 2, "C": [[2, 1, 1]] * 2}), settings=BOOTSTRAP)
    taus = samplers.orders(shares, "A")
    assert taus["B"]["estimate"] == 1 and np.isnan(taus["C"]["estimate"])  # both models are equally often wrong in C


def test_models_that_are_equally_often_wrong_are_tied_though_the_sums_of_their_shares_round_differently():
    """Of ten garments "a" misses one and then two, "b" three at once: 0.1 + 0.2 is not 0.3 in floating point."""
    assert 0.1 + 0.2 != 0.3
    garments = [[0, 3, 3, 2], [0, 0, 3, 2], [0, 0, 0, 2], *[[0, 0, 0, 0]] * 7]
    shares = samplers.by_sampler(answered({"A": [[0, 2, 2, 2]] * 10, "B": garments}), settings=BOOTSTRAP)
    assert np.isnan(samplers.orders(shares, "A")["B"]["estimate"])


def test_the_tiny_unit_is_the_golden_one(bench):
    answers, looks = samplers.compare(bench, SHIFTS, CLASSES, scales=SCALES, seeds=1)
    key = ["sampler", *tables.KEY]
    answers = answers.pivot(index=key, columns="model", values="top1").reset_index()
    assert not difference(recipes.ABLATION, looks.merge(answers, on=key, how="left").astype({"one": str, "two": str}), within=1e-2)
