"""Segmentation under the scenarios (XIMAGENET-12, sections 5.1 and 5.2): networks trained on originals, and the IoU of their maps.

Small networks learn exact masks of garments: output 0 is the background, output 1 + i the garment i of `scenes.CLASSES`. What is kept of
every image are the pixels that prediction and truth share and cover together, label by label. Every network is trained several times.

A trajectory is one image under one scenario, which stands in the column `shift`; its severity stands in `scale`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import segmentation_models_pytorch as smp
import torch
import xarray as xr
from jaxtyping import Float, Int, UInt8
from scipy.stats import t
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import demand, identifier
from cnslib.core.settings.method import FEWEST, Bootstrap
from cnslib.core.settings.sections import NETWORKS, Segmentation
from cnslib.models import encoders
from cnslib.stats import accuracy, bootstrap
from cnslib.studies import pools
from cnslib.studies.scenarios import subjects
from cnslib.studies.scenarios.subjects import ENDS, Experiment, Subject
from cnslib.world import scenes, training
from cnslib.world.training import Schedule

BACKGROUND = "background"
ALL_SCENARIOS = "all scenarios"
LABELS = (BACKGROUND, *scenes.CLASSES)
DECODERS: dict[str, dict] = {  # narrower than the library's, for 64 px; its dilations of 12 and more exceed the features' 4 x 4
    "DeepLabV3Plus": {"decoder_channels": 48, "decoder_atrous_rates": (1, 2, 3)},
    "FPN": {"decoder_pyramid_channels": 48, "decoder_segmentation_channels": 32},
    "PSPNet": {"psp_out_channels": 96},
}
SCENARIOS = [*(name for name in subjects.TABLE1 if name != "random background"), subjects.DRAWN]  # of Table 3
Names = Sequence[str]
KEYS = ["model", *tables.KEY]
schema = tables.schema(
    [*KEYS, "label"],
    {"model": pa.Column(str), **tables.IDENTITY, "label": pa.Column(str)}
    | {"intersection": pa.Column("int64", pa.Check.ge(0)), "union": pa.Column("int64", pa.Check.ge(1))},
)


def outputs(experiment: Experiment) -> tuple[str, ...]:
    """What the outputs of a network are called."""
    return (BACKGROUND, *experiment.classes) if experiment.settings.tree else LABELS


def trainings(settings: Segmentation) -> dict[str, list[str]]:
    """The names of every network's trainings, which stand in the column `model`."""
    return {name: [f"{name} {run}" for run in range(1, settings.runs + 1)] for name in settings.networks}


def run(experiment: Experiment, *, settings: Segmentation, folder: Path, checkpoints: Path) -> dict[str, dict[str, Path]]:
    """Makes the trainings whose predictions are missing or outdated; per training the tables `overlaps` and `maps` (of seed 0)."""
    keys = {one: (name, number) for name, runs in trainings(settings).items() for number, one in enumerate(runs, 1)}
    files = {one: (f"{identifier(one)}.parquet", stamp(*key, experiment, settings)) for one, key in keys.items()}
    shelves = {kind: units.Shelf(folder / kind, files) for kind in ("maps", "overlaps")}
    waiting = {one for shelf in shelves.values() for one in shelf.waiting()}
    garments = experiment.garments() if waiting else []  # once: their folder is one process's
    made = {one: {kind: shelf[one] for kind, shelf in shelves.items()} for one in keys}
    work = [(*keys[one], experiment, settings, garments, list(made[one].values()), checkpoints) for one in keys if one in waiting]
    workers.each(train_and_segment, work, device=experiment.device, desc="trainings")
    return {one: {kind: unit.path for kind, unit in units_by_kind.items()} for one, units_by_kind in made.items()}


def stamp(name: str, number: int, experiment: Experiment, settings: Segmentation) -> str:
    """What the predictions of one training depend on."""
    others = ("networks", "runs", "overlap", "photographs", "photo_classifiers", "bootstrap")
    kept = {key: value for key, value in asdict(settings).items() if key not in others}
    inputs = (DECODERS[name], experiment.classes, kept, encoders.source_digest(settings.encoder), experiment.digest)
    return recipes.SEGMENTATION.stamp(name, number, *inputs)


