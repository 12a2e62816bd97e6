"""What is shown: scenarios keep what they must, objects belong to their keys, and files are read alike or refused by name."""

import dataclasses

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from golden_units import difference
from hypothesis import given
from hypothesis import strategies as some
from matplotlib.colors import hsv_to_rgb
from PIL import Image
from scipy.ndimage import gaussian_filter
from tiny_garments import garments
from tiny_scenarios import CLASSES

from cnslib.core import paths, recipes
from cnslib.core.names import UNSHIFTED
from cnslib.data import imagenet
from cnslib.models import classifiers, text_to_image
from cnslib.studies.scenarios import files, scenarios, subjects
from cnslib.world import cutouts, scenes

SIDE = 9
UNIT = some.floats(0, 1, width=32)
IMAGES = arrays.arrays(np.float64, (SIDE, SIDE, 3), elements=UNIT)
MASKS = arrays.arrays(np.float64, (SIDE, SIDE), elements=some.one_of(some.sampled_from([0.0, 1.0]), UNIT)).filter(np.any)


def make(name, image, mask, severity, seed=1):
    background = np.random.default_rng(7).random(image.shape)
    return scenarios.scenario(name, image, mask, severity, generator=np.random.default_rng(seed), background=background)


@given(IMAGES, MASKS, UNIT, some.sampled_from(scenarios.NAMES))
def test_a_scenario_is_an_image_keeps_the_other_part_bit_for_bit_and_begins_with_the_image(image, mask, severity, name):
    made = make(name, image, mask, severity)
    kept = mask == (0 if name.endswith("object") else 1)
    assert np.array_equal(made[kept], image[kept]) and np.array_equal(make(name, image, mask, 0.0), image)
    assert made.shape == image.shape and made.min() >= -1e-12 and made.max() <= 1 + 1e-12


@pytest.fixture
def picture():
    """A random image whose object is its left third."""
    mask = np.zeros((SIDE, SIDE))
    mask[:, :3] = 1
    return np.random.default_rng(3).random((SIDE, SIDE, 3)), mask


def test_scenarios_are_those_of_the_paper(picture):
    """Black, luma (Rec. 601), a 15 x 15 Gaussian, alpha compositing, and the saturating sum of the released code."""
    image, mask = picture
    background = {name: make(name, image, mask, 1.0)[:, 3:] for name in ("segmented", "grey", "blurred background")}
    assert (background["segmented"] == 0).all()
    assert np.allclose(background["grey"], (image @ [0.299, 0.587, 0.114])[:, 3:, None])
    assert np.allclose(background["blurred background"], gaussian_filter(image, (3, 3, 0), radius=(7, 7, 0))[:, 3:])
    white = np.ones_like(image)
    assert np.array_equal(scenarios.replaced(image, mask, 1.0, background=white)[:, :3], image[:, :3])
    assert (scenarios.summed(image, mask, 1.0, background=white) == 1).all()


@pytest.mark.parametrize(("name", "channel"), [("red", 0), ("green", 1), ("blue", 2), ("rainbow", None)])
def test_a_colour_belongs_to_its_band_and_is_seen_on_a_pale_ground(picture, name, channel):
    """Grounds of the catalog have a saturation of 0.08: a hue alone changes them by 3 in 100."""
    rng, mask = np.random.default_rng(3), picture[1]
    image = hsv_to_rgb(np.stack([rng.random((SIDE, SIDE)), np.full((SIDE, SIDE), 0.08), 0.8 + 0.15 * rng.random((SIDE, SIDE))], -1))
    made = make(name, image, mask, 1.0)
    assert np.abs(made - image)[:, 3:].mean() > 0.2 and np.allclose(made.max(-1), image.max(-1))  # light and dark stay where they are
    strongest = [np.median(make(name, *picture, 1.0, seed)[:, 3:].argmax(-1)) for seed in range(20)]
    assert channel is None or np.mean(np.array(strongest) == channel) > 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "foggy"}, "scenario: 'foggy' is not accepted; accepted: grey, red"),
        ({"severity": 1.5}, "severity of 'grey': 1.5 is not accepted; accepted: 0 to 1"),
        ({"image": np.zeros((SIDE, SIDE))}, r"image: .*shape \(9, 9\)"),
        ({"image": np.full((SIDE, SIDE, 3), 70, dtype=np.uint16)}, "image: .*uint16.*accepted: height x width x 3, floats"),
        ({"mask": np.ones((SIDE, 4))}, r"mask: .*\(9, 4\)"),
        ({"mask": np.zeros((SIDE, SIDE))}, "mask: 'empty'"),
        ({"name": "random background", "background": None}, "background of 'random background': None"),
    ],
)
def test_what_no_scenario_can_be_made_from_is_refused(change, message):
    arguments = {"name": "grey", "image": np.zeros((SIDE, SIDE, 3)), "mask": np.ones((SIDE, SIDE)), "severity": 0.5} | change
    with pytest.raises(ValueError, match=message):
        scenarios.scenario(**arguments, generator=np.random.default_rng(1))


