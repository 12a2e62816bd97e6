"""What CNS-Bench says about OOD-CV (section 4.3, supplement L, Table 10), held against our reference and images, and its figures.

Accuracies by set and by CLIP's label, four statements with intervals and verdicts; curves beside horizontal lines (Fig. 5), maps of
labels, and severities of equal accuracy.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Bool
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib.core.names import demand
from cnslib.plots import curves
from cnslib.plots.captions import words
from cnslib.plots.figures import extent
from cnslib.stats import bootstrap, calibration, verdicts
from cnslib.stats.accuracy import LEAST_TRAJECTORIES, Shares, over_images
from cnslib.studies.oodcv.labels import UNKNOWN

WORDS = {"Snow": "heavy snow", "Fog": "heavy fog", "Rain": "heavy rain", "Unknown": UNKNOWN}
STEADY = 1.5  # up to here the paper sees no loss
THIRDS = ["light", "middling", "heavy"]
MARGIN = 0.05  # differences of accuracy below this count as none
BEYOND = "none of the shifts"
UNLIKE = {
    f"lost from scale 0 to {STEADY:g}": "a scale of other sliders",
    "easier than the reference": "a reference without the paper's faults",
}  # statements whose numbers are no like for like, and why


def long(tables: dict[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """Tables below each other, the key of each in a first column of this name."""
    return pd.concat(tables, names=[name]).reset_index(name)


def joined(curves: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """The curves of generated images and, without a scale, the lines of the reference."""
    return pd.concat([curves, lines.assign(images="reference", scale=np.nan)])


def sizes(kept: Shares, every: Shares, reference: Shares) -> str:
    """Trajectories and garments per shift in words."""
    counts = (extent(own.n[:-1]) for own in (kept, every, reference))
    return "Kept {} trajectories, all {}, reference {} garments per shift".format(*counts)


def worth(drawn: Shares, rungs: Shares) -> pd.DataFrame:
    """The rendered severity of equal accuracy by model, shift and scale, absolute and relative to the start of each (column compared)."""
    sides = {"absolute": (drawn, rungs), "relative": (calibration.relative(drawn), calibration.relative(rungs))}
    found = {name: calibration.severities(*(calibration.with_mean(side) for side in pair)) for name, pair in sides.items()}
    return long(found, "compared")


def looked_up(drawn: Shares, rungs: Shares, line: Shares) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scale of equal accuracy with the reference, and beside it, in words, the severity that the reference itself has on the ladder."""
    means = [calibration.with_mean(side) for side in (drawn, rungs, line)]
    found = {"scale": calibration.scales(means[0], means[2]), "severity": calibration.scales(means[1], means[2])}
    beyond = {"below": ", at most", "above": ", at least"}
    own = {name: table[table["model"] == calibration.MEAN].set_index("shift") for name, table in found.items()}
    read = {name: table.apply(words.interval, axis=1) + table["beyond"].replace(beyond) for name, table in own.items()}
    return found["scale"], pd.DataFrame(read)


def of_reference(rungs: Shares, line: Shares, mixed: pd.DataFrame) -> pd.DataFrame:
    """The severity that the reference has on the ladder, by shift, beside its true mean and what such a mixture should be looked up as.

    `mixed` holds the true severity of every picture in `scale`. The mixture's error is the mean of the ladder's errors at these
    severities, and `expected` where the ladder itself has that error; the gap is what was found minus that, paired on the ladder.
    """
    curve, wanted = (calibration.with_mean(side) for side in (rungs, line))
    found = calibration.at_equal_error(curve, wanted.samples[:, :-1])[:, :, -1, 0]
    expected = calibration.at_equal_error(curve, mixtures(curve, mixed))[:, :, -1, 0]
    rows = []
    for place, shift in enumerate(curve.groups[:-1]):
        record, gap = (bootstrap.record(own[:, place], line.n[place], line.confidence) for own in (found, found - expected))
        own = {"true": mixed.loc[mixed["shift"] == shift, "scale"].mean(), "expected": expected[0, place]}
        rows.append({"shift": shift, **record, **own, **{f"gap_{key}": gap[key] for key in ("estimate", "low", "high")}})
    return pd.DataFrame(rows).set_index("shift")


def mixtures(curve: Shares, mixed: pd.DataFrame) -> np.ndarray:
    """The error of each model on a mixture of severities, by shift: the mean of its errors on the ladder, straight between the rungs."""
    corners = np.eye(len(curve.bins))
    rows = []
    for place, shift in enumerate(curve.groups[:-1]):
        severities = mixed.loc[mixed["shift"] == shift, "scale"]
        weights = np.array([np.interp(severities, curve.bins, corner).mean() for corner in corners])
        rows.append(curve.samples[:, place] @ weights)
    return np.stack(rows, 1)[..., None]


