"""IoU, mIoU, failures and shares on the foreground from stored counts, with intervals; and what XIMAGENET-12 says of them.

A trajectory is one image under one scenario, which stands in the column `shift`; its severity stands in `scale`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import spearmanr

from cnslib import published, stats, tables
from cnslib.config import Bootstrap
from cnslib.segmentation import BACKGROUND, LABELS
from cnslib.stats import Outcomes, Shares
from cnslib.studies import NETWORKS, Segmentation

ON_BACKGROUND = ("grey", "red", "green", "blue", "rainbow", "bright background", "blurred background", "segmented", "random background")
SCENARIOS = {  # as Table 3 calls them; its AI-generated background has no counterpart here
    "blur_background": "blurred background",
    "blur_object": "blurred object",
    "image_g": "green",
    "image_b": "blue",
    "image_grey": "grey",
    "image_r": "red",
    "segmented_image": "segmented",
}
MODELS = {"pspnet_r50-d8": "PSPNet", "fpn_r50": "FPN"}  # beside DeepLabV3Plus, which is the table's reference
KEYS = ["model", *tables.KEY]
Values = Float[np.ndarray, "trajectories models scales"]


def images(counts: pd.DataFrame, *, settings: Segmentation) -> pd.DataFrame:
    """Per network and image: IoU of the garment's label, IoU of the foreground whatever its label, and whether the first is enough.

    Pixels of all other labels are foreground. Where the IoU is below `overlap` the answer `top1` is the background.
    """
    own = counts[counts["label"] == counts["class"]].set_index(KEYS)
    ground = counts[counts["label"] == BACKGROUND].set_index(KEYS).reindex(own.index, fill_value=0)
    whole = (
        counts.groupby(KEYS)[["intersection", "union"]].sum().sum(axis=1).reindex(own.index) / 2
    )  # all pixels: each miss is in two unions
    table = pd.DataFrame({"iou": own["intersection"] / own["union"]})
    table["foreground"] = (whole - ground["union"]) / (whole - ground["intersection"])
    table = table.reset_index()
    return table.assign(top1=np.where(table["iou"] >= settings.overlap, table["class"], BACKGROUND))


def arranged(found: Outcomes, rows: pd.DataFrame, column: str) -> Values:
    """A column of rows (model, shift, class, seed, scale) in the order of some outcomes; the unshifted rows count in every scenario.

    Missing rows are 0.
    """
    repeated = tables.trajectories(rows, sorted(set(found.trajectories["shift"])))
    wide = repeated.set_index([*tables.TRAJECTORY, "model", "scale"])[column].unstack(["model", "scale"], fill_value=0)
    columns = pd.MultiIndex.from_product([found.models, found.scales])
    ordered = wide.reindex(index=pd.MultiIndex.from_frame(found.trajectories), columns=columns, fill_value=0)
    return ordered.to_numpy(float).reshape(found.wrong.shape)


def means(found: Outcomes, rows: pd.DataFrame, column: str, *, settings: Bootstrap) -> Shares:
    """Mean of a column per scenario, model and severity, with its resamples."""
    return stats.resample(found, arranged(found, rows, column), found.scales, settings=settings)


def table(shares: Shares) -> pd.DataFrame:
    """Estimates with intervals (scenario, model, severity, n, estimate, low, high)."""
    return named(stats.tabulate(shares.samples, shares, shares.bins))


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """A results table whose columns say scenario and severity."""
    return rows.replace({"shift": {stats.ALL: "all scenarios"}}).rename(columns={"shift": "scenario", "scale": "severity"})


def miou(found: Outcomes, counts: pd.DataFrame, *, settings: Bootstrap) -> Shares:
    """mIoU: per label the sum of intersections over that of unions, then the mean over background and the garments asked about."""
    labels = [BACKGROUND, *(name for name in LABELS if name in set(found.trajectories["class"]))]
    ratios = []
    for label in labels:
        rows = counts[counts["label"] == label]
        above, below = (means(found, rows, column, settings=settings) for column in ("intersection", "union"))
        with np.errstate(invalid="ignore"):  # a resample without a label that nobody predicts either
            ratios.append(above.samples / below.samples)
    return Shares(np.nanmean(ratios, axis=0), above.groups, above.n, above.models, above.bins, above.confidence)


def record(values: Float[np.ndarray, "resamples+1"], n: int, *, settings: Bootstrap) -> dict:
    """A value and its resamples as n, estimate, low, high."""
    low, high = stats.percentiles(values[1:], settings.confidence)
    return {"n": int(n), "estimate": float(values[0]), "low": float(low), "high": float(high)}


def effects(shares: Shares, *, settings: Bootstrap) -> pd.DataFrame:
    """Coefficients of Table 3's regression: of a scenario at its end against originals, of a network against the reference.

    In a balanced table with dummies for model, scenario and class they are differences of means.
    """
    samples = shares.samples
    ends = [name for name in SCENARIOS.values() if name in shares.groups]
    places = [shares.groups.index(name) for name in ends]
    kept = np.concatenate([samples[:, places][..., -1], samples[:, places[:1]][..., 0]], 1)  # scenarios, and the originals once
    found = [("scenario", name, (samples[:, g, :, -1] - samples[:, g, :, 0]).mean(1)) for name, g in zip(ends, places, strict=True)]
    reference = shares.models.index(NETWORKS[0])
    others = [name for name in MODELS.values() if name in shares.models]
    found += [("network", name, (kept[:, :, shares.models.index(name)] - kept[:, :, reference]).mean(1)) for name in others]
    return pd.DataFrame([{"of": of, "name": name, **record(values, shares.n[0], settings=settings)} for of, name, values in found])


def table3(found: pd.DataFrame) -> pd.DataFrame:
    """Our coefficients beside the published ones: difference, and a verdict by our interval."""
    rows = published.read("ximagenet12_table3").query("task == 'segmentation'").set_index("variable")["estimate"]
    printed = {ours: rows[f"Image Scenario[{theirs}]"] for theirs, ours in SCENARIOS.items()}
    printed |= {ours: rows[f"Model Name[{theirs}]"] for theirs, ours in MODELS.items()}
    own = found.rename(columns={"estimate": "ours"}).assign(published=found["name"].map(printed))
    inside = own["published"].between(own["low"], own["high"])
    same, decided = own["ours"] * own["published"] > 0, (own["low"] > 0) | (own["high"] < 0)
    cases = [inside, ~decided, same]
    verdict = np.select(cases, ["agrees", "undecided", "same direction"], "opposite direction")
    return own.assign(difference=own["ours"] - own["published"], verdict=verdict)


def miou_beside(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The mIoU of single networks beside the published one (Figure 7), over all images of all scenarios at their ends."""
    printed = pd.read_csv(path).set_index("network")
    printed = printed[printed.index.isin(rows["model"])]
    own = rows[(rows["scenario"] == "all scenarios") & (rows["severity"] == 1)].set_index("model").loc[printed.index]
    own = own.rename(columns={"estimate": "ours"})[["n", "ours", "low", "high"]].assign(published=printed["miou"])
    inside = own["published"].between(own["low"], own["high"])
    verdict = np.select([inside, own["low"] > own["published"]], ["agrees", "higher"], "lower")
    return own.assign(difference=own["ours"] - own["published"], verdict=verdict).reset_index()


