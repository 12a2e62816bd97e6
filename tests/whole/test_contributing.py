"""The four changes of CONTRIBUTING.md: each is one file, applies to this tree as it stands, and does what the text says."""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_sliders
from ruamel.yaml import YAML
from transformers import CLIPTokenizer

from cnslib.core import paths, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.method import evaluation, sliders
from cnslib.models import adapters, encoders, text_to_image
from cnslib.tools import cli, runner

ROOT = paths.ROOT
DIFFS = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
(RECIPE,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
CLASSES, SHIFTS, SCALES, SEEDS = ["t-shirt", "sneaker"], ["cartoon style", "heavy snow"], [0.0, 1.0, 2.5], 2


def named(diff: str) -> list[str]:
    """The files that a diff changes."""
    return re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE)


def changed(folder: Path, diff: str) -> Path:
    """A copy in a folder of the one file that a diff names, with the diff applied by git."""
    (name,) = named(diff)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / name, folder / name)
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=folder, env=outside, check=True)
    return folder / name


def write_pictures(folder: Path) -> None:
    """The image tables of the tiny grid, with noise for pictures."""
    noise = np.random.default_rng(0)
    for shift in (UNSHIFTED, *SHIFTS):
        keys = itertools.product([shift], CLASSES, range(1, SEEDS + 1), SCALES[:1] if shift == UNSHIFTED else SCALES[1:])
        table = pd.DataFrame(list(keys), columns=tables.KEY)
        table["image"] = [tables.encode(noise.integers(0, 256, (64, 64, 3), dtype=np.uint8)) for _ in range(len(table))]
        tables.write(table, folder / f"{identifier(shift)}.parquet", tables.images)


def times(files: dict) -> dict[object, int]:
    """When each file was last written."""
    return {name: path.stat().st_mtime_ns for name, path in files.items()}


