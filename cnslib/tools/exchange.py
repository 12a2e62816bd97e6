"""The authors' own data in and our benchmark out: `cns official RESULTS [--images PATH]`, `cns export FOLDER`.

`official` imports results.zip (and cns_bench.zip) into the tables that the analyses read, and runs these; `export` writes the authors'
layout.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd
from ruamel.yaml import YAML

from cnslib.core import paths, tables, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.settings import read
from cnslib.data import archives, artifacts, authors, benchmark, croissant, imagenet, official
from cnslib.models import encoders
from cnslib.stats import accuracy
from cnslib.tools import runner

ANALYSES = ("accuracy", "ranking", "axes", "failure", "line")
VALIDATION_IMAGES = 50_000  # of ImageNet, on which Table 7 rests
LEAST = 3  # classifiers that draw a line
IMPORTED = ("artifacts", "labels.json", "official.yaml")


def bring_in(overlay: str, results: Path, images: Path | None, without: list[str]) -> tuple[Path, list[str]]:
    """Imports the authors' data into the folder `base.out` of an overlay; returns the overlay narrowed to what is there, and its models.

    ValueError names what does not fit; an earlier import stays until this one is whole.
    """
    wish = read.read(overlay)
    demand({"base", "evaluation", "axes", "line"} <= wish.keys(), overlay, ", ".join(wish), "the sections base, evaluation, axes, line")
    root, out = paths.Layout(wish["base"]["out"]).root, wish["base"]["out"]
    demand(root.resolve() != paths.ROOT.resolve(), "base.out", out, "a folder of its own: the import replaces artifacts and labels there")
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, suffix=".partial") as staging:
        layout = paths.Layout(staging)
        vocabulary: dict = {"labels": list(imagenet.labels()), "classes": imagenet.paper_classes()["class"].tolist()}
        models, rows = import_predictions(wish, layout, results, without, vocabulary)
        if images:
            with archives.opened(images) as archive:
                pictured = official.index(archive, **vocabulary).drop_duplicates(tables.TRAJECTORY)
            wanted = rows[tables.TRAJECTORY].itertuples(index=False, name=None)
            tables.complete(pictured, wanted, tables.TRAJECTORY, f"images of {images}")
            place: dict = {"folder": layout.artifacts("generation"), "kept": layout.artifacts("filtering") / "pictured.parquet"}
            official.import_benchmark(images, **vocabulary, **place)
        for part in IMPORTED:
            shutil.rmtree(root / part, ignore_errors=True)
            (layout.root / part).rename(root / part)
    return root / "official.yaml", models


def import_predictions(
    wish: dict, layout: paths.Layout, results: Path, without: list[str], vocabulary: dict
) -> tuple[list[str], pd.DataFrame]:
    """Imports predictions with the accuracies of Table 7 and the narrowed overlay; returns models and trajectories."""
    with archives.opened(results) as archive:
        there = list(authors.by_model(archive.names, results))
    roster = [*pd.read_csv(paths.PUBLISHED / "classifiers43.csv")["model"], *wish["evaluation"]["classifiers"]]
    accepted = f"{', '.join(roster)}; others as keys of evaluation.classifiers in official.yaml"
    for name in [*without, *there]:
        demand(name in there, "--without", name, ", ".join(there))
        demand(name in [*roster, *without], "classifier", name, accepted)
    folder = layout.artifacts("evaluation")
    files = authors.import_predictions(results, **vocabulary, folder=folder, without=without)
    wrong = accuracy.wrong_predictions(tables.read_top1(files.values()))
    rows = accuracy.trajectories(wrong)
    tables.write(rows, layout.artifacts("filtering") / "kept.parquet", tables.kept_schema)
    published = pd.read_csv(paths.PUBLISHED / "validation.csv").set_index("model").reindex(list(files)).rename_axis("model").reset_index()
    weights = published[["model"]].assign(parameters=(published["parameters_millions"] * 1e6).round().astype("Int64"))
    plain = published[["model", "accuracy"]].dropna().assign(n=VALIDATION_IMAGES)
    for name, part in ((artifacts.MODELS, weights), (artifacts.SUMMARY, plain)):
        units.write_recorded(folder / name, part.to_csv(index=False, lineterminator="\n").encode())
    units.write_bytes(layout.root / "labels.json", json.dumps(vocabulary["labels"]).encode())
    models = wrong["model"].to_numpy().tolist()
    demand(len(models) > 1, "results", models, "the predictions of two classifiers or more, which can be compared")
    grid = {"classes": vocabulary["classes"], "shifts": SHIFTS, "scales": wrong["scale"].to_numpy().tolist()}
    with units.atomic(layout.root / "official.yaml") as partial:
        YAML().dump(narrowed(wish, models, rows, **grid), partial)  # in the order of the keys
    return models, rows


def narrowed(wish: dict, models: list[str], rows: pd.DataFrame, *, classes: list, shifts: tuple, scales: list) -> dict:
    """The overlay with the classes, shifts, scales and seeds that were answered, and without absent classifiers.

    An axis that would keep fewer than two is filled up with others, and the axes are not analysed then, see `missing`.
    """
    there = {"classes": [name for name in classes if name in set(rows["class"])], "shifts": [s for s in shifts if s in set(rows["shift"])]}
    shown = [name for name in wish["base"]["shown"] if name in models] or models[:6]
    base = there | {"labels": f"{wish['base']['out']}/labels.json", "scales": scales, "seeds": int(rows["seed"].max()), "shown": shown}
    members = {axis: [name for name in names if name in models] for axis, names in wish["axes"]["members"].items()}
    members = {axis: names if len(names) > 1 else list(dict.fromkeys([*names, *models]))[:2] for axis, names in members.items()}
    changes = {"base": wish["base"] | base, "axes": wish["axes"] | {"members": members}, "bisection": {"classifiers": models[:1]}}
    return wish | changes | {"evaluation": {"classifiers": dict.fromkeys(models, "the authors' predictions")}}


def missing(wish: dict[str, dict], models: list[str], *, reference: str) -> dict[str, str]:
    """The analyses that these classifiers do not suffice for, and why."""
    there, reasons = set(models), dict[str, str]()
    if reference not in there:
        reasons |= dict.fromkeys(("accuracy", "axes"), f"{reference}, the reference of CE and rCE, is not among the classifiers")
    for axis, names in wish["axes"]["members"].items():
        if len(there & set(names)) < 2:
            reasons["axes"] = f"fewer than two classifiers of the axis {axis!r} are there"
    in_table7, families = there & set(pd.read_csv(paths.PUBLISHED / "validation.csv")["model"]), wish["line"]["families"]
    supervised = in_table7.difference(*(families[name] for name in wish["line"]["pretrained"]))
    if min(len(supervised), *(len(in_table7 - set(names)) for names in families.values())) < LEAST:
        reasons["line"] = f"a line needs {LEAST} supervised classifiers of Table 7, and as many without any one family"
    return reasons


def rebuild(options: argparse.Namespace) -> int:
    """Imports the authors' data and runs every analysis that they suffice for; returns 0 if all went well."""
    target, models = bring_in(options.overlay, options.results, options.images, options.without)
    left_out = missing(read.read(options.overlay), models, reference=read.load("params.yaml")["accuracy"].reference)
    absent = sorted(set(pd.read_csv(paths.PUBLISHED / "classifiers43.csv")["model"]) - set(models))
    print(f"{len(models)} classifiers; of the paper's 43 without predictions: {', '.join(absent) or 'none'}")
    print(*(f"passed over: {step}, because {why}" for step, why in left_out.items()), sep="\n", flush=True)
    return runner.main(["--overlay", str(target), *(step for step in ANALYSES if step not in left_out)])


