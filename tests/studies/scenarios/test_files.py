"""Images and masks on disk: every kind of picture is read alike, and what cannot be used is named."""

import numpy as np
import pytest
from PIL import Image

from cnslib.data import imagenet
from cnslib.models import classifiers
from cnslib.studies.scenarios import files, scenarios

SIDE = 6


@pytest.fixture
def colours():
    return np.random.default_rng(5).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)


@pytest.fixture
def area():
    found = np.zeros((SIDE, SIDE), np.uint8)
    found[1:4, 2:5] = 255
    return found


def written(path, array, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    (Image.fromarray(array) if mode is None else Image.fromarray(array).convert(mode)).save(path)
    return path


def test_an_image_and_its_mask_come_as_shares_of_white(tmp_path, colours, area):
    found = files.pair(written(tmp_path / "a.png", colours), written(tmp_path / "m.png", area))
    assert np.array_equal(found.image, colours / 255) and np.array_equal(found.mask, area / 255)


def test_alpha_of_an_image_is_left_out(tmp_path, colours, area):
    rgba = np.dstack([colours, np.full((SIDE, SIDE), 7, np.uint8)])
    found = files.pair(written(tmp_path / "a.png", rgba), written(tmp_path / "m.png", area))
    assert np.array_equal(found.image, colours / 255)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_grey_image_has_three_equal_channels_at_either_depth(tmp_path, colours, area, depth):
    grey = colours[..., 0] if depth == 8 else colours[..., 0].astype(np.uint16) * 257
    found = files.pair(written(tmp_path / "a.png", grey), written(tmp_path / "m.png", area))
    assert np.allclose(found.image, colours[..., :1] / 255) and found.image.shape == (SIDE, SIDE, 3)


@pytest.mark.parametrize("kind", ["1", "L", "16 bit", "RGB", "RGBA"])
def test_a_mask_is_the_same_in_every_kind_of_file(tmp_path, colours, area, kind):
    made = {
        "1": lambda: written(tmp_path / "m.png", area, "1"),
        "L": lambda: written(tmp_path / "m.png", area),
        "16 bit": lambda: written(tmp_path / "m.png", area.astype(np.uint16) * 257),
        "RGB": lambda: written(tmp_path / "m.png", area, "RGB"),
        "RGBA": lambda: written(tmp_path / "m.png", np.dstack([colours, area])),
    }[kind]()
    assert np.array_equal(files.pair(written(tmp_path / "a.png", colours), made).mask, area / 255)


def test_what_was_read_goes_through_every_scenario(tmp_path, colours, area):
    found = files.pair(written(tmp_path / "a.png", colours), written(tmp_path / "m.png", area))
    for name in scenarios.NAMES:
        made = scenarios.scenario(
            name, found.image, found.mask, 1.0, generator=np.random.default_rng(1), background=np.zeros_like(found.image)
        )
        assert made.shape == (SIDE, SIDE, 3)


def test_what_cannot_be_used_is_named(tmp_path, colours, area):
    image, mask = written(tmp_path / "a.png", colours), written(tmp_path / "m.png", area)
    smaller = written(tmp_path / "small.png", area[:4])
    with pytest.raises(ValueError, match=r"mask .*small\.png and image .*a\.png differ in size, 6 x 4 against 6 x 6"):
        files.pair(image, smaller)
    with pytest.raises(ValueError, match=r"mask .*empty\.png is empty; accepted: at least one pixel"):
        files.pair(image, written(tmp_path / "empty.png", np.zeros_like(area)))
    with pytest.raises(ValueError, match=r"p\.png has mode P; accepted: 8 or 16 bit grey, RGB or RGBA"):
        files.pair(written(tmp_path / "p.png", colours, "P"), mask)
    (tmp_path / "page.png").write_text("<html>")
    with pytest.raises(ValueError, match=r"page\.png is not a readable picture"):
        files.pair(tmp_path / "page.png", mask)
    with pytest.raises(FileNotFoundError, match=r"none\.png does not exist"):
        files.pair(image, tmp_path / "none.png")


def test_the_published_tree_is_read_as_it_was_zipped(tmp_path, colours, area):
    """Class folders are wnids; a folder may hold one of its own name. Crayfish and cello, as in the paper."""
    for wnid in ("n01985128", "n02992211"):
        written(tmp_path / "image" / wnid / "b.JPEG", colours)
        written(tmp_path / "masks" / wnid / "b.png", area)
        written(tmp_path / "segmented_image" / "segmented_image" / wnid / "b.JPEG", colours)
    assert [(own.label, own.name) for own in files.published(tmp_path)] == [("n01985128", "b"), ("n02992211", "b")]
    table = files.contents(tmp_path)
    assert sorted(zip(table["shift"], table["class"], strict=True)) == [
        ("segmented", "cello"),
        ("segmented", "crayfish"),
        ("unshifted", "cello"),
        ("unshifted", "crayfish"),
    ]
    (tmp_path / "masks" / "n02992211" / "b.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"n02992211/b\.png does not exist"):
        list(files.published(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has no folder of a scenario; accepted: image, image_grey"):
        files.contents(tmp_path / "masks")


def test_imagenet_classifiers_answer_about_the_published_tree(tmp_path, colours):
    """Every picture and classifier has one row, and answers are labels of ImageNet."""
    written(tmp_path / "image" / "n02992211" / "b.png", colours)
    written(tmp_path / "image_r" / "n02992211" / "b.png", colours[..., 0])
    judge = classifiers.own_classifier("lite:0", name="lite0", labels=list(imagenet.labels()))
    found = files.answers([judge], files.contents(tmp_path))
    assert sorted(found[["model", "shift", "class", "seed", "scale"]].itertuples(index=False, name=None)) == [
        ("lite0", "red", "cello", 0, 1.0),
        ("lite0", "unshifted", "cello", 0, 0.0),
    ]
    assert set(found["top1"]) <= set(imagenet.labels())
