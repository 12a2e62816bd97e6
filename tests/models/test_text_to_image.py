import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_sliders import CLASSES, SHIFTS, pipeline, random_sliders

from cnslib.models import adapters, text_to_image
from cnslib.models.adapters import slider_path


@pytest.fixture
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture
def copied(tiny_pipeline_dir, tmp_path):
    return shutil.copytree(tiny_pipeline_dir, tmp_path / "pipeline")


@pytest.fixture
def slider(pipe, tmp_path):
    return slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES), SHIFTS[0], "sneaker")


def test_a_loaded_pipeline_is_frozen_single_precision_and_unchecked(pipe):
    for part in (pipe.unet, pipe.vae, pipe.text_encoder):
        assert not part.training
        assert {(p.dtype, p.requires_grad) for p in part.parameters()} == {(torch.float32, False)}
    assert pipe.safety_checker is None


@pytest.mark.parametrize("missing", ["", "model_index.json", "unet", "vae/diffusion_pytorch_model.safetensors"])
def test_a_missing_directory_part_or_weight_file_is_named_with_its_parameter(copied, missing):
    shutil.rmtree(copied / missing) if (copied / missing).is_dir() else (copied / missing).rename(copied / "pickled.bin")
    with pytest.raises(FileNotFoundError, match=rf"pipeline: .*{copied}"):
        text_to_image.load_pipeline(copied, "cpu")


def test_a_foreign_scheduler_and_a_truncated_weight_file_are_refused(copied):
    path, weights = copied / "scheduler" / "scheduler_config.json", copied / "unet" / "diffusion_pytorch_model.safetensors"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"timestep_spacing": "linspace"}))
    with pytest.raises(ValueError, match=r"linspace.*accepted: DDIMScheduler"):
        text_to_image.load_pipeline(copied, "cpu")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=f"pipeline: {weights} is not a complete safetensors file"):
        text_to_image.load_pipeline(copied, "cpu")


def test_the_initial_latent_and_the_decoded_images_are_those_of_diffusers(pipe):
    drawn = pipe.prepare_latents(1, 4, 64, 64, torch.float32, "cpu", torch.Generator().manual_seed(7))
    assert torch.equal(text_to_image.initial_latent(pipe, 7), drawn)
    kwargs = {"generator": torch.Generator().manual_seed(3), "num_inference_steps": 2}
    latents = pipe("a picture of a bag", output_type="latent", **kwargs).images
    kwargs["generator"].manual_seed(3)
    picture = pipe("a picture of a bag", output_type="pil", **kwargs).images[0]
    assert np.array_equal(text_to_image.decode(pipe, latents)[0].numpy(), np.asarray(picture))
    with pytest.raises(ValueError, match="longer than the 24 tokens"):
        text_to_image.embed(pipe, ["a picture of a sneaker " * 10])


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def output(pipe, seed=0):
    with torch.no_grad():
        return pipe.unet(noise(seed, 2, 4, 16, 16), 501, noise(seed + 1, 2, 24, 16)).sample


def test_everything_but_cross_attention_is_adapted_and_nothing_is_left_behind(pipe):
    before = output(pipe)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()):
        found = set(adapters.layers(pipe.unet))
        assert torch.equal(output(pipe), before)
    outside = ("attn2", ".ff.", "proj_in", "proj_out", "conv_in", "conv_out", "time_embedding")
    assert not [name for name in found if any(part in name for part in outside)]
    assert len([name for name in found if "attn1" in name]) == 4 * 4  # down, mid and two up blocks: q, k, v, out
    assert len([name for name in found if "resnets" in name]) == 8 * 3 + 5  # conv1, conv2, time; five widths change
    assert len(found) == 16 + 29 + 2  # and two samplers
    assert torch.equal(output(pipe), before) and not adapters.layers(pipe.unet)


def test_a_slider_reloads_exactly_where_alpha_differs_from_rank(pipe, tiny_pipeline_dir, tmp_path):
    path = tmp_path / "slider.safetensors"
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()) as parameters:
        for parameter in parameters:
            parameter.data.copy_(noise(3, *parameter.shape).half())  # what half precision keeps
        adapters.save(pipe, path, {"shift": "heavy snow"})
        trained = output(pipe)
    plain = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    plain.load_lora_weights(path)
    assert torch.equal(output(plain), trained)
    with adapters.loaded(pipe, path):
        assert torch.equal(output(pipe), trained)
        assert pipe.unet.peft_config[adapters.NAME].lora_alpha == 1.0


@pytest.mark.parametrize("damage", ["missing", "truncated", "misfit"])
def test_an_unusable_slider_file_is_named(pipe, slider, tmp_path, damage):
    path = tmp_path / "slider.safetensors"
    if damage == "truncated":
        path.write_bytes(slider.read_bytes()[:-50])
    if damage == "misfit":
        save_file(dict(list(load_file(slider).items())[1:]), path, metadata=adapters.header(slider))
    with pytest.raises((FileNotFoundError, ValueError), match=str(path)), adapters.loaded(pipe, path):
        pass
    assert not adapters.layers(pipe.unet)


def test_every_sample_of_a_batch_has_its_own_scale_and_without_its_adapter_the_network_is_the_base_model(pipe, slider):
    before = output(pipe)
    with adapters.loaded(pipe, slider):
        with adapters.scaled(pipe.unet, [0.5, 2.0]):
            together = output(pipe)
        for number, scale in enumerate((0.5, 2.0)):
            pipe.unet.set_adapters(adapters.NAME, scale)
            assert torch.allclose(together[number], output(pipe)[number], atol=1e-5)
        with adapters.switched_off(pipe.unet):
            assert torch.equal(output(pipe), before)
        assert not torch.equal(output(pipe), before)
