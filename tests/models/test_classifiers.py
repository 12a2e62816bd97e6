"""Classifiers: the saved model's own answers come back, preprocessing belongs to the model, what is wrong is named."""

import copy
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from timm.models import save_for_hf
from tiny_encoders import PREPROCESSING, write_clip, write_timm

from cnslib.models import classifiers, encoders
from cnslib.models.networks import AlexNet
from cnslib.world import zoo

LABELS = ["sneaker", "ankle boot", "bag"]
PICTURES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
BLANK = np.full((1, 40, 40, 3), 128, dtype=np.uint8)


def inputs(pictures: np.ndarray) -> torch.Tensor:
    """What mean 0.5 and standard deviation 0.25 make of pictures that have the right size already."""
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("classifiers")


@pytest.fixture(scope="module")
def saved(folder):
    return {"vit": write_timm(folder / "vit", outputs=3), "clip": write_clip(folder / "clip")}


def load(folder, name: str, **options) -> classifiers.Classifier:
    return classifiers.load(name, str(folder / name), LABELS, **options)


def test_a_timm_directory_gives_the_saved_models_logits(saved, folder):
    with torch.no_grad():
        expected = saved["vit"](inputs(PICTURES))
    assert torch.allclose(load(folder, "vit").logits(PICTURES), expected, atol=1e-5)


def test_a_directory_written_by_timm_itself_is_read(saved, folder, tmp_path):
    model = copy.deepcopy(saved["vit"])
    model.pretrained_cfg |= {**PREPROCESSING, "input_size": (3, 32, 32), "crop_pct": 1.0}
    arguments = json.loads((folder / "vit" / "config.json").read_text())["model_args"]
    save_for_hf(model, tmp_path / "own", model_args=arguments, safe_serialization=True)
    assert torch.equal(load(tmp_path, "own").logits(PICTURES), load(folder, "vit").logits(PICTURES))


def test_the_projects_alexnet_is_read_back(tmp_path):
    torch.manual_seed(0)
    model = AlexNet(num_classes=3, width=4, hidden=8).eval()
    zoo.save(model, tmp_path / "alexnet", architecture="alexnet_64", arguments={"width": 4, "hidden": 8})
    pictures = np.random.default_rng(1).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    with torch.no_grad():
        expected = model(inputs(pictures))
    assert torch.allclose(load(tmp_path, "alexnet").logits(pictures), expected, atol=1e-3)  # weights are stored in half precision


def test_zero_shot_logits_are_scaled_cosines_with_one_prompt_per_label(saved, folder):
    clip = load(folder, "clip")
    tokens = encoders.Clip(str(folder / "clip")).tokenizer(["a picture of a " + label for label in LABELS])
    with torch.no_grad():
        image, text = saved["clip"].encode_image(inputs(PICTURES)), saved["clip"].encode_text(tokens)
        cosine = F.cosine_similarity(image[:, None], text[None], dim=2)
    assert torch.allclose(clip.logits(PICTURES), cosine * saved["clip"].logit_scale.exp(), atol=1e-4)


@pytest.mark.parametrize("name", ["vit", "clip"])
def test_neighbours_in_the_batch_do_not_matter(saved, folder, name):
    classifier = load(folder, name)
    alone = torch.cat([classifier.logits(PICTURES[i : i + 1]) for i in range(len(PICTURES))])
    assert torch.allclose(classifier.logits(PICTURES), alone, atol=1e-5)
    assert torch.equal(classifier.logits(PICTURES), classifier.logits(list(PICTURES)))


def test_pictures_of_any_size_share_a_list(saved, folder):
    wide = np.asarray(Image.fromarray(PICTURES[0]).resize((64, 48)))
    logits = load(folder, "vit").logits([PICTURES[0], wide])
    assert logits.shape == (2, 3) and logits.dtype == torch.float32
    assert torch.allclose(logits[:1], load(folder, "vit").logits(PICTURES[:1]), atol=1e-5)


@pytest.mark.parametrize("name", ["vit", "clip"])
def test_paper_preprocessing_uses_imagenet_statistics(saved, folder, name):
    """A grey picture stays grey under any resize and crop: only mean and standard deviation act on it."""
    own, paper = load(folder, name), load(folder, name, preprocessing="paper")
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    assert torch.allclose(paper.transform(Image.fromarray(BLANK[0]))[:, 3, 5], (128 / 255 - mean) / std, atol=1e-5)
    assert torch.allclose(own.transform(Image.fromarray(BLANK[0]))[:, 3, 5], torch.full((3,), (128 / 255 - 0.5) / 0.25), atol=1e-5)
    assert not torch.allclose(own.logits(BLANK), paper.logits(BLANK), atol=1e-4)
    assert own.preprocessing != paper.preprocessing == load(folder, name, preprocessing="paper").preprocessing


@pytest.mark.parametrize(("side", "resized"), [(224, 256), (64, 73), (336, 336)])
def test_paper_preprocessing_resizes_and_crops_as_the_released_code(side, resized):
    """Resize to input / 0.875, truncated, and crop the centre; the 336-px model is not cropped."""
    transform = classifiers.create_transform(**classifiers.paper_settings((3, side, side)))
    assert (transform.transforms[0].size, transform.transforms[1].size) == (resized, (side, side))


def test_the_description_names_source_size_and_preprocessing(saved, folder):
    described = load(folder, "vit").describe()
    assert described["parameters"] == sum(p.numel() for p in saved["vit"].parameters())
    assert (described["model"], described["source"]) == ("vit", str(folder / "vit"))
    assert list(described["mean"]) == [0.5, 0.5, 0.5] and tuple(described["input_size"]) == (3, 32, 32)


@pytest.mark.parametrize(("source", "library"), [("timm:", "timm"), ("open_clip:", "open_clip")])
def test_models_by_name_reach_their_library(source, library, monkeypatch):
    """Without a network the download fails: the error names classifier, source and reason."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=rf"evaluation\.classifiers\.far: .*{library}.*no-such-model"):
        classifiers.load("far", f"{source}no-such-model/tag", LABELS)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"evaluation\.classifiers\.ghost: .*ghost does not exist"):
        load(tmp_path, "ghost")


def test_truncated_weights_are_named(tmp_path):
    write_timm(tmp_path / "cut", outputs=3)
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"evaluation\.classifiers\.cut: .*model\.safetensors is not a complete safetensors file"):
        load(tmp_path, "cut")


def test_a_truncated_open_clip_directory_is_named(tmp_path):
    write_clip(tmp_path / "cut")
    weights = tmp_path / "cut" / "open_clip_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"evaluation\.classifiers\.cut: .*open_clip_model\.safetensors is not a complete"):
        load(tmp_path, "cut")


def test_a_wrong_number_of_classes_is_named(tmp_path):
    write_timm(tmp_path / "imagenet", outputs=1000)
    with pytest.raises(ValueError, match=r"evaluation\.classifiers\.imagenet: .* has 1000 outputs, labels name 3"):
        load(tmp_path, "imagenet")


def test_pickled_weights_are_not_read(tmp_path):
    model = write_timm(tmp_path / "pickled", outputs=3)
    torch.save(model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors does not exist"):
        load(tmp_path, "pickled")


def test_an_unknown_preprocessing_is_refused(saved, folder):
    with pytest.raises(ValueError, match="'native' is not accepted; accepted: model, paper"):
        load(folder, "vit", preprocessing="native")
