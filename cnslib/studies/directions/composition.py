"""Two sliders in one image: their adapters are added, each with a weight of its own (CNS-Bench supplement K, Fig. 29)."""

import contextlib
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import UInt8
from torch import Tensor

from cnslib.core import recipes, tables, workers
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters
from cnslib.studies.directions import texts
from cnslib.studies.directions.texts import Study

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
        **{key: texts.LOOKS[key] for key in ("structure", "class_probability")},
    },
)
pictures_schema = tables.schema(WEIGHTS, {**dict.fromkeys(WEIGHTS, WEIGHT), "image": pa.Column(object)})
Key = tuple[str, str, str]  # both shifts and the class
Single = dict[str, pd.DataFrame]  # the benchmark's images of each shift of a pair alone


@torch.no_grad()
def shifted(
    sampler: Sampler, names: list[str], name: str, seed: int, weights: Sequence[Sequence[float]]
) -> UInt8[Tensor, "images height width 3"]:
    """The images of one class and seed with the adapters that are loaded, in one batch; each image has a weight per adapter."""
    with adapters.switched_off(sampler.pipe.unet):
        start = sampler.start(name, [seed])
    with contextlib.ExitStack() as stack:
        for adapter, column in zip(names, zip(*weights, strict=True), strict=True):
            stack.enter_context(adapters.scaled(sampler.pipe.unet, column, adapter))
        return sampler.decode(sampler.denoise(start.repeat(len(weights), 1, 1, 1), name, sampler.late))


def score(study: Study, pairs: list[list[str]], classes: list[str], *, weights: list[float], seeds: int) -> pd.DataFrame:
    """One row per pair, class, seed and two weights; draws what is missing or outdated, a unit per (pair, class).

    Where a weight is 0 the image is the benchmark's. FileNotFoundError for a missing slider, ValueError where the benchmark lacks an image.
    """
    images = singles(study, pairs, classes, weights=weights, seeds=seeds)
    how: dict = {"folder": study.folder / "pairs" / "scores", **study.beginning(classes, seeds)}
    return workers.stored(stamps(study, images), functools.partial(look, study, images), schema, **how)


def singles(study: Study, pairs: list[list[str]], classes: list[str], *, weights: list[float], seeds: int) -> dict[Key, Single]:
    """The benchmark's images of each slider alone, by pair and class."""
    alone = {shift: texts.benchmark(study.images, shift, classes, scales=weights, seeds=seeds) for shift in {*itertools.chain(*pairs)}}
    return {(a, b, name): {shift: alone[shift][name] for shift in (a, b)} for (a, b), name in itertools.product(pairs, classes)}


def stamps(study: Study, images: dict[Key, Single]) -> dict[Key, str]:
    """What the file of each pair and class depends on: both sliders and the benchmark's images of each alone."""
    stamped = {}
    for key, alone in images.items():
        digests = {shift: adapters.file_digest(slider_path(study.sliders, shift, key[-1])) for shift in alone}
        made_from = [[texts.stamp(study, shift, key[-1], rows), digests[shift]] for shift, rows in alone.items()]
        stamped[key] = recipes.COMPOSITION.stamp(made_from)
    return stamped


def look(study: Study, images: dict[Key, Single], key: Key) -> pd.DataFrame:
    """What the judges see in the pictures of a pair and class: alignment with both shifts, structure kept, and the class."""
    *shifts, name = key
    rows = []
    for seed in sorted(images[key][key[0]]["seed"].unique().tolist()):
        pictures = sheet(study, images[key], name, seed)
        stacked = np.stack(list(pictures.values()))  # the first has both weights 0
        first, other = (texts.looks(study, stacked, shift, name) for shift in shifts)
        columns = first | {"alignment_first": first["alignment"], "alignment_second": other["alignment"]}
        place = dict(zip(PAIR, shifts, strict=True)) | {"class": name, "seed": seed}
        rows.append(pd.DataFrame(list(pictures), columns=WEIGHTS).assign(**place, **columns))
    return pd.concat(rows).drop(columns=["alignment", "step"])


def sheet(study: Study, images: Single, name: str, seed: int) -> dict[tuple[float, float], np.ndarray]:
    """The picture of each two weights: the benchmark's where one of them is 0, the others drawn."""
    alone = [rows[rows["seed"] == seed] for rows in images.values()]
    left, right = (dict(zip(rows["scale"], tables.pictures(rows, "benchmark"), strict=True)) for rows in alone)
    cells = list(itertools.product(left, right))
    both = [cell for cell in cells if min(cell) > 0]
    with adapters.loaded(study.sampler.pipe, *(slider_path(study.sliders, shift, name) for shift in images)) as names:
        drawn = dict(zip(both, study.stored(shifted(study.sampler, names, name, seed, both)), strict=True))
    return {cell: drawn[cell] if cell in drawn else right[cell[1]] if cell[0] == 0 else left[cell[0]] for cell in cells}


def films(
    study: Study, pairs: list[list[str]], name: str, *, weights: list[float], seed: int
) -> dict[tuple[str, str], UInt8[np.ndarray, "first second height width 3"]]:
    """A grid of pictures per pair, the first slider's weight along the rows; kept on file, since a figure shows them."""
    images = singles(study, pairs, [name], weights=weights, seeds=seed)
    images = {key: {shift: rows[rows["seed"] == seed] for shift, rows in alone.items()} for key, alone in images.items()}

    def rows(key: Key) -> pd.DataFrame:
        drawn = sheet(study, images[key], name, seed)
        return pd.DataFrame(list(drawn), columns=WEIGHTS).assign(image=[tables.encode(picture) for picture in drawn.values()])

    how: dict = {"folder": study.folder / "pairs" / "pictures", "device": study.sampler.pipe.device}
    pictures = tables.pictures(workers.stored(stamps(study, images), rows, pictures_schema, **how), "pairs")
    films = pictures.reshape(len(pairs), len(weights), len(weights), *pictures.shape[1:])
    return {(first, second): film for (first, second), film in zip(pairs, films, strict=True)}
