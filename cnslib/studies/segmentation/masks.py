"""Segmentation under the scenarios of XIMAGENET-12 (sections 5.1 and 5.2): networks trained on originals, and the IoU of their maps.

Small networks learn exact masks of garments. Output 0 is the background, output 1 + i the garment i of `scenes.CLASSES`; they learn the
benchmark's classes alone, so that a garment that was left out is no answer. Weights are not kept; what is kept of every image are the
pixels that prediction and truth share and cover together, label by label. IoU, mIoU, failures and shares on the foreground follow from
these counts, with intervals, beside what the paper says of them. Every network is trained several times: what is said of a network is
the mean over its trainings, and a difference of two networks has an interval about other trainings, too.

A trajectory is one image under one scenario, which stands in the column `shift`; its severity stands in `scale`.
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import segmentation_models_pytorch as smp
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import identifier
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import NETWORKS, Segmentation
from cnslib.data import published
from cnslib.models import encoders
from cnslib.stats import accuracy, bootstrap, failure, verdicts
from cnslib.stats.accuracy import Outcomes, Shares
from cnslib.studies.scenarios.subjects import Subject
from cnslib.studies.segmentation import inputs
from cnslib.studies.segmentation.inputs import Drawing
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
overlaps = tables.schema(
    ["model", *tables.KEY, "label"],
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


def answer(
    classes: list[str], *, settings: Segmentation, drawing: Drawing, device: str, folder: Path, checkpoints: Path
) -> dict[str, dict[str, Path]]:
    """Makes the trainings whose answers are missing or outdated; per training the tables `overlaps` and `maps` (of seed 0).

    Raises ValueError for an encoder that does not fit, FileNotFoundError for a missing one.
    """
    runs = {one: (name, run) for name, own in trainings(settings).items() for run, one in enumerate(own, 1)}
    files = {one: (f"{identifier(one)}.parquet", stamp(*key, classes, settings, drawing)) for one, key in runs.items()}
    shelves = {kind: units.Shelf(folder / kind, files) for kind in ("maps", "overlaps")}
    waiting = {one for shelf in shelves.values() for one in shelf.waiting()}
    made = {one: {kind: shelf[one] for kind, shelf in shelves.items()} for one in runs}
    found = inputs.garments(classes, settings=settings, drawing=drawing) if waiting else []  # once: their folder is one process's
    pieces = [(*key, classes, settings, found, device, made[one], checkpoints) for one, key in runs.items() if one in waiting]
    workers.each(train_and_answer, pieces, device=device, desc="trainings")
    return {one: {kind: unit.path for kind, unit in own.items()} for one, own in made.items()}


def stamp(name: str, run: int, classes: list[str], settings: Segmentation, drawing: Drawing) -> str:
    """What the answers of one training depend on."""
    others = ("networks", "runs", "overlap", "photographs", "photo_classifiers", "bootstrap")
    kept = {key: value for key, value in asdict(settings).items() if key not in others}
    return recipes.SEGMENTATION.stamp(name, run, DECODERS[name], classes, kept, encoders.source_digest(settings.encoder), drawing.digest)


def train_and_answer(
    name: str,
    run: int,
    classes: list[str],
    settings: Segmentation,
    garments: list[Subject],
    device: str,
    made: dict[str, units.Unit],
    checkpoints: Path,
) -> None:
    """One unit: trains a network, lets it segment held-out garments in every state, and writes what came out."""
    checkpoint = checkpoints / f"{made['maps'].path.stem}-{made['maps'].made_from[:12]}.pt"
    model = train(name, run, classes, settings=settings, checkpoint=checkpoint, device=device)
    found, maps = [], []
    for own in garments:
        predicted = segment(model, inputs.pictures(own, settings.severities, seed=settings.seed), device=device)
        keys = inputs.keys(own, settings.severities)
        found.append(rows(predicted, truth(own.mask, own.label), keys).assign(model=trainings(settings)[name][run - 1]))
        maps += [{**key, "image": tables.encode(image)} for key, image in zip(keys, predicted, strict=True) if kept(key)]
    tables.write_unit(pd.DataFrame(maps), made["maps"], tables.images)
    tables.write_unit(pd.concat(found, ignore_index=True), made["overlaps"], overlaps)
    checkpoint.unlink(missing_ok=True)


def kept(key: dict) -> bool:
    """Whether the predicted map of a state is kept: of the first garment of a class, without a scenario and at its end."""
    return key["seed"] == 0 and key["scale"] in inputs.ENDS


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
    if missing:
        raise ValueError(f"segmentation.encoder: {encoder} lacks {missing[0]} and {len(missing) - 1} more; accepted: a timm directory")
    return model


def train(name: str, run: int, classes: list[str], *, settings: Segmentation, checkpoint: Path, device: str) -> nn.Module:
    """Trains a network on fresh catalog scenes of these classes without a scenario: cross-entropy of every pixel, mirror augmentation.

    Another run has other weights in its decoder and other batches; its encoder starts from the same weights. The networks of a run see
    the same batches.
    """
    pool, seed = scenes.garments(paths.GARMENTS, "catalog", classes), settings.seed + run - 1
    training.begin(seed)
    model = network(name, settings.encoder)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=seed)

    def one(key: tuple) -> tuple[Tensor, Tensor]:
        training.reseed(*key)
        image, target = batch(pool, key, settings.batch_size)
        return training.normalise(image), target

    key = ("segmentation", seed)
    return training.fit_classifier(model, one, key, schedule=schedule, checkpoint=checkpoint, device=device)


def batch(pool: scenes.Garments, key: tuple, count: int) -> tuple[Float[Tensor, "batch 3 side side"], Int[Tensor, "batch side side"]]:
    """Random catalog scenes and the label of each of their pixels; image i depends on (key, i) alone."""
    chosen = torch.randint(len(pool.labels), (count,), generator=seeds.generator(*key, "choice"))
    scene = scenes.scenes(pool.grey[chosen], scenes.draw([(*key, i) for i in range(count)]), style="catalog")
    image, mask = training.flip(torch.cat([scene.image, scene.mask], 1), seeds.generator(*key, "flip")).split([3, 1], dim=1)
    outputs = torch.tensor([LABELS.index(name) for name in pool.classes])
    label = outputs[torch.from_numpy(pool.labels)[chosen]][:, None, None]
    return image, torch.where(mask[:, 0] > 0.5, label, 0)


def truth(mask: Float[np.ndarray, "height width"], label: str) -> UInt8[np.ndarray, "height width"]:
    """The true label of each pixel: the object where the mask exceeds one half. ValueError for a mask without such a pixel."""
    if not (mask > 0.5).any():
        raise ValueError(f"mask of {label!r} exceeds one half nowhere; accepted: at least one pixel of the object")
    return np.where(mask > 0.5, LABELS.index(label), 0).astype(np.uint8)


@torch.no_grad()
def segment(model: nn.Module, images: UInt8[np.ndarray, "n height width 3"], *, device: str) -> UInt8[np.ndarray, "n height width"]:
    """The most probable label of each pixel."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    return model.eval()(training.normalise(pixels).to(device)).argmax(1).to(torch.uint8).cpu().numpy()


