"""Health of the sliders: does a larger scale show more of the shift, and does the picture keep its structure (CNS-Bench, appendix H).

Strips are pictures of many sliders at all scales, kept on file. The pilot asks before the training which eta suits each shift.
"""

import dataclasses
import functools
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import PROMPT, SHIFTS, demand, identifier
from cnslib.core.settings.method import Generation, Pilot, Sliders
from cnslib.method import generation
from cnslib.method import sliders as training
from cnslib.method.filtering import RECOGNITION_THRESHOLD
from cnslib.method.sliders import SHIFT_PROMPT
from cnslib.models import adapters
from cnslib.models.encoders import Clip, ImageEncoder, Oracle
from cnslib.models.text_to_image import Origin
from cnslib.stats import bootstrap, gates

SLIDER = ["shift", "class"]
schema = tables.schema(
    tables.KEY,
    {**tables.IDENTITY, "alignment": pa.Column(float), "structure": pa.Column(float, tables.COSINE)},
)
PILOT_COLUMNS = {
    "eta": pa.Column(float),
    "asked": pa.Column(float, pa.Check.in_range(0, 1)),
    "named": pa.Column(bool),
    "kept": pa.Column(bool),
}
pilot_schema = tables.schema(["eta", *tables.KEY], {**tables.IDENTITY, **PILOT_COLUMNS})
WANTED = {"named": 1, "kept": 1, "largest_step": -1}  # criteria of a pilot, and whether more or less of each is wanted


@dataclass(frozen=True)
class Judge:
    """Scores the images of one trajectory with a text-image encoder and an image encoder."""

    clip: Clip
    image_encoder: ImageEncoder

    @property
    def digest(self) -> str:
        """Which two encoders these are."""
        return units.digest(self.clip.digest, self.image_encoder.digest)

    def alignment(self, images: UInt8[np.ndarray, "scales height width 3"], shift: str, name: str) -> Float[Tensor, "scales"]:
        """Cosine with the caption of the shifted class minus cosine with that of the class: what the shift alone adds."""
        plain, shifted = self.clip.text_features([PROMPT.format(token=name), SHIFT_PROMPT.format(token=name, text=f"in {shift}")])
        return self.clip.image_features(images) @ (shifted - plain)

    def structure(self, images: UInt8[np.ndarray, "scales height width 3"], start: int) -> Float[Tensor, "scales"]:
        """Cosine of each image's features with those of the unshifted image, whose place is `start`."""
        features = self.image_encoder.features(images)
        return features @ features[start]


def drawing_settings(settings: Sliders, start_fraction: float) -> Generation:
    """How the report draws: as the benchmark, whose sliders act on the last `start_fraction` of the steps, but in fewer steps."""
    guidance = settings.health_guidance
    return Generation(settings.health_steps, guidance, [0.0, 1.0], [guidance], start_fraction, negative_prompt="", quality=0, side=0)


def report(
    sampler: generation.Sampler, sliders: dict[tuple[str, str], Path], *, scales: list[float], seeds: int, origin: Origin, judge: Judge
) -> pd.DataFrame:
    """One row per (shift, class, seed, scale): alignment with the shift and structure kept, stored beside each slider."""
    shared, folder = (scales, seeds, sampler.settings.recorded(), origin.base, judge.digest), next(iter(sliders.values())).parents[1]
    stamps = {key: recipes.HEALTH.stamp(adapters.file_digest(path), origin.tokens[key[1]], *shared) for key, path in sliders.items()}
    beside = lambda key: sliders[key].relative_to(folder).with_suffix(".parquet").as_posix()  # noqa: E731
    rows = functools.partial(measure, sampler, sliders, scales=scales, seeds=seeds, judge=judge)
    how: dict = {"folder": folder, "device": sampler.pipe.device, "file": beside, "pattern": "*/*.parquet"}
    return workers.stored(stamps, rows, schema, **how)


def measure(
    sampler: generation.Sampler, sliders: dict[tuple, Path], key: tuple[str, str], *, scales: list[float], seeds: int, judge: Judge
) -> pd.DataFrame:
    """The report of one slider."""
    (shift, name), parts = key, []
    for seed in range(1, seeds + 1):
        images = images_of(sampler, sliders[key], name, seed, scales).numpy()
        alignment, structure = judge.alignment(images, shift, name), judge.structure(images, scales.index(0))
        rows = {"scale": [float(scale) for scale in scales], "alignment": alignment.tolist(), "structure": structure.tolist()}
        parts.append(pd.DataFrame(rows).assign(seed=seed))
    return pd.concat(parts).assign(shift=shift, **{"class": name})


