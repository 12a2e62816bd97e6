"""Loading a pipeline, and what goes in and out of it."""

import json
import shutil

import numpy as np
import pytest
import torch
from diffusers import DDIMScheduler

from cnslib.core import names
from cnslib.core.settings.method import STRIDES
from cnslib.models import text_to_image


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir):
    return text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")


@pytest.fixture
def copied(tiny_pipeline_dir, tmp_path):
    return shutil.copytree(tiny_pipeline_dir, tmp_path / "pipeline")


def test_a_loaded_pipeline_is_frozen_single_precision_and_unchecked(pipe):
    for part in (pipe.unet, pipe.vae, pipe.text_encoder):
        assert not part.training
        assert {(p.dtype, p.requires_grad) for p in part.parameters()} == {(torch.float32, False)}
    assert pipe.safety_checker is None


@pytest.mark.parametrize("missing", ["", "model_index.json", "unet"])
def test_a_missing_directory_or_part_is_named_with_its_parameter(copied, missing):
    shutil.rmtree(copied / missing) if (copied / missing).is_dir() else (copied / missing).unlink()
    with pytest.raises(FileNotFoundError, match=rf"pipeline: .*{copied}"):
        text_to_image.load_pipeline(copied, "cpu")


def test_a_truncated_weight_file_is_named(copied):
    weights = copied / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=str(weights)):
        text_to_image.load_pipeline(copied, "cpu")


def test_pickled_weights_are_refused(copied):
    weights = copied / "vae" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(FileNotFoundError, match="vae"):
        text_to_image.load_pipeline(copied, "cpu")


@pytest.mark.parametrize(("key", "value"), [("prediction_type", "sample"), ("timestep_spacing", "linspace")])
def test_a_foreign_scheduler_is_refused_with_what_is_accepted(copied, key, value):
    path = copied / "scheduler" / "scheduler_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ValueError, match=f"{value}.*accepted: DDIMScheduler"):
        text_to_image.load_pipeline(copied, "cpu")


def test_ddim_comes_out_where_its_next_step_begins_with_accepted_spacings_alone(pipe):
    """Its stride is 1000 // steps, rounded down; apart is what lies more than that rounding away."""
    apart = {}
    for spacing in (*STRIDES, "linspace"):
        scheduler = DDIMScheduler.from_config(pipe.scheduler.config, timestep_spacing=spacing)
        for steps in (6, 16, 24, 50):
            scheduler.set_timesteps(steps)
            strides = (scheduler.timesteps[:-1] - scheduler.timesteps[1:]) - 1000 // steps
            apart.setdefault(spacing, []).append(strides.abs().max().item())
    assert max(apart["leading"]) == 0 and max(apart["trailing"]) <= 1 and max(apart["linspace"]) > 1


def test_a_prompt_beyond_the_context_is_refused(pipe):
    with pytest.raises(ValueError, match="longer than the 24 tokens"):
        text_to_image.embed(pipe, ["a picture of a sneaker " * 10])


def test_the_initial_latent_is_the_one_diffusers_draws_for_a_seed(pipe):
    drawn = pipe.prepare_latents(1, 4, 64, 64, torch.float32, "cpu", torch.Generator().manual_seed(7))
    assert torch.equal(text_to_image.initial_latent(pipe, 7), drawn)


def test_decoded_images_are_those_of_the_plain_pipeline(pipe):
    kwargs = {"generator": torch.Generator().manual_seed(3), "num_inference_steps": 2}
    latents = pipe("a picture of a bag", output_type="latent", **kwargs).images
    kwargs["generator"].manual_seed(3)
    picture = pipe("a picture of a bag", output_type="pil", **kwargs).images[0]
    assert np.array_equal(text_to_image.decode(pipe, latents)[0].numpy(), np.asarray(picture))


def test_origin_tells_classes_apart_and_names_a_missing_token(tiny_pipeline_dir, tiny_tokens_dir):
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, ["sneaker", "ankle boot"])
    assert len({origin.base, *origin.tokens.values()}) == 3
    with pytest.raises(FileNotFoundError, match="bag"):
        text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, ["bag"])


def test_a_class_token_becomes_one_id_and_its_vector(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, ["ankle boot"])
    ids = pipe.tokenizer(names.token("ankle boot")).input_ids
    assert len(ids) == 3 and ids[1] == len(pipe.tokenizer) - 1
    with pytest.raises(ValueError, match="sneaker"):
        text_to_image.require_token(pipe, names.token("sneaker"))
