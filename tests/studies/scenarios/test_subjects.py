"""Objects with their masks: what they are made of, what scenarios keep of them, and scenes drawn around them."""

import dataclasses

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_garments import garments
from tiny_scenarios import CLASSES

from cnslib.core import paths, recipes
from cnslib.core.names import UNSHIFTED
from cnslib.models import text_to_image
from cnslib.studies.scenarios import scenarios, subjects
from cnslib.world import cutouts, scenes


def test_a_subject_belongs_to_its_class_and_number(found):
    """Fewer garments, or one class alone, are the same garments."""
    (alone,) = subjects.garments(garments(), "heldout", ["ankle boot"], count=1, seed=1)
    same = found[2]
    assert (alone.label, alone.seed) == (same.label, same.seed) == ("ankle boot", 0)
    assert all(np.allclose(getattr(alone, part), getattr(same, part), atol=1e-6) for part in ("image", "mask", "other"))
    with pytest.raises(ValueError, match=r"scenarios\.images: 3 is not accepted; accepted: at most 2, the garments of class 'sneaker'"):
        subjects.garments(garments(), "heldout", CLASSES, count=3, seed=1)


def test_the_random_background_of_a_garment_holds_no_garment(found):
    """Whatever garments the pool holds, the background is the same: one of the web, rendered without any."""
    changed = dataclasses.replace(garments(), grey=torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(1)))
    others = subjects.garments(changed, "heldout", CLASSES, count=2, seed=1)
    assert all(np.array_equal(one.other, other.other) for one, other in zip(found, others, strict=True))
    key = ("scenarios", "heldout", "sneaker", 1, 0, "other")
    alone = scenes.backdrop(scenes.draw([key]), 64, wide=1.0)[0].permute(1, 2, 0).numpy()
    assert np.allclose(found[0].other, alone, atol=1e-6)


def test_the_random_background_of_a_photograph_is_scenery_without_a_photograph():
    """Neither another cut-out nor the palace and the flower of the sample photographs, which ImageNet has names for."""
    found = subjects.photographs(paths.PHOTOS, count=6, seed=1)
    assert set(cutouts.EMPTY) == {"meadow", "path", "wall", "haze"}
    for own in found:
        draws = scenes.draw([("scenarios", 1, own.label, own.seed, "other")])
        made = [cutouts.background(draws, cutouts.SIDE, (kind,))[0].permute(1, 2, 0).numpy() for kind in cutouts.EMPTY]
        assert any(np.allclose(own.other, one, atol=1e-6) for one in made)


def test_a_photograph_is_the_photo_sets_scene():
    (first,) = subjects.photographs(paths.PHOTOS, count=1, seed=1)
    objects = cutouts.read(paths.PHOTOS, count=1)
    ours, theirs = subjects.shown(first, UNSHIFTED, 1.0, seed=1), cutouts.shifted(objects[0], UNSHIFTED, [0.0], seed=1)[0]
    apart = np.abs(ours.astype(int) - theirs)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01  # ties of rounding: double precision here, single there


def test_some_of_the_photographs_are_those_that_stand_among_all():
    every, some = subjects.photographs(paths.PHOTOS, count=4, seed=1), subjects.photographs(paths.PHOTOS, count=4, seed=1, rows=[3, 1])
    assert [own.label for own in some] == [every[3].label, every[1].label]
    for own, other in zip(some, (every[3], every[1]), strict=True):
        assert np.array_equal(own.image, other.image) and np.array_equal(own.mask, other.mask) and np.array_equal(own.other, other.other)


@pytest.mark.parametrize("name", [*scenarios.NAMES, scenarios.SUMMED])
def test_what_is_shown_keeps_its_part_and_its_random_numbers_along_the_severity(found, name):
    """A hue drawn anew at every severity would not lie between the image and the scenario."""
    own = dataclasses.replace(found[0], drawn=found[1].image)
    start, half, end = (subjects.shown(own, name, severity, seed=1).astype(int) for severity in (0.0, 0.5, 1.0))
    assert np.array_equal(start, subjects.rounded(own.image))
    if "blurred" not in name:
        assert (abs(2 * half - start - end) <= 3).mean() > (0.5 if name == scenarios.SUMMED else 0.999)
    if name != scenarios.SUMMED:
        kept = own.mask == (0 if name.endswith("object") else 1)
        assert np.array_equal(end[kept], start[kept])


def test_what_is_kept_stays_and_what_is_free_is_painted(tiny_pipeline_dir, settings):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    generator = torch.Generator().manual_seed(1)
    known, noise = (torch.randn(1, 4, 16, 16, generator=generator) for _ in range(2))
    kept = torch.zeros(1, 1, 16, 16)
    kept[..., :8] = 1
    words = text_to_image.embed(pipe, ["", "a picture of a sneaker"])
    made = subjects.repaint(pipe, known, kept, noise, words, settings=settings)
    assert torch.equal(made[..., :8], known[..., :8]) and not torch.allclose(made[..., 8:], known[..., 8:], atol=0.1)


def test_a_drawn_scene_belongs_to_its_object_and_is_drawn_once(tiny_pipeline_dir, settings, found, tmp_path):
    given = {"pipeline": tiny_pipeline_dir, "settings": settings, "device": "cpu", "folder": tmp_path}
    drawn = subjects.draw_all(found, **given)
    alone = subjects.draw(text_to_image.load_pipeline(tiny_pipeline_dir, "cpu"), found[3:], settings=settings)
    assert np.abs(drawn[3].drawn * 255 - alone[0].numpy()).max() <= 1
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / "sneaker.parquet").unlink()
    again = subjects.draw_all(found, **given)
    assert all(np.array_equal(one.drawn, other.drawn) for one, other in zip(drawn, again, strict=True))
    unchanged = {path.name for path, time in times.items() if path.stat().st_mtime_ns == time}
    assert unchanged == {"ankle_boot.parquet", "ankle_boot.parquet.digest"}


def test_the_tiny_units_are_the_golden_ones(tiny_pipeline_dir, settings, found, tmp_path):
    drawn = subjects.draw_all(found, pipeline=tiny_pipeline_dir, settings=settings, device="cpu", folder=tmp_path / "drawn")
    assert not difference(recipes.DRAWN_BACKGROUNDS, np.stack([own.drawn * 255 for own in drawn]))
    names = [name for name in scenarios.NAMES if name != subjects.NAME]
    assert not difference(recipes.SUBJECTS, np.stack([subjects.shown(found[0], name, 1.0, seed=1) for name in names]))
