"""Classifiers trained on one training distribution and tested on its shifts (Control+Shift sections 4.2 and 4.3).

A training is one file of answers; its weights are not kept. All networks of a run see the same batches, so that their differences are
paired. A training set of twice the size gets as many steps.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, Int, UInt8
from sklearn.svm import SVC
from torch import Tensor, nn
from torchvision.transforms.v2 import RandAugment

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import demand
from cnslib.core.settings.studies import Controlshift
from cnslib.models import encoders, networks
from cnslib.studies.controlshift import datasets
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
TEST_KINDS = {"truncation": ("truncation",)}  # every other training set lies on the sphere
ON_SPHERE = ("extend", "overlap")
RUN_KEY = ["training", "network", "augmented", "run"]
schema = tables.schema(
    [*RUN_KEY, *tables.KEY],
    {
        "training": pa.Column(str, pa.Check.isin(SETS)),
        "network": pa.Column(str),
        "augmented": pa.Column(bool),
        "run": pa.Column("int64", pa.Check.ge(1)),
        **tables.IDENTITY,
        "top1": pa.Column(str),
    },
)
Pictures = UInt8[np.ndarray, "images side side 3"]


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


@dataclass(frozen=True)
class Experiment:
    """What all trainings share: settings, data sets and their folder, classes, a place for weights in the making, the device."""

    settings: Controlshift
    sets: Path
    classes: list[str]
    checkpoints: Path
    device: str

    def stamp(self, training_run: TrainingRun) -> str:
        """What the answers of a training depend on."""
        test = [name for kind in TEST_KINDS.get(training_run.training, ON_SPHERE) for name in datasets.tested(self.settings, kind)]
        files = [*SETS[training_run.training], *test, *([validation(training_run)] if training_run.network == SVM else [])]
        own = self.settings
        kept = {"steps": own.training_steps, "seed": own.training_seed}
        kept |= {key: getattr(own, key) for key in ("batch_size", "learning_rate", "penalties")}
        return recipes.DEGRADATION.stamp(
            training_run, [units.verified(self.sets / f"{name}.parquet") for name in files], kept, self.classes
        )


def validation(training_run: TrainingRun) -> str:
    """The file of unseen images from the distribution that a training run sees."""
    return "validation_truncation" if training_run.training == "truncation" else "validation_extend"


def training_runs(settings: Controlshift) -> list[TrainingRun]:
    """Every network on both training distributions, without and with RandAugment, and further runs of the reference on every set.

    The support vector machine is not augmented: it has no epochs in which an image could come again and differ.
    """
    kinds = [(network, augmented) for network in settings.networks for augmented in (False, True) if not (network == SVM and augmented)]
    found = [TrainingRun(training, *kind, 1) for training in ("truncation", "half sphere") for kind in kinds]
    sets = ("half sphere", "large", "full support")
    more = [TrainingRun(training, settings.reference, False, run) for training in sets for run in range(1, settings.runs + 1)]
    return list(dict.fromkeys([*found, *more]))


def outcome(experiment: Experiment, folder: Path) -> pd.DataFrame:
    """The answers of all trainings; trains what is missing or outdated, one file each."""
    shelf = units.Shelf(folder, {one: (f"{one.name}.parquet", experiment.stamp(one)) for one in training_runs(experiment.settings)})
    workers.each(
        train_and_answer,
        [(experiment, training_run, shelf[training_run]) for training_run in shelf.waiting()],
        device=experiment.device,
        desc="trainings",
    )
    return tables.read_units(shelf, schema)


def train_and_answer(experiment: Experiment, training_run: TrainingRun, unit: units.Unit) -> None:
    """One training run: trains, answers the test images, and writes the answers."""
    test = datasets.evaluation_set(experiment.sets, experiment.settings, TEST_KINDS.get(training_run.training, ON_SPHERE))
    pictures, truth = stock(experiment, SETS[training_run.training])
    asked = tables.pictures(test, "test set")
    learn = machine if training_run.network == SVM else network
    found = learn(experiment, training_run, pictures, truth, asked)
    keys = {
        "training": training_run.training,
        "network": training_run.network,
        "augmented": training_run.augmented,
        "run": training_run.run,
    }
    tables.write_unit(test[tables.KEY].assign(**keys, top1=np.array(experiment.classes, object)[found]), unit, schema)


def stock(experiment: Experiment, names: list[str]) -> tuple[Pictures, Int[np.ndarray, "images"]]:
    """Pictures of some files, and the places of their classes. ValueError for an empty set and for pictures of another size."""
    table = datasets.load(experiment.sets, *names)
    demand(len(table) > 0, "controlshift: data set", names, "at least one image")
    side = experiment.settings.side
    demand(side == networks.SIDE, "controlshift.side", side, f"{networks.SIDE}, for these networks")
    return tables.pictures(table, "training set"), np.array([experiment.classes.index(name) for name in table["class"]])


def machine(
    experiment: Experiment, training_run: TrainingRun, pictures: Pictures, truth: Int[np.ndarray, "n"], asked: Pictures
) -> Int[np.ndarray, "m"]:
    """A support vector machine with an RBF kernel on pixels; its penalty is the best of `penalties` on unseen images."""
    unseen, right = stock(experiment, [validation(training_run)])
    fitted = [SVC(C=penalty, gamma="scale").fit(flat(pictures), truth) for penalty in experiment.settings.penalties]
    best = max(fitted, key=lambda one: one.score(flat(unseen), right))  # the first of several
    return best.predict(flat(asked))


def flat(pictures: Pictures) -> Float[np.ndarray, "images pixels"]:
    """Pictures as vectors, black 0 and white 1."""
    return pictures.reshape(len(pictures), -1) / 255


def network(
    experiment: Experiment, training_run: TrainingRun, pictures: Pictures, truth: Int[np.ndarray, "n"], asked: Pictures
) -> Int[np.ndarray, "m"]:
    """A network from random weights, cross-entropy, AdamW in one cycle, averaged weights; resumes from its checkpoint."""
    settings = experiment.settings
    training.begin(settings.training_seed + training_run.run)
    model = networks.build(training_run.network, len(experiment.classes))
    image, label = torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(truth)
    change = RandAugment()

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        training.reseed(*key)
        rows = torch.randint(len(image), (settings.batch_size,), generator=seeds.generator(*key))
        chosen = torch.stack([change(picture) for picture in image[rows]]) if training_run.augmented else image[rows]
        return training.normalise(chosen / 255), label[rows]

    checkpoint = experiment.checkpoints / f"{training_run.name}-{experiment.stamp(training_run)[:12]}.pt"
    schedule = Schedule(settings.training_steps, settings.batch_size, settings.learning_rate, average=0.98, seed=settings.training_seed)
    key = (BATCHES, settings.training_seed, training_run.run)
    fitted = training.fit_classifier(model, batch, key, schedule=schedule, checkpoint=checkpoint, device=experiment.device)
    found = answers(fitted, asked)
    checkpoint.unlink()
    return found


@torch.no_grad()
def answers(model: nn.Module, pictures: Pictures) -> Int[np.ndarray, "images"]:
    """The first answer of a network to every picture, as the place of its class."""
    image = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    device = next(model.parameters()).device
    return torch.cat(
        [model.eval()(training.normalise(part / 255).to(device)).argmax(1).cpu() for part in image.split(encoders.BATCH)]
    ).numpy()
