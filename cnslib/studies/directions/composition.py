"""Two sliders in one image: their adapters are added, each with a weight of its own (CNS-Bench supplement K, Fig. 29).

Measured is what each slider still does beside the other: gains of alignment, alone and together, and their interaction.
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from jaxtyping import UInt8
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import identifier
from cnslib.core.settings.method import Bootstrap
from cnslib.method import generation
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image
from cnslib.plots.captions import words
from cnslib.plots.figures import extent
from cnslib.stats import bootstrap, verdicts
from cnslib.studies.directions import texts
from cnslib.studies.directions.texts import Pictures, Study

PAIR = ["first", "second"]
WEIGHTS = ["first_weight", "second_weight"]
KEY = [*PAIR, "class", "seed", *WEIGHTS]
WEIGHT = pa.Column(float, pa.Check.ge(0))
schema = tables.schema(
    KEY,
    {
        **dict.fromkeys(PAIR, pa.Column(str)),
        **{key: tables.IDENTITY[key] for key in ("class", "seed")},
        **dict.fromkeys(WEIGHTS, WEIGHT),
        **dict.fromkeys(("alignment_first", "alignment_second"), pa.Column(float)),
        "structure": pa.Column(float, tables.COSINE),
        "class_probability": pa.Column(float, pa.Check.in_range(0, 1.0001)),
    },
)
pictures_schema = tables.schema(WEIGHTS, {**dict.fromkeys(WEIGHTS, WEIGHT), "image": pa.Column(object)})
Weights = Sequence[Sequence[float]]  # one list per image, one weight per slider


@contextlib.contextmanager
def loaded(pipe: StableDiffusionPipeline, files: list[Path]) -> Iterator[list[str]]:
    """The pipeline with the adapters of several files, all active at scale 1; yields their names.

    The base model is restored bit for bit afterwards. Raises ValueError, naming the file, as `adapters.loaded` does.
    """
    names = [f"{adapters.NAME}_{number}" for number in range(len(files))]
    for path in files:
        adapters.require_complete(pipe.unet, path)
    try:
        for name, path in zip(names, files, strict=True):
            pipe.unet.load_lora_adapter(path, prefix="unet", adapter_name=name, use_safetensors=True, local_files_only=True)
        pipe.unet.set_adapters(names)
        yield names
    finally:
        pipe.unload_lora_weights()


@contextlib.contextmanager
def weighted(unet: UNet2DConditionModel, weights: dict[str, list[float]]) -> Iterator[None]:
    """Gives every sample of a batch its own weight of each adapter: sample i gets `weights[adapter][i]`, and so on from the first again.

    What `adapters.scaled` does for one adapter; its factor alpha / rank stays.
    """
    factors = {name: torch.tensor(values, dtype=torch.float32) for name, values in weights.items()}

    def hook(name: str):
        def scale(module: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
            return output * adapters.spread(factors[name], output)

        return scale

    layers = [module for module in unet.modules() if isinstance(module, LoraLayer)]
    handles = [layer.lora_B[name].register_forward_hook(hook(name)) for layer in layers for name in weights if name in layer.lora_B]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def shifted(sampler: Sampler, names: list[str], name: str, seed: int, weights: Weights) -> UInt8[Tensor, "images height width 3"]:
    """The images of one class and seed with the adapters that are loaded, in one batch; each image has a weight per adapter."""
    with adapters.switched_off(sampler.pipe.unet):
        start = sampler.start(name, [seed])
    late = sampler.scheduler.timesteps[generation.steps_without_slider(sampler.settings) :]
    columns = {adapter: [row[place] for row in weights] for place, adapter in enumerate(names)}
    with weighted(sampler.pipe.unet, columns):
        return text_to_image.decode(sampler.pipe, sampler.denoise(start.repeat(len(weights), 1, 1, 1), name, late))


def score(study: Study, pairs: list[list[str]], classes: list[str], *, weights: list[float], seeds: int) -> pd.DataFrame:
    """One row per pair, class, seed and two weights; draws what is missing or outdated, a unit per (pair, class).

    Where a weight is 0 the image is the benchmark's own, of the other slider alone. Raises FileNotFoundError for a missing slider,
    ValueError where the benchmark lacks an image.
    """
    keys = [(first, second, name) for (first, second), name in itertools.product(pairs, classes)]
    stored = {shift: texts.benchmark(study.images, shift) for shift in {*itertools.chain(*pairs)}}
    own = {
        (first, second, name): {shift: texts.own_rows(stored[shift], name, scales=weights, seeds=seeds) for shift in (first, second)}
        for first, second, name in keys
    }
    shelf = units.Shelf(study.folder / "pairs" / "scores", {key: (unit_name(*key), stamp(study, own[key], key[-1])) for key in keys})
    waiting = shelf.waiting()
    study.sampler.prepare(sorted({name for *_, name in waiting}), seeds=seeds)
    pieces = [(study, own[key], key[-1], shelf[key]) for key in waiting]
    workers.each(measure, pieces, device=study.sampler.pipe.device, desc="pairs")
    return tables.read_units(shelf, schema)


def unit_name(first: str, second: str, name: str) -> str:
    """Where a pair and a class are kept below their folder."""
    return f"{identifier(first)}_{identifier(second)}_{identifier(name)}.parquet"


def stamp(study: Study, own: dict[str, pd.DataFrame], name: str) -> str:
    """What a unit depends on: both sliders, and the benchmark's images of each alone."""
    files = {shift: slider_path(study.sliders, shift, name) for shift in own}
    parts = [[texts.stamp(study, shift, name, rows), adapters.file_digest(files[shift])] for shift, rows in own.items()]
    return recipes.COMPOSITION.stamp(parts)


