from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from tiny_encoders import write_clip, write_timm
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

from cnslib.data import imagenet
from cnslib.models import classifiers

LABELS = ["sneaker", "ankle boot", "bag"]
PICTURES = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)


def write_transformers(folder: Path, names=("LABEL_0", "LABEL_1", "LABEL_2")) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = ViTConfig(**sizes, image_size=32, patch_size=8, id2label=dict(enumerate(names)))
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)


def write_registry(folder: Path) -> None:
    folder.mkdir()
    save_file(timm.create_model("resnet18").state_dict(), folder / "model.safetensors")


# How a directory is written, the file of its weights, what the model is called, and its labels.
LOADERS: dict[str, tuple[Callable, str, str, list[str]]] = {
    "timm": (lambda folder: write_timm(folder, outputs=3), "model.safetensors", "{}", LABELS),
    "transformers": (write_transformers, "model.safetensors", "transformers:{}", LABELS),
    "open_clip": (write_clip, "open_clip_model.safetensors", "{}", LABELS),
    "registry": (write_registry, "model.safetensors", "registry:resnet18.a1_in1k@{}", list(imagenet.labels())),
}


@pytest.fixture(scope="module", params=LOADERS)
def model(request, tmp_path_factory) -> tuple[Path, str, list[str]]:
    write, file, source, labels = LOADERS[request.param]
    folder = tmp_path_factory.mktemp("loaders") / request.param
    with torch.random.fork_rng():
        torch.manual_seed(0)
        write(folder)
    return folder / file, source.format(folder), labels


def logits(source: str, labels: list[str]) -> torch.Tensor:
    return classifiers.user_classifier(source, name="mine", labels=labels).logits(PICTURES)


def faults(tensors: dict[str, torch.Tensor], name: str) -> dict[str, dict[str, torch.Tensor]]:
    value = tensors[name]
    found = {"missing": {key: other for key, other in tensors.items() if key != name}, "extra": tensors | {"extra": torch.zeros(2)}}
    found["renamed"] = {key + ".other" * (key == name): other for key, other in tensors.items()}
    if value.is_floating_point():
        found |= {"NaN": tensors | {name: value * float("nan")}, "infinite": tensors | {name: torch.full_like(value, float("inf"))}}
    if value.ndim:
        found["cut"] = tensors | {name: value[: len(value) - 1].clone()}
    return found


def test_tensors_that_are_missing_renamed_broken_or_too_many_are_one_line(model):
    path, source, labels = model
    tensors = load_file(path)
    names = sorted(tensors)[::3] if len(tensors) < 60 else ["conv1.weight", "layer3.1.bn2.running_var", "fc.bias"]
    try:
        for name in names:
            for fault, changed in faults(tensors, name).items():
                save_file(changed, path, {"format": "pt"})
                with pytest.raises(ValueError, match="accepted") as raised:
                    logits(source, labels)
                assert "\n" not in str(raised.value) and str(path.parent) in str(raised.value), (name, fault)
    finally:
        save_file(tensors, path, {"format": "pt"})


def test_a_transformers_model_answers_as_by_its_own_library_and_its_names_for_outputs_are_believed(tmp_path):
    for name, names in {"own": sorted(LABELS), "other": "abc"}.items():
        write_transformers(tmp_path / name, names)
    own, other = (f"transformers:{tmp_path / name}" for name in ("own", "other"))
    found, small = classifiers.user_classifier(own, name="mine", labels=LABELS), PICTURES[:, ::2, ::2]
    pixels = ViTImageProcessor.from_pretrained(tmp_path / "own")(images=list(small), return_tensors="pt")
    expected = ViTForImageClassification.from_pretrained(tmp_path / "own")(**pixels).logits
    assert found.labels == sorted(LABELS) and torch.allclose(found.logits(small), expected, atol=1e-4)
    with pytest.raises(ValueError, match=r"no output is called 'sneaker', names that the model gives itself: .*--labels"):
        logits(other, LABELS)
    assert classifiers.user_classifier(other, name="mine", labels=LABELS, outputs=LABELS).labels == LABELS