def answer(sections: dict, artifacts: Path) -> dict[str, Path]:
    """The evaluation step on the tiny grid."""
    grid = {"scales": SCALES, "seeds": SEEDS, "labels": encoders.read_labels(sections["base"].labels), "device": "cpu"}
    pictures, settings = artifacts / "generation", sections["evaluation"]
    return evaluation.evaluate(pictures, SHIFTS, CLASSES, settings=settings, folder=artifacts / "evaluation", **grid)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A root with the first and the last change, the base models, a tiny grid of pictures and the classifier that is named."""
    folder = tmp_path_factory.mktemp("house")
    changed(folder, DIFFS[0])
    changed(folder, DIFFS[3])
    (folder / "data").symlink_to(ROOT / "data")
    with contextlib.chdir(folder):
        exec(RECIPE, {})
    write_pictures(folder / "artifacts" / "generation")
    grid = {"classes": CLASSES, "shifts": SHIFTS, "scales": SCALES, "seeds": SEEDS}
    base = {"out": str(folder), "bootstrap": {"resamples": 20, "confidence": 0.95, "seed": 1, "target": "same classes"}} | grid
    YAML().dump({"base": base, "evaluation": {"batch_size": 4}}, folder / "tiny.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "ROOT", folder)
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        yield folder


@pytest.fixture(scope="module")
def answers(house) -> tuple[dict[str, Path], dict[object, int], dict[str, Path]]:
    """The tables of answers before the change with the times of their making, and those after it."""
    before = answer(read.load(ROOT / "params.yaml", house / "tiny.yaml"), house / "artifacts")
    made = times(before)
    return before, made, answer(read.load(house / "params.yaml", house / "tiny.yaml"), house / "artifacts")


def test_every_command_that_the_texts_name_exists():
    text = "\n".join(path.read_text() for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")))
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {program: set(re.findall(rf"(?:^ {{4}}|`){program} ([a-z]+)", text, re.MULTILINE)) for program in ("make", "cns")}
    assert {"repro", "test"} <= used["make"] <= targets and {"run", "report"} <= used["cns"] <= {*cli.COMMANDS, "lab"}


def test_each_change_is_one_file():
    assert [named(diff) for diff in DIFFS] == [["params.yaml"], ["params.yaml"], ["params.yaml"], ["notebooks/09_failure.ipynb"]]


def test_a_classifier_is_one_line_that_every_section_accepts(house):
    lines = [line for line in DIFFS[0].splitlines() if re.match(r"[+-](?![+-])", line)]
    before, after = read.load(ROOT / "params.yaml"), read.load(house / "params.yaml")
    assert len(lines) == 1 and {name for name in after if after[name] != before[name]} == {"evaluation"}
    assert after["evaluation"].classifiers == before["evaluation"].classifiers | {"mine": "weights/mine"}


def test_only_the_new_classifier_is_asked(answers):
    before, made, after = answers
    assert after.keys() - before.keys() == {"mine"} and times({name: after[name] for name in before}) == made
    assert set(tables.read(after["mine"], tables.predictions)["model"]) == {"mine"}


def test_another_text_outdates_the_sliders_of_its_shift_alone(tmp_path):
    before, after = read.load(ROOT / "params.yaml"), read.load(changed(tmp_path, DIFFS[1]))
    assert {name for name in after if after[name] != before[name]} == {"sliders"}
    base = after["base"]
    origin = text_to_image.Origin("base", {name: name for name in base.classes})
    for recipe in sliders.RECIPES:
        pairs = list(itertools.product(base.shifts, base.classes))
        stamps = [
            [sliders.stamp(*pair, settings=own["sliders"], origin=origin, recipe=recipe) for pair in pairs] for own in (before, after)
        ]
        outdated = [pair for pair, old, new in zip(pairs, *stamps, strict=True) if old != new]
        assert outdated == [("heavy snow", name) for name in base.classes]


def test_a_shift_adds_its_own_sliders_alone(tmp_path):
    before, after = read.load(ROOT / "params.yaml"), read.load(changed(tmp_path, DIFFS[2]))
    assert {name for name in after if after[name] != before[name]} == {"base", "sliders"}
    assert after["base"].shifts == [*before["base"].shifts, "heavy rain in heavy fog"]
    origin = text_to_image.Origin("base", {name: name for name in after["base"].classes})
    for shift, name in itertools.product(before["base"].shifts, before["base"].classes):
        stamps = [sliders.stamp(shift, name, settings=own["sliders"], origin=origin) for own in (before, after)]
        assert stamps[0] == stamps[1]
    assert (
        sliders.prompts("heavy rain in heavy fog", "bag", texts=after["sliders"].texts)[1]
        == "a picture of a <bag*> in heavy rain in heavy fog"
    )


def test_the_mini_model_knows_every_word_of_the_texts(tmp_path):
    tokenizer = CLIPTokenizer.from_pretrained(ROOT / "data" / "models" / "mini-sd" / "tokenizer")
    for number, diff in enumerate(DIFFS[1:3]):
        sections = read.load(changed(tmp_path / str(number), diff))
        for shift in sections["sliders"].texts:
            (_, prompt) = sliders.prompts(shift, "sneaker", texts=sections["sliders"].texts)
            words = prompt.removeprefix("a picture of a <sneaker*> ")
            assert tokenizer.tokenize(words) == [f"{word}</w>" for word in words.split()]


def test_sliders_learn_the_text_and_those_of_other_shifts_stay(tmp_path, tiny_pipeline_dir, tiny_tokens_dir):
    texts = read.load(changed(tmp_path, DIFFS[1]))["sliders"].texts
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, tiny_sliders.CLASSES)
    pipe = tiny_sliders.pipeline(tiny_pipeline_dir, tiny_tokens_dir, tiny_sliders.CLASSES)
    grid, kept = (pipe, SHIFTS, tiny_sliders.CLASSES), {"origin": origin, "folder": tmp_path / "sliders"}
    made = times(sliders.make_sliders(*grid, recipe="paper", settings=tiny_sliders.SETTINGS, **kept))
    found = sliders.make_sliders(*grid, recipe="paper", settings=dataclasses.replace(tiny_sliders.SETTINGS, texts=texts), **kept)
    assert {pair for pair, time in times(found).items() if time != made[pair]} == {("heavy snow", name) for name in tiny_sliders.CLASSES}
    learned = json.loads(adapters.header(found["heavy snow", "sneaker"])["prompts"])
    assert learned == ["a picture of a <sneaker*>", "a picture of a <sneaker*> in snow"]


@pytest.mark.slow
def test_a_figure_is_one_cell_that_leaves_picture_page_and_numbers(house, answers):
    """The notebook runs on the answers of all classifiers, the new one among them."""
    kept = pd.DataFrame(list(itertools.product(SHIFTS, CLASSES, range(1, SEEDS + 1))), columns=tables.TRAJECTORY)
    path = house / "artifacts" / "filtering" / "kept.parquet"
    tables.write(kept, path, tables.kept_schema)
    units.record_bytes(path)
    runner.run("failure", str(house / "params.yaml"), str(house / "tiny.yaml"))
    left = {path.name: path for path in (house / "figures" / "failure").glob("recovered.*")}
    assert left.keys() == {"recovered.png", "recovered.pdf", "recovered.csv"}
    table = pd.read_csv(left["recovered.csv"])
    assert set(table["model"]) == set(answers[2]) and "mine" in answers[2] and table["estimate"].between(0, 1).all()
