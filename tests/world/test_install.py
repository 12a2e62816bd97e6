"""The Fashion-MNIST files: copied where they are missing, checked wherever they come from."""

import gzip
import hashlib

import pytest

from cnslib.world import install, scenes


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder with two files that stand for the package's four, under their own digests."""
    folder = tmp_path / "package"
    folder.mkdir()
    contents = {name: gzipped(name) for name in list(scenes.FILES)[:2]}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    monkeypatch.setattr(scenes, "FILES", {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()})
    return folder


def gzipped(name: str) -> bytes:
    """An idx file of three bytes."""
    return gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + name[:3].encode(), mtime=0)


def test_every_file_is_copied_and_one_that_is_there_is_left_alone(package, tmp_path):
    install.install(package, tmp_path / "target")
    found = {path.name: path.read_bytes() for path in (tmp_path / "target").iterdir()}
    assert found == {path.name: path.read_bytes() for path in package.iterdir()}
    for path in package.iterdir():
        path.unlink()
    install.install(package, tmp_path / "target")


def test_a_missing_package_and_other_bytes_are_named_with_what_to_do(package, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train-images.* is missing: install it with `apt-get install dataset-fashion-mnist`"):
        install.install(tmp_path / "nowhere", tmp_path / "target")
    (package / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz has sha256"):
        install.install(package, tmp_path / "target")