def images_of(
    sampler: generation.Sampler, slider: Path, name: str, seed: int, scales: list[float]
) -> UInt8[Tensor, "scales height width 3"]:
    """One trajectory of the slider of a file at ascending scales, 0 among them."""
    start = scales.index(0)
    with adapters.loaded(sampler.pipe, slider):
        shifted = sampler.shifted(name, seed, [scale for scale in scales if scale != 0])
    return torch.cat([shifted[:start], sampler.unshifted(name, seed), shifted[start:]])


def names_no_shift(
    clip: Clip, classes: list[str], pictures: UInt8[np.ndarray, "rows height width 3"], *, shifts: list[str]
) -> Bool[np.ndarray, "rows"]:
    """Whether each picture is closer to the caption of its class alone than to that of its class in any shift."""
    unshifted, features = np.empty(len(pictures), bool), clip.image_features(pictures)
    for name in set(classes):
        of_class = np.array(classes) == name
        words = [PROMPT.format(token=name), *(SHIFT_PROMPT.format(token=name, text=f"in {shift}") for shift in shifts)]
        unshifted[of_class] = ((features[of_class] @ clip.text_features(words).T).argmax(dim=1) == 0).numpy()
    return unshifted


def per_slider(table: pd.DataFrame) -> pd.DataFrame:
    """One row per slider: alignment gained from scale 0 to the largest, share of rising steps, structure kept at the largest."""
    means = table.groupby([*SLIDER, "scale"])[["alignment", "structure"]].mean()
    first, last = means.xs(0.0, level="scale"), means.groupby(SLIDER).last()
    rising = gates.rises(table, "alignment").groupby(SLIDER)["rises"].mean()
    columns = {"gain": last["alignment"] - first["alignment"], "rising": rising, "structure": last["structure"]}
    return pd.DataFrame(columns).reset_index()


def require_gain(summary: pd.DataFrame, *, least: float) -> None:
    """Raises ValueError naming every flat slider: one whose alignment gains less than `least` from scale 0 to the largest."""
    flat = summary[~(summary["gain"] >= least)]  # NaN is none
    if len(flat):
        names = ", ".join(f"{row['class']} in {row['shift']} ({row['gain']:.4f})" for _, row in flat.iterrows())
        raise ValueError(f"flat sliders, alignment gain below sliders.least_gain = {least}: {names}; train longer or at a higher rate")


def over_shifts(summary: pd.DataFrame, column: str, *, confidence: float) -> dict:
    """Mean of a column over all sliders; the t interval counts each shift once, whose sliders are not independent; none of a single one."""
    shifts = summary.groupby("shift")[column].mean().to_numpy()
    return bootstrap.independent_mean(shifts, confidence=confidence) | {"n": len(summary), "estimate": float(summary[column].mean())}


def curves(table: pd.DataFrame, column: str, *, confidence: float) -> pd.DataFrame:
    """Mean of a column over the sliders of each shift, per scale (shift, scale, n, estimate, low, high); t interval about other classes."""
    means = table.groupby([*SLIDER, "scale"])[column].mean().reset_index()
    groups = means.groupby(["shift", "scale"])[column]
    records = [(key, bootstrap.independent_mean(values.to_numpy(), confidence=confidence)) for key, values in groups]
    return pd.DataFrame([{"shift": shift, "scale": scale, **record} for (shift, scale), record in records])


def stored_strips(
    sampler: generation.Sampler, sliders: dict[str, Path], name: str, *, scales: list[float], seed: int, origin: Origin, path: Path
) -> UInt8[np.ndarray, "shifts scales height width 3"]:
    """Pictures of the sliders of one class, by shift, drawn as the report draws; the file is made where it is missing or outdated."""
    files = {shift: adapters.file_digest(slider) for shift, slider in sliders.items()}
    made_from = PROMPT, files, name, scales, seed, sampler.settings.recorded(), origin.base, origin.tokens[name]
    unit, rows = units.Unit(path, recipes.SLIDER_STRIPS.stamp(*made_from)), list[dict]()
    if not unit.done:
        for shift, slider in sliders.items():
            images = images_of(sampler, slider, name, seed, scales)
            rows += generation.rows(shift, name, seed, [float(scale) for scale in scales], images, quality=0)
        tables.write_unit(pd.DataFrame(rows), unit, tables.images)
    stored = tables.read(path, tables.images)
    return np.stack([tables.pictures(stored[stored["shift"] == shift].sort_values("scale"), path.name) for shift in sliders])


