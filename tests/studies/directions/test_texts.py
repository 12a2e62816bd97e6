"""Shifts by text: weight 0 changes nothing, weight 1 is the other prompt, and every method is looked at once."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_sliders import pipeline, random_sliders

from cnslib.core import names, recipes, tables
from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Generation
from cnslib.method import generation, health
from cnslib.models import encoders, text_to_image
from cnslib.studies.directions import texts

CLASSES = ["sneaker", "ankle boot"]
LABELS = [*CLASSES, "bag"]
SHIFT = "heavy snow"
SCALES = [0.0, 1.0, 2.0]
SETTINGS = Generation(steps=8, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=0.75, negative_prompt="", quality=0)


@pytest.fixture(scope="module")
def sampler(tiny_pipeline_dir, tiny_tokens_dir):
    return generation.Sampler(pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), settings=SETTINGS)


@pytest.fixture(scope="module")
def benchmark(sampler, tmp_path_factory):
    """Tables of images: the true unshifted ones, and noise in the place of a slider's."""
    folder, noise = tmp_path_factory.mktemp("generation"), np.random.default_rng(0)
    rows = {"unshifted": [], SHIFT: []}
    for name in CLASSES:
        rows["unshifted"] += generation.rows("unshifted", name, 1, [0.0], sampler.unshifted(name, 1), quality=0)
        pictures = torch.from_numpy(noise.integers(0, 256, (2, 64, 64, 3), dtype=np.uint8))
        rows[SHIFT] += generation.rows(SHIFT, name, 1, SCALES[1:], pictures, quality=0)
    for shift, part in rows.items():
        tables.write(pd.DataFrame(part), folder / f"{shift.replace(' ', '_')}.parquet", tables.images)
    return folder


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judges")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2)
    looks = encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino"))
    return health.Judge(*looks), encoders.Oracle(str(folder / "oracle"), labels=LABELS)


@pytest.fixture(scope="module")
def study(sampler, benchmark, judges, tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory):
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    sliders = random_sliders(sampler.pipe, tmp_path_factory.mktemp("sliders"), [SHIFT], CLASSES)
    return texts.Study(sampler, origin, *judges, benchmark, sliders, tmp_path_factory.mktemp("directions"))


@pytest.mark.parametrize("method", texts.TEXTUAL)
def test_weight_zero_is_the_unshifted_image_bit_for_bit(sampler, method):
    drawn = texts.shifted(sampler, SHIFT, "sneaker", 3, method, [0.0])
    assert torch.equal(drawn, sampler.unshifted("sneaker", 3))
    assert not torch.equal(texts.shifted(sampler, SHIFT, "sneaker", 3, method, [2.0]), drawn)


def test_two_prompts_are_the_plain_pipeline_with_the_other_prompt(sampler):
    prompt = f"a picture of a {names.token('sneaker')} in heavy snow"
    expected = text_to_image.sample(sampler.pipe, [prompt], [3], steps=SETTINGS.steps, guidance=SETTINGS.guidance)
    assert torch.equal(texts.shifted(sampler, SHIFT, "sneaker", 3, texts.PROMPTS, [1.0]), expected)


def test_the_whole_text_ends_at_the_other_prompt_bit_for_bit_but_begins_later(sampler):
    embedded = [texts.contexts(sampler, SHIFT, "sneaker", method, [1.0]) for method in (texts.PROMPTS, texts.WHOLE)]
    assert torch.equal(*embedded)
    drawn = [texts.shifted(sampler, SHIFT, "sneaker", 3, method, [1.0]) for method in (texts.PROMPTS, texts.WHOLE)]
    assert not torch.equal(*drawn)


@pytest.mark.parametrize(("method", "moved"), [(texts.CLASS, [5]), (texts.END, list(range(6, 24)))])
def test_a_direction_moves_its_own_tokens_alone_and_in_proportion(sampler, method, moved):
    """Of "<start> a picture of a <sneaker*> <end> <pad> ..." the class is token 5 and the first end token 6."""
    prompts = ["a picture of a <sneaker*>", "a picture of a <sneaker*> in heavy snow"]
    ids = [sampler.pipe.tokenizer(prompt).input_ids for prompt in prompts]
    assert ids[0][5] == sampler.pipe.tokenizer.convert_tokens_to_ids("<sneaker*>") and len(ids[0]) == 7
    *_, plain, one, two = texts.contexts(sampler, SHIFT, "sneaker", method, [0.0, 1.0, 2.0])
    assert (one - plain).abs().amax(dim=1).nonzero().flatten().tolist() == moved
    assert torch.allclose(two - plain, 2 * (one - plain), atol=1e-5)
    first, other = text_to_image.embed(sampler.pipe, prompts)
    place = {texts.CLASS: -2, texts.END: -1}[method]
    expected = other[len(ids[1]) + place] - first[len(ids[0]) + place]
    assert torch.allclose((one - plain)[moved], expected.expand(len(moved), -1), atol=1e-5)


