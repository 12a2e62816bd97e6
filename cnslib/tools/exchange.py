"""The authors' own data in and our benchmark out: `cns official RESULTS [--images PATH]`, `... export FOLDER`.

`official` imports the answers of results.zip (and the images of cns_bench.zip) into the tables that the analyses read, and runs these:
every figure of the paper from the authors' predictions. `export` writes our benchmark and answers in the layout of theirs.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from ruamel.yaml import YAML

from cnslib.core import paths, tables, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.settings import read
from cnslib.core.tables import kept_schema
from cnslib.data import answers, archives, artifacts, croissant, imagenet, official
from cnslib.models import encoders
from cnslib.stats import accuracy
from cnslib.tools import runner

ANALYSES = ("accuracy", "ranking", "axes", "failure", "line")
VALIDATION_IMAGES = 50_000  # of ImageNet, on which Table 7 rests
LEAST = 3  # classifiers that draw a line
IMPORTED = ("artifacts/evaluation", "artifacts/filtering", "artifacts/generation", "labels.json", "official.yaml")


@dataclass(frozen=True)
class Sources:
    """Where the authors' data are: answers, and if at hand the images and their annotations; and classifiers to leave out."""

    results: Path
    images: Path | None = None
    annotations: Path | None = None
    without: tuple[str, ...] = ()


def bring_in(sources: Sources, wish: dict[str, dict]) -> tuple[Path, accuracy.Outcomes]:
    """Imports the authors' data into the folder `base.out` of an overlay; returns the overlay narrowed to what is there, and the outcomes.

    Answers become `artifacts/evaluation`, images `artifacts/generation`, the trajectories `artifacts/filtering/kept.parquet`; accuracies
    without a shift are those of Table 7. Raises ValueError for an unknown classifier, one that lacks a shift, classifiers that did not
    answer the same images, images other than those that were answered, and whatever the files themselves do wrong; after an error an
    earlier import is as it was.
    """
    root, out = paths.Layout(wish["base"]["out"]).root, wish["base"]["out"]
    demand(root.resolve() != paths.ROOT.resolve(), "base.out", out, "a folder of its own: the import replaces artifacts and labels there")
    with aside(root) as folder:
        seen = take_in(sources, wish, paths.Layout(str(folder)))
    return root / "official.yaml", seen


@contextlib.contextmanager
def aside(root: Path) -> Iterator[Path]:
    """A folder to import into: without an error its parts replace those under `root`, where a part that it lacks goes away."""
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, suffix=".partial") as staging, contextlib.ExitStack() as undo:
        new, old = Path(staging) / "new", Path(staging) / "old"
        yield new
        for part in IMPORTED:
            for source, target in ((root / part, old / part), (new / part, root / part)):
                if source.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source.rename(target)
                    undo.callback(target.rename, source)  # an error in between puts the earlier import back
        undo.pop_all()


def take_in(sources: Sources, wish: dict[str, dict], layout: paths.Layout) -> accuracy.Outcomes:
    """Imports the authors' data and the narrowed overlay into a layout's folder; returns the outcomes."""
    classes = imagenet.paper_classes()["class"].tolist()
    named: dict = {"labels": list(imagenet.labels()), "classes": classes}
    with archives.opened(sources.results) as archive:
        there = list(answers.by_model(archive.names, sources.results))
    require_known([name for name in there if name not in sources.without], wish)
    for name in sources.without:
        demand(name in there, "--without", name, ", ".join(there))
    found = answers.import_answers(sources.results, **named, folder=layout.artifacts("evaluation"), without=sources.without)
    seen = accuracy.outcomes(tables.read_answers(found.values()))
    tables.write(seen.trajectories, layout.artifacts("filtering") / "kept.parquet", kept_schema)
    bring_images(sources, seen.trajectories, layout, named)
    write_models(list(found), layout.artifacts("evaluation"))
    units.write_bytes(layout.root / "labels.json", json.dumps(named["labels"]).encode())
    with units.atomic(layout.root / "official.yaml") as partial:
        YAML().dump(narrowed(wish, seen, classes), partial)  # in the order of the keys
    return seen


def require_known(models: list[str], wish: dict[str, dict]) -> None:
    """Raises ValueError naming a classifier that is neither the paper's nor the overlay's."""
    roster = [*pd.read_csv(paths.PUBLISHED / "classifiers43.csv")["model"], *wish["evaluation"]["classifiers"]]
    for name in models:
        demand(name in roster, "classifier", name, f"{', '.join(roster)}; others as keys of evaluation.classifiers in official.yaml")


