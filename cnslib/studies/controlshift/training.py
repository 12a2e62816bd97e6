"""Classifiers trained on one training distribution and tested on its shifts (Control+Shift sections 4.2 and 4.3).

A training is one file of predictions; its weights are not kept. All networks of a run see the same batches, so that their differences
are paired. A training set of twice the size gets as many steps.
"""

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import timm
import torch
from jaxtyping import Float, Int
from sklearn.svm import SVC
from timm.models.vgg import VGG
from torch import Tensor, nn
from torchvision.transforms.v2 import RandAugment

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import demand
from cnslib.core.settings.sections import Controlshift
from cnslib.studies import pools, shared
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.datasets import Pictures
from cnslib.world import training
from cnslib.world.training import Schedule

SVM = "svm"
BATCHES = "degradation"  # the name under which batches have been drawn from the start; another one would draw others
SETS = {
    "truncation": ["train_truncation"],
    "half sphere": ["train_extend"],
    "large": ["train_extend", "train_more"],
    "full support": ["train_full"],
}
ON_SPHERE = ("extend", "overlap")  # the shifts on which all training sets but truncation's are tested
# The families of networks (section 4.2), for pictures of 32 px: of timm's stems one halving, a pooling, is left out, and residual networks
# have three stages, as on CIFAR-10.
SIDE = 32
CLASSIC = (16, "M", 32, "M", 64, 64, "M", 128)  # channels of VGG's convolutions, and its poolings
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "resnet20": partial(timm.create_model, "resnet18", layers=(3, 3, 3), channels=(16, 32, 64)),
    "vgg": partial(VGG, list(CLASSIC), mlp_ratio=1 / 64, norm_layer=nn.BatchNorm2d),
    "densenet": partial(timm.create_model, "densenet121", growth_rate=8, block_config=(2, 4, 4)),
    "resnext": partial(timm.create_model, "resnext50_32x4d", layers=(2, 2, 2), channels=(8, 16, 32), cardinality=4, base_width=16),
    "vit": partial(timm.create_model, "vit_tiny_patch16_224", img_size=SIDE, patch_size=4, embed_dim=64, depth=4, num_heads=4),
    "mixer": partial(timm.create_model, "mixer_64", img_size=SIDE, patch_size=4, embed_dim=64, num_blocks=4),
}
schema = tables.schema(
    ["training", "network", "augmented", "run", *tables.KEY],
    {"training": pa.Column(str, pa.Check.isin(SETS)), "network": pa.Column(str), "augmented": pa.Column(bool)}
    | {"run": pa.Column("int64", pa.Check.ge(1)), **tables.IDENTITY, "top1": pa.Column(str)},
)
Places = Int[np.ndarray, "images"]


@dataclass(frozen=True)
class TrainingRun:
    """One training: on which set, of which network, with or without RandAugment, and the number of the run."""

    training: str
    network: str
    augmented: bool
    run: int

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.training.replace(' ', '_')}_{self.network}_{'augmented' if self.augmented else 'plain'}_{self.run}"

    @property
    def tested(self) -> tuple[str, ...]:
        """The shifts on which it is tested."""
        return ("truncation",) if self.training == "truncation" else ON_SPHERE

    @property
    def validation(self) -> str:
        """The file of unseen images from the distribution that it sees."""
        return f"validation_{self.tested[0]}"


@dataclass(frozen=True)
class Experiment:
    """What all trainings share: settings, data sets and their folder, classes, where checkpoints are kept, the device."""

    settings: Controlshift
    sets: Path
    classes: list[str]
    checkpoints: Path
    device: str

    def stamp(self, run: TrainingRun) -> str:
        """What the predictions of a training depend on."""
        test = [name for kind in run.tested for name in datasets.tested(self.settings, kind)]
        files = [*SETS[run.training], *test, *([run.validation] if run.network == SVM else [])]
        settings = self.settings
        kept = {"steps": settings.training_steps, "seed": settings.training_seed}
        kept |= {key: getattr(settings, key) for key in ("batch_size", "learning_rate", "penalties")}
        return recipes.DEGRADATION.stamp(run, [units.verified(self.sets / f"{name}.parquet") for name in files], kept, self.classes)

    def examples(self, *names: str) -> tuple[Pictures, Places]:
        """Pictures of some files of the data sets, and the places of their classes. ValueError for pictures of another size."""
        demand(self.settings.side == SIDE, "controlshift.side", self.settings.side, f"{SIDE}, for these networks")
        table = datasets.load(self.sets, *names)
        return tables.pictures(table, "training set"), np.array([self.classes.index(name) for name in table["class"]])