def rows(predicted: UInt8[np.ndarray, "n height width"], true: UInt8[np.ndarray, "height width"], keys: list[dict]) -> pd.DataFrame:
    """Intersection and union in pixels, a row per image and label that is predicted or true somewhere in it.

    Raises ValueError for maps of another size than the mask.
    """
    if predicted.shape[1:] != true.shape:
        raise ValueError(f"maps of shape {predicted.shape[1:]} for a mask of {true.shape}; accepted: the same height and width")
    wanted = torch.from_numpy(true).long().expand(len(predicted), -1, -1)
    hit, false, missed, _ = smp.metrics.get_stats(torch.from_numpy(predicted).long(), wanted, mode="multiclass", num_classes=len(LABELS))
    union = (hit + false + missed).numpy()
    images, labels = np.nonzero(union)
    table = pd.DataFrame([keys[i] for i in images])
    names = np.array(LABELS)[labels]
    return table.assign(label=names, intersection=hit.numpy()[images, labels], union=union[images, labels])


ON_BACKGROUND = tuple(name for name in inputs.NAMES if not name.endswith("object"))
SCENARIOS = {  # as Table 3 calls them
    "blur_background": "blurred background",
    "blur_object": "blurred object",
    "image_g": "green",
    "image_b": "blue",
    "image_grey": "grey",
    "image_r": "red",
    "segmented_image": "segmented",
    "generated_background": "drawn background",
}
NOT_SIGNIFICANT = "ns"  # as Table 3 calls it
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
    return accuracy.resample(found, arranged(found, rows, column), found.scales, settings=settings)


