"""The mini world's classifiers by name and its oracle: timm models trained on rendered garments, saved as timm directories.

A `Member` says what decides a classifier's weights and how it is trained; the manifest tells whether that has been done already.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import save_file
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.settings.sections import Augmentation, Oracle, Pretraining, Zoo
from cnslib.models import classifiers, networks
from cnslib.world import contrastive, manifest, pretraining, redrawing, scenes, selfsupervised, training
from cnslib.world.training import MEAN, STD, fit, flip, normalise, scheduled

BESIDE = len(SHIFTS) + 2  # outputs of the oracle behind those of the classes: shifts, "unshifted", severity
CLASS_OUTPUTS, SHIFT_OUTPUTS, SEVERITY_OUTPUT = slice(None, -BESIDE), slice(-BESIDE, -1), -1


def train_oracle(garments: scenes.Garments, settings: Oracle, redrawn: redrawing.Redrawn | None, *, device: str, **run) -> nn.Module:
    """Trains the oracle on class, shift and severity of scenes, every third batch of the catalog; a share of each batch is redrawn."""
    torch.manual_seed(settings.seed)
    model = timm.create_model(settings.architecture, num_classes=len(garments.classes) + BESIDE, **settings.arguments).to(device)

    def loss(step: int) -> Tensor:
        key, style = ("oracle", settings.seed, step), "web" if step % 3 else "catalog"
        batch = scenes.sample(garments, key, settings.batch_size, style=style, unshifted=0.2, severities=(0.0, 1.0))
        if redrawn:
            batch = redrawing.mixed(batch, redrawn, settings.redrawn, seeds.generator(*key, "redrawn"))
        with training.autocast(device):
            logits = model(normalise(flip(batch.image, seeds.generator(*key, "flip"))).to(device))
        return oracle_loss(logits.float(), batch)

    return fit(model, loss, schedule=scheduled(vars(settings)), **run).cpu()


def oracle_loss(logits: Float[Tensor, "batch 26"], batch: scenes.Batch) -> Float[Tensor, ""]:
    """Cross-entropy of class and shift (if visible: severity above 0.15) plus binary cross-entropy of the severity, where it is known."""
    label, shift, severity = (v.to(logits.device) for v in (batch.label, batch.shift, batch.severity))
    named = F.cross_entropy(logits[:, SHIFT_OUTPUTS], shift, reduction="none")
    known = ~severity.isnan()
    visible = ((severity > 0.15) | ~known | (shift == len(SHIFTS))).float()
    amount = F.binary_cross_entropy_with_logits(logits[known, SEVERITY_OUTPUT], severity[known])
    return F.cross_entropy(logits[:, CLASS_OUTPUTS], label) + (named * visible).mean() + amount


def named(model: nn.Module, image: Float[Tensor, "batch 3 64 64"], outputs: slice) -> Int[Tensor, "batch"]:
    """The number of the class (CLASS_OUTPUTS) or shift (SHIFT_OUTPUTS) that a trained model predicts for each image."""
    return training.predict(model, image)[:, outputs].argmax(1)


def exam(garments: scenes.Garments, step: str, images: int) -> tuple[scenes.Batch, scenes.Batch]:
    """Unshifted catalog scenes to test the class, and web scenes at half severity or more to test the shift."""
    plain = scenes.sample(garments, (step, "class"), images, style="catalog", unshifted=1.0)
    return plain, scenes.sample(garments, (step, "shift"), images, style="web", unshifted=0.0, severities=(0.5, 1.0))


def save(model: nn.Module, folder: Path, *, architecture: str, arguments: dict) -> None:
    """Writes a timm directory: config.json with architecture, arguments and preprocessing, and model.safetensors."""
    outputs = {"num_classes": getattr(model, "num_classes", 0)}
    preprocessing = {
        "input_size": [3, 64, 64],
        "interpolation": "bicubic",
        "crop_pct": 1.0,
        "crop_mode": "squash",
        "mean": MEAN,
        "std": STD,
    }
    config = {"architecture": architecture, **outputs, "num_features": model.num_features}
    config |= {"model_args": {**arguments, **outputs}, "pretrained_cfg": {**preprocessing, **outputs}}
    weights = {key: value.half().contiguous() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    with units.atomic(folder / "model.safetensors") as partial:
        save_file(weights, partial)
    units.write_bytes(folder / "config.json", json.dumps(config, indent=2).encode())


POOLS = {
    "mae": "catalog",
    "simclr": "catalog",
    "web": "web",
    "clip": "web",
}  # of the pre-trainings, which bear the names of their functions
SHARED = ("batch_size", "learning_rate", "average", "seed")


@dataclass(frozen=True)
class Run:
    """What a training takes its garments from, by pool, the torch device, and where it keeps checkpoints and writes its model."""

    garments: Callable[[str], scenes.Garments]
    device: str = "cpu"
    models: Path = paths.MODELS
    checkpoints: Path = paths.CHECKPOINTS

    def place(self, name: str, recipe: units.Recipe, decided: object) -> dict[str, Any]:
        """Device and checkpoint: other options, another recipe or other classes do not find the latter."""
        classes = list(self.garments("catalog").classes)
        return {"checkpoint": training.keyed(self.checkpoints, name, recipe, decided, classes), "device": self.device}


@dataclass(frozen=True)
class Member:
    """One classifier: `options` and `recipe` decide its weights; `train` writes it to a folder and returns more quality records."""

    name: str
    options: dict
    recipe: units.Recipe
    train: Callable[[Run, Path], dict]

    @property
    def folder(self) -> str:
        """Its place under the model folder, and its name in the manifest."""
        return f"classifiers/{self.name}"


def build_member(member: Member, run: Run, *, quality_images: int) -> dict:
    """Trains, saves and measures one classifier unless it is done; returns its manifest entry."""
    if manifest.current(run.models, member.folder, recipe=member.recipe, options=member.options):
        return manifest.read(run.models)[member.folder]
    manifest.forget(run.models, member.folder)
    quality = member.train(run, run.models / member.folder)
    heldout = run.garments("heldout")
    model = classifiers.load(member.name, str(run.models / member.folder), list(heldout.classes), run.device)
    plain = scenes.sample(heldout, ("zoo", "heldout"), quality_images, style="catalog", unshifted=1.0)
    right = model.logits(scenes.to_uint8(plain.image).numpy()).argmax(1) == plain.label
    steps = sum(part.get("steps", 0) for part in (member.options, *member.options.values()) if isinstance(part, dict))
    about = {"seed": member.options["seed"], "steps": steps, "parameters": model.parameters, "options": member.options}
    return manifest.record(run.models, member.folder, recipe=member.recipe, quality={"accuracy": manifest.share(right)} | quality, **about)


def members(settings: Zoo | Augmentation | Pretraining) -> list[Member]:
    """The classifiers of a section; those that one objective pre-trains follow each other and share its checkpoint."""
    make = pretrained_member if isinstance(settings, Pretraining) else scratch_member
    return [make(name, settings) for name in settings.classifiers]


def scratch_member(name: str, settings: Zoo | Augmentation) -> Member:
    """A classifier trained from scratch on catalog scenes, by DeiT's augmentation or with the mirror alone."""
    options, recipe, strong = settings.classifiers[name], recipes.PLAIN, None
    if isinstance(settings, Augmentation):
        recipe, strong = (
            recipes.AUGMENTED,
            training.Strong(**{field.name: getattr(settings, field.name) for field in fields(training.Strong)}),
        )
    network, schedule = network_of(options), replace(scheduled(vars(settings)), steps=options["steps"])
    decided = {**asdict(schedule), **(asdict(strong) if strong else {}), **options}
    how: dict = {"name": "augmented", "augment": strong} if strong else {"name": "classifier"}

    def train(run: Run, folder: Path) -> dict:
        garments = run.garments("catalog")
        training.begin(schedule.seed)
        model = timm.create_model(network["architecture"], num_classes=len(garments.classes), **network["arguments"])
        place = run.place(name, recipe, decided)
        save(training.train(model, garments, style="catalog", schedule=schedule, **how, **place), folder, **network)
        return {}

    return Member(name, decided, recipe, train)


