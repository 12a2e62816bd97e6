"""Tokens and sliders by the recipe that a parameter names, or taken from a folder."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_sliders import CLASSES, SETTINGS, SHIFTS, pipeline

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.data import imagenet
from cnslib.method import provision
from cnslib.models import text_to_image, tokens


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


def test_an_unknown_recipe_is_told_the_known_ones(pipe, origin, tmp_path):
    with pytest.raises(ValueError, match=r"base\.recipe: 'fats' is not accepted; accepted: paper, released, graded, fast, or a folder"):
        provision.make_sliders(pipe, SHIFTS, CLASSES, recipe="fats", settings=SETTINGS, origin=origin, folder=tmp_path)


@pytest.mark.parametrize("recipe", provision.RECIPES)
def test_every_recipe_costs_evaluations_and_sliders_of_a_folder_none(recipe):
    assert provision.evaluations(recipe, SETTINGS) > 0 == provision.evaluations("sliders of others", SETTINGS)


def test_tokens_of_a_path_that_does_not_exist_are_named(pipe, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"base\.in_star: .*nowhere does not exist; accepted: a folder of dataset interfaces"):
        provision.read_tokens(pipe, tmp_path / "nowhere", {"hen": 8})


def test_given_tokens_are_taken_over_as_they_are_and_their_width_is_checked(pipe, tmp_path):
    settings = read.load(paths.ROOT / "params.yaml")["inversion"]
    vectors = {name: torch.arange(16.0) + imagenet.index(name) for name in ("hen", "lion")}
    tokens.write_files(vectors, tmp_path / "given", classes={name: imagenet.index(name) for name in vectors})
    place = {"settings": settings, "pictures": tmp_path, "base": "base", "folder": tmp_path / "ours"}
    found = provision.make_tokens(pipe, list(vectors), in_star=str(tmp_path / "given"), **place)
    for name, path in found.items():
        (vector,) = load_file(path).values()
        assert torch.equal(vector.flatten(), vectors[name])
    tokens.write_files({"hen": torch.zeros(8)}, tmp_path / "narrow", classes={"hen": imagenet.index("hen")})
    with pytest.raises(ValueError, match=r"base\.in_star, width of the tokens in .*narrow: 8 is not accepted; accepted: 16"):
        provision.make_tokens(pipe, ["hen"], in_star=str(tmp_path / "narrow"), **place)


def test_the_published_encoder_is_read_from_its_folder_as_from_its_file(pipe, tmp_path):
    known = len(pipe.tokenizer)
    matrix = torch.randn(known + 1000, 16, generator=torch.Generator().manual_seed(1))
    (tmp_path / "imagenet_star").mkdir()
    save_file({"text_model.embeddings.token_embedding.weight": matrix}, tmp_path / "imagenet_star" / "model.safetensors")
    for place in ("imagenet_star/model.safetensors", "imagenet_star", ""):
        assert torch.equal(provision.read_tokens(pipe, tmp_path / place, {"hen": 8})["hen"], matrix[known + 8])
