"""What Control+Shift found (sections 4.2 and 4.3), each finding one number with its interval and what it says about the paper's.

All numbers come from the same resamples of (class, seed), which all classifiers share, so differences of classifiers are paired.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Float

from cnslib import axes, degradation, latentsets, lessons, orders, stats, tables, units
from cnslib.encoders import ImageEncoder
from cnslib.stats import ALL, Bootstrap, Outcomes, Shares, percentiles
from cnslib.studies import Controlshift

AUGMENTED = " + RandAugment"
CONVOLUTIONAL = ("resnet20", "vgg", "densenet", "resnext")
SPACES = ("pixel", "feature")
distance_schema = tables.schema(tables.KEY, {**tables.IDENTITY, **{space: pa.Column(float, pa.Check.ge(0)) for space in SPACES}})
Values = Float[np.ndarray, "resamples+1"]


def distances(sets: Path, shifted: Controlshift, encoder: ImageEncoder, path: Path) -> pd.DataFrame:
    """Distance of every test image from its nearest training image, in pixels and in an encoder's features (Eq. 3).

    Pixel values lie in [0, 1]; features have length 1. Made where the file is missing or outdated.
    """
    files = [units.file_digest(file) for file in sorted(sets.glob("*.parquet"))]
    made_from = units.digest(files, encoder.digest, units.code_digest(sys.modules[__name__], degradation, latentsets))
    if not units.done(path, made_from):
        groups = {"truncation": ("truncation",), "half sphere": lessons.ON_SPHERE}
        parts = [from_training(sets, shifted, encoder, training, kinds) for training, kinds in groups.items()]
        tables.write(pd.concat(parts, ignore_index=True), path, distance_schema)
        units.finish(path, made_from)
    return tables.read(path, distance_schema)


def from_training(sets: Path, shifted: Controlshift, encoder: ImageEncoder, training: str, kinds: tuple[str, ...]) -> pd.DataFrame:
    """Distances of the test images of some shifts from one training set."""
    table = latentsets.test_set(sets, shifted, kinds)
    known, asked = (tables.pictures(one, "images") for one in (latentsets.load(sets, *lessons.SETS[training]), table))
    spaces = {"pixel": lessons.flat, "feature": lambda pictures: encoder.features(pictures).double().numpy()}
    return table[tables.KEY].assign(**{space: degradation.nearest(seen(known), seen(asked)) for space, seen in spaces.items()})


def standard(answers: pd.DataFrame) -> Outcomes:
    """The first run of every classifier on the standard training sets; those with augmentation have names of their own."""
    rows = answers[(answers["run"] == 1) & answers["training"].isin(["truncation", "half sphere"])]
    model = rows["network"] + np.where(rows["augmented"], AUGMENTED, "")
    return stats.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model))


def by_set(answers: pd.DataFrame, reference: str, *, settings: Bootstrap) -> Shares:
    """Errors of one network trained on the half sphere, on twice as many images of it, and on the whole sphere; runs are averaged."""
    rows = answers[(answers["network"] == reference) & ~answers["augmented"] & (answers["training"] != "truncation")]
    model = rows["training"] + " " + rows["run"].astype(str)
    errors = stats.error_shares(stats.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model)), settings=settings)
    names = sorted(set(rows["training"]))
    places = [[i for i, model in enumerate(errors.models) if model.rsplit(" ", 1)[0] == name] for name in names]
    samples = np.stack([errors.samples[:, :, place].mean(2) for place in places], 2)
    return Shares(samples, errors.groups, errors.n, names, errors.bins, errors.confidence)


def drop(errors: Shares, model: str, group: str = ALL) -> Values:
    """Accuracy drop of one classifier averaged over the steps above 0."""
    samples = errors.samples[:, errors.groups.index(group), errors.models.index(model)]
    return (samples[:, 1:] - samples[:, :1]).mean(1)


def steepness(found: Outcomes, distances: pd.DataFrame, *, space: str, settings: Bootstrap) -> Shares:
    """Robustness slopes with their resamples, one bin; `space` says in which distance."""
    change, away, errors = degradation.along(found, distances.rename(columns={space: "distance"}), settings=settings)
    return Shares(degradation.slope(away, change)[..., None], errors.groups, errors.n, errors.models, [0.0], errors.confidence)


def mean_slope(slopes: Shares, models: list[str], group: str = ALL) -> Values:
    """Slopes averaged over some classifiers."""
    return slopes.samples[:, slopes.groups.index(group), axes.columns(slopes, models), 0].mean(1)


def findings(errors: Shares, slopes: Shares, sets: Shares) -> dict[str, dict]:
    """Every finding as a record, oriented so that the paper's direction is positive."""
    plain = [name for name in errors.models if AUGMENTED not in name]
    augmented = [name for name in errors.models if AUGMENTED in name]
    partners = [name.removesuffix(AUGMENTED) for name in augmented]
    weak = [name for name in plain if name not in CONVOLUTIONAL]
    strong = [name for name in plain if name in CONVOLUTIONAL]
    values = {
        "decline": mean_drop(errors, plain),
        "augmented": mean_drop(errors, augmented),
        "augmentation": mean_slope(slopes, augmented) - mean_slope(slopes, partners),
        "size": drop(sets, "half sphere") - drop(sets, "large"),
        "support": drop(sets, "large") - drop(sets, "full support"),
        "bias": mean_slope(slopes, strong) - mean_slope(slopes, weak),
    }
    return {name: record(own, errors) for name, own in values.items()}


