import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import torch
from golden_units import difference
from safetensors.torch import load_file
from scipy import stats

from cnslib.core import names, recipes, tables
from cnslib.core.settings.sections import Inversion
from cnslib.data import catalog, imagenet
from cnslib.method import inversion
from cnslib.models import text_to_image

CLASSES = ["sneaker", "ankle boot"]
LEARNING = {"learning_rate": 1e-2, "steps": 3, "batch_size": 2, "images_per_class": 3, "validation_images": 3, "seed": 1}
SETTINGS = Inversion(**LEARNING, sampling_steps=2, guidance=2.0, judge="", features="")


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


def test_the_embedding_starts_at_the_mean_of_the_names_tokens_moves_and_keeps_its_length(pipe, invert):
    rows, table = pipe.tokenizer("ankle boot").input_ids[1:-1], pipe.text_encoder.get_input_embeddings().weight
    start, end = inversion.initial_vector(pipe, "ankle boot"), learned(invert(["ankle boot"], learning_rate=0.1)["ankle boot"])
    assert len(rows) > 1 and torch.allclose(start, table[rows].sum(dim=0) / len(rows))
    assert not torch.allclose(start, end, atol=1e-3) and end.norm().item() == pytest.approx(start.norm().item(), rel=1e-5)


def test_training_lowers_the_loss_on_fixed_noise(pipe, pictures, invert):
    path = invert(["sneaker"], learning_rate=0.05, steps=15, batch_size=3)["sneaker"]
    latents = inversion.encode(pipe, catalog.images(pictures, "train", "sneaker", count=3, side=64)).repeat(8, 1, 1, 1)
    prompt = inversion.prompt_ids(pipe, "sneaker")

    def loss(vector):
        with torch.no_grad():
            generator = torch.Generator().manual_seed(3)
            return inversion.denoising_loss(pipe, latents, inversion.text(pipe, *prompt, vector), generator=generator).item()

    assert loss(learned(path)) < loss(inversion.initial_vector(pipe, "sneaker"))


def test_a_saved_token_loads_in_a_fresh_pipeline_as_one_id_and_its_prompt_is_that_of_the_training(pipe, invert, tiny_pipeline_dir):
    path, fresh = invert(["ankle boot"])["ankle boot"], text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    fresh.load_textual_inversion(path)
    (number,) = fresh.tokenizer(names.token("ankle boot"), add_special_tokens=False).input_ids
    assert torch.equal(fresh.text_encoder.get_input_embeddings().weight[number], learned(path))
    with torch.no_grad():
        trained = inversion.text(pipe, *inversion.prompt_ids(pipe, "ankle boot"), learned(path))
    assert torch.equal(trained, text_to_image.embed(fresh, ["a picture of a <ankle-boot*>"]))


def test_noise_predicting_models_are_trained_on_the_noise(pipe):
    latents, zero = torch.zeros(4, 4, 16, 16), lambda *inputs: type("Output", (), {"sample": torch.zeros(4, 4, 16, 16)})
    pipe.unet.forward = zero
    pipe.scheduler.register_to_config(prediction_type="epsilon")
    loss = inversion.denoising_loss(pipe, latents, torch.zeros(1, 24, 16), generator=torch.Generator().manual_seed(0))
    noise = torch.randn(4, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    assert loss.item() == pytest.approx(noise.square().mean().item(), rel=1e-6)


def test_a_token_alone_has_the_same_bytes_as_after_others_and_is_the_golden_one(invert, tmp_path):
    both = {name: path.read_bytes() for name, path in invert(folder=tmp_path / "both").items()}
    assert invert(["ankle boot"])["ankle boot"].read_bytes() == both["ankle boot"]
    assert not difference(recipes.TOKENS, tmp_path / "both" / "sneaker.safetensors", within=1e-3)


def test_a_loss_that_is_not_a_number_is_named(pipe, invert, tmp_path):
    pipe.unet.conv_in.weight.data.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="token of sneaker"):
        invert()
    assert not list(tmp_path.glob("*.safetensors"))


