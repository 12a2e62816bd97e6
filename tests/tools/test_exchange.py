import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from official_files import FOLDERS, jpeg, published, results_csv, write_zip
from ruamel.yaml import YAML

from cnslib.core import paths, tables
from cnslib.core.names import identifier
from cnslib.core.settings import read
from cnslib.data import authors, official
from cnslib.models import encoders
from cnslib.tools import exchange

OUT = "build/test-official"
TINY = {"resamples": 50, "confidence": 0.95, "seed": 1, "target": "same classes"}
# The authors' predictions and pictures, in the exact form of the published ones: real names of shifts, classes and models.
SCALES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
SHIFTS = ("cartoon_style", "heavy_snow", "painting_style")
SEEDS = (3, 4, 11, 34)
STEADY = {  # how far the slider may go, on average, until the model fails
    "alexnet": 1.0,
    "resnet18.a1_in1k": 1.3,
    "resnet152.a1_in1k": 1.9,
    "convnext_base.fb_in1k": 2.3,
    "deit3_small_patch16_224.fb_in1k": 1.6,
    "deit3_base_patch16_224.fb_in1k": 2.6,
    "vit_base_patch16_224.augreg_in1k": 1.2,
    "mae_vit_base_patch16": 2.1,
}
TRAJECTORIES = list(itertools.product(SHIFTS, sorted(FOLDERS), SEEDS))


def answer(model: str, shift: str, number: int, seed: int, scale: float) -> int:
    entropy = np.frombuffer(f"{model} {shift} {number} {seed}".encode(), np.uint8).tolist()
    return number if scale <= STEADY[model] + np.random.default_rng(entropy).normal(scale=0.8) else 5


def csv_files(models=tuple(STEADY)) -> dict[str, bytes]:
    files = {}
    for model, shift in itertools.product(models, SHIFTS):
        keys = [(number, seed, scale) for own, number, seed in TRAJECTORIES if own == shift for scale in SCALES]
        kind = int if model == "alexnet" else float
        rows = [(kind(answer(model, shift, *key)), key[0], published(shift, *key).split("/")[-1]) for key in keys]
        files[f"{model}__{shift}.csv"] = results_csv(model, shift, rows, tenth=model == "alexnet").encode()
    return files


def pictures() -> dict[str, bytes]:
    return {published(*key, scale): jpeg(*key, scale) for key in TRAJECTORIES for scale in SCALES}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("authors")
    return write_zip(folder / "results.zip", csv_files(), root="results/"), write_zip(folder / "cns_bench.zip", pictures())


@pytest.fixture(scope="module")
def overlay(tmp_path_factory) -> Path:
    wish = read.read(paths.resolve("official.yaml"))
    wish["base"]["out"] = OUT
    wish["base"]["bootstrap"] = TINY
    path = tmp_path_factory.mktemp("overlay") / "official.yaml"
    with open(path, "w") as stream:
        YAML().dump(wish, stream)
    return path


def elsewhere(overlay: Path, out: Path) -> Path:
    wish = read.read(overlay)
    wish["base"]["out"] = str(out)
    path = overlay.with_name("elsewhere.yaml")
    YAML().dump(wish, path)
    return path


def share(model: str, scale: float) -> float:
    return np.mean([answer(model, *key, scale) == key[1] for key in TRAJECTORIES])


@pytest.mark.slow
def test_one_command_rebuilds_the_figures_from_the_authors_predictions(foreign, overlay, monkeypatch, capsys):
    monkeypatch.setattr(exchange, "ANALYSES", ("axes",))  # the others read the same tables
    results, images = foreign
    assert exchange.main(["official", str(results), "--images", str(images), "--overlay", str(overlay)]) == 0
    assert "8 classifiers; of the paper's 43 without predictions: " in capsys.readouterr().out
    figures = paths.Layout(OUT, "axes").figures
    assert all((figures / f"{name}.{kind}").exists() for name in ("drop", "claims") for kind in ("png", "pdf", "csv"))
    drops = pd.read_csv(figures / "drop.csv").query("shift == 'all shifts'")[["model", "scale", "estimate"]]
    assert len(set(drops["model"])) > 5
    for model, scale, drop in drops.itertuples(index=False):
        assert drop == pytest.approx(share(model, 0.0) - share(model, scale), abs=1e-5)


def test_what_does_not_suffice_for_an_analysis_is_passed_over_with_its_reason():
    wish = read.read(paths.resolve("official.yaml"))
    assert exchange.missing(wish, list(STEADY), reference="alexnet") == {}
    few = exchange.missing(wish, ["resnet18.a1_in1k", "resnet152.a1_in1k", "mae_vit_base_patch16"], reference="alexnet")
    assert set(few) == {"accuracy", "axes", "line"} and "alexnet" in few["accuracy"] and "axis 'pre-training'" in few["axes"]


