"""Robustness along the paper's axes: architecture, size and pre-training (CNS-Bench section 5.3, Figs. 9 to 12, Tables 3 to 5).

Everything is computed on the resamples of `stats.accuracy`, which all classifiers share. A comparison with the paper is between like
and like: in the mini world relatives stand for the paper's classifiers; where its own were evaluated, each takes its relative's place
in the lists of `published/`, and averages on both sides run over the same classifiers.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core.names import demand
from cnslib.stats import bootstrap, verdicts
from cnslib.stats.accuracy import MEAN, MEAN_MODEL, TINY, Shares, model_index, relative_corruption_error, tabulate
from cnslib.stats.bootstrap import percentiles


def along(table: pd.DataFrame, members: dict[str, list[str]]) -> pd.DataFrame:
    """The rows of a results table axis by axis, each axis in its order; a classifier on two axes appears on both.

    Raises ValueError naming a classifier of an axis that the table does not have.
    """
    known = list(table["model"].unique())
    for axis, names in members.items():
        for name in names:
            demand(name in known, f"axes.members.{axis}", name, ", ".join(known))
    parts = [table[table["model"] == name].assign(axis=axis) for axis, names in members.items() for name in names]
    return pd.concat(parts, ignore_index=True)


def columns(shares: Shares, names: list[str]) -> list[int]:
    """Where some classifiers stand."""
    return [shares.models.index(name) for name in names]


def drops(errors: Shares) -> Float[np.ndarray, "resamples+1 groups models scales"]:
    """Accuracy at scale 0 minus accuracy at each scale."""
    return errors.samples - errors.samples[..., :1]


def without(members: dict[str, list[str]], names: list[str]) -> dict[str, list[str]]:
    """The axes on which some classifiers stand, without these; an axis of which fewer than two are left is left out."""
    others = {axis: [name for name in own if name not in names] for axis, own in members.items()}
    return {axis: own for axis, own in others.items() if 1 < len(own) < len(members[axis])}


def average_drop(errors: Shares) -> pd.DataFrame:
    """Accuracy drop averaged over all scales, scale 0 included (Table 5, last column), per shift and model. It divides by nothing."""
    return tabulate(drops(errors).mean(-1, keepdims=True), errors, [0]).drop(columns="scale")


def average_accuracy(errors: Shares) -> pd.DataFrame:
    """Accuracy averaged over all scales, scale 0 included (Table 5), per shift and model."""
    return tabulate(1 - errors.samples.mean(-1, keepdims=True), errors, [0]).drop(columns="scale")


def guarded(errors: Shares, *, reference: str) -> pd.DataFrame:
    """What rCE divides by: the reference model's drops summed over the scales, per shift, and whether they are `defined`.

    Which shifts count is said by `accuracy.RULE`.
    """
    sums = drops(errors)[:, :, [model_index(errors, reference)]].sum(-1, keepdims=True)
    table = tabulate(sums, errors, [0], models=[reference]).drop(columns="scale").iloc[:-1]
    ratio = relative_corruption_error(errors, reference=reference)
    own = ratio[(ratio["model"] == reference) & (ratio["shift"] != MEAN)]
    return table.assign(defined=own["defined"].to_numpy())


def relative_errors(errors: Shares, *, reference: str) -> Float[np.ndarray, "resamples+1 models"]:
    """Mean rCE over the defined shifts of every model and resample; NaN where no shift is defined.

    The table of stats.relative_corruption_error has the same estimates; differences of models need the resamples. A resample
    whose denominator is not positive divides by TINY, so that a difference is practically infinite and keeps its sign.
    """
    defined = guarded(errors, reference=reference)["defined"].to_numpy()
    if not defined.any():
        return np.full(errors.samples.shape[:3:2], np.nan)
    sums = drops(errors)[:, :-1][:, defined].sum(-1)
    return (sums / np.maximum(sums[:, :, [model_index(errors, reference)]], TINY)).mean(1)


def deviation_between(values: Float[np.ndarray, "resamples+1 models"]) -> Float[np.ndarray, "resamples+1"]:
    """Standard deviation of a measure over the models, without what chance adds to it; 0 where chance explains all of it.

    Models that are equally good differ by chance, the more the fewer the images. The mean variance of the centred values over the
    resamples estimates that part; it is subtracted once from the sample, and twice from a resample, which repeats it.
    """
    centred = values - values.mean(-1, keepdims=True)
    degrees = values.shape[-1] - 1
    chance = np.nanvar(centred[1:], axis=0).sum() / degrees
    variance = (centred**2).sum(-1) / degrees - chance * np.where(np.arange(len(values)) > 0, 2, 1)
    return np.sqrt(np.maximum(variance, 0))


def deviations_along(errors: Shares, members: dict[str, list[str]]) -> pd.DataFrame:
    """How far apart the classifiers of each axis are in average drop over all shifts, in accuracy: one record per axis."""
    average = drops(errors).mean(-1)[:, -1]
    values = np.stack([deviation_between(average[:, columns(errors, names)]) for names in members.values()], axis=-1)
    low, high = percentiles(values[1:], errors.confidence)
    estimates = {"estimate": values[0], "low": np.minimum(low, values[0]), "high": np.maximum(high, values[0])}
    return pd.DataFrame({"axis": list(members), "n": errors.n[-1], **estimates})


def stands_out(errors: Shares, members: dict[str, list[str]], axis: str) -> bool:
    """Whether the classifiers of one axis differ more than those of every other axis, with certainty: paired intervals above zero."""
    average = drops(errors).mean(-1)[:, -1]
    values = {key: deviation_between(average[:, columns(errors, names)]) for key, names in members.items()}
    others = np.stack([values[axis] - value for key, value in values.items() if key != axis], axis=-1)
    return bool((percentiles(others[1:], errors.confidence)[0] > 0).all())


def compared(table: pd.DataFrame, published: pd.DataFrame, *, column: str) -> pd.DataFrame:
    """A results table along the axes beside the paper's numbers for its counterparts, with difference, rule and verdict.

    `published` has the columns axis, classifier and the named one. CE and rCE have a direction seen from their reference's 1; levels
    of accuracy and drop have none. A relative of another kind is not compared, nor is one with a published number that says nothing
    (`UNUSABLE`); the column `caution` of `published`, where there is one, names these.
    """
    beside = published.rename(columns={"classifier": "model", column: "published"}).dropna(subset=["model", "published"])
    beside = beside.reindex(columns=["axis", "model", "published", "caution"]).fillna({"caution": ""})
    both = table.merge(beside, on=["axis", "model"], how="inner")
    null = [None if caution == UNUSABLE else NULLS.get(column) for caution in both["caution"]]
    both = verdicts.beside(both, both["published"], null=null, stand_in=both["model"].isin(OTHER_KIND))
    return both[["axis", "model", "ours", "low", "high", "n", "published", "difference", "rule", "verdict", "smallest", "caution"]]


def comparable(published: pd.DataFrame) -> pd.DataFrame:
    """The rows of a list of relatives without those of another kind."""
    return published[~published["classifier"].isin(OTHER_KIND)]


def order_agreement(
    values: Float[np.ndarray, "resamples+1 models"], errors: Shares, published: pd.DataFrame, *, column: str
) -> pd.DataFrame:
    """Spearman's correlation of a measure with the paper's for the counterparts along each axis, with n of classifiers and interval.

    Relatives of another kind are left out.
    """
    rows, known = [], comparable(published)[lambda table: table["classifier"].isin(errors.models)]
    for axis, part in known.dropna(subset=[column]).groupby("axis", sort=False):
        ranks = pd.DataFrame(values[:, columns(errors, part["classifier"].tolist())]).rank(axis=1)
        rho = ranks.corrwith(part[column].rank().set_axis(ranks.columns), axis=1).to_numpy()
        rows.append({"axis": axis, "measure": column, **bootstrap.correlation(rho, len(part), errors.confidence)})
    return pd.DataFrame(rows)


NULLS = {"CE": 1.0, "rCE": 1.0}  # from where a measure has a direction; levels of accuracy and drop have none in common
OTHER_KIND = ("mixer",)  # relatives that mix otherwise than the paper's classifier: an MLP-Mixer is no state-space model
UNUSABLE = "wrong preprocessing"  # caution of a published number that was measured so
LEAST = 4  # classifiers that a comparison of averages or lines needs
ROLES = ("architecture", "pre-training")  # axes whose names for the paper's classifiers are those of the list of claims
ALONE = {"dino": "dinov1_ft_vit_base_patch16"}  # has a role in the claims, but no relative


def themselves(table: pd.DataFrame, models: list[str], names: dict[str, str]) -> pd.DataFrame:
    """A list of relatives (columns that are keys of `names`) with the paper's classifiers (values) wherever these were evaluated.

    A note or a caution on a relative that is replaced is dropped, as it tells how the two differ.
    """
    table = table.copy()
    for own, paper in names.items():
        there = table[paper].isin(models)
        table[own] = table[own].where(~there, table[paper])
        for text in {"note", "caution"} & set(table):
            table[text] = table[text].where(~there, "")
    return table


def stand_ins(published: pd.DataFrame, parameters: pd.Series) -> pd.DataFrame:
    """Who stands for whom along each axis, for a reader: both classifiers' numbers of weights and the note, empty where there is none.

    `published` is `published/axes.csv` as `themselves` gives it, `parameters` the numbers of weights of those that were evaluated;
    others are left out, and a classifier of the paper without a relative stays.
    """
    here = published["classifier"].isna() | published["classifier"].isin(parameters.index)
    shown = published.loc[here, ["axis", "classifier", "paper_model", "parameters_millions", "note"]]
    counts = shown["classifier"].map(parameters).astype("Int64").astype(str).replace("<NA>", "")
    shown.insert(2, "parameters", counts)
    return shown.set_index(["axis", "classifier"]).fillna("")


def roles(axes: pd.DataFrame, models: list[str]) -> dict[str, str]:
    """Who plays each role of the claims ("convnext", "deit"): the paper's classifier where it was evaluated, else its relative.

    `axes` is `published/axes.csv`: axis, classifier, paper_model.
    """
    listed = axes[axes["axis"].isin(ROLES)].dropna(subset=["classifier"])
    replaced = themselves(listed, models, {"classifier": "paper_model"})
    alone = {role: name for role, name in ALONE.items() if name in models}
    return dict(zip(listed["classifier"], replaced["classifier"], strict=True)) | alone


def claims(listed: pd.DataFrame, played: dict[str, str]) -> pd.DataFrame:
    """The list of claims with the classifiers that play its roles; names of shifts and unknown roles stay.

    A relative of another kind is left out of a list of several. Where it is the first, or all that the first is compared with, the
    claim has the kind "none", and its rule says why.
    """
    named = {side: [[played.get(name, name) for name in cell.split("; ")] for cell in listed[side]] for side in ("first", "second")}
    other = np.array([any(set(cell) <= set(OTHER_KIND) for cell in both) for both in zip(*named.values(), strict=True)], bool)
    cells = {side: ["; ".join(name for name in cell if name not in OTHER_KIND) for cell in rows] for side, rows in named.items()}
    closed = {"kind": "none", "rule": verdicts.STAND_IN}
    return listed.assign(**cells, **{name: listed[name].mask(other, text) for name, text in closed.items()})


def alike(ours: pd.DataFrame, published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables (a row per classifier) with the classifiers that they share; as they are where they share fewer than `LEAST`."""
    shared = [name for name in published.index if name in ours.index]
    return (ours.loc[shared], published.loc[shared]) if len(shared) >= LEAST else (ours, published)


