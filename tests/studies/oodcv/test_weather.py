"""The OOD-CV comparison on tiny models: what is rendered, drawn, trained and looked at, once, and no more than is missing."""

import dataclasses
import shutil

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import agrees
from tiny_encoders import write_clip, write_timm
from tiny_garments import VIT, garments
from tiny_settings import changed

from cnslib.core import kinds, tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.core.settings.analyses import Oodcv
from cnslib.core.settings.method import Bootstrap, Generation
from cnslib.method import filtering
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.studies.oodcv import generated, training, weather
from cnslib.studies.oodcv.training import FineTuning, Scenes
from cnslib.studies.oodcv.weather import Panel
from cnslib.world import scenes, zoo

CLASSES = ["sneaker", "ankle boot"]
SETTINGS = Oodcv(
    bootstrap=Bootstrap(resamples=10, confidence=0.95, seed=1),
    seed=1,
    shifts=["heavy snow", "heavy fog"],
    scales=[0.0, 1.0, 3.0],
    seeds=1,
    start_fraction=0.85,
    unknown="a picture of a {name}",
    reference_images=4,
    ladder_images=2,
    severities=2,
    networks={"one": "", "two": ""},
    training_images=2,
    validation_images=1,
    epochs=3,
    patience=1,
    batch_size=2,
    learning_rate=1e-3,
    rotation=15.0,
    zoom=1.2,
)
DRAWING = Generation(steps=7, guidance=3.0, guidances=[3.0], start_fraction=SETTINGS.start_fraction, negative_prompt="")


def plentiful(_folder=None, _pool=None) -> scenes.Garments:
    """Ten copies of the synthetic garments: enough of every class."""
    few = garments()
    return scenes.Garments(few.grey.repeat(10, 1, 1), np.tile(few.labels, 10))


@pytest.fixture(scope="module")
def studio(tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory) -> generated.Studio:
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
    return generated.Studio(Sampler(pipe, settings=DRAWING), origin, folder / "sliders", Panel(judges, tuning))


@pytest.fixture(autouse=True)
def synthetic(monkeypatch):
    """Synthetic garments in place of the data set, all work in this process."""
    monkeypatch.setattr(scenes, "garments", plentiful)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")


