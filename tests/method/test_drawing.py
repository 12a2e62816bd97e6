"""Ways to draw: each agrees with its own single trajectories, with the ablation's sampler, and with nothing else's tables."""

import dataclasses
from typing import get_args, get_type_hints

import pytest
from tiny_sliders import pipeline, random_sliders

from cnslib.core import paths, tables
from cnslib.core.settings import method, read
from cnslib.core.settings.method import Generation
from cnslib.method import drawing, generation
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

SETTINGS = Generation(steps=4, guidance=3.0, guidances=[3.0], start_fraction=0.75, negative_prompt="")
CLASSES, SHIFT, SCALES = ["sneaker", "ankle boot"], "heavy snow", [0.0, 1.0, 2.5]


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def sliders(pipe, tmp_path_factory):
    return random_sliders(pipe, tmp_path_factory.mktemp("sliders"), [SHIFT], CLASSES)


@pytest.fixture(scope="module")
def draw(pipe, sliders, tiny_pipeline_dir, tiny_tokens_dir):
    """All tables of one way, as the notebook asks for them."""
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)

    def call(name, folder, seeds=2):
        way = drawing.chosen(name)
        inputs = {"settings": way.settings(SETTINGS), "origin": origin, "sliders": sliders, "folder": folder}
        paths = way.generate(pipe, [SHIFT], CLASSES, scales=SCALES, seeds=seeds, **inputs)
        return {shift: tables.read(path, tables.images) for shift, path in paths.items()}

    return call


def pictures(table, name, seed):
    return tables.pictures(table[(table["class"] == name) & (table["seed"] == seed)], "test").astype(int)


@pytest.mark.parametrize("name", drawing.WAYS)
def test_a_trajectory_drawn_alone_is_that_of_the_tables_within_a_grey_level(name, draw, pipe, sliders, tmp_path):
    way, found = drawing.chosen(name), draw(name, tmp_path)
    sampler = way.single(pipe, settings=way.settings(SETTINGS))
    assert abs(sampler.unshifted("sneaker", 2).numpy() - pictures(found["unshifted"], "sneaker", 2)).max() <= 1
    with adapters.loaded(pipe, slider_path(sliders, SHIFT, "sneaker")):
        alone = sampler.shifted("sneaker", 2, SCALES[1:]).numpy()
    assert abs(alone - pictures(found[SHIFT], "sneaker", 2)).max() <= 1


def test_the_fast_way_is_unipc_20_of_the_ablation(pipe):
    """What the ablation concludes about that sampler holds for the pictures of this way; its steps replace those of the settings."""
    way, told = drawing.chosen("fast"), read.load(paths.resolve("params.yaml"))["ablation"].samplers["UniPC 20"]
    drawn = way.sampler(pipe, settings=way.settings(SETTINGS))
    identity = drawing.identity(drawn)
    assert dataclasses.asdict(told) == {"scheduler": identity["scheduler"], "steps": drawn.settings.steps, "spacing": identity["spacing"]}
    assert way.settings(SETTINGS) == dataclasses.replace(SETTINGS, steps=20) and drawing.chosen("fused").settings(SETTINGS) == SETTINGS


def test_the_fast_pictures_are_others_than_the_exact_ones_under_the_same_keys(draw, tmp_path):
    fast, exact = draw("fast", tmp_path / "fast"), draw("exact", tmp_path / "exact")
    assert fast[SHIFT][tables.KEY].equals(exact[SHIFT][tables.KEY])
    assert abs(pictures(fast[SHIFT], "sneaker", 1) - pictures(exact[SHIFT], "sneaker", 1)).mean() > 1


def test_a_fast_image_does_not_depend_on_the_number_of_seeds_or_on_a_table_that_is_there(draw, tmp_path):
    few, many = draw("fast", tmp_path / "few", seeds=1), draw("fast", tmp_path / "many", seeds=6)
    for shift in ("unshifted", SHIFT):
        assert many[shift][many[shift]["seed"] == 1].reset_index(drop=True).equals(few[shift])
    (tmp_path / "many" / "unshifted.parquet").unlink()  # the starts are drawn anew for it, by a scheduler that has seen nothing
    assert draw("fast", tmp_path / "many", seeds=6)["unshifted"].equals(many["unshifted"])


def test_the_ways_do_not_take_each_others_tables(draw, tmp_path):
    """In one folder each way draws its own, also the table of scale 0 that all of them have."""
    digests = set()
    for name in (*drawing.WAYS, "exact"):
        draw(name, tmp_path)
        digests.add((tmp_path / "unshifted.parquet.digest").read_text())
    assert len(digests) == 3


def test_schedulers_are_told_in_digests_and_the_benchmarks_own_sampler_is_not(pipe):
    settings = dataclasses.replace(SETTINGS, steps=20)
    told = drawing.identity(drawing.chosen("fast").single(pipe, settings=settings))
    assert (told["scheduler"], told["spacing"]) == ("UniPCMultistepScheduler", "linspace")
    assert drawing.identity(generation.Sampler(pipe, settings=settings)) == {}


def test_an_unknown_way_is_told_the_known_ones():
    assert tuple(drawing.WAYS) == get_args(get_type_hints(method.Base)["drawing"])
    with pytest.raises(ValueError, match=r"base\.drawing: 'exakt' is not accepted; accepted: exact, fused, fast"):
        drawing.chosen("exakt")
