import json
import re
from pathlib import Path

import pandas as pd
import pytest
import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import load_file

from cnslib.models import adapters, exports, kohya, text_to_image

KEYS = Path(__file__).parent / "lora_sd2_noxattn_rank4_state_dict.csv.gz"


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir):
    return text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")


@pytest.fixture(scope="module", params=[1.0, 0.1], ids=["alpha 1", "alpha 0.1"])
def slider(request, pipe, tmp_path_factory):
    path = tmp_path_factory.mktemp("ours") / "slider.safetensors"
    generator = torch.Generator().manual_seed(0)
    with adapters.fresh(pipe, rank=4, alpha=request.param, generator=generator) as parameters:
        for parameter in parameters:
            parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
        adapters.save(pipe, path, {"shift": "heavy snow", "class": "sneaker"})
    return path


@pytest.fixture
def released(pipe, slider, tmp_path):
    path = tmp_path / "released.pt"
    exports.export_slider(pipe.unet, slider, path)
    return path


def sd2_unet():
    with torch.device("meta"):
        return UNet2DConditionModel(
            sample_size=96,
            block_out_channels=(320, 640, 1280, 1280),
            cross_attention_dim=1024,
            attention_head_dim=(5, 10, 20, 20),
            use_linear_projection=True,
        )


def rank_and_alpha(path):
    config = json.loads(adapters.header(path)["lora_adapter_metadata"])
    return config["unet.r"], config["unet.lora_alpha"]


def draw(pipe, path):
    with adapters.loaded(pipe, path):
        return text_to_image.sample(pipe, ["a picture of a sneaker", "a picture of a bag"], [1, 2], steps=3, guidance=2.0)


def output(unet):
    generator = torch.Generator().manual_seed(1)
    latents, text = torch.randn(2, 4, 16, 16, generator=generator), torch.randn(2, 24, 16, generator=generator)
    with torch.no_grad():
        return unet(latents, 501, text).sample


def test_the_keys_and_shapes_of_the_released_adapter_of_stable_diffusion_2_are_met():
    rows = pd.read_csv(KEYS)[["key", "shape"]].itertuples(index=False, name=None)
    listed = {key: () if shape == "scalar" else tuple(map(int, shape.split("x"))) for key, shape in rows}
    unet = sd2_unet()
    assert sum(parameter.numel() for parameter in unet.parameters()) == 865_910_724
    assert len(listed) == 450 and len(kohya.stems(unet)) == 150
    assert kohya.released_shapes(unet, 4) == listed


def test_the_round_trip_gives_the_same_tensors_and_the_same_images(pipe, slider, released, tmp_path):
    back, again = tmp_path / "back.safetensors", tmp_path / "again.pt"
    kohya.import_slider(pipe.unet, released, back, entries={"shift": "heavy snow", "class": "sneaker"})
    before, after = load_file(slider), load_file(back)
    assert before.keys() == after.keys() and len(after) == 47 * 2
    assert all(torch.equal(after[key], value) and after[key].dtype == value.dtype for key, value in before.items())
    assert rank_and_alpha(back) == rank_and_alpha(slider)
    assert torch.equal(draw(pipe, back), draw(pipe, slider))
    assert back.read_bytes() == slider.read_bytes()
    exports.export_slider(pipe.unet, back, again)
    assert again.read_bytes() == released.read_bytes()


def test_diffusers_reads_what_is_exported_as_the_same_adapter(slider, released, tiny_pipeline_dir):
    ours, theirs = (text_to_image.load_pipeline(tiny_pipeline_dir, "cpu") for _ in range(2))
    ours.load_lora_weights(slider)
    theirs.load_lora_weights(torch.load(released, weights_only=True))
    assert torch.allclose(output(theirs.unet), output(ours.unet), atol=1e-5)


