"""A slider over the stored images of any trajectory, with the predictions of the shown classifiers (notebooks 07 and 09)."""

import os

import pandas as pd
from IPython.display import Markdown, display
from ipywidgets import Dropdown, SelectionSlider, interactive
from pandas.io.formats.style import Styler
from PIL import Image

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.read import Run
from cnslib.data import artifacts
from cnslib.plots import sheets

ELSEWHERE = "*Run this notebook in JupyterLab (`make lab`) to turn the slider yourself.*"
SIDE = 256  # pixels on the screen


def turn(run: Run, start: pd.Series) -> interactive | Markdown:
    """Widgets to choose shift, class, seed and scale, `start` (shift, class, seed) at first; a sentence where no one can turn them."""
    if "JPY_SESSION_NAME" not in os.environ:  # papermill and nbclient have no session
        return Markdown(ELSEWHERE)
    base, predictions = run.base, artifacts.top1(run)
    predictions = predictions[predictions["model"].isin(base.shown)]

    def show(shift: str, name: str, seed: int, scale: float) -> Styler:
        key = pd.DataFrame([(shift, name, seed)], columns=tables.TRAJECTORY)
        images = sheets.pictures(run.layout.artifacts("generation"), key, base.scales)
        if images is not None:
            display(Image.fromarray(images[0, base.scales.index(scale)]).resize((SIDE, SIDE), Image.Resampling.NEAREST))
        at = (predictions["class"] == name) & (predictions["seed"] == seed) & predictions["shift"].isin([UNSHIFTED, shift])
        table = predictions[at].astype({"model": str, "top1": str}).pivot(index="model", columns="scale", values="top1")
        return table.style.map(lambda label: "color: silver" if label == name else "")

    return interactive(
        show,
        shift=Dropdown(options=base.shifts, value=start["shift"]),
        name=Dropdown(options=base.classes, value=start["class"], description="class"),
        seed=Dropdown(options=range(1, base.seeds + 1), value=int(start["seed"])),
        scale=SelectionSlider(options=base.scales),
    )
