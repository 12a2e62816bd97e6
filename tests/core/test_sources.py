"""Weight files: a local path, then the hub; what is checked before anything reads them."""

import dataclasses
import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from cnslib.core import paths, sources, units
from cnslib.core.settings import read

KEY = "evaluation.classifiers.x"
POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.arange(6.0).reshape(2, 3)}, path)
    return path


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The cache of the hub as huggingface_hub lays it out, with one repository of one commit."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--somebody--model"
    (repository / "snapshots" / commit).mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    save_file({"weight": torch.ones(1)}, repository / "snapshots" / commit / "model.safetensors")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_OFFLINE", True)
    return commit


def resolve(local="", hub="", revision="", sha256=""):
    return sources.resolve(str(local), hub, revision, sha256, key=KEY, file="model.safetensors")


def test_a_local_file_or_its_directory_comes_before_the_hub_which_serves_where_nothing_is(file, hub, tmp_path):
    assert resolve(file, "somebody/model") == resolve(file.parent, "somebody/model") == file
    for revision in ("", hub):
        path = resolve(tmp_path / "nothing", "somebody/model", revision)
        assert path.parent.name == hub
        assert load_file(path)["weight"].tolist() == [1.0]


def test_a_file_that_is_nowhere_is_named_with_the_key(tmp_path, hub):
    for given, message in {
        (tmp_path, "somebody/model"): f"{tmp_path}/model.safetensors does not exist; accepted: the file model.safetensors",
        (tmp_path / "nothing",): f"{tmp_path}/nothing does not exist",
        (): "neither a local path nor a hub id is given",
        ("", "somebody/other", "v1"): "model.safetensors of somebody/other at revision v1 cannot be fetched",
        ("", "stabilityai/stable-diffusion-2"): ".*withdrawn from the hub by its publisher",
    }.items():
        with pytest.raises(FileNotFoundError, match=f"{KEY}: {message}"):
            resolve(*given)


def test_the_digest_is_checked_as_a_whole_or_by_its_first_digits(file):
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert resolve(file, sha256=digest.upper()) == resolve(file, sha256=digest[:8]) == file
    wrong = ("0" if digest[0] != "0" else "1") + digest[1:]
    with pytest.raises(ValueError, match=f"{KEY}: {file} has sha256 {digest}; accepted: {wrong}"):
        resolve(file, sha256=wrong)
    with pytest.raises(ValueError, match=rf"{KEY}\.sha256: .* is not accepted; accepted: 8 to 64 hexadecimal digits"):
        resolve(file, sha256=digest[:7])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n <!DOCTYPE html><html><body>Sign in</body></html>", "is a web page, not weights"),
        (POINTER.encode(), "is a Git LFS pointer, not weights"),
    ],
)
def test_what_is_no_weights_is_told_apart_before_it_is_read(file, content, message):
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{KEY}: {file} {message}"):
        resolve(file, sha256="00000000")


def base(folder, files: dict[str, str], prediction: str = "v_prediction"):
    """The shared parameters with a pipeline in a folder, whose files have these digests."""
    source = {"hub": "", "revision": "", "sha256": files}
    shared = read.load(paths.ROOT / "params.yaml")["base"]
    return dataclasses.replace(shared, pipeline=str(folder), sources={"pipeline": source}, prediction=prediction)


def test_a_model_is_provided_only_where_a_step_needs_it_and_from_the_directory_of_its_key(tmp_path):
    (tmp_path / "model_index.json").write_text("{}")
    whole, broken = base(tmp_path, {"model_index.json": ""}), base(tmp_path, {"model_index.json": "0" * 64})
    assert sources.provide(whole, ["pipeline"]) == whole
    assert sources.provide(broken, ["clip"]) == broken
    with pytest.raises(ValueError, match=r"base\.pipeline: .*model_index\.json has sha256"):
        sources.provide(broken, ["pipeline"])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "prediction_type epsilon, timestep_spacing leading; accepted: v_prediction .*, leading or trailing"),
        ({"prediction_type": "v_prediction", "timestep_spacing": "linspace"}, "timestep_spacing linspace"),
    ],
)
def test_a_scheduler_that_says_something_else_than_the_parameters_is_refused(tmp_path, config, said):
    (tmp_path / "scheduler").mkdir()
    (tmp_path / sources.SCHEDULER).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=rf"base\.pipeline: .*{said}"):
        sources.require_schedule(tmp_path, "v_prediction")
    (tmp_path / sources.SCHEDULER).write_text('{"prediction_type": "v_prediction", "timestep_spacing": "trailing"}')
    sources.require_schedule(tmp_path, "v_prediction")


def test_a_model_is_read_only_as_the_manifest_tells_it(tmp_path):
    """One bit of one file, a file too many, a file too few; a directory of which no manifest tells is taken as it is."""
    models = tmp_path / "models"
    for name in ("oracle", "classifiers/vit"):
        folder = models / name
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"weights")
        sources.require_recorded(folder, key="mine")
    told = {name: {"files": units.directory_digest(models / name)} for name in ("oracle", "classifiers/vit")}
    (models / "manifest.json").write_text(json.dumps(told))
    for folder in (models / "oracle", models / "classifiers" / "vit"):
        sources.require_recorded(folder, key="mine")
        for name, data in {"model.safetensors": b"weighus", "guest.bin": b"x"}.items():
            kept = (folder / name).read_bytes() if (folder / name).exists() else None
            (folder / name).write_bytes(data)
            with pytest.raises(ValueError, match=r"mine: .* is not as it was built: .*manifest\.json tells of .*dvc checkout data\.dvc"):
                sources.require_recorded(folder, key="mine")
            (folder / name).unlink() if kept is None else (folder / name).write_bytes(kept)
        sources.require_recorded(folder, key="mine")
    (models / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match=r"mine: .*manifest\.json is no JSON file .*dvc checkout data\.dvc"):
        sources.require_recorded(models / "oracle", key="mine")
