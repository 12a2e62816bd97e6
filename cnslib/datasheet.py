"""A datasheet of the benchmark (Gebru et al. 2021, "Datasheets for datasets") as markdown; every number is computed from its data."""

import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image, UnidentifiedImageError

from cnslib import dataset, filtering, manifest, tables, units
from cnslib.config import UNSHIFTED, Filtering, Generation, Sliders
from cnslib.studies import Dataset


@dataclass(frozen=True)
class Settings:
    """The settings that a benchmark was made with."""

    pipeline: str
    sliders: Sliders
    generation: Generation
    filtering: Filtering


@dataclass(frozen=True)
class Facts:
    """What the datasheet is computed from: the tables, the manifest of the base models, and the settings it was made with."""

    rows: pd.DataFrame  # shift, class, seed, scale of every stored image
    sizes: Counter  # pictures by height and width
    stored: int  # bytes of all image tables
    scores: pd.DataFrame
    kept: pd.DataFrame
    models: dict[str, dict]
    settings: Settings


def write(path: Path, facts: Facts, *, about: Dataset) -> str:
    """Writes the datasheet and returns it."""
    text = render(facts, about=about)
    units.write_bytes(path, text.encode())
    return text


def gather(images: Path, scores: Path, kept: Path, models: Path, settings: Settings) -> Facts:
    """Reads what there is.

    Raises FileNotFoundError and ValueError for missing and damaged tables, and for kept trajectories that were never scored.
    """
    paths = dataset.shards(images, None)
    rows = pd.concat([tables.load(path, columns=tables.KEY).to_pandas() for path in paths], ignore_index=True)
    sizes = sum((picture_sizes(path) for path in paths), Counter())
    found, whole = tables.read(scores, tables.scores), tables.read(kept, filtering.kept_schema)
    tables.select(found, whole, tables.TRAJECTORY, "scores of kept trajectories")
    return Facts(rows, sizes, sum(path.stat().st_size for path in paths), found, whole, manifest.read(models), settings)


def picture_sizes(path: Path) -> Counter:
    """How many pictures of an image table have which height and width; ValueError names a row that is no picture."""
    found: Counter = Counter()
    for number, data in enumerate(tables.load(path, columns=["image"])["image"]):
        try:
            with Image.open(io.BytesIO(data.as_py())) as picture:
                found[picture.height, picture.width] += 1
        except (UnidentifiedImageError, TypeError) as error:
            raise ValueError(f"{path.name}, row {number}: the bytes are not a picture ({type(error).__name__})") from None
    return found


def render(facts: Facts, *, about: Dataset) -> str:
    """The whole datasheet."""
    parts = {
        "Motivation": [about.description],
        "Composition": [*composition(facts), "", *by_shift(facts), "", *by_class(facts)],
        "How it was made": made(facts),
        "Known limits": limits(facts),
        "Licences": table(["part", "licence"], licences(facts, about).to_numpy().tolist()),
        "Distribution": [f"Version {about.version}, {about.date_published}, {about.url}.", "", f"Cite as: {about.cite_as}"],
    }
    return (
        "\n".join([f"# Datasheet: {about.name}", *(line for name, lines in parts.items() for line in ("", f"## {name}", "", *lines))])
        + "\n"
    )


def table(header: list[str], rows: list[list]) -> list[str]:
    """A markdown table."""
    return [f"| {' | '.join(map(str, cells))} |" for cells in (header, ["---"] * len(header), *rows)]


def composition(facts: Facts) -> list[str]:
    """What there is, in numbers."""
    rows = facts.rows
    scales = ", ".join(f"{scale:g}" for scale in sorted(set(rows["scale"])))
    pixels = ", ".join(f"{n} of {height} x {width} px" for (height, width), n in facts.sizes.most_common())
    shifts = sorted(set(rows["shift"]) - {UNSHIFTED})
    return [
        f"- {len(rows)} images in {facts.stored / 1e6:.1f} MB, of {rows['class'].nunique()} classes under {len(shifts)} shifts",
        f"- slider scales {scales}; seeds {rows['seed'].min()} to {rows['seed'].max()}",
        f"- {(rows['scale'] == 0).sum()} images have scale 0; each is part of the trajectories of its class and seed under all shifts",
        f"- {len(facts.kept)} of {trajectory_count(facts.scores)} trajectories (shift, class, seed) passed the filter",
        f"- pictures: {pixels}",
    ]


