"""Widgets over `state`, `supply` and `views`: they hand on what the reader does, and show what comes back.

They need a front-end that speaks with the kernel, such as JupyterLab. Elsewhere, under papermill and in the book, one line says so,
and the figure above it shows the same garment.
"""

import os
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown
from ipywidgets import HTML, Button, Dropdown, HBox, Layout, SelectionSlider, SelectMultiple, VBox
from jaxtyping import Int

from cnslib.core.settings.read import Run
from cnslib.stats.accuracy import Outcomes
from cnslib.tools.play import state, views
from cnslib.tools.play.state import Look, Round
from cnslib.tools.play.supply import Supply, nearest

ELSEWHERE = "*Open this notebook in JupyterLab (`make lab`) and run it: here you turn the slider yourself.*"
WIDE = Layout(width="560px")


def live() -> bool:
    """Whether a front-end with widgets runs this kernel: Jupyter's server names its session, papermill and nbclient have none."""
    return "JPY_SESSION_NAME" in os.environ


def severity(run: Run, found: Outcomes, start: pd.Series, *, ranked: bool = False) -> VBox | Markdown:
    """The slider over one garment, `start` (shift, class, seed) at first; `found` holds the trajectories that the filter keeps.

    `ranked` orders the classifiers by what they give the true class.
    """
    return Desk(Supply(run), found, start, ranked=ranked).box if live() else Markdown(ELSEWHERE)


def game(run: Run, found: Outcomes) -> VBox | Markdown:
    """The reader's own failure points, on kept trajectories, beside those of the classifiers."""
    return Game(Supply(run), found).box if live() else Markdown(ELSEWHERE)


def chosen(name: str, options: list, value: Any) -> Dropdown:
    """A drop-down list with its name."""
    return Dropdown(options=options, value=value, description=name, layout=Layout(width="270px", min_width="270px"))


def slider(scales: list[float], value: float) -> SelectionSlider:
    """The slider of the scale."""
    options = [(f"{scale:g}", scale) for scale in scales]
    return SelectionSlider(options=options, value=value, description="scale", layout=WIDE)


class Desk:
    """A garment, its slider, and what the chosen classifiers say."""

    def __init__(self, supply: Supply, found: Outcomes, start: pd.Series, *, ranked: bool):
        """Shows the starting trajectory without a shift."""
        self.supply, self.ranked = supply, ranked
        base = supply.run.base
        self.kept = set(found.trajectories.itertuples(index=False, name=None))
        self.shift, self.name = chosen("shift", base.shifts, start["shift"]), chosen("class", base.classes, start["class"])
        self.seed = chosen("seed", list(range(1, base.seeds + 1)), int(start["seed"]))
        self.models = SelectMultiple(
            options=found.models, value=base.shown, description="classifiers", rows=8, layout=Layout(width="270px")
        )
        self.scale = slider(state.scales(base.scales), 0.0)
        self.picture, self.note, self.table = HTML(), HTML(), HTML()
        for control in (self.shift, self.name, self.seed, self.models, self.scale):
            control.observe(self.turned, "value")
        choice = VBox([self.shift, self.name, self.seed, self.models], layout=Layout(min_width="290px"))  # else it cuts its lists off
        seen = VBox([self.picture, self.note], layout=Layout(width="262px", min_width="262px", margin="0 8px"))
        self.box = VBox([HTML(views.heading("Turn the slider")), self.scale, HBox([choice, seen, self.table])])
        self.box.add_class("cns-severity")
        self.turned()

    @property
    def look(self) -> Look:
        """What is asked for."""
        return Look(self.shift.value, self.name.value, self.seed.value, float(self.scale.value))

    def turned(self, _: object = None) -> None:
        """Shows the nearest picture at hand while the one that was asked for is drawn, then this one and the answers to it."""
        look = self.look
        try:
            known = self.supply.at_hand(look.shift, look.name, look.seed)
            if look.scale not in known and (near := nearest(known, look.scale)) is not None:
                self.picture.value = views.picture(known[near], text=f"{look.name}, scale {near:g}")
                self.note.value = views.note(f"Scale {near:g}, while", f"scale {look.scale:g} is drawn ...")
            self.picture.value = views.picture(self.supply.picture(look), text=views.named(look))
            self.note.value = self.said(look)
            self.table.value = self.answers(look)
        except (ValueError, LookupError, OSError) as error:
            self.note.value = views.problem(error)

    def said(self, look: Look) -> str:
        """Where the picture comes from, and whether its trajectory counts."""
        whose = "from the benchmark" if look.scale in self.supply.run.base.scales else "drawn on demand"
        counts = "the filter keeps its trajectory" if (look.shift, look.name, look.seed) in self.kept else "the filter drops its trajectory"
        return views.note(f"Scale {look.scale:g}, {whose};", f"{counts}.")

    def answers(self, look: Look) -> str:
        """The table of answers."""
        asked = self.supply.answers(look, self.models.value)
        if not self.ranked:
            return views.answers(asked, scale=look.scale)
        start = Look(look.shift, look.name, look.seed, 0.0)
        return views.ranks(asked, self.supply.answers(start, self.models.value), scale=look.scale)