def test_a_bf16_file_of_the_authors_is_read_without_loss(pipe, released, tmp_path):
    path, ours = tmp_path / "bf16.pt", tmp_path / "ours.safetensors"
    weights = {key: value.bfloat16() for key, value in torch.load(released, weights_only=True).items()}
    for key, value in weights.items():
        if key.endswith("alpha"):
            weights[key] = torch.tensor(1.0, dtype=torch.bfloat16)
        else:
            value[0] *= 1e-9
    torch.save(weights, path)
    kohya.import_slider(pipe.unet, path, ours, entries={})
    again = exports.to_released(pipe.unet, ours)
    assert again.keys() == weights.keys()
    assert all(torch.equal(again[key], value) and again[key].dtype == torch.bfloat16 for key, value in weights.items())
    with adapters.loaded(pipe, ours):
        name, layer = next(iter(adapters.layers(pipe.unet).items()))
        down = weights[f"lora_unet_{name.replace('.', '_')}.lora_down.weight"]
        assert torch.equal(layer.lora_A[adapters.NAME].weight, down.float())


def test_a_slider_that_is_not_whole_is_refused_and_nothing_is_written(pipe, released, tmp_path):
    path, target = tmp_path / "partial.pt", tmp_path / "ours.safetensors"
    weights = torch.load(released, weights_only=True)
    torch.save({name: value for name, value in weights.items() if "mid_block_resnets_0" not in name}, path)
    with pytest.raises(ValueError, match=r"partial\.pt does not fit this UNet: 132 tensors match, 9 missing"):  # of three modules
        kohya.import_slider(pipe.unet, path, target, entries={})
    assert not target.exists()


def test_an_unfinished_training_is_told_from_a_finished_one(tmp_path):
    name = "cartoon_style_class_002_alpha1.0_rank4_noxattn"
    (folder := tmp_path / name).mkdir()
    (folder / f"{name}_300steps.pt").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=re.escape(f"{name}_last.pt does not exist; its training stopped at {name}_300steps.pt")):
        kohya.released_path(tmp_path, "cartoon style", 2, rank=4, alpha=1)
    stem = "the_design_of_sculpture_class_022_alpha1.0_rank4_noxattn"  # as the published results name it, with an article
    (tmp_path / stem).mkdir()
    (path := tmp_path / stem / f"{stem}_last.pt").write_bytes(b"")
    assert kohya.released_path(tmp_path, "design of sculpture", 22, rank=4, alpha=1) == path


@pytest.mark.parametrize("deeper", ["", "lora_adapters", "sliders/lora_adapters"])
def test_released_sliders_are_found_where_unzipping_leaves_them(tmp_path, deeper):
    def leave(folder, name):
        (folder / name).mkdir(parents=True)
        (folder / name / f"{name}_last.pt").write_bytes(b"")

    for name in ("cartoon_style_class_002_alpha1.0_rank4_noxattn", "heavy_snow_class_022_alpha1.0_rank4_noxattn"):
        leave(tmp_path / deeper, name)
    assert kohya.released_folder(tmp_path) == tmp_path / deeper
    leave(tmp_path / "again", name)
    with pytest.raises(ValueError, match=rf"sliders {tmp_path} lie in 2 folders, .*; accepted: one of them"):
        kohya.released_folder(tmp_path)


STOCK = {  # as docs/interop.md tells: what reads our file, and the factor on the second factor's output that it gives
    "the line that works": ({"use_safetensors": True}, 0.5),
    "as others may write it": ({}, 1.0),
}


@pytest.mark.parametrize("way", STOCK)
def test_diffusers_reads_alpha_from_our_file_with_the_documented_line_alone(pipe, tmp_path, way):
    path, (arguments, factor) = tmp_path / "slider.safetensors", STOCK[way]
    with adapters.fresh(pipe, rank=2, alpha=1.0, generator=torch.Generator()):
        adapters.save(pipe, path, {})
    try:
        pipe.unet.load_lora_adapter(path, prefix="unet", adapter_name=adapters.NAME, **arguments)
        assert {layer.scaling[adapters.NAME] for layer in adapters.layers(pipe.unet).values()} == {factor}
    finally:
        pipe.unload_lora_weights()
