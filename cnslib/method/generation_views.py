"""What is shown of the images: the guidance that the rule chooses, how far the knob moves a picture, the recipe beside the paper's."""

from pathlib import Path

import pandas as pd

from cnslib.core import tables
from cnslib.core.settings.method import Base, Generation
from cnslib.method import generation

IMAGES = "images (an unshifted one under every shift)"
PAPER = {
    "scales": 6,
    "largest scale": 2.5,
    "DDIM steps": 100,
    "guidance": 7.5,
    "share of steps with slider": 0.75,
    "shifts": 14,
    "classes": 100,
    "seeds": 50,
    IMAGES: 420_000,
}


def best(choice: pd.DataFrame, heldout: float) -> float:
    """The guidance (the index) with the smallest Frechet distance, of those whose pictures are surely named as well as held-out ones.

    `low` of `choice` is the lower end of each accuracy, `heldout` the accuracy on held-out pictures. The most accurate where none is sure.
    """
    sure = choice[choice["low"] >= heldout]
    return sure["frechet"].idxmin() if len(sure) else choice["accuracy"].idxmax()


def changes(shards: dict[str, Path], unshifted: pd.DataFrame) -> pd.DataFrame:
    """`generation.change` of the images in all shards, one class after the other, so that few pictures are in memory at a time."""
    start = dict(list(unshifted.groupby("class")))
    parts = (part for path in shards.values() for part in tables.read(path, tables.images).groupby("class"))
    return pd.concat([generation.change(part, start[name]) for name, part in parts], ignore_index=True)


def against_paper(base: Base, settings: Generation) -> pd.DataFrame:
    """How the benchmark is drawn beside how the paper's was, with the differences."""
    trajectories = len(base.shifts) * len(base.classes) * base.seeds
    ours = {
        "scales": len(base.scales),
        "largest scale": max(base.scales),
        "DDIM steps": settings.steps,
        "guidance": settings.guidance,
        "share of steps with slider": 1 - generation.steps_without_slider(settings) / settings.steps,
        "shifts": len(base.shifts),
        "classes": len(base.classes),
        "seeds": base.seeds,
        IMAGES: trajectories * len(base.scales),
    }
    table = pd.DataFrame({"ours": pd.Series(ours), "published": pd.Series(PAPER)})
    return table.assign(difference=table["ours"] - table["published"])
