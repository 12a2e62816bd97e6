"""The mini world's classifiers by name and its oracle: timm models trained on rendered garments, saved as timm directories.

A `Member` says what decides a classifier's weights and how it is trained; the manifest tells whether that has been done already.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from safetensors.torch import save_file
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.settings.sections import Augmentation, Pretraining, Zoo
from cnslib.models import classifiers, networks
from cnslib.plots.captions.words import answered, interval, numbered
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
    """Trains the oracle: class, shift and severity of rendered scenes at every severity, every third batch of the catalog, else of the web.

    A `share` of each batch is replaced by scenes that mini-SD drew again.
    """
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
    """Cross-entropy of class and shift plus binary cross-entropy of the severity, where that is a number.

    Below severity 0.15 a shift is hardly visible, so its name carries no loss there.
    """
    label, shift, severity = (v.to(logits.device) for v in (batch.label, batch.shift, batch.severity))
    named = F.cross_entropy(logits[:, SHIFT_OUTPUTS], shift, reduction="none")
    known = ~severity.isnan()
    visible = ((severity > 0.15) | ~known | (shift == len(SHIFTS))).float()
    amount = F.binary_cross_entropy_with_logits(logits[known, SEVERITY_OUTPUT], severity[known])
    return F.cross_entropy(logits[:, CLASS_OUTPUTS], label) + (named * visible).mean() + amount


@torch.no_grad()
def predict(model: nn.Module, image: Float[Tensor, "batch 3 64 64"]) -> Tensor:
    """Outputs of a trained model on images in [0, 1]."""
    return torch.cat([model.eval()(normalise(part)) for part in image.split(256)])


def class_correct(model: nn.Module, batch: scenes.Batch) -> Bool[Tensor, "batch"]:
    """Whether the class output names each image's class."""
    return predict(model, batch.image)[:, : len(batch.classes)].argmax(1) == batch.label


def named(model: nn.Module, image: Float[Tensor, "batch 3 64 64"], outputs: slice) -> Int[Tensor, "batch"]:
    """The number of the class that a trained model names on each image, or of the shift, where the outputs are those of the shifts."""
    return predict(model, image)[:, outputs].argmax(1)


def exam(garments: scenes.Garments, step: str, images: int) -> tuple[scenes.Batch, scenes.Batch]:
    """Unshifted scenes of the catalog, which ask for the class, and web scenes at half severity or more, which ask for the shift."""
    plain = scenes.sample(garments, (step, "class"), images, style="catalog", unshifted=1.0)
    heavy = scenes.sample(garments, (step, "shift"), images, style="web", unshifted=0.0, lowest=0.5)
    return plain, heavy


def save(model: nn.Module, folder: Path, *, architecture: str, arguments: dict) -> None:
    """Writes a timm directory: config.json with architecture, arguments and preprocessing, and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    preprocessing = {
        "input_size": [3, 64, 64], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "squash",
        "mean": MEAN, "std": STD,
    }  # fmt: skip
    outputs = getattr(model, "num_classes", 0)
    config = {
        "architecture": architecture,
        "num_classes": outputs,
        "num_features": model.num_features,
        "model_args": {**arguments, "num_classes": outputs},
        "pretrained_cfg": {**preprocessing, "num_classes": outputs},
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
LABEL_FREE = ("mae", "simclr")
QUALITY_IMAGES = 1000  # of the neighbours' test, where a classifier is not asked about fewer


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
    """One classifier: `options` (plain values) and `recipe` decide its weights.

    `train` writes its directory and returns quality records beyond the held-out accuracy.
    """

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


def done(member: Member, run: Run) -> bool:
    """Whether the model folder holds the classifier that this recipe trains with these options."""
    return manifest.current(run.models, member.folder, recipe=member.recipe, options=member.options)


def build_member(member: Member, run: Run, *, quality_images: int) -> dict:
    """Trains, saves and measures one classifier unless it is done; returns its manifest entry."""
    if done(member, run):
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
    schedule = dataclasses.replace(schedule_of(table), weight_decay=settings.weight_decay)
    return [
        scratch_member(name, options, recipes.AUGMENTED, schedule=schedule, strong=strong) for name, options in settings.classifiers.items()
    ]


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
    """A classifier whose backbone was pre-trained by an objective ("mae", "simclr", "web", "clip") and then adapted.

    An adaptation is "finetuned", "probe", or "zero_shot" for CLIP. What an objective sets for itself, such as its batch size, ends
    with the pre-training: all backbones are adapted in the same way.
    """
    table = dataclasses.asdict(settings)
    shared = {key: table[key] for key in SHARED}
    past = shared | table["objectives"][objective]
    if objective == "clip":  # open_clip makes its image tower by a name
        demand(
            network_of(settings.network)["arguments"] == networks.VIT, "pretraining.network", settings.network, f"{networks.VIT} for clip"
        )
    adapted = {} if adaptation == "zero_shot" else table[adaptation]
    parts = {"objective": objective, "adaptation": adaptation, "network": settings.network, "pretraining": past, adaptation: adapted}
    decided = {**shared, **parts}

    def train(run: Run) -> dict:
        folder = run.models / "classifiers" / name
        state = checkpoint(run, f"pretraining-{objective}", recipes.PRETRAINED[objective], [past, settings.network])
        where = {"checkpoint": state, "device": run.device}
        start = pretrain(objective, run, network_of(settings.network), past, **where)
        if adaptation == "zero_shot":
            contrastive.save(start[0], start[1], folder, classes=run.garments(OBJECTIVES[objective][1]).classes)
            return {}
        backbone = start[0].visual.trunk if objective == "clip" else start
        known = knowledge(backbone, run, settings) if objective in LABEL_FREE else {}
        save(adapt(adaptation, name, backbone, run, decided), folder, **network_of(settings.network))
        return known

    return Member(name, decided, recipes.PRETRAINED[objective], train)


def pretrain(objective: str, run: Run, network: dict, past: dict, **where) -> Any:
    """The backbone after pre-training (for CLIP: the model and its configuration); at once where its checkpoint is complete."""
    own = {key: value for key, value in past.items() if key not in {field.name for field in dataclasses.fields(Schedule)}}
    trainer, pool = OBJECTIVES[objective]
    backbone = () if objective == "clip" else (network,)
    return trainer(run.garments(pool), *backbone, schedule=schedule_of(past), **own, **where)


def adapt(adaptation: str, name: str, backbone: nn.Module, run: Run, decided: dict) -> nn.Module:
    """A classifier from a backbone."""
    network, own = network_of(decided["network"]), decided[adaptation]
    if adaptation == "probe":
        return pretraining.probe(run.garments("catalog"), backbone, network, seed=decided["seed"], device=run.device, **own)
    schedule = schedule_of({key: decided[key] for key in SHARED} | own)
    where: dict = {
        "checkpoint": checkpoint(run, f"finetuning-{name}", recipes.PRETRAINED[decided["objective"]], decided),
        "device": run.device,
    }
    return pretraining.finetune(run.garments("catalog"), backbone, network, schedule=schedule, **where)


def knowledge(backbone: nn.Module, run: Run, settings: Pretraining) -> dict:
    """The neighbours' test of a backbone that saw no label, and of the same network with its initial weights."""
    network, images = network_of(settings.network), min(QUALITY_IMAGES, settings.quality_images)
    training.begin(settings.seed)
    initial = timm.create_model(network["architecture"], num_classes=0, **network["arguments"])
    tested = {"neighbour_accuracy": backbone, "neighbour_accuracy_untrained": initial}
    right = pretraining.neighbours_know(tested, run.garments("catalog"), run.garments("heldout"), images=images)
    return {name: manifest.share(hits) for name, hits in right.items()}


