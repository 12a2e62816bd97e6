"""Shifts by text: weight 0 changes nothing, weight 1 is the other prompt, and what is counted along a trajectory."""

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm

from cnslib.core import kinds, names, tables
from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Bootstrap, Generation
from cnslib.method import generation, health
from cnslib.models import encoders, text_to_image
from cnslib.stats import bootstrap, verdicts
from cnslib.studies import directions

CLASSES = ["sneaker", "ankle boot"]
LABELS = [*CLASSES, "bag"]
SHIFT = "heavy snow"
SCALES = [0.0, 1.0, 2.0]
SETTINGS = Generation(steps=8, guidance=3.0, guidances=[3.0], start_fraction=0.75, negative_prompt="")
BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")


@pytest.fixture(scope="module", autouse=True)
def one_process():
    """The images are too few to start processes for."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch.setenv("LOKY_MAX_CPU_COUNT", "1")


@pytest.fixture(scope="module")
def sampler(tiny_pipeline_dir, tiny_tokens_dir):
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return generation.Sampler(pipe, settings=SETTINGS)


@pytest.fixture(scope="module")
def benchmark(sampler, tmp_path_factory):
    """Tables of images: the true unshifted ones, and noise in the place of a slider's."""
    folder, noise = tmp_path_factory.mktemp("generation"), np.random.default_rng(0)
    rows = {"unshifted": [], SHIFT: []}
    for name in CLASSES:
        rows["unshifted"] += generation.rows("unshifted", name, 1, [0.0], sampler.unshifted(name, 1))
        pictures = torch.from_numpy(noise.integers(0, 256, (2, 64, 64, 3), dtype=np.uint8))
        rows[SHIFT] += generation.rows(SHIFT, name, 1, SCALES[1:], pictures)
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
    return directions.Study(sampler, origin, *judges, benchmark, tmp_path_factory.mktemp("directions"))


@pytest.mark.parametrize("method", directions.TEXTUAL)
def test_weight_zero_is_the_unshifted_image_bit_for_bit(sampler, method):
    drawn = directions.shifted(sampler, SHIFT, "sneaker", 3, method, [0.0])
    assert torch.equal(drawn, sampler.unshifted("sneaker", 3))
    assert not torch.equal(directions.shifted(sampler, SHIFT, "sneaker", 3, method, [2.0]), drawn)


def test_two_prompts_are_the_plain_pipeline_with_the_other_prompt(sampler):
    prompt = f"a picture of a {names.token('sneaker')} in heavy snow"
    expected = text_to_image.sample(sampler.pipe, [prompt], [3], steps=SETTINGS.steps, guidance=SETTINGS.guidance)
    assert torch.equal(directions.shifted(sampler, SHIFT, "sneaker", 3, directions.PROMPTS, [1.0]), expected)


def test_the_whole_text_ends_at_the_other_prompt_bit_for_bit_but_begins_later(sampler):
    texts = [directions.contexts(sampler, SHIFT, "sneaker", method, [1.0]) for method in (directions.PROMPTS, directions.WHOLE)]
    assert torch.equal(*texts)
    drawn = [directions.shifted(sampler, SHIFT, "sneaker", 3, method, [1.0]) for method in (directions.PROMPTS, directions.WHOLE)]
    assert not torch.equal(*drawn)


@pytest.mark.parametrize(("method", "moved"), [(directions.CLASS, [5]), (directions.END, list(range(6, 24)))])
def test_a_direction_moves_its_own_tokens_alone_and_in_proportion(sampler, method, moved):
    """Of "<start> a picture of a <sneaker*> <end> <pad> ..." the class is token 5 and the first end token 6."""
    prompts = ["a picture of a <sneaker*>", "a picture of a <sneaker*> in heavy snow"]
    ids = [sampler.pipe.tokenizer(prompt).input_ids for prompt in prompts]
    assert ids[0][5] == sampler.pipe.tokenizer.convert_tokens_to_ids("<sneaker*>") and len(ids[0]) == 7
    *_, plain, one, two = directions.contexts(sampler, SHIFT, "sneaker", method, [0.0, 1.0, 2.0])
    assert (one - plain).abs().amax(dim=1).nonzero().flatten().tolist() == moved
    assert torch.allclose(two - plain, 2 * (one - plain), atol=1e-5)
    first, other = text_to_image.embed(sampler.pipe, prompts)
    place = {directions.CLASS: -2, directions.END: -1}[method]
    expected = other[len(ids[1]) + place] - first[len(ids[0]) + place]
    assert torch.allclose((one - plain)[moved], expected.expand(len(moved), -1), atol=1e-5)


