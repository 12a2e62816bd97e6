"""Multiple linear regression of right answers on model, scenario and class (XIMAGENET-12, section 5.2, Table 3).

The paper takes all answers as independent. One object gives many answers, so here errors are clustered by object; a mixed model with a
random intercept per object, which tells easy objects from hard ones, stands beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.formula.api as formulas

from cnslib.core.names import UNSHIFTED
from cnslib.data import published
from cnslib.stats import verdicts
from cnslib.studies.scenarios.scenarios import SUMMED

FORMULA = "right ~ model + scenario + label"
WITHOUT_LABEL = "right ~ model + scenario"  # for a set with almost as many classes as objects
# Our scenarios by the variables of Table 3; the paper's random background is the saturating sum of its code.
VARIABLES = {
    "blurred background": "blur_background",
    "blurred object": "blur_object",
    "green": "image_g",
    "blue": "image_b",
    "grey": "image_grey",
    "red": "image_r",
    SUMMED: "Random Background with Real Environment",
    "segmented": "Segmented_image",
}


@dataclass(frozen=True)
class Fit:
    """The coefficients of both regressions, and the share of the remaining variance that belongs to the object alone."""

    clustered: pd.DataFrame
    mixed: pd.DataFrame
    share: float


def fit(replies: pd.DataFrame, scenarios: Iterable[str], formula: str, *, confidence: float) -> Fit:
    """Both regressions of a set of answers, its first model by name as the reference."""
    table = cases(replies, list(scenarios), reference=min(replies["model"]))
    beside, parts = mixed(table, formula, groups="object", confidence=confidence)
    clustered = linear(table, formula, groups="object", confidence=confidence)
    return Fit(clustered, beside, parts["group"] / (parts["group"] + parts["residual"]))


def side_by_side(found: Fit) -> pd.DataFrame:
    """Both regressions, a row per coefficient."""
    ways = {"clustered": found.clustered, "mixed": found.mixed}
    return pd.concat({name: own.set_index("variable") for name, own in ways.items()}, axis=1)


def of_scenarios(fits: dict[str, Fit]) -> pd.DataFrame:
    """The coefficients of the scenarios of every set and both regressions, as one long table with the columns set and scenario."""
    parts = [
        own.assign(regression=way, set=name)
        for name, found in fits.items()
        for way, own in {"clustered": found.clustered, "mixed": found.mixed}.items()
    ]
    rows = pd.concat(parts)
    rows["scenario"] = rows["variable"].str.extract(r"scenario\[(.*)\]", expand=False)
    return rows.dropna(subset="scenario")


def cases(replies: pd.DataFrame, scenarios: list[str], *, reference: str) -> pd.DataFrame:
    """One row per answer at severity 1 and on originals (right, model, scenario, label, object), reference levels first."""
    rows = replies[replies["shift"].isin(scenarios) & (replies["scale"] == 1) | (replies["shift"] == UNSHIFTED)]
    models = [reference, *sorted(set(rows["model"]) - {reference})]
    table = pd.DataFrame(
        {
            "right": (rows["top1"] == rows["class"]).astype(float),
            "model": pd.Categorical(rows["model"], models),
            "scenario": pd.Categorical(rows["shift"], [UNSHIFTED, *scenarios]),
            "label": rows["class"].to_numpy(),
            "object": rows.groupby(["class", "seed"]).ngroup(),
        }
    )
    return table.reset_index(drop=True)


def linear(table: pd.DataFrame, formula: str, *, groups: str | None, confidence: float) -> pd.DataFrame:
    """Ordinary least squares, a row per coefficient (variable, n, estimate, low, high, p).

    Standard errors are clustered by a column, with the usual small-sample factor and t of (clusters - 1), or, without one, of
    independent cases as in R's lm. n counts clusters, or cases.
    """
    model = formulas.ols(formula, table)
    if groups is None:
        return coefficients(model.fit(), len(table), confidence=confidence)
    codes = pd.factorize(table[groups])[0]
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    return coefficients(fitted, codes.max() + 1, confidence=confidence)


def mixed(table: pd.DataFrame, formula: str, *, groups: str, confidence: float) -> tuple[pd.DataFrame, dict[str, float]]:
    """A linear mixed model with a random intercept per group, by REML as R's lmer: coefficients, and the two variances."""
    codes = pd.factorize(table[groups])[0]
    fitted = formulas.mixedlm(formula, table, groups=codes).fit(reml=True)
    found = coefficients(fitted, codes.max() + 1, confidence=confidence)
    found = found[found["variable"] != "Group Var"].reset_index(drop=True)
    return found, {"group": float(np.asarray(fitted.cov_re)[0, 0]), "residual": float(fitted.scale)}


def coefficients(fitted, n: int, *, confidence: float) -> pd.DataFrame:
    """The coefficients of a fitted model with intervals and p values, named as in Table 3: variable[level].

    A scenario that changes no answer has a variance of zero, which rounding can take below: its interval is a point then.
    """
    bounds = fitted.conf_int(alpha=1 - confidence).apply(lambda side: side.fillna(fitted.params))
    names = [name.replace("[T.", "[") for name in fitted.params.index]
    numbers = {"estimate": fitted.params, "low": bounds[0], "high": bounds[1], "p": fitted.pvalues}
    return pd.DataFrame({"variable": names, "n": n} | {key: own.to_numpy() for key, own in numbers.items()})


def against_table3(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Our scenario coefficients, per set of objects, beside Table 3's for classification; ours have intervals, the printed ones none."""
    printed = published.read("ximagenet12_table3").query("task == 'classification'").set_index("variable")["estimate"]
    parts = []
    for name, table in found.items():
        own = table.set_index("variable").loc[[f"scenario[{scenario}]" for scenario in VARIABLES]].reset_index(drop=True)
        theirs = [printed[f"Image Scenario[{variable}]"] for variable in VARIABLES.values()]
        rows = own.assign(set=name, scenario=list(VARIABLES))[["set", "scenario", "n", "estimate", "low", "high"]]
        parts.append(verdicts.beside(rows, theirs))
    return pd.concat(parts, ignore_index=True)