def pretrained_member(name: str, settings: Pretraining) -> Member:
    """A classifier with the one backbone, pre-trained by an objective and adapted: "finetuned", "probe", or "zero_shot" (CLIP alone).

    What an objective sets, such as its batch size, ends with the pre-training: all backbones are adapted in the same way.
    """
    objective, adaptation = (settings.classifiers[name][key] for key in ("objective", "adaptation"))
    network, recipe, adapted = network_of(settings.network), recipes.PRETRAINED[objective], getattr(settings, adaptation, {})
    shared = {key: getattr(settings, key) for key in SHARED}
    past = shared | settings.objectives[objective]
    schedule = scheduled(past)
    if objective == "clip":  # open_clip makes its image tower by a name
        demand(network["arguments"] == networks.VIT, "pretraining.network", settings.network, f"{networks.VIT} for clip")
    decided = shared | {"objective": objective, "adaptation": adaptation, "network": settings.network}
    decided |= {"pretraining": past, adaptation: adapted}

    def train(run: Run, folder: Path) -> dict:
        garments, catalog = run.garments(POOLS[objective]), run.garments("catalog")
        how = {key: value for key, value in past.items() if key not in vars(schedule)}
        place = run.place(f"pretraining-{objective}", recipe, [past, settings.network])
        start = getattr(pretraining, objective)(garments, network, schedule=schedule, **how, **place)
        if adaptation == "zero_shot":
            contrastive.save(start[0], start[1], folder, classes=garments.classes)
            return {}
        start = start[0].visual.trunk if objective == "clip" else start
        known = knowledge(start, run, settings) if objective in ("mae", "simclr") else {}  # those that see no label
        if adaptation == "probe":
            model = pretraining.probe(catalog, start, network, seed=shared["seed"], device=run.device, **adapted)
        else:
            place = run.place(f"finetuning-{name}", recipe, decided)
            model = pretraining.finetune(catalog, start, network, schedule=scheduled(shared | adapted), **place)
        save(model, folder, **network)
        return known

    return Member(name, decided, recipe, train)