def gaps(drawn: dict[str, Shares], line: Shares, *, scale: float) -> dict[str, pd.DataFrame]:
    """Accuracy on each set of generated images minus that on the reference, at one scale."""
    found = {name: calibration.differences(own, line) for name, own in drawn.items()}
    return {name: table[table["scale"] == scale] for name, table in found.items()}


def metrics(parts: dict[str, pd.DataFrame]) -> dict[str, dict]:
    """Tables by their name as records: table, model, shift."""
    return {key: {name: bootstrap.records(part, "shift") for name, part in table.groupby("model")} for key, table in parts.items()}


def starts(parts: dict[str, pd.DataFrame], models: list[str], *, confidence: float) -> pd.DataFrame:
    """Accuracy of every classifier on some sets of independent pictures, with Wilson intervals."""
    return pd.DataFrame(
        [
            {"model": model, "of": kind, **bootstrap.independent_share((table[model] == table["class"]).to_numpy(), confidence=confidence)}
            for kind, table in parts.items()
            for model in models
        ]
    )


def doubt(reference: pd.DataFrame, hits: dict[str, Bool[np.ndarray, "rows"]], *, shifts: list[str], confidence: float) -> pd.DataFrame:
    """Shares of some kinds of labels by third of the severity; pictures of none of the shifts make a row of their own."""
    thirds = pd.cut(reference["scale"], [-1, 1 / 3, 2 / 3, 1], labels=THIRDS).astype(str).where(reference["shift"].isin(shifts), BEYOND)
    rows = []
    for name in [*THIRDS, BEYOND]:
        own = (thirds == name).to_numpy()
        if own.any():
            rows += [
                {"severity": name, "label": kind, **bootstrap.independent_share(hit[own], confidence=confidence)}
                for kind, hit in hits.items()
            ]
    return pd.DataFrame(rows)


def table10(correct: Bool[np.ndarray, "rows"], label: pd.Series, path: Path, *, confidence: float) -> pd.DataFrame:
    """Accuracy by CLIP's label beside Table 10; a label that no picture gets has no row. Levels of two tasks have no direction."""
    published = pd.read_csv(path).set_index("shift")
    rows = {}
    for word in published.index:
        demand(word in (*WORDS, "Total"), f"{path.name}: shift", word, ", ".join((*WORDS, "Total")))
        own = (label == WORDS[word]).to_numpy() if word in WORDS else np.ones(len(label), bool)
        if own.any():
            rows[word] = bootstrap.independent_share(correct[own], confidence=confidence)
    table = pd.DataFrame(rows).T.join(published["images"].rename("published n"))
    return verdicts.beside(table, published["accuracy_percent"].loc[table.index] / 100, null=None)


def statements(drawn: Shares, reference: Shares, *, model: str, named: pd.Series) -> pd.DataFrame:
    """Four statements about one classifier with intervals and verdicts; `named` is the share of images labelled as asked at the end.

    Those of UNLIKE have no verdict. Where there is one shift alone, or no fog, nothing is said about the hardest.
    """
    place, shifts = drawn.models.index(model), drawn.groups[:-1]
    wrong = drawn.samples[:, :-1, place]
    half = int(np.argmin(np.abs(np.array(drawn.bins) - STEADY)))
    early, lost = (wrong[..., half] - wrong[..., 0]).mean(1), wrong[..., -1] - wrong[..., 0]
    easier = (reference.samples[:, :-1, reference.models.index(model), 0] - wrong[..., -1]).mean(1)
    fog = np.array([name == "heavy fog" for name in shifts])
    others = lost[:, ~fog].max(1) if fog.any() and not fog.all() else np.full(len(lost), np.nan)
    hardest = lost[:, fog].sum(1) - others
    values = {f"lost from scale 0 to {STEADY:g}": early, "fog's loss minus the largest other": hardest, "easier than the reference": easier}
    rows = [{"statement": name, **over_images(value, drawn)} for name, value in values.items()]
    rows.append({"statement": "labelled as asked at the last scale", **named[["n", "estimate", "low", "high"]].to_dict()})
    said = ["about 0", "above 0", "above 0", "about 1"]
    found = verdicts.beside(pd.DataFrame(rows).set_index("statement"), said, tolerance=MARGIN)
    return without_verdict(found, found.index.to_series().map(UNLIKE))


def each_statements(drawn: dict[str, Shares], reference: Shares, *, model: str, named: pd.Series) -> dict[str, pd.DataFrame]:
    """The `statements` on each set of generated images, without a verdict where few trajectories carry them."""
    return {name: measured(statements(part, reference, model=model, named=named)) for name, part in drawn.items()}


