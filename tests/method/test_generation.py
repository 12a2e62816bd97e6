import copy
import dataclasses
import functools
import itertools
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from PIL import Image
from tiny_sliders import CLASSES, SHIFTS, plain_images, random_sliders

from cnslib.core import recipes, tables, units
from cnslib.core.settings import method
from cnslib.core.settings.method import Generation
from cnslib.method import generation
from cnslib.method.generation import PASS, SAMPLING_MODES
from cnslib.models import adapters
from cnslib.models.adapters import slider_path

SETTINGS = Generation(8, 3.0, [0.0, 1.0], [3.0], 0.75, "", 0, 0)
SCALES = [0.0, 1.0, 2.5]
FUSED, FAST = SAMPLING_MODES["fused"], SAMPLING_MODES["fast"]
SHIFT, RANK, ALPHA = SHIFTS[0], 4, 2.0


@pytest.fixture(scope="module")
def sliders(pipe, tmp_path_factory):
    return random_sliders(pipe, tmp_path_factory.mktemp("sliders"), SHIFTS, CLASSES)


@pytest.fixture(scope="module")
def draw(pipe, origin, sliders):
    def call(folder, shifts=SHIFTS, classes=CLASSES, *, scales=SCALES, seeds=2, settings=SETTINGS, way="exact"):
        sampler = generation.Sampler(pipe, settings=SAMPLING_MODES[way].settings(settings), mode=SAMPLING_MODES[way])
        grid = {"scales": scales, "seeds": seeds, "origin": origin}
        return generation.generate(sampler, shifts, classes, **grid, sliders=sliders, folder=folder)

    return call


SHORT = dataclasses.replace(SETTINGS, steps=4)
FEW = {"classes": CLASSES[:1], "seeds": 1, "settings": SHORT}


@pytest.fixture(scope="module")
def drawn(draw, tmp_path_factory):
    return functools.cache(lambda way: draw(tmp_path_factory.mktemp(way), [SHIFT], CLASSES[:1], way=way, settings=SHORT))


@pytest.fixture(scope="module")
def undisturbed(draw, tmp_path_factory):
    return draw(tmp_path_factory.mktemp("generation"), [SHIFT])


def test_an_image_is_the_plain_pipelines_whose_adapter_is_switched_on_midway(pipe, sliders):
    sampler = generation.Sampler(pipe, settings=SETTINGS)
    unshifted = sampler.unshifted("sneaker", 5).numpy()
    how = {"steps": SETTINGS.steps, "guidance": SETTINGS.guidance}
    assert np.array_equal(unshifted, plain_images(pipe, 5, {}, **how))
    with adapters.loaded(pipe, slider_path(sliders, SHIFT, "sneaker")):
        alone = [sampler.shifted("sneaker", 5, [scale]) for scale in (0.5, 2.5)]
        together = sampler.shifted("sneaker", 5, [0.5, 2.5]).int()
        for scale, ours in zip((0.5, 2.5), alone, strict=True):
            pipe.unet.set_adapters(adapters.NAME, 0.0)
            assert np.array_equal(ours.numpy(), plain_images(pipe, 5, {2: scale}, **how))
            assert not np.array_equal(ours.numpy(), unshifted)
    assert (together - torch.cat(alone).int()).abs().max() <= 1  # another batch size rounds differently


def test_pictures_of_another_size_are_those_that_are_drawn_made_smaller_by_pillow(pipe):
    """Without a size, nothing that a picture is known by changes."""
    smaller = dataclasses.replace(SETTINGS, side=24)
    drawn, found = (generation.Sampler(pipe, settings=settings).unshifted("sneaker", 5).numpy() for settings in (SETTINGS, smaller))
    assert np.array_equal(found[0], np.asarray(Image.fromarray(drawn[0]).resize((24, 24), Image.Resampling.BICUBIC)))
    assert "side" not in SETTINGS.drawn() and smaller.drawn() == SETTINGS.drawn() | {"side": 24}


@pytest.mark.parametrize(
    ("steps", "fraction", "expected"), [(100, 0.75, 25), (50, 0.75, 12), (100, 0.9, 10), (20, 1.0, 0), (100, 0.55, 45)]
)
def test_the_slider_starts_where_the_paper_starts_it(steps, fraction, expected):
    """The last is 100 x 0.55, which floating-point numbers make a little more than 55."""
    settings = dataclasses.replace(SETTINGS, steps=steps, start_fraction=fraction)
    assert generation.steps_without_slider(settings) == expected


