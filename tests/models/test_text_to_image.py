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
def slider(pipe, tmp_path):
    return slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES), SHIFTS[0], "sneaker")


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


def test_a_slider_that_does_not_fit_is_named(pipe, slider, tmp_path):
    path = tmp_path / "slider.safetensors"
    save_file(dict(list(load_file(slider).items())[1:]), path, metadata=adapters.header(slider))
    with pytest.raises(ValueError, match=str(path)), adapters.loaded(pipe, path):
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
