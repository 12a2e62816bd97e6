"""What XIMAGENET-12 concludes (sections 5.2 and 6, Table 3), tested on our predictions with intervals.

The paper's random background is the saturating sum that its code makes, so its numbers stand beside our summed background. Table 3
regresses correct predictions on model, scenario and class and takes them all as independent; one object gives many predictions, so
here errors are clustered by object.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import statsmodels.formula.api as formulas

from cnslib.core.names import UNSHIFTED
from cnslib.data import published
from cnslib.stats import ranking, verdicts
from cnslib.studies import published as implied
from cnslib.studies.scenarios import score
from cnslib.studies.scenarios.scenarios import FOLDERS, SUMMED, TABLE1
from cnslib.studies.scenarios.score import Accuracies

FORMULA = "right ~ model + scenario + label"
WITHOUT_LABEL = "right ~ model + scenario"  # for a set with almost as many classes as objects
RANDOM, SEGMENTED = "random background", "segmented"
TESTED = [SUMMED if name == RANDOM else name for name in TABLE1]  # what the paper tested in EX1
COLOURS_AND_BLURS = [name for name in TABLE1 if name not in (RANDOM, SEGMENTED)]
MARGIN = 0.05  # a loss of accuracy below this counts as none
CROSS, INNER = implied.REGIMES


def cases(predictions: pd.DataFrame, scenarios: Iterable[str], *, reference: str) -> pd.DataFrame:
    """One row per prediction at severity 1 and on originals (right, model, scenario, label, object), reference levels first."""
    scenarios = list(scenarios)
    rows = predictions[predictions["shift"].isin(scenarios) & (predictions["scale"] == 1) | (predictions["shift"] == UNSHIFTED)]
    table = {
        "right": (rows["top1"] == rows["class"]).astype(float),
        "model": pd.Categorical(rows["model"], [reference, *sorted(set(rows["model"]) - {reference})]),
        "scenario": pd.Categorical(rows["shift"], [UNSHIFTED, *scenarios]),
        "label": rows["class"].to_numpy(),
        "object": rows.groupby(["class", "seed"]).ngroup(),
    }
    return pd.DataFrame(table).reset_index(drop=True)


def regression(table: pd.DataFrame, formula: str, *, groups: str | None, confidence: float) -> pd.DataFrame:
    """Ordinary least squares, a row per coefficient (variable, n, estimate, low, high, p): Table 3.

    Standard errors are clustered by a column, with the usual small-sample factor and t of (clusters - 1), or, without one, of
    independent cases as in R's lm. n counts clusters, or cases. Where no prediction changes, rounding can take a variance below zero.
    """
    model, n = formulas.ols(formula, table), len(table)
    if groups:
        codes = pd.factorize(table[groups])[0]
        fitted, n = model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True), codes.max() + 1
    else:
        fitted = model.fit()
    bounds = fitted.conf_int(alpha=1 - confidence).apply(lambda side: side.fillna(fitted.params))
    names = [name.replace("[T.", "[") for name in fitted.params.index]
    numbers = {"estimate": fitted.params, "low": bounds[0], "high": bounds[1], "p": fitted.pvalues}
    return pd.DataFrame({"variable": names, "n": n} | {key: value.to_numpy() for key, value in numbers.items()})


def table3(task: str) -> pd.DataFrame:
    """The printed coefficients (estimate, summary) for classification or segmentation, by our names; the paper has no intervals."""
    table = published.read("ximagenet12_table3").query("task == @task")
    ours = {f"image scenario[{theirs}]": name for name, theirs in FOLDERS.items()}
    ours["image scenario[random background with real environment]"] = SUMMED
    ours |= {"model name[pspnet_r50-d8]": "PSPNet", "model name[fpn_r50]": "FPN"}
    return table.set_index(table["variable"].str.lower().map(ours))[["estimate", "summary"]].loc[lambda rows: rows.index.notna()]


def worst(found: Accuracies, set_name: str) -> dict:
    """Conclusion 1: how much more accuracy the random background costs than the next worst scenario of Table 1, mean over models."""
    others = [name for name in TESTED if name != SUMMED]
    second = others[int(found.drops(others)[0].mean(0).argmax())]
    printed = pd.DataFrame(implied.rows("ximagenet12_table1", "accuracy_percent"), index=published.SCENARIOS).T
    mean = printed.xs(CROSS, level=1).mean()
    quantity = f"{set_name}, EX1: loss by the summed background minus that by the next worst ({second})"
    drops = found.drops([SUMMED, second])
    theirs = float(mean.drop("random_background").min() - mean["random_background"])
    return line("conclusion 1; Table 1", quantity, found.record(drops[..., 0] - drops[..., 1]), theirs, null=0.0)


def line(source: str, quantity: str, ours: dict, theirs: float, *, null: float) -> dict:
    """One test: where the claim stands, our statistic as a record, the published one, and the null from which its direction is seen."""
    return {"claim": source.partition(";")[0], "quantity": quantity, **ours, "published": theirs, "null": null, "source": source}


def without_background(found: Accuracies) -> list[dict]:
    """Conclusion 2: accuracy trained and tested on segmented objects, minus that on colours and blurs, and minus that on originals."""
    own = found.of(SEGMENTED)[..., 0]
    printed = pd.DataFrame(implied.rows("ximagenet12_table1", "accuracy_percent"), index=published.SCENARIOS).T.xs(INNER, level=1)
    others = [FOLDERS[name].replace("image_", "color_") for name in COLOURS_AND_BLURS]
    theirs = float((printed["segmented_image"] - printed[others].mean(axis=1)).mean())
    beside, originals = found.record(own - found.of(*COLOURS_AND_BLURS).mean(-1)), found.record(own - found.originals)
    return [
        line("conclusion 2; Table 1", "garments, EX2: segmented minus colours and blurs", beside, theirs, null=-MARGIN),
        line("conclusion 2; section 5.2 says no drop", "garments, EX2: segmented minus originals", originals, 0.0, null=-MARGIN),
    ]


def stable(found: Accuracies, set_name: str) -> list[dict]:
    """Conclusion 3: Kendall's tau of accuracy on originals and stability (minus the cross variance); above 0 where accuracy tells it.

    Published twice: with the accuracy on the same data (each cross row's implied mean), and with ImageNet's, on which the paper rests.
    Not measured where the interval spans all that is possible, as with few models: then nothing could decide it.
    """
    unstable = score.variance(found.of(*TESTED), mean=found.originals, ddof=0)
    tau = ranking.order_record(found.originals, -unstable, found.n, found.confidence)
    null = 0.0 if tau["low"] > -1 or tau["high"] < 1 else np.nan
    means = implied.implied_means().xs(CROSS, level="trained_on")
    table = published.read("ximagenet12_table2_scores").set_index("model")
    steady = -table["variance_cross"].to_numpy()
    theirs = {"the same data": means["mean"].loc[table.index], "ImageNet": table["imagenet_percent"]}
    quantity = f"{set_name}, EX1: Kendall's tau of accuracy and stability, published accuracy on"
    return [
        line("conclusion 3; Table 2", f"{quantity} {name}", tau, float(ranking.kendall(own.to_numpy(), steady)), null=null)
        for name, own in theirs.items()
    ]


def learned(ex1: Accuracies, ex2: Accuracies) -> dict:
    """Section 5.2: EX2 minus EX1 under random backgrounds. Not measured: the paper's gain is one on sums, and ours trained on none."""
    gain = ex1.record((ex2.of(RANDOM) - ex1.of(RANDOM))[..., 0])
    printed = implied.rows("ximagenet12_table1", "accuracy_percent")
    column = published.SCENARIOS.index("random_background")
    both = [model for model, regime in printed if regime == INNER and (model, CROSS) in printed]
    theirs = float(np.mean([printed[model, INNER][column] - printed[model, CROSS][column] for model in both]))
    return line("section 5.2; Table 1", "garments: random background, EX2 minus EX1", gain, theirs, null=np.nan)


def against_paper(garments: Accuracies, trained: Accuracies, photographs: Accuracies) -> pd.DataFrame:
    """Every test as one line, with the claim that it tests. Losses and gains are of accuracies in [0, 1]."""
    lines = [worst(photographs, "photographs"), worst(garments, "garments"), *without_background(trained)]
    lines += [*stable(photographs, "photographs"), *stable(garments, "garments"), learned(garments, trained)]
    table = pd.DataFrame(lines)
    return verdicts.beside(table.drop(columns="null"), table["published"], null=table["null"])