def robustness(found: Outcomes, share: Shares, *, settings: Bootstrap) -> tuple[np.ndarray, np.ndarray]:
    """Per classifier, with resamples: share on the foreground of originals, and drop of accuracy over the background's scenarios."""
    errors = stats.error_shares(found, settings=settings)
    places = [errors.groups.index(name) for name in ON_BACKGROUND]
    drop = (errors.samples[..., -1] - errors.samples[..., 0])[:, places].mean(1)
    return share.samples[:, places[0], :, 0], drop


def points(shares: np.ndarray, drops: np.ndarray, models: list[str], n: int, *, settings: Bootstrap) -> pd.DataFrame:
    """Both as a table: (model, n, share, drop) with intervals of each."""
    columns = {"model": models, "n": n}
    for name, values in (("share", shares), ("drop", drops)):
        low, high = stats.percentiles(values[1:], settings.confidence)
        columns |= {name: values[0], f"{name} low": low, f"{name} high": high}
    return pd.DataFrame(columns)


def correlation(first: np.ndarray, second: np.ndarray, *, settings: Bootstrap) -> dict:
    """Spearman's rank correlation over classifiers; images and classifiers are resampled together. n counts classifiers."""
    generator = np.random.default_rng(settings.seed)
    count = first.shape[1]
    picks = generator.integers(count, size=(len(first) - 1, count))
    pairs = [(first[0], second[0]), *((a[pick], b[pick]) for a, b, pick in zip(first[1:], second[1:], picks, strict=True))]
    return record(np.array([spearmanr(a, b).statistic for a, b in pairs]), count, settings=settings)