def train_and_segment(
    name: str,
    number: int,
    experiment: Experiment,
    settings: Segmentation,
    garments: list[Subject],
    made: list[units.Unit],
    checkpoints: Path,
) -> None:
    """One training: trains a network, segments held-out garments in every state, and writes the units of maps and of pixel counts.

    Networks learn fresh catalog scenes of the classes without a scenario: cross-entropy of every pixel, mirror augmentation. Another run
    has other weights in its decoder and other batches; the networks of a run see the same batches.
    """
    checkpoint = checkpoints / f"{made[0].path.stem}-{made[0].made_from[:12]}.pt"
    seed, label_names = settings.seed + number - 1, outputs(experiment)
    if experiment.settings.tree:
        draw: partial = partial(batch_of, experiment.subjects("catalog", experiment.settings.training_images), label_names)
    else:
        draw = partial(batch, scenes.garments(paths.GARMENTS, "catalog", experiment.classes))
    training.begin(seed)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=seed)
    given = (network(name, settings.encoder, len(label_names)), partial(draw, count=settings.batch_size), ("segmentation", seed), schedule)
    model, counts, maps = pools.fit(*given, checkpoint=checkpoint, device=experiment.device), [], []
    for subject in garments:
        keys, pictures = subjects.keys(subject, settings.severities), subjects.pictures(subject, settings.severities, seed=settings.seed)
        predicted = pools.top1(model, pictures, experiment.device).astype(np.uint8)
        counts.append(
            overlaps(predicted, truth(subject.mask, subject.label, label_names), keys, label_names).assign(
                model=trainings(settings)[name][number - 1]
            )
        )
        if subject.seed == garments[0].seed:  # of the first garment of a class the maps are kept, without a scenario and at its end
            maps.append(keys.assign(image=[tables.encode(image) for image in predicted])[keys["scale"].isin(ENDS)])
    tables.write_unit(pd.concat(maps, ignore_index=True), made[0], tables.images)
    tables.write_unit(pd.concat(counts, ignore_index=True), made[1], schema)
    checkpoint.unlink(missing_ok=True)


def network(name: str, encoder: str, count: int = len(LABELS)) -> nn.Module:
    """A network of the library with one output per label, its encoder with the weights of a timm directory."""
    trained, _ = encoders.timm_model("segmentation.encoder", encoder, "cpu")
    config = json.loads((paths.resolve(encoder) / "config.json").read_text())
    shape = {key: value for key, value in config["model_args"].items() if key != "num_classes"}
    arguments = {"encoder_weights": None, "classes": count, **DECODERS[name], **shape}
    model = getattr(smp, name)(f"tu-{config['architecture']}", **arguments)
    missing = model.encoder.model.load_state_dict(trained.state_dict(), strict=False).missing_keys
    demand(not missing, "segmentation.encoder", encoder, f"a timm directory with {', '.join(missing[:1])}")
    return model


def batch(pool: scenes.Garments, key: tuple, count: int) -> tuple[Float[Tensor, "batch 3 side side"], Int[Tensor, "batch side side"]]:
    """Random catalog scenes and the label of each of their pixels; image i depends on (key, i) alone."""
    chosen = torch.randint(len(pool.labels), (count,), generator=seeds.generator(*key, "choice"))
    scene = scenes.scenes(pool.grey[chosen], scenes.draw([(*key, i) for i in range(count)]), style="catalog")
    image, mask = training.flip(torch.cat([scene.image, scene.mask], 1), seeds.generator(*key, "flip")).split([3, 1], dim=1)
    outputs = torch.tensor([LABELS.index(name) for name in pool.classes])
    label = outputs[torch.from_numpy(pool.labels)[chosen]][:, None, None]
    return image, torch.where(mask[:, 0] > 0.5, label, 0)


def batch_of(garments: list[Subject], label_names: Names, key: tuple, count: int) -> tuple[Tensor, Tensor]:
    """The same of published pictures."""
    rows = torch.randint(len(garments), (count,), generator=seeds.generator(*key, "choice")).tolist()
    image = pools.batch_of(np.stack([subjects.rounded(garments[row].image) for row in rows]))
    label = np.stack([truth(garments[row].mask, garments[row].label, label_names) for row in rows])
    both = torch.cat([image, torch.from_numpy(label)[:, None].float()], 1)
    image, label = training.flip(both, seeds.generator(*key, "flip")).split([3, 1], dim=1)
    return image, label[:, 0].long()