def normal(rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def test_the_distance_is_zero_of_equal_sets_the_squared_shift_of_shifted_ones_and_else_that_of_the_matrix_root():
    for rows in (4, 300):
        assert inversion.frechet_distance(normal(rows, 16), normal(rows, 16)) == pytest.approx(0, abs=1e-9)
    shift = np.arange(8) / 4
    assert inversion.frechet_distance(normal(300, 8), normal(300, 8) + shift) == pytest.approx((shift**2).sum())
    a, b = normal(200, 6) @ normal(6, 6, 1), normal(150, 6, 2) @ normal(6, 6, 3) + 1
    s, t = np.cov(a.T), np.cov(b.T)
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(s + t - 2 * scipy.linalg.sqrtm(s @ t).real)
    assert inversion.frechet_distance(a, b) == pytest.approx(expected)
    with pytest.raises(ValueError, match="sets of 1 and 5 rows"):
        inversion.frechet_distance(normal(1, 3), normal(5, 3))


def grid(seeds, prompts=("text", "in_star"), classes=CLASSES):
    rows = [(prompt, name, seed) for prompt in prompts for name in classes for seed in range(1, seeds + 1)]
    return pd.DataFrame(rows, columns=["prompt", "class", "seed"])


def test_accuracy_is_counted_by_class_and_its_interval_by_seed():
    drawn = grid(4)
    correct = ((drawn["prompt"] == "in_star") | (drawn["seed"] <= 2)).to_numpy()
    table = inversion.compare(drawn, lambda _, rows: correct[rows].mean(), highest=1.0, confidence=0.95).set_index(["class", "prompt"])
    assert table.loc[("all", "in_star"), ["n", "estimate", "low", "high"]].tolist() == [8, 1, 1, 1]
    assert table.loc[("sneaker", "text"), ["n", "estimate"]].tolist() == [4, 0.5]
    low, high = stats.t.interval(0.95, 3, loc=0.5, scale=np.std([1, 1, 0, 0], ddof=1) / 2)
    assert table.loc[("all", "difference"), ["low", "high"]].tolist() == pytest.approx([low, high])
    assert table.loc[("all", "text"), ["low", "high"]].tolist() == [max(1 - high, 0), min(1 - low, 1)]


def test_the_nearest_real_image_is_that_of_the_class_with_the_largest_cosine():
    table = grid(2, ["in_star"])
    features = np.array([[1.0, 0], [0, 2], [3, 3], [-1, 0]])
    learned = {"sneaker": np.array([[0.0, 1], [1, 1]]), "ankle boot": np.array([[0.0, 5], [4, 4], [-2, 0]])}
    found = inversion.neighbours(table, features, {"learned": learned})
    assert found["learned_place"].tolist() == [1, 0, 1, 2]
    assert found["learned"].tolist() == pytest.approx([1 - np.sqrt(0.5), 0, 0, 0], abs=1e-12)


def test_an_image_as_near_to_both_sides_counts_half():
    found = grid(4, ["in_star"], ["sneaker"]).assign(learned=[0.1, 0.2, 0.3, 0.1], heldout=[0.1, 0.1, 0.4, 0.3])
    assert inversion.nearer(found, "learned", "heldout", confidence=0.95)["estimate"] == (0.5 + 0 + 1 + 1) / 4


@pytest.fixture
def known(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return pipe


@pytest.fixture
def draw_all(known, tiny_pipeline_dir, tiny_tokens_dir, tmp_path):
    def call(classes=CLASSES, **changes):
        origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, classes)
        return inversion.draw_all(known, classes, settings=dataclasses.replace(SETTINGS, **changes), origin=origin, folder=tmp_path)

    return call


def test_every_class_is_drawn_by_name_and_by_token_from_the_same_noise(draw_all, known):
    drawn = draw_all()
    assert not difference(recipes.SAMPLES, drawn)
    assert sorted(drawn.groupby(["prompt", "class"])["seed"].agg(list).items()) == [
        ((prompt, name), [1, 2, 3]) for prompt in ("in_star", "text") for name in sorted(CLASSES)
    ]
    pictures = tables.pictures(drawn.query("`class` == 'sneaker' and prompt == 'text'"), "drawn")
    for seed, picture in enumerate(pictures, 1):
        alone = known("a picture of a sneaker", generator=torch.Generator().manual_seed(seed), num_inference_steps=2, guidance_scale=2.0)
        assert np.abs(np.asarray(alone.images[0]).astype(int) - picture).max() <= 1


def test_given_tokens_are_taken_over_as_they_are_and_their_width_is_checked(pipe, tmp_path):
    vectors = {name: torch.arange(16.0) + imagenet.index(name) for name in ("hen", "lion")}
    for folder, own in {"given": vectors, "narrow": {"hen": torch.zeros(8)}}.items():
        (tmp_path / folder).mkdir()
        for name, vector in own.items():
            torch.save(vector, tmp_path / folder / f"{imagenet.index(name)}.bin")
    place = {"settings": SETTINGS, "pictures": tmp_path, "base": "base", "folder": tmp_path / "ours"}
    found = inversion.make_tokens(pipe, list(vectors), in_star=str(tmp_path / "given"), **place)
    for name, path in found.items():
        (vector,) = load_file(path).values()
        assert torch.equal(vector.flatten(), vectors[name])
    with pytest.raises(ValueError, match=r"base\.in_star, width of the tokens in .*narrow: 8 is not accepted; accepted: 16"):
        inversion.make_tokens(pipe, ["hen"], in_star=str(tmp_path / "narrow"), **place)