def training_runs(settings: Controlshift) -> list[TrainingRun]:
    """Every network on both training distributions, without and with RandAugment (not the SVM), and the reference again on all sets."""
    setups = [setup for setup in itertools.product(settings.networks, (False, True)) if setup != (SVM, True)]
    first = [TrainingRun(training, *setup, 1) for training in ("truncation", "half sphere") for setup in setups]
    again = itertools.product(("half sphere", "large", "full support"), range(1, settings.runs + 1))
    return list(dict.fromkeys([*first, *(TrainingRun(training, settings.reference, False, run) for training, run in again)]))


def outcome(experiment: Experiment, folder: Path) -> pd.DataFrame:
    """The predictions of all trainings; trains what is missing or outdated, one file each."""
    runs = {run.name: run for run in training_runs(experiment.settings)}
    stamps = {name: experiment.stamp(run) for name, run in runs.items()}
    return workers.stored(stamps, partial(train, experiment, runs), schema, folder=folder, device=experiment.device)


def train(experiment: Experiment, runs: dict[str, TrainingRun], name: str) -> pd.DataFrame:
    """One training, and its predictions for the test images."""
    run = runs[name]
    test = datasets.evaluation_set(experiment.sets, experiment.settings, run.tested)
    learn = machine if run.network == SVM else network
    predicted = learn(experiment, run, *experiment.examples(*SETS[run.training]), tables.pictures(test, "test set"))
    return test[tables.KEY].assign(**asdict(run), top1=np.array(experiment.classes, object)[predicted])


def machine(experiment: Experiment, run: TrainingRun, pictures: Pictures, truth: Places, test: Pictures) -> Places:
    """A support vector machine with an RBF kernel on pixels; its penalty is the best of `penalties` on unseen images."""
    unseen, right = experiment.examples(run.validation)
    fitted = [SVC(C=penalty, gamma="scale").fit(flat(pictures), truth) for penalty in experiment.settings.penalties]
    return max(fitted, key=lambda one: one.score(flat(unseen), right)).predict(flat(test))  # the first of several that are best


def flat(pictures: Pictures) -> Float[np.ndarray, "images pixels"]:
    """Pictures as vectors, black 0 and white 1."""
    return pictures.reshape(len(pictures), -1) / 255


def build(name: str, outputs: int) -> nn.Module:
    """A network with random weights for so many classes. ValueError for an unknown name."""
    demand(name in NETWORKS, "controlshift.networks", name, ", ".join([*NETWORKS, "svm"]))
    network = NETWORKS[name](num_classes=outputs)
    if hasattr(network, "maxpool"):
        network.maxpool, network.layer4 = nn.Identity(), nn.Identity()
    if name == "densenet":
        network.get_submodule("features").pool0 = nn.Identity()
    return network


def network(experiment: Experiment, run: TrainingRun, pictures: Pictures, truth: Places, test: Pictures) -> Places:
    """A network from random weights, cross-entropy, AdamW in one cycle, averaged weights; resumes from its checkpoint."""
    settings = experiment.settings
    training.begin(settings.training_seed + run.run)
    model = build(run.network, len(experiment.classes))
    image, label, change = torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(truth), RandAugment()

    def draw(key: tuple) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(image), (settings.batch_size,), generator=seeds.generator(*key))
        chosen = torch.stack([change(picture) for picture in image[rows]]) if run.augmented else image[rows]
        return chosen / 255, label[rows]

    checkpoint = shared.checkpoint(experiment.checkpoints, run.name, experiment.stamp(run))
    schedule = Schedule(settings.training_steps, settings.batch_size, settings.learning_rate, average=0.98, seed=settings.training_seed)
    key = (BATCHES, settings.training_seed, run.run)
    fitted = pools.fit(model, draw, key, schedule, checkpoint=checkpoint, device=experiment.device)
    predicted = pools.top1(fitted, test, experiment.device)
    checkpoint.unlink()
    return predicted
