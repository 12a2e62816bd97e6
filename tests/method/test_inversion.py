"""Textual inversion: what is learned, what stays as it was, and what a token's bytes depend on."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import agrees
from safetensors.torch import load_file

from cnslib.core import kinds, names, tables, units
from cnslib.core.settings.method import Inversion
from cnslib.data import catalog
from cnslib.method import inversion
from cnslib.models import text_to_image

CLASSES = ["sneaker", "ankle boot"]
SETTINGS = Inversion(
    learning_rate=1e-2, steps=3, batch_size=2, images_per_class=3, validation_images=3, sampling_steps=2, guidance=1.0, judge="", seed=1
)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    path = tmp_path_factory.mktemp("catalog") / "catalog.parquet"
    drawn = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64, 3), dtype=np.uint8)
    rows = [
        {"split": "train", "class": name, "seed": seed, "image": tables.encode(drawn[number, seed])}
        for number, name in enumerate(CLASSES)
        for seed in range(3)
    ]
    tables.write(pd.DataFrame(rows), path, tables.catalog)
    return path


@pytest.fixture
def pipe(tiny_pipeline_dir):
    return text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")


@pytest.fixture
def invert(pipe, pictures, tmp_path):
    def call(classes=CLASSES, folder=tmp_path, base="base", **changes):
        settings = dataclasses.replace(SETTINGS, **changes)
        return inversion.invert_all(pipe, classes, settings=settings, pictures=pictures, base=base, folder=folder)

    return call


def learned(path):
    (vector,) = load_file(path).values()
    return vector


def weights(pipe):
    parts = (pipe.unet, pipe.vae, pipe.text_encoder)
    return [value.clone() for part in parts for value in part.state_dict().values()]


def stamps(paths):
    return {name: path.stat().st_mtime_ns for name, path in paths.items()}


def test_a_token_is_lower_case_without_blanks():
    assert names.token("ankle boot") == "<ankle-boot*>"
    assert names.token("Great White Shark") == "<great-white-shark*>"


def test_nothing_of_the_pipeline_changes(pipe, invert):
    before, vocabulary = weights(pipe), pipe.tokenizer.get_vocab()
    invert()
    assert all(torch.equal(old, new) for old, new in zip(before, weights(pipe), strict=True))
    assert pipe.tokenizer.get_vocab() == vocabulary
    assert not pipe.text_encoder.get_input_embeddings()._forward_hooks


def test_the_start_is_the_mean_of_the_embeddings_of_the_name(pipe):
    rows = pipe.tokenizer("ankle boot").input_ids[1:-1]
    table = pipe.text_encoder.get_input_embeddings().weight
    assert len(rows) > 1
    assert torch.allclose(inversion.initial_vector(pipe, "ankle boot"), table[rows].sum(dim=0) / len(rows))


def test_the_embedding_moves_and_keeps_the_length_of_its_start(pipe, invert):
    for name, path in invert(learning_rate=0.1).items():
        start, end = inversion.initial_vector(pipe, name), learned(path)
        assert not torch.allclose(start, end, atol=1e-3)
        assert end.norm().item() == pytest.approx(start.norm().item(), rel=1e-5)


def test_training_lowers_the_loss_on_fixed_noise(pipe, pictures, invert):
    path = invert(["sneaker"], learning_rate=0.05, steps=40, batch_size=3)["sneaker"]
    latents = inversion.encode(pipe, catalog.images(pictures, "train", "sneaker", count=3, side=64)).repeat(8, 1, 1, 1)
    prompt = inversion.prompt_ids(pipe, "sneaker")

    def loss(vector):
        with torch.no_grad():
            generator = torch.Generator().manual_seed(3)
            return inversion.denoising_loss(pipe, latents, inversion.text(pipe, *prompt, vector), generator=generator).item()

    assert loss(learned(path)) < loss(inversion.initial_vector(pipe, "sneaker"))


def test_a_saved_token_loads_in_a_fresh_pipeline_as_one_id_with_its_embedding(invert, tiny_pipeline_dir):
    paths = invert()
    fresh = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    for name, path in paths.items():
        fresh.load_textual_inversion(path)
        (number,) = fresh.tokenizer(names.token(name), add_special_tokens=False).input_ids
        assert torch.equal(fresh.text_encoder.get_input_embeddings().weight[number], learned(path))


def test_the_prompt_seen_in_training_is_the_prompt_of_the_loaded_token(pipe, invert, tiny_pipeline_dir):
    path = invert(["ankle boot"])["ankle boot"]
    fresh = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    fresh.load_textual_inversion(path)
    with torch.no_grad():
        trained = inversion.text(pipe, *inversion.prompt_ids(pipe, "ankle boot"), learned(path))
    assert torch.equal(trained, text_to_image.embed(fresh, ["a picture of a <ankle-boot*>"]))


def test_an_embedding_that_stays_at_an_existing_word_gives_that_words_prompt(pipe):
    (number,) = pipe.tokenizer("sneaker", add_special_tokens=False).input_ids
    vector = pipe.text_encoder.get_input_embeddings().weight[number]
    with torch.no_grad():
        assert torch.equal(
            inversion.text(pipe, *inversion.prompt_ids(pipe, "ankle boot"), vector), text_to_image.embed(pipe, ["a picture of a sneaker"])
        )


def test_noise_predicting_models_are_trained_on_the_noise(pipe):
    latents, zero = torch.zeros(4, 4, 16, 16), lambda *inputs: type("Output", (), {"sample": torch.zeros(4, 4, 16, 16)})
    pipe.unet.forward = zero
    pipe.scheduler.register_to_config(prediction_type="epsilon")
    loss = inversion.denoising_loss(pipe, latents, torch.zeros(1, 24, 16), generator=torch.Generator().manual_seed(0))
    noise = torch.randn(4, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    assert loss.item() == pytest.approx(noise.square().mean().item(), rel=1e-6)


def test_class_order_does_not_change_bytes(invert, tmp_path):
    forth, back = invert(folder=tmp_path / "forth"), invert(CLASSES[::-1], folder=tmp_path / "back")
    assert {name: path.read_bytes() for name, path in forth.items()} == {name: path.read_bytes() for name, path in back.items()}


def test_a_killed_run_resumes_to_the_same_bytes(invert, tmp_path, monkeypatch):
    undisturbed = {name: path.read_bytes() for name, path in invert(folder=tmp_path / "undisturbed").items()}
    train = inversion.fit

    def killed(pipe, name, *inputs, **settings):
        if name == "ankle boot":
            raise KeyboardInterrupt
        return train(pipe, name, *inputs, **settings)

    monkeypatch.setattr(inversion, "fit", killed)
    with pytest.raises(KeyboardInterrupt):
        invert()
    monkeypatch.setattr(inversion, "fit", train)
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["sneaker.safetensors"]
    assert {name: path.read_bytes() for name, path in invert().items()} == undisturbed


def test_a_second_run_trains_nothing(invert):
    first = stamps(invert())
    assert stamps(invert()) == first


def test_settings_of_the_comparison_retrain_nothing(invert):
    first = stamps(invert())
    assert stamps(invert(validation_images=9, guidance=7.0, sampling_steps=50, judge="other")) == first


def test_seed_base_model_and_steps_retrain(invert):
    old = {name: path.read_bytes() for name, path in invert().items()}
    for changes in ({"seed": 2}, {"steps": 4}):
        assert all(path.read_bytes() != old[name] for name, path in invert(**changes).items())
    first = stamps(invert())
    assert all(stamp != first[name] for name, stamp in stamps(invert(base="another")).items())


def test_a_class_that_is_no_longer_asked_for_is_deleted(invert, tmp_path):
    invert()
    invert(["sneaker"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sneaker.safetensors", "sneaker.safetensors.digest"]


def test_two_classes_with_one_token_are_named(invert):
    with pytest.raises(ValueError, match=r"'Ankle Boot'.*<ankle-boot\*>"):
        invert(["ankle boot", "Ankle Boot"])


def test_a_loss_that_is_not_a_number_names_the_class_and_writes_nothing(pipe, invert, tmp_path):
    pipe.unet.conv_in.weight.data.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="token of sneaker"):
        invert()
    assert not list(tmp_path.glob("*.safetensors"))


def test_the_file_tells_class_settings_and_losses(invert):
    path = invert(["sneaker"])["sneaker"]
    assert len(inversion.loss_curve(path)) == SETTINGS.steps
    assert units.done(path, path.with_name("sneaker.safetensors.digest").read_text().split()[0])


def test_the_tiny_unit_is_the_golden_one(invert):
    agrees(kinds.TOKENS, invert()["sneaker"], within=1e-3)
