"""Accuracies per scenario, XIMAGENET-12's robustness score (section 4), and what it concludes (5.2, 6, Table 3), with intervals.

Accuracies are labelled arrays [resample, model, scenario], entry 0 of "resample" the estimate; all come from the same resamples of objects,
so differences are paired. The paper's random background is the saturating sum that its code makes, so its numbers stand beside our summed
background. Table 3's regression takes predictions as independent; here errors are clustered by object.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import statsmodels.formula.api as formulas
import xarray as xr
from jaxtyping import Float

from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.data import published
from cnslib.stats import accuracy, bootstrap, ranking, verdicts
from cnslib.studies.scenarios.subjects import FOLDERS, SUMMED, TABLE1

FORMULA = "right ~ model + scenario + label"
WITHOUT_LABEL = "right ~ model + scenario"  # for a set with almost as many classes as objects
RANDOM, SEGMENTED = "random background", "segmented"
TESTED = [SUMMED if name == RANDOM else name for name in TABLE1]  # what the paper tested in EX1
COLOURS_AND_BLURS = [name for name in TABLE1 if name not in (RANDOM, SEGMENTED)]
MARGIN = 0.05  # a loss of accuracy below this counts as none
CROSS, INNER = "original images", "same scenario"  # how the networks of the paper's rows were trained
ACCURACY = "ximagenet12_table1", "accuracy_percent"
DEVIATION = "ximagenet12_table2", "squared_deviation_percent"
ROUNDED = 0.5e-4  # half of the last digit of a percentage with two decimals
SLACK = 1e-9  # what binary fractions may add
# How the score can be read: divisor n - ddof, and whether the inner row is measured from the mean of the cross row, as Eq. 2 says.
CONVENTIONS = {"Eqs. 1 to 3": (0, True), "as Table 2 is printed": (1, False)}
Rows = Float[np.ndarray, "*rows scenarios"]
Row = Float[np.ndarray, "*rows"]


def accuracies(predictions: pd.DataFrame, names: Iterable[str], *, settings: Bootstrap) -> xr.DataArray:
    """Accuracy of every model under every scenario at severity 1, and on originals. ValueError where a prediction is missing."""
    names = list(names)
    rows = predictions[predictions["shift"].isin(names) & ((predictions["scale"] == 1) | (predictions["shift"] == UNSHIFTED))]
    marked = rows.assign(right=(rows["top1"] == rows["class"]).astype(float))
    wide = marked.pivot(index=["class", "seed"], columns=["model", "shift"], values="right").sort_index()
    models = sorted(set(rows["model"]))
    wide = wide.reindex(columns=pd.MultiIndex.from_product([models, names]))
    missing = int(wide.isna().sum().sum())
    demand(missing == 0, "missing predictions", missing, "one for every model, scenario and object")
    weights, units = bootstrap.resampling_weights(wide.index.to_frame(index=False), settings=settings)
    weights = weights[:, units]
    samples = (weights @ wide.to_numpy() / weights.sum(1, keepdims=True)).reshape(len(weights), len(models), len(names))
    labels = {"model": models, "scenario": names, "n": len(wide), "confidence": settings.confidence}
    return xr.DataArray(samples, labels, ["resample", "model", "scenario"])


def originals(accuracies: xr.DataArray) -> xr.DataArray:
    """Accuracy on original images: of the classifier that was trained on them, mu."""
    return accuracies.sel(scenario=UNSHIFTED, drop=True)


def losses(accuracies: xr.DataArray, names: Iterable[str]) -> pd.DataFrame:
    """Accuracy lost by each scenario, mean over models, with its interval, the largest first; p by Holm over the scenarios."""
    drops = (originals(accuracies) - accuracies.sel(scenario=list(names))).mean("model").transpose("resample", "scenario")
    table = accuracy.interval(drops).assign(p_holm=bootstrap.holm(pd.Series(ranking.wald(drops.to_numpy()))))
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def variance(accuracy: Rows, *, mean: float | Row, ddof: int) -> Row:
    """Mean squared deviation of accuracies in [0, 1] from `mean` (mu), over n - ddof: Eqs. 1 and 2 with ddof 0."""
    return ((accuracy - np.asarray(mean)[..., None]) ** 2).sum(-1) / (accuracy.shape[-1] - ddof)


def score(cross: Rows, inner: Rows, *, mean_cross: float | Row, mean_inner: float | Row, ddof: int) -> Row:
    """The robustness score (Eq. 3): 1 minus the variances of both experiments. Eq. 2 wants the same mean in both."""
    return 1 - (variance(cross, mean=mean_cross, ddof=ddof) + variance(inner, mean=mean_inner, ddof=ddof))


def scores(ex1: xr.DataArray, ex2: xr.DataArray, names: Iterable[str]) -> pd.DataFrame:
    """The score of every model under each of CONVENTIONS with its interval, and how many others it significantly exceeds (paired).

    Where the inner row has a mean of its own, it is the accuracy of EX2's training on originals. Few objects enlarge both variances,
    resamples once more: that is taken out of them. No bound is above 1.
    """
    parts, confidence = [], ex1["confidence"].item()
    rows = [accuracies.sel(scenario=list(names)).to_numpy() for accuracies in (ex1, ex2)]
    mean, inner_mean = (originals(accuracies).to_numpy() for accuracies in (ex1, ex2))
    for convention, (ddof, shared) in CONVENTIONS.items():
        samples = score(*rows, mean_cross=mean, mean_inner=mean if shared else inner_mean, ddof=ddof)
        samples[1:] -= 2 * (np.nanmean(samples[1:], axis=0) - samples[0])
        low, high = bootstrap.bounds(np.minimum(samples, 1), confidence)
        table = pd.DataFrame({"model": ex1["model"], "convention": convention, "n": ex1["n"].item(), "estimate": np.minimum(samples[0], 1)})
        ahead, _ = bootstrap.bounds(samples[..., None] - samples[:, None], confidence)
        parts.append(table.assign(low=low, high=high, exceeds=(ahead > 0).sum(1)))
    return pd.concat(parts, ignore_index=True)


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


def regression(table: pd.DataFrame, formula: str, *, confidence: float) -> pd.DataFrame:
    """Ordinary least squares, a row per coefficient (variable, n, estimate, low, high, p): Table 3, errors and n clustered by `object`."""
    codes = pd.factorize(table["object"])[0]
    fitted = formulas.ols(formula, table).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    bounds = fitted.conf_int(alpha=1 - confidence).apply(lambda side: side.fillna(fitted.params))
    columns = {"n": codes.max() + 1, "estimate": fitted.params, "low": bounds[0], "high": bounds[1], "p": fitted.pvalues}
    return pd.DataFrame(columns).rename(lambda name: name.replace("[T.", "[")).rename_axis("variable").reset_index()


def table3(task: str) -> pd.DataFrame:
    """The printed coefficients (estimate, summary) for classification or segmentation, by our names; the paper has no intervals."""
    table = published.read("ximagenet12_table3").query("task == @task")
    ours = {f"image scenario[{theirs}]": name for name, theirs in FOLDERS.items()}
    ours["image scenario[random background with real environment]"] = SUMMED
    ours |= {"model name[pspnet_r50-d8]": "PSPNet", "model name[fpn_r50]": "FPN"}
    return table.set_index(table["variable"].str.lower().map(ours))[["estimate", "summary"]].loc[lambda rows: rows.index.notna()]


def printed(regime: str) -> pd.DataFrame:
    """The published accuracies of Table 1, models by scenarios, of the networks trained in one way."""
    return pd.DataFrame(printed_rows(*ACCURACY), index=published.SCENARIOS).T.xs(regime, level=1)


def line(source: str, quantity: str, ours: dict, theirs: float, *, null: float) -> dict:
    """One test: where the claim stands, our statistic as a record, the published one, and the null from which its direction is seen."""
    return {"claim": source.partition(";")[0], "quantity": quantity, **ours, "published": theirs, "null": null, "source": source}


def over_models(values: xr.DataArray) -> dict:
    """The mean over the models as a record."""
    return accuracy.metric(values.mean("model"))


def worst(accuracies: xr.DataArray, set_name: str) -> dict:
    """Conclusion 1: how much more accuracy the random background costs than the next worst scenario of Table 1, mean over models."""
    others = accuracies.sel(scenario=[name for name in TESTED if name != SUMMED])
    second = others[0].mean("model").idxmin("scenario").item()
    mean = printed(CROSS).mean()
    quantity = f"{set_name}, EX1: loss by the summed background minus that by the next worst ({second})"
    theirs = float(mean.drop("random_background").min() - mean["random_background"])
    ours = over_models(others.sel(scenario=second) - accuracies.sel(scenario=SUMMED))
    return line("conclusion 1; Table 1", quantity, ours, theirs, null=0.0)


def without_background(accuracies: xr.DataArray) -> list[dict]:
    """Conclusion 2: accuracy trained and tested on segmented objects, minus that on colours and blurs, and minus that on originals."""
    segmented, table = accuracies.sel(scenario=SEGMENTED), printed(INNER)
    others = table[[FOLDERS[name].replace("image_", "color_") for name in COLOURS_AND_BLURS]].mean(axis=1)
    beside = over_models(segmented - accuracies.sel(scenario=COLOURS_AND_BLURS).mean("scenario"))
    theirs, change = float((table["segmented_image"] - others).mean()), over_models(segmented - originals(accuracies))
    return [
        line("conclusion 2; Table 1", "garments, EX2: segmented minus colours and blurs", beside, theirs, null=-MARGIN),
        line("conclusion 2; section 5.2 says no drop", "garments, EX2: segmented minus originals", change, 0.0, null=-MARGIN),
    ]


def stable(accuracies: xr.DataArray, set_name: str) -> list[dict]:
    """Conclusion 3: Kendall's tau of accuracy on originals and stability (minus the cross variance); above 0 where accuracy tells it.

    Published twice: with the accuracy on the same data (each cross row's implied mean), and with ImageNet's. Not measured where the
    interval spans all that is possible.
    """
    start = originals(accuracies).to_numpy()
    unstable = variance(accuracies.sel(scenario=TESTED).to_numpy(), mean=start, ddof=0)
    tau = ranking.order_record(start, -unstable, accuracies["n"].item(), accuracies["confidence"].item())
    null = 0.0 if tau["low"] > -1 or tau["high"] < 1 else np.nan
    means, table = implied_means().xs(CROSS, level=1), published.read("ximagenet12_table2_scores").set_index("model")
    steady = -table["variance_cross"].to_numpy()
    theirs = {"the same data": means.loc[table.index], "ImageNet": table["imagenet_percent"]}
    quantity = f"{set_name}, EX1: Kendall's tau of accuracy and stability, published accuracy on"
    return [
        line("conclusion 3; Table 2", f"{quantity} {name}", tau, float(ranking.kendall(values.to_numpy(), steady)), null=null)
        for name, values in theirs.items()
    ]


def learned(ex1: xr.DataArray, ex2: xr.DataArray) -> dict:
    """Section 5.2: EX2 minus EX1 under random backgrounds. Not measured: the paper's gain is one on sums, and ours trained on none."""
    gain = over_models(ex2.sel(scenario=RANDOM) - ex1.sel(scenario=RANDOM))
    theirs = float((printed(INNER) - printed(CROSS))["random_background"].mean())  # of the models that it trained in both ways
    return line("section 5.2; Table 1", "garments: random background, EX2 minus EX1", gain, theirs, null=np.nan)


def against_paper(garments: xr.DataArray, trained: xr.DataArray, photographs: xr.DataArray) -> pd.DataFrame:
    """Every test as one line, with the claim that it tests. Losses and gains are of accuracies in [0, 1]."""
    lines = [worst(photographs, "photographs"), worst(garments, "garments"), *without_background(trained)]
    lines += [*stable(photographs, "photographs"), *stable(garments, "garments"), learned(garments, trained)]
    table = pd.DataFrame(lines)
    return verdicts.beside(table.drop(columns="null"), table["published"], null=table["null"])


# What the printed Tables 1 and 2 imply. A printed number stands for all numbers that round to it.


def printed_rows(name: str, column: str) -> dict[tuple[str, str], np.ndarray]:
    """A table of XIMAGENET-12 as one vector per (model, trained on), over the eight scenarios, in [0, 1]."""
    return {
        key: part.set_index("scenario")[column].loc[list(published.SCENARIOS)].to_numpy() / 100
        for key, part in published.read(name).groupby(["model", "trained_on"])
    }


def implied_means() -> pd.Series:
    """The mean that most of the squared deviations in a row (model, trained on) of Table 2 were measured from, up to rounding."""
    accuracy, deviation, grid = printed_rows(*ACCURACY), printed_rows(*DEVIATION), np.linspace(0, 1, 10_001)
    means = {}
    for key, cells in deviation.items():
        away = np.abs(accuracy[key] - grid[:, None])
        fitting = (np.abs(away**2 - cells) <= ROUNDED * (1 + 2 * away) + SLACK).sum(1)
        means[key] = grid[fitting == fitting.max()].mean()
    return pd.Series(means)


def printed_scores() -> pd.DataFrame:
    """XIMAGENET-12's scores (Table 2), printed, and from Table 1: by `cells` and `row_mean` over n - 1, and `as_defined` in Eqs. 1 to 3."""
    accuracy, deviation = printed_rows(*ACCURACY), printed_rows(*DEVIATION)
    means, n = implied_means(), len(published.SCENARIOS)
    table = published.read("ximagenet12_table2_scores").set_index("model")[["score"]].rename(columns={"score": "printed"})
    for model in table.index:
        by_row = sum(((accuracy[model, regime] - means[model, regime]) ** 2).sum() for regime in (CROSS, INNER))
        defined = sum(((accuracy[model, regime] - means[model, CROSS]) ** 2).sum() for regime in (CROSS, INNER))
        cells = sum(deviation[model, regime].sum() for regime in (CROSS, INNER))
        table.loc[model, ["cells", "row_mean", "as_defined"]] = 1 - cells / (n - 1), 1 - by_row / (n - 1), 1 - defined / n
    return table
