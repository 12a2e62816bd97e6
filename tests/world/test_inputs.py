import gzip
import hashlib

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from cnslib.core import paths, units
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.data import imagenet
from cnslib.world import cutouts, install, scenes
from cnslib.world.cutouts import CutOut


def stamp(path, size=(400, 300), visible=(50, 100, 350, 200)):
    picture = Image.new("RGBA", size)
    picture.paste((255, 0, 0, 255), visible)
    picture.putpixel((visible[0] + 5, visible[1] + 5), (0, 0, 0, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return path


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "package"
    path = stamp(root / install.STAMPS / "birds/hen.png")
    for document in install.DOCUMENTS.values():
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
    monkeypatch.setattr(install, "LICENCE", licence)
    monkeypatch.setattr(install, "MAPPING", mapping)
    return root


def test_a_stamp_becomes_a_trimmed_cut_out_beside_its_licence(package, tmp_path):
    target = tmp_path / "photos"
    install.photos(package, target)
    (own,) = cutouts.read(target)
    assert (own.label, own.seed, own.picture.size) == ("hen", 1, (300, 100))
    pixels = np.asarray(own.picture).reshape(-1, 4)
    assert (pixels == [255, 0, 0, 255]).all(1).sum() == 29999 and (pixels[:, 3] == 0).sum() == 1
    assert (target / "GPL-2.txt").read_text() == "the licence" and (target / "COPYRIGHT.txt").read_text() == "as it is"
    assert install.cut(stamp(tmp_path / "large.png", (700, 400), (0, 0, 640, 320))).size == (320, 160)


def test_the_set_is_what_the_mapping_says():
    kept = install.listed()
    assert len(kept) >= 60 and kept["class"].nunique() >= 50
    pd.testing.assert_frame_equal(cutouts.contents(paths.PHOTOS), kept[list(cutouts.COLUMNS)], check_dtype=False)
    assert {path.name for path in paths.PHOTOS.glob("*.webp")} == set(kept["file"])
    for row in install.mapping().to_dict("records"):
        assert (imagenet.wnids()[row["index"]], imagenet.labels()[row["index"]]) == (row["wnid"], row["class"])


def test_missing_and_damaged_pictures_are_named(package, tmp_path):
    target = tmp_path / "photos"
    install.photos(package, target)
    Image.new("RGB", (100, 100)).save(target / "hen_1.webp")
    with pytest.raises(ValueError, match=r"hen_1\.webp is RGB"):
        cutouts.read(target)
    (target / "hen_1.webp").unlink()


def disc(label: str = "basketball", side: int = 120) -> CutOut:
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    inside = (x**2 + y**2 < (side / 2 - 2) ** 2).astype(np.uint8)
    return CutOut(label, 1, Image.fromarray(np.stack([220 * inside, 20 * inside, 20 * inside, 255 * inside], -1), "RGBA"))


def test_the_object_is_whole_keeps_its_colour_and_hides_the_background():
    scene = cutouts.scene(disc(), seed=1)[0]
    rows = scene.mask[0, 0].amax(1) > 0.5
    diameter = int(rows.sum())
    assert cutouts.EXTENT[0] * 256 - 8 <= diameter <= cutouts.EXTENT[1] * 256
    assert scene.mask.sum().item() == pytest.approx(np.pi * diameter**2 / 4, rel=0.03)
    assert not any(edge.any() for edge in (scene.mask[..., 0, :], scene.mask[..., -1, :], scene.mask[..., 0], scene.mask[..., -1]))
    middle = scene.image[0, :, scene.mask[0, 0] == 1].median(1)[0] * 255
    assert middle.tolist() == pytest.approx([220, 20, 20], abs=2)
    outside = scene.mask == 0
    assert torch.equal(scene.image * outside, scene.background * outside)


@pytest.mark.parametrize("shift", SHIFTS[::5])
def test_severity_zero_is_the_unshifted_image_and_one_is_another(shift):
    plain = cutouts.shifted(disc(), UNSHIFTED, [0.0], seed=1)[0]
    none, full = cutouts.shifted(disc(), shift, [0.0, 1.0], seed=1)
    assert np.array_equal(none, plain)
    assert np.abs(full.astype(int) - plain).mean() > 5


def test_pose_and_scenery_belong_to_the_cut_out_and_the_seed():
    images = [cutouts.shifted(disc(label), UNSHIFTED, [0.0], seed=seed)[0] for label, seed in (("a", 1), ("a", 1), ("b", 1), ("a", 2))]
    assert np.array_equal(images[0], images[1])
    assert all(np.abs(images[0].astype(int) - other).mean() > 5 for other in images[2:])


def test_the_files_of_the_garments_are_copied_once_and_others_are_named_with_what_to_do(tmp_path, monkeypatch):
    source, target, content = tmp_path / "files", tmp_path / "target", gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3]))
    monkeypatch.setattr(scenes, "FILES", {"images.gz": hashlib.sha256(content).hexdigest()})
    with pytest.raises(FileNotFoundError, match=r"images\.gz is missing: install it with `apt-get install dataset-fashion-mnist`"):
        install.garments(source, target)
    source.mkdir()
    (source / "images.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"images\.gz has sha256"):
        install.garments(source, target)
    (target / "images.gz").write_bytes(content)
    install.garments(source, target)
    assert scenes.read_idx(target / "images.gz").tolist() == [1, 2, 3]
