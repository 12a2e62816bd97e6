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


def test_drawings_are_stored_as_the_benchmark_stores_its_images(study):
    images = texts.shifted(study.sampler, SHIFT, "sneaker", 3, texts.WHOLE, [1.0])
    sampler = generation.Sampler(study.sampler.pipe, settings=dataclasses.replace(SETTINGS, quality=50))
    drawn = texts.drawn(dataclasses.replace(study, sampler=sampler), SHIFT, "sneaker", 3, texts.WHOLE, [1.0])
    stored = pd.DataFrame(generation.rows(SHIFT, "sneaker", 3, [1.0], images, quality=50))
    assert np.array_equal(drawn, tables.pictures(stored, "stored")) and not np.array_equal(drawn, images.numpy())


def test_an_unknown_method_is_named(sampler):
    with pytest.raises(ValueError, match=r"method: 'pooled'.*accepted: two prompts, class token"):
        texts.target(sampler, SHIFT, "sneaker", "pooled")


def test_every_method_is_scored_once_from_the_same_unshifted_image(study):
    scores = texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    grids = {method: [0.0, *texts.grid(method, SCALES)] for method in texts.METHODS}
    wanted = {(method, SHIFT, name, 1, scale) for method, grid in grids.items() for name in CLASSES for scale in grid}
    tables.complete(scores, wanted, ["method", *tables.KEY], "scores")
    start = scores[scores["scale"] == 0]
    assert np.allclose(start["structure"], 1, atol=1e-5) and (start["step"] == 0).all()
    assert (start.groupby("class")[["alignment", "class_probability"]].nunique() == 1).all(axis=None)


def test_a_second_run_draws_nothing_and_another_image_draws_its_unit_anew(study):
    texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    paths = {name: study.folder / "scores" / texts.unit_name(SHIFT, name) for name in CLASSES}
    before = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    assert {name: path.stat().st_mtime_ns for name, path in paths.items()} == before
    own = {name: texts.own_rows(texts.benchmark(study.images, SHIFT), name, scales=SCALES, seeds=1) for name in CLASSES}
    other = own["sneaker"].assign(image=own["ankle boot"]["image"].to_numpy())
    digest = texts.stamp(study, SHIFT, "sneaker", own["sneaker"])
    assert digest != texts.stamp(study, SHIFT, "sneaker", other)


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


def test_a_picture_at_weight_zero_is_the_benchmarks(study):
    assert (texts.unmoved(study, SHIFT, "sneaker") == 0).all()


def test_distances_count_the_tokens_that_a_method_moves(sampler):
    """The class is one token of 24; from the end token on there are 18."""
    moved = texts.distances(sampler, [SHIFT], "sneaker").loc[SHIFT]
    assert moved["tokens moved"][[texts.CLASS, texts.END]].tolist() == [1, 18]
    assert moved["distance", texts.WHOLE] == moved["distance", texts.PROMPTS] > 0


def test_films_are_the_pictures_that_were_scored(study):
    keys = [(method, SHIFT, "sneaker", 1) for method in (texts.SLIDER, texts.END)]
    strips = texts.films(study, keys, scales=SCALES)
    drawn = texts.shifted(study.sampler, SHIFT, "sneaker", 1, texts.END, SCALES[1:]).numpy()
    assert np.array_equal(strips[keys[1]][1:], drawn) and np.array_equal(strips[keys[0]][0], strips[keys[1]][0])
    assert len(list((study.folder / "pictures").glob("*.parquet"))) == 2


def test_a_missing_image_of_the_benchmark_is_named(study):
    with pytest.raises(ValueError, match=r"images of 'sneaker': 3 rows missing .*\(2, 0.0\)"):
        texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=2)


def test_the_tiny_unit_is_the_golden_one(study):
    assert not difference(recipes.DIRECTIONS, texts.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1), within=1e-3)
