"""Rendered and drawn weather before the same eyes (CNS-Bench section 4.3 and supplement L, Figs. 4 and 31).

The reference are held-out garments, each rendered in one weather of an unknown severity; on the ladder other garments stand at known
severities. Drawn images have scales up to 3 and 85 % of the steps with the slider, and are not kept. In all tables `scale` is the severity
where a picture is rendered, the slider scale where drawn.
"""

import copy
import dataclasses
import itertools
import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torchvision.transforms import v2

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Oodcv
from cnslib.data import catalog
from cnslib.data import oodcv as files
from cnslib.method import filtering, generation
from cnslib.method.filtering import SHIFT_PROMPT, Judges, Views
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, classifiers, encoders, text_to_image
from cnslib.models.classifiers import Classifier
from cnslib.models.encoders import Clip
from cnslib.stats import bootstrap
from cnslib.studies import pools
from cnslib.world import scenes, zoo
from cnslib.world.training import begin, normalise, reseed

# Classifiers: fine-tuning with standard augmentation and early stopping. The zoo's loop does not stop early, since its one-cycle pace needs
# to know the end beforehand; so the rate is constant here.

TRAINING = ("training_images", "validation_images", "epochs", "patience", "batch_size", "learning_rate", "rotation", "zoom", "seed")
WEIGHTS, HISTORY = "/model.safetensors", ".csv"
Scenes = tuple[Float[Tensor, "n 3 side side"], Int[Tensor, "n"]]  # images in [0, 1] with their class indices


@dataclass(frozen=True)
class FineTuning:
    """Which networks are fine-tuned on what, and where weights (outside of the artifacts) and histories (in `folder`) are kept."""

    settings: Oodcv
    classes: list[str]
    labels: list[str]
    weights: Path
    folder: Path
    device: str

    def stamp(self, name: str) -> str:
        """What a classifier is made from: the network it starts from, the pictures, and the settings of the training."""
        source = encoders.source_digest(self.settings.networks[name])
        training = {key: value for key, value in dataclasses.asdict(self.settings).items() if key in TRAINING}
        published = [units.directory_digest(paths.resolve(self.settings.root) / "train")] if self.settings.root else []
        return recipes.FINETUNED.stamp(name, source, training, self.classes, self.labels, *published)

    def shelf(self, folder: Path, ending: str) -> units.Shelf[str]:
        """A file with this ending for every classifier: its weights in `weights`, its history in `folder`."""
        return units.Shelf(folder, {name: (f"{name}{ending}", self.stamp(name)) for name in self.settings.networks}, f"*{ending}")

    @cached_property
    def classifiers(self) -> list[Classifier]:
        """The fine-tuned classifiers; trains those whose weights are missing or outdated."""
        paths_of = self.trained(self.shelf(self.weights, WEIGHTS))
        return [classifiers.load(name, str(path.parent), self.labels, self.device) for name, path in paths_of.items()]

    def histories(self) -> pd.DataFrame:
        """Loss and validation accuracy of every epoch (model, epoch, loss, n, accuracy, best); trains where one is missing or outdated."""
        paths_of = self.trained(self.shelf(self.folder, HISTORY))
        return pd.concat([pd.read_csv(path).assign(model=name) for name, path in paths_of.items()], ignore_index=True)

    def trained(self, shelf: units.Shelf[str]) -> dict[str, Path]:
        """The files of a shelf, after the networks whose files are missing or outdated were fine-tuned, one per core."""
        if names := shelf.waiting():
            first = self.settings.training_images  # validation garments come after those of the training
            parts = [catalog_scenes(self, "training", 0, first), catalog_scenes(self, "validation", first, self.settings.validation_images)]
            workers.each(finetune_and_store, [(self, name, *parts) for name in names], device=self.device, desc="classifiers")
        return shelf.paths


