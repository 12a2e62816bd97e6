import copy
import itertools

import diffusers
import numpy as np
import pandas as pd
import pytest
import timm
import torch
import xarray as xr
from golden_units import difference
from tiny_answers import random_outcomes, wrong_array
from tiny_encoders import write_clip, write_timm
from tiny_settings import resampled
from tiny_sliders import plain_images, random_sliders

from cnslib.core import recipes, tables
from cnslib.core.settings import sections
from cnslib.core.settings.method import Generation
from cnslib.method import health
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders
from cnslib.models.classifiers import Classifier
from cnslib.stats import accuracy
from cnslib.studies import ablation

CLASSES = ["sneaker", "ankle boot"]
SHIFTS = ["heavy snow", "cartoon style"]
SCALES = [0.0, 1.0, 2.0]
SETTINGS = Generation(4, 3.0, [0.0, 1.0], [3.0], 0.75, "", 0, 0)
BOOTSTRAP = resampled(200)
SAMPLERS = {
    "DDIM": {"scheduler": "DDIMScheduler", "steps": 4, "spacing": "leading"},
    "UniPC": {"scheduler": "UniPCMultistepScheduler", "steps": 4, "spacing": "linspace"},
    "DPM++": {"scheduler": "DPMSolverMultistepScheduler", "steps": 4, "spacing": "trailing"},
}
SCHEDULING = {name: sections.Scheduling(**one) for name, one in SAMPLERS.items()}


def tiny_classifier(name: str, seed: int) -> Classifier:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = timm.create_model("resnet10t", num_classes=2).eval()
    config = {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.25,) * 3, "interpolation": "bicubic", "crop_pct": 1.0}
    return Classifier(name, name, CLASSES, network, timm.data.create_transform(**config), {"seed": seed}, 1, "cpu")


@pytest.fixture(scope="module")
def bench(in_place, pipe, origin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    sliders = random_sliders(pipe, folder / "sliders", SHIFTS, CLASSES)
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    judge = health.Judge(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino")))
    asked = [tiny_classifier(name, seed) for seed, name in enumerate(("one", "two"))]
    steppers = ablation.steppers(pipe, SCHEDULING, settings=SETTINGS)
    return ablation.Bench(steppers, "DDIM", origin, judge, asked, sliders, folder / "ablation")


@pytest.mark.parametrize("name", ["DDIM", "DPM++"])
def test_every_sampler_is_diffusers_pipeline_with_its_adapter_switched_on_midway(pipe, bench, name):
    stepper, sampler, plain = bench.steppers[name], SCHEDULING[name], copy.copy(pipe)
    plain.scheduler = getattr(diffusers, sampler.scheduler).from_config(pipe.scheduler.config, timestep_spacing=sampler.spacing)
    how = {"steps": SETTINGS.steps, "guidance": SETTINGS.guidance}
    assert abs(stepper.unshifted("sneaker", 5).numpy().astype(int) - plain_images(plain, 5, {}, **how)).max() <= 1
    with adapters.loaded(pipe, slider_path(bench.sliders, "heavy snow", "sneaker")):
        ours = stepper.shifted("sneaker", 5, [0.5, 2.5]).numpy().astype(int)
        for image, scale in zip(ours, (0.5, 2.5), strict=True):
            pipe.unet.set_adapters(adapters.NAME, 0.0)
            assert abs(image - plain_images(plain, 5, {1: scale}, **how)[0]).max() <= 1


def test_every_sampler_is_answered_once_and_the_reference_is_like_itself(bench):
    answers, looks = ablation.compare(bench, SHIFTS, ["sneaker"], scales=SCALES, seeds=1)
    keys = {(shift, "sneaker", 1, scale) for shift in SHIFTS for scale in SCALES}
    tables.complete(looks, {(sampler, *key) for sampler in SAMPLERS for key in keys}, ["sampler", *tables.KEY], "looks")
    stored = {("unshifted" if key[3] == 0 else key[0], *key[1:]) for key in keys}
    wanted = {(sampler, model, *key) for sampler in SAMPLERS for model in ("one", "two") for key in stored}
    tables.complete(answers, wanted, ["sampler", "model", *tables.KEY], "answers")
    own = looks[looks["sampler"] == "DDIM"]
    assert (own["change"] == 0).all() and np.allclose(own["likeness"], 1, atol=1e-5)
    assert (looks[looks["sampler"] != "DDIM"]["change"] > 0).any()
    key = ["sampler", *tables.KEY]
    answers = answers.pivot(index=key, columns="model", values="top1").reset_index()
    assert not difference(recipes.ABLATION, looks.merge(answers, on=key, how="left").astype({"one": str, "two": str}), within=1e-2)


def outcomes(wrong: dict[str, dict[str, list[list[int]]]]) -> xr.DataArray:
    models = sorted(next(iter(wrong.values())))
    rows = [("heavy snow", name, seed) for name, own in wrong.items() for seed in range(1, len(own[models[0]]) + 1)]
    values = [[own[model][seed] for model in models] for own in wrong.values() for seed in range(len(own[models[0]]))]
    scales = [float(i) for i in range(len(values[0][0]))]
    return wrong_array(pd.DataFrame(rows, columns=tables.TRAJECTORY), models, scales, np.array(values, bool))


def test_numbers_of_a_subset_are_those_of_its_classes_alone():
    found = random_outcomes(seeds=25)  # fifty trajectories of two classes, the fewest that give a quotient
    table = ablation.measures(found, [2, 4], reference="m0").set_index(["subset", "measure"])["value"]
    alone = found[found["class"].isin(["class 1", "class 3"])]
    part = alone.to_numpy()
    assert table["class 1 + class 3", "accuracy at scale 0"] == pytest.approx(1 - part[..., 0].mean())
    assert table["class 1 + class 3", "accuracy drop"] == pytest.approx(part[..., -1].mean() - part[..., 0].mean())
    ratio = accuracy.relative_corruption_error(accuracy.by_shift(alone, BOOTSTRAP), reference="m0")
    expected = ratio[(ratio["shift"] == accuracy.MEAN) & (ratio["model"] != "m0")]
    assert expected["defined"].all() and table["class 1 + class 3", "rCE"] == pytest.approx(expected["estimate"].mean())


def test_the_drop_is_steadier_where_classes_differ_only_in_their_start():
    """Classes that are right 1/5 to 4/5 of the time at scale 0 and lose the same: all the spread is in the start."""
    rows = {f"c{i}": {"m": [[int(seed >= i), int(seed >= i - 1)] for seed in range(5)]} for i in (2, 3, 4, 5)}
    steady = ablation.steadier(outcomes(rows), 2, settings=BOOTSTRAP)
    spread = np.std([1 - np.mean(pair) for pair in itertools.combinations([3 / 5, 2 / 5, 1 / 5, 0], 2)])
    assert steady["estimate"] == pytest.approx(spread) and steady["n"] == 20