def measure(study: Study, own: dict[str, pd.DataFrame], name: str, unit: units.Unit) -> None:
    """Writes the scores of one pair and class."""
    first, second = own
    seeds = sorted(own[first]["seed"].unique())
    rows = [looks(study, sheet(study, own, name, int(seed)), first, second, name, int(seed)) for seed in seeds]
    tables.write_unit(pd.concat(rows), unit, schema)


def sheet(study: Study, own: dict[str, pd.DataFrame], name: str, seed: int) -> dict[tuple[float, float], np.ndarray]:
    """The picture of each two weights: the benchmark's where one of them is 0, the others drawn."""
    single = {shift: rows[rows["seed"] == seed] for shift, rows in own.items()}
    left, right = (dict(zip(rows["scale"], tables.pictures(rows, "benchmark"), strict=True)) for rows in single.values())
    cells = list(itertools.product(left, right))
    both = [cell for cell in cells if min(cell) > 0]
    with loaded(study.sampler.pipe, [slider_path(study.sliders, shift, name) for shift in own]) as names:
        images = tables.stored(shifted(study.sampler, names, name, seed, both).numpy(), quality=study.sampler.settings.quality)
        drawn = dict(zip(both, images, strict=True))
    return {cell: drawn[cell] if cell in drawn else right[cell[1]] if cell[0] == 0 else left[cell[0]] for cell in cells}


def looks(study: Study, pictures: dict[tuple[float, float], np.ndarray], first: str, second: str, name: str, seed: int) -> pd.DataFrame:
    """What the judges see in the pictures of one class and seed: alignment with both shifts, structure kept, and the class."""
    stacked: Pictures = np.stack(list(pictures.values()))  # the first has both weights 0
    seen = {side: texts.looks(study, stacked, shift, name) for side, shift in zip(PAIR, (first, second), strict=True)}
    alignments = {f"alignment_{side}": columns["alignment"] for side, columns in seen.items()}
    rest = {key: seen["first"][key] for key in ("structure", "class_probability")}
    weights = pd.DataFrame(list(pictures), columns=WEIGHTS)
    return weights.assign(first=first, second=second, **{"class": name, "seed": seed}, **alignments, **rest)


def films(
    study: Study, pairs: list[list[str]], name: str, *, weights: list[float], seed: int
) -> dict[tuple[str, str], UInt8[np.ndarray, "first second height width 3"]]:
    """A grid of pictures per pair, the first slider's weight along the rows; kept on file, since a figure shows them."""
    own = {}
    for first, second in pairs:
        rows = {shift: texts.benchmark(study.images, shift) for shift in (first, second)}
        own[first, second] = {
            shift: texts.own_rows(part, name, scales=weights, seeds=seed).query("seed == @seed") for shift, part in rows.items()
        }
    files = {pair: (unit_name(*pair, name), stamp(study, rows, name)) for pair, rows in own.items()}
    shelf = units.Shelf(study.folder / "pairs" / "pictures", files)
    for pair in shelf.waiting():
        drawn = sheet(study, own[pair], name, seed)
        rows_of = [{**dict(zip(WEIGHTS, cell, strict=True)), "image": tables.encode(picture)} for cell, picture in drawn.items()]
        tables.write_unit(pd.DataFrame(rows_of), shelf[pair], pictures_schema)
    stored = {pair: tables.pictures(tables.read(path, pictures_schema), path.name) for pair, path in shelf.paths.items()}
    return {pair: pictures.reshape(len(weights), len(weights), *pictures.shape[1:]) for pair, pictures in stored.items()}


