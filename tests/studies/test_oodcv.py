import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import difference
from PIL import Image
from tiny_encoders import write_clip, write_timm
from tiny_garments import VIT
from tiny_oodcv import CLASSES, SETTINGS, plentiful
from tiny_settings import resampled
from tiny_sliders import pipeline, random_sliders

from cnslib.core import recipes, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.core.settings.method import Generation
from cnslib.data import oodcv as files
from cnslib.method import filtering
from cnslib.method.generation import Sampler
from cnslib.models import encoders, text_to_image
from cnslib.studies import oodcv
from cnslib.world import scenes, zoo

DRAWING = Generation(7, 3.0, [0.0, 1.0], [3.0], SETTINGS.start_fraction, "", 0, 0)
PLAN = oodcv.reference_plan(CLASSES, settings=SETTINGS)
LADDER = {shift: oodcv.ladder_plan(CLASSES, shift, settings=SETTINGS) for shift in SETTINGS.shifts}


@pytest.fixture(autouse=True)
def synthetic(monkeypatch):
    monkeypatch.setattr(scenes, "garments", plentiful)


@pytest.fixture(scope="module")
def study(in_place, tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory) -> oodcv.Study:
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
    tuning = oodcv.FineTuning(settings, CLASSES, CLASSES, folder / "weights", folder / "training", "cpu")
    pipe = pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    sliders = random_sliders(pipe, folder / "sliders", settings.shifts, CLASSES, rank=2)
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    return oodcv.Study(Sampler(pipe, settings=DRAWING), origin, sliders, judges, tuning)


# Names as the released label files have them; the class train ends in the word rain.
WEATHER = {
    "collection_train_train_+_snow_OR_snowy_google_0003_0.jpg": ("train", "snow"),
    "collection_train_train_+_fog_OR_foggy_OR_smog_google_0110_0.jpg": ("train", "fog"),
    "collection_boat_boat_+_rain_OR_rainy_naver_0006_0.jpg": ("boat", "rain"),
    "collection_boat_boat_in_foggy_day_google_0067_1.jpg": ("boat", "fog"),
    "collection_boat_boat_in_desert_google_0001_0.jpg": ("boat", "sand"),
}


def released(root: Path, split: str) -> Path:
    for number, (name, (label, _)) in enumerate(WEATHER.items()):
        (root / split / "Images" / label).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20 + number, 30), (number, 0, 0)).save(root / split / "Images" / label / name, quality=100)
    rows = [{"imgs": name, "labels": label, "azimuth": 1.5} for name, (label, _) in WEATHER.items()]
    pd.DataFrame(rows).to_csv(root / split / "labels.csv", index=False)
    return root / split


@pytest.mark.parametrize("split", ["nuisances/weather", "train"])
def test_each_picture_has_its_class_its_size_and_the_weather_it_was_crawled_for(tmp_path, split):
    released(tmp_path, split)
    table, pictures = files.read(tmp_path, Path(split).name, classes=["boat", "train"])
    assert dict(zip(table["name"], zip(table["class"], table["weather"], strict=True), strict=True)) == WEATHER
    assert [picture.shape for picture in pictures] == [(30, 20 + number, 3) for number in range(5)]
    assert set(files.read(tmp_path, Path(split).name, classes=["train"])[0]["class"]) == {"train"}


def test_training_stops_after_the_patience_and_returns_the_best_epoch(study, monkeypatch):
    accuracies, states = [0.2, 0.6, 0.6, 0.5, 0.9], []

    def spy(model, _found):
        states.append({key: value.clone() for key, value in model.state_dict().items()})
        return accuracies[len(states) - 1]

    monkeypatch.setattr(oodcv, "share_correct", spy)
    shown = torch.rand(4, 3, 64, 64), torch.tensor([0, 1, 0, 1])
    tuning = dataclasses.replace(study.tuning, settings=dataclasses.replace(study.tuning.settings, epochs=5, patience=2))
    model, history = oodcv.finetune(tuning, "one", shown, shown)
    assert history["accuracy"].tolist() == accuracies[:4]  # a tie is no gain: two epochs after the second the training ends
    assert history["best"].tolist() == [False, True, False, False]
    assert all(torch.equal(value, states[1][key]) for key, value in model.state_dict().items())
    assert any(not torch.equal(value, states[3][key]) for key, value in model.state_dict().items())


def test_the_losses_of_a_training_are_the_golden_ones(study):
    assert not difference(recipes.FINETUNED, study.tuning.histories().drop(columns=["accuracy", "best"]), within=0.05)


def test_a_garment_of_the_reference_has_one_weather_and_the_ladder_has_other_garments():
    assert not PLAN.duplicated(["class", "seed"]).any()
    assert PLAN.groupby("shift").size().to_dict() == {"heavy snow": 8, "heavy fog": 8, "heavy sandstorm": 4, UNSHIFTED: 4}
    assert (PLAN.loc[PLAN["shift"] == UNSHIFTED, "scale"] == 0).all() and PLAN["scale"].between(0, 1).all()
    both = [plan[["class", "seed"]].drop_duplicates() for plan in (PLAN, next(iter(LADDER.values())))]
    assert not pd.concat(both).duplicated().any()


