"""Segmentation under the scenarios (XIMAGENET-12, sections 5.1 and 5.2): networks trained on originals, and the IoU of their maps.

Small networks learn exact masks of garments. Output 0 is the background, output 1 + i the garment i of `scenes.CLASSES`; they learn the
benchmark's classes alone. Weights are not kept; what is kept of every image are the pixels that prediction and truth share and cover
together, label by label. Every network is trained several times: a difference of two networks has an interval about other trainings, too.

A trajectory is one image under one scenario, which stands in the column `shift`; its severity stands in `scale`.
"""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import segmentation_models_pytorch as smp
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import demand, identifier
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import NETWORKS, Segmentation
from cnslib.models import encoders
from cnslib.stats import accuracy, bootstrap
from cnslib.stats.accuracy import Outcomes, Shares
from cnslib.studies import finetuning
from cnslib.studies.scenarios import scenarios, subjects
from cnslib.studies.scenarios.subjects import ENDS, Drawing, Subject
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
SCENARIOS = [*(name for name in scenarios.TABLE1 if name != "random background"), scenarios.DRAWN]  # of Table 3
KEYS = ["model", *tables.KEY]
schema = tables.schema(
    [*KEYS, "label"],
    {
        "model": pa.Column(str),
        **tables.IDENTITY,
        "label": pa.Column(str, pa.Check.isin(LABELS)),
        "intersection": pa.Column("int64", pa.Check.ge(0)),
        "union": pa.Column("int64", pa.Check.ge(1)),
    },
)


def trainings(settings: Segmentation) -> dict[str, list[str]]:
    """The names of every network's trainings, which stand in the column `model`."""
    return {name: [f"{name} {run}" for run in range(1, settings.runs + 1)] for name in settings.networks}


def run(classes: list[str], *, settings: Segmentation, drawing: Drawing, folder: Path, checkpoints: Path) -> dict[str, dict[str, Path]]:
    """Makes the trainings whose predictions are missing or outdated; per training the tables `overlaps` and `maps` (of seed 0)."""
    keys = {one: (name, number) for name, own in trainings(settings).items() for number, one in enumerate(own, 1)}
    files = {one: (f"{identifier(one)}.parquet", stamp(*key, classes, settings, drawing)) for one, key in keys.items()}
    shelves = {kind: units.Shelf(folder / kind, files) for kind in ("maps", "overlaps")}
    waiting = {one for shelf in shelves.values() for one in shelf.waiting()}
    found = drawing.garments(classes) if waiting else []  # once: their folder is one process's
    made = {one: {kind: shelf[one] for kind, shelf in shelves.items()} for one in keys}
    pieces = [(*key, classes, settings, found, drawing.device, made[one], checkpoints) for one, key in keys.items() if one in waiting]
    workers.each(train_and_segment, pieces, device=drawing.device, desc="trainings")
    return {one: {kind: unit.path for kind, unit in own.items()} for one, own in made.items()}


def stamp(name: str, number: int, classes: list[str], settings: Segmentation, drawing: Drawing) -> str:
    """What the predictions of one training depend on."""
    others = ("networks", "runs", "overlap", "photographs", "photo_classifiers", "bootstrap")
    kept = {key: value for key, value in asdict(settings).items() if key not in others}
    return recipes.SEGMENTATION.stamp(name, number, DECODERS[name], classes, kept, encoders.source_digest(settings.encoder), drawing.digest)


def train_and_segment(
    name: str,
    number: int,
    classes: list[str],
    settings: Segmentation,
    garments: list[Subject],
    device: str,
    made: dict[str, units.Unit],
    checkpoints: Path,
) -> None:
    """One unit: trains a network, segments held-out garments in every state, and writes maps and pixel counts."""
    checkpoint = checkpoints / f"{made['maps'].path.stem}-{made['maps'].made_from[:12]}.pt"
    model = train(name, number, classes, settings=settings, checkpoint=checkpoint, device=device)
    counts, maps = [], []
    for own in garments:
        keys = subjects.keys(own, settings.severities)
        predicted = finetuning.top1(model, subjects.pictures(own, settings.severities, seed=settings.seed), device).astype(np.uint8)
        counts.append(overlaps(predicted, truth(own.mask, own.label), keys).assign(model=trainings(settings)[name][number - 1]))
        if own.seed == 0:  # of the first garment of a class the maps are kept, without a scenario and at its end
            maps.append(keys.assign(image=[tables.encode(image) for image in predicted])[keys["scale"].isin(ENDS)])
    tables.write_unit(pd.concat(maps, ignore_index=True), made["maps"], tables.images)
    tables.write_unit(pd.concat(counts, ignore_index=True), made["overlaps"], schema)
    checkpoint.unlink(missing_ok=True)