def trajectory_count(scores: pd.DataFrame) -> int:
    """How many (shift, class, seed) were drawn."""
    return len(scores.drop_duplicates(tables.TRAJECTORY))


def counts(facts: Facts, column: str) -> pd.DataFrame:
    """Drawn and kept trajectories by shift or class, in alphabetical order."""
    drawn = facts.scores.drop_duplicates(tables.TRAJECTORY).groupby(column).size()
    return pd.DataFrame({"drawn": drawn, "kept": facts.kept.groupby(column).size()}).fillna(0).astype(int)


def by_shift(facts: Facts) -> list[str]:
    """Images, and drawn and kept trajectories, of every shift."""
    images = facts.rows.groupby("shift").size()
    rows = [[shift, images.get(shift, 0), n.drawn, n.kept, percent(n.kept, n.drawn)] for shift, n in counts(facts, "shift").iterrows()]
    return table(["shift", "stored images", "trajectories", "kept", "share"], rows)


def by_class(facts: Facts) -> list[str]:
    """Images, and drawn and kept trajectories, of every class."""
    images = facts.rows.groupby("class").size()
    rows = [[name, images[name], n.drawn, n.kept, percent(n.kept, n.drawn)] for name, n in counts(facts, "class").iterrows()]
    return table(["class", "stored images", "trajectories", "kept", "share"], rows)


def percent(part: int, whole: int) -> str:
    """A share in whole per cent."""
    return f"{100 * part / whole:.0f} %" if whole else "none"


def made(facts: Facts) -> list[str]:
    """How the images came to be, from the settings in force."""
    sliders, drawing, filtered = facts.settings.sliders, facts.settings.generation, facts.settings.filtering
    drawn = f"{drawing.steps} DDIM steps at guidance {drawing.guidance:g}, slider on for the last {100 * drawing.start_fraction:g} %"
    return [
        f"- base model `{facts.settings.pipeline}`, one token per class (IN*), one initial noise per seed for all scales, shifts "
        "and classes",
        f"- one slider per shift and class: rank {sliders.rank}, alpha {sliders.alpha:g}, {sliders.iterations} iterations of "
        f"{sliders.batch_size}, learning rate {sliders.learning_rate:g}, eta {sliders.eta:g}",
        f"- images: {drawn}; negative prompt {drawing.negative_prompt!r}",
        f"- filter: an image must pass {filtered.passes} of 4 tests whose thresholds find {percent_of(filtered.recall)} of the "
        "out-of-class labels; a trajectory counts only with all its scales",
    ]


def percent_of(share: float) -> str:
    """A setting between 0 and 1 in per cent."""
    return f"{100 * share:g} %"


def limits(facts: Facts) -> list[str]:
    """What a user must know, as far as the data show it."""
    kept = (
        tables.select(facts.scores, facts.kept, tables.TRAJECTORY, "scores of kept trajectories") if len(facts.kept) else facts.scores[:0]
    )
    outside = int(kept["oracle_ooc"].sum())
    clusters = len(facts.kept.drop_duplicates(filtering.PAIR))
    lines = [
        f"- {outside} of {len(kept)} kept images ({percent(outside, len(kept))}) are out of class by the oracle's labels, and still in",
        f"- the {len(facts.kept)} kept trajectories come from {clusters} (class, seed): images of one share their initial noise and are "
        "not independent; intervals must be clustered",
    ]
    for column in ("shift", "class"):
        ordered = counts(facts, column).sort_values(["kept", "drawn"], kind="stable")["kept"]
        lines.append(
            f"- uneven after the filter: {column} {ordered.index[0]!r} has {ordered.iloc[0]} trajectories, "
            f"{ordered.index[-1]!r} {ordered.iloc[-1]}"
        )
    return [
        *lines,
        "- the labels of the filter are an oracle classifier's; the images show what the base model knows, and inherit its biases",
    ]


def licences(facts: Facts, about: Dataset) -> pd.DataFrame:
    """The licence of every part: the benchmark itself, the parts that `about` names, and the base models by what their manifest says."""
    models = Counter(entry["licence"] for entry in facts.models.values())
    rows = [("benchmark", ", ".join(about.license)), *about.parts.items()]
    return pd.DataFrame([*rows, *((f"{n} base models", licence) for licence, n in sorted(models.items()))], columns=["part", "licence"])
