"""Encoders: a directory gives back the very model that was saved in it; whatever is wrong with one is named."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny_encoders import TEXTS, write_clip, write_timm

from cnslib.core.names import SHIFTS
from cnslib.models import encoders

LABELS = ["sneaker", "ankle boot", "bag"]
OUTPUTS = len(LABELS) + len(SHIFTS) + 2
PICTURES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)


def inputs(pictures):
    """What mean 0.5 and standard deviation 0.25 make of pictures."""
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="module")
def saved(folder):
    return {
        "clip": write_clip(folder / "clip"),
        "plain-clip": write_clip(folder / "plain-clip", custom_text=False),
        "dino": write_timm(folder / "dino", outputs=0),
        "oracle": write_timm(folder / "oracle", outputs=OUTPUTS),
    }


@pytest.mark.parametrize("name", ["clip", "plain-clip"])
def test_clip_gives_the_saved_models_features(saved, folder, name):
    clip = encoders.Clip(str(folder / name))
    with torch.no_grad():
        image = F.normalize(saved[name].encode_image(inputs(PICTURES)), dim=1)
        text = F.normalize(saved[name].encode_text(clip.tokenizer(TEXTS)), dim=1)
    assert torch.allclose(clip.image_features(PICTURES), image, atol=1e-5)
    assert torch.allclose(clip.text_features(TEXTS), text, atol=1e-5)


def test_clip_reads_texts_with_its_own_tokenizer(saved, folder):
    ids = encoders.Clip(str(folder / "clip")).tokenizer(["a picture of a bag"])[0]
    own = json.loads((folder / "clip" / "tokenizer.json").read_text())["model"]["vocab"]
    words = {number: word for word, number in own.items()}
    assert [words[int(i)] for i in ids[:7]] == ["<|startoftext|>", "a</w>", "picture</w>", "of</w>", "a</w>", "bag</w>", "<|endoftext|>"]


def test_features_have_length_one(saved, folder):
    clip, dino = encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino"))
    for features in (clip.image_features(PICTURES), clip.text_features(TEXTS), dino.features(PICTURES)):
        assert torch.allclose(features.norm(dim=1), torch.ones(len(features)), atol=1e-6)


def test_image_features_are_the_saved_models_class_token(saved, folder):
    with torch.no_grad():
        token = saved["dino"].forward_features(inputs(PICTURES))[:, 0]
    assert torch.allclose(encoders.ImageEncoder(str(folder / "dino")).features(PICTURES), F.normalize(token, dim=1), atol=1e-5)


def test_a_classifier_serves_as_image_encoder_without_its_head(saved, folder):
    with torch.no_grad():
        token = saved["oracle"].forward_features(inputs(PICTURES))[:, 0]
    assert torch.allclose(encoders.ImageEncoder(str(folder / "oracle")).features(PICTURES), F.normalize(token, dim=1), atol=1e-5)


def test_pictures_of_another_size_are_resized_by_the_models_preprocessing(saved, folder):
    flat = np.full((1, 64, 64, 3), 90, np.uint8)
    for features in (encoders.Clip(str(folder / "clip")).image_features, encoders.ImageEncoder(str(folder / "dino")).features):
        assert torch.allclose(features(flat), features(flat[:, ::2, ::2]), atol=1e-5)


def test_features_of_an_image_do_not_depend_on_its_batch(saved, folder, monkeypatch):
    dino = encoders.ImageEncoder(str(folder / "dino"))
    together = dino.features(PICTURES)
    monkeypatch.setattr(encoders, "BATCH", 2)
    assert torch.allclose(dino.features(PICTURES), together, atol=1e-6)
    assert torch.allclose(dino.features(torch.from_numpy(PICTURES[3:4])), together[3:4], atol=1e-6)


def test_the_oracles_outputs_are_class_shift_and_severity_in_this_order(saved, folder):
    oracle = encoders.Oracle(str(folder / "oracle"), labels=LABELS)
    with torch.no_grad():
        logits = saved["oracle"](inputs(PICTURES))
    assert torch.allclose(oracle.class_probability(PICTURES), logits[:, :3].softmax(dim=1), atol=1e-5)
    assert oracle.shift(PICTURES) == [(*SHIFTS, "unshifted")[i] for i in logits[:, 3:18].argmax(dim=1)]
    assert torch.allclose(oracle.severity(PICTURES), logits[:, 18].sigmoid(), atol=1e-5)


def test_an_oracle_for_other_labels_is_refused(saved, folder):
    with pytest.raises(ValueError, match=f"oracle: .* has {OUTPUTS} outputs; accepted: {OUTPUTS + 1}, for 4 labels"):
        encoders.Oracle(str(folder / "oracle"), labels=[*LABELS, "coat"])


def test_a_text_beyond_the_context_is_refused(saved, folder):
    with pytest.raises(ValueError, match="longer than the 24 tokens"):
        encoders.Clip(str(folder / "clip")).text_features(["a " * 23])
    assert encoders.Clip(str(folder / "clip")).text_features(["a " * 22]).shape == (1, 8)


@pytest.mark.parametrize(
    ("key", "load", "file"),
    [
        ("clip", encoders.Clip, "open_clip_model.safetensors"),
        ("image_encoder", encoders.ImageEncoder, "model.safetensors"),
        ("oracle", lambda source: encoders.Oracle(source, labels=LABELS), "model.safetensors"),
    ],
)
def test_missing_directory_file_and_truncated_weights_are_named(tmp_path, key, load, file):
    folder = tmp_path / "model"
    with pytest.raises(FileNotFoundError, match=f"{key}: directory {folder} does not exist"):
        load(str(folder))
    write_clip(folder) if key == "clip" else write_timm(folder, outputs=OUTPUTS)
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=f"{key}: {folder / file} is not a complete safetensors file"):
        load(str(folder))
    (folder / file).unlink()
    with pytest.raises(FileNotFoundError, match=f"{key}: {folder / file} does not exist"):
        load(str(folder))


def test_weights_of_another_architecture_are_refused(tmp_path):
    write_timm(tmp_path / "model", outputs=0)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["model_args"]["depth"] = 2
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"image_encoder: .* cannot be loaded.*blocks\.1"):
        encoders.ImageEncoder(str(tmp_path / "model"))


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"image_encoder: timm:no_such_model cannot be loaded.*Unknown model"):
        encoders.ImageEncoder("timm:no_such_model")
    with pytest.raises(ValueError, match="clip: open_clip:no-such-model/tag cannot be loaded"):
        encoders.Clip("open_clip:no-such-model/tag")
    with pytest.raises(ValueError, match="clip: 'open_clip:ViT-B-16' names no weights"):
        encoders.Clip("open_clip:ViT-B-16")


def test_the_digest_is_that_of_the_files(saved, folder, tmp_path):
    write_timm(tmp_path / "twin", outputs=0)
    write_timm(tmp_path / "other", outputs=0, seed=1)
    digests = [encoders.ImageEncoder(str(path)).digest for path in (folder / "dino", tmp_path / "twin", tmp_path / "other")]
    assert digests[0] == digests[1] != digests[2]


def test_labels_are_a_list_of_distinct_names(tmp_path):
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    assert encoders.read_labels(str(tmp_path / "labels.json")) == LABELS
    for text in (json.dumps([*LABELS, "bag"]), '[["bag"]]', "[1, 2]", '["bag"'):
        (tmp_path / "labels.json").write_text(text)
        with pytest.raises(ValueError, match=r"^labels: .*labels\.json"):
            encoders.read_labels(str(tmp_path / "labels.json"))
    with pytest.raises(FileNotFoundError, match=r"labels: .*none"):
        encoders.read_labels(str(tmp_path / "none.json"))