def catalog_scenes(tuning: FineTuning, part: str, first: int, count: int) -> Scenes:
    """Unshifted catalog scenes, or pictures of OOD-CV's training set, `count` per class from the first one on."""
    if tuning.settings.root:
        table, pictures = files.read(paths.resolve(tuning.settings.root), "train", classes=tuning.classes)
        rows = np.flatnonzero(table.groupby("class").cumcount().between(first, first + count - 1))
        label = torch.tensor([tuning.labels.index(name) for name in table["class"].iloc[rows]])
        return pools.batch_of(np.stack([catalog.square(pictures[row], SIDE) for row in rows])), label
    pool, images, labels = scenes.garments(paths.GARMENTS, "catalog"), [], []
    for name in tuning.classes:
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[first : first + count]
        keys = [("oodcv", part, tuning.settings.seed, name, i) for i in range(len(rows))]
        unshifted: dict = {"shift": [UNSHIFTED] * len(rows), "severity": torch.zeros(len(rows))}
        images.append(scenes.render(pool.grey[rows], keys, style="catalog", **unshifted))
        labels += [tuning.labels.index(name)] * len(rows)
    return torch.cat(images), torch.tensor(labels)


def finetune_and_store(tuning: FineTuning, name: str, training: Scenes, validation: Scenes) -> None:
    """Fine-tunes one network and writes its weights and its history."""
    weights, history = tuning.shelf(tuning.weights, WEIGHTS)[name], tuning.shelf(tuning.folder, HISTORY)[name]
    model, table = finetune(tuning, name, training, validation)
    config = json.loads((paths.resolve(tuning.settings.networks[name]) / "config.json").read_text())
    arguments = {key: value for key, value in config["model_args"].items() if key != "num_classes"}
    zoo.save(model, weights.path.parent, architecture=config["architecture"], arguments=arguments)
    if tuning.settings.root:
        saved = weights.path.parent / "config.json"
        stored_config = json.loads(saved.read_text())
        stored_config["pretrained_cfg"] |= {"input_size": [3, SIDE, SIDE], "crop_mode": "center"}
        units.write_bytes(saved, json.dumps(stored_config, indent=2).encode())
    units.write_bytes(history.path, table.to_csv(index=False, lineterminator="\n").encode())
    for unit in (weights, history):
        unit.finish()


def finetune(tuning: FineTuning, name: str, training: Scenes, validation: Scenes) -> tuple[nn.Module, pd.DataFrame]:
    """Trains all weights under a new head until `patience` epochs bring no better validation accuracy; returns the best epoch's model."""
    settings = tuning.settings
    begin(settings.seed)
    model, _ = encoders.timm_model(f"oodcv.networks.{name}", settings.networks[name], tuning.device)
    model.reset_classifier(len(tuning.labels))  # type: ignore[operator]
    model.requires_grad_(True).to(tuning.device)
    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate)
    rows, best, kept = list[dict](), 0, {}
    for epoch in range(1, settings.epochs + 1):
        loss = run_epoch(model, optimizer, training, key=(name, settings.seed, epoch), settings=settings)
        rows.append({"epoch": epoch, "loss": round(loss, 6), "n": len(validation[1]), "accuracy": share_correct(model, validation)})
        if epoch == 1 or rows[-1]["accuracy"] > rows[best]["accuracy"]:
            best, kept = epoch - 1, copy.deepcopy(model.state_dict())
        if epoch - 1 - best >= settings.patience:
            break
    model.load_state_dict(kept)
    return model.cpu().eval(), pd.DataFrame(rows).assign(best=[number == best for number in range(len(rows))])