def bring_out(folder: Path, sections: dict) -> list[Path]:
    """Writes cns_bench.zip (images, annotations) and results.zip (predictions) as the authors do, and croissant.json of our tables."""
    layout, about, run = paths.Layout(sections["base"].out), sections["dataset"], read.Run("dataset", sections, ())
    kept, predictions = artifacts.kept(run), artifacts.top1(run).astype(dict.fromkeys(tables.TEXTS, str))
    labels, images = encoders.read_labels(sections["base"].labels), layout.artifacts("generation")
    version = artifacts.version(run)
    info = version | {"description": about.description, "url": about.url, "year": int(about.date_published[:4])}
    info |= {"license": ", ".join(about.license), "contributor": about.creator, "date_created": about.date_published.replace("-", "/")}
    first = next(tables.batches(next(images.glob("*.parquet")), 1))["image"][0]
    form = official.ending(first, "the first image")  # all are of one kind
    files = {path.stem: path for path in benchmark.shards(images)} | {"kept": layout.artifacts("filtering") / "kept.parquet"}
    croissant.write(folder / "croissant.json", files, about=vars(about))
    return [
        folder / "croissant.json",
        archives.write(folder / "cns_bench.zip", official.exported(images, kept, labels, info)),
        authors.export_predictions(predictions, kept, folder / "results.zip", labels=labels, form=form, version=version),
    ]


def main(arguments: list[str]) -> int:
    """Command line."""
    whole = argparse.ArgumentParser(prog="cns", description=__doc__.splitlines()[0])
    commands = whole.add_subparsers(dest="command", required=True)
    into = commands.add_parser("official", help="every figure of the paper from the authors' predictions")
    into.add_argument("results", type=Path, help="their results.zip, or a folder of its csv files")
    into.add_argument("--images", type=Path, help="their cns_bench.zip, or its folder")
    into.add_argument("--without", nargs="+", default=[], metavar="CLASSIFIER", help="classifiers to leave out")
    into.add_argument("--overlay", default="official.yaml", help="axes, families and output folder (default official.yaml)")
    out = commands.add_parser("export", help="our images and predictions in the authors' layout")
    out.add_argument("folder", type=Path, help="receives cns_bench.zip, results.zip and croissant.json")
    out.add_argument("--overlay", default="", help="file whose keys replace some of the values of params.yaml")
    options = whole.parse_args(arguments)
    try:
        if options.command == "official":
            return rebuild(options)
        for path in bring_out(options.folder, read.load("params.yaml", options.overlay)):
            print(f"written: {path}")
    except (ValueError, FileNotFoundError, FileExistsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
