"""The photo set's cut-outs: where they come from, what they show, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cnslib.core import paths, units
from cnslib.world import cutouts, stamps


def stamp(path, size=(400, 300), visible=(50, 100, 350, 200)):
    """A transparent picture with a red rectangle that has a hole of one pixel."""
    picture = Image.new("RGBA", size)
    picture.paste((255, 0, 0, 255), visible)
    picture.putpixel((visible[0] + 5, visible[1] + 5), (0, 0, 0, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An unpacked package of one stamp, a red hen, with its mapping."""
    root = tmp_path / "package"
    path = stamp(root / stamps.STAMPS / "birds/hen.png")
    for document in stamps.DOCUMENTS.values():
        (root / document).parent.mkdir(parents=True, exist_ok=True)
        (root / document).write_text("as it is")
    licence = tmp_path / "GPL-2"
    licence.write_text("the licence")
    mapping = tmp_path / "stamps.csv"
    rows = [
        [8, "n01514859", "hen", "birds/hen.png", units.file_digest(path), ""],
        [8, "n01514859", "hen", "birds/no.png", "0" * 64, "drawn"],
    ]
    pd.DataFrame(rows, columns=["index", "wnid", "class", "source", "sha256", "left_out"]).to_csv(mapping, index=False)
    monkeypatch.setattr(stamps, "LICENCE", licence)
    monkeypatch.setattr(stamps, "MAPPING", mapping)
    return root


def test_a_stamp_becomes_a_trimmed_cut_out_beside_its_licence(package, tmp_path):
    target = tmp_path / "photos"
    stamps.install(package, target)
    (own,) = cutouts.read(target)
    assert (own.label, own.seed, own.picture.size) == ("hen", 1, (300, 100))
    pixels = np.asarray(own.picture).reshape(-1, 4)
    assert (pixels == [255, 0, 0, 255]).all(1).sum() == 29999 and (pixels[:, 3] == 0).sum() == 1
    assert (target / "GPL-2.txt").read_text() == "the licence" and (target / "COPYRIGHT.txt").read_text() == "as it is"


def test_other_bytes_and_missing_stamps_are_named(package, tmp_path):
    stamp(package / stamps.STAMPS / "birds/hen.png", visible=(0, 0, 100, 100))
    with pytest.raises(ValueError, match=r"hen.png has sha256"):
        stamps.install(package, tmp_path / "photos")
    (package / stamps.STAMPS / "birds/hen.png").unlink()
    with pytest.raises(FileNotFoundError, match="apt-get install tuxpaint-stamps-default"):
        stamps.install(package, tmp_path / "photos")


@pytest.mark.parametrize(("visible", "expected"), [((0, 0, 640, 320), (320, 160)), ((100, 0, 180, 40), (80, 40))])
def test_large_stamps_are_reduced_and_small_ones_kept(tmp_path, visible, expected):
    assert stamps.cut(stamp(tmp_path / "a.png", (700, 400), visible)).size == expected


def test_a_stamp_that_would_be_blown_up_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 80 px"):
        stamps.cut(stamp(tmp_path / "a.png", visible=(0, 0, 79, 79)))


def test_the_set_is_what_the_mapping_says():
    kept = stamps.listed()
    assert len(kept) >= 60 and kept["class"].nunique() >= 50
    pd.testing.assert_frame_equal(cutouts.contents(paths.PHOTOS), kept[list(cutouts.COLUMNS)], check_dtype=False)
    assert {path.name for path in paths.PHOTOS.glob("*.webp")} == set(kept["file"])


def test_every_cut_out_has_an_object_and_nothing_around_it():
    for own in cutouts.read(paths.PHOTOS):
        mask = np.asarray(own.picture.getchannel("A")) / 255
        assert 80 <= max(own.picture.size) <= 320 and 0.1 < mask.mean() < 0.95
        assert ((mask > 0.1) & (mask < 0.9)).mean() < 0.4  # an edge, or the strings of a racket, no veil


@pytest.mark.parametrize(
    ("column", "value", "said"), [("wnid", "n01514668", "class 8 is n01514668"), ("class", "cock", "class 8 is n01514859, 'cock'")]
)
def test_a_class_that_is_not_one_of_imagenet_is_named(package, tmp_path, column, value, said):
    target = tmp_path / "photos"
    stamps.install(package, target)
    rows = pd.read_csv(target / cutouts.LIST)
    rows[column] = value
    rows.to_csv(target / cutouts.LIST, index=False)
    with pytest.raises(ValueError, match=said):
        cutouts.read(target)


def test_missing_and_damaged_pictures_are_named(package, tmp_path):
    target = tmp_path / "photos"
    with pytest.raises(FileNotFoundError, match="dvc pull"):
        cutouts.read(target)
    stamps.install(package, target)
    Image.new("RGB", (100, 100)).save(target / "hen_1.webp")
    with pytest.raises(ValueError, match=r"hen_1\.webp is RGB"):
        cutouts.read(target)
    (target / "hen_1.webp").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="not a readable picture"):
        cutouts.read(target)
    (target / "hen_1.webp").unlink()
    with pytest.raises(FileNotFoundError, match=r"hen_1.webp"):
        cutouts.read(target)