def test_denoising_with_equal_texts_is_the_sampler_bit_for_bit(sampler):
    start = torch.randn((3, 4, 16, 16), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        context = directions.contexts(sampler, SHIFT, "sneaker", directions.WHOLE, [0.0] * 3)
        ours = directions.denoise(sampler, start, context, sampler.scheduler.timesteps)
        assert torch.equal(ours, sampler.denoise(start, "sneaker", sampler.scheduler.timesteps))


def test_an_unknown_method_is_named(sampler):
    with pytest.raises(ValueError, match=r"method: 'pooled'.*accepted: two prompts, class token"):
        directions.target(sampler, SHIFT, "sneaker", "pooled")


def test_every_method_is_scored_once_from_the_same_unshifted_image(study):
    scores = directions.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    grids = {method: [0.0, *directions.grid(method, SCALES)] for method in directions.METHODS}
    wanted = {(method, SHIFT, name, 1, scale) for method, grid in grids.items() for name in CLASSES for scale in grid}
    tables.complete(scores, wanted, ["method", *tables.KEY], "scores")
    start = scores[scores["scale"] == 0]
    assert np.allclose(start["structure"], 1, atol=1e-5) and (start["step"] == 0).all()
    assert (start.groupby("class")[["alignment", "class_probability"]].nunique() == 1).all(axis=None)


def test_a_second_run_draws_nothing_and_another_image_draws_its_unit_anew(study):
    directions.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    paths = {name: study.folder / "scores" / directions.unit_name(SHIFT, name) for name in CLASSES}
    before = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    directions.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1)
    assert {name: path.stat().st_mtime_ns for name, path in paths.items()} == before
    own = {name: directions.own_rows(directions.benchmark(study.images, SHIFT), name, scales=SCALES, seeds=1) for name in CLASSES}
    other = own["sneaker"].assign(image=own["ankle boot"]["image"].to_numpy())
    digest = directions.stamp(study, SHIFT, "sneaker", own["sneaker"])
    assert digest != directions.stamp(study, SHIFT, "sneaker", other)


def test_films_are_the_pictures_that_were_scored(study):
    keys = [(method, SHIFT, "sneaker", 1) for method in (directions.SLIDER, directions.END)]
    strips = directions.films(study, keys, scales=SCALES)
    drawn = directions.shifted(study.sampler, SHIFT, "sneaker", 1, directions.END, SCALES[1:]).numpy()
    assert np.array_equal(strips[keys[1]][1:], drawn) and np.array_equal(strips[keys[0]][0], strips[keys[1]][0])
    assert len(list((study.folder / "pictures").glob("*.parquet"))) == 2


def test_a_missing_image_of_the_benchmark_is_named(study):
    with pytest.raises(ValueError, match=r"images of 'sneaker': 3 rows missing .*\(2, 0.0\)"):
        directions.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=2)


def path(method, alignment, *, seed=1, structure=1.0, step=0.1, probability=0.9):
    """The scores of one trajectory with known values at scales 0, 1, 2, ..."""
    count = len(alignment)
    steps = np.broadcast_to(step, count) * (np.arange(count) > 0)
    key = {"method": method, "shift": SHIFT, "class": "bag", "seed": seed, "scale": np.arange(count, dtype=float)}
    return pd.DataFrame({**key, "alignment": alignment, "structure": structure, "step": steps, "class_probability": probability})


def test_a_trajectory_is_summed_up_as_by_hand():
    scores = pd.concat(
        [
            path("slider", [0.1, 0.3, 0.2, 0.5], structure=[1, 0.9, 0.8, 0.7], step=[0, 0.1, 0.1, 0.2]),
            path("two prompts", [0.1, 0.6], structure=[1, 0.4], step=[0, 0.7], probability=[0.9, 0.05]),
        ]
    )
    rows = directions.per_trajectory(scores.sample(frac=1, random_state=0), labels=10).set_index("method")
    slider, prompts = rows.loc["slider"], rows.loc["two prompts"]
    assert (slider["gain"], slider["structure"], slider["largest"], slider["rising"]) == pytest.approx((0.4, 0.7, 0.5, 2 / 3))
    assert (prompts["gain"], prompts["structure"], prompts["largest"], prompts["rising"]) == pytest.approx((0.5, 0.4, 1.0, 1.0))
    assert (slider["class_kept"], prompts["class_kept"]) == (1, 0)


def test_a_garment_that_did_not_start_in_its_class_cannot_lose_it():
    rows = directions.per_trajectory(path("slider", [0.0, 0.1], probability=0.01), labels=10)
    assert rows["class_kept"].isna().all()
    assert directions.summary(rows, ["class_kept"], settings=BOOTSTRAP).loc[0, "n"] == 0