def test_a_quality_changes_how_pictures_are_stored_and_not_which_are_drawn(draw, undisturbed, tmp_path):
    settings = dataclasses.replace(SETTINGS, quality=100)
    for shift, path in draw(tmp_path, [SHIFT], CLASSES[:1], seeds=1, settings=settings).items():
        lossy = tables.read(path, tables.images)
        exact = lossy[tables.KEY].merge(tables.read(undisturbed[shift], tables.images), on=tables.KEY)
        assert all(data[:3] == b"\xff\xd8\xff" for data in lossy["image"])
        distance = abs(tables.pictures(lossy, shift).astype(int) - tables.pictures(exact, shift))
        assert 0 < distance.mean() < 2
    assert "quality" not in SETTINGS.drawn() and settings.drawn()["quality"] == 100


def test_a_seed_alone_gives_the_same_bytes_as_among_others(draw, undisturbed, tmp_path):
    for shift, path in draw(tmp_path, [SHIFT], ["ankle boot"], seeds=1).items():
        many = tables.read(undisturbed[shift], tables.images)
        same = many[(many["seed"] == 1) & (many["class"] == "ankle boot")].reset_index(drop=True)
        pd.testing.assert_frame_equal(tables.read(path, tables.images), same)


def test_guidance_costs_no_pass_outside_of_its_interval(pipe, sliders):
    """Of 8 steps, which begin at the times 1, 0.875, ... 0.125, two come before the slider and four are guided."""
    settings, seen = dataclasses.replace(SETTINGS, guided=[0.2, 0.7]), []
    sampler = generation.Sampler(pipe, settings=settings)
    with adapters.loaded(pipe, slider_path(sliders, SHIFT, "sneaker")):
        handle = pipe.unet.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
        sampler.shifted("sneaker", 1, [1.0, 2.5])
        handle.remove()
    assert seen == [1, 1, 2, 4, 4, 4, 4, 2]
    assert generation.evaluations(settings, shifts=1, images=1, scales=2) == {"shared": 12 + 10, "separate": 24}
    assert "guided" not in SETTINGS.drawn() and settings.drawn()["guided"] == [0.2, 0.7]


def test_guidance_that_acts_nowhere_is_none(pipe):
    nowhere, none = (dataclasses.replace(SHORT, **change) for change in ({"guided": [0.0, 0.1]}, {"guidance": 1.0}))
    assert len(generation.Sampler(pipe, settings=none).text("sneaker")) == 1
    first, second = (generation.Sampler(pipe, settings=settings).unshifted("sneaker", 1) for settings in (nowhere, none))
    assert torch.equal(first, second)
    assert not torch.equal(first, generation.Sampler(pipe, settings=SHORT).unshifted("sneaker", 1))


def test_a_killed_run_continues_to_the_same_bytes(draw, tmp_path):
    undisturbed = draw(tmp_path / "undisturbed", **FEW)
    first = draw(tmp_path, [SHIFT], **FEW)
    kept = first["unshifted"].stat().st_mtime_ns
    (killed := first[SHIFT]).with_name(f"{killed.name}.digest").unlink()
    killed.write_bytes(b"half a file")
    (partial := killed.with_name(f".{killed.name}.1.partial")).write_bytes(b"half a write")
    resumed = draw(tmp_path, **FEW)
    assert not partial.exists()
    assert {shift: path.read_bytes() for shift, path in resumed.items()} == {s: p.read_bytes() for s, p in undisturbed.items()}
    assert resumed["unshifted"].stat().st_mtime_ns == kept


def test_only_shards_whose_inputs_changed_are_drawn_again(draw, tmp_path):
    def times(**changes):
        return {shift: path.stat().st_mtime_ns for shift, path in draw(tmp_path, **FEW | changes).items()}

    before = times()
    assert times(settings=dataclasses.replace(SHORT, guidances=[1.0, 3.0])) == before
    after = times(scales=[0.0, 1.0])
    assert {shift for shift in before if before[shift] != after[shift]} == set(SHIFTS)
    with pytest.raises(FileNotFoundError, match=r"heavy_fog.sneaker\.safetensors"):
        draw(tmp_path, ["heavy fog"], **FEW)


def images(drawn, way, shift, **key):
    table = tables.read(drawn(way)[shift], tables.images)
    for column, value in key.items():
        table = table[table[column] == value]
    return tables.pictures(table, shift).astype(int)