def test_a_subject_belongs_to_its_class_and_number_and_its_random_background_holds_no_garment(found):
    """Fewer garments, or one class alone, are the same garments; whatever garments the pool holds, the other background is the same."""
    (alone,) = subjects.garments(garments(), "heldout", ["ankle boot"], count=1, seed=1)
    assert (alone.label, alone.seed) == (found[2].label, found[2].seed) == ("ankle boot", 0)
    assert all(np.allclose(getattr(alone, part), getattr(found[2], part), atol=1e-6) for part in ("image", "mask", "other"))
    changed = dataclasses.replace(garments(), grey=torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(1)))
    others = subjects.garments(changed, "heldout", CLASSES, count=2, seed=1)
    assert all(np.array_equal(one.other, other.other) for one, other in zip(found, others, strict=True))
    key = ("scenarios", "heldout", "sneaker", 1, 0, "other")
    backdrop = scenes.backdrop(scenes.draw([key]), 64, wide=1.0)[0].permute(1, 2, 0).numpy()
    assert np.allclose(found[0].other, backdrop, atol=1e-6)
    with pytest.raises(ValueError, match=r"images: 3 is not accepted; accepted: at most 2, the garments of class 'sneaker'"):
        subjects.garments(garments(), "heldout", CLASSES, count=3, seed=1)
    with pytest.raises(ValueError, match=r"base\.classes: 'owl' is not accepted; accepted: t-shirt"):
        subjects.garments(garments(), "heldout", ["owl"], count=1, seed=1)


def test_a_photograph_is_the_photo_sets_scene_before_empty_scenery_whichever_others_are_composed():
    every, some_of = (subjects.photographs(paths.PHOTOS, count=4, seed=1, rows=rows) for rows in (None, [3, 1]))
    for own, other in zip(some_of, (every[3], every[1]), strict=True):
        assert own.label == other.label and np.array_equal(own.image, other.image) and np.array_equal(own.other, other.other)
    first, scene = every[0], cutouts.shifted(cutouts.read(paths.PHOTOS, count=1)[0], UNSHIFTED, [0.0], seed=1)[0]
    apart = np.abs(subjects.shown(first, UNSHIFTED, 1.0, seed=1).astype(int) - scene)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01  # ties of rounding: double precision here, single there
    draws = scenes.draw([("scenarios", 1, first.label, first.seed, "other")])
    made = [cutouts.background(draws, cutouts.SIDE, (kind,))[0].permute(1, 2, 0).numpy() for kind in ("meadow", "path", "wall", "haze")]
    assert any(np.allclose(first.other, one, atol=1e-6) for one in made)
    with pytest.raises(ValueError, match=r"segmentation\.photographs: 999.*at most 88"):
        subjects.spread(paths.PHOTOS, count=999, seed=1)


@pytest.mark.parametrize("name", [*scenarios.NAMES, scenarios.SUMMED])
def test_what_is_shown_keeps_its_random_numbers_along_the_severity(found, name):
    """A hue drawn again at every severity would not lie between the image and the scenario."""
    own = dataclasses.replace(found[0], drawn=found[1].image)
    start, half, end = (subjects.shown(own, name, severity, seed=1).astype(int) for severity in (0.0, 0.5, 1.0))
    assert np.array_equal(start, subjects.rounded(own.image))
    if "blurred" not in name:
        assert (abs(2 * half - start - end) <= 3).mean() > (0.5 if name == scenarios.SUMMED else 0.999)


def test_states_are_the_original_once_and_every_scenario_that_a_subject_has(found):
    drawn = dataclasses.replace(found[0], drawn=found[1].image)
    for own, names in ((found[0], scenarios.UNDRAWN), (drawn, scenarios.NAMES)):
        rows = subjects.keys(own, [0.0, 0.5, 1.0])
        assert len(rows) == len(subjects.pictures(own, [0.0, 0.5, 1.0], seed=1)) == 1 + 2 * len(names)
        assert rows.iloc[0].tolist() == [UNSHIFTED, "sneaker", 0, 0.0] and list(rows["shift"].unique()[1:]) == list(names)


def test_what_is_kept_stays_and_what_is_free_is_painted(tiny_pipeline_dir, settings):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    generator = torch.Generator().manual_seed(1)
    known, noise = (torch.randn(1, 4, 16, 16, generator=generator) for _ in range(2))
    kept = torch.zeros(1, 1, 16, 16)
    kept[..., :8] = 1
    words = text_to_image.embed(pipe, ["", "a picture of a sneaker"])
    made = subjects.repaint(pipe, known, kept, noise, words, settings=settings)
    assert torch.equal(made[..., :8], known[..., :8]) and not torch.allclose(made[..., 8:], known[..., 8:], atol=0.1)