def test_everything_is_looked_at_and_what_a_figure_shows_is_what_was_looked_at(study, tmp_path):
    reference = oodcv.rendered_predictions(study, {"reference": PLAN}, folder=tmp_path, features=True, pattern="reference.parquet")
    ladder = oodcv.rendered_predictions(study, LADDER, folder=tmp_path / "ladder", features=False)
    found = oodcv.generated(study, CLASSES, folder=tmp_path / "generated")
    keys = [(shift, name, 1, scale) for shift in SETTINGS.shifts for name in CLASSES for scale in SETTINGS.scales]
    tables.complete(found, keys, tables.KEY, "generated")
    within = {"within": 1e-3, "skip": tuple(SETTINGS.networks)}
    assert not difference(recipes.WEATHER_DRAWN, found, **within) and not difference(recipes.WEATHER, reference, **within)
    assert set(found["one"]) <= set(CLASSES) and len(ladder) == 2 * 2 * 2 * 3
    wanted = found[(found["class"] == "sneaker") & found["scale"].isin([0.0, 3.0])]
    shown = oodcv.shown(study, wanted, path=tmp_path / "shown.parquet")
    assert sorted(zip(shown["shift"], shown["scale"], strict=True)) == [("heavy fog", 3.0), ("heavy snow", 3.0), (UNSHIFTED, 0.0)]
    pictures = dict(zip(shown["shift"], tables.pictures(shown, "shown"), strict=True))
    for row in wanted[wanted["scale"] == 3].itertuples():
        assert np.allclose(study.judges.clip.image_features(pictures[row.shift][None]).numpy()[0], row.features, atol=1e-3)


def test_published_pictures_train_and_are_the_reference(study, tmp_path, monkeypatch):
    """The training set from disk, and weather by file name, sand too; the class without such pictures is absent."""
    monkeypatch.setattr(oodcv, "SIDE", 64)
    root = released(tmp_path / "robin", "nuisances/weather").parents[1]
    released(tmp_path / "robin", "train")
    classes = ["boat", "train", "sofa"]
    settings = dataclasses.replace(study.tuning.settings, root=str(root), training_images=1)
    places = {"weights": tmp_path / "weights", "folder": tmp_path / "training"}
    tuning = dataclasses.replace(study.tuning, settings=settings, classes=classes[:2], labels=classes, **places)
    images, labels = oodcv.catalog_scenes(tuning, "training", 0, 1)
    table, found = files.read(root, "train")
    first = found[table.index[table["class"] == "boat"][0]]
    assert labels.tolist() == [1, 0] and np.allclose(images[1].permute(1, 2, 0), oodcv.catalog.square(first, 64) / 255)
    reference = oodcv.photographed(dataclasses.replace(study, tuning=tuning), folder=tmp_path / "out")
    counts = reference.groupby(["shift", "class"]).size().to_dict()
    assert counts[("heavy sandstorm", "boat")] == 1 and counts[("heavy fog", "train")] == 1 and len(reference) == len(WEATHER)
    assert set(reference["one"]) <= {*classes} and len(reference["features"].iloc[0]) > 0
    (root / "train" / "labels.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"OOD-CV: .*train/labels\.csv does not exist; accepted: <root>/nuisances"):
        oodcv.catalog_scenes(tuning, "training", 0, 1)


WEATHERS = ["heavy snow", "heavy fog", "heavy rain"]


class Texts:
    """A CLIP whose text features are unit vectors: one axis per weather and one for none, whatever the class."""

    model = SimpleNamespace(logit_scale=torch.tensor(100.0).log())

    def text_features(self, texts: list[str]) -> torch.Tensor:
        words = [*[f"in {shift}" for shift in WEATHERS], "without"]
        return torch.stack([torch.eye(4)[next(i for i, word in enumerate(words) if word in text)] for text in texts])


def test_the_label_is_the_text_that_a_picture_is_closest_to():
    features = np.array([[0.9, 0.1, 0, 0.2], [0, 0.8, 0.7, 0], [0, 0, 1, 0], [0.5, 0.5, 0.5, 0.6]])
    classes = pd.Series(["bag", "coat", "bag", "coat"])
    found = oodcv.probabilities(features, classes, Texts(), shifts=WEATHERS, unknown="a {name} without weather")
    assert found.idxmax(axis=1).tolist() == [*WEATHERS, oodcv.UNKNOWN]
    assert found.sum(axis=1).tolist() == pytest.approx([1] * 4)
    assert found.loc[1, "heavy rain"] / found.loc[1, "heavy fog"] == pytest.approx(np.exp(-10), rel=1e-3)


def test_neighbours_are_the_closest_first_and_counted_against_chance():
    drawn = np.array([[1, 0], [0.6, 0.8], [0, 1], [-1, 0], [0.8, 0.6], [0.99, 0.1]])
    places, cosines = oodcv.nearest(np.array([[1.0, 0.0]]), drawn)
    assert places.tolist() == [[0, 5, 4, 1, 2]] and cosines[0].tolist() == pytest.approx([1, 0.99, 0.8, 0.6, 0])
    real = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": ["heavy fog"] * 2 + ["heavy snow"] * 2, "seed": [1, 2, 3, 4]})
    images = pd.DataFrame({"class": ["bag", "bag", "coat", "coat"], "shift": ["heavy fog", "heavy snow"] * 2})
    settings = resampled(100)
    found = oodcv.agreement(real, images, np.array([[0, 1], [0, 1], [3, 0], [3, 0]]), settings=settings).set_index("same")
    assert found["estimate"].to_dict() == {"class": 0.75, "weather": 0.5, "both": 0.5}
    assert found["chance"].to_dict() == {"class": 0.5, "weather": 0.5, "both": 0.25}
    assert (found["n"] == 8).all() and (found["low"] <= found["estimate"]).all()