def network(name: str, encoder: str) -> nn.Module:
    """A network of the library with one output per label, its encoder with the weights of a timm directory.

    Raises ValueError where these do not fill the encoder.
    """
    trained, _ = encoders.timm_model("segmentation.encoder", encoder, "cpu")
    config = json.loads((paths.resolve(encoder) / "config.json").read_text())
    shape = {key: value for key, value in config["model_args"].items() if key != "num_classes"}
    arguments = {"encoder_weights": None, "classes": len(LABELS), **DECODERS[name], **shape}
    model = getattr(smp, name)(f"tu-{config['architecture']}", **arguments)
    missing = model.encoder.model.load_state_dict(trained.state_dict(), strict=False).missing_keys
    demand(not missing, "segmentation.encoder", encoder, f"a timm directory with {', '.join(missing[:1])}")
    return model


def train(name: str, number: int, classes: list[str], *, settings: Segmentation, checkpoint: Path, device: str) -> nn.Module:
    """Trains a network on fresh catalog scenes of these classes without a scenario: cross-entropy of every pixel, mirror augmentation.

    Another run has other weights in its decoder and other batches; its encoder starts from the same weights. The networks of a run see
    the same batches.
    """
    pool, seed = scenes.garments(paths.GARMENTS, "catalog", classes), settings.seed + number - 1
    training.begin(seed)
    model = network(name, settings.encoder)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=seed)
    draw = partial(batch, pool, count=settings.batch_size)
    return finetuning.fit(model, draw, ("segmentation", seed), schedule, checkpoint=checkpoint, device=device)


def batch(pool: scenes.Garments, key: tuple, count: int) -> tuple[Float[Tensor, "batch 3 side side"], Int[Tensor, "batch side side"]]:
    """Random catalog scenes and the label of each of their pixels; image i depends on (key, i) alone."""
    chosen = torch.randint(len(pool.labels), (count,), generator=seeds.generator(*key, "choice"))
    scene = scenes.scenes(pool.grey[chosen], scenes.draw([(*key, i) for i in range(count)]), style="catalog")
    image, mask = training.flip(torch.cat([scene.image, scene.mask], 1), seeds.generator(*key, "flip")).split([3, 1], dim=1)
    outputs = torch.tensor([LABELS.index(name) for name in pool.classes])
    label = outputs[torch.from_numpy(pool.labels)[chosen]][:, None, None]
    return image, torch.where(mask[:, 0] > 0.5, label, 0)


def truth(mask: Float[np.ndarray, "height width"], label: str) -> UInt8[np.ndarray, "height width"]:
    """The true label of each pixel: the object where the mask exceeds one half."""
    return np.where(mask > 0.5, LABELS.index(label), 0).astype(np.uint8)


def overlaps(predicted: UInt8[np.ndarray, "n height width"], true: UInt8[np.ndarray, "height width"], keys: pd.DataFrame) -> pd.DataFrame:
    """Intersection and union in pixels, a row per image and label that is predicted or true somewhere in it."""
    wanted = torch.from_numpy(true).long().expand(len(predicted), -1, -1)
    hit, false, missed, _ = smp.metrics.get_stats(torch.from_numpy(predicted).long(), wanted, mode="multiclass", num_classes=len(LABELS))
    union = (hit + false + missed).numpy()
    images, labels = np.nonzero(union)
    table = keys.iloc[images].reset_index(drop=True)
    return table.assign(label=np.array(LABELS)[labels], intersection=hit.numpy()[images, labels], union=union[images, labels])


def per_image(counts: pd.DataFrame, *, overlap: float) -> pd.DataFrame:
    """Per training and image: IoU of the garment's label, and IoU of the foreground whatever its label.

    Pixels of all other labels are foreground. Where the first is below `overlap` the prediction `top1` is the background.
    """
    own = counts[counts["label"] == counts["class"]].set_index(KEYS)
    ground = counts[counts["label"] == BACKGROUND].set_index(KEYS).reindex(own.index, fill_value=0)
    pixels = counts.groupby(KEYS)[["intersection", "union"]].sum().sum(axis=1).reindex(own.index) / 2  # each miss is in two unions
    table = pd.DataFrame({"iou": own["intersection"] / own["union"]})
    table["foreground"] = (pixels - ground["union"]) / (pixels - ground["intersection"])
    table = table.reset_index()
    return table.assign(top1=np.where(table["iou"] >= overlap, table["class"], BACKGROUND))