def restricted(errors: Shares, models: list[str]) -> Shares:
    """The same shares for those classifiers that are among `models`, in their order."""
    chosen = [name for name in errors.models if name in set(models)]
    if chosen == errors.models:
        return errors
    places = [errors.models.index(name) for name in chosen]
    return replace(errors, models=chosen, samples=errors.samples[:, :, places])


def same(errors: Shares, published: pd.DataFrame) -> Shares:
    """The shares of the classifiers that a published table (a row per classifier) has too, as `alike` chooses them."""
    ours, _ = alike(pd.DataFrame(index=errors.models), published)
    return restricted(errors, list(ours.index))


def beside(single: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Published values of single classifiers (index shift, column model) with our numbers: that classifier's own, else the mean's.

    `table` has the columns shift, model, n, estimate, low and high; the column `ours of` says whose they are. A shift that it lacks is
    left out.
    """
    own = table.set_index(["shift", "model"])
    whose = [model if (shift, model) in own.index else MEAN_MODEL for shift, model in zip(single.index, single["model"], strict=True)]
    rows = own.reindex(pd.MultiIndex.from_arrays([single.index, whose]))
    numbers = {name: rows[name].to_numpy() for name in ("n", "estimate", "low", "high")}
    return single.assign(**{"ours of": whose}, **numbers).dropna(subset="estimate")
