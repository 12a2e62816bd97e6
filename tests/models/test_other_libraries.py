"""Doors for classifiers of others: each gives the scores of the library that saved it, and what does not fit is named."""

import importlib.util
import json

import numpy as np
import open_clip
import pytest
import torch
import torch.nn.functional as F
import torchvision
from PIL import Image
from safetensors.torch import save_file
from tiny_encoders import write_clip, write_timm
from torch import nn
from transformers import (
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
)

from cnslib.models import classifiers

LABELS = ["sneaker", "ankle boot", "bag"]
PICTURES = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
PIXELS = (torch.from_numpy(PICTURES).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25  # under the preprocessing of the tiny models
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "patch_size": 8, "num_labels": 3}
SMALL = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 3}


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def own(source: str, **more) -> classifiers.Classifier:
    return classifiers.user_classifier(source, name="mine", labels=LABELS, **more)


def write_transformers(model, folder) -> None:
    model.eval().save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.5] * 3, image_std=[0.25] * 3).save_pretrained(folder)


def write_head(head: nn.Linear, path) -> str:
    save_file({"weight": head.weight.detach().clone(), "bias": head.bias.detach().clone()}, path)
    return str(path)


def test_a_torchvision_network_gives_the_saved_scores_under_torchvisions_own_transform(tmp_path):
    model = torchvision.models.get_model("squeezenet1_1", weights=None, num_classes=3).eval()
    save_file(model.state_dict(), tmp_path / "mine.safetensors")
    found, transform = (
        own(f"torchvision:squeezenet1_1@{tmp_path}/mine.safetensors"),
        torchvision.models.SqueezeNet1_1_Weights.DEFAULT.transforms(),
    )
    with torch.no_grad():
        expected = model(torch.stack([transform(Image.fromarray(picture)) for picture in PICTURES]))
    assert torch.allclose(found.logits(PICTURES), expected, atol=1e-5)
    assert found.settings["mean"] == [0.485, 0.456, 0.406] and found.settings["resize_size"] == [256]
    with pytest.raises(ValueError, match=r"mine: torchvision:nobody cannot be loaded .*accepted: torchvision:<name>"):
        own("torchvision:nobody")
    with pytest.raises(ValueError, match=r"mine: .*mine\.safetensors does not fit the model"):
        own(f"torchvision:resnet18@{tmp_path}/mine.safetensors")


def heads() -> dict[str, tuple[nn.Module, nn.Linear]]:
    """Whole classifiers whose last layer is a linear head: on the class token, on it and the mean patch, on the mean of a map."""
    vit, resnet = ViTForImageClassification(ViTConfig(**SIZES, intermediate_size=32)), ResNetForImageClassification(ResNetConfig(**SMALL))
    dino = Dinov2WithRegistersForImageClassification(Dinov2WithRegistersConfig(**SIZES, num_register_tokens=2))
    return {"vit": (vit, vit.classifier), "dino": (dino, dino.classifier), "resnet": (resnet, resnet.classifier[1])}


@pytest.mark.parametrize("name", ["vit", "dino", "resnet"])
def test_a_linear_head_on_a_transformers_backbone_is_the_whole_classifier(tmp_path, name):
    model, head = heads()[name]
    write_transformers(model, tmp_path / "backbone")
    found = own(f"linear:{write_head(head, tmp_path / 'head.safetensors')}@transformers:{tmp_path}/backbone")
    with torch.no_grad():
        assert torch.allclose(found.logits(PICTURES), model(PIXELS).logits, atol=1e-5)


def test_a_linear_head_on_a_timm_backbone_is_the_whole_classifier_and_another_width_is_refused(tmp_path):
    model = write_timm(tmp_path / "backbone", outputs=3)
    source = f"linear:{write_head(model.head, tmp_path / 'head.safetensors')}@{tmp_path}/backbone"
    with torch.no_grad():
        assert torch.allclose(own(source).logits(PICTURES), model(PIXELS), atol=1e-5)
        token = model.forward_features(PIXELS)
    wide, before = nn.Linear(32, 3), classifiers.digest(source)
    write_head(wide, tmp_path / "head.safetensors")
    expected = wide(torch.cat([token[:, 0], token[:, 1:].mean(dim=1)], dim=1))
    assert torch.allclose(own(source).logits(PICTURES), expected, atol=1e-5) and classifiers.digest(source) != before
    write_head(nn.Linear(17, 3), tmp_path / "head.safetensors")
    with pytest.raises(
        ValueError, match=r"mine: .*head\.safetensors, shape of the linear head: \(3, 17\) is not accepted; accepted: 32 or 80"
    ):
        own(source)


@pytest.mark.parametrize("context", [24, 200])
def test_a_zero_shot_model_gets_the_eighty_templates_unless_its_context_would_cut_one_off(tmp_path, context):
    saved = write_clip(tmp_path / "clip", context=context)
    found, tokenizer = own(f"{tmp_path}/clip"), classifiers.encoders.Clip(f"{tmp_path}/clip").tokenizer
    templates = open_clip.OPENAI_IMAGENET_TEMPLATES if context == 200 else ["a picture of a {}".format]
    with torch.no_grad():
        texts = [
            F.normalize(saved.encode_text(tokenizer([template(name) for template in templates])), dim=1).mean(dim=0) for name in LABELS
        ]
        cosines = F.normalize(saved.encode_image(PIXELS), dim=1) @ F.normalize(torch.stack(texts), dim=1).T
    assert torch.allclose(found.logits(PICTURES), saved.logit_scale.exp() * cosines, atol=1e-4)
    assert found.settings["prompts"].startswith("the 80 of CLIP" if context == 200 else "a picture of a")


def test_siglip_gives_the_sigmoid_of_each_class(tmp_path):
    write_clip(tmp_path / "clip")
    path = tmp_path / "clip" / "open_clip_config.json"
    config = json.loads(path.read_text())
    config["model_cfg"]["init_logit_bias"] = -10.0
    path.write_text(json.dumps(config))
    model = open_clip.model.CustomTextCLIP(**{key: value for key, value in config["model_cfg"].items() if key != "custom_text"}).eval()
    save_file(model.state_dict(), tmp_path / "clip" / "open_clip_model.safetensors")
    tokens = classifiers.encoders.Clip(f"{tmp_path}/clip").tokenizer(["a picture of a " + label for label in LABELS])
    with torch.no_grad():
        expected = torch.sigmoid(model.get_logits(PIXELS, tokens)[0])
    assert torch.allclose(own(f"{tmp_path}/clip").logits(PICTURES).exp(), expected, rtol=1e-4)


def test_an_onnx_file_gives_the_exported_scores_or_names_the_package_that_reads_it(tmp_path):
    model = ViTForImageClassification(ViTConfig(**SIZES, intermediate_size=32, id2label=dict(enumerate(reversed(LABELS)))))
    write_transformers(model, tmp_path / "mine")
    if not importlib.util.find_spec("onnxruntime"):
        with pytest.raises(ValueError, match=r"mine: onnx:.* cannot be loaded .*the package onnxruntime is not installed"):
            own(f"onnx:{tmp_path}/mine")
        return
    pytest.importorskip("onnxscript")
    shapes = {"pixel_values": {0: torch.export.Dim("batch")}}
    torch.onnx.export(model, (PIXELS,), tmp_path / "mine" / "model.onnx", dynamic_shapes=shapes, dynamo=True, external_data=False)
    found = own(f"onnx:{tmp_path}/mine")
    with torch.no_grad():
        assert torch.allclose(found.logits(PICTURES), model(PIXELS).logits, atol=1e-4)
    assert found.labels == LABELS[::-1]