def bring_images(sources: Sources, trajectories: pd.DataFrame, layout: paths.Layout, named: dict) -> None:
    """Imports the images, which must be those of the answered trajectories."""
    if sources.images is None:
        return
    folder = layout.artifacts("generation")
    with archives.opened(sources.images) as archive:
        rows = official.index(archive, **named, annotations=sources.annotations)
    wanted = trajectories[tables.TRAJECTORY].itertuples(index=False, name=None)
    tables.complete(rows.drop_duplicates(tables.TRAJECTORY), wanted, tables.TRAJECTORY, f"images of {sources.images}")
    kept = layout.artifacts("filtering") / "pictured.parquet"
    official.import_benchmark(sources.images, **named, folder=folder, kept=kept, annotations=sources.annotations, repeated="any")


def write_models(models: list[str], folder: Path) -> None:
    """Writes numbers of weights (models.csv) and accuracies without a shift (heldout.csv) from Table 7, where it has them."""
    table = pd.read_csv(paths.PUBLISHED / "validation.csv").set_index("model").reindex(models).rename_axis("model").reset_index()
    weights = (table["parameters_millions"] * 1e6).round().astype("Int64")
    sizes = pd.DataFrame({"model": table["model"], "parameters": weights})
    plain = table[["model", "accuracy"]].dropna().assign(n=VALIDATION_IMAGES)
    for name, rows in (("models.csv", sizes), (accuracy.SUMMARY, plain)):
        units.write_recorded(folder / name, rows.to_csv(index=False, lineterminator="\n").encode())


def narrowed(wish: dict[str, dict], seen: accuracy.Outcomes, classes: list[str]) -> dict[str, dict]:
    """The overlay with the classes, shifts, scales and seeds that were answered, and without absent classifiers.

    An axis that would keep fewer than two of its classifiers is filled up with others, and the axes are not analysed then, see `missing`.
    """
    there, rows = set(seen.models), seen.trajectories
    demand(len(there) > 1, "results", seen.models, "the answers of two classifiers or more, which can be compared")
    base = wish["base"] | {
        "labels": f"{wish['base']['out']}/labels.json",
        "classes": [name for name in classes if name in set(rows["class"])],
        "shifts": [shift for shift in SHIFTS if shift in set(rows["shift"])],
        "scales": seen.scales,
        "seeds": int(rows["seed"].max()),
        "shown": [name for name in wish["base"]["shown"] if name in there] or seen.models[:6],
    }
    members = {axis: [name for name in own if name in there] for axis, own in wish["axes"]["members"].items()}
    members = {axis: own if len(own) > 1 else list(dict.fromkeys([*own, *seen.models]))[:2] for axis, own in members.items()}
    evaluated = dict.fromkeys(seen.models, "the authors' answers")
    narrow: dict[str, dict] = {"base": base, "axes": wish["axes"] | {"members": members}, "evaluation": {"classifiers": evaluated}}
    return wish | narrow | {"bisection": {"classifiers": seen.models[:1]}}


def missing(wish: dict[str, dict], models: list[str], *, reference: str) -> dict[str, str]:
    """The analyses that these classifiers do not suffice for, and why."""
    there, found = set(models), dict[str, str]()
    if reference not in there:
        found |= dict.fromkeys(("accuracy", "axes"), f"{reference}, the reference of CE and rCE, is not among the classifiers")
    for axis, own in wish["axes"]["members"].items():
        if len(there & set(own)) < 2:
            found["axes"] = f"fewer than two classifiers of the axis {axis!r} are there"
    known = there & set(pd.read_csv(paths.PUBLISHED / "validation.csv")["model"])
    families = wish["line"]["families"]
    supervised = known.difference(*(families[name] for name in wish["line"]["pretrained"]))
    if min(len(supervised), *(len(known - set(own)) for own in families.values())) < LEAST:
        found["line"] = f"a line needs {LEAST} supervised classifiers of Table 7, and as many without any one family"
    return found