IMAGE = [*PAIR, "class", "seed"]
SIDE = ["pair", "shift", "weight", "other_weight"]
EFFECTS = ["alone", "lent", "together", "added", "interaction"]
SHOWN = {
    "shows": "each slider adds at least half of what it gains alone",
    "adds": "each slider adds anything",
    "without": "one of the shifts is there without its slider",
}
MOSTLY = "above 0.5"  # the claim that two sliders work in one picture


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in order with `gain_first` and `gain_second`, the alignment with each shift beyond that at weights (0, 0)."""
    ordered = scores.sort_values(KEY, ignore_index=True)
    start = ordered.groupby(IMAGE)[["alignment_first", "alignment_second"]].transform("first")
    return ordered.assign(**{f"gain_{side}": ordered[f"alignment_{side}"] - start[f"alignment_{side}"] for side in PAIR})


def sides(scores: pd.DataFrame) -> pd.DataFrame:
    """Both sliders in one form, a row per image and slider: its pair, shift, weight, the other's weight, and the gain of its shift."""
    table = gains(scores)
    pair = table["first"] + " + " + table["second"]
    parts = []
    for own, other in (PAIR, PAIR[::-1]):
        columns = {"pair": pair, "shift": table[own], "weight": table[f"{own}_weight"], "other_weight": table[f"{other}_weight"]}
        parts.append(table[["class", "seed", *WEIGHTS]].assign(**columns, gain=table[f"gain_{own}"]))
    return pd.concat(parts, ignore_index=True)


