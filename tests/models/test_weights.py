"""Weights from outside: what is read, what is refused, and that nothing in them is run."""

import argparse
import collections
import hashlib
import os
import pickle

import pytest
import torch
from safetensors.torch import save_file

from cnslib.models import weights

KEY = "evaluation.classifiers.x"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.arange(6.0).reshape(2, 3)}, path)
    return path


def test_safetensors_and_checkpoints_with_settings_are_read(file, tmp_path):
    assert weights.read(file, key=KEY)["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    saved = {"epoch": 3, "args": argparse.Namespace(lr=0.1), "model": {"weight": torch.ones(2)}}
    torch.save(saved, tmp_path / "checkpoint.pth")
    found = weights.read(tmp_path / "checkpoint.pth", key=KEY)
    assert (found["epoch"], found["args"].lr, found["model"]["weight"].tolist()) == (3, 0.1, [1, 1])


class Trap:
    """An object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_checkpoint_with_code_is_refused_and_not_run(tmp_path):
    torch.save({"model": {}, "extra": Trap(tmp_path / "ran")}, tmp_path / "checkpoint.pth")
    with pytest.raises(ValueError, match=rf"{KEY}: .*checkpoint.pth could only be read by running code in it"):
        weights.read(tmp_path / "checkpoint.pth", key=KEY)
    assert not (tmp_path / "ran").exists()


def test_damaged_and_unnamed_weights_are_refused(file, tmp_path):
    file.write_bytes(file.read_bytes()[:-4])
    (tmp_path / "cut.pth").write_bytes(pickle.dumps({"model": 1}, protocol=2)[:-3])
    torch.save(torch.ones(2), tmp_path / "bare.pth")
    for name, message in (("model.safetensors", "is not a complete"), ("cut.pth", "is not a complete"), ("bare.pth", "holds a Tensor")):
        with pytest.raises(ValueError, match=f"{KEY}: .*{name} {message}"):
            weights.read(tmp_path / name, key=KEY)


WEIGHTS = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.alpha": torch.tensor(1.0, dtype=torch.bfloat16)}


class Runs:
    """Unpickling one creates a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.fixture
def path(tmp_path):
    torch.save(collections.OrderedDict(WEIGHTS), tmp_path / "weights.pt")
    return tmp_path / "weights.pt"


def same(found):
    return found.keys() == WEIGHTS.keys() and all(
        torch.equal(found[key], value) and found[key].dtype == value.dtype for key, value in WEIGHTS.items()
    )


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt", ".safetensors"])
def test_tensors_come_back_with_their_names_and_types(tmp_path, suffix):
    path = tmp_path / f"weights{suffix}"
    save_file(WEIGHTS, path) if suffix == ".safetensors" else torch.save(WEIGHTS, path)
    assert same(weights.read_weights(path))


def test_the_format_before_zip_archives_is_read(tmp_path):
    path = tmp_path / "old.pt"
    torch.save(WEIGHTS, path, _use_new_zipfile_serialization=False)
    assert same(weights.read_torch(path))


def test_plain_values_are_loaded_but_are_no_weights(tmp_path):
    path = tmp_path / "tokens.pt"
    torch.save({"tokens": ["<hen-8>"], "initializer_words": ["hen"]}, path)
    assert weights.load_torch(path) == {"tokens": ["<hen-8>"], "initializer_words": ["hen"]}
    with pytest.raises(ValueError, match=r"tokens\.pt: 2 of 2 entries are not tensors.*'tokens': list"):
        weights.read_torch(path)


def test_a_single_tensor_is_no_dictionary(tmp_path):
    path = tmp_path / "0.bin"
    torch.save(torch.zeros(3), path)
    with pytest.raises(ValueError, match=r"0\.bin holds one Tensor; accepted: tensors by name"):
        weights.read_torch(path)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_missing_file_is_named(tmp_path, suffix):
    with pytest.raises(FileNotFoundError, match=f"absent{suffix} does not exist"):
        weights.read_weights(tmp_path / f"absent{suffix}")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html>\n<html><title>Sign in</title></html>", "is a web page"),
        (b"\xef\xbb\xbf\n  <HTML><body>404</body></HTML>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5900000\n", "is a Git LFS pointer"),
    ],
)
def test_a_stand_in_for_weights_is_called_by_its_name(tmp_path, content, message, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"model\{suffix} {message}"):
        weights.read_weights(path, sha256="0" * 64)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.95])
def test_a_truncated_torch_file_is_named_wherever_it_ends(tmp_path, zipped, kept):
    path = tmp_path / "cut.pt"
    torch.save(WEIGHTS, path, _use_new_zipfile_serialization=zipped)
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(ValueError, match=r"cut\.pt is not a complete torch file"):
        weights.read_torch(path)


def test_a_truncated_safetensors_file_is_named(tmp_path):
    path = tmp_path / "cut.safetensors"
    save_file(WEIGHTS, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"cut\.safetensors is not a complete safetensors file"):
        weights.read_weights(path)


@pytest.mark.parametrize("write", ["torch", "torch before zip", "pickle"])
def test_a_file_that_needs_code_is_refused_and_runs_nothing(tmp_path, write):
    path, trace = tmp_path / "evil.pt", tmp_path / "trace"
    if write == "pickle":
        path.write_bytes(pickle.dumps({"x": Runs(trace)}, protocol=2))
    else:
        torch.save(WEIGHTS | {"x": Runs(trace)}, path, _use_new_zipfile_serialization=write == "torch")
    with pytest.raises(ValueError, match=r"evil\.pt could only be read by running code in it \(\w+\.mkdir\)"):
        weights.load_torch(path)
    assert not trace.exists()
    pickle.loads(pickle.dumps(Runs(trace)))
    assert trace.exists()  # what the file would have done


def test_a_pickle_that_torch_did_not_write_is_refused_and_runs_nothing(tmp_path):
    path, trace = tmp_path / "other.pt", tmp_path / "trace"
    path.write_bytes(pickle.dumps({"x": Runs(trace)}, protocol=4))
    with pytest.raises(ValueError, match=r"other\.pt is not a complete torch file"):
        weights.load_torch(path)
    assert not trace.exists()


def test_the_digest_decides_before_anything_is_read(path):
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    assert same(weights.read_torch(path, sha256=right.upper()))
    path.write_bytes(b"anything else")
    with pytest.raises(ValueError, match=rf"weights\.pt has sha256 \w{{64}}; accepted: {right}"):
        weights.read_torch(path, sha256=right)


def test_an_unknown_suffix_is_refused(tmp_path):
    (tmp_path / "weights.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'\.npz' is not accepted; accepted: \.safetensors, \.pt"):
        weights.read_weights(tmp_path / "weights.npz")


def test_a_match_tells_apart_what_fits_what_is_missing_unexpected_and_of_another_shape():
    found = weights.match({"a": (2,), "b": (3,), "u": ()}, {"a": (2,), "b": (3, 1), "m": (), "n": ()})
    assert found == weights.Match(matched=["a"], missing=["m", "n"], unexpected=["u"], reshaped=["b"])
    assert not found.complete and weights.match({"a": (2,)}, {"a": (2,)}).complete
    assert str(found) == "1 tensors match, 2 missing (m, n), 1 unexpected (u), 1 of another shape (b)"
    assert str(weights.match({}, dict.fromkeys("abcd", ()))) == "0 tensors match, 4 missing (a, b, c), 0 unexpected, 0 of another shape"


def test_shapes_are_those_of_the_tensors():
    assert weights.shapes({"a": torch.zeros(2, 3), "b": torch.tensor(1)}) == {"a": (2, 3), "b": ()}