class Game:
    """Rounds of naming garments."""

    def __init__(self, supply: Supply, found: Outcomes):
        """Shows the first garment at the last scale."""
        self.supply, self.found, self.rounds = supply, found, state.rounds(found)
        self.number = -1
        self.finished: list[tuple[int, np.ndarray]] = []
        self.scale = slider(found.scales, found.scales[-1])
        self.names = [Button(description=name, layout=Layout(width="104px")) for name in supply.run.base.classes]
        self.next = Button(description="next garment", button_style="primary")
        self.picture, self.note, self.result = HTML(), HTML(), HTML()
        self.scale.observe(self.turned, "value")
        for button in self.names:
            button.on_click(self.answered)
        self.next.on_click(self.begin)
        rows = [HBox(self.names[start : start + 5]) for start in range(0, len(self.names), 5)]
        said = VBox([self.note, self.scale, *rows, self.next], layout=Layout(margin="0 12px"))
        self.box = VBox([HTML(views.heading("Your own failure point")), HBox([self.picture, said]), self.result])
        self.box.add_class("cns-game")
        self.begin()

    @property
    def first(self) -> Int[np.ndarray, "models"]:
        """Places of the classifiers' failure points in this round."""
        return self.rounds[self.number][1]

    def begin(self, _: object = None) -> None:
        """The next garment, at the last scale; after the last one the first again."""
        self.number = (self.number + 1) % len(self.rounds)
        self.played: Round = self.rounds[self.number][0]
        self.result.value = ""
        self.scale.value = self.played.scales[-1]
        self.show()

    def turned(self, _: object = None) -> None:
        """The slider was moved."""
        self.played = self.played if self.played.over else self.played.turned(float(self.scale.value))
        self.show()

    def answered(self, button: Button) -> None:
        """The reader says what the garment is."""
        self.played = self.played.answered(button.description)
        if self.played.over:
            self.finished.append((self.played.failure, self.first))
            self.result.value = self.outcome()
        self.show()

    def show(self) -> None:
        """The picture at the slider, what to do, and which buttons are there."""
        look = Look(*self.played.key, float(self.scale.value))
        what = look.name if self.played.over else "a garment"
        self.picture.value = views.picture(self.supply.picture(look), text=f"{what} in {look.shift}, scale {look.scale:g}")
        self.note.value = "" if self.played.over else views.progress(self.played)
        for button in self.names:
            button.disabled = not self.played.may_answer
        self.next.disabled = not self.played.over

    def outcome(self) -> str:
        """The end of the round, and the standing so far."""
        known = self.supply.at_hand(*self.played.key)
        strip = [known[scale] for scale in self.played.scales]
        parts = [views.outcome(self.played, self.first, self.found.models)]
        parts.append(views.failure_points(self.played, self.first, self.found.models, strip))
        total = state.standing(self.finished, self.found.models, self.found.scales)
        return "".join([*parts, views.tally(total, len(self.finished))])