def test_structure_is_compared_at_the_first_scale_that_gains_as_much_as_two_prompts():
    parts = [path("two prompts", [0.0, 0.3], structure=[1, 0.5]), path("slider", [0.1, 0.2, 0.4, 0.9], structure=[1, 0.9, 0.8, 0.1])]
    parts.append(path("class token", [0.0, 0.1, 0.2, 0.29]))
    parts += [path("two prompts", [0.2, 0.1], seed=2), path("slider", [0.0, 0.1, 0.2, 0.3], seed=2)]  # nothing gained: not asked
    rows = directions.matched(pd.concat(parts), labels=10).set_index("method")
    assert (rows.loc["slider", "scale"], rows.loc["slider", "structure"], rows.loc["slider", "reached"]) == (2.0, 0.8, 1.0)
    assert (rows.loc["two prompts", "scale"], rows.loc["two prompts", "structure"]) == (1.0, 0.5)
    assert rows.loc["slider", "class_kept"] == 1 and np.isnan(rows.loc["class token", "class_kept"])
    assert rows.loc["class token", "reached"] == 0 and np.isnan(rows.loc["class token", "structure"])
    assert len(rows) == 3


def test_differences_from_the_slider_are_paired_on_the_trajectory():
    parts = [path("slider", [0, 0.5 + seed], seed=seed) for seed in (1, 2, 3)]
    parts += [path("end tokens", [0, 0.2 + seed], seed=seed) for seed in (1, 2, 3)]
    table = directions.per_trajectory(pd.concat(parts), labels=10)
    row = directions.against_slider(table, ["gain"], settings=BOOTSTRAP).iloc[0]
    assert row["method"] == "end tokens" and row["n"] == 3
    assert (row["estimate"], row["low"], row["high"]) == pytest.approx((0.3, 0.3, 0.3))


def test_the_three_examples_are_different_trajectories():
    parts = [path("class token", [0.0, 0.9], seed=1, structure=[1, 0.5]), path("class token", [0.0, 0.1], seed=2, structure=[1, 0.1])]
    parts.append(path("class token", [0.0, -0.1], seed=3, structure=[1, 0.3]))
    chosen = directions.examples(directions.per_trajectory(pd.concat(parts), labels=10), "class token")
    assert {title: key[2] for title, key in chosen.items()} == {"works": 1, "breaks": 2, "wavers": 3}


def record(estimate, low, high, n=9):
    return {"n": n, "estimate": estimate, "low": low, "high": high}


def test_what_was_published_is_judged_by_the_interval():
    said = pd.DataFrame({"id": list("abcdef"), "quantity": list("uvwxyz"), "published": ["0.5", 0.9, "above 0", "above 0", "below 0", "1"]})
    ours = {"a": record(0.4, 0.3, 0.6), "b": record(0.4, 0.3, 0.6), "c": record(0.2, 0.1, 0.3), "d": record(0.2, -0.1, 0.3)}
    ours |= {"e": record(0.2, 0.1, 0.3), "f": record(np.nan, np.nan, np.nan, n=0)}
    table = verdicts.statements(ours, said)
    assert table["verdict"].tolist() == ["agrees", "same direction", "same direction", "undecided", "opposite direction", "not measured"]
    assert table.loc["v", "difference"] == pytest.approx(-0.5)


def test_rows_of_one_garment_count_as_one_in_the_interval():
    """Twenty equal rows of two garments are as uncertain as two rows; one garment has no interval, and no value no estimate."""
    rows = pd.DataFrame({"class": "bag", "seed": [1, 2]})
    few = bootstrap.mean(pd.Series([0.0, 1.0]), rows, settings=BOOTSTRAP)
    many = bootstrap.mean(pd.Series([0.0, 1.0] * 10), pd.concat([rows] * 10, ignore_index=True), settings=BOOTSTRAP)
    assert (many["low"], many["high"], many["n"]) == (few["low"], few["high"], 20)
    assert np.isnan(bootstrap.mean(pd.Series([1.0, 1.0]), rows.assign(seed=1), settings=BOOTSTRAP)["low"])
    assert bootstrap.mean(pd.Series([np.nan, 1.0]), rows, settings=BOOTSTRAP)["n"] == 1


def test_the_tiny_unit_is_the_golden_one(study):
    assert not difference(kinds.DIRECTIONS, directions.score(study, [SHIFT], CLASSES, scales=SCALES, seeds=1), within=1e-3)