@pytest.mark.parametrize("name", ["exact", "fused", "fast"])
def test_a_trajectory_drawn_alone_is_that_of_the_tables_within_a_grey_level(name, drawn, pipe, sliders):
    sampler = SAMPLING_MODES[name].single(pipe, settings=SAMPLING_MODES[name].settings(SHORT))
    assert abs(sampler.unshifted("sneaker", 2).numpy() - images(drawn, name, "unshifted", seed=2)).max() <= 1
    with adapters.loaded(pipe, slider_path(sliders, SHIFT, "sneaker")):
        alone = sampler.shifted("sneaker", 2, SCALES[1:]).numpy()
    assert abs(alone - images(drawn, name, SHIFT, seed=2)).max() <= 1


def test_fused_images_are_those_of_the_exact_way_within_a_grey_level_and_fast_ones_are_others(drawn):
    for shift, path in drawn("exact").items():
        exact, pictures = tables.read(path, tables.images), images(drawn, "exact", shift)
        for way in ("fused", "fast"):
            assert tables.read(drawn(way)[shift], tables.images)[tables.KEY].equals(exact[tables.KEY])
        assert abs(images(drawn, "fused", shift) - pictures).max() <= 1 < abs(images(drawn, "fast", shift) - pictures).mean()


@pytest.mark.parametrize("name", ["exact", "fused", "fast"])
def test_bfloat16_pictures_are_other_ones_a_few_grey_levels_from_those_in_float32(name, drawn, pipe):
    """The pipeline itself keeps its weights and its scheduler."""
    before = {key: value.clone() for key, value in pipe.unet.state_dict().items()}, dict(pipe.scheduler.config)
    for shift in drawn(name):
        apart = abs(images(drawn, f"{name} bfloat16", shift) - images(drawn, name, shift))
        assert 0 < apart.mean() < 1 and apart.max() <= 12
    after = pipe.unet.state_dict(), dict(pipe.scheduler.config)
    assert after[1] == before[1] and all(torch.equal(after[0][key], value) for key, value in before[0].items())


def test_the_ways_are_told_in_digests_but_for_the_benchmarks_own_and_do_not_take_each_others_tables(pipe, origin):
    samplers = {name: generation.Sampler(pipe, settings=SETTINGS, mode=way) for name, way in SAMPLING_MODES.items()}
    recipe, unipc = {"recipe": "stepper-1"}, {"scheduler": "UniPCMultistepScheduler", "spacing": "linspace"}
    assert FAST.single(pipe, settings=SETTINGS).identity == samplers["fast"].identity == unipc | recipe
    assert samplers["fused"].identity == {"scheduler": "DDIMScheduler", "spacing": "leading"} | recipe
    assert FUSED.single(pipe, settings=SETTINGS).identity == samplers["exact"].identity == {}
    pairs = itertools.product(samplers.values(), (1, 2))
    stamps = {generation.stamp(sampler, CLASSES, seeds=seeds, origin=origin, scales=[0.0]) for sampler, seeds in pairs}
    assert samplers["exact bfloat16"].identity == {"dtype": "bfloat16"}
    assert len(stamps) == 12 and tuple(SAMPLING_MODES) == get_args(get_type_hints(method.Base)["drawing"])


@pytest.mark.slow
def test_a_fast_image_does_not_depend_on_the_number_of_seeds_or_on_a_table_that_is_there(draw, drawn, tmp_path):
    where = {"shifts": [SHIFT], "classes": CLASSES[:1], "way": "fast", "seeds": PASS + 1}
    many = draw(tmp_path, **where)
    for shift, path in drawn("fast").items():
        table = tables.read(many[shift], tables.images)
        assert table[table["seed"] <= 2].reset_index(drop=True).equals(tables.read(path, tables.images))
    before = many["unshifted"].read_bytes()
    many["unshifted"].unlink()  # the starts are drawn again for it, by a scheduler that has seen nothing
    assert draw(tmp_path, **where)["unshifted"].read_bytes() == before


@pytest.fixture
def file(sliders):
    return slider_path(sliders, SHIFT, "sneaker")


@pytest.mark.parametrize("scale", [0.5, 2.5])
def test_the_merged_weights_are_those_of_pefts_own_merge(pipe, file, scale):
    with adapters.loaded(pipe, file):
        fused = copy.deepcopy(pipe.unet)
    fused.fuse_lora(lora_scale=scale)
    expected = {name: layer.get_base_layer().weight for name, layer in adapters.layers(fused).items()}
    with generation.merged(pipe.unet, generation.changes(pipe, file), scale):
        for name, weight in expected.items():
            torch.testing.assert_close(pipe.unet.get_submodule(name).weight, weight, rtol=1e-5, atol=1e-6)
    assert {weight.ndim for weight in expected.values()} == {2, 4}  # linear layers and convolutions


