"""`make chain profile=smoke`, and what it leaves in build/smoke: the whole chain, from scratch. Other tests run beside it."""

import itertools
import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import method, read

SMOKE = paths.Layout("build/smoke")
STEPS = [path.stem.split("_", 1)[1] for path in sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))]
# At smoke size the oracle may call no image out of class.
MAY_BE_EMPTY = {"filtering/roc", "labels/roc"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def chain() -> None:
    shutil.rmtree(SMOKE.root, ignore_errors=True)
    ended = subprocess.run(
        ["make", "chain", "profile=smoke"], cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:]


@pytest.fixture(scope="module")
def sections() -> dict:
    return read.load(paths.resolve("params.yaml"), paths.resolve("smoke.yaml"))


def trajectories(base: method.Base) -> list[tuple]:
    return list(itertools.product(base.shifts, base.classes, range(1, base.seeds + 1)))


def numbers(values: dict) -> list[dict]:
    return [values] if "estimate" in values else [record for value in values.values() for record in numbers(value)]


@pytest.mark.parametrize("step", STEPS)
def test_every_number_lies_in_its_interval_every_figure_is_whole_and_the_notebook_knows_nothing_of_the_machine(step):
    records = numbers(json.loads((SMOKE.metrics / f"{step}.json").read_text()))
    assert records and all(set(record) == {"n", "estimate", "low", "high"} for record in records)
    known = [record for record in records if None not in record.values()]
    assert all(record["n"] >= 1 and record["low"] - 1e-6 <= record["estimate"] <= record["high"] + 1e-6 for record in known)
    files = sorted((SMOKE.figures / step).glob("*"))
    assert {path.name for path in files} == {f"{path.stem}.{kind}" for path in files for kind in ("png", "pdf", "csv")}
    assert {f"{step}/{path.stem}" for path in files if path.suffix == ".csv" and not len(pd.read_csv(path))} <= MAY_BE_EMPTY
    (path,) = (SMOKE.root / "executed").glob(f"[0-9]*_{step}.ipynb")
    text = path.read_text()
    assert len(text) < 2_000_000  # figures are as sharp as their files: two pixels for one of the screen, and nearly twice the bytes
    assert str(paths.ROOT) not in text and not re.search("/home/|/Users/|ipykernel_|papermill-error-cell| at 0x[0-9a-f]{6}", text)


def test_every_image_was_made_judged_and_classified_once(sections):
    base = sections["base"]
    above = [scale for scale in base.scales if scale > 0]
    drawn = [(*key, scale) for key in trajectories(base) for scale in above]
    drawn += [(UNSHIFTED, *key, 0.0) for key in itertools.product(base.classes, range(1, base.seeds + 1))]
    shards = [tables.read(path, tables.images) for path in SMOKE.artifacts("generation").glob("*.parquet")]
    tables.complete(pd.concat(shards), drawn, tables.KEY, "images")
    for name in sections["evaluation"].classifiers:
        answers = tables.read(SMOKE.artifacts("evaluation") / f"{identifier(name)}.parquet", tables.predictions)
        tables.complete(answers, drawn, tables.KEY, name)
    scores = tables.read(SMOKE.artifacts("filtering") / "scores.parquet", tables.scores)
    judged = tables.complete(scores, [(*key, scale) for key in trajectories(base) for scale in base.scales], tables.KEY, "scores")
    assert len(judged) == len(base.shifts) * len(base.classes) * base.seeds * len(base.scales)


def test_every_classifier_has_a_size_and_answered_the_held_out_catalog(sections):
    names, folder = list(sections["evaluation"].classifiers), SMOKE.artifacts("evaluation")
    assert sorted(pd.read_csv(folder / "models.csv")["model"]) == sorted(names)
    held = tables.read(SMOKE.artifacts("world") / "catalog.parquet", tables.catalog).query("split == 'heldout'")
    wanted = [(UNSHIFTED, *key, 0.0) for key in held[["class", "seed"]].itertuples(index=False, name=None)]
    assert {path.stem for path in (folder / "heldout").glob("*.parquet")} == {identifier(name) for name in names}
    for name in names:
        answers = tables.read(folder / "heldout" / f"{identifier(name)}.parquet", tables.predictions)
        tables.complete(answers, wanted, tables.KEY, name)


def test_a_trajectory_is_kept_as_a_whole():
    scores = tables.read(SMOKE.artifacts("filtering") / "scores.parquet", tables.scores)
    assert (scores.groupby(tables.TRAJECTORY)["keep"].nunique() == 1).all()