def knowledge(backbone: nn.Module, run: Run, settings: Pretraining) -> dict:
    """The neighbours' test of a backbone that saw no label, and of the same network with its initial weights."""
    network, images = network_of(settings.network), min(1000, settings.quality_images)
    training.begin(settings.seed)
    initial = timm.create_model(network["architecture"], num_classes=0, **network["arguments"])
    how: dict = {"count": images, "style": "catalog", "unshifted": 1.0}
    bank, query = (scenes.sample(run.garments(p), ("pretraining", n), **how) for p, n in (("catalog", "bank"), ("heldout", "query")))
    tested = {"neighbour_accuracy": backbone, "neighbour_accuracy_untrained": initial}
    return {name: manifest.share(selfsupervised.knn_correct(model, bank, query)) for name, model in tested.items()}


def accuracies(entries: dict) -> pd.DataFrame:
    """Weights, steps and held-out accuracy with its interval of the classifiers with these entries, in their order."""
    rows = {name: {"weights": e["parameters"], "steps": e["steps"], **e["quality"]["accuracy"]} for name, e in entries.items()}
    return pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier")


def network_of(options: dict) -> dict:
    """Architecture and arguments of a timm network from a flat mapping."""
    arguments = {key: value for key, value in options.items() if key not in ("steps", "architecture")}
    return {"architecture": options["architecture"], "arguments": arguments}