def table(shares: Shares) -> pd.DataFrame:
    """Estimates with intervals (scenario, model, severity, n, estimate, low, high)."""
    return named(accuracy.tabulate(shares.samples, shares, shares.bins))


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """A results table whose columns say scenario and severity."""
    return rows.replace({"shift": {accuracy.ALL: ALL_SCENARIOS}}).rename(columns={"shift": "scenario", "scale": "severity"})


def at_end(measures: dict[str, Shares]) -> pd.DataFrame:
    """The mean over the networks at the end of every scenario, a column per measure."""
    parts = {name: table(shares) for name, shares in measures.items()}
    ends = {name: own[(own["severity"] == 1) & (own["scenario"] != ALL_SCENARIOS)] for name, own in parts.items()}
    return pd.DataFrame({name: own.groupby("scenario")["estimate"].mean() for name, own in ends.items()})


def fates(failures: Shares) -> pd.DataFrame:
    """Where images fail first under every single scenario (scenario, model, scale, n, estimate, low, high)."""
    rows = failure.failure_distribution(failures)
    return rows[rows["shift"] != accuracy.ALL].rename(columns={"shift": "scenario"})


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


def at_ends(shares: Shares) -> Float[np.ndarray, "resamples+1 models"]:
    """The mean over the originals and the ends of Table 3's scenarios, each of which weighs the same."""
    places = [shares.groups.index(name) for name in SCENARIOS.values() if name in shares.groups]
    return np.concatenate([shares.samples[:, places[:1]][..., 0], shares.samples[:, places][..., -1]], 1).mean(1)


def of_scenarios(shares: Shares) -> pd.DataFrame:
    """What each scenario of Table 3 changes at its end, mean over all trainings; intervals are about other images alone."""
    ends = [name for name in SCENARIOS.values() if name in shares.groups]
    samples = shares.samples[:, [shares.groups.index(name) for name in ends]]
    changes = (samples[..., -1] - samples[..., 0]).mean(2)
    told = {"of": "scenario", "name": ends, "trainings": len(shares.models)}
    return pd.DataFrame({**told, **bootstrap.estimates(changes, shares.n[0], shares.confidence)})


def of_networks(shares: Shares, trained: dict[str, list[str]], *, freedom: int) -> pd.DataFrame:
    """How far each network of Table 3 is above the reference; intervals are about other images and other trainings.

    `trained` names the trainings of every network, see `trainings`, `freedom` is that of the images, see `bootstrap.freedom_of`.
    """
    values = at_ends(shares)
    runs = {name: values[:, [shares.models.index(one) for one in own]] for name, own in trained.items()}
    given = (runs[NETWORKS[0]], int(shares.n[0]), freedom, shares.confidence)
    found = {name: bootstrap.over_trainings(runs[name], *given) for name in MODELS.values() if name in runs}
    return pd.DataFrame([{"of": "network", "name": name, "trainings": runs[name].shape[1], **own} for name, own in found.items()])