def test_a_drawn_scene_belongs_to_its_object_is_drawn_once_and_is_the_golden_one(drawing, found):
    drawn = drawing.garments(CLASSES)
    alone = subjects.draw(text_to_image.load_pipeline(drawing.pipeline, "cpu"), found[3:], settings=drawing.settings)
    assert np.abs(drawn[3].drawn * 255 - alone[0].numpy()).max() <= 1
    times = {path: path.stat().st_mtime_ns for path in drawing.folder.iterdir()}
    (drawing.folder / "sneaker.parquet").unlink()
    again = drawing.garments(CLASSES)
    assert all(np.array_equal(one.drawn, other.drawn) for one, other in zip(drawn, again, strict=True))
    assert {path.stem for path, time in times.items() if path.suffix == ".parquet" and path.stat().st_mtime_ns == time} == {"ankle_boot"}
    assert not difference(recipes.DRAWN_BACKGROUNDS, np.stack([own.drawn * 255 for own in drawn]))
    assert not difference(recipes.SUBJECTS, np.stack([subjects.shown(found[0], name, 1.0, seed=1) for name in scenarios.UNDRAWN]))


@pytest.fixture
def colours():
    return np.random.default_rng(5).integers(0, 256, (6, 6, 3), dtype=np.uint8)


@pytest.fixture
def area():
    found = np.zeros((6, 6), np.uint8)
    found[1:4, 2:5] = 255
    return found


def written(path, array, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    (Image.fromarray(array) if mode is None else Image.fromarray(array).convert(mode)).save(path)
    return path


def test_an_image_comes_in_shares_of_white_without_alpha_and_grey_at_either_depth_in_three_channels(tmp_path, colours, area):
    mask, grey = written(tmp_path / "m.png", area), colours[..., 0]
    rgba = np.dstack([colours, np.full((6, 6), 7, np.uint8)])
    for array, expected in (
        (colours, colours / 255),
        (rgba, colours / 255),
        (grey, np.repeat(grey[..., None] / 255, 3, -1)),
        (grey.astype(np.uint16) * 257, np.repeat(grey[..., None] / 255, 3, -1)),
    ):
        found = files.pair(written(tmp_path / "a.png", array), mask)
        assert np.allclose(found.image, expected) and np.array_equal(found.mask, area / 255)


def test_a_mask_is_the_same_in_every_kind_of_file(tmp_path, colours, area):
    image, path = written(tmp_path / "a.png", colours), tmp_path / "m.png"
    for array, mode in ((area, "1"), (area, None), (area.astype(np.uint16) * 257, None), (area, "RGB"), (np.dstack([colours, area]), None)):
        assert np.array_equal(files.pair(image, written(path, array, mode)).mask, area / 255)


def test_files_that_cannot_be_used_are_named(tmp_path, colours, area):
    image, mask = written(tmp_path / "a.png", colours), written(tmp_path / "m.png", area)
    (tmp_path / "page.png").write_text("<html>")
    for one, other, message in (
        (image, written(tmp_path / "small.png", area[:4]), r"mask .*small\.png and image .*a\.png differ in size, 6 x 4 against 6 x 6"),
        (image, written(tmp_path / "empty.png", np.zeros_like(area)), r"mask .*empty\.png is empty; accepted: at least one pixel"),
        (written(tmp_path / "p.png", colours, "P"), mask, r"p\.png has mode P; accepted: 8 or 16 bit grey, RGB or RGBA"),
        (tmp_path / "page.png", mask, r"page\.png is not a readable picture"),
    ):
        with pytest.raises(ValueError, match=message):
            files.pair(one, other)
    with pytest.raises(FileNotFoundError, match=r"none\.png does not exist"):
        files.pair(image, tmp_path / "none.png")


def test_the_published_tree_is_read_as_it_was_zipped_and_evaluated(tmp_path, colours, area):
    """Class folders are wnids; a folder may hold one of its own name. Crayfish and cello, as in the paper."""
    for wnid in ("n01985128", "n02992211"):
        written(tmp_path / "image" / wnid / "b.JPEG", colours)
        written(tmp_path / "masks" / wnid / "b.png", area)
        written(tmp_path / "segmented_image" / "segmented_image" / wnid / "b.JPEG", colours)
    assert [(own.label, own.name) for own in files.published(tmp_path)] == [("n01985128", "b"), ("n02992211", "b")]
    table = files.contents(tmp_path)
    expected = [(name, label) for name in ("segmented", "unshifted") for label in ("cello", "crayfish")]
    assert sorted(zip(table["shift"], table["class"], strict=True)) == expected
    judge = classifiers.own_classifier("lite:0", name="lite0", labels=list(imagenet.labels()), device="cpu")
    found = files.predictions([judge], table)
    assert len(found) == 4 and set(found["top1"]) <= set(imagenet.labels())
    assert found.set_index("shift")["scale"].groupby(level=0).first().to_dict() == {"segmented": 1.0, "unshifted": 0.0}
    (tmp_path / "masks" / "n02992211" / "b.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"n02992211/b\.png does not exist"):
        list(files.published(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has no folder of a scenario; accepted: image, image_grey"):
        files.contents(tmp_path / "masks")
