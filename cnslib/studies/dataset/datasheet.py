"""The benchmark's datasheet (Gebru et al. 2021) in markdown, its counts computed from the data, and its size beside the paper's."""

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image, UnidentifiedImageError

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap, Filtering, Generation, Sliders
from cnslib.core.settings.studies import Dataset
from cnslib.data import benchmark
from cnslib.method import drawing
from cnslib.stats import bootstrap, verdicts
from cnslib.world import manifest


@dataclass(frozen=True)
class Settings:
    """The settings that a benchmark was made with."""

    pipeline: str
    drawing: str  # as `base.drawing`
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


def write_datasheet(path: Path, facts: Facts, *, about: Dataset) -> str:
    """Writes the datasheet and returns it."""
    text = render(facts, about=about)
    units.write_bytes(path, text.encode())
    return text


def gather(images: Path, scores: Path, kept: Path, models: Path, settings: Settings) -> Facts:
    """Reads what there is.

    Raises FileNotFoundError and ValueError for missing and damaged tables, and for kept trajectories that were never scored.
    """
    paths = benchmark.shards(images, None)
    rows = pd.concat([tables.load(path, columns=tables.KEY).to_pandas() for path in paths], ignore_index=True)
    sizes = sum((picture_sizes(path) for path in paths), Counter())
    found, whole = tables.read(scores, tables.scores), tables.read(kept, tables.kept_schema)
    tables.select(found, whole, tables.TRAJECTORY, "scores of kept trajectories")
    return Facts(rows, sizes, sum(path.stat().st_size for path in paths), found, whole, manifest.read(models), settings)


def picture_sizes(path: Path) -> Counter:
    """How many pictures of an image table have which height and width; ValueError names a row that is no picture."""
    found: Counter = Counter()
    for number, data in enumerate(tables.load(path, columns=["image"])["image"]):
        try:
            with Image.open(io.BytesIO(data.as_py()), formats=("PNG", "JPEG")) as picture:
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
    """A share in per cent, with a decimal below ten."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f} %" if 0 < share < 10 else f"{share:.0f} %" if whole else "none"


def made(facts: Facts) -> list[str]:
    """How the images came to be, from the settings in force."""
    sliders, filtered = facts.settings.sliders, facts.settings.filtering
    return [
        f"- base model `{facts.settings.pipeline}`, one token per class (IN*), one initial noise per seed for all scales, shifts "
        "and classes",
        f"- one slider per shift and class: rank {sliders.rank}, alpha {sliders.alpha:g}, {sliders.iterations} iterations of "
        f"{sliders.batch_size}{except_of(sliders.longer)}, learning rate {sliders.learning_rate:g}, eta "
        f"{sliders.eta:g}{except_of(sliders.etas)}",
        f"- images: {drawn(facts.settings)}",
        f"- filter: an image must pass {filtered.passes} of 4 tests whose thresholds find {percent_of(filtered.recall)} of the "
        "out-of-class labels; a trajectory counts only with all its scales",
    ]


def except_of(own: Mapping[str, float]) -> str:
    """The values of shifts that have their own, in brackets."""
    said = [f"{value:g} under {', '.join(shift for shift in own if own[shift] == value)}" for value in sorted(set(own.values()))]
    return f" ({'; '.join(said)})" if said else ""


def drawn(settings: Settings) -> str:
    """How pictures are drawn and stored: sampler, steps, guidance and its interval, the slider's share, the negative prompt."""
    own, way = settings.generation, drawing.chosen(settings.drawing)
    sampler = "UniPC" if settings.drawing == "fast" else "DDIM"
    guided = "" if list(own.guided) == [0, 1] else f" (from {own.guided[0]:g} to {own.guided[1]:g} of the time)"
    stored = f"JPEG of quality {own.quality}" if own.quality else "PNG"
    return (
        f"{way.settings(own).steps} {sampler} steps at guidance {own.guidance:g}{guided}, slider on for the last "
        f"{100 * own.start_fraction:g} %; negative prompt {own.negative_prompt!r}; stored as {stored}"
    )


def percent_of(share: float) -> str:
    """A setting between 0 and 1 in per cent."""
    return f"{100 * share:g} %"


def distinct(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of different pictures: one of scale 0 belongs to the trajectories of all shifts, and counts once per class and seed."""
    return rows[(rows["scale"] > 0) | ~rows.duplicated(["class", "seed", "scale"])]


def kept_pictures(facts: Facts) -> pd.DataFrame:
    """The scores of the different pictures of all kept trajectories."""
    if not len(facts.kept):
        return facts.scores[:0]
    return distinct(tables.select(facts.scores, facts.kept, tables.TRAJECTORY, "scores of kept trajectories"))


def limits(facts: Facts) -> list[str]:
    """What a user must know, as far as the data show it."""
    kept = kept_pictures(facts)
    outside = int(kept["oracle_ooc"].sum())
    seeds = facts.kept["seed"].nunique()
    lines = [
        f"- {outside} of {len(kept)} distinct kept images ({percent(outside, len(kept))}) are out of class by the oracle, and still in",
        f"- the {len(facts.kept)} kept trajectories come from {seeds} seed(s): all images of a seed, of every class, start from "
        "one noise and are not independent; intervals must resample seeds with all of their classes, or classes",
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


def fields(facts: Facts) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many trajectories of every class (rows) and shift (columns) are kept, and how many were drawn."""
    drawn = facts.scores.drop_duplicates(tables.TRAJECTORY).groupby(["class", "shift"]).size().unstack("shift")
    kept = facts.kept.groupby(["class", "shift"]).size().unstack("shift")
    return kept.reindex(index=drawn.index, columns=drawn.columns).fillna(0).astype(int), drawn


def beside_paper(facts: Facts, said: dict[str, str]) -> pd.DataFrame:
    """What is in the benchmark beside what the paper says of its own. Sizes have no direction, so nothing is decided.

    Images are counted as the paper does: one of scale 0 once for every trajectory.
    """
    keys = {"classes": "class", "shifts": "shift", "scales": "scale", "seeds": "seed"}
    rows = facts.rows[facts.rows["shift"] != UNSHIFTED]
    ours = {name: rows[column].nunique() for name, column in keys.items()} | {"scales": facts.rows["scale"].nunique()}
    kept = {"images kept": len(facts.kept) * ours["scales"], "share kept": len(facts.kept) / trajectory_count(facts.scores)}
    theirs = {name: float(said[name]) for name in keys} | {"images kept": float(said["images_total"])}
    theirs["share kept"] = theirs["images kept"] / float(said["images_generated"])
    table = pd.DataFrame({"ours": ours | kept})
    return verdicts.beside(table, pd.Series(theirs)[table.index], null=None)


def shares(facts: Facts, *, settings: Bootstrap) -> dict[str, dict]:
    """The share of trajectories that are kept, and of the different kept pictures that the oracle calls out of class, as records."""
    zero = facts.scores[facts.scores["scale"] == 0]
    held = pd.MultiIndex.from_frame(zero[tables.TRAJECTORY]).isin(pd.MultiIndex.from_frame(facts.kept[tables.TRAJECTORY]))
    inside = kept_pictures(facts)
    wrong = bootstrap.share(inside["oracle_ooc"].to_numpy(), inside, settings=settings)
    return {"kept_trajectories": bootstrap.share(held, zero, settings=settings), "out_of_class_among_kept": wrong}
