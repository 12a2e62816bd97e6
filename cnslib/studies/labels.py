"""The labelled set of CNS-Bench (sections I.1 and J), and the out-of-class filter as an object of study (extends Table 2b, Fig. 3).

The labels: stages of images, two annotators, the rule that joins them, the user study. The filter: rules by name, thresholds carried to
other shifts, and what a rule does to the results. A rule judges images; the benchmark keeps the trajectories whose images it keeps at all
scales.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Bool, Float, Int
from sklearn.metrics import cohen_kappa_score

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.data import annotations, artifacts, catalog
from cnslib.method import filtering
from cnslib.method.filtering import CLASS_PROMPT, DETECTORS, MEASURES, Rule
from cnslib.models.encoders import Clip, Oracle
from cnslib.stats import accuracy, bootstrap, ranking
from cnslib.stats.accuracy import Outcomes, Shares

CLASS, PARTIAL, NOT = annotations.ANSWERS
IN, PARTLY, OUT = KINDS = ("in class", "partly in class", "out of class")  # what two answers make of an image (Fig. 28)
DROPPED, EASY, HARD = "dropped", "easy", "hard"  # in stage (ii), in stage (iii), for annotators
ANNOTATORS = ["first", "second"]
schema = tables.schema(
    tables.KEY,
    {
        **tables.IDENTITY,
        "stage": pa.Column(str, pa.Check.isin([EASY, HARD])),
        "kind": pa.Column(str, pa.Check.isin(KINDS)),
        "out_of_class": pa.Column(bool),
    },
)


def text_cut(cosines: Float[np.ndarray, "images"], share: float) -> float:
    """The largest text alignment that at least a share of the images reaches (24 on the paper's scale of 100, for 90 %)."""
    return float(np.quantile(cosines, 1 - share, method="lower"))


def hits(predictions: pd.DataFrame, shifts: list[str], models: list[str]) -> pd.DataFrame:
    """Whether each of some classifiers is right: a column per classifier, an image per row, scale 0 under every shift.

    ValueError names a classifier that gave no answers.
    """
    for name in models:
        demand(name in set(predictions["model"]), "labels.expert and labels.peers", name, "classifiers of evaluation.classifiers")
    rows = tables.trajectories(predictions[predictions["model"].isin(models)], shifts).astype(dict.fromkeys(tables.TEXTS, str))
    return rows.assign(right=rows["top1"] == rows["class"]).pivot(index=tables.KEY, columns="model", values="right")


def staged(aligned: pd.DataFrame, right: pd.DataFrame, *, cut: float, expert: str, peers: list[str]) -> pd.Series:
    """The stage that decides about each image: "dropped" in (ii), "easy" in (iii), "hard" for the annotators in (iv).

    A seed stays if the expert knows its unshifted image and the text alignment reaches the cut. A shifted image is easy, and in
    class, if the same holds for it and one of the peers knows it too.
    """
    known = right.loc[pd.MultiIndex.from_frame(aligned[tables.KEY])].set_axis(aligned.index)
    good = known[expert] & (aligned["clip_class"] >= cut)
    unshifted = good.where(aligned["scale"] == 0, False)
    starts = unshifted.groupby([aligned[key] for key in tables.TRAJECTORY]).transform("any")
    easy = good & known[peers].any(axis=1)
    return pd.Series(np.select([~starts, easy], [DROPPED, EASY], HARD), index=aligned.index)


def catalog_alignment(pictures: Path, classes: list[str], clip: Clip) -> Float[np.ndarray, "images"]:
    """CLIP's text alignment of the catalog's held-out pictures with their own class (ImageNet's validation images in the paper)."""
    texts = clip.text_features([CLASS_PROMPT.format(name=name) for name in classes])
    held = catalog.whole(pictures, "heldout", classes)
    found = [clip.image_features(np.stack(own)) @ texts[classes.index(name)] for name, _, own in held]
    return torch.cat(found).double().numpy()


def parts(table: pd.DataFrame, pair: list[str]) -> dict[str, pd.Series]:
    """Which rows belong to the labelled shifts of the paper, and which to the others; ValueError names a shift without images."""
    for shift in pair:
        demand(shift in set(table["shift"]), "labels.pair", shift, ", ".join(sorted(set(table["shift"]))))
    inside = table["shift"].isin(pair)
    return {"the pair": inside, "the other shifts": ~inside}


def with_pictures(images: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the PNG bytes of their images; a row of scale 0 finds its picture among the unshifted ones."""
    source = rows["shift"].where(rows["scale"] > 0, UNSHIFTED)
    shards = [artifacts.images(images, shift) for shift in sorted(set(source))]
    stored = pd.concat(shards).set_index(tables.KEY)["image"] if shards else pd.Series(dtype=object)
    keys = pd.MultiIndex.from_frame(rows[tables.KEY].assign(shift=source))
    return rows.assign(image=stored.reindex(keys).to_numpy())


def oracle_answers(rows: pd.DataFrame, oracle: Oracle) -> pd.DataFrame:
    """Both "annotators" where no people are asked: the oracle's verdict on each picture, and a second one on its mirror image.

    `rows` hold `class_probability`, which the filtering step knows, and `image`. The answer is "class" where the oracle gives the
    class at least one half, "not class" below chance, and "partial class properties" in between.
    """
    views, chance = [rows["class_probability"].to_numpy(), mirrored_probability(rows, oracle)], 1 / len(oracle.labels)
    said = [np.select([view >= 0.5, view < chance], [CLASS, NOT], PARTIAL) for view in views]
    return pd.DataFrame(dict(zip(ANNOTATORS, said, strict=True)), index=rows.index)


def mirrored_probability(rows: pd.DataFrame, oracle: Oracle) -> Float[np.ndarray, "rows"]:
    """The oracle's probability of each row's own class when it sees the picture turned round from left to right."""
    if rows.empty:
        return np.zeros(0)
    own = [oracle.labels.index(name) for name in rows["class"]]
    pictures = np.ascontiguousarray(tables.pictures(rows, "images to label")[:, :, ::-1])
    return oracle.class_probability(pictures).numpy()[np.arange(len(own)), own]


def annotated(files: list[Path], rows: pd.DataFrame) -> pd.DataFrame:
    """What two annotators said about each row, from their VIA projects; errors name the file (see `annotations.read`).

    Raises ValueError for any other number of files: agreement needs two.
    """
    different = len({file.resolve() for file in files}) == 2 == len(files)
    demand(different, "labels.files", [str(file) for file in files], "two VIA projects, one per annotator")
    names = annotations.file_names(rows)
    said = [annotations.read(file, rows) for file in files]
    return pd.DataFrame({who: [answers[name] for name in names] for who, answers in zip(ANNOTATORS, said, strict=True)}, index=rows.index)


def joined(answers: pd.DataFrame) -> pd.Series:
    """The paper's rule: out of class if one annotator says "not class"; else in class if one says "class"; else partly."""
    out, inside = ((answers[ANNOTATORS] == said).any(axis=1) for said in (NOT, CLASS))
    return pd.Series(np.select([out, inside], [OUT, IN], PARTLY), index=answers.index)


def labelled_table(aligned: pd.DataFrame) -> pd.DataFrame:
    """The images whose seed stays, with their label in the column `oracle_ooc`, where the filter looks for it, whoever gave it."""
    stays = aligned[aligned["stage"] != DROPPED]
    return stays.assign(oracle_ooc=stays["kind"] == OUT)


def write(labelled: pd.DataFrame, path: Path) -> None:
    """Writes the labelled set: key, stage, kind, and whether the image counts as out of class."""
    tables.write(labelled.rename(columns={"oracle_ooc": "out_of_class"})[list(schema.columns)], path, schema)


def kappa(rows: pd.DataFrame, answers: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """Cohen's kappa of the two annotators with its interval, as a record.

    Not a number where nothing was asked or all answers are the same.
    """
    if answers.empty or answers[ANNOTATORS].stack().nunique() == 1:
        return bootstrap.NOTHING | {"n": len(answers)}
    weights, units = bootstrap.resampling_weights(rows, settings=settings)
    counted = answers.assign(unit=units).value_counts(["unit", *ANNOTATORS]).reset_index(name="count")
    weights = weights[:, counted["unit"]] * counted["count"].to_numpy()
    first, second = (counted[who] for who in ANNOTATORS)
    values = np.array([cohen_kappa_score(first, second, labels=annotations.ANSWERS, sample_weight=weight) for weight in weights])
    return bootstrap.record(values, len(answers), settings.confidence)


def stage_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Table 8: images of each scale that were drawn (i), whose seed stays (ii), that are easy (iii), that are in class in the end (iv)."""
    stays = table["stage"] != DROPPED
    cases = {"i": table["stage"] != "", "ii": stays, "iii": table["stage"] == EASY, "iv": stays & (table["kind"] == IN)}
    return pd.DataFrame({stage: case.groupby(table["scale"]).sum() for stage, case in cases.items()})


def sample(rows: pd.DataFrame, size: int, seed: int) -> pd.DataFrame:
    """A seeded sample in which every (shift, scale) has its proportional place, up to one image (section J).

    Rows are put in random order within their stratum, and every N/n-th is taken from a random start. All rows where there are no more.
    """
    rng = np.random.default_rng(seed)
    shuffled = rows.sort_values(tables.KEY).iloc[rng.permutation(len(rows))].sort_values(["shift", "scale"], kind="stable")
    count = min(size, len(rows))
    places = ((np.arange(count) + rng.uniform()) * len(rows) / max(count, 1)).astype(int)
    return shuffled.iloc[places].sort_values(tables.KEY)


def study_shares(
    kinds: pd.Series, asked: pd.DataFrame, benchmark: pd.DataFrame, *, who: str, chance: float, confidence: float
) -> pd.DataFrame:
    """The share of out-of-class images in the user study with Wilson intervals, beside the paper's and what the oracle says by itself.

    `benchmark` holds all images that `asked` was drawn from: its share is counted, so its interval is the share itself.
    """
    text = pd.read_csv(paths.PUBLISHED / "cns_text.csv").set_index("id")["value"]
    paper = np.arange(int(text["user_study_images"])) < int(text["user_study_ooc"])
    once = [(table["class_probability"] < chance).to_numpy() for table in (asked, benchmark)]
    cases = {"paper (people)": paper, f"sample ({who})": (kinds == OUT).to_numpy(), "sample (oracle, once)": once[0]}
    rows = {what: bootstrap.independent_share(case, confidence=confidence) for what, case in cases.items()}
    share = float(once[1].mean())
    rows["whole benchmark (oracle, once)"] = {"n": len(benchmark), "estimate": share, "low": share, "high": share}
    return pd.DataFrame([{"what": what, **row} for what, row in rows.items()])


NAMES = {0: "0 of 4 (no filter)", 2: "2 of 4 (released code)", 3: "3 of 4 (paper's text)"}
NONE, RELEASED, TEXT = NAMES.values()
ALONE = "CLIP alone"
LABELS = "labels"  # keeps what the labels call in class, or partly so
RULES = {NAMES.get(k, f"{k} of 4"): Rule(DETECTORS, k) for k in range(len(DETECTORS) + 1)} | {ALONE: Rule(DETECTORS[:1], 1)}
SINGLES = {name: Rule((name,), 1) for name in DETECTORS}
COMPARED = (NONE, RELEASED, TEXT, ALONE)


def verdicts(scores: pd.DataFrame, limits: dict[str, float], rules: dict[str, Rule] = RULES) -> pd.DataFrame:
    """Whether each rule keeps each image: one column per rule."""
    return pd.DataFrame({name: filtering.keeps(rule, scores, limits) for name, rule in rules.items()})


def judged(labelled: pd.DataFrame, keep: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """TPR, FPR and accuracy of every rule on some parts of the labelled images (Table 2b), with intervals."""
    rows = []
    for part, chosen in parts.items():
        for name in keep:
            found = filtering.quality(labelled[chosen], keep.loc[chosen, name], settings=settings)
            rows += [{"part": part, "rule": name, "measure": measure, **found[measure]} for measure in MEASURES]
    return pd.DataFrame(rows)


def advantage(labelled: pd.DataFrame, first: pd.Series, second: pd.Series, *, settings: Bootstrap) -> dict:
    """Accuracy of the first rule minus that of the second on the same images: a paired difference, as a record."""
    right = [(~keep == labelled["oracle_ooc"]).astype(float) for keep in (first, second)]
    return bootstrap.mean(right[0] - right[1], labelled, settings=settings)


def areas(labelled: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """The area under each detector's ROC curve on some parts of the labelled images, with its interval.

    The same numbers as `filtering.areas`, for a thousand resamples in one product. No rows where all images are of one kind.
    """
    columns, rows = ["part", "detector", "n", "estimate", "low", "high"], []
    for part, chosen in parts.items():
        table = labelled[chosen]
        for name in DETECTORS if table["oracle_ooc"].nunique() == 2 else ():
            weights, units = bootstrap.resampling_weights(table, settings=settings)
            won, lots = concordance(table, name, units)
            values = np.einsum("rp,pq,rq->r", weights, won, weights) / (weights @ lots[0]) / (weights @ lots[1])
            rows.append({"part": part, "detector": name, **bootstrap.record(values, len(table), settings.confidence)})
    return pd.DataFrame(rows, columns=columns)


def concordance(
    table: pd.DataFrame, name: str, units: Int[np.ndarray, "rows"]
) -> tuple[Float[np.ndarray, "units units"], Float[np.ndarray, "2 units"]]:
    """For each two units how often an out-of-class image of the first has the lower score than an image of the second.

    Ties count one half. Also the number of images of each kind per unit. The area under the curve is the share of pairs won.
    """
    score, outside = table[name].to_numpy(), table["oracle_ooc"].to_numpy()
    members = np.eye(units.max() + 1)[units]
    difference = score[~outside] - score[outside][:, None]
    won = members[outside].T @ (0.5 * (np.sign(difference) + 1)) @ members[~outside]
    return won, np.stack([members[outside].sum(0), members[~outside].sum(0)])


def whole(found: Outcomes, scores: pd.DataFrame, keep: pd.DataFrame) -> Bool[np.ndarray, "rules trajectories"]:
    """Whether each rule keeps each trajectory at all of its scales; trajectories that were not scored count as not kept."""
    zero = scores["scale"] == 0
    index = pd.MultiIndex.from_frame(found.trajectories)
    kept = [
        filtering.whole(scores, keep[name])[zero].set_axis(pd.MultiIndex.from_frame(scores.loc[zero, tables.TRAJECTORY])) for name in keep
    ]
    return np.stack([row.reindex(index, fill_value=False).to_numpy(bool) for row in kept])


def screened(found: Outcomes, kept: Bool[np.ndarray, "rules trajectories"], names: list[str], *, settings: Bootstrap) -> Shares:
    """Error rate per rule, model and scale over the trajectories that it keeps, all rules on the same resamples.

    The rules take the place of the shifts in the result. A rule that keeps nothing is NaN.
    """
    weights, units = bootstrap.resampling_weights(found.trajectories, settings=settings)
    weights = weights[:, units]
    sums = np.stack([np.tensordot(weights[:, row], found.wrong[row].astype(float), 1) for row in kept], 1)
    counts = np.stack([weights[:, row].sum(1) for row in kept], 1)
    with np.errstate(invalid="ignore"):
        shares = sums / counts[..., None, None]
    return Shares(shares, list(names), counts[0].astype(int), found.models, found.scales, settings.confidence)


def excess(errors: Shares, *, reference: str = LABELS) -> pd.DataFrame:
    """Accuracy drop under each rule minus that under the reference, averaged over the models, at every scale (Fig. 3).

    Negative where the rule removes images that are hard but in class, positive where it leaves images that have lost their class.
    """
    drops = (errors.samples - errors.samples[..., :1]).mean(2, keepdims=True)
    apart = drops - drops[:, [errors.groups.index(reference)]]
    return accuracy.tabulate(apart, errors, errors.bins, models=["mean over models"]).rename(columns={"shift": "rule"})


def agreement(errors: Shares, *, reference: str = LABELS) -> pd.DataFrame:
    """Kendall's tau-b between the order of the models under each rule and under the reference, at every scale; 1 is the same order."""
    same, rows = errors.samples[:, errors.groups.index(reference)], []
    for i, rule in enumerate(errors.groups):
        for j, scale in enumerate(errors.bins):
            sides = errors.samples[:, i, :, j], same[..., j]
            rows.append({"rule": rule, "scale": scale, **ranking.order_record(*sides, errors.n[i], errors.confidence)})
    return pd.DataFrame(rows)