@pytest.mark.parametrize("method", texts.TEXTUAL)
def test_guidance_acts_in_the_steps_in_which_it_does_for_the_benchmark(sampler, method):
    """At weight 0 a text is the class prompt, so the picture must be the benchmark's whose guidance acts in the same interval."""
    late = generation.Sampler(sampler.pipe, settings=dataclasses.replace(SETTINGS, guided=[0.3, 1.0]))
    drawn = texts.shifted(late, SHIFT, "sneaker", 3, method, [0.0])
    assert torch.equal(drawn, late.unshifted("sneaker", 3)) and not torch.equal(drawn, sampler.unshifted("sneaker", 3))


def test_finer_steps_are_looked_at_as_the_others_and_drawn_once(study):
    """The whole text at the scales of the benchmark is what `score` saw; the slider there is one of its own, not the benchmark's noise."""
    scores = texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    finer = texts.finer(study, [SHIFT], CLASSES, scales=SCALES[1:], seeds=1)
    assert set(finer["method"]) == set(texts.FINER) and len(finer) == 2 * len(CLASSES) * 2
    both = finer.merge(scores, on=["method", *tables.KEY], suffixes=("", "_scored"))
    same = np.isclose(both["alignment"], both["alignment_scored"], atol=1e-5)
    assert same[both["method"] == texts.WHOLE].all() and not same[both["method"] == texts.SLIDER].any()
    paths = {path: path.stat().st_mtime_ns for path in (study.folder / "finer").rglob("*.parquet")}
    assert len(paths) == len(CLASSES)
    texts.finer(study, [SHIFT], CLASSES, scales=SCALES[1:], seeds=1)
    assert {path: path.stat().st_mtime_ns for path in paths} == paths


def test_drawings_are_stored_as_the_benchmark_stores_its_images(study):
    images = texts.shifted(study.sampler, SHIFT, "sneaker", 3, texts.WHOLE, [1.0])
    sampler = generation.Sampler(study.sampler.pipe, settings=dataclasses.replace(SETTINGS, quality=50))
    drawn = texts.draw(dataclasses.replace(study, sampler=sampler), SHIFT, "sneaker", 3, texts.WHOLE, [1.0])
    stored = pd.DataFrame(generation.rows(SHIFT, "sneaker", 3, [1.0], images, quality=50))
    assert np.array_equal(drawn, tables.pictures(stored, "stored")) and not np.array_equal(drawn, images.numpy())


def test_every_method_is_scored_once_from_the_same_unshifted_image(study):
    scores = texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    assert not difference(recipes.DIRECTIONS, scores, within=1e-3)
    grids = {method: [0.0, *texts.grid(method, SCALES)] for method in texts.METHODS}
    wanted = {(method, SHIFT, name, 1, scale) for method, grid in grids.items() for name in CLASSES for scale in grid}
    tables.complete(scores, wanted, ["method", *tables.KEY], "scores")
    start = scores[scores["scale"] == 0]
    assert np.allclose(start["structure"], 1, atol=1e-5) and (start["step"] == 0).all()
    assert (start.groupby("class")[["alignment", "class_probability"]].nunique() == 1).all(axis=None)
    before = {path: path.stat().st_mtime_ns for path in (study.folder / "scores").rglob("*.parquet")}
    texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    assert {path: path.stat().st_mtime_ns for path in before} == before and len(before) == len(CLASSES)
    with pytest.raises(ValueError, match=r"images of 'sneaker': 3 rows missing .*\(2, 0.0\)"):
        texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=2)


def test_another_image_of_the_benchmark_outdates_its_unit(study):
    images = texts.benchmark(study.images, SHIFT, CLASSES, scales=SCALES, seeds=1)
    other = images["sneaker"].assign(image=images["ankle boot"]["image"].to_numpy())
    assert texts.stamp(study, SHIFT, "sneaker", images["sneaker"]) != texts.stamp(study, SHIFT, "sneaker", other)


def test_films_are_the_pictures_that_were_scored(study):
    films = texts.films(study, (SHIFT, "sneaker", 1), scales=SCALES)
    drawn = texts.shifted(study.sampler, SHIFT, "sneaker", 1, texts.END, SCALES[1:]).numpy()
    assert np.array_equal(films[texts.END][1:], drawn) and np.array_equal(films[texts.SLIDER][0], films[texts.END][0])
    assert len(list((study.folder / "pictures").glob("*.parquet"))) == len(films) == len(texts.METHODS)
