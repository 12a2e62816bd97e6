"""The mini world's classifiers by name and its oracle: timm models trained on rendered garments, saved as timm directories.

A `Member` says what decides a classifier's weights and how it is trained; the manifest tells whether that has been done already.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import save_file
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.settings.sections import Augmentation, Pretraining, Zoo
from cnslib.models import classifiers, networks
from cnslib.world import contrastive, manifest, pretraining, redrawing, scenes, training
from cnslib.world.training import MEAN, STD, Schedule, fit, flip, normalise

BESIDE = len(SHIFTS) + 2  # outputs of the oracle behind those of the classes: shifts, "unshifted", severity
CLASS_OUTPUTS, SHIFT_OUTPUTS, SEVERITY_OUTPUT = slice(None, -BESIDE), slice(-BESIDE, -1), -1


def train_oracle(
    garments: scenes.Garments,
    *,
    architecture: str,
    arguments: dict,
    schedule: Schedule,
    checkpoint: Path,
    device: str,
    redrawn: redrawing.Redrawn | None = None,
    share: float = 0.0,
):
    """Trains the oracle on class, shift and severity of scenes, every third batch of the catalog; a `share` of each batch is redrawn."""
    torch.manual_seed(schedule.seed)
    model = timm.create_model(architecture, num_classes=len(garments.classes) + BESIDE, **arguments).to(device)

    def loss(step: int) -> Tensor:
        key = ("oracle", schedule.seed, step)
        style = "web" if step % 3 else "catalog"
        batch = scenes.sample(garments, key, schedule.batch_size, style=style, unshifted=0.2, lowest=0.0)
        if redrawn and share:
            batch = redrawing.mixed(batch, redrawn, share, seeds.generator(*key, "redrawn"))
        with training.autocast(device):
            logits = model(normalise(flip(batch.image, seeds.generator(*key, "flip"))).to(device))
        return oracle_loss(logits.float(), batch)

    return fit(model, loss, schedule=schedule, checkpoint=checkpoint).cpu()


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
    return plain, scenes.sample(garments, (step, "shift"), images, style="web", unshifted=0.0, lowest=0.5)


def save(model: nn.Module, folder: Path, *, architecture: str, arguments: dict) -> None:
    """Writes a timm directory: config.json with architecture, arguments and preprocessing, and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    preprocessing = {"input_size": [3, 64, 64], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "squash"}
    outputs = getattr(model, "num_classes", 0)
    config = {
        "architecture": architecture,
        "num_classes": outputs,
        "num_features": model.num_features,
        "model_args": {**arguments, "num_classes": outputs},
        "pretrained_cfg": {**preprocessing, "mean": MEAN, "std": STD, "num_classes": outputs},
    }
    weights = {key: value.half().contiguous() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    with units.atomic(folder / "model.safetensors") as partial:
        save_file(weights, partial)
    units.write_bytes(folder / "config.json", json.dumps(config, indent=2).encode())


OBJECTIVES: dict[str, tuple[Callable, str]] = {  # trainer and pool of every pre-training
    "mae": (pretraining.mae, "catalog"),
    "simclr": (pretraining.simclr, "catalog"),
    "web": (pretraining.web, "web"),
    "clip": (pretraining.clip, "web"),
}
SHARED = ("batch_size", "learning_rate", "average", "seed")
SIZES = ("_xs", "_s", "_m", "_l")  # ends of the names along the size axis; the largest have none


def stored_garments(pool: str, classes: Sequence[str] = scenes.CLASSES) -> scenes.Garments:
    """The garments of one pool that are of these classes."""
    return scenes.garments(paths.GARMENTS, pool, classes)


@dataclass(frozen=True)
class Run:
    """Where a training reads garments, keeps checkpoints and writes its model, and the torch device."""

    models: Path = paths.MODELS
    checkpoints: Path = paths.CHECKPOINTS
    garments: Callable[[str], scenes.Garments] = stored_garments
    device: str = "cpu"


@dataclass(frozen=True)
class Member:
    """One classifier: `options` and `recipe` decide its weights; `train` writes it and returns quality records beyond the accuracy."""

    name: str
    options: dict
    recipe: units.Recipe
    train: Callable[[Run], dict]

    @property
    def folder(self) -> str:
        """Its place under the model folder, and its name in the manifest."""
        return f"classifiers/{self.name}"

    @property
    def steps(self) -> int:
        """Optimiser steps, pre-training and adaptation together."""
        return sum(part.get("steps", 0) for part in (self.options, *filter(lambda v: isinstance(v, dict), self.options.values())))


def build_member(member: Member, run: Run, *, quality_images: int) -> dict:
    """Trains, saves and measures one classifier unless it is done; returns its manifest entry."""
    if manifest.current(run.models, member.folder, recipe=member.recipe, options=member.options):
        return manifest.read(run.models)[member.folder]
    manifest.forget(run.models, member.folder)
    quality = member.train(run)
    heldout = run.garments("heldout")
    model = classifiers.load(member.name, str(run.models / member.folder), list(heldout.classes), run.device)
    plain = scenes.sample(heldout, ("zoo", "heldout"), quality_images, style="catalog", unshifted=1.0)
    right = model.logits(scenes.to_uint8(plain.image).numpy()).argmax(1) == plain.label
    about = {"seed": member.options["seed"], "steps": member.steps, "parameters": model.parameters, "options": member.options}
    return manifest.record(run.models, member.folder, recipe=member.recipe, quality={"accuracy": manifest.share(right)} | quality, **about)


def plain(settings: Zoo) -> list[Member]:
    """The classifiers of one recipe: architectures and sizes."""
    schedule = schedule_of(dataclasses.asdict(settings))
    return [scratch_member(name, options, recipes.PLAIN, schedule=schedule) for name, options in settings.classifiers.items()]


def augmented(settings: Augmentation) -> list[Member]:
    """The classifiers of DeiT's recipe."""
    table = dataclasses.asdict(settings)
    strong = training.Strong(**{field.name: table[field.name] for field in dataclasses.fields(training.Strong)})
    how: dict = {"schedule": schedule_of(table), "strong": strong}
    return [scratch_member(name, options, recipes.AUGMENTED, **how) for name, options in settings.classifiers.items()]


def scratch_member(name: str, options: dict, recipe: units.Recipe, *, schedule: Schedule, strong: training.Strong | None = None) -> Member:
    """A classifier trained from scratch on catalog scenes, with strong augmentation or with the mirror alone."""
    network, own = network_of(options), dataclasses.replace(schedule, steps=options["steps"])
    decided = {**dataclasses.asdict(schedule), **(dataclasses.asdict(strong) if strong else {}), **options}
    how: dict = {"name": "augmented", "augment": strong} if strong else {"name": "classifier"}

    def train(run: Run) -> dict:
        garments = run.garments("catalog")
        training.begin(own.seed)
        model = timm.create_model(network["architecture"], num_classes=len(garments.classes), **network["arguments"])
        where: dict = {"checkpoint": checkpoint(run, name, recipe, decided), "device": run.device, "schedule": own}
        save(training.train(model, garments, style="catalog", **how, **where), run.models / "classifiers" / name, **network)
        return {}

    return Member(name, decided, recipe, train)


def pretrained(settings: Pretraining) -> list[Member]:
    """The classifiers with one backbone and different pasts; those of one objective follow each other and share its checkpoint."""
    return [pretrained_member(name, how["objective"], how["adaptation"], settings) for name, how in settings.classifiers.items()]


def pretrained_member(name: str, objective: str, adaptation: str, settings: Pretraining) -> Member:
    """A classifier pre-trained by an objective and adapted: "finetuned", "probe", or "zero_shot" (CLIP alone).

    What an objective sets, such as its batch size, ends with the pre-training: all backbones are adapted in the same way.
    """
    table, network = dataclasses.asdict(settings), network_of(settings.network)
    shared = {key: table[key] for key in SHARED}
    past = shared | table["objectives"][objective]
    if objective == "clip":  # open_clip makes its image tower by a name
        demand(network["arguments"] == networks.VIT, "pretraining.network", settings.network, f"{networks.VIT} for clip")
    adapted = {} if adaptation == "zero_shot" else table[adaptation]
    parts = {"objective": objective, "adaptation": adaptation, "network": settings.network, "pretraining": past, adaptation: adapted}
    decided = {**shared, **parts}

    def train(run: Run) -> dict:
        folder = run.models / "classifiers" / name
        state = checkpoint(run, f"pretraining-{objective}", recipes.PRETRAINED[objective], [past, settings.network])
        trainer, pool = OBJECTIVES[objective]
        backbone = () if objective == "clip" else (network,)
        own = {key: value for key, value in past.items() if key not in {field.name for field in dataclasses.fields(Schedule)}}
        start = trainer(run.garments(pool), *backbone, schedule=schedule_of(past), **own, checkpoint=state, device=run.device)
        if adaptation == "zero_shot":
            contrastive.save(start[0], start[1], folder, classes=run.garments(pool).classes)
            return {}
        start = start[0].visual.trunk if objective == "clip" else start
        known = knowledge(start, run, settings) if objective in ("mae", "simclr") else {}  # those that see no label
        save(adapt(adaptation, name, start, run, decided), folder, **network)
        return known

    return Member(name, decided, recipes.PRETRAINED[objective], train)


def adapt(adaptation: str, name: str, backbone: nn.Module, run: Run, decided: dict) -> nn.Module:
    """A classifier from a backbone."""
    garments, network, own = run.garments("catalog"), network_of(decided["network"]), decided[adaptation]
    if adaptation == "probe":
        return pretraining.probe(garments, backbone, network, seed=decided["seed"], device=run.device, **own)
    state = checkpoint(run, f"finetuning-{name}", recipes.PRETRAINED[decided["objective"]], decided)
    schedule = schedule_of({key: decided[key] for key in SHARED} | own)
    return pretraining.finetune(garments, backbone, network, schedule=schedule, checkpoint=state, device=run.device)


def knowledge(backbone: nn.Module, run: Run, settings: Pretraining) -> dict:
    """The neighbours' test of a backbone that saw no label, and of the same network with its initial weights."""
    network, images = network_of(settings.network), min(1000, settings.quality_images)
    training.begin(settings.seed)
    initial = timm.create_model(network["architecture"], num_classes=0, **network["arguments"])
    tested = {"neighbour_accuracy": backbone, "neighbour_accuracy_untrained": initial}
    right = pretraining.neighbours_know(tested, run.garments("catalog"), run.garments("heldout"), images=images)
    return {name: manifest.share(hits) for name, hits in right.items()}


def accuracies(entries: dict) -> pd.DataFrame:
    """Weights, steps and held-out accuracy with its interval of the classifiers with these entries, in their order."""
    rows = {name: {"weights": e["parameters"], "steps": e["steps"], **e["quality"]["accuracy"]} for name, e in entries.items()}
    return pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier")


def table(entries: dict) -> pd.DataFrame:
    """One row per classifier of a manifest: axis of the paper, architecture and recipe beside `accuracies`."""
    chosen = {name.removeprefix("classifiers/"): entry for name, entry in entries.items() if name.startswith("classifiers/")}
    about = pd.DataFrame({name: described(name, entry["options"]) for name, entry in chosen.items()}).T
    return about.join(accuracies(chosen)).sort_values(["axis", "recipe", "weights"]).rename_axis("classifier")


def described(name: str, options: dict) -> dict[str, str]:
    """Axis, architecture and recipe of a classifier with these options."""
    architecture = (options.get("network") or options)["architecture"]
    if "objective" in options:
        recipe = f"{options['objective']}, {options['adaptation']}".replace("_", "-")
        return {"axis": "pre-training", "architecture": architecture, "recipe": recipe}
    recipe = "strong augmentation" if "policy" in options else "from scratch"
    return {"axis": "size" if name.endswith(SIZES) else "architecture", "architecture": architecture, "recipe": recipe}


def schedule_of(table: dict) -> Schedule:
    """The fields of a schedule among others; no steps where each classifier brings its own."""
    return Schedule(**({"steps": 0} | {f.name: table[f.name] for f in dataclasses.fields(Schedule) if f.name in table}))


def network_of(options: dict) -> dict:
    """Architecture and arguments of a timm network from a flat mapping."""
    arguments = {key: value for key, value in options.items() if key not in ("steps", "architecture")}
    return {"architecture": options["architecture"], "arguments": arguments}


def checkpoint(run: Run, name: str, recipe: units.Recipe, decided: object) -> Path:
    """A checkpoint that other options, another recipe or other classes do not find."""
    return training.keyed(run.checkpoints, name, recipe, decided, list(run.garments("catalog").classes))