def table(entries: dict) -> pd.DataFrame:
    """One row per classifier of a manifest: axis, architecture, weights, recipe, steps and held-out accuracy with its interval."""
    found = {name.removeprefix("classifiers/"): entry for name, entry in entries.items() if name.startswith("classifiers/")}
    rows = [{"classifier": name, **described(name, entry)} for name, entry in found.items()]
    return pd.DataFrame(rows).sort_values(["axis", "recipe", "weights"], ignore_index=True).set_index("classifier")


def answer(found: pd.DataFrame) -> str:
    """What a `table` says of the zoo: its span, the past with most and the one with least accuracy, and whose intervals meet theirs.

    Every past comes with an adaptation, and the two cannot be told apart.
    """
    accuracy = found["accuracy"]
    first = f"{numbered(len(found), 'classifier')} know between {accuracy.min():.0%} and {accuracy.max():.0%} of the held-out garments"
    pasts = found[found["axis"] == "pre-training"].rename(columns={"accuracy": "estimate"}).sort_values("estimate", kind="stable")
    said = [at_end(pasts, place, words) for place, words in ((-1, "most"), (0, "least"))]
    backbone = f"With one and the same backbone {'; '.join(said)}"
    return answered(f"{first}. {backbone}. Past and adaptation change together here, so neither is compared by itself.")


def at_end(pasts: pd.DataFrame, place: int, words: str) -> str:
    """Who stands at one end of the pasts, and how many of the others have an interval that meets its own."""
    own, others = pasts.iloc[place], pasts.drop(index=pasts.index[place])
    meet = int(((others["low"] <= own["high"]) & (others["high"] >= own["low"])).sum())
    return f"'{own['recipe']}' knows {words}, {interval(own, '.0%')}, an interval that meets those of {meet} of {len(others)} others"


def accuracies(entries: dict) -> pd.DataFrame:
    """Weights, steps and held-out accuracy with its interval of the classifiers with these entries, in their order."""
    rows = {name: {"weights": e["parameters"], "steps": e["steps"], **e["quality"]["accuracy"]} for name, e in entries.items()}
    return pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier")


def described(name: str, entry: dict) -> dict:
    """What the table says about one classifier; the axes of the paper are architecture, size and pre-training."""
    options, accuracy = entry["options"], entry["quality"]["accuracy"]
    axis = "size" if name.endswith(SIZES) else "architecture"
    recipe = "strong augmentation" if "policy" in options else "from scratch"
    if "objective" in options:
        axis, recipe = "pre-training", f"{options['objective']}, {options['adaptation']}".replace("_", "-")
    about = {"axis": axis, "architecture": (options.get("network") or options)["architecture"], "weights": entry["parameters"]}
    interval = {"accuracy": accuracy["estimate"], "low": accuracy["low"], "high": accuracy["high"], "n": accuracy["n"]}
    return about | {"recipe": recipe, "steps": entry["steps"]} | interval


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