def write_slider(pipe, path, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with adapters.fresh(pipe, rank=2, alpha=1.0, generator=generator) as weights:
        for weight in weights:
            weight.data.copy_(0.3 * torch.randn(weight.shape, generator=generator))
        adapters.save(pipe, path, {})


def test_a_garment_of_the_reference_has_one_weather_and_unshifted_ones_no_severity():
    plan = weather.reference_plan(CLASSES, settings=SETTINGS)
    assert not plan.duplicated(["class", "seed"]).any()
    counts = plan.groupby("shift").size().to_dict()
    assert counts == {"heavy snow": 8, "heavy fog": 8, "heavy sandstorm": 4, UNSHIFTED: 4}
    assert (plan.loc[plan["shift"] == UNSHIFTED, "scale"] == 0).all() and plan["scale"].between(0, 1).all()
    many = weather.reference_plan(CLASSES, settings=dataclasses.replace(SETTINGS, reference_images=500))
    means = many[many["shift"].isin(SETTINGS.shifts)].groupby("shift")["scale"].mean()
    assert means.between(0.5 - 3 / np.sqrt(12 * 1000), 0.5 + 3 / np.sqrt(12 * 1000)).all()


def test_the_ladder_has_other_garments_and_begins_at_the_same_picture_under_every_weather():
    reference = weather.reference_plan(CLASSES, settings=SETTINGS)
    plans = [weather.ladder_plan(CLASSES, shift, settings=SETTINGS) for shift in SETTINGS.shifts]
    both = [reference[["class", "seed"]].drop_duplicates(), plans[0][["class", "seed"]].drop_duplicates()]
    assert not pd.concat(both).duplicated().any()
    assert sorted(plans[0]["scale"].unique()) == [0.0, 0.5, 1.0]
    pictures = [weather.rendered(plentiful(), plan, seed=1) for plan in plans]
    start = (plans[0]["scale"] == 0).to_numpy()
    assert np.array_equal(pictures[0][start], pictures[1][start]) and not np.array_equal(pictures[0][~start], pictures[1][~start])


def test_a_picture_does_not_depend_on_its_neighbours():
    plan = weather.reference_plan(CLASSES, settings=SETTINGS)
    whole = weather.rendered(plentiful(), plan, seed=1)
    assert np.array_equal(weather.rendered(plentiful(), plan.iloc[5:7].reset_index(drop=True), seed=1), whole[5:7])


def test_training_stops_after_the_patience_and_returns_the_best_epoch(studio, monkeypatch):
    tuning, accuracies, calls = studio.panel.tuning, [0.2, 0.6, 0.6, 0.5, 0.9], []
    settings = dataclasses.replace(tuning.settings, epochs=5, patience=2)
    states = []

    def spy(model, _found):
        states.append({key: value.clone() for key, value in model.state_dict().items()})
        calls.append(1)
        return accuracies[len(calls) - 1]

    monkeypatch.setattr(training, "share_correct", spy)
    scenes = Scenes(torch.rand(4, 3, 64, 64), torch.tensor([0, 1, 0, 1]))
    own = dataclasses.replace(tuning, settings=settings)
    model, history = training.finetune(settings.networks["one"], scenes, scenes, name="one", outputs=2, tuning=own)
    assert history["accuracy"].tolist() == accuracies[:4]  # a tie is no gain: two epochs after the second the training ends
    assert history["best"].tolist() == [False, True, False, False]
    assert all(torch.equal(value, states[1][key]) for key, value in model.state_dict().items())
    assert any(not torch.equal(value, states[3][key]) for key, value in model.state_dict().items())


def test_training_learns_what_can_be_learned(studio):
    settings = dataclasses.replace(studio.panel.tuning.settings, epochs=6, patience=6, batch_size=8, learning_rate=1e-2)
    label = torch.arange(16) % 2
    scenes = Scenes((0.2 + 0.6 * label.float())[:, None, None, None].expand(-1, 3, 64, 64).contiguous(), label)
    own = dataclasses.replace(studio.panel.tuning, settings=settings)
    _, history = training.finetune(settings.networks["one"], scenes, scenes, name="one", outputs=2, tuning=own)
    assert history["accuracy"].max() == 1.0 and history["loss"].iloc[-1] < history["loss"].iloc[0]


def test_everything_is_made_once_and_only_what_is_missing_is_made_again(studio, tmp_path, monkeypatch):
    """Reference, ladder and images are there after one run; a lost class is drawn again and nothing else is."""
    panel, tuning = studio.panel, studio.panel.tuning
    assert set(tuning.histories()["model"]) == set(SETTINGS.networks)
    found = generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    keys = [(shift, name, 1, scale) for shift in SETTINGS.shifts for name in CLASSES for scale in SETTINGS.scales]
    tables.complete(found, keys, tables.KEY, "generated")
    assert set(found["one"]) <= set(CLASSES)
    assert len(weather.reference(CLASSES, panel=panel, folder=tmp_path)) == 24
    assert len(weather.ladder(CLASSES, panel=panel, folder=tmp_path / "ladder")) == 2 * 2 * 2 * 3
    drawn, original = [], generated.draw
    monkeypatch.setattr(generated, "draw", lambda *a: drawn.append(a[1:3]) or original(*a))
    monkeypatch.setattr(weather, "answers", lambda *a: pytest.fail("asked again"))
    generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    weather.reference(CLASSES, panel=panel, folder=tmp_path)
    weather.ladder(CLASSES, panel=panel, folder=tmp_path / "ladder")
    monkeypatch.undo()
    assert drawn == []
    before = {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")}
    (tmp_path / "generated" / "sneaker.parquet").unlink()
    shutil.rmtree(tuning.weights)
    monkeypatch.setattr(scenes, "garments", plentiful)
    monkeypatch.setattr(generated, "draw", lambda *a: drawn.append(a[1:3]) or original(*a))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    assert {name for _, name in drawn} == {"sneaker"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "generated").glob("*.parquet")} == before


def test_a_picture_that_is_shown_is_the_one_that_was_looked_at(studio, tmp_path):
    found = generated.generated(studio, CLASSES, folder=tmp_path / "generated")
    wanted = found[(found["class"] == "sneaker") & found["scale"].isin([0.0, 3.0])]
    shown = generated.shown(studio, wanted, path=tmp_path / "shown.parquet")
    assert sorted(zip(shown["shift"], shown["scale"], strict=True)) == [("heavy fog", 3.0), ("heavy snow", 3.0), (UNSHIFTED, 0.0)]
    pictures = dict(zip(shown["shift"], tables.pictures(shown, "shown"), strict=True))
    for row in wanted[wanted["scale"] == 3].itertuples():
        seen = studio.panel.judges.clip.image_features(pictures[row.shift][None]).numpy()[0]
        assert np.allclose(seen, row.features, atol=1e-3)


def test_a_slider_or_a_scale_that_changes_outdates_its_class(studio):
    other = dataclasses.replace(studio.panel.tuning.settings, scales=[0.0, 2.0])
    changed = dataclasses.replace(studio, panel=Panel(studio.panel.judges, dataclasses.replace(studio.panel.tuning, settings=other)))
    assert changed.drawing("sneaker") != studio.drawing("sneaker")
    assert studio.drawing("sneaker") != studio.drawing("ankle boot")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shifts": ["heavy hail"]}, r"oodcv\.shifts\.0: 'heavy hail'"),
        ({"scales": [0.5, 1.0]}, r"oodcv\.scales: \[0\.5"),
        ({"unknown": "no weather"}, r"oodcv\.unknown: 'no weather'"),
        ({"zoom": 0.5}, r"oodcv\.zoom: 0\.5"),
        ({"patience": 0}, r"oodcv\.patience: 0"),
    ],
)
def test_settings_that_cannot_be_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **change)


def test_a_class_that_is_no_garment_is_named():
    with pytest.raises(ValueError, match=r"base\.classes: 'aeroplane'"):
        weather.heldout(["aeroplane"])


def test_the_tiny_units_are_the_golden_ones(studio, tmp_path):
    """Answers of networks that were trained in bf16 are left out, processors round it in their own way."""
    panel, trained = studio.panel, tuple(SETTINGS.networks)
    agrees(kinds.WEATHER, weather.reference(CLASSES, panel=panel, folder=tmp_path), within=1e-3, skip=trained)
    agrees(kinds.WEATHER_DRAWN, generated.generated(studio, CLASSES, folder=tmp_path / "generated"), within=1e-3, skip=trained)
    agrees(kinds.FINETUNED, panel.tuning.histories().drop(columns=["accuracy", "best"]), within=0.05)
