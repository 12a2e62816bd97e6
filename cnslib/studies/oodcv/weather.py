"""The real reference of the OOD-CV comparison (CNS-Bench section 4.3 and supplement L): held-out garments in rendered weather.

In the reference every garment has one weather of an unknown severity. On the ladder the same garments stand at known severities
from 0 to 1. In all tables of this step `scale` is the severity where the picture is rendered, and the slider scale where it is drawn.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, UInt8

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.analyses import Oodcv
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.read import Run
from cnslib.method.filtering import Judges
from cnslib.models import encoders
from cnslib.stats import accuracy
from cnslib.stats.accuracy import Shares
from cnslib.studies.oodcv.training import FineTuning
from cnslib.world import scenes

OTHERS = (UNSHIFTED, "heavy sandstorm")  # neither snow nor fog nor rain; OOD-CV's own file names add the query "desert"
FEATURES = "features"
Pictures = UInt8[np.ndarray, "rows side side 3"]


@dataclass(frozen=True)
class Panel:
    """Who looks at every picture: the filter's judges, and the fine-tuned classifiers, which are trained when first asked."""

    judges: Judges
    tuning: FineTuning

    @cached_property
    def models(self) -> list[str]:
        """Names of the classifiers."""
        return list(self.tuning.settings.networks)

    @cached_property
    def digest(self) -> str:
        """What an answer depends on besides the picture."""
        return units.digest([self.tuning.stamp(name) for name in self.models], self.judges.clip.digest)


def opened(run: Run) -> Panel:
    """The panel that a notebook's parameters describe."""
    base, labels, folder = run.base, encoders.read_labels(run.base.labels), run.layout.artifacts(run.step)
    clip, sight = encoders.Clip(base.clip, device=base.device), encoders.ImageEncoder(base.image_encoder, device=base.device)
    judges = Judges(clip, sight, encoders.Oracle(base.oracle, labels=labels, device=base.device))
    weights = run.layout.root / "checkpoints" / run.step
    return Panel(judges, FineTuning(run.settings, base.classes, labels, weights, folder / "training", base.device))


def schema(models: list[str], **more: pa.Column) -> pa.DataFrameSchema:
    """Key, the first answer of every classifier, and what else a table holds."""
    return tables.schema(tables.KEY, {**tables.IDENTITY, **{name: pa.Column(str) for name in models}, **more})


