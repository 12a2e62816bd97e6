"""Out-of-class (OOC) filter of CNS-Bench: four alignments of every image, and k of four tests on them (sections 3.4 and I.1, Eqs. 4, 5).

Thresholds come from labelled images, an image that fails takes its whole trajectory with it, and rates are cross-validated by seed.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Bool, Float, UInt8
from sklearn.metrics import roc_curve
from torch import Tensor

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import SHIFTS, UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.data import annotations, artifacts
from cnslib.models.encoders import Clip, ImageEncoder, Oracle
from cnslib.stats import bootstrap

CLASS_PROMPT = "a picture of a {name}"
SHIFT_PROMPT = "a picture of a {name} in {shift}"
DETECTORS = ("clip_class", "clip_class_shift", "clip_reference", "image_reference")
RECOGNITION_THRESHOLD = 0.5  # least probability of its own class by which the oracle knows an image
FALSE_POSITIVES = np.linspace(0, 1, 201)  # where ROC curves are told
PAIR = ["class", "seed"]  # all trajectories of a class and seed share one unshifted image: they are resampled together
schema = tables.schema(
    tables.KEY,
    {**tables.IDENTITY, **{name: pa.Column(float, tables.COSINE) for name in DETECTORS}, "class_probability": pa.Column(float)},
)


@dataclass(frozen=True)
class Judges:
    """The three models that look at every image. None of them saw the classifiers' training data (section 3.4)."""

    clip: Clip
    image_encoder: ImageEncoder
    oracle: Oracle


@dataclass(frozen=True)
class Views:
    """What the judges see in each image of a table; `table` identifies the rows, `probability` is the oracle's for their class."""

    table: pd.DataFrame
    clip: Float[Tensor, "rows clip_features"]
    image: Float[Tensor, "rows image_features"]
    probability: Float[np.ndarray, "rows"]


