import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from cnslib.core import sources, units

KEY = "evaluation.classifiers.x"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.arange(6.0).reshape(2, 3)}, path)
    return path


@pytest.fixture
def hub(tmp_path, monkeypatch):
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


def test_what_is_no_weights_is_told_apart_before_it_is_read(file):
    for content, message in {
        b"\n <!DOCTYPE html><html><body>Sign in</body></html>": "is a web page, not weights",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n": "is a Git LFS pointer, not weights",
    }.items():
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"{KEY}: {file} {message}"):
            resolve(file, sha256="00000000")


def test_a_scheduler_that_says_something_else_than_the_parameters_is_refused(tmp_path):
    (tmp_path / "scheduler").mkdir()
    (tmp_path / sources.SCHEDULER).write_text('{"prediction_type": "v_prediction", "timestep_spacing": "linspace"}')
    with pytest.raises(ValueError, match=r"base\.pipeline: .*timestep_spacing linspace"):
        sources.require_schedule(tmp_path, "v_prediction")
    (tmp_path / sources.SCHEDULER).write_text('{"prediction_type": "v_prediction", "timestep_spacing": "trailing"}')
    sources.require_schedule(tmp_path, "v_prediction")


def test_a_model_is_read_only_as_the_manifest_tells_it(tmp_path):
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