def truth(mask: Float[np.ndarray, "height width"], label: str, label_names: Names = LABELS) -> UInt8[np.ndarray, "height width"]:
    """The true label of each pixel: the object where the mask exceeds one half."""
    return np.where(mask > 0.5, label_names.index(label), 0).astype(np.uint8)


def overlaps(
    predicted: UInt8[np.ndarray, "n height width"],
    true: UInt8[np.ndarray, "height width"],
    keys: pd.DataFrame,
    label_names: Names = LABELS,
) -> pd.DataFrame:
    """Intersection and union in pixels, a row per image and label that is predicted or true somewhere in it."""
    wanted = torch.from_numpy(true).long().expand(len(predicted), -1, -1)
    hit, false, missed, _ = smp.metrics.get_stats(
        torch.from_numpy(predicted).long(), wanted, mode="multiclass", num_classes=len(label_names)
    )
    union = (hit + false + missed).numpy()
    images, labels = np.nonzero(union)
    table = keys.iloc[images].reset_index(drop=True)
    return table.assign(label=np.array(label_names)[labels], intersection=hit.numpy()[images, labels], union=union[images, labels])


def per_image(counts: pd.DataFrame, *, overlap: float) -> pd.DataFrame:
    """Per training and image: IoU of the garment's label (below `overlap`, `top1` is the background), and IoU of the whole foreground."""
    of_class = counts[counts["label"] == counts["class"]].set_index(KEYS)
    ground = counts[counts["label"] == BACKGROUND].set_index(KEYS).reindex(of_class.index, fill_value=0)
    pixels = counts.groupby(KEYS)[["intersection", "union"]].sum().sum(axis=1).reindex(of_class.index) / 2  # each miss is in two unions
    table = pd.DataFrame({"iou": of_class["intersection"] / of_class["union"]})
    table["foreground"] = (pixels - ground["union"]) / (pixels - ground["intersection"])
    table = table.reset_index()
    return table.assign(top1=np.where(table["iou"] >= overlap, table["class"], BACKGROUND))


def means(wrong: xr.DataArray, rows: pd.DataFrame, column: str, *, settings: Bootstrap) -> xr.DataArray:
    """Mean of a column (model, shift, class, seed, scale) per scenario, model and severity, with its resamples."""
    repeated = tables.trajectories(rows, sorted(set(wrong["shift"].to_numpy())))
    wide = repeated.set_index([*tables.TRAJECTORY, "model", "scale"])[column].unstack(["model", "scale"], fill_value=0)
    index = pd.MultiIndex.from_arrays([wrong[key].to_numpy() for key in tables.TRAJECTORY])
    columns = pd.MultiIndex.from_product([wrong["model"].to_numpy(), wrong["scale"].to_numpy()])
    ordered = wide.reindex(index=index, columns=columns, fill_value=0).to_numpy(float)
    return accuracy.by_shift(wrong.copy(data=ordered.reshape(wrong.shape)), settings)


def table(shares: xr.DataArray) -> pd.DataFrame:
    """Estimates with intervals (scenario, model, severity, n, estimate, low, high)."""
    rows = accuracy.interval(shares).replace({"shift": {accuracy.ALL: ALL_SCENARIOS}})
    return rows.rename(columns={"shift": "scenario", "scale": "severity"})


def over_models(shares: xr.DataArray) -> pd.DataFrame:
    """The mean over models, for the originals and at the end of each scenario (scenario, n, estimate, low, high)."""
    rows = table(shares.mean("model"))
    plain = rows[rows["severity"] == 0].iloc[:1].assign(scenario="original")
    changed = rows[(rows["severity"] == 1) & rows["scenario"].isin(subjects.NAMES)]
    return pd.concat([plain, changed], ignore_index=True).drop(columns="severity")


