"""Fine-tuning with generated images (CNS-Bench supplement C, Table 6): half generated and half real against real alone.

Both arms of a run share initial weights, the order of the scenes, and the real half of every batch.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier
from cnslib.core.pictures import read
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Synthetic
from cnslib.data import artifacts, catalog, testsets
from cnslib.data.testsets import TestSet
from cnslib.models import encoders
from cnslib.stats import bootstrap
from cnslib.studies import pools, shared
from cnslib.world import scenes, training
from cnslib.world.training import Schedule

BEFORE, REAL, MIXED = "not fine-tuned", "real", "half generated"
CATALOG, STYLES = "catalog, held out", "rendered styles"  # in the roles of ImageNet's validation set and of ImageNet-R
SIDE = 224  # px of real pictures
STYLE_SHIFTS = tuple(shift for shift in SHIFTS if not shift.startswith("heavy"))
PICTURE = ["exam", "shift", "class", "seed"]  # `exam` names the test set, in all tables of this step
schema = tables.schema(
    ["arm", "run", *PICTURE],
    {
        "arm": pa.Column(str, pa.Check.isin([BEFORE, REAL, MIXED])),
        "run": pa.Column("int64", pa.Check.ge(0)),
        "exam": pa.Column(str, pa.Check.isin([CATALOG, STYLES, *testsets.KINDS])),
        **{key: tables.IDENTITY[key] for key in tables.TRAJECTORY},
        "top1": pa.Column(str),
    },
)
Pictures = UInt8[np.ndarray, "rows side side 3"]


class Stock(NamedTuple):
    """Pictures with the index of their class, and a digest of where they come from."""

    pictures: Pictures
    label: Int[np.ndarray, "rows"]
    origin: str


class EvaluationSet(NamedTuple):
    """Pictures that are predicted (exam, shift, class, seed), none of which was trained on."""

    table: pd.DataFrame
    pictures: Pictures
    tests: Mapping[str, TestSet] | None = None  # by exam, whose classes alone count in an answer
    origin: str = ""  # digest of published pictures


@dataclass(frozen=True)
class Experiment:
    """What every run has in common: settings, the generated pictures, the test set, and where weights in the making are kept."""

    settings: Synthetic
    generated: Stock
    evaluation_set: EvaluationSet
    labels: list[str]
    checkpoints: Path
    device: str

    def stamp(self, arm: str, run: int) -> str:
        """What the predictions of one run depend on."""
        source = encoders.source_digest(self.settings.network)
        kept = {key: value for key, value in vars(self.settings).items() if key not in ("runs", "bootstrap", "tests")}
        shown = self.evaluation_set.table.to_dict("list"), self.labels
        real = [self.evaluation_set.origin] if self.evaluation_set.origin else []
        return recipes.SYNTHETIC.stamp(arm, run, source, kept, self.generated.origin, *shown, *real)


def generated(images: Path, kept: pd.DataFrame, *, labels: list[str], settings: Synthetic, folder: Path) -> Stock:
    """The shifted pictures of all kept trajectories. ValueError where there are none.

    Beside real pictures they have their size, and lie in a file of `folder`: the paper's are 31 GB.
    """
    shifts = sorted(set(kept["shift"]))
    parts = [artifacts.keys(images, shift).merge(kept, on=tables.TRAJECTORY) for shift in shifts]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=tables.KEY)
    demand(len(rows) > 0, "artifacts/filtering/kept.parquet", 0, "at least one kept trajectory")
    digests = [units.verified(images / f"{identifier(shift)}.parquet") for shift in shifts]
    origin = units.digest(digests, rows[tables.KEY].to_dict("list"))
    batches = (part.merge(kept, on=tables.TRAJECTORY) for shift in shifts for part in artifacts.batches(images, shift))
    drawn = (tables.decode(data, "generated") for part in batches for data in part["image"])
    if settings.tests:
        folder.mkdir(parents=True, exist_ok=True)
        shown: np.ndarray = np.lib.format.open_memmap(folder / "generated.npy", "w+", np.uint8, (len(rows), SIDE, SIDE, 3))
        for place, picture in enumerate(drawn):
            shown[place] = squared(picture)
    else:
        shown = np.stack(list(drawn))
    return Stock(shown, np.array([labels.index(name) for name in rows["class"]]), origin)


def squared(picture: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "side side 3"]:
    """A real picture, or one beside real ones, at the size of ImageNet's classifiers."""
    return catalog.square(picture, SIDE)