def answers(pictures: Pictures, panel: Panel) -> pd.DataFrame:
    """The first answer of every classifier, one column each."""
    found = {}
    for one in panel.tuning.classifiers:
        parts = [one.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
        found[one.name] = [one.labels[i] for i in torch.cat(parts).argmax(dim=1)]
    return pd.DataFrame(found)


def rounded(features: Float[torch.Tensor, "rows features"]) -> list[np.ndarray]:
    """CLIP features as rows of a table."""
    return list(features.numpy().round(4).astype(np.float32))


def reference_plan(classes: list[str], *, settings: Oodcv) -> pd.DataFrame:
    """The pictures of the reference: each garment once, in one weather; a weather's severities are even in [0, 1).

    `OTHERS` share the place of one further weather. The seed counts the held-out garments of a class.
    """
    half = settings.reference_images // 2
    counts = dict.fromkeys(settings.shifts, settings.reference_images) | dict.fromkeys(OTHERS, half)
    weathers = list(itertools.chain(*([shift] * count for shift, count in counts.items())))
    rows = [(shift, name, number) for name in classes for number, shift in enumerate(weathers, start=1)]
    table = pd.DataFrame(rows, columns=tables.TRAJECTORY)
    return table.assign(scale=[0.0 if row[0] == UNSHIFTED else severity(settings.seed, *row) for row in rows])


def examples(plan: pd.DataFrame, count: int, *, seed: int) -> pd.DataFrame:
    """Some pictures of every weather, from light to heavy."""
    chosen = plan.groupby("shift", sort=False).sample(count, random_state=seed, replace=True)
    return chosen.sort_values(["shift", "scale"], ignore_index=True)


def severity(*key: str | int) -> float:
    """The severity of one picture of the reference."""
    return round(float(torch.rand(1, generator=seeds.generator("oodcv", "severity", *key))), 6)


def ladder_plan(classes: list[str], shift: str, *, settings: Oodcv) -> pd.DataFrame:
    """Garments that the reference does not use, the same under every weather, at evenly spaced severities from 0 to 1."""
    first = len(settings.shifts) * settings.reference_images + 2 * (settings.reference_images // 2) + 1
    steps = np.linspace(0, 1, settings.severities + 1).round(6).tolist()
    rows = itertools.product([shift], classes, range(first, first + settings.ladder_images), steps)
    return pd.DataFrame(rows, columns=tables.KEY)


def rendered(pool: scenes.Garments, plan: pd.DataFrame, *, seed: int) -> Pictures:
    """The pictures of a plan in the catalog's look; a garment keeps its pose, its colours and its weather at every severity."""
    own = {name: np.flatnonzero(pool.labels == scenes.CLASSES.index(name)) for name in plan["class"].unique()}
    rows = [own[name][number - 1] for name, number in zip(plan["class"], plan["seed"], strict=True)]
    keys = [("oodcv", seed, name, int(number)) for name, number in zip(plan["class"], plan["seed"], strict=True)]
    amount = torch.tensor(plan["scale"].to_numpy(), dtype=torch.float32)
    return scenes.to_uint8(scenes.render(pool.grey[rows], keys, style="catalog", shift=plan["shift"].tolist(), severity=amount)).numpy()


def heldout(classes: list[str]) -> scenes.Garments:
    """Garments that no model has seen. ValueError for a class that is not a garment."""
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
    return scenes.garments(paths.GARMENTS, "heldout")


def reference(classes: list[str], *, panel: Panel, folder: Path) -> pd.DataFrame:
    """What classifiers and CLIP make of the reference: answers and features, computed where the table is missing or outdated."""
    settings, kind = panel.tuning.settings, schema(panel.models, **{FEATURES: pa.Column(object)})
    plan = reference_plan(classes, settings=settings)
    unit = units.Unit(folder / "reference.parquet", stamp(plan, panel))
    if not unit.done:
        pictures = rendered(heldout(classes), plan, seed=settings.seed)
        features = rounded(panel.judges.clip.image_features(pictures))
        tables.write_unit(plan.join(answers(pictures, panel)).assign(**{FEATURES: features}), unit, kind)
    return tables.read(unit.path, kind)


def ladder(classes: list[str], *, panel: Panel, folder: Path) -> pd.DataFrame:
    """The classifiers' answers at known severities; computes the weathers that are missing or outdated, one table each."""
    settings, kind = panel.tuning.settings, schema(panel.models)
    plans = {shift: ladder_plan(classes, shift, settings=settings) for shift in settings.shifts}
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", stamp(plan, panel)) for shift, plan in plans.items()})
    if waiting := shelf.waiting():
        pool, _ = heldout(classes), panel.tuning.classifiers
        workers.each(climb, [(pool, plans[shift], shelf[shift], panel) for shift in waiting], device=panel.tuning.device, desc="ladder")
    return tables.read_units(shelf, kind)


def climb(pool: scenes.Garments, plan: pd.DataFrame, unit: units.Unit, panel: Panel) -> None:
    """Writes the answers along one weather's ladder."""
    pictures = rendered(pool, plan, seed=panel.tuning.settings.seed)
    tables.write_unit(plan.join(answers(pictures, panel)), unit, schema(panel.models))


def stamp(plan: pd.DataFrame, panel: Panel) -> str:
    """What a table of rendered pictures depends on."""
    return recipes.WEATHER.stamp(plan.to_dict("list"), panel.tuning.settings.seed, panel.digest)


def answers_by_model(seen: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    """One row per picture and classifier (model, key, top1), as `accuracy.outcomes` wants it."""
    return seen.melt(tables.KEY, models, "model", "top1")


def error_shares(seen: pd.DataFrame, models: list[str], *, settings: Bootstrap) -> Shares:
    """Error rates of the classifiers on what was seen, with their resamples."""
    return accuracy.error_shares(accuracy.outcomes(answers_by_model(seen, models)), settings=settings)


def each_error_shares(sets: dict[str, pd.DataFrame], models: list[str], *, settings: Bootstrap) -> dict[str, Shares]:
    """The same of each of several sets."""
    return {name: error_shares(own, models, settings=settings) for name, own in sets.items()}
