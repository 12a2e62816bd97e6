"""Random models of every kind for the OOD-CV comparison."""

import dataclasses

import pytest
import timm
import torch
from tiny_encoders import write_clip, write_timm
from tiny_garments import VIT
from tiny_oodcv import CLASSES, SETTINGS, plentiful

from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Generation
from cnslib.method import filtering
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.studies.oodcv import weather
from cnslib.studies.oodcv.training import FineTuning
from cnslib.world import scenes, zoo

DRAWING = Generation(
    steps=7, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=SETTINGS.start_fraction, negative_prompt="", quality=0
)


@pytest.fixture(scope="session")
def study(tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory) -> weather.Study:
    """Random models of every kind. Read only."""
    folder = tmp_path_factory.mktemp("oodcv")
    for number, name in enumerate(SETTINGS.networks):
        torch.manual_seed(number)
        network = zoo.network_of(VIT)
        model = timm.create_model(network["architecture"], num_classes=2, **network["arguments"])
        zoo.save(model, folder / name, **network)
    write_timm(folder / "encoder", outputs=0)
    write_timm(folder / "oracle", outputs=len(CLASSES) + len(SHIFTS) + 2)
    write_clip(folder / "clip")
    settings = dataclasses.replace(SETTINGS, networks={name: str(folder / name) for name in SETTINGS.networks})
    oracle = encoders.Oracle(str(folder / "oracle"), labels=CLASSES)
    judges = filtering.Judges(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "encoder")), oracle)
    tuning = FineTuning(settings, CLASSES, CLASSES, folder / "weights", folder / "training", "cpu")
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    for number, name in enumerate(CLASSES):
        for shift in settings.shifts:
            write_slider(pipe, slider_path(folder / "sliders", shift, name), number)
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    return weather.Study(Sampler(pipe, settings=DRAWING), origin, folder / "sliders", judges, tuning)


@pytest.fixture(autouse=True)
def synthetic(monkeypatch):
    """Synthetic garments in place of the data set."""
    monkeypatch.setattr(scenes, "garments", plentiful)


def write_slider(pipe, path, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with adapters.fresh(pipe, rank=2, alpha=1.0, generator=generator) as weights:
        for weight in weights:
            weight.data.copy_(0.3 * torch.randn(weight.shape, generator=generator))
        adapters.save(pipe, path, {})
