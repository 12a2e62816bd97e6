"""The labelled set of CNS-Bench (section I.1): stages of images, two annotators, and the rule that joins them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float

from cnslib.core import tables
from cnslib.core.names import demand
from cnslib.core.settings.method import Bootstrap
from cnslib.data import annotations, artifacts, catalog
from cnslib.method.filtering import CLASS_PROMPT
from cnslib.models.encoders import Clip
from cnslib.stats import bootstrap
from cnslib.studies.labels import mirrors

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
    """The rows with the bytes of their images, PNG or JPEG; a row of scale 0 finds its picture among the unshifted ones."""
    keys = mirrors.drawn_as(rows)
    shards = [artifacts.images(images, shift) for shift in sorted(set(keys.get_level_values("shift")))]
    stored = pd.concat(shards).set_index(tables.KEY)["image"] if shards else pd.Series(dtype=object)
    return rows.assign(image=stored.reindex(keys).to_numpy())


def oracle_answers(rows: pd.DataFrame, mirrored: Float[np.ndarray, "rows"], *, chance: float) -> pd.DataFrame:
    """Both "annotators" where no people are asked: the oracle's verdict on each picture, and a second one on its mirror image.

    `rows` hold `class_probability`, which the filtering step knows; `mirrored` is the same of the mirror images (see `mirrors`). The
    answer is "class" where the oracle gives the class at least one half, "not class" below chance, and "partial class properties"
    in between.
    """
    said = [np.select([view >= 0.5, view < chance], [CLASS, NOT], PARTIAL) for view in (rows["class_probability"].to_numpy(), mirrored)]
    return pd.DataFrame(dict(zip(ANNOTATORS, said, strict=True)), index=rows.index)


def annotated(files: list[Path], rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """What two annotators said about each row, from their VIA projects; errors name the file (see `annotations.read`).

    Raises ValueError, with the key that names the files, for any other number of them: agreement needs two.
    """
    different = len({file.resolve() for file in files}) == 2 == len(files)
    demand(different, key, [str(file) for file in files], "two VIA projects, one per annotator")
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


def read(path: Path, aligned: pd.DataFrame) -> pd.DataFrame:
    """The labelled set that `write` left, with the alignments of its images, in their order and under their index.

    Raises FileNotFoundError for a missing table, ValueError for one that holds images without alignments.
    """
    stored = tables.read(path, schema).rename(columns={"out_of_class": "oracle_ooc"})
    found = aligned.reset_index().merge(stored, on=tables.KEY, validate="one_to_one").set_index("index").rename_axis(None)
    if foreign := len(stored) - len(found):
        raise ValueError(f"table {path} holds {foreign} images that the parameters do not ask for: run the step labels again")
    return found


def kappa(rows: pd.DataFrame, answers: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """Cohen's kappa of the two annotators with its interval, as a record.

    Not a number where nothing was asked or all answers are the same.
    """
    if answers.empty or answers[ANNOTATORS].stack().nunique() == 1:
        return bootstrap.NOTHING | {"n": len(answers)}
    weights, units = bootstrap.resampling_weights(rows, settings=settings)
    return bootstrap.record(kappas(weights @ pair_counts(answers, units)), len(answers), settings.confidence)


def pair_counts(answers: pd.DataFrame, units: np.ndarray) -> Float[np.ndarray, "units pairs"]:
    """How often each pair of answers was given in each unit, numbered from 0; the pairs in the order of the first's answers."""
    first, second = (answers[who].map(annotations.ANSWERS.index).to_numpy() for who in ANNOTATORS)
    kinds = len(annotations.ANSWERS)
    places, shape = units * kinds**2 + first * kinds + second, (units.max() + 1, kinds**2)
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


def kappas(counts: Float[np.ndarray, "samples pairs"]) -> Float[np.ndarray, "samples"]:
    """Cohen's kappa of each sample of counted pairs: 1 minus the share that disagrees over the share that would by chance."""
    kinds, total = len(annotations.ANSWERS), counts.sum(axis=1)
    table = counts.reshape(-1, kinds, kinds)
    agreed, chance = table.trace(axis1=1, axis2=2), (table.sum(axis=2) * table.sum(axis=1)).sum(axis=1) / total
    with np.errstate(invalid="ignore"):  # nothing but one answer: no number
        return 1 - (total - agreed) / (total - chance)


def stage_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Table 8: images of each scale that were drawn (i), whose seed stays (ii), that are easy (iii), that are in class in the end (iv)."""
    stays = table["stage"] != DROPPED
    cases = {"i": table["stage"] != "", "ii": stays, "iii": table["stage"] == EASY, "iv": stays & (table["kind"] == IN)}
    return pd.DataFrame({stage: case.groupby(table["scale"]).sum() for stage, case in cases.items()})


def by_scale(parts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How many images of each part and scale are of each kind, a column per kind (Fig. 28)."""
    order = ["in class, easy", *KINDS]
    tables_of = {name: pd.crosstab(part["scale"], part["kind"]) for name, part in parts.items()}
    return pd.concat({name: own.reindex(columns=order, fill_value=0) for name, own in tables_of.items()})


def examples(rows: pd.DataFrame, count: int, seed: int) -> dict[str, pd.DataFrame]:
    """Some rows of every kind, drawn at random."""
    shuffled = rows.sample(frac=1, random_state=seed)
    return {kind: shuffled[shuffled["kind"] == kind].head(count) for kind in KINDS}


def source_of(files: list[str]) -> str:
    """Who gave the labels, for captions."""
    return "labels: people on the pair, oracle elsewhere" if files else "labels: oracle, asked twice (no people)"


def beside_table8(stages: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Shares of the stages, ours and published: seeds that stay, and what is easy and in class at the last scale (Table 8).

    `stages` as `stage_counts` gives them, `printed` with the columns scale, stage and images.
    """
    theirs = printed.pivot(index="scale", columns="stage", values="images").reindex(stages.index)
    cases = {"seeds that stay": (0, "ii", "i"), "easy at the last scale": (-1, "iii", "ii"), "in class at the last scale": (-1, "iv", "ii")}
    rows = {name: [own[top].iloc[at] / own[below].iloc[at] for own in (stages, theirs)] for name, (at, top, below) in cases.items()}
    return pd.DataFrame(rows, index=["ours", "published"]).T
