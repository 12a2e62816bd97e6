import json
import sys

import pytest
import transformers
from diffusers import StableDiffusionPipeline
from tiny_encoders import write_clip
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor, dynamic_module_utils

from cnslib.models import classifiers, encoders, text_to_image, tokens

LABELS = ["bag", "sneaker", "coat"]
PYTHON = """from pathlib import Path
from transformers import CLIPTokenizer, PretrainedConfig

Path({marker!r}).touch()


class Own(CLIPTokenizer):
    pass


class OwnConfig(PretrainedConfig):
    model_type = "own"
"""


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """The file that the directories' Python writes; what transformers copies of them stays in a temporary folder."""
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path / "marker"


def change(path, **entries):
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(found | entries))


def change_text(folder, **entries):
    path = folder / "open_clip_config.json"
    found = json.loads(path.read_text())
    found["model_cfg"]["text_cfg"] |= entries
    path.write_text(json.dumps(found))


def tokenizer_with_python(folder, marker):
    (folder / "own.py").write_text(PYTHON.format(marker=str(marker)))
    change(folder / "tokenizer_config.json", tokenizer_class="Own", auto_map={"AutoTokenizer": [None, "own.Own"]})


@pytest.fixture
def clip(tmp_path, marker):
    folder = tmp_path / "clip"
    write_clip(folder)
    tokenizer_with_python(folder, marker)
    change_text(folder, tokenizer_kwargs={"trust_remote_code": True})
    return folder


@pytest.fixture
def vit(tmp_path, marker):
    folder = tmp_path / "vit"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 32}
    ViTForImageClassification(ViTConfig(**sizes, num_labels=3)).save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    (folder / "own.py").write_text(PYTHON.format(marker=str(marker)))
    change(folder / "config.json", model_type="own", auto_map={"AutoConfig": "own.OwnConfig"})
    return folder


def test_the_libraries_would_run_the_python_of_these_directories(clip, vit, marker):
    encoders.open_clip.get_tokenizer(f"local-dir:{clip}")
    assert marker.exists()
    marker.unlink()
    transformers.AutoConfig.from_pretrained(vit, trust_remote_code=True)
    assert marker.exists()


@pytest.mark.parametrize(
    "load",
    [
        lambda folder: encoders.Clip(str(folder)),
        lambda folder: classifiers.load("mine", str(folder), LABELS),
        lambda folder: classifiers.user_classifier(str(folder), name="mine", labels=LABELS),
    ],
)
def test_an_open_clip_directory_that_asks_for_trust_is_refused_in_one_line(clip, marker, load):
    with pytest.raises(ValueError, match=r"open_clip_config\.json has trust_remote_code: true.*; accepted: a model without") as caught:
        load(clip)
    assert "\n" not in str(caught.value)
    assert not marker.exists()


def test_a_classifier_of_transformers_with_its_own_class_is_refused(vit, marker):
    with pytest.raises(ValueError, match=r"mine: .*config\.json has auto_map: .*own\.OwnConfig"):
        classifiers.user_classifier(f"transformers:{vit}", name="mine", labels=LABELS)
    assert not marker.exists()


@pytest.fixture
def pipeline(tiny_pipeline_dir, tmp_path):
    folder = tmp_path / "tiny-sd"
    StableDiffusionPipeline.from_pretrained(tiny_pipeline_dir).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("changes", [{"unet": ["own", "Own"]}, {"_class_name": ["own", "Own"]}])
def test_a_pipeline_of_own_classes_is_refused(pipeline, marker, changes):
    for folder in (pipeline, pipeline / "unet"):
        (folder / "own.py").write_text(PYTHON.format(marker=str(marker)))
    change(pipeline / "model_index.json", **changes)
    with pytest.raises(ValueError, match=rf"pipeline: .*model_index\.json has {next(iter(changes))}: \['own', 'Own'\], Python of its"):
        text_to_image.load_pipeline(pipeline, "cpu")
    assert not marker.exists()


def test_the_tokenizers_of_pipelines_and_token_folders_bring_no_class(pipeline, tmp_path, marker):
    tokenizer_with_python(pipeline / "tokenizer", marker)
    with pytest.raises(ValueError, match=r"pipeline: .*tokenizer_config\.json has auto_map"):
        text_to_image.load_pipeline(pipeline, "cpu")
    (pipeline / "tokens.pt").touch()
    with pytest.raises(ValueError, match=r"text encoder: .*tokenizer_config\.json has auto_map"):
        tokens.read_encoder(pipeline, {"bag": 1})
    assert not marker.exists()