def means(found: Outcomes, rows: pd.DataFrame, column: str, *, settings: Bootstrap) -> Shares:
    """Mean of a column (model, shift, class, seed, scale) per scenario, model and severity, with its resamples.

    The unshifted rows count in every scenario; missing rows are 0.
    """
    repeated = tables.trajectories(rows, sorted(set(found.trajectories["shift"])))
    wide = repeated.set_index([*tables.TRAJECTORY, "model", "scale"])[column].unstack(["model", "scale"], fill_value=0)
    columns = pd.MultiIndex.from_product([found.models, found.scales])
    ordered = wide.reindex(index=pd.MultiIndex.from_frame(found.trajectories), columns=columns, fill_value=0)
    return accuracy.resample(found, ordered.to_numpy(float).reshape(found.wrong.shape), found.scales, settings=settings)


def table(shares: Shares, samples: np.ndarray | None = None, models: list[str] | None = None) -> pd.DataFrame:
    """Estimates with intervals (scenario, model, severity, n, estimate, low, high)."""
    rows = accuracy.tabulate(shares.samples if samples is None else samples, shares, shares.bins, models=models)
    return rows.replace({"shift": {accuracy.ALL: ALL_SCENARIOS}}).rename(columns={"shift": "scenario", "scale": "severity"})


def over_models(shares: Shares) -> pd.DataFrame:
    """The mean over models, for the originals and at the end of each scenario (scenario, n, estimate, low, high)."""
    rows = table(shares, shares.samples.mean(2, keepdims=True), ["mean"])
    plain = rows[rows["severity"] == 0].iloc[:1].assign(scenario="original")
    changed = rows[(rows["severity"] == 1) & rows["scenario"].isin(scenarios.NAMES)]
    return pd.concat([plain, changed], ignore_index=True).drop(columns=["model", "severity"])


def changes(shares: Shares, names: list[str]) -> pd.DataFrame:
    """The mean over models at the end of each scenario minus that on the originals, paired (scenario, n, estimate, low, high)."""
    samples = shares.samples[:, [shares.groups.index(name) for name in names]].mean(2)
    return pd.DataFrame({"scenario": names, **bootstrap.estimates(samples[..., -1] - samples[..., 0], shares.n[0], shares.confidence)})


def miou(found: Outcomes, counts: pd.DataFrame, *, settings: Bootstrap) -> Shares:
    """mIoU: per label the sum of intersections over that of unions, then the mean over background and the garments shown."""
    ratios = []
    for label in [BACKGROUND, *(name for name in LABELS if name in set(found.trajectories["class"]))]:
        rows = counts[counts["label"] == label]
        above, below = (means(found, rows, column, settings=settings) for column in ("intersection", "union"))
        with np.errstate(invalid="ignore"):  # a resample without a label that nobody predicts either
            ratios.append(above.samples / below.samples)
    return Shares(np.nanmean(ratios, axis=0), above.groups, above.n, above.models, above.bins, above.confidence)


def at_ends(shares: Shares) -> Float[np.ndarray, "resamples+1 models"]:
    """The mean over the originals and the ends of Table 3's scenarios, each of which weighs the same."""
    places = [shares.groups.index(name) for name in SCENARIOS if name in shares.groups]
    return np.concatenate([shares.samples[:, places[:1]][..., 0], shares.samples[:, places][..., -1]], 1).mean(1)


def effects(shares: Shares, trained: dict[str, list[str]], *, freedom: int) -> pd.DataFrame:
    """Coefficients of Table 3's regression: of a scenario at its end against originals, of a network against the reference.

    In a balanced table with dummies for model, scenario and class they are differences of means. Intervals of scenarios are about other
    images, those of networks about other images and other trainings; `freedom` is that of the images, see `bootstrap.freedom_of`, and
    `trainings` counts those of all networks for a scenario, and those of each of the two for a network.
    """
    ends = changes(shares, [name for name in SCENARIOS if name in shares.groups]).rename(columns={"scenario": "name"})
    values = at_ends(shares)
    runs = {name: values[:, [shares.models.index(one) for one in own]] for name, own in trained.items()}
    given = (runs[NETWORKS[0]], int(shares.n[0]), freedom, shares.confidence)
    rows = [
        {"of": "network", "name": name, "trainings": runs[name].shape[1], **bootstrap.over_trainings(runs[name], *given)}
        for name in sorted(set(runs) - {NETWORKS[0]}, reverse=True)
    ]
    return pd.concat([ends.assign(of="scenario", trainings=len(shares.models)), pd.DataFrame(rows)], ignore_index=True)


def by_training(shares: Shares, trained: dict[str, list[str]]) -> pd.DataFrame:
    """The mean `at_ends` of every training: (model, training, n, estimate, low, high), intervals about other images alone."""
    keys = [(name, number) for name, own in trained.items() for number in range(1, len(own) + 1)]
    values = at_ends(shares)[:, [shares.models.index(trained[name][number - 1]) for name, number in keys]]
    numbers = bootstrap.estimates(values, shares.n[0], shares.confidence)
    return pd.DataFrame(keys, columns=["model", "training"]).assign(**numbers)
