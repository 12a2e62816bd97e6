"""Segmentation under the scenarios of XIMAGENET-12 (sections 5.1 and 5.2): small networks, trained on originals with exact masks.

Output 0 is the background, output 1 + i the garment i of `world.CLASSES`. Weights are not kept; what is kept of every image are the
pixels that prediction and truth share and cover together, label by label.
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

from cnslib import encoders, kinds, paths, scenes, seeds, supervised, tables, units, workers, world, zoo
from cnslib.config import identifier
from cnslib.studies import Segmentation
from cnslib.training import Schedule

BACKGROUND = "background"
LABELS = (BACKGROUND, *world.CLASSES)
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


def answer(classes: list[str], *, settings: Segmentation, device: str, folder: Path, checkpoints: Path) -> dict[str, dict[str, Path]]:
    """Trains the networks whose answers are missing or outdated; per network the tables `overlaps` and `maps` (of seed 0).

    Raises ValueError for an encoder that does not fit, FileNotFoundError for a missing one.
    """
    files = {name: (f"{identifier(name)}.parquet", stamp(name, classes, settings)) for name in settings.networks}
    shelves = {kind: units.Shelf(folder / kind, files) for kind in ("maps", "overlaps")}
    waiting = {name for shelf in shelves.values() for name in shelf.waiting()}
    made = {name: {kind: shelf[name] for kind, shelf in shelves.items()} for name in settings.networks}
    pieces = [(name, classes, settings, device, made[name], checkpoints) for name in settings.networks if name in waiting]
    workers.each(sit, pieces, device=device, desc="networks")
    return {name: {kind: unit.path for kind, unit in own.items()} for name, own in made.items()}


def stamp(name: str, classes: list[str], settings: Segmentation) -> units.Stamp:
    """What the answers of one network depend on."""
    others = ("networks", "overlap", "photographs", "photo_classifiers", "bootstrap")
    kept = {key: value for key, value in asdict(settings).items() if key not in others}
    return kinds.SEGMENTATION.stamp(name, DECODERS[name], classes, kept, encoders.source_digest(settings.encoder))


def sit(name: str, classes: list[str], settings: Segmentation, device: str, made: dict[str, units.Unit], checkpoints: Path) -> None:
    """One unit: trains a network, lets it segment every held-out garment in every state, and writes what came out."""
    checkpoint = checkpoints / f"{identifier(name)}-{made['maps'].made_from[:12]}.pt"
    model = train(name, settings=settings, checkpoint=checkpoint, device=device)
    found, maps = [], []
    for own in scenes.garments(classes, settings=settings):
        predicted = segment(model, scenes.pictures(own, settings.severities, seed=settings.seed), device=device)
        keys = scenes.keys(own, settings.severities)
        found.append(rows(predicted, truth(own.mask, own.label), keys).assign(model=name))
        maps += [{**key, "image": tables.encode(image)} for key, image in zip(keys, predicted, strict=True) if kept(key)]
    tables.write_unit(pd.DataFrame(maps), made["maps"], tables.images)
    tables.write_unit(pd.concat(found, ignore_index=True), made["overlaps"], overlaps)
    checkpoint.unlink(missing_ok=True)


def kept(key: dict) -> bool:
    """Whether the predicted map of a state is kept: of the first garment of a class, without a scenario and at its end."""
    return key["seed"] == 0 and key["scale"] in scenes.ENDS


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


def train(name: str, *, settings: Segmentation, checkpoint: Path, device: str) -> nn.Module:
    """Trains a network on fresh catalog scenes without a scenario: cross-entropy of every pixel, mirror augmentation."""
    pool = world.garments(paths.GARMENTS, "catalog")
    supervised.begin(settings.seed)
    model = network(name, settings.encoder)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=settings.seed)

    def one(key: tuple) -> tuple[Tensor, Tensor]:
        image, target = batch(pool, key, settings.batch_size)
        return zoo.normalise(image), target

    key = ("segmentation", settings.seed)
    return supervised.fit_classifier(model, one, key, schedule=schedule, checkpoint=checkpoint, device=device, half=False)


def batch(pool: world.Garments, key: tuple, count: int) -> tuple[Float[Tensor, "batch 3 side side"], Int[Tensor, "batch side side"]]:
    """Random catalog scenes and the label of each of their pixels; image i depends on (key, i) alone."""
    chosen = torch.randint(len(pool.labels), (count,), generator=seeds.generator(*key, "choice"))
    scene = world.scenes(pool.grey[chosen], world.draw([(*key, i) for i in range(count)]), style="catalog")
    image, mask = zoo.flip(torch.cat([scene.image, scene.mask], 1), seeds.generator(*key, "flip")).split([3, 1], dim=1)
    label = torch.from_numpy(pool.labels)[chosen][:, None, None] + 1
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
    return model.eval()(zoo.normalise(pixels).to(device)).argmax(1).to(torch.uint8).cpu().numpy()


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