def align(images: Path, shifts: list[str], *, judges: Judges, readings: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The four alignments of every image, scale 0 under every shift; computes the shifts that are missing or outdated."""
    of_shift, stamps = dict(list(readings.groupby("shift"))), {shift: stamp(images, shift, judges) for shift in shifts}

    def rows(shift: str, unshifted: Views) -> pd.DataFrame:
        return measure(shift, look(images, shift, judges, of_shift[shift]), unshifted, judges.clip)

    start = lambda: [look(images, UNSHIFTED, judges, of_shift[shifts[0]])]  # noqa: E731
    return workers.stored(stamps, rows, schema, folder=folder, device=judges.clip.device, common=start)


def stamp(images: Path, shift: str, judges: Judges) -> str:
    """What the alignments of a shift depend on: its images, the unshifted ones and the three models."""
    made = [units.verified(images / units.file_of(name)) for name in (UNSHIFTED, shift)]
    models = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, judges.oracle.labels]
    return recipes.ALIGNMENT.stamp(shift, made, models)


def look(images: Path, shift: str, judges: Judges, readings: pd.DataFrame) -> Views:
    """Shows every image of one shift to both encoders once; `readings` are the oracle's, under one shift and at scale 0."""
    parts, features = [], []
    for rows in artifacts.batches(images, shift):
        pictures = tables.pictures(rows, units.file_of(shift))
        parts.append(rows[tables.KEY])
        features.append((judges.clip.image_features(pictures), judges.image_encoder.features(pictures)))
    table, row = pd.concat(parts, ignore_index=True), ["class", "seed", "scale"]
    matched = table[row].merge(readings[[*row, "class_probability"]], on=row, how="left", validate="one_to_one")
    clip, image = (torch.cat(of_encoder) for of_encoder in zip(*features, strict=True))
    return Views(table, clip, image, matched["class_probability"].to_numpy())


def measure(shift: str, shifted: Views, unshifted: Views, clip: Clip) -> pd.DataFrame:
    """Eqs. 4 and 5: cosines of each image with two prompts, and with the unshifted image of its class and seed."""
    views = join(unshifted, shifted)
    plain, in_shift = (prompt_features(views.table, clip, prompt, shift) for prompt in (CLASS_PROMPT, SHIFT_PROMPT))
    start = references(views.table, unshifted.table)
    pairs = [(views.clip, plain), (views.clip, in_shift), (views.clip, views.clip[start]), (views.image, views.image[start])]
    cosines = {name: (a * b).sum(dim=1).double().numpy().round(6) for name, (a, b) in zip(DETECTORS, pairs, strict=True)}
    return views.table.assign(shift=shift, **cosines, class_probability=views.probability.astype(float).round(6))


def prompt_features(table: pd.DataFrame, clip: Clip, prompt: str, shift: str) -> Float[Tensor, "rows clip_features"]:
    """The text feature of each row's class in a prompt."""
    names = sorted(set(table["class"]))
    features = clip.text_features([prompt.format(name=name, shift=shift) for name in names])
    return features[[names.index(name) for name in table["class"]]]


def references(table: pd.DataFrame, unshifted: pd.DataFrame) -> list[int]:
    """For each row of a table that begins with the unshifted images: which of these has its class and seed. KeyError without one."""
    start = {key: row for row, key in enumerate(unshifted[PAIR].itertuples(index=False, name=None))}
    return [start[key] for key in table[PAIR].itertuples(index=False, name=None)]


def join(first: Views, second: Views) -> Views:
    """The rows of two tables, one after the other."""
    table = pd.concat([first.table, second.table], ignore_index=True)
    clip, image = torch.cat([first.clip, second.clip]), torch.cat([first.image, second.image])
    return Views(table, clip, image, np.concatenate([first.probability, second.probability]))


def gallery(images: Path, groups: dict[str, pd.DataFrame], *, columns: int) -> UInt8[np.ndarray, "groups columns height width 3"]:
    """The images of the first rows of some tables, one row of pictures per table; white where a table has fewer rows."""
    rows = pd.concat([table.head(columns).assign(group=name) for name, table in groups.items()])
    images_of_rows = artifacts.with_pictures(images, rows)
    pictures = tables.pictures(images_of_rows, str(images)) if len(images_of_rows) else np.zeros((0, 1, 1, 3), np.uint8)
    sheet = np.full((len(groups), columns, *pictures.shape[1:]), 255, np.uint8)
    sheet[images_of_rows["group"].map(list(groups).index).astype(int), images_of_rows.groupby("group").cumcount()] = pictures
    return sheet


# What the oracle sees: the shift that an image was drawn with, or another, and how severe it is. No part of CNS-Bench, whose people were
# asked about the class alone; the gates and the rulers of notebook 12 rest on it.

SHARE = pa.Check.in_range(0, 1)
READING = {"oracle": pa.Column(float, SHARE, nullable=True), "asked": pa.Column(float, SHARE, nullable=True), "named": pa.Column(str)}
CLASS = "class_probability"  # of the image's own class
BLIND = "not asked"  # what an oracle of the class alone names
oracle_schema = tables.schema(tables.KEY, {**tables.IDENTITY, **READING, CLASS: pa.Column(float, SHARE)})


def predict(table: pd.DataFrame, pictures: UInt8[np.ndarray, "rows height width 3"], *, oracle: Oracle) -> pd.DataFrame:
    """The rows of a table with the oracle's probability of their class, its severity, the shift it names, and a probability per shift.

    An oracle of the class alone sees no shift: its severities are NaN, and these columns are not there. ValueError for an unknown class.
    """
    if unknown := sorted(set(table["class"]) - set(oracle.labels)):
        raise ValueError(f"labels: the oracle knows no class {unknown[0]!r}; accepted: {', '.join(oracle.labels)}")
    blind = not hasattr(oracle, "parts")
    classes, *sight = [oracle.class_probability(pictures)] if blind else oracle.parts(pictures)
    probability = (classes if blind else classes.softmax(dim=1)).numpy()
    class_probability = probability[np.arange(len(table)), [oracle.labels.index(name) for name in table["class"]]].astype(float).round(6)
    readings = table[tables.KEY].assign(**{CLASS: class_probability})
    if blind:
        return readings.assign(oracle=np.nan, named=BLIND)
    shifts, severity = sight
    shift_probabilities = pd.DataFrame(shifts.softmax(dim=1).double().numpy(), columns=[*SHIFTS, UNSHIFTED], index=table.index)
    return readings.assign(oracle=severity[:, 0].sigmoid().double().numpy().round(6), named=shift_probabilities.idxmax(axis=1)).join(
        shift_probabilities
    )


def of_shift(readings: pd.DataFrame, shift: str) -> pd.DataFrame:
    """What the oracle predicts of one shift: `asked` is its severity times the probability that it gives to that shift, if it knows it."""
    requested = (readings["oracle"] * readings.get(shift, np.nan)).round(6)
    return readings[[*tables.KEY, CLASS, "oracle", "named"]].assign(shift=shift, asked=requested)


def predict_all(images: Path, shifts: list[str], *, oracle: Oracle, folder: Path) -> pd.DataFrame:
    """What the oracle predicts in every generated image, scale 0 under every shift; computes the shifts that are missing or outdated."""
    made = {name: units.verified(images / units.file_of(name)) for name in (UNSHIFTED, *shifts)}
    stamps = {one: recipes.ORACLE_PREDICTIONS.stamp(one, [made[UNSHIFTED], made[one]], oracle.digest, oracle.labels) for one in shifts}

    def predictions(shift: str) -> pd.DataFrame:
        batches, file = artifacts.batches(images, shift), units.file_of(shift)
        return pd.concat([predict(rows, tables.pictures(rows, file), oracle=oracle) for rows in batches], ignore_index=True)

    rows = lambda shift, unshifted: of_shift(pd.concat([unshifted, predictions(shift)]), shift)  # noqa: E731
    return workers.stored(stamps, rows, oracle_schema, folder=folder, device=oracle.device, common=lambda: [predictions(UNSHIFTED)])


def beside(readings: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What the oracle predicts beside the filter's cosines, with the readings of the two encoders, `alignment` and `distance`.

    Alignment: cosine with the caption in the shift minus that of the class alone. Distance: 1 - cosine with scale 0. ValueError for other
    images.
    """
    tables.complete(readings, scores[tables.KEY].itertuples(index=False, name=None), tables.KEY, "the oracle's predictions")
    both = readings.drop(columns=CLASS).merge(scores, on=tables.KEY, validate="one_to_one")
    return both.assign(alignment=both["clip_class_shift"] - both["clip_class"], distance=1 - both["image_reference"])


FOLDS = 5  # of the cross-validation
MEASURES = ("tpr", "fpr", "accuracy")
JUDGED_ON = ("same labels", "cross-validated")


@dataclass(frozen=True)
class Rule:
    """Keep an image if it passes at least `passes` of these detectors' tests."""

    detectors: tuple[str, ...]
    passes: int


def rules(passes: int) -> dict[str, Rule]:
    """The compared rules: CLIP with one prompt (the paper's baseline), CLIP with both prompts, and `passes` of four (ours)."""
    return {"clip": Rule(DETECTORS[:1], 1), "clip_pair": Rule(DETECTORS[:2], 2), "ours": Rule(DETECTORS, passes)}


def out_of_class(probability: pd.Series, *, labels: int) -> pd.Series:
    """The label `oracle_ooc`, for the annotators' "not class": the oracle gives the image's class less than chance, 1 / labels."""
    return probability < 1 / labels


def started_in_class(scores: pd.DataFrame) -> pd.Series:
    """Rows whose unshifted image the oracle knows, giving its class at least one half (stage ii): others tell nothing about shifts."""
    zero = scores[(scores["scale"] == 0) & (scores["class_probability"] >= RECOGNITION_THRESHOLD)]
    return pd.Series(pd.MultiIndex.from_frame(scores[PAIR]).isin(pd.MultiIndex.from_frame(zero[PAIR])), index=scores.index)


def labelled_images(scores: pd.DataFrame) -> pd.DataFrame:
    """The shifted images whose trajectory starts in class: the population of Table 2b. ValueError where none does."""
    started = scores[started_in_class(scores) & (scores["scale"] != 0)]
    best = float(scores.loc[scores["scale"] == 0, "class_probability"].max())
    demand(
        len(started) > 0,
        "base.oracle, its best probability for the class of an unshifted image",
        best,
        f"{RECOGNITION_THRESHOLD} or more for some",
    )
    return started


def labelled_by(scores: pd.DataFrame, images: Path, *, files: list[str], labels: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every image with the label `oracle_ooc`, and those whose labels set the thresholds: two people's, by their VIA projects in `files`.

    Their word then stands in place of the oracle's probability: 1 in class, 1 / labels partly in class, 0 out of class. A picture that
    they were not shown was easy, and under the shifts that they saw at least partly in class; only these shifts are labelled. Without
    files it is the oracle's word, about all shifts. `images` is the folder of the generation step's tables.
    """
    projects = [paths.resolve(file) for file in files]
    probability, shifts = scores["class_probability"], set(scores["shift"])
    if projects:
        labelled_stems = {Path(name).stem for name, _ in annotations.answered(projects[0])}
        labelled_rows = artifacts.with_pictures(images, scores[[stem in labelled_stems for stem in annotations.stems(scores)]])
        kinds = annotations.joined(annotations.annotated(projects, labelled_rows, "labels.files"))
        shifts = set(labelled_rows["shift"])
        probability = probability.mask(scores["shift"].isin(shifts), probability.clip(lower=1 / labels))
        word = kinds.map(dict(zip(annotations.KINDS, (1.0, 1 / labels, 0.0), strict=True))).reindex(scores.index)
        unshifted = (
            word.where(scores["scale"] == 0).groupby([scores[key] for key in PAIR]).transform("min")
        )  # one image, whatever the shift
        probability = word.mask(scores["scale"] == 0, unshifted).fillna(probability)
    labelled = scores.assign(class_probability=probability, oracle_ooc=out_of_class(probability, labels=labels))
    return labelled, labelled_images(labelled[labelled["shift"].isin(shifts)])


def thresholds(labelled: pd.DataFrame, recall: float) -> dict[str, float]:
    """For each detector the smallest value that at least a share `recall` of the out-of-class images does not exceed; else all pass."""
    outside = labelled.loc[labelled["oracle_ooc"], list(DETECTORS)]
    if outside.empty:
        return dict.fromkeys(DETECTORS, -np.inf)
    return {name: float(np.quantile(outside[name], recall, method="inverted_cdf")) for name in DETECTORS}


def keeps(rule: Rule, scores: pd.DataFrame, limits: dict[str, float]) -> pd.Series:
    """Whether the rule keeps each image."""
    passed = sum((scores[name] > limits[name]).astype(int) for name in rule.detectors)
    return passed >= rule.passes


def whole(scores: pd.DataFrame, keep: pd.Series) -> pd.Series:
    """Whether each image belongs to a trajectory that is kept at all of its scales, scale 0 included (section J)."""
    return keep.groupby([scores[key] for key in tables.TRAJECTORY]).transform("all")


def enters(scores: pd.DataFrame, keep: pd.Series) -> pd.Series:
    """Whether each image belongs to a trajectory of the benchmark: one that starts in class, and of which all images are kept."""
    return started_in_class(scores) & whole(scores, keep)


def outcomes(scores: pd.DataFrame, keep: pd.Series) -> pd.Series:
    """What happens to each image: "caught" and "missed" are out of class, "lost" and "kept" are in class."""
    outside = scores["oracle_ooc"]
    names = np.select([outside & ~keep, outside, ~keep], ["caught", "missed", "lost"], "kept")
    return pd.Series(names, index=scores.index)


def cross_validated(rule: Rule, labelled: pd.DataFrame, *, recall: float) -> pd.Series:
    """Whether the rule keeps each image at thresholds from the labels of other seeds; a fold holds all trajectories of a seed."""
    fold = pd.factorize(labelled["seed"], sort=True)[0] % FOLDS
    keep = np.ones(len(labelled), bool)
    for number in np.unique(fold):
        limits = thresholds(labelled[fold != number], recall)
        keep[fold == number] = keeps(rule, labelled[fold == number], limits)
    return pd.Series(keep, index=labelled.index)


def quality(labelled: pd.DataFrame, keep: pd.Series, *, settings: Bootstrap) -> dict[str, dict]:
    """TPR, FPR and accuracy of dropping out-of-class images (the positive class), as records (Table 2b); NaN of no images."""
    outside, right = labelled["oracle_ooc"], keep != labelled["oracle_ooc"]
    cases = {"tpr": ~keep[outside], "fpr": ~keep[~outside], "accuracy": right}
    return {name: bootstrap.rate(hits, labelled.loc[hits.index], settings=settings) for name, hits in cases.items()}


def compare(labelled: pd.DataFrame, *, recall: float, settings: Filtering) -> pd.DataFrame:
    """Table 2b: every rule's TPR, FPR and accuracy, cross-validated and, for comparison, at thresholds from the same labels."""
    cuts = thresholds(labelled, recall)
    rows = []
    for name, rule in rules(settings.passes).items():
        verdicts = keeps(rule, labelled, cuts), cross_validated(rule, labelled, recall=recall)
        for judged_on, keep in zip(JUDGED_ON, verdicts, strict=True):
            records = quality(labelled, keep, settings=settings.bootstrap)
            rows += [{"rule": name, "judged on": judged_on, "measure": measure, **records[measure]} for measure in MEASURES]
    return pd.DataFrame(rows)


def sweep(scores: pd.DataFrame, labelled: pd.DataFrame, *, settings: Filtering) -> pd.DataFrame:
    """The cross-validated quality of k of four for every k, and the share of trajectories that enter the benchmark by it."""
    cuts, zero, rows = thresholds(labelled, settings.recall), scores[scores["scale"] == 0], []
    for passes in range(1, len(DETECTORS) + 1):
        rule = Rule(DETECTORS, passes)
        records = quality(labelled, cross_validated(rule, labelled, recall=settings.recall), settings=settings.bootstrap)
        records["kept"] = bootstrap.rate(enters(scores, keeps(rule, scores, cuts))[zero.index], zero, settings=settings.bootstrap)
        rows += [{"passes": passes, "measure": measure, **record} for measure, record in records.items()]
    return pd.DataFrame(rows)


def sensitivity(aligned: pd.DataFrame, labels: dict[str, int], recalls: list[float], *, settings: Filtering) -> pd.DataFrame:
    """The cross-validated vote by other labels and recalls: how many images are out of class, TPR, FPR and accuracy."""
    rows = {}
    for (name, chance), recall in itertools.product(labels.items(), recalls):
        part = labelled_images(aligned.assign(oracle_ooc=out_of_class(aligned["class_probability"], labels=chance)))
        records = quality(part, cross_validated(rules(settings.passes)["ours"], part, recall=recall), settings=settings.bootstrap)
        rows[name, recall] = {"out of class": records["tpr"]["n"]} | {measure: records[measure]["estimate"] for measure in MEASURES}
    return pd.DataFrame(rows).T.rename_axis(["label", "recall"])


def roc(labelled: pd.DataFrame) -> pd.DataFrame:
    """The ROC curve of each detector at FALSE_POSITIVES: fixed places, since the number of corners depends on how a processor rounds."""
    parts = []
    for name in DETECTORS if labelled["oracle_ooc"].nunique() == 2 else ():
        fpr, tpr, _ = roc_curve(labelled["oracle_ooc"], -labelled[name], drop_intermediate=False)  # it is read between its corners
        reached = tpr[np.searchsorted(fpr, FALSE_POSITIVES, side="right") - 1]
        parts.append(pd.DataFrame({"detector": name, "fpr": FALSE_POSITIVES, "tpr": reached}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["detector", "fpr", "tpr"])


def areas(labelled: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The area under each detector's ROC curve with its interval."""
    outside, rows = labelled["oracle_ooc"].to_numpy(), []
    weights, units = bootstrap.resampling_weights(labelled, settings=settings)
    both = [row[units] for row in weights if not np.isnan(row).any()]
    for name in DETECTORS if labelled["oracle_ooc"].nunique() == 2 else ():
        values = roc_auc_scores(outside, -labelled[name].to_numpy(), sample_weights=both)
        rows.append({"detector": name, **bootstrap.record(values, len(labelled), settings.confidence)})
    return pd.DataFrame(rows, columns=["detector", "n", "estimate", "low", "high"])


def roc_auc_scores(
    positive: Bool[np.ndarray, "rows"], score: Float[np.ndarray, "rows"], *, sample_weights: Iterable[Float[np.ndarray, "rows"]]
) -> Float[np.ndarray, "resamples"]:
    """The area under the ROC curve by each of some weights of the rows, which are sorted once: scikit-learn takes twenty times as long.

    NaN where one of the two kinds has no weight.
    """
    order, values = np.argsort(-score, kind="stable"), []
    positive, score = positive[order], score[order]
    ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # of equal scores, the last
    for weight in sample_weights:
        hits, alarms = (np.append(0.0, np.cumsum(kind * weight[order])[ends]) for kind in (positive, ~positive))
        values.append(np.trapezoid(hits, alarms) / (hits[-1] * alarms[-1]) if min(hits[-1], alarms[-1]) > 0 else np.nan)
    return np.array(values)
