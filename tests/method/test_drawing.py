"""Ways to draw: each agrees with its own single trajectories, with the ablation's sampler, and with nothing else's tables."""

import copy
import dataclasses
import functools
from typing import get_args, get_type_hints

import pytest
import torch
from golden_units import difference
from safetensors.torch import load_file, save_file
from tiny_sliders import pipeline, random_sliders

from cnslib.core import paths, recipes, tables
from cnslib.core.settings import method, read
from cnslib.core.settings.method import Generation
from cnslib.method import drawing, generation
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

SETTINGS = Generation(steps=4, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=0.75, negative_prompt="", quality=0)
CLASSES, SHIFT, SCALES = ["sneaker", "ankle boot"], "heavy snow", [0.0, 1.0, 2.5]
RANK, ALPHA = 4, 2.0


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def sliders(pipe, tmp_path_factory):
    return random_sliders(pipe, tmp_path_factory.mktemp("sliders"), [SHIFT], CLASSES, rank=RANK, alpha=ALPHA)


@pytest.fixture(scope="module")
def draw(pipe, sliders, origin):
    """All tables of one way, as the notebook asks for them."""

    def call(name, folder, seeds=2):
        way = drawing.chosen(name)
        inputs = {"settings": way.settings(SETTINGS), "origin": origin, "sliders": sliders, "folder": folder}
        paths = way.generate(pipe, [SHIFT], CLASSES, scales=SCALES, seeds=seeds, **inputs)
        return {shift: tables.read(path, tables.images) for shift, path in paths.items()}

    return call


@pytest.fixture(scope="module")
def drawn(draw, tmp_path_factory):
    """All tables of one way for two seeds, drawn once."""
    return functools.cache(lambda name: draw(name, tmp_path_factory.mktemp(name)))


def pictures(table, name, seed):
    return tables.pictures(table[(table["class"] == name) & (table["seed"] == seed)], "test").astype(int)


@pytest.mark.parametrize("name", drawing.WAYS)
def test_a_trajectory_drawn_alone_is_that_of_the_tables_within_a_grey_level(name, drawn, pipe, sliders):
    way, found = drawing.chosen(name), drawn(name)
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


def test_the_fast_pictures_are_others_than_the_exact_ones_under_the_same_keys(drawn):
    fast, exact = drawn("fast"), drawn("exact")
    assert fast[SHIFT][tables.KEY].equals(exact[SHIFT][tables.KEY])
    assert abs(pictures(fast[SHIFT], "sneaker", 1) - pictures(exact[SHIFT], "sneaker", 1)).mean() > 1


@pytest.mark.slow
def test_a_fast_image_does_not_depend_on_the_number_of_seeds_or_on_a_table_that_is_there(draw, drawn, tmp_path):
    few, many = drawn("fast"), draw("fast", tmp_path / "many", seeds=6)
    for shift in ("unshifted", SHIFT):
        assert many[shift][many[shift]["seed"] <= 2].reset_index(drop=True).equals(few[shift])
    (tmp_path / "many" / "unshifted.parquet").unlink()  # the starts are drawn anew for it, by a scheduler that has seen nothing
    assert draw("fast", tmp_path / "many", seeds=6)["unshifted"].equals(many["unshifted"])


@pytest.mark.slow
def test_the_ways_do_not_take_each_others_tables(draw, tmp_path):
    """In one folder each way draws its own, also the table of scale 0 that all of them have."""
    digests = set()
    for name in (*drawing.WAYS, "exact"):
        draw(name, tmp_path, seeds=1)
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


@pytest.fixture
def file(sliders):
    return slider_path(sliders, "heavy snow", "sneaker")


@pytest.fixture
def generate(pipe, origin, sliders, tmp_path):
    def call():
        inputs = {"settings": SETTINGS, "origin": origin, "sliders": sliders, "folder": tmp_path}
        return drawing.generate(pipe, [SHIFT], CLASSES, scales=SCALES, seeds=2, **inputs)

    return call


@pytest.mark.parametrize("scale", [0.5, 2.5])
def test_the_weights_are_those_of_pefts_own_merge(pipe, file, scale):
    with adapters.loaded(pipe, file):
        fused = copy.deepcopy(pipe.unet)
    fused.fuse_lora(lora_scale=scale)
    expected = {name: layer.get_base_layer().weight for name, layer in adapters.layers(fused).items()}
    with drawing.merged(pipe.unet, drawing.changes(pipe, file), scale):
        for name, weight in expected.items():
            torch.testing.assert_close(pipe.unet.get_submodule(name).weight, weight, rtol=1e-5, atol=1e-6)
    assert {weight.ndim for weight in expected.values()} == {2, 4}  # linear layers and convolutions


