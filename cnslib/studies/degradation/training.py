"""Classifiers trained on one training distribution and examined on its shifts (Control+Shift sections 4.2 and 4.3).

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

from cnslib.core import kinds, seeds, tables, units, workers
from cnslib.core.names import demand
from cnslib.core.settings.studies import Controlshift, Degradation
from cnslib.models import encoders, networks
from cnslib.studies.controlshift import datasets
from cnslib.world import training
from cnslib.world.training import Schedule

SVM = "svm"
SETS = {
    "truncation": ["train_truncation"],
    "half sphere": ["train_extend"],
    "large": ["train_extend", "train_more"],
    "full support": ["train_full"],
}
EXAMS = {"truncation": ("truncation",)}  # every other training set lies on the sphere
ON_SPHERE = ("extend", "overlap")
LESSON = ["training", "network", "augmented", "run"]
schema = tables.schema(
    [*LESSON, *tables.KEY],
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
class Lesson:
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
class Course:
    """What all trainings share: settings, data sets and their folder, classes, a place for weights in the making, the device."""

    settings: Degradation
    shifted: Controlshift
    sets: Path
    classes: list[str]
    checkpoints: Path
    device: str

    def stamp(self, lesson: Lesson) -> units.Stamp:
        """What the answers of a training depend on."""
        exam = [name for kind in EXAMS.get(lesson.training, ON_SPHERE) for name in datasets.tested(self.shifted, kind)]
        files = [*SETS[lesson.training], *exam, *([validation(lesson)] if lesson.network == SVM else [])]
        kept = {key: getattr(self.settings, key) for key in ("steps", "batch_size", "learning_rate", "penalties", "seed")}
        return kinds.DEGRADATION.stamp(lesson, [units.file_digest(self.sets / f"{name}.parquet") for name in files], kept, self.classes)


def validation(lesson: Lesson) -> str:
    """The file of unseen images from the distribution that a lesson trains on."""
    return "validation_truncation" if lesson.training == "truncation" else "validation_extend"


def lessons(settings: Degradation) -> list[Lesson]:
    """Every network on both training distributions, without and with RandAugment, and further runs of the reference on every set.

    The support vector machine is not augmented: it has no epochs in which an image could come again and differ.
    """
    kinds = [(network, augmented) for network in settings.networks for augmented in (False, True) if not (network == SVM and augmented)]
    found = [Lesson(training, *kind, 1) for training in ("truncation", "half sphere") for kind in kinds]
    sets = ("half sphere", "large", "full support")
    more = [Lesson(training, settings.reference, False, run) for training in sets for run in range(1, settings.runs + 1)]
    return list(dict.fromkeys([*found, *more]))


def outcome(course: Course, folder: Path) -> pd.DataFrame:
    """The answers of all trainings; trains what is missing or outdated, one file each."""
    shelf = units.Shelf(folder, {one: (f"{one.name}.parquet", course.stamp(one)) for one in lessons(course.settings)})
    workers.each(sit, [(course, lesson, shelf[lesson]) for lesson in shelf.waiting()], device=course.device, desc="trainings")
    return tables.read_units(shelf, schema)


def sit(course: Course, lesson: Lesson, unit: units.Unit) -> None:
    """One training and its exam: learns, answers, and writes the answers."""
    exam = datasets.test_set(course.sets, course.shifted, EXAMS.get(lesson.training, ON_SPHERE))
    pictures, truth = stock(course, SETS[lesson.training])
    asked = tables.pictures(exam, "test set")
    learn = machine if lesson.network == SVM else network
    found = learn(course, lesson, pictures, truth, asked)
    keys = {"training": lesson.training, "network": lesson.network, "augmented": lesson.augmented, "run": lesson.run}
    tables.write_unit(exam[tables.KEY].assign(**keys, top1=np.array(course.classes, object)[found]), unit, schema)


def stock(course: Course, names: list[str]) -> tuple[Pictures, Int[np.ndarray, "images"]]:
    """Pictures of some files, and the places of their classes. ValueError for an empty set and for pictures of another size."""
    table = datasets.load(course.sets, *names)
    demand(len(table) > 0, "controlshift: data set", names, "at least one image")
    demand(course.shifted.side == networks.SIDE, "controlshift.side", course.shifted.side, f"{networks.SIDE}, for these networks")
    return tables.pictures(table, "training set"), np.array([course.classes.index(name) for name in table["class"]])


def machine(course: Course, lesson: Lesson, pictures: Pictures, truth: Int[np.ndarray, "n"], asked: Pictures) -> Int[np.ndarray, "m"]:
    """A support vector machine with an RBF kernel on pixels; its penalty is the best of `penalties` on unseen images."""
    unseen, right = stock(course, [validation(lesson)])
    fitted = [SVC(C=penalty, gamma="scale").fit(flat(pictures), truth) for penalty in course.settings.penalties]
    best = max(fitted, key=lambda one: one.score(flat(unseen), right))  # the first of several
    return best.predict(flat(asked))


def flat(pictures: Pictures) -> Float[np.ndarray, "images pixels"]:
    """Pictures as vectors, black 0 and white 1."""
    return pictures.reshape(len(pictures), -1) / 255


def network(course: Course, lesson: Lesson, pictures: Pictures, truth: Int[np.ndarray, "n"], asked: Pictures) -> Int[np.ndarray, "m"]:
    """A network from random weights, cross-entropy, AdamW in one cycle, averaged weights; resumes from its checkpoint."""
    settings = course.settings
    training.begin(settings.seed + lesson.run)
    model = networks.build(lesson.network, len(course.classes))
    image, label = torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(truth)
    change = RandAugment()

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(image), (settings.batch_size,), generator=seeds.generator(*key))
        chosen = torch.stack([change(picture) for picture in image[rows]]) if lesson.augmented else image[rows]
        return training.normalise(chosen / 255), label[rows]

    checkpoint = course.checkpoints / f"{lesson.name}-{course.stamp(lesson)[:12]}.pt"
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=0.98, seed=settings.seed)
    key = ("degradation", settings.seed, lesson.run)
    fitted = training.fit_classifier(model, batch, key, schedule=schedule, checkpoint=checkpoint, device=course.device, half=False)
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
