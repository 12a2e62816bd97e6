"""`cns report CLASSIFIER`: one classifier on the benchmark of a parameter file, or on one in the published layout (docs/report.md)."""

import argparse
import datetime
import functools
import re
import sys
import warnings
from pathlib import Path, PurePosixPath

import pandas as pd

from cnslib.core import paths, tables
from cnslib.core.names import FILE_NAME_RULE, demand, identifier, is_file_name
from cnslib.core.settings import read
from cnslib.data import archives, authors, imagenet, official
from cnslib.method import evaluation
from cnslib.models import classifiers, encoders
from cnslib.studies import formats, preprocessing
from cnslib.studies.report import DATA, Benchmark, benchmark, report

RESULTS = "results.zip"


def exported(data: Path, *, results: Path | None = None, params: str = "params.yaml", overlay: str | None = None) -> Benchmark:
    """A folder or zip in the layout of the published benchmark, imported to build/data, with the predictions of others in `results`.

    `results` (a zip or a folder of csv files) is looked for beside `data` unless given.
    """
    sections = read.load(params, overlay or "")
    with archives.opened(data) as archive:
        labels = labels_of(archive, encoders.read_labels(sections["base"].labels))
    place = paths.resolve("build/data") / data.resolve().stem
    kept = place / "kept.parquet"
    imported = official.import_benchmark(data, labels=labels, classes=labels, folder=place / "images", kept=kept)
    trajectories = tables.read(kept, tables.kept_schema)
    shards = {path: tables.load(path, columns=tables.KEY).to_pandas() for path in imported.values()}
    keys = {path: list(rows[tables.KEY].itertuples(index=False, name=None)) for path, rows in shards.items()}
    results = results or (data.parent / RESULTS if (data.parent / RESULTS).exists() else None)
    others = pd.DataFrame(columns=["model", *tables.KEY, "top1"])
    if results:
        authors.require_same_version(data, results)
        files = authors.import_predictions(results, labels=labels, classes=labels, folder=place / "predictions")
        others = tables.read_top1(files.values()).astype(dict.fromkeys(tables.TEXTS, str))
        others = tables.select(others, trajectories, tables.TRAJECTORY, f"predictions of {results} to the images")
    predict = functools.partial(evaluation.predict, shards=keys, batch_size=sections["evaluation"].batch_size)
    few = functools.partial(preprocessing.unshifted, keys)
    return Benchmark(trajectories, others, labels, sections["accuracy"], predict, few, data.resolve().stem)


def labels_of(archive: archives.Archive, labels: list[str]) -> list[str]:
    """The labels that the class folders ("022_bald eagle") number: those given if names and numbers fit, else ImageNet's."""
    folders = sorted({PurePosixPath(name).parts[-2] for name in archive.names if official.NAME.fullmatch(PurePosixPath(name).name)})
    numbered = [re.fullmatch(r"(\d+)_(.*)", folder) for folder in folders]
    demand(bool(folders) and all(numbered), "class folders", folders[:3], "folders such as 022_bald eagle with images in them")
    places = {int(match[1]): match[2] for match in numbered if match}
    if all(number < len(labels) and labels[number] == name for number, name in places.items()):
        return labels
    if shared_names := set(places.values()) & set(labels):  # counted otherwise
        fault = {number: name for number, name in places.items() if name in shared_names}
        raise ValueError(f"class folders: the numbers of {fault} are not those of the labels; accepted: {dict(enumerate(labels))}")
    demand(max(places) < len(imagenet.labels()), "class folders", folders[:3], f"numbers of {labels} or of ImageNet's 1,000 classes")
    return list(imagenet.labels())


def main(arguments: list[str]) -> int:
    """Command line: the report of a named classifier, printed and written to a folder."""
    parser = argparse.ArgumentParser(prog="cns report", description=__doc__.splitlines()[0])
    parser.add_argument("source", help=classifiers.ACCEPTED.removeprefix("a torch module, "))
    parser.add_argument("--name", default="yours", help="what the report calls it (default yours)")
    parser.add_argument("--labels", help="JSON list with the name of each output (default: those of the benchmark)")
    parser.add_argument("--preprocessing", choices=preprocessing.NAMES, help="how pixels are normalised, if not as the model says")
    parser.add_argument("--params", default="params.yaml", help="parameter file of the benchmark (default params.yaml)")
    parser.add_argument("--overlay", help="file whose keys replace some of its values")
    parser.add_argument("--data", default="images", help="images (generated), photos (ImageNet models), or a folder or zip as published")
    parser.add_argument("--results", type=Path, help="predictions of others to --data (default: results.zip beside it, if there is one)")
    parser.add_argument("--device", default="cpu", help="torch device (default cpu)")
    parser.add_argument("--folder", help="where the report goes (default build/report/<name>)")
    options = parser.parse_args(arguments)
    where = {"params": options.params, "overlay": options.overlay}
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)  # type: ignore[assignment]
    try:  # what can be known before the first picture
        demand(is_file_name(options.name), "--name", options.name, FILE_NAME_RULE)
        classifiers.require_device(options.device)
        folder = Path(options.folder or paths.resolve(f"build/report/{identifier(options.name)}"))
        folder.mkdir(parents=True, exist_ok=True)
        source = str(Path(options.source).resolve()) if Path(options.source).exists() else options.source
        labels = encoders.read_labels(options.labels) if options.labels else None
        if options.data in DATA:
            on = benchmark(data=options.data, **where)
        else:
            on = exported(Path(options.data), results=options.results, **where)
        evaluated = report(source, name=options.name, labels=labels, on=on, device=options.device, normalised=options.preprocessing)
        evaluated.save(folder)
        formats.write(evaluated, on, folder, when=datetime.datetime.now(datetime.UTC))
        print(f"{evaluated.text()}\nwritten to {folder}")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