def test_a_change_is_the_product_of_the_files_factors(pipe, file):
    """B A for matrices; for a convolution the second factor mixes the channels that the first one, a smaller convolution, gives."""
    tensors = load_file(file)
    for name, change in drawing.changes(pipe, file).items():
        down, up = (tensors[f"unet.{name}.lora_{factor}.weight"].double() for factor in "AB")
        product = torch.einsum("or,r...->o...", up.flatten(1), down)
        torch.testing.assert_close(change.double(), ALPHA / RANK * product, rtol=1e-4, atol=1e-6)


def test_the_base_model_is_restored_bit_for_bit_also_after_an_error(pipe, file):
    before = {key: value.clone() for key, value in pipe.unet.state_dict().items()}
    change = drawing.changes(pipe, file)
    for scale in (0.5, 2.5, 1e9):
        with pytest.raises(KeyboardInterrupt), drawing.merged(pipe.unet, change, scale):
            assert any(not torch.equal(value, before[key]) for key, value in pipe.unet.state_dict().items())
            raise KeyboardInterrupt
    after = pipe.unet.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(after[key], value) for key, value in before.items())


def test_scale_zero_is_the_unshifted_image_bit_for_bit(pipe, file):
    sampler = drawing.Sampler(pipe, settings=SETTINGS)
    plain, change = sampler.images("sneaker", 2, {}, 0.0), drawing.changes(pipe, file)
    assert torch.equal(sampler.images("sneaker", 2, change, 0.0), plain)
    assert not torch.equal(sampler.images("sneaker", 2, change, 1.0), plain)


def test_a_merged_image_does_not_depend_on_the_number_of_seeds(pipe, file):
    change, few = drawing.changes(pipe, file), drawing.PASS - 2
    wanted = drawing.Sampler(pipe, settings=SETTINGS).images("sneaker", drawing.PASS + 1, change, 1.0)
    assert torch.equal(drawing.Sampler(pipe, settings=SETTINGS).images("sneaker", few, change, 1.0), wanted[:few])
    assert len(wanted) == drawing.PASS + 1


def test_images_are_those_of_the_exact_default_within_a_grey_level_and_in_its_order(drawn):
    fused = drawn("fused")
    for shift, exact in drawn("exact").items():
        assert fused[shift][tables.KEY].equals(exact[tables.KEY])
        pictures = tables.pictures(exact, "exact").astype(int)
        assert abs(tables.pictures(fused[shift], "fused") - pictures).max() <= 1
        assert shift == "unshifted" or abs(pictures[::2] - pictures[1::2]).mean() > 2  # scales 1 and 2.5 are not alike


def test_a_killed_run_continues_to_the_same_bytes(generate):
    paths = generate()
    first = {shift: path.read_bytes() for shift, path in paths.items()}
    kept = paths["unshifted"].stat().st_mtime_ns
    paths["heavy snow"].write_bytes(b"half a file")
    (partial := paths["heavy snow"].with_name(".heavy_snow.parquet.1.partial")).write_bytes(b"half a write")
    assert {shift: path.read_bytes() for shift, path in generate().items()} == first
    assert paths["unshifted"].stat().st_mtime_ns == kept and not partial.exists()


def test_shards_of_the_exact_default_are_drawn_again(pipe, origin, file):
    sampler, given = drawing.Sampler(pipe, settings=SETTINGS), {"seeds": 1, "origin": origin, "scales": [1.0]}
    found = drawing.stamp(sampler, ["sneaker"], **given, files={"sneaker": file})
    exact = generation.stamp(sampler, ["sneaker"], **given, sliders=[adapters.file_digest(file)])
    sampler.settings = dataclasses.replace(SETTINGS, guidance=2.0)
    assert found not in (exact, drawing.stamp(sampler, ["sneaker"], **given, files={"sneaker": file}))


def test_a_slider_of_another_network_is_refused(pipe, file, tmp_path):
    tensors = load_file(file)
    tensors.pop(sorted(tensors)[0])
    save_file(tensors, tmp_path / "short.safetensors", metadata=adapters.header(file))
    with pytest.raises(ValueError, match=r"short\.safetensors does not fit this UNet: \d+ tensors match, 1 missing \("):
        drawing.changes(pipe, tmp_path / "short.safetensors")


def test_the_tiny_unit_of_merged_weights_is_the_golden_one(drawn):
    assert not difference(recipes.FUSED, drawn("fused")[SHIFT])