def pilot_readings(
    sampler: generation.Sampler, *, scales: list[float], recipe: str, settings: Sliders, origin: Origin, oracle: Oracle, folder: Path
) -> pd.DataFrame:
    """What the oracle sees in pictures of each shift at the etas (Eq. 2), classes and seeds of `settings.pilot`, at all scales.

    The paper takes one eta for all shifts; with a small network one shift then replaces the garment when another has only begun. `asked` is
    its severity times the probability of the asked shift, `named` whether that shift is the most probable, `kept` whether the class has at
    least one half. Makes what is missing or outdated in `folder`; sliders are not kept.
    """
    pilot, stamps, settings_of = settings.pilot, {}, {}
    if not pilot.etas:
        return pd.DataFrame(columns=[*pilot_schema.columns])
    demand(recipe in training.RECIPES, "base.recipe", recipe, f"{', '.join(training.RECIPES)}: a pilot trains its sliders itself")
    demand(hasattr(oracle, "parts"), "base.oracle", type(oracle).__name__, "an oracle that names shifts, which a pilot reads")
    shared = scales, pilot.seeds, sampler.settings.drawn(), oracle.digest, oracle.labels
    for (shift, etas), name in itertools.product(pilot.etas.items(), pilot.classes):
        for eta in etas:
            key = eta, shift, name
            settings_of[key] = dataclasses.replace(settings, eta=eta, etas={})
            trained = training.stamp(shift, name, settings=settings_of[key], origin=origin, recipe=recipe)
            stamps[key] = recipes.PILOT.stamp(trained, *shared)
    rows = functools.partial(measure_pilot, sampler, settings_of, scales=scales, recipe=recipe, origin=origin, oracle=oracle)
    file = lambda key: f"{identifier(key[1])}/{identifier(key[2])}-{key[0]}.parquet"  # noqa: E731
    how: dict = {"folder": folder, "device": sampler.pipe.device, "file": file, "pattern": "*/*.parquet"}
    return workers.stored(stamps, rows, pilot_schema, **how)


def measure_pilot(
    sampler: generation.Sampler,
    settings_of: dict[tuple, Sliders],
    key: tuple[float, str, str],
    *,
    scales: list[float],
    recipe: str,
    origin: Origin,
    oracle: Oracle,
) -> pd.DataFrame:
    """Trains one slider; what the oracle predicts for its pictures."""
    (_, shift, name), settings, parts = key, settings_of[key], []
    place = SHIFTS.index(shift)
    with tempfile.TemporaryDirectory() as scratch:
        made = training.make_sliders(sampler.pipe, [shift], [name], recipe=recipe, settings=settings, origin=origin, folder=Path(scratch))
        for seed in range(1, settings.pilot.seeds + 1):
            classes, shifts, severity = oracle.parts(images_of(sampler, made[shift, name], name, seed, scales))
            requested = severity[:, 0].sigmoid() * shifts.softmax(dim=1)[:, place]
            kept = classes.softmax(dim=1)[:, oracle.labels.index(name)] >= RECOGNITION_THRESHOLD
            readings = {"scale": [float(scale) for scale in scales], "asked": requested.double().numpy().round(6), "kept": kept.tolist()}
            parts.append(pd.DataFrame(readings | {"named": (shifts.argmax(dim=1) == place).tolist()}).assign(seed=seed))
    return pd.concat(parts, ignore_index=True).assign(**{"shift": shift, "class": name, "eta": float(settings.eta)})


def criteria(readings: pd.DataFrame) -> pd.DataFrame:
    """One row per (shift, eta): shares of the pictures at the last scale whose shift and whose class are named, and how even the way is.

    `largest_step` is the part of the rise of the mean reading that lies between two neighbouring scales; NaN without a rise.
    """
    if readings.empty:
        return pd.DataFrame(columns=["shift", "eta", *WANTED, "n"])
    last = readings[readings["scale"] == readings["scale"].max()].groupby(["shift", "eta"], sort=False)
    mean = readings.groupby(["shift", "eta", "scale"], sort=False)["asked"].mean().unstack("scale").sort_index(axis=1)
    rise = mean.iloc[:, -1] - mean.iloc[:, 0]
    shares = last[["named", "kept"]].mean().assign(n=last.size(), largest_step=mean.diff(axis=1).max(axis=1) / rise.where(rise > 0))
    return shares.reset_index()


def chosen(measured: pd.DataFrame, pilot: Pilot) -> pd.DataFrame:
    """The row of each shift's eta: the one that misses the bounds of `pilot` by least, shortfalls together, and of such the greatest."""
    bounds = {"named": pilot.named, "kept": pilot.kept, "largest_step": pilot.largest_step}
    short = sum((WANTED[key] * (bound - measured[key].fillna(np.inf))).clip(lower=0) for key, bound in bounds.items())
    ranked = (
        measured.assign(shortfall=short).round({"shortfall": 9}).sort_values(["shortfall", "eta"], ascending=[True, False], kind="stable")
    )
    return ranked.groupby("shift", sort=False).head(1).sort_index().reset_index(drop=True)