def real_evaluation_set(pictures: Path, classes: list[str], *, settings: Synthetic) -> EvaluationSet:
    """ImageNet's validation pictures of the classes, and those of the named test sets (Table 6). Errors as those of `testsets.load`."""
    others = {name: testsets.load(name, paths.resolve(root), classes) for name, root in settings.tests.items() if name != testsets.REAL}
    real = {name: testsets.reassessed(paths.resolve(settings.tests[name]), pictures, classes) for name in settings.tests.keys() - others}
    tests = others | real
    rows, shown = list[tuple[str, str, int]](), list[Pictures]()
    for name, numbers, images in catalog.whole(pictures, "heldout", classes):
        rows += [(CATALOG, name, number) for number in numbers]
        shown += map(squared, images)
    for exam, test in tests.items():
        rows += test.table.assign(exam=exam)[["exam", "class", "seed"]].itertuples(index=False, name=None)
        shown += map(squared, test.pictures())
    table = pd.DataFrame(rows, columns=["exam", "class", "seed"]).assign(shift=UNSHIFTED)[PICTURE]
    return EvaluationSet(table, np.stack(shown), tests, units.digest([units.digest(picture.tobytes().hex()) for picture in shown]))


def evaluation_set(pictures: pd.DataFrame, pool: scenes.Garments, classes: list[str], *, settings: Synthetic) -> EvaluationSet:
    """The catalog's held-out pictures, and held-out garments in the eight styles at severities from `lowest` to 1, each in one style."""
    heldout = pictures[(pictures["split"] == "heldout") & pictures["class"].isin(classes)].reset_index(drop=True)
    plain = heldout[["class", "seed"]].assign(exam=CATALOG, shift=UNSHIFTED)[PICTURE]
    plan, drawn = styled(pool, classes, settings=settings)
    table = pd.concat([plain, plan], ignore_index=True)
    return EvaluationSet(table, np.concatenate([tables.pictures(heldout, "catalog"), drawn]))


def styled(pool: scenes.Garments, classes: list[str], *, settings: Synthetic) -> tuple[pd.DataFrame, Pictures]:
    """The style reference: `style_images` garments per class and style, the last ones of each class."""
    places = itertools.product(classes, enumerate(STYLE_SHIFTS), range(1, settings.style_images + 1))
    keys = [(STYLES, shift, name, place * settings.style_images + number) for name, (place, shift), number in places]
    plan = pd.DataFrame(keys, columns=PICTURE)
    rows = [np.flatnonzero(pool.labels == pool.classes.index(name))[-seed] for name, seed in zip(plan["class"], plan["seed"], strict=True)]
    keys = [("synthetic", settings.seed, *key) for key in plan[tables.TRAJECTORY].itertuples(index=False, name=None)]
    chance = torch.stack([torch.rand((), generator=seeds.generator(*key, "severity")) for key in keys])
    amount = settings.lowest + (1 - settings.lowest) * chance
    image = scenes.render(pool.grey[rows], keys, style="catalog", shift=plan["shift"].tolist(), severity=amount)
    return plan, scenes.to_uint8(image).numpy()


def outcome(experiment: Experiment, *, folder: Path, photographs: list[tuple[str, Path]] | None = None) -> pd.DataFrame:
    """The predictions of all runs of both arms and of the network before them; trains what is missing or outdated, one file each.

    The real pictures are catalog scenes, or `photographs`, files with their class.
    """
    runs = [(BEFORE, 0), *((arm, run) for run in range(1, experiment.settings.runs + 1) for arm in (REAL, MIXED))]
    stamps, device = {key: experiment.stamp(*key) for key in runs}, experiment.device
    pool = lambda: [photographs or scenes.garments(paths.GARMENTS, "catalog", experiment.labels)]  # noqa: E731
    return workers.stored(stamps, partial(train_and_answer, experiment), schema, folder=folder, device=device, common=pool)


def training_files(pictures: Path, classes: list[str]) -> list[tuple[str, Path]]:
    """ImageNet's training pictures of the classes, with their class."""
    return [(name, file) for name in classes for file in sorted(catalog.class_folder(pictures, "train", name).iterdir())]


