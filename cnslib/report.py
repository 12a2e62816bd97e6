"""Your own classifier on the benchmark: accuracy along the scale, CE, rCE, failure points and its rank among the others.

In a notebook `report.report(model, name="mine", transform=...)`; on the command line `python -m cnslib.report SOURCE`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from statsmodels.stats.multitest import multipletests
from torch import Tensor, nn

from cnslib import encoders, evaluation, failure, guests, paths, plots, ranking, stats, tables, units
from cnslib.analyses import Accuracy
from cnslib.benchmarks import Benchmark, benchmark
from cnslib.config import demand, identifier
from cnslib.stats import ALL, MEAN, NEVER, Outcomes

COLUMNS = ["n", "estimate", "low", "high"]


@dataclass(frozen=True)
class Report:
    """The results of one classifier beside the others: tidy tables by name, a summary, a figure."""

    name: str
    tables: dict[str, pd.DataFrame]
    predictions: pd.DataFrame

    @property
    def summary(self) -> pd.DataFrame:
        """One row per quantity: estimate with n and interval, the median of the others, and the place among all."""
        rows = {quantity: placed(table, self.name, better=better) for quantity, (table, better) in headlines(self.tables).items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity").reset_index()

    def text(self) -> str:
        """The report in words and one table (markdown)."""
        pairs = self.tables["pairs"]
        scale = pairs["scale"].max()
        last = pairs[pairs["scale"] == scale]
        better, worse = ((last["p_holm"] < 0.05) & (last["estimate"] * sign > 0) for sign in (1, -1))
        rest = len(last) - better.sum() - worse.sum()
        counts = f"more accurate than {better.sum()} of {len(last)} classifiers, less than {worse.sum()}, undecided against {rest}"
        rows = ["| quantity | n | estimate | interval | others, median | place |", "|---|---|---|---|---|---|"]
        rows += [line(row) for row in self.summary.itertuples(index=False)]
        return "\n".join([f"# {self.name}", "", f"At scale {scale:g} {self.name} is {counts} (Holm, 5 %).", "", *rows, ""])

    def _repr_markdown_(self) -> str:
        return self.text()

    def figure(self) -> Figure:
        """Accuracy, rank and survival along the scale, and the drop per shift, with the others in grey."""
        figure, grid = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
        kinds = {"accuracy": "accuracy", "rank": "rank", "survival": "share without failure"}
        for axes, (kind, label) in zip(grid.flat, kinds.items(), strict=False):
            table = self.tables[kind]
            curves(axes, table[table["shift"] == ALL], self.name, label=label)
        grid[0, 1].invert_yaxis()
        drops = self.tables["drop"]
        drop_dots(grid[1, 1], drops[(drops["shift"] != ALL) & (drops["scale"] == drops["scale"].max())], self.name)
        n = self.tables["accuracy"].query("shift == @ALL")["n"].max()
        plots.caption(
            figure, f"{self.name} in colour, the others in grey; n = {n} trajectories; bands and lines: bootstrap over (class, seed)"
        )
        return figure

    def save(self, folder: Path) -> Path:
        """Writes report.md, the figure, every table as csv and the predictions; returns the folder."""
        tables.write(self.predictions, folder / "predictions.parquet", tables.predictions)
        for kind, table in self.tables.items():
            units.write_bytes(folder / f"{kind}.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())
        plots.use_style()
        figure = self.figure()
        plots.save(figure, folder / "report", self.summary)
        plt.close(figure)
        units.write_bytes(folder / "report.md", f"{self.text()}\n![{self.name}](report.png)\n".encode())
        return folder


def report(
    model: nn.Module | str,
    *,
    name: str = "yours",
    labels: list[str] | None = None,
    transform: Callable[[Image.Image], Tensor] | None = None,
    data: str = "images",
    on: Benchmark | None = None,
    device: str = "cpu",
) -> Report:
    """Asks a classifier about every image of a benchmark and compares it with the others on the kept trajectories.

    `model` is a module (with the `transform` of its pictures) or a name, see `guests.guest`; `labels` names its outputs, those of
    the benchmark unless given, and must hold every class; `data` is "images", what the generator drew, or "photos" for a model with
    ImageNet's outputs, unless a benchmark `on` is given. Raises ValueError for a name that is taken and a class without label.
    """
    on = on or benchmark(data=data)
    demand(name not in on.models, "name", name, f"a name that is not one of {', '.join(on.models)}")
    labels = labels or on.labels
    evaluation.require_labels(sorted(on.answers["class"].unique()), labels)
    classifier = guests.guest(model, name=name, labels=labels, transform=transform, device=device)
    return compare(on.ask(classifier), on)


def compare(predictions: pd.DataFrame, on: Benchmark) -> Report:
    """The report of one classifier's predictions beside the answers of the others."""
    (name,) = predictions["model"].unique()
    found = stats.outcomes(pd.concat([on.answers, predictions[on.answers.columns]], ignore_index=True), on.kept)
    return Report(name, measured(found, name, settings=on.settings), predictions)


