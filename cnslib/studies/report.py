"""Your own classifier on the benchmark: accuracy along the scale, CE, rCE, failure points and its rank (docs/report.md)."""

import base64
import dataclasses
import functools
import html
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mistune
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor, nn

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import FILE_NAME_RULE, UNSHIFTED, demand, identifier, is_file_name
from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Accuracy, Dataset
from cnslib.data import artifacts, imagenet
from cnslib.method import evaluation
from cnslib.models import classifiers, encoders
from cnslib.models.classifiers import Classifier
from cnslib.plots import curves, figures
from cnslib.stats import accuracy, bootstrap, failure, ranking
from cnslib.stats.accuracy import ALL, MEAN, NEVER
from cnslib.studies import photos, preprocessing
from cnslib.world import cutouts

SAMPLED = 4  # pictures of each table, by whose logits a classifier without files is known
NEAR = 3  # classifiers above and below, from which the report tells the difference
DIGITS = 3  # of a logit, after the point: what processors agree on

PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body {{max-width: 60em; margin: auto; padding: 1em; font: 1em/1.5 sans-serif}} table {{border-collapse: collapse}}
td, th {{border: 1px solid #ccc; padding: 0.2em 0.6em}} img {{max-width: 100%}}</style>
{body}<img alt="accuracy, rank and survival along the scale, drop by shift" src="data:image/png;base64,{picture}">
"""


@dataclass(frozen=True)
class Benchmark:
    """Kept trajectories, the others' predictions, the labels, how the results are measured, and what predicts every image.

    `pictures` gives some unshifted ones with their classes, `about` is the card of the data set, if it has one.
    """

    kept: pd.DataFrame
    predictions: pd.DataFrame
    labels: list[str]
    settings: Accuracy
    predict: Callable[[Classifier], pd.DataFrame]
    pictures: Callable[[], tuple[list, list[str]]]
    title: str
    about: Dataset | None = None
    version: dict[str, str] = dataclasses.field(default_factory=dict)  # name, version and digest of its pictures and filter

    @property
    def models(self) -> list[str]:
        """The other classifiers."""
        return sorted(self.predictions["model"].unique())


def benchmark(params: str = "params.yaml", overlay: str | None = None, *, data: str = "images") -> Benchmark:
    """The benchmark of a parameter file, as its steps have left it: generated "images", or "photos" of ImageNet classes."""
    demand(data in DATA, "data", data, ", ".join(DATA))
    sections = read.load(params, overlay or "")
    if data == "photos":
        return photo_set(sections)
    run = read.Run("report", sections, ())
    return of_images(run, batch_size=run.evaluation.batch_size, settings=run.accuracy)


def of_images(run: read.Run, *, batch_size: int, settings: Accuracy, folder: Path | None = None) -> Benchmark:
    """The generated images of a run, its kept trajectories, and the others' predictions; those of a new classifier go to `folder`."""
    base = run.base
    shards = evaluation.grid(run.layout.artifacts("generation"), base.shifts, base.classes, scales=base.scales, seeds=base.seeds)
    evaluation.shard_digests(shards)
    kept, others = artifacts.kept(run), artifacts.top1(run).astype(dict.fromkeys(tables.TEXTS, str))
    predict = functools.partial(evaluation.predict, shards=shards, batch_size=batch_size)
    if folder:
        predict = functools.partial(cached, shards=shards, batch_size=batch_size, folder=folder)
    few, about = functools.partial(preprocessing.unshifted, shards), run.dataset
    return Benchmark(kept, others, encoders.read_labels(base.labels), settings, predict, few, about.name, about, artifacts.version(run))


def cached(classifier: Classifier, shards: dict[Path, list[tuple]], *, batch_size: int, folder: Path) -> pd.DataFrame:
    """The predictions of a classifier without files, known by its logits for a few pictures, for every image of the tables."""
    pictures = [picture for path in shards for picture in sample(path)]
    batches = [pictures[start : start + batch_size] for start in range(0, len(pictures), batch_size)]
    logits = [evaluation.batch_logits(classifier, batch, size=batch_size).double().numpy().round(DIGITS).tolist() for batch in batches]
    identity = [classifier.name, classifier.labels, classifier.preprocessing, [row for part in logits for row in part]]
    made_from = recipes.USER_PREDICTIONS.stamp(identity, evaluation.shard_digests(shards), batch_size)
    shelf = units.Shelf(folder, {classifier.name: (units.file_of(classifier.name), made_from)})
    for name in shelf.waiting():
        tables.write_unit(evaluation.predict(classifier, shards, batch_size=batch_size), shelf[name], tables.predictions)
    return tables.read_units(shelf, tables.predictions)


def sample(path: Path) -> list[UInt8[np.ndarray, "height width 3"]]:
    """A few pictures of a table, evenly spaced from the first to the last."""
    column = tables.load(path, columns=["image"])["image"]
    rows = np.unique(np.linspace(0, len(column) - 1, SAMPLED).round().astype(int))
    return [tables.decode(column[int(row)].as_py(), f"{path.name}, row {row}") for row in rows]


def photo_set(sections: dict) -> Benchmark:
    """The photo set at its `shown` severities for classifiers with ImageNet's 1,000 outputs; `scale` is the severity."""
    base, settings = sections["base"], sections["photos"]
    settings = dataclasses.replace(settings, severities=settings.shown)
    folder, shifts = paths.Layout(base.out).artifacts("photos"), (UNSHIFTED, *base.shifts)
    objects = photos.chosen(settings)
    others = tables.read_top1([folder / f"{identifier(shift)}.parquet" for shift in shifts]).astype(dict.fromkeys(tables.TEXTS, str))
    others = others[others["scale"].isin(settings.shown)]
    rows = [(shift, cutout.label, cutout.seed) for shift in base.shifts for cutout in objects]
    kept, measures = pd.DataFrame(rows, columns=tables.TRAJECTORY), Accuracy(settings.bootstrap, settings.reference)
    predict = lambda classifier: photos.predict([classifier], objects, shifts, settings=settings)  # noqa: E731
    few = [objects[place] for place in preprocessing.spaced(len(objects), preprocessing.PICTURES)]
    drawn = lambda: [cutouts.shifted(cutout, UNSHIFTED, [0.0], seed=settings.seed)[0] for cutout in few]  # noqa: E731
    shown = lambda: (drawn(), [cutout.label for cutout in few])  # noqa: E731
    return Benchmark(kept, others, list(imagenet.labels()), measures, predict, shown, "Photographs under rendered shifts")


DATA = ("images", "photos")
NOTE = (
    "n counts trajectories, one object seen at all scales; rank 1 is best, and equal values share a rank. CE and rCE are errors and "
    "accuracy drops divided by the reference's, below 1 is better than it. The failure point is the first scale with a wrong prediction; "
    "its median is inf where more than half never fail. A number that is not known is a dash."
)


@dataclass(frozen=True)
class Report:
    """The results of one classifier beside the others: tidy tables by name, a summary, a figure."""

    name: str
    tables: dict[str, pd.DataFrame]
    predictions: pd.DataFrame
    settings: Bootstrap
    about: str = ""  # the classifier's preprocessing and outputs
    classifier: Classifier | None = None

    @property
    def summary(self) -> pd.DataFrame:
        """One row per quantity: estimate with n and interval, the median of the others, and the rank (place) among all."""
        rows = {quantity: placed(table, self.name, better=better) for quantity, (table, better) in headlines(self.tables).items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity").reset_index()

    def text(self) -> str:
        """The report as a page (markdown): one table, and from whom the classifier differs significantly."""
        lines = [f"# {self.name}", "", "| quantity | n | estimate | interval | others, median | rank |", "|---|---|---|---|---|---|"]
        for row in self.summary.itertuples(index=False):
            cells = [f"{row.estimate:.3f}", f"{row.low:.3f} to {row.high:.3f}", f"{row.others:.3f}", f"{row.place:g} of {row.of}"]
            lines.append(f"| {row.quantity} | {row.n} | {' | '.join(cell if 'nan' not in cell else '-' for cell in cells)} |")
        return "\n".join([*lines, "", *self.apart(), *self.neighbours(), f"{NOTE} {self.settings.interval_note}.", "", self.about, ""])

    def apart(self) -> list[str]:
        """The classifiers that are significantly less or more accurate at the last scale, in one sentence; nothing where it is alone."""
        if "pairs" not in self.tables:
            return []
        last, alpha = self.tables["pairs"].query("scale == scale.max()"), 1 - self.settings.confidence
        more, less = (last[(last["p_holm"] < alpha) & (last["estimate"] * sign > 0)]["second"] for sign in (1, -1))
        sides = f"more accurate than {', '.join(more) or 'none'}, less than {', '.join(less) or 'none'}"
        return [f"At scale {last['scale'].iloc[0]:g} it is {sides} (of {len(last)}; paired differences, Holm, {alpha:.0%}).", ""]

    def neighbours(self) -> list[str]:
        """The up to three classifiers next above it and below at the last scale, and whether the difference from each includes zero."""
        if "pairs" not in self.tables:
            return []
        last = self.tables["pairs"].query("scale == scale.max()").sort_values("estimate")
        near = pd.concat([last[last["estimate"] < 0].tail(NEAR), last[last["estimate"] >= 0].head(NEAR)])
        lines = ["| next to it at that scale, best first | its accuracy minus theirs | interval | zero |", "|---|---|---|---|"]
        for row in near.itertuples(index=False):
            zero = "not known" if np.isnan(row.low) else "included" if row.low <= 0 <= row.high else "not included"
            lines.append(
                f"| {row.second} | {row.estimate:+.3f} | {row.low:+.3f} to {row.high:+.3f} | {zero} |".replace("+nan to +nan", "-")
            )
        return [*lines, ""]

    def _repr_markdown_(self) -> str:
        return self.text()

    def figure(self) -> Figure:
        """Accuracy, rank and survival along the scale, and the drop per shift, with the others in grey."""
        figure, n = curves.one_among_others(self.tables, self.name), self.tables["accuracy"]["n"].max()
        counted = f"n = {n:,} trajectories over all shifts; {self.settings.interval_note}"
        figures.caption(figure, f"{self.name} in colour, others in grey. {counted}")
        return figure

    def save(self, folder: Path) -> Path:
        """Writes report.md and report.html, the figure, every table as csv and the predictions; returns the folder."""
        tables.write(self.predictions, folder / "predictions.parquet", tables.predictions)
        for kind, table in self.tables.items():
            units.write_bytes(folder / f"{kind}.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())
        figures.use_style()
        figure = self.figure()
        figures.write(figure, folder / "report", self.summary)
        plt.close(figure)
        units.write_bytes(folder / "report.md", f"{self.text()}\n![{self.name}](report.png)\n".encode())
        units.write_bytes(folder / "report.html", page(self.name, self.text(), (folder / "report.png").read_bytes()).encode())
        return folder


def page(title: str, text: str, picture: bytes) -> str:
    """A report's text and figure as one HTML file that can be sent; markup in the text is shown, not used."""
    body = mistune.create_markdown(plugins=["table"])(text)  # escapes by default
    return PAGE.format(title=html.escape(title), body=body, picture=base64.b64encode(picture).decode())


def report(
    model: nn.Module | str,
    *,
    name: str = "yours",
    labels: list[str] | None = None,
    transform: Callable[[Image.Image], Tensor] | None = None,
    data: str = "images",
    on: Benchmark | None = None,
    device: str = "cpu",
    normalised: str | None = None,
) -> Report:
    """Evaluates a classifier on every image of a benchmark and compares it with the others on the kept trajectories.

    `model` is a module (with the `transform` of its pictures) or a name, see `classifiers.user_classifier`; `labels` names its outputs,
    where it does not do so itself; `data` is "images" (generated) or "photos" (ImageNet's outputs), unless a benchmark `on` is given.
    `normalised` is one of `preprocessing.NAMES` in place of the model's own. A warning says if another one would be significantly
    better.
    """
    on = on or benchmark(data=data)
    demand(name not in on.models, "name", name, f"a name that is not one of {', '.join(on.models)}")
    demand(is_file_name(name), "name", name, FILE_NAME_RULE)
    classifier = classifiers.user_classifier(model, name=name, labels=on.labels, outputs=labels, transform=transform, device=device)
    evaluation.require_labels(sorted(on.kept["class"].unique()), classifier.labels)
    others = preprocessing.usual(classifier)
    if normalised:
        demand(normalised in others, "preprocessing", normalised, f"{', '.join(others)}: others than its own, per channel")
        classifier = others[normalised]
    note, wrong = preprocessing.verdict(preprocessing.check(classifier, *on.pictures()), confidence=on.settings.bootstrap.confidence)
    if wrong:
        warnings.warn(f"{name}: the preprocessing seems to be wrong: {note}", stacklevel=2)
    compared = compare(on.predict(classifier), on)
    version = ", ".join(f"{key} {value}" for key, value in on.version.items()) or on.title
    return dataclasses.replace(compared, about=f"{about(classifier)} {note} Benchmark: {version}.", classifier=classifier)


def about(classifier: Classifier) -> str:
    """How a classifier is shown the pictures, and what its outputs are taken for."""
    outputs = "probabilities" if classifier.probabilities else "logits"
    shown = " ".join(", ".join(f"{key} {value}" for key, value in classifier.settings.items()).split())
    return f"Preprocessing: {shown}. Outputs: {outputs} of {len(classifier.labels)} labels, the first {classifier.labels[0]!r}."


def compare(predictions: pd.DataFrame, on: Benchmark) -> Report:
    """The report of one classifier's predictions beside those of the others."""
    (name,) = predictions["model"].unique()
    parts = [part for part in (on.predictions, predictions[on.predictions.columns]) if len(part)]
    wrong = accuracy.wrong_predictions(pd.concat(parts, ignore_index=True), on.kept)
    return Report(name, measured(wrong, name, settings=on.settings), predictions, on.settings.bootstrap)


def measured(wrong: xr.DataArray, name: str, *, settings: Accuracy) -> dict[str, pd.DataFrame]:
    """Every table of the report, all models in each; "pairs" holds the differences from `name`. CE and rCE need the reference."""
    errors, failures = (accuracy.by_shift(values, settings.bootstrap) for values in (wrong, failure.first_failures(wrong)))
    distribution = failure.failure_distribution(failures)
    result = {"accuracy": accuracy.accuracy(errors), "drop": accuracy.interval(accuracy.drop(errors))}
    if settings.reference in wrong["model"].to_numpy():
        result["ce"] = accuracy.corruption_error(errors, reference=settings.reference)
        result["rce"] = accuracy.relative_corruption_error(errors, reference=settings.reference)
    if wrong.sizes["model"] > 1:
        result |= {"rank": ranking.ranks(errors), "pairs": differences(ranking.pairs(errors), name)}
    result |= {"survival": failure.curves(failures), "median": failure.median_scale(failures)}
    return result | {"never": distribution[distribution["scale"] == NEVER].drop(columns="scale")}


def differences(pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Accuracy of `name` minus that of each other model per scale; Holm's correction runs over these comparisons of a scale alone."""
    first, second = pairs[pairs["first"] == name], pairs[pairs["second"] == name]
    turned = second.assign(first=name, second=second["first"], estimate=-second["estimate"], low=-second["high"], high=-second["low"])
    table = pd.concat([first, turned]).sort_values(["scale", "second"], ignore_index=True)
    table["p_holm"] = table.groupby("scale")["p"].transform(bootstrap.holm)
    return table


def headlines(results: dict[str, pd.DataFrame]) -> dict[str, tuple[pd.DataFrame, int]]:
    """The tables behind the summary, over all shifts, and whether more (1) or less (-1) is better."""
    whole = {kind: table[table["shift"].isin([ALL, MEAN])] for kind, table in results.items() if "shift" in table}
    last = whole["accuracy"]["scale"].max()
    at = {kind: table[table["scale"] == last] for kind, table in whole.items() if "scale" in table}
    rows = {
        "accuracy at scale 0": (whole["accuracy"].query("scale == 0"), 1),
        f"accuracy at scale {last:g}": (at["accuracy"], 1),
        f"accuracy drop at scale {last:g}": (at["drop"], -1),
    }
    rows |= {name: (whole[kind], -1) for name, kind in {"CE": "ce", "rCE": "rce"}.items() if kind in whole}
    return rows | {"never failed": (whole["never"], 1), "median failure scale": (whole["median"], 1)}


def placed(table: pd.DataFrame, name: str, *, better: int) -> dict:
    """One model's row with the median of the others, and its rank: one more than the number of better ones; none without a number."""
    table = table.set_index("model")
    others, row = table.drop(index=name)["estimate"], table.loc[name]
    place = np.nan if np.isnan(row["estimate"]) else 1 + int((better * others > better * row["estimate"]).sum())
    return row[bootstrap.RECORD].to_dict() | {"others": others.median(), "place": place, "of": len(table)}