def test_a_scale_below_0_takes_away_from_the_weights_what_the_same_scale_above_adds(pipe, file):
    change, found = generation.changes(pipe, file), {}
    for scale in (-1.5, 0.0, 1.5):
        with generation.merged(pipe.unet, change, scale):
            found[scale] = {name: pipe.unet.get_submodule(name).weight.clone() for name in change}
    for name, base in found[0.0].items():
        assert not torch.equal(found[-1.5][name], base)
        torch.testing.assert_close(found[-1.5][name] - base, base - found[1.5][name], rtol=1e-4, atol=1e-6)


def test_a_grid_with_scales_on_both_sides_of_0_holds_each_once_and_both_ways_agree(draw, tmp_path):
    made = {way: draw(tmp_path / way, [SHIFT], **FEW, scales=[-1.0, 0.0, 1.0], way=way) for way in ("exact", "fused")}
    tables_of = {way: tables.read(files[SHIFT], tables.images) for way, files in made.items()}
    assert tables_of["exact"]["scale"].tolist() == tables_of["fused"]["scale"].tolist() == [-1.0, 1.0]
    exact, fused = (tables.pictures(table, SHIFT).astype(int) for table in tables_of.values())
    assert abs(exact - fused).max() <= 1 < abs(exact[0] - exact[1]).max()


def test_the_base_model_is_restored_bit_for_bit_also_after_an_error(pipe, file):
    before = {key: value.clone() for key, value in pipe.unet.state_dict().items()}
    change = generation.changes(pipe, file)
    for scale in (0.5, 2.5, 1e9):
        with pytest.raises(KeyboardInterrupt), generation.merged(pipe.unet, change, scale):
            assert any(not torch.equal(value, before[key]) for key, value in pipe.unet.state_dict().items())
            raise KeyboardInterrupt
    after = pipe.unet.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(after[key], value) for key, value in before.items())


def test_merged_images_at_scale_zero_are_the_unshifted_ones_and_do_not_depend_on_the_number_of_seeds(pipe, file):
    sampler, change = generation.Sampler(pipe, settings=SHORT, mode=FUSED), generation.changes(pipe, file)
    plain = sampler.images("sneaker", 2, {}, 0.0)
    assert torch.equal(sampler.images("sneaker", 2, change, 0.0), plain)
    wanted = sampler.images("sneaker", PASS + 1, change, 1.0)
    assert not torch.equal(wanted[:2], plain) and len(wanted) == PASS + 1
    few = generation.Sampler(pipe, settings=SHORT, mode=FUSED).images("sneaker", PASS - 2, change, 1.0)
    assert torch.equal(few, wanted[: PASS - 2])
    assert FUSED.passes(PASS + 1) == [(1, 2, 3, 4, 5), (6, 7, 8, 9, 10)] and SAMPLING_MODES["exact"].passes(2) == [(1,), (2,)]


def test_the_tiny_units_are_the_golden_ones_with_every_scale_once(undisturbed, pipe, origin, tmp_path):
    for shift, path in undisturbed.items():
        table = tables.read(path, tables.images)
        scales = [0.0] if shift == "unshifted" else [1.0, 2.5]
        tables.complete(table, itertools.product([shift], CLASSES, (1, 2), scales), tables.KEY, shift)
        assert table["image"].nunique() == len(table)
    assert not difference(recipes.GENERATION, tables.read(undisturbed[SHIFT], tables.images))
    plain, own = undisturbed["unshifted"], tmp_path / "plain.parquet"
    given = {"seeds": 2, "origin": origin, "path": own}
    alone = generation.unshifted_shard(generation.Sampler(pipe, settings=SETTINGS), CLASSES, **given)
    assert alone.equals(tables.read(plain, tables.images)) and units.sidecar(own).read_bytes() == units.sidecar(plain).read_bytes()
    sliders = random_sliders(pipe, tmp_path / "sliders", [SHIFT], CLASSES, rank=RANK, alpha=ALPHA)
    sampler, grid = generation.Sampler(pipe, settings=SHORT, mode=FUSED), {"scales": SCALES, "seeds": 2, "origin": origin}
    found = generation.generate(sampler, [SHIFT], CLASSES, **grid, sliders=sliders, folder=tmp_path)
    assert not difference(recipes.FUSED, tables.read(found[SHIFT], tables.images))