def mean_drop(errors: Shares, models: list[str]) -> Values:
    """Accuracy drop at the last step, averaged over some classifiers."""
    samples = errors.samples[:, errors.groups.index(ALL), axes.columns(errors, models)]
    return (samples[..., -1] - samples[..., 0]).mean(1)


def record(values: Values, errors: Shares) -> dict:
    """A number with its resamples as a record; n counts trajectories."""
    low, high = percentiles(values[1:], errors.confidence)
    return {"n": int(errors.n[-1]), "estimate": float(values[0]), "low": float(low), "high": float(high)}


def against(found: dict[str, dict], published: pd.DataFrame) -> pd.DataFrame:
    """Our numbers beside the paper's statements (id, finding, quantity, published): "above 0", or a bound that it names.

    A statement "no effect" can only be contradicted or not: an interval around 0 leaves it undecided how small the effect is.
    """
    table = published.set_index("id").loc[list(found)]
    ours = pd.DataFrame(found).T
    expected = pd.to_numeric(table["published"], errors="coerce").fillna(0.0)
    none = table["published"] == "no effect"
    cases = [none & (ours["low"] <= 0) & (ours["high"] >= 0), none, ours["low"] > 0, ours["high"] < 0]
    verdict = np.select(cases, ["not contradicted", "contradicted", "holds", "opposite"], "undecided")
    return table[["finding", "quantity", "published"]].join(ours).assign(difference=ours["estimate"] - expected, verdict=verdict)


def bridge(
    found: Outcomes, distances: pd.DataFrame, benchmark: Shares, *, space: str, reference: str, settings: Bootstrap
) -> dict[str, dict]:
    """Kendall's tau between the classifiers' order by robustness slope, per shift, and that by mean rCE on the benchmark.

    1: who loses little there loses little here. The two have no picture in common; give them resamples of different seeds.
    """
    slopes = steepness(found, distances, space=space, settings=settings)
    chosen = axes.columns(benchmark, slopes.models)
    ratios = axes.relative_errors(benchmark, reference=reference)[:, chosen]
    n = min(slopes.n[-1], benchmark.n[-1])
    return {group: orders.tau_record(-slopes.samples[:, i, :, 0], ratios, n, settings.confidence) for i, group in enumerate(slopes.groups)}
