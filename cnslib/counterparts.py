"""The paper's classifiers beside those that were evaluated: relatives in the mini world, themselves on the authors' own data.

A comparison with the paper is between like and like where its own classifiers were evaluated: each takes its relative's place in the
lists of `published/`, and averages on both sides run over the same classifiers.
"""

from dataclasses import replace

import pandas as pd

from cnslib.stats import Shares

LEAST = 4  # classifiers that a comparison of averages or lines needs
ROLES = ("architecture", "pre-training")  # axes whose names for the paper's classifiers are those of the list of claims
ALONE = {"dino": "dinov1_ft_vit_base_patch16"}  # has a role in the claims, but no relative


def themselves(table: pd.DataFrame, models: list[str], names: dict[str, str]) -> pd.DataFrame:
    """A list of relatives (columns that are keys of `names`) with the paper's classifiers (values) wherever these were evaluated.

    A note on a relative that is replaced is dropped, as it tells how the two differ.
    """
    table = table.copy()
    for own, paper in names.items():
        there = table[paper].isin(models)
        table[own] = table[own].where(~there, table[paper])
        if "note" in table:
            table["note"] = table["note"].where(~there, "")
    return table


def roles(axes: pd.DataFrame, models: list[str]) -> dict[str, str]:
    """Who plays each role of the claims ("convnext", "deit"): the paper's classifier where it was evaluated, else its relative.

    `axes` is `published/axes.csv`: axis, classifier, paper_model.
    """
    listed = axes[axes["axis"].isin(ROLES)].dropna(subset=["classifier"])
    replaced = themselves(listed, models, {"classifier": "paper_model"})
    alone = {role: name for role, name in ALONE.items() if name in models}
    return dict(zip(listed["classifier"], replaced["classifier"], strict=True)) | alone


def claims(listed: pd.DataFrame, played: dict[str, str]) -> pd.DataFrame:
    """The list of claims with the classifiers that play its roles; names of shifts and unknown roles stay."""
    sides = {side: listed[side].str.split("; ") for side in ("first", "second")}
    return listed.assign(**{side: ["; ".join(played.get(name, name) for name in cell) for cell in cells] for side, cells in sides.items()})


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


def beside(single: pd.DataFrame, each: pd.Series, mean: pd.Series) -> pd.DataFrame:
    """Published values of single classifiers (index shift, column model) with ours: that classifier's own, else the mean.

    `each` has the index (shift, model), `mean` the index shift; the column `ours of` says which of the two it is. A shift that
    neither has is left out.
    """
    keys = list(zip(single.index, single["model"], strict=True))
    values = [each.get(key, mean.get(key[0])) for key in keys]
    whose = [key[1] if key in each.index else "mean over classifiers" for key in keys]
    return single.assign(ours=pd.Series(values, single.index, dtype=float), **{"ours of": whose}).dropna(subset="ours")