def measured(found: pd.DataFrame) -> pd.DataFrame:
    """Statements of which those with fewer than `LEAST_TRAJECTORIES` are not measured: resamples of so few show too narrow intervals."""
    reasons = pd.Series(f"needs {LEAST_TRAJECTORIES} trajectories", found.index)
    return without_verdict(found, reasons.where(found["n"] < LEAST_TRAJECTORIES))


def without_verdict(found: pd.DataFrame, reasons: pd.Series) -> pd.DataFrame:
    """Statements that have no verdict where there is a reason, which takes the place of the rule; reasons are NaN elsewhere."""
    out = reasons.notna()
    return found.assign(
        rule=found["rule"].mask(out, reasons), verdict=found["verdict"].mask(out, verdicts.UNMEASURED), smallest=found["smallest"].mask(out)
    )


def against_reference(curves: pd.DataFrame, lines: pd.DataFrame, *, models: list[str], shifts: list[str]) -> Figure:
    """Accuracy over the slider scale beside the reference's one accuracy, each with its band; a row per classifier (Fig. 5).

    The column `images` of the curves names the sets of generated images, each of which has a curve.
    """
    size = 2.3 * len(shifts), 1.9 * len(models)
    figure, grid = plt.subplots(len(models), len(shifts), sharex=True, sharey=True, squeeze=False, figsize=size, layout="constrained")
    for model, row in zip(models, grid, strict=True):
        for shift, axes in zip(shifts, row, strict=True):
            curve, line = (table[(table["shift"] == shift) & (table["model"] == model)] for table in (curves, lines))
            one_panel(axes, curve.sort_values(["images", "scale"]), line.iloc[0])
            axes.set_title(f"{model}: {shift}")
    for axes in grid[-1]:
        axes.set_xlabel("slider scale")
    for axes in grid[:, 0]:
        axes.set_ylabel("accuracy")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center")
    return figure


def one_panel(axes: Axes, curves: pd.DataFrame, line: pd.Series) -> None:
    """A curve with its band for each set of images, and one horizontal line with its own."""
    blue, orange, green, *_ = sns.color_palette("colorblind")
    for (name, curve), colour, marker in zip(curves.groupby("images", sort=False), (blue, green), "os", strict=False):
        axes.plot(curve["scale"], curve["estimate"], marker=marker, color=colour, markersize=3.5, linewidth=1.2, label=name)
        axes.fill_between(curve["scale"], curve["low"], curve["high"], color=colour, alpha=0.12, linewidth=0)
    axes.axhline(line["estimate"], color=orange, linewidth=1.2, linestyle="--", label="reference")
    axes.axhspan(line["low"], line["high"], color=orange, alpha=0.15, linewidth=0)
    axes.set(ylim=(-0.03, 1.03))


def label_map(axes: Axes, table: pd.DataFrame, *, labels: list[str]) -> None:
    """Shares of labels (columns) per true weather (rows), written with their number of pictures."""
    found = list(table["truth"].unique())
    rows = [*(name for name in labels if name in found), *(name for name in found if name not in labels)]
    wide = table.pivot(index="truth", columns="label", values="estimate").reindex(index=rows, columns=labels)
    counts = table.drop_duplicates("truth").set_index("truth")["n"]
    sns.heatmap(wide, annot=True, fmt=".2f", vmin=0, vmax=1, cmap="crest", cbar=False, ax=axes)
    axes.tick_params(axis="x", rotation=20)
    axes.set_yticks(axes.get_yticks(), [f"{name} (n = {counts[name]})" for name in wide.index], rotation=0)
    axes.set(xlabel="label by CLIP", ylabel="")


def label_figure(confused: pd.DataFrame, named: pd.DataFrame, *, labels: list[str]) -> Figure:
    """What becomes of each true weather in the reference, beside how often generated images get the label of their slider."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    label_map(left, confused, labels=labels)
    label_lines(right, named)
    return figure


def label_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of generated images that get the label of their shift, over the slider scale."""
    curves.estimate_lines(axes, table, x="scale", hue="shift", label="labelled as asked")
    axes.set(xlabel="slider scale", ylim=(-0.03, 1.03))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def severity_lines(axes: Axes, table: pd.DataFrame) -> None:
    """The rendered severity of equal accuracy over the slider scale, one curve per way of comparing."""
    curves.estimate_lines(axes, table, x="scale", hue="compared", label="severity of equal accuracy")
    axes.set(xlabel="slider scale", ylim=(-0.05, 1.05))