def effects(shares: Shares, trained: dict[str, list[str]], *, freedom: int) -> pd.DataFrame:
    """Coefficients of Table 3's regression: of a scenario at its end against originals, of a network against the reference.

    In a balanced table with dummies for model, scenario and class they are differences of means. `trainings` counts those of all
    networks for a scenario, and those of each of the two for a network.
    """
    return pd.concat([of_scenarios(shares), of_networks(shares, trained, freedom=freedom)], ignore_index=True)


def by_training(shares: Shares, trained: dict[str, list[str]]) -> pd.DataFrame:
    """The mean `at_ends` of every training: (model, training, n, estimate, low, high), intervals about other images alone."""
    keys = [(name, run) for name, own in trained.items() for run in range(1, len(own) + 1)]
    values = at_ends(shares)[:, [shares.models.index(trained[name][run - 1]) for name, run in keys]]
    table = pd.DataFrame(keys, columns=["model", "training"])
    return table.assign(**bootstrap.estimates(values, shares.n[0], shares.confidence))


def table3(found: pd.DataFrame) -> pd.DataFrame:
    """Our coefficients of the garments' IoU beside the published ones of the accuracy of segmentation: rule and verdict on the side of 0.

    The two are not the same quantity, so their sizes are not compared; a coefficient that is printed as not significant claims no side.
    """
    named = {f"Image Scenario[{theirs}]": ours for theirs, ours in SCENARIOS.items()}
    named |= {f"Model Name[{theirs}]": ours for theirs, ours in MODELS.items()}
    rows = published.read("ximagenet12_table3").query("task == 'segmentation' and variable in @named")
    printed = rows.set_index(rows["variable"].map(named)).loc[found["name"]]
    sides = (printed["estimate"] > 0).map({True: "above 0", False: "below 0"}).mask(printed["summary"] == NOT_SIGNIFICANT)
    judged = verdicts.beside(found.assign(table_3=printed["estimate"].to_numpy()), sides).drop(columns="difference")
    return verdicts.set_aside(judged, printed["summary"].map({NOT_SIGNIFICANT: "printed as not significant"}))


def miou_beside(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The mIoU of single networks beside the published one (Figure 7), over all images of all scenarios at their ends.

    Levels on other objects: they have no direction to compare.
    """
    printed = pd.read_csv(path).set_index("network")
    printed = printed[printed.index.isin(rows["model"])]
    own = rows[(rows["scenario"] == ALL_SCENARIOS) & (rows["severity"] == 1)].set_index("model").loc[printed.index]
    return verdicts.beside(own[["n", "estimate", "low", "high"]], printed["miou"], null=None).reset_index()


def robustness(found: Outcomes, share: Shares, *, settings: Bootstrap) -> tuple[np.ndarray, np.ndarray]:
    """Per classifier, with resamples: share on the foreground of originals, and drop of accuracy over the background's scenarios."""
    errors = accuracy.error_shares(found, settings=settings)
    places = [errors.groups.index(name) for name in ON_BACKGROUND]
    drop = (errors.samples[..., -1] - errors.samples[..., 0])[:, places].mean(1)
    return share.samples[:, places[0], :, 0], drop


def points(shares: np.ndarray, drops: np.ndarray, models: list[str], n: int, *, settings: Bootstrap) -> pd.DataFrame:
    """Both as a table: (model, n, share, drop) with intervals of each."""
    columns = {"model": models, "n": n}
    for name, values in (("share", shares), ("drop", drops)):
        low, high = bootstrap.percentiles(values[1:], settings.confidence)
        columns |= {name: values[0], f"{name} low": low, f"{name} high": high}
    return pd.DataFrame(columns)


def correlation(first: np.ndarray, second: np.ndarray, *, settings: Bootstrap) -> dict:
    """Spearman's rank correlation over classifiers, of which n counts, with Fisher's z interval.

    It is about other classifiers of the kind; what few images add to the scatter is in it already, as in every classifier's place.
    Resamples of images and classifiers together would count it twice and hold the truth in 99 of 100 cases.
    """
    return bootstrap.independent_rank_correlation(first[0], second[0], confidence=settings.confidence)