def told(sources: Sources, seen: accuracy.Outcomes, left_out: dict[str, str]) -> str:
    """What there is and what there is not, in a few lines."""
    rows, scales = seen.trajectories, ", ".join(f"{scale:g}" for scale in seen.scales)
    absent = sorted(set(pd.read_csv(paths.PUBLISHED / "classifiers43.csv")["model"]) - set(seen.models))
    lines = [
        f"{len(seen.models)} classifiers on {len(rows):,} trajectories: {rows['class'].nunique()} classes, "
        f"{rows['shift'].nunique()} shifts, scales {scales}",
        f"of the paper's 43 classifiers without answers: {', '.join(absent) or 'none'}",
        "no images given: failure_strips stays without pictures" if sources.images is None else f"images of {sources.images}",
        *(f"passed over: {step}, because {why}" for step, why in left_out.items()),
    ]
    return "\n".join(lines)


def rebuild(sources: Sources, overlay: Path) -> int:
    """Imports the authors' data and runs every analysis that they suffice for; returns 0 if all went well."""
    wish = read.read(overlay)
    lacking = [name for name in ("base", "evaluation", "axes", "line") if name not in wish]
    demand(not lacking, overlay.name, ", ".join(wish), f"the sections base, evaluation, axes and line; {', '.join(lacking)} is missing")
    target, seen = bring_in(sources, wish)
    left_out = missing(wish, seen.models, reference=read.load(paths.resolve("params.yaml"))["accuracy"].reference)
    print(told(sources, seen, left_out), flush=True)
    code = runner.main(["--overlay", str(target), *(step for step in ANALYSES if step not in left_out)])
    if code == 0:
        print(f"figures: {wish['base']['out']}/figures; notebooks with results: {wish['base']['out']}/executed")
    return code


def bring_out(folder: Path, sections: dict) -> list[Path]:
    """Writes cns_bench.zip (images and annotations) and results.zip (answers) as the authors have theirs, and croissant.json of our tables.

    Raises FileExistsError where one of them is there already, FileNotFoundError for what has not been made or restored.
    """
    base, layout, about = sections["base"], paths.Layout(sections["base"].out), sections["dataset"]
    run = read.Run("dataset", sections, ())
    kept, given = artifacts.kept(run), artifacts.answers(run).astype(dict.fromkeys(tables.TEXTS, str))
    labels = encoders.read_labels(base.labels)
    info = {"description": about.description, "url": about.url, "version": about.version, "year": int(about.date_published[:4])}
    info |= {"license": ", ".join(about.license), "contributor": about.creator, "date_created": about.date_published.replace("-", "/")}
    images, metadata = layout.artifacts("generation"), folder / "croissant.json"
    croissant.write_croissant(metadata, images, layout.artifacts("filtering") / "kept.parquet", about=about)
    return [
        metadata,
        official.export_benchmark(images, kept, folder / "cns_bench.zip", labels=labels, info=info),
        answers.export_answers(given, kept, folder / "results.zip", labels=labels, form="png"),
    ]


def parser() -> argparse.ArgumentParser:
    """The two commands and their options."""
    whole = argparse.ArgumentParser(prog="cns", description=__doc__.splitlines()[0])
    commands = whole.add_subparsers(dest="command", required=True)
    brought = commands.add_parser("official", help="every figure of the paper from the authors' answers")
    brought.add_argument("results", type=Path, help="their results.zip, or a folder of its csv files")
    brought.add_argument("--images", type=Path, help="their cns_bench.zip, or its folder")
    brought.add_argument("--annotations", type=Path, help="annotations_cns.json, where it does not lie beside the images")
    brought.add_argument("--without", nargs="+", default=[], metavar="CLASSIFIER", help="classifiers to leave out")
    brought.add_argument("--overlay", default="official.yaml", help="axes, families and output folder (default official.yaml)")
    written = commands.add_parser("export", help="our images and answers in the authors' layout")
    written.add_argument("folder", type=Path, help="receives cns_bench.zip, results.zip and croissant.json")
    written.add_argument("--params", default="params.yaml", help="parameter file of the benchmark (default params.yaml)")
    written.add_argument("--overlay", help="file whose keys replace some of its values")
    return whole


def main(arguments: list[str]) -> int:
    """Command line."""
    options = parser().parse_args(arguments)
    try:
        if options.command == "official":
            sources = Sources(options.results, options.images, options.annotations, tuple(options.without))
            return rebuild(sources, paths.resolve(options.overlay))
        overlay = paths.resolve(options.overlay) if options.overlay else None
        for path in bring_out(options.folder, read.load(paths.resolve(options.params), overlay)):
            print(f"written: {path}")
    except (ValueError, FileNotFoundError, FileExistsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
