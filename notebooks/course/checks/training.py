"""Lesson 3: a slider that is trained in the lesson, and a pair of trajectories to look at."""

from dataclasses import replace

import numpy as np
import pandas as pd
from cnslib.core import paths, tables
from cnslib.core.settings.read import Run
from cnslib.method import generation, sliders
from cnslib.models import adapters, classifiers, encoders, text_to_image
from cnslib.stats import accuracy, failure
from jaxtyping import UInt8

BATCH = 2  # latents per iteration; 8 for the benchmark


def success_and_failure(predictions: pd.DataFrame, kept: pd.DataFrame, model: str, *, right: str, fails: str) -> pd.DataFrame:
    """The first kept trajectory of one shift on which a model is right at every scale, and the first of another on which it fails."""
    points = failure.failure_points(accuracy.wrong_predictions(predictions, kept[kept["shift"].isin([right, fails])]))
    own = points[(points["model"] == model) & (points["failure_point"] != 0)]
    pair = pd.concat([own[~own["failed"] & (own["shift"] == right)].head(1), own[own["failed"] & (own["shift"] == fails)].head(1)])
    return pair[["model", *tables.TRAJECTORY]]


def own_slider(run: Run, shift: str, name: str, *, seed: int) -> tuple[UInt8[np.ndarray, "1 scales side side 3"], pd.DataFrame]:
    """Trains a slider as the benchmark does with a smaller batch, draws one trajectory with it, and lets a ResNet predict each image."""
    path, tokens = paths.resolve(run.base.pipeline), run.layout.artifacts("inversion")
    pipe = text_to_image.load_pipeline(path, run.base.device)
    text_to_image.load_tokens(pipe, tokens, run.base.classes)
    origin = text_to_image.origin(path, tokens, run.base.classes)
    inputs = {"recipe": run.base.recipe, "settings": replace(run.settings, batch_size=BATCH), "origin": origin}
    files = sliders.make_sliders(pipe, [shift], [name], **inputs, folder=paths.ROOT / "build/course")
    sampler = generation.Sampler(pipe, settings=run.generation, mode=generation.SAMPLING_MODES["exact"])
    with adapters.loaded(pipe, files[shift, name]):
        images = sampler.shifted(name, seed, run.base.scales).numpy()
    labels = encoders.read_labels(run.base.labels)
    resnet = classifiers.load("resnet", run.evaluation.classifiers["resnet"], labels)
    top = [labels[place] for place in resnet.class_probability(images).argmax(dim=1).tolist()]
    said = pd.DataFrame({"model": "resnet", "shift": shift, "class": name, "seed": seed, "scale": run.base.scales, "top1": top})
    return images[None], said


def key(said: pd.DataFrame) -> pd.DataFrame:
    """The one trajectory of some predictions."""
    return said[["model", *tables.TRAJECTORY]].head(1)