def test_a_classifier_that_lacks_a_shift_can_be_left_out(tmp_path, overlay, capsys):
    files = csv_files()
    del files["alexnet__heavy_snow.csv"]
    source, place = write_zip(tmp_path / "results.zip", files), tmp_path / "out"
    _, models = exchange.bring_in(elsewhere(overlay, place), source, None, ["alexnet"])
    assert sorted(models) == sorted(set(STEADY) - {"alexnet"}) and not list(place.rglob("alexnet*"))
    for without, said in {
        "alexnett": "--without: 'alexnett' is not accepted; accepted: alexnet, convnext_base.fb_in1k",
        "vit_base_patch16_224.augreg_in1k": "no predictions of 'alexnet' under 'heavy_snow'; accepted: ",
    }.items():
        assert exchange.main(["official", str(source), "--without", without, "--overlay", str(overlay)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and said in error and error.count("\n") == 1


def test_the_committed_results_are_never_imported_over(foreign, overlay):
    with pytest.raises(ValueError, match=r"base.out: '\./' is not accepted; accepted: a folder of its own"):
        exchange.bring_in(elsewhere(overlay, "./"), foreign[0], None, [])


@pytest.fixture
def small(tmp_path) -> dict:
    sections = read.load(paths.resolve("params.yaml"), paths.resolve("smoke.yaml"))
    layout = paths.Layout(str(tmp_path / "own"))
    keys = [
        (shift, name, 1, scale) for shift in ("heavy snow", "cartoon style") for name in ("trouser", "ankle boot") for scale in (1.0, 1.5)
    ]
    keys += [("unshifted", name, 1, 0.0) for name in ("trouser", "ankle boot")]
    rows = pd.DataFrame(keys, columns=tables.KEY)
    rows["image"] = [jpeg(*key, form="PNG") for key in keys]
    for shift, part in rows.groupby("shift"):
        tables.write(part, layout.artifacts("generation") / f"{identifier(shift)}.parquet", tables.images)
    kept = [("heavy snow", "trouser", 1), ("cartoon style", "ankle boot", 1), ("cartoon style", "trouser", 1)]
    tables.write(pd.DataFrame(kept, columns=tables.TRAJECTORY), layout.artifacts("filtering") / "kept.parquet", tables.kept_schema)
    for model in ("alexnet", "vit"):
        top1 = [key[1] if len(model) * key[3] < 4 else "bag" for key in keys]
        given = rows[tables.KEY].assign(model=model, top1=top1, top5=[[name] for name in top1], probability=0.5, margin=0.0)
        tables.write(given.assign(preprocessing="model"), layout.artifacts("evaluation") / f"{model}.parquet", tables.predictions)
    object.__setattr__(sections["base"], "out", str(tmp_path / "own"))
    object.__setattr__(sections["evaluation"], "classifiers", {"alexnet": "", "vit": ""})
    return sections


def test_export_then_import_gives_back_every_kept_image_and_answer(small, tmp_path):
    _, images, results = exchange.bring_out(tmp_path / "out", small)
    labels, own = encoders.read_labels(small["base"].labels), paths.Layout(small["base"].out)
    again = official.import_benchmark(images, labels=labels, classes=labels, folder=tmp_path / "in", kept=tmp_path / "kept.parquet")
    kept = tables.read(own.artifacts("filtering") / "kept.parquet", tables.kept_schema)
    pd.testing.assert_frame_equal(tables.read(tmp_path / "kept.parquet", tables.kept_schema), kept)
    for shift, path in again.items():
        before = tables.read(own.artifacts("generation") / f"{identifier(shift)}.parquet", tables.images)
        plain = tables.read(own.artifacts("generation") / "unshifted.parquet", tables.images)
        whole = tables.trajectories(pd.concat([before, plain]), [shift])
        there = tables.select(whole, kept[kept["shift"] == shift], tables.TRAJECTORY, "images").sort_values(tables.KEY)
        pd.testing.assert_frame_equal(tables.read(path, tables.images), there.reset_index(drop=True))
    brought = authors.import_predictions(results, labels=labels, classes=labels, folder=tmp_path / "answers")
    for model, path in brought.items():
        before = tables.trajectories(
            tables.read(own.artifacts("evaluation") / f"{model}.parquet", tables.predictions), kept["shift"].unique()
        )
        wanted = tables.select(before, kept, tables.TRAJECTORY, "answers").sort_values(tables.KEY, ignore_index=True)
        columns = [*tables.KEY, "top1"]
        pd.testing.assert_frame_equal(tables.read(path, tables.imported)[columns], wanted[columns])


def test_predictions_for_another_version_of_the_benchmark_are_refused(small, tmp_path):
    _, images, results = exchange.bring_out(tmp_path / "first", small)
    kept = paths.Layout(small["base"].out).artifacts("filtering") / "kept.parquet"
    tables.write(tables.read(kept, tables.kept_schema).head(2), kept, tables.kept_schema)
    _, fewer, later = exchange.bring_out(tmp_path / "second", small)
    authors.require_same_version(images, results)
    authors.require_same_version(fewer, later)
    for pair in [(images, later), (fewer, results)]:
        with pytest.raises(ValueError, match=r"holds predictions for the benchmark .*'version': '2.0.0'.*; accepted: those for"):
            authors.require_same_version(*pair)