def run_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, training: Scenes, *, key: tuple, settings: Oodcv) -> float:
    """One pass over the training scenes in a random order; returns the mean loss.

    Each image is scaled, rotated and flipped on its own, the paper's "standard data augmentations"; what comes into view is grey.
    """
    model.train()
    image, label = training
    device = next(model.parameters()).device
    turned = {"scale": (1 / settings.zoom, settings.zoom), "fill": 0.5, "interpolation": v2.InterpolationMode.BILINEAR}
    change = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomAffine(settings.rotation, **turned)])
    total = 0.0
    for step, rows in enumerate(torch.randperm(len(label), generator=seeds.generator("oodcv", *key)).split(settings.batch_size)):
        reseed("oodcv", *key, step)
        logits = model(normalise(torch.stack([change(picture) for picture in image[rows]])).to(device))
        loss = F.cross_entropy(logits, label[rows].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(label)


@torch.no_grad()
def share_correct(model: nn.Module, validation: Scenes) -> float:
    """Accuracy without augmentation."""
    model.eval()
    device = next(model.parameters()).device
    predicted = torch.cat([model(normalise(part).to(device)).argmax(1).cpu() for part in validation[0].split(256)])
    return float((predicted == validation[1]).float().mean())


# What is drawn, rendered and seen.

OTHERS = (UNSHIFTED, "heavy sandstorm")  # neither snow nor fog nor rain; OOD-CV's own file names add the query "desert"
FEATURES = "features"
SIDE = 224  # px of published pictures
WEATHERS = {"snow": "heavy snow", "fog": "heavy fog", "rain": "heavy rain", "sand": "heavy sandstorm", "unknown": UNSHIFTED}
Pictures = UInt8[np.ndarray, "rows side side 3"]


@dataclass(frozen=True)
class Study:
    """What images are drawn from, and the models that look at all pictures: the filter's judges and the fine-tuned classifiers."""

    sampler: Sampler
    origin: text_to_image.Origin
    sliders: Path
    judges: Judges
    tuning: FineTuning

    @cached_property
    def digest(self) -> str:
        """What a prediction depends on besides the picture."""
        return units.digest([self.tuning.stamp(name) for name in self.tuning.settings.networks], self.judges.clip.digest)

    def drawing(self, name: str) -> str:
        """What the images of a class depend on: base model, token, sliders, sampling settings, scales and seeds."""
        settings = self.tuning.settings
        sliders = [adapters.file_digest(slider_path(self.sliders, shift, name)) for shift in settings.shifts]
        grid, origin = (settings.shifts, settings.scales, settings.seeds), self.origin
        return units.digest(name, PROMPT, grid, self.sampler.settings.drawn(), origin.base, origin.tokens[name], sliders)

    def schema(self, *, features: bool = True, drawn: bool = False) -> pa.DataFrameSchema:
        """Key, predictions and CLIP's features; of drawn images the filter's cosines and the oracle's probability as well."""
        columns = {name: pa.Column(str) for name in self.tuning.settings.networks}
        if drawn:
            columns |= {name: pa.Column(float, tables.COSINE) for name in filtering.DETECTORS} | {"class_probability": pa.Column(float)}
        return tables.schema(tables.KEY, {**tables.IDENTITY, **columns, **({FEATURES: pa.Column(object)} if features else {})})


def predictions(pictures: Pictures, tuning: FineTuning) -> pd.DataFrame:
    """The prediction of every classifier, one column each."""
    columns = {}
    for one in tuning.classifiers:
        parts = [one.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
        columns[one.name] = [one.labels[i] for i in torch.cat(parts).argmax(dim=1)]
    return pd.DataFrame(columns)


def reference_plan(classes: list[str], *, settings: Oodcv) -> pd.DataFrame:
    """The pictures of the reference: each garment once, in one weather (`OTHERS` share a place), at severities that are even in [0, 1)."""
    counts = dict.fromkeys(settings.shifts, settings.reference_images) | dict.fromkeys(OTHERS, settings.reference_images // 2)
    weathers = [shift for shift, count in counts.items() for _ in range(count)]
    rows = [(shift, name, number) for name in classes for number, shift in enumerate(weathers, start=1)]
    key = ("oodcv", "severity", settings.seed)
    drawn = [0.0 if row[0] == UNSHIFTED else round(float(torch.rand(1, generator=seeds.generator(*key, *row))), 6) for row in rows]
    return pd.DataFrame(rows, columns=tables.TRAJECTORY).assign(scale=drawn)


def ladder_plan(classes: list[str], shift: str, *, settings: Oodcv) -> pd.DataFrame:
    """Garments that the reference does not use, the same under every weather, at evenly spaced severities from 0 to 1."""
    first = len(settings.shifts) * settings.reference_images + 2 * (settings.reference_images // 2) + 1
    steps = np.linspace(0, 1, settings.severities + 1).round(6).tolist()
    rows = itertools.product([shift], classes, range(first, first + settings.ladder_images), steps)
    return pd.DataFrame(rows, columns=tables.KEY)


def rendered_predictions(
    study: Study, plans: dict[str, pd.DataFrame], *, folder: Path, features: bool, pattern: str = "*.parquet"
) -> pd.DataFrame:
    """Predictions, and CLIP's `features`, on the rendered pictures of some plans; computes the tables that are missing or outdated."""
    tuning, kind = study.tuning, study.schema(features=features)
    stamps = {name: recipes.WEATHER.stamp(plan.to_dict("list"), tuning.settings.seed, study.digest) for name, plan in plans.items()}
    rows, clip = partial(look_at_rendered, tuning, plans), study.judges.clip if features else None
    common = lambda: [pools.garments(tuning.classes), clip, tuning.classifiers]  # noqa: E731
    return workers.stored(stamps, rows, kind, folder=folder, device=tuning.device, common=common, pattern=pattern)


def published(tuning: FineTuning, *, side: int) -> tuple[pd.DataFrame, Pictures]:
    """OOD-CV's own pictures of weather as centred squares, and their keys (see `photographed`)."""
    table, pictures = files.read(paths.resolve(tuning.settings.root), "weather")
    rows = np.flatnonzero(table["class"].isin(tuning.classes))
    keys = table.iloc[rows].reset_index(drop=True).assign(shift=lambda frame: frame["weather"].map(WEATHERS), scale=0.0)
    keys["seed"] = keys.groupby(["shift", "class"]).cumcount() + 1
    return keys[tables.KEY], np.stack([catalog.square(pictures[row], side) for row in rows])


def photographed(study: Study, *, folder: Path) -> pd.DataFrame:
    """The same for OOD-CV's own pictures of weather, as the file `reference`: `shift` is what a file name was searched for.

    `seed` counts the pictures of a class and weather; nobody knows their severity, so `scale` is 0. Classes without a picture are absent.
    """
    tuning, root = study.tuning, paths.resolve(study.tuning.settings.root)
    made_from = recipes.WEATHER.stamp(units.directory_digest(root / "nuisances" / "weather"), tuning.classes, study.digest)

    def rows(_: str) -> pd.DataFrame:
        keys, shown = published(tuning, side=SIDE)
        features = [*study.judges.clip.image_features(shown).numpy().round(4).astype(np.float32)]
        return keys.join(predictions(shown, tuning)).assign(**{FEATURES: features})

    how: dict = {"folder": folder, "device": tuning.device, "pattern": "reference.parquet"}
    return workers.stored({"reference": made_from}, rows, study.schema(), **how)


def look_at_rendered(
    tuning: FineTuning, plans: dict[str, pd.DataFrame], name: str, pool: scenes.Garments, clip: encoders.Clip | None, _: list
) -> pd.DataFrame:
    """What is seen in the pictures of one plan."""
    pictures = pools.rendered(pool, plans[name], "oodcv", tuning.settings.seed)
    features = {FEATURES: [*clip.image_features(pictures).numpy().round(4).astype(np.float32)]} if clip else {}
    return plans[name].join(predictions(pictures, tuning)).assign(**features)


def generated(study: Study, classes: list[str], *, folder: Path) -> pd.DataFrame:
    """What is seen in the generated images, scale 0 under each shift; draws the classes that are missing or outdated."""
    judges, kind, device = study.judges, study.schema(drawn=True), study.sampler.pipe.device
    looking = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, study.digest]
    stamps = {name: recipes.WEATHER_DRAWN.stamp(study.drawing(name), looking) for name in classes}
    common = lambda: [study.tuning.classifiers]  # noqa: E731
    return workers.stored(stamps, partial(draw_and_look, study), kind, folder=folder, device=device, common=common)


def draw_and_look(study: Study, name: str, _: list) -> pd.DataFrame:
    """Draws all images of a class; what is seen in them."""
    numbers = list(range(1, study.tuning.settings.seeds + 1))
    start, of_start = look(study, draw(study, UNSHIFTED, name, numbers))
    parts = []
    for shift in study.tuning.settings.shifts:
        views, predicted = look(study, draw(study, shift, name, numbers))
        measured = filtering.measure(shift, views, start, study.judges.clip)
        features = [*filtering.join(start, views).clip.numpy().round(4).astype(np.float32)]
        parts.append(measured.join(pd.concat([of_start, predicted], ignore_index=True)).assign(**{FEATURES: features}))
    return pd.concat(parts, ignore_index=True)


def draw(study: Study, shift: str, name: str, numbers: list[int]) -> pd.DataFrame:
    """Images of one class and some seeds in one shift at all scales above 0, or unshifted, as a table of pictures."""
    sampler, scales = study.sampler, [scale for scale in study.tuning.settings.scales if scale > 0]
    if shift == UNSHIFTED:
        scales, drawn = [0.0], [sampler.unshifted(name, seed) for seed in numbers]
    else:
        with adapters.loaded(sampler.pipe, slider_path(study.sliders, shift, name)):
            drawn = [sampler.shifted(name, seed, scales) for seed in numbers]
    how, pairs = {"quality": sampler.settings.quality}, zip(numbers, drawn, strict=True)
    return pd.DataFrame([row for seed, images in pairs for row in generation.rows(shift, name, seed, scales, images, **how)])


def look(study: Study, table: pd.DataFrame) -> tuple[Views, pd.DataFrame]:
    """What the filter's judges see in the pictures of a table, and the prediction of every classifier."""
    pictures, judges = tables.pictures(table, "drawn"), study.judges
    places = [judges.oracle.labels.index(name) for name in table["class"]]
    probability = judges.oracle.class_probability(pictures).numpy()[np.arange(len(places)), places]
    features = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    return Views(table.drop(columns="image"), *features, probability), predictions(pictures, study.tuning)


def shown(study: Study, wanted: pd.DataFrame, *, path: Path) -> pd.DataFrame:
    """The pictures of some rows, drawn again with their whole trajectory, as it was when they were looked at."""
    rows = wanted[tables.KEY].assign(shift=wanted["shift"].where(wanted["scale"] > 0, UNSHIFTED)).drop_duplicates()
    keys = sorted(rows.itertuples(index=False, name=None))
    unit = units.Unit(path, recipes.WEATHER_DRAWN.stamp(keys, {name: study.drawing(name) for name in sorted(set(rows["class"]))}))
    if not unit.done:
        groups = rows.groupby(["shift", "class"])["seed"].unique()
        jobs = [(study, *key, sorted(map(int, numbers))) for key, numbers in groups.items()]
        parts = workers.each(draw, jobs, device=study.sampler.pipe.device, desc="shown")
        tables.write_unit(tables.select(pd.concat(parts), rows, tables.KEY, "shown"), unit, tables.images)
    return tables.read(path, tables.images)


# Weather labels by CLIP, and nearest neighbours.

UNKNOWN = "unknown"
NEIGHBOURS = 5  # as in Figs. 4 and 31


def probabilities(
    features: Float[np.ndarray, "rows features"], classes: pd.Series, clip: Clip, *, shifts: list[str], unknown: str
) -> pd.DataFrame:
    """Softmax of CLIP's scaled similarities to "a picture of a {class} in {shift}" per shift and to the text for none of them."""
    image_features = torch.from_numpy(np.asarray(features, np.float32))
    values = np.zeros((len(image_features), len(shifts) + 1))
    for name in sorted(set(classes)):
        rows = np.flatnonzero(classes == name)
        texts = [SHIFT_PROMPT.format(name=name, shift=shift) for shift in shifts] + [unknown.format(name=name)]
        scaled = clip.model.logit_scale.exp().cpu() * image_features[rows] @ clip.text_features(texts).T
        values[rows] = scaled.softmax(dim=1).double().numpy()
    return pd.DataFrame(values, columns=[*shifts, UNKNOWN])


def nearest(
    real: Float[np.ndarray, "rows features"], drawn: Float[np.ndarray, "images features"]
) -> tuple[Int[np.ndarray, "rows 5"], Float[np.ndarray, "rows 5"]]:
    """Places and cosines of the generated images closest to each real one, the closest first (Fig. 31)."""
    cosines = np.asarray(real, float) @ np.asarray(drawn, float).T
    places = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    return places, np.take_along_axis(cosines, places, 1)


def agreement(real: pd.DataFrame, drawn: pd.DataFrame, places: Int[np.ndarray, "rows 5"], *, settings: Bootstrap) -> pd.DataFrame:
    """Share of nearest neighbours of the same class and of the same weather, and both; `chance` is that of any generated image."""
    rows = []
    for name, keys in {"class": ["class"], "weather": ["shift"], "both": ["class", "shift"]}.items():
        same = np.all([real[key].to_numpy()[:, None] == drawn[key].to_numpy()[None] for key in keys], axis=0)
        hits = np.take_along_axis(same, places, 1).ravel()
        repeated = real.loc[real.index.repeat(places.shape[1])]
        rows.append({"same": name, **bootstrap.rate(hits, repeated, settings=settings), "chance": same.mean()})
    return pd.DataFrame(rows)