def effects(scores: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders, once per slider: what its shift gains alone, by the other alone (lent), and together.

    `added` is together minus lent, what the slider does beside the other. `interaction` is that minus alone: 0 where the gains add up,
    below 0 where one slider takes from the other.
    """
    table = sides(scores)
    key = ["pair", "shift", "class", "seed"]
    alone = table[table["other_weight"] == 0].rename(columns={"gain": "alone"})[[*key, "weight", "alone"]]
    lent = table[table["weight"] == 0].rename(columns={"gain": "lent"})[[*key, "other_weight", "lent"]]
    both = table[(table["weight"] > 0) & (table["other_weight"] > 0)].rename(columns={"gain": "together"})
    found = both.merge(alone, on=[*key, "weight"], validate="many_to_one").merge(lent, on=[*key, "other_weight"], validate="many_to_one")
    return found.assign(added=found["together"] - found["lent"], interaction=found["together"] - found["lent"] - found["alone"])


def curves(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean gain of each slider's shift over its weight, for every weight of the other: (pair, shift, weight, other_weight, ...)."""
    return bootstrap.means(sides(scores), ["gain"], SIDE, settings=settings)


def summary(found: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The means of EFFECTS per pair, slider and weights: (pair, shift, weight, other_weight, measure, n, estimate, low, high)."""
    return bootstrap.means(found.sort_values([*SIDE, "class", "seed"], ignore_index=True), EFFECTS, SIDE, settings=settings)


def both_show(found: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders and whether each of SHOWN holds, 1 or 0; (pair, class, seed, weights, shows, adds, without).

    What the other slider lends does not count: a shift that one slider alone brings along is there *without* its own where it has at
    least half of what its own gains alone.
    """
    half = found["alone"] / 2
    adds = found["added"] > 0
    each = found.assign(shows=adds & (found["added"] >= half), adds=adds, without=(found["lent"] > 0) & (found["lent"] >= half))
    groups = each.astype(dict.fromkeys(SHOWN, float)).groupby(["pair", "class", "seed", *WEIGHTS], as_index=False)
    return groups.agg({"shows": "min", "adds": "min", "without": "max"})


def shares(shown: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The shares of `both_show` by pair and weights: (pair, first_weight, second_weight, measure, n, estimate, low, high)."""
    return bootstrap.means(shown, list(SHOWN), ["pair", *WEIGHTS], settings=settings, statistic=bootstrap.rate)


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table where both sliders have their last weight."""
    names = WEIGHTS if WEIGHTS[0] in table else ["weight", "other_weight"]
    return table[(table[names] == table[names].max()).all(axis=1)]


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The shares of images that show both shifts at the last weights, a row per pair, with the verdict on MOSTLY."""
    own = last(table).query("measure == 'shows'").set_index("pair")[["n", "estimate", "low", "high"]]
    return verdicts.beside(own, MOSTLY).rename(columns={"ours": "estimate"})


def claimed(found: pd.DataFrame, pairs: list[list[str]], *, settings: Bootstrap) -> dict[str, dict]:
    """What is held against the paper, by the id of the line: what each slider adds at the last weights, and the interaction."""
    top = last(found)
    sided = {side: top[top["shift"].isin([pair[place] for pair in pairs])] for place, side in enumerate(PAIR)}
    records = {side: bootstrap.mean(part["added"], part, settings=settings) for side, part in sided.items()}
    return records | {"interaction": bootstrap.mean(top["interaction"], top, settings=settings)}


def cells(table: pd.DataFrame, index: list[str], names: list[str]) -> pd.DataFrame:
    """Estimates with their intervals in words, a column per measure."""
    text = [words.interval(row) for _, row in table.iterrows()]
    return table.assign(text=text).pivot(index=index, columns="measure", values="text")[names]


def most_lent(summary: pd.DataFrame) -> str:
    """Which shift gains most by the other slider alone, at the last weights, beside what its own gives and adds."""
    wide = last(summary).pivot(index=["pair", "shift"], columns="measure", values="estimate")
    pair, shift = wide["lent"].idxmax()
    other, row = pair.replace(shift, "").replace(" + ", ""), wide.loc[(pair, shift)]
    return f"{other} alone lends {shift} {row['lent']:.2f}, where its own slider gains {row['alone']:.2f} alone and adds {row['added']:.2f}"


def grid_caption(found: pd.DataFrame, name: str, seed: int) -> str:
    """What each slider adds to the other at the last weights in the pictures of one garment."""
    own = last(found[(found["class"] == name) & (found["seed"] == seed)])
    added = [" and ".join(f"{row.shift} {row.added:+.2f}" for row in part.itertuples()) for _, part in own.groupby("pair")]
    finding = f"Alignment that each slider adds to the other's, both at the last weight: {'; '.join(added)}"
    return f"{finding}. {name}, seed {seed}; weights of the two sliders"


def gain_caption(summary: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """What is lent most, and how large the curves are."""
    return f"At the last weights {most_lent(summary)}. {extent(counts)} garments per point; bands: {note}"


def labelled(summary: pd.DataFrame) -> pd.DataFrame:
    """The interactions with `row`, the name of their row in a figure."""
    table = summary[summary["measure"] == "interaction"]
    weight, other = (table[name].map("{:g}".format) for name in ("weight", "other_weight"))
    return table.assign(row=table["shift"] + " at " + weight + " (" + table["pair"] + "), other at " + other)


def interaction_caption(table: pd.DataFrame, *, note: str) -> str:
    """How many interactions are surely negative or positive."""
    above, below = words.certain(table)
    counted = f"Of {len(table)} interactions {below} are surely below zero and {above} above"
    return f"{counted}. {extent(table['n'])} garments; lines: {note}"


def kept(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """The scores with `class_kept`: 1 where the oracle gives the class at least chance, 1 / labels."""
    return scores.assign(class_kept=(scores["class_probability"] >= 1 / labels).astype(float))


def metrics(table: pd.DataFrame, measure: str) -> dict[str, dict]:
    """One share by pair and weights, as records."""
    own = table[table["measure"] == measure]
    weights = own[WEIGHTS[0]].map("{:g}, ".format) + own[WEIGHTS[1]].map("{:g}".format)
    return {pair: bootstrap.records(part.assign(weights=weights), "weights") for pair, part in own.groupby("pair")}


def kept_seen(table: pd.DataFrame) -> str:
    """Structure and class at the last weights."""
    own = last(table).set_index("measure")
    kept, structure = own.loc["class_kept"], own.loc["structure"]
    return f"With both sliders at the last weight {words.interval(structure)} of the structure is left, and the class in {counted(kept)}."


def counted(row: pd.Series) -> str:
    """A share with its interval in per cent."""
    return f"{words.interval(row, '.0%')} of {row['n']:.0f} pictures"


def answer(table: pd.DataFrame, claim: pd.Series, weight: float) -> str:
    """The answer about two sliders, pair by pair; `table` holds the shares, `claim` the interaction among the paper's statements."""
    found, some = judged(table), last(table).query("measure == 'adds'").set_index("pair")
    each = [f"{counted(row)} of {pair} ({often(row['verdict'])})" for pair, row in found.iterrows()]
    begun = words.listed(dict.fromkeys(words.interval(some.loc[pair], ".0%") for pair in found.index))
    opening = f"Two sliders at {weight:g} in one picture each add something to what the other lends in {begun} of the pictures"
    return f"{opening}, and at least half of what they gain alone in {words.listed(each)}. {summed(claim)}."


def summed(claim: pd.Series) -> str:
    """What the verdict on the interaction says about sums."""
    if claim["verdict"] == verdicts.AGREES:
        return "The gains add up"
    opening = {verdicts.OPPOSITE: "The gains do not add up"}.get(claim["verdict"], "Whether the gains add up is undecided")
    if claim["ours"] < 0:
        return f"{opening}: together they fall {-claim['ours']:.2f} ({-claim['high']:.2f} to {-claim['low']:.2f}) short of the sum"
    return f"{opening}: together they are {claim['ours']:.2f} ({claim['low']:.2f} to {claim['high']:.2f}) more than the sum"


def often(verdict: str) -> str:
    """The verdict on MOSTLY as an adverb."""
    return {verdicts.SAME: "mostly", verdicts.OPPOSITE: "seldom"}.get(verdict, verdict)