def changes(shares: xr.DataArray, names: list[str]) -> pd.DataFrame:
    """The mean over models at the end of each scenario minus that on the originals, paired (scenario, n, estimate, low, high)."""
    ends = accuracy.drop(shares.sel(shift=names).mean("model")).isel(scale=-1, drop=True)
    return accuracy.interval(ends).rename(columns={"shift": "scenario"})


def miou(wrong: xr.DataArray, counts: pd.DataFrame, *, settings: Bootstrap) -> xr.DataArray:
    """mIoU: per label the sum of intersections over that of unions, then the mean over background and the garments shown."""
    ratios = []
    shown = sorted(set(wrong["class"].to_numpy()), key=lambda name: LABELS.index(name) if name in LABELS else len(LABELS))
    for label in [BACKGROUND, *shown]:
        rows = counts[counts["label"] == label]
        above, below = (means(wrong, rows, column, settings=settings) for column in ("intersection", "union"))
        ratios.append(above / below.where(below > 0))  # a resample may lack a label that nobody predicts either
    return xr.concat(ratios, "label", coords="minimal").mean("label")


def of_table3(shares: xr.DataArray) -> list[str]:
    """The scenarios of Table 3 that were measured."""
    return [name for name in SCENARIOS if name in shares["shift"]]


def at_ends(shares: xr.DataArray) -> xr.DataArray:
    """The mean over the originals and the ends of Table 3's scenarios, each of which weighs the same: [resample, model]."""
    in_table3 = shares.sel(shift=of_table3(shares))
    ends = in_table3.isel(scale=-1, drop=True).sum("shift") + in_table3.isel(shift=0, scale=0, drop=True)
    return (ends / (in_table3.sizes["shift"] + 1)).assign_coords(n=shares["n"][0])


def freedom_of(rows: pd.DataFrame, *, settings: Bootstrap) -> int:
    """Degrees of freedom of what the resamples of `rows` (class, seed) say about their units: one for each but the first of a stratum."""
    units, strata = bootstrap.units_of(rows, settings.target)
    return len(np.unique(units)) - len(np.unique(strata))


def over_trainings(first: np.ndarray, second: np.ndarray, n: int, freedom: int, confidence: float) -> dict:
    """The mean over the trainings of one network minus that over another's, as a record about other units and other trainings.

    A column is a training, a row a resample of the `n` units that all see, with `freedom` degrees of freedom. The variance is that of the
    resamples, less their `widening`, and s^2 / R for the R trainings of either network. The t interval has Satterthwaite's degrees of
    freedom (1946); none of fewer than `FEWEST` units.
    """
    difference = first.mean(1) - second.mean(1)
    half = np.nan
    if freedom + 1 >= FEWEST:
        of_units = np.var(difference[1:]) / bootstrap.widening(freedom, confidence) ** 2
        parts = np.array([of_units, *(runs[0].var(ddof=1) / runs.shape[1] for runs in (first, second))])
        squares = (parts**2 / [freedom, first.shape[1] - 1, second.shape[1] - 1]).sum()
        half = t.ppf((1 + confidence) / 2, parts.sum() ** 2 / squares) * np.sqrt(parts.sum()) if squares else 0.0
    return bootstrap.as_record(n, difference[0], difference[0] - half, difference[0] + half)


def effects(shares: xr.DataArray, trained: dict[str, list[str]], *, freedom: int) -> pd.DataFrame:
    """Coefficients of Table 3's regression: of a scenario at its end against originals, of a network against the reference.

    In a balanced table with dummies they are differences of means. Intervals of scenarios are about other images, those of networks also
    about other trainings; `freedom` is `freedom_of` the images, and `trainings` counts those of all networks, or of each of the two.
    """
    ends = changes(shares, of_table3(shares)).rename(columns={"scenario": "name"}).assign(of="scenario", trainings=shares.sizes["model"])
    values = at_ends(shares)
    runs = {name: values.sel(model=members).to_numpy() for name, members in trained.items()}
    given = (runs[NETWORKS[0]], values["n"].item(), freedom, shares["confidence"].item())
    rows = [
        {"of": "network", "name": name, "trainings": runs[name].shape[1], **over_trainings(runs[name], *given)}
        for name in sorted(set(runs) - {NETWORKS[0]}, reverse=True)
    ]
    return pd.concat([ends, pd.DataFrame(rows)], ignore_index=True)