def train_and_answer(experiment: Experiment, key: tuple[str, int], pool: scenes.Garments | list) -> pd.DataFrame:
    """The predictions of one run, fine-tuned unless it is the network as it was."""
    (arm, run), device = key, experiment.device
    model, _ = encoders.timm_model("synthetic.network", experiment.settings.network, device)
    model = pools.with_statistics(model, "synthetic.network") if experiment.settings.tests else model
    checkpoint = shared.checkpoint(experiment.checkpoints, key, experiment.stamp(*key))
    if arm != BEFORE:
        model = finetune(model, experiment, pool, arm=arm, run=run, checkpoint=checkpoint)
    top1 = predictions(model, experiment.evaluation_set, experiment.labels, device)
    checkpoint.unlink(missing_ok=True)
    return experiment.evaluation_set.table.assign(arm=arm, run=run, top1=top1)


def predictions(model: nn.Module, shown: EvaluationSet, labels: list[str], device: str) -> list[str]:
    """The class that each picture is taken for: in a published test set among its own."""
    if not shown.tests:
        return [labels[place] for place in pools.top1(model, shown.pictures, device)]
    logits, exams = pools.outputs(model, shown.pictures, device), shown.table["exam"].to_numpy()
    top1 = np.array(labels, object)[logits.argmax(axis=1)]
    for name, test in shown.tests.items():
        top1[exams == name] = test.predictions(logits[exams == name])
    return top1.tolist()


def finetune(model: nn.Module, experiment: Experiment, pool: scenes.Garments | list, *, arm: str, run: int, checkpoint: Path) -> nn.Module:
    """All weights, cross-entropy with the zoo's smoothing and mirror; resumes from its checkpoint."""
    settings = experiment.settings
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=settings.seed)

    def draw(key: tuple) -> tuple[Tensor, Tensor]:
        image, label = batch(pool, experiment.generated, key, experiment, share=settings.share if arm == MIXED else 0.0)
        return training.flip(image, seeds.generator(*key, "flip")), label

    key = ("synthetic", settings.seed, run)
    return pools.fit(model, draw, key, schedule, checkpoint=checkpoint, device=experiment.device, smoothing=0.1)


def batch(
    pool: scenes.Garments | list, stock: Stock, key: tuple, experiment: Experiment, *, share: float
) -> tuple[Float[Tensor, "batch 3 side side"], Int[Tensor, "batch"]]:
    """One batch whose last `share` is generated; the real images in front are those that a batch without generated ones begins with."""
    count = experiment.settings.batch_size
    if isinstance(pool, list):
        chosen = [pool[row] for row in torch.randint(len(pool), (count,), generator=seeds.generator(*key)).tolist()]
        shown = pools.batch_of(np.stack([squared(read(file, str(file))) for _, file in chosen]))
        labels = torch.tensor([experiment.labels.index(name) for name, _ in chosen])
    else:
        real = scenes.sample(pool, key, count, style="catalog", unshifted=1.0)
        shown, labels = real.image, torch.tensor([experiment.labels.index(name) for name in pool.classes])[real.label]
    drawn = round(share * count)
    rows = torch.randint(len(stock.label), (count,), generator=seeds.generator(*key, "generated"))[:drawn].numpy()
    image, label = pools.batch_of(stock.pictures[rows]), torch.from_numpy(stock.label[rows])
    return torch.cat([shown[: count - drawn], image]), torch.cat([labels[: count - drawn], label])


def right(replies: pd.DataFrame, by: list[str]) -> pd.Series:
    """Accuracy of every run of every arm, per test set or finer, indexed by arm, run and `by`."""
    return (replies["top1"] == replies["class"]).groupby([replies[name] for name in ["arm", "run", *by]]).mean()


def gains(replies: pd.DataFrame, *, by: str, confidence: float) -> pd.DataFrame:
    """What generated images add: accuracy of the half-generated arm minus the real one's, paired by run, t interval over runs."""
    accuracies = right(replies, [by])
    difference = (accuracies[MIXED] - accuracies[REAL]).dropna()
    groups = difference.groupby(by, sort=False)
    return pd.DataFrame([{by: key, **bootstrap.independent_mean(gaps.to_numpy(), confidence=confidence)} for key, gaps in groups])


def over_garments(replies: pd.DataFrame, *, first: str, second: str, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy of one arm minus another's per test set, runs averaged, resampled by garment: what other pictures change; n garments."""
    marked = replies.assign(right=(replies["top1"] == replies["class"]).astype(float))
    means = marked.groupby(["arm", *PICTURE])["right"].mean().unstack("arm").reset_index()
    change = means.assign(change=means[first] - means[second])
    return bootstrap.means(change, ["change"], ["exam"], settings=settings).drop(columns="measure")
