import os
import zipfile

import pytest

from cnslib.data import archives

FILES = {"snow/hen/1.jpg": b"one", "snow/hen/2.jpg": b"two", "told.json": b"{}"}


def written(path, files=FILES, hidden=()):
    return archives.write(path, [*files.items(), *((name, b"") for name in hidden)])


@pytest.mark.parametrize("name", ["files", "files.zip"])
def test_a_folder_and_a_zip_hold_the_same_files_in_order_without_hidden_ones(tmp_path, name):
    written(tmp_path / name, dict(reversed(FILES.items())), hidden=[".DS_Store", "__MACOSX/snow", "snow/.hidden/1.jpg"])
    with archives.opened(tmp_path / name) as archive:
        assert archive.names == sorted(FILES) and {entry: archive.read(entry) for entry in archive.names} == FILES


@pytest.mark.parametrize("name", ["../snow/hen/1.jpg", "/etc/1.jpg", "C:/1.jpg", "a\\..\\1.jpg", "a/../../1.jpg"])
def test_an_unsafe_path_in_a_zip_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(name, b"1")
    with pytest.raises(ValueError, match="would lie outside"), archives.opened(tmp_path / "bad.zip"):
        pass


def test_a_link_out_of_a_folder_is_refused(tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"1")
    os.symlink(tmp_path / "secret.jpg", written(tmp_path / "files") / "snow" / "3.jpg")
    with pytest.raises(ValueError, match=r"the link snow/3\.jpg leads out of the folder"), archives.opened(tmp_path / "files"):
        pass


def test_what_is_missing_truncated_damaged_or_there_twice_is_named(tmp_path):
    whole = written(tmp_path / "whole.zip").read_bytes()
    (tmp_path / "half.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.zip").write_bytes(whole.replace(b"two", b"tw0"))
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("1.jpg", b"1")
        archive.writestr("1.jpg", b"2")
    for name, error, message in (
        ("none.zip", FileNotFoundError, "does not exist; accepted: a folder or a zip archive"),
        ("half.zip", ValueError, "is not a zip archive"),
        ("flipped.zip", ValueError, r"the entry 'snow/hen/2\.jpg' is damaged"),
        ("twice.zip", ValueError, r"the entry '1\.jpg' is there twice"),
    ):
        with pytest.raises(error, match=message), archives.opened(tmp_path / name) as archive:
            archive.read("snow/hen/2.jpg")


def test_equal_files_make_equal_zips_nothing_is_overwritten_and_a_write_that_fails_leaves_nothing(tmp_path):
    assert written(tmp_path / "one.zip").read_bytes() == written(tmp_path / "two.zip").read_bytes()
    with pytest.raises(FileExistsError, match=r"one\.zip exists"):
        written(tmp_path / "one.zip")

    def files():
        yield "1.jpg", b"1"
        raise KeyError("the second one")

    for name in ("new/out", "new/out.zip"):
        with pytest.raises(KeyError):
            archives.write(tmp_path / name, files())
    assert not list((tmp_path / "new").iterdir())


def test_an_archive_that_would_grow_beyond_bounds_is_refused_before_it_does(tmp_path, monkeypatch):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(4):
            file.writestr(f"vit__{number}.csv", bytes(10**6))
    monkeypatch.setattr(archives, "LARGEST", 2 * 10**6)
    with (
        pytest.raises(ValueError, match=r"bomb\.zip would grow from [\d,]+ to 4,000,000 bytes; accepted: at most 60 times"),
        archives.opened(path),
    ):
        pass
    monkeypatch.setattr(archives, "LARGEST", 10**6 - 1)
    with pytest.raises(ValueError, match=r"'vit__0\.csv' has 1,000,000 bytes unpacked; accepted: at most 999,999"), archives.opened(path):
        pass
