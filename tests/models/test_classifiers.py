import copy
import json
from pathlib import Path

import numpy as np
import pytest
import skimage
import torch
import torch.nn.functional as F
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from timm.models import save_for_hf
from tiny_encoders import PREPROCESSING, TEXTS, write_clip, write_timm

from cnslib.core.names import SHIFTS
from cnslib.data import imagenet
from cnslib.models import classifiers, efficientnet_lite, encoders

LABELS = ["sneaker", "ankle boot", "bag"]
OUTPUTS = len(LABELS) + len(SHIFTS) + 2
PICTURES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)


def inputs(pictures: np.ndarray) -> torch.Tensor:
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module", autouse=True)
def saved(folder):
    return {
        "clip": write_clip(folder / "clip"),
        "plain-clip": write_clip(folder / "plain-clip", custom_text=False),
        "dino": write_timm(folder / "dino", outputs=0),
        "oracle": write_timm(folder / "oracle", outputs=OUTPUTS),
        "vit": write_timm(folder / "vit", outputs=3),
    }


def load(folder, name: str, **options) -> classifiers.Classifier:
    return classifiers.load(name, str(folder / name), LABELS, **options)


@pytest.mark.parametrize("name", ["clip", "plain-clip"])
def test_clip_gives_the_saved_models_features(saved, folder, name):
    clip = encoders.Clip(str(folder / name))
    with torch.no_grad():
        image = F.normalize(saved[name].encode_image(inputs(PICTURES)), dim=1)
        text = F.normalize(saved[name].encode_text(clip.tokenizer(TEXTS)), dim=1)
    assert torch.allclose(clip.image_features(PICTURES), image, atol=1e-5)
    assert torch.allclose(clip.text_features(TEXTS), text, atol=1e-5)


def test_clip_reads_texts_with_its_own_tokenizer_and_refuses_what_its_context_would_cut(folder):
    clip = encoders.Clip(str(folder / "clip"))
    own = json.loads((folder / "clip" / "tokenizer.json").read_text())["model"]["vocab"]
    words = {number: word for word, number in own.items()}
    ids = clip.tokenizer(["a picture of a bag"])[0]
    assert [words[int(i)] for i in ids[:7]] == ["<|startoftext|>", "a</w>", "picture</w>", "of</w>", "a</w>", "bag</w>", "<|endoftext|>"]
    with pytest.raises(ValueError, match="longer than the 24 tokens"):
        clip.text_features(["a " * 23])
    assert clip.text_features(["a " * 22]).shape == (1, 8)


@pytest.mark.parametrize("name", ["dino", "oracle"])
def test_image_features_are_the_saved_models_class_token_whatever_the_batch(saved, folder, name, monkeypatch):
    with torch.no_grad():
        token = saved[name].forward_features(inputs(PICTURES))[:, 0]
    dino = encoders.ImageEncoder(str(folder / name))
    assert torch.allclose(dino.features(PICTURES), F.normalize(token, dim=1), atol=1e-5)
    monkeypatch.setattr(encoders, "BATCH", 2)
    assert torch.allclose(dino.features(torch.from_numpy(PICTURES)), F.normalize(token, dim=1), atol=1e-5)


def test_the_oracles_outputs_are_class_shift_and_severity_in_this_order(saved, folder):
    oracle = encoders.Oracle(str(folder / "oracle"), labels=LABELS)
    with torch.no_grad():
        logits = saved["oracle"](inputs(PICTURES))
    assert torch.allclose(oracle.class_probability(PICTURES), logits[:, :3].softmax(dim=1), atol=1e-5)
    assert torch.allclose(torch.cat(oracle.parts(PICTURES), dim=1), logits, atol=1e-5)
    assert [part.shape[1] for part in oracle.parts(PICTURES)] == [3, 15, 1]


@pytest.mark.parametrize(("name", "whole"), [("oracle", True), ("vit", False), ("clip", False)])
def test_an_oracle_is_what_its_directory_holds_or_any_classifier_of_the_labels(saved, folder, name, whole):
    oracle, unequal = classifiers.load_oracle(str(folder / name), labels=LABELS), [PICTURES[0], PICTURES[1][:20]]
    assert hasattr(oracle, "parts") == whole
    alone = torch.cat([oracle.class_probability([one]) for one in unequal])
    assert torch.allclose(oracle.class_probability(unequal), alone, atol=1e-6) and alone.shape == (2, 3)


def test_a_timm_directory_gives_the_saved_models_logits_also_as_timm_itself_writes_it(saved, folder, tmp_path):
    with torch.no_grad():
        expected = saved["vit"](inputs(PICTURES))
    assert torch.allclose(load(folder, "vit").logits(PICTURES), expected, atol=1e-5)
    model = copy.deepcopy(saved["vit"])
    model.pretrained_cfg |= {**PREPROCESSING, "input_size": (3, 32, 32), "crop_pct": 1.0}
    arguments = json.loads((folder / "vit" / "config.json").read_text())["model_args"]
    save_for_hf(model, tmp_path / "own", model_args=arguments, safe_serialization=True)
    assert torch.equal(load(tmp_path, "own").logits(PICTURES), load(folder, "vit").logits(PICTURES))


@pytest.mark.parametrize("name", ["vit", "clip"])
def test_paper_preprocessing_uses_imagenet_statistics(folder, name):
    own, paper, grey = load(folder, name), load(folder, name, preprocessing="paper"), Image.new("RGB", (40, 40), (128,) * 3)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    assert torch.allclose(paper.transform(grey)[:, 3, 5], (128 / 255 - mean) / std, atol=1e-5)
    assert torch.allclose(own.transform(grey)[:, 3, 5], torch.full((3,), (128 / 255 - 0.5) / 0.25), atol=1e-5)
    assert own.preprocessing != paper.preprocessing == load(folder, name, preprocessing="paper").preprocessing


SIDES = {"0": 224, "2": 260}  # input sides of the TensorFlow authors
SEEN = {"chelsea.png": {"tabby", "tiger cat", "egyptian cat"}, "coffee.png": {"espresso"}, "rocket.jpg": {"missile", "projectile"}}


@pytest.mark.parametrize("size", SIDES)
def test_efficientnet_lite_gives_the_packages_outputs_and_calls_photographs_what_one_sees(size):
    mine, side = classifiers.user_classifier(f"lite:{size}", name="mine", labels=list(imagenet.labels())), SIDES[size]
    own = EfficientNet.from_pretrained(f"efficientnet-lite{size}", weights_path=str(efficientnet_lite.weights_file(size))).eval()
    pixels = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(mine.network(pixels), own(pixels), atol=1e-4, rtol=0)
    assert (mine.settings["input_size"], mine.settings["interpolation"]) == ((3, side, side), "bicubic")
    assert mine.settings["crop_pct"] == pytest.approx(side / (side + 32), abs=1e-3)
    assert mine.transform(Image.new("RGB", (300, 300), (127, 255, 0)))[:, 0, 0].tolist() == pytest.approx([0, 1, -127 / 128], abs=1e-5)
    for name, seen in SEEN.items():
        logits = mine.logits([np.asarray(Image.open(Path(skimage.__file__).parent / "data" / name).convert("RGB"))])[0]
        assert seen & {imagenet.labels()[index] for index in logits.topk(5).indices}