def measured(found: Outcomes, name: str, *, settings: Accuracy) -> dict[str, pd.DataFrame]:
    """Every table of the report, all models in each; "pairs" holds the differences from `name` alone."""
    errors, failures = stats.error_shares(found, settings=settings), stats.failure_shares(found, settings=settings)
    distribution = stats.failure_distribution(failures)
    return {
        "accuracy": stats.accuracy(errors),
        "drop": stats.accuracy_drop(errors),
        "ce": stats.corruption_error(errors, reference=settings.reference),
        "rce": stats.relative_corruption_error(errors, reference=settings.reference),
        "rank": ranking.ranks(errors),
        "survival": failure.curves(failures),
        "median": failure.median_scale(failures),
        "never": distribution[distribution["scale"] == NEVER].drop(columns="scale"),
        "pairs": differences(ranking.pairs(errors), name),
    }


def differences(pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Accuracy of `name` minus that of each other model per scale; Holm's correction runs over these comparisons of a scale alone."""
    first, second = pairs[pairs["first"] == name], pairs[pairs["second"] == name]
    turned = second.assign(first=name, second=second["first"], estimate=-second["estimate"], low=-second["high"], high=-second["low"])
    table = pd.concat([first, turned]).sort_values(["scale", "second"], ignore_index=True)
    table["p_holm"] = table.groupby("scale")["p"].transform(lambda p: multipletests(p, method="holm")[1])
    return table


def headlines(found: dict[str, pd.DataFrame]) -> dict[str, tuple[pd.DataFrame, int]]:
    """The tables behind the summary, over all shifts, and whether more (1) or less (-1) is better."""
    whole = {kind: table[table["shift"].isin([ALL, MEAN])] for kind, table in found.items() if "shift" in table}
    last = whole["accuracy"]["scale"].max()
    at = {kind: whole[kind][whole[kind]["scale"] == last] for kind in ("accuracy", "drop")}
    return {
        "accuracy at scale 0": (whole["accuracy"].query("scale == 0"), 1),
        f"accuracy at scale {last:g}": (at["accuracy"], 1),
        f"accuracy drop at scale {last:g}": (at["drop"], -1),
        "CE": (whole["ce"], -1),
        "rCE": (whole["rce"], -1),
        "never failed": (whole["never"], 1),
        "median failure scale": (whole["median"], 1),
    }


def placed(table: pd.DataFrame, name: str, *, better: int) -> dict:
    """One model's row with the median of the others, and its place: one more than the number of better ones."""
    own = table.set_index("model")
    others = own.drop(index=name)["estimate"]
    place = 1 + int((better * others > better * own.loc[name, "estimate"]).sum())
    columns = {key: own[key].loc[name] for key in COLUMNS}
    return columns | {"others": others.median(), "place": place, "of": len(own)}


def line(row) -> str:
    """One row of the summary in markdown."""
    interval = "open" if pd.isna(row.low) or pd.isna(row.high) else f"{row.low:.3f} to {row.high:.3f}"
    return f"| {row.quantity} | {row.n} | {row.estimate:.3f} | {interval} | {row.others:.3f} | {row.place} of {row.of} |"


def curves(axes: plt.Axes, table: pd.DataFrame, name: str, *, label: str) -> None:
    """One curve per model against the scale: the others grey, the named one in colour with its band."""
    for _, part in table[table["model"] != name].groupby("model"):
        axes.plot(part["scale"], part["estimate"], color="0.8", linewidth=0.8, zorder=0)
    plots.estimate_lines(axes, table[table["model"] == name], x="scale", hue="model", label=label)
    axes.set(xlabel="slider scale")


def drop_dots(axes: plt.Axes, table: pd.DataFrame, name: str) -> None:
    """The accuracy drop per shift: every other model a grey dot, the named one with its interval."""
    own = table[table["model"] == name].sort_values("estimate", ascending=False)
    order = own["shift"].tolist()
    others = table[table["model"] != name]
    axes.plot(others["estimate"], others["shift"].map(order.index), "o", color="0.8", markersize=3, zorder=0)
    arms = own[["low", "high"]].sub(own["estimate"], axis=0).abs().T
    axes.errorbar(own["estimate"], range(len(order)), xerr=arms, fmt="o", markersize=4, elinewidth=1)
    axes.set_yticks(range(len(order)), order)
    axes.set(xlabel="accuracy drop at the last scale")


def main(arguments: list[str]) -> int:
    """Command line: the report of a named classifier, printed and written to a folder."""
    parser = argparse.ArgumentParser(prog="python -m cnslib.report", description=__doc__.splitlines()[0])
    parser.add_argument("source", help=guests.ACCEPTED.removeprefix("a torch module, "))
    parser.add_argument("--name", default="yours", help="what the report calls it (default yours)")
    parser.add_argument("--labels", help="JSON list with the name of each output (default: those of the benchmark)")
    parser.add_argument("--data", default="images", help="images (generated, default) or photos (for ImageNet's 1,000 outputs)")
    parser.add_argument("--params", default="params.yaml", help="parameter file of the benchmark (default params.yaml)")
    parser.add_argument("--overlay", help="file whose keys replace single parameters")
    parser.add_argument("--device", default="cpu", help="torch device (default cpu)")
    parser.add_argument("--folder", help="where the report goes (default build/report/<name>)")
    options = parser.parse_args(arguments)
    folder = Path(options.folder or paths.resolve(f"build/report/{identifier(options.name)}"))
    try:
        labels = encoders.read_labels(options.labels) if options.labels else None
        on = benchmark(options.params, options.overlay, data=options.data)
        found = report(options.source, name=options.name, labels=labels, on=on, device=options.device)
        print(found.text())
        print(f"written to {found.save(folder)}")
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
