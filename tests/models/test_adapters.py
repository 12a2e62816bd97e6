"""Adapters: what is adapted, that nothing is left behind, and what a file must hold."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_sliders import CLASSES, SHIFTS, pipeline, random_sliders

from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image


@pytest.fixture
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def output(pipe, seed=0):
    with torch.no_grad():
        return pipe.unet(noise(seed, 2, 4, 16, 16), 501, noise(seed + 1, 2, 24, 16)).sample


def test_everything_but_cross_attention_is_adapted(pipe):
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()):
        names = set(adapters.layers(pipe.unet))
    outside = ("attn2", ".ff.", "proj_in", "proj_out", "conv_in", "conv_out", "time_embedding")
    assert not [name for name in names if any(part in name for part in outside)]
    assert len([name for name in names if "attn1" in name]) == 4 * 4  # down, mid and two up blocks: q, k, v, out
    assert len([name for name in names if "resnets" in name]) == 8 * 3 + 5  # conv1, conv2, time; five widths change
    assert len([name for name in names if "samplers" in name]) == 2
    assert len(names) == 16 + 29 + 2


def test_a_fresh_adapter_changes_nothing_and_leaves_nothing_behind(pipe):
    before = output(pipe)
    with adapters.fresh(pipe, rank=4, alpha=1.0, generator=torch.Generator()):
        assert torch.equal(output(pipe), before)
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
def test_an_unusable_slider_file_is_named(pipe, tmp_path, damage):
    path, source = tmp_path / "slider.safetensors", slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES), SHIFTS[0], "sneaker")
    if damage == "truncated":
        path.write_bytes(source.read_bytes()[:-50])
    if damage == "misfit":
        weights = load_file(source)
        save_file(dict(list(weights.items())[1:]), path, metadata=adapters.header(source))
    with pytest.raises((FileNotFoundError, ValueError), match=str(path)), adapters.loaded(pipe, path):
        pass
    assert not adapters.layers(pipe.unet)


def test_without_its_adapter_the_network_is_the_base_model_bit_for_bit(pipe, tmp_path):
    before = output(pipe)
    with adapters.loaded(pipe, slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES), SHIFTS[0], "sneaker")):
        assert not torch.equal(output(pipe), before)
        with adapters.switched_off(pipe.unet):
            assert torch.equal(output(pipe), before)
        assert not torch.equal(output(pipe), before)


def test_every_sample_of_a_batch_has_its_own_scale(pipe, tmp_path):
    """Beside each other as alone, with peft's one scale for the whole batch."""
    with adapters.loaded(pipe, slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES), SHIFTS[0], "sneaker")):
        with adapters.scaled(pipe.unet, [0.5, 2.0]):
            together = output(pipe)
        for number, scale in enumerate((0.5, 2.0)):
            pipe.unet.set_adapters(adapters.NAME, scale)
            assert torch.allclose(together[number], output(pipe)[number], atol=1e-5)
