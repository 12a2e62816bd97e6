"""A contact sheet for JupyterLab on which an annotator labels images by clicking; every click is saved to a VIA project."""

from pathlib import Path

import ipywidgets
import pandas as pd

from cnslib import via

PAGE = 24  # pictures that are shown at once
COLUMNS = 6


class Sheet(ipywidgets.VBox):
    """Pages of pictures with three buttons each; `path` is the annotator's VIA project, and a sheet continues where it ended.

    `rows` are the images that are asked for: key and PNG bytes. Errors of an existing project are those of `via.read`.
    """

    def __init__(self, rows: pd.DataFrame, path: Path):
        self.rows, self.path = rows.reset_index(drop=True), path
        self.answers = via.read(path, rows, finished=False) if path.exists() else {}
        self.names = via.file_names(self.rows)
        self.page = next((i for i, name in enumerate(self.names) if name not in self.answers), 0) // PAGE
        self.state = ipywidgets.Label()
        self.grid = ipywidgets.GridBox(layout=ipywidgets.Layout(grid_template_columns=f"repeat({COLUMNS}, 1fr)"))
        super().__init__([ipywidgets.HBox([self.turner("back", -1), self.turner("next", 1), self.state]), self.grid])
        self.show()

    def turner(self, description: str, step: int) -> ipywidgets.Button:
        """A button that turns the page."""
        button = ipywidgets.Button(description=description)
        button.on_click(lambda _: self.turn(step))
        return button

    def turn(self, step: int) -> None:
        """Goes some pages on, or back; the first and the last page end the way."""
        last = max(len(self.names) - 1, 0) // PAGE
        self.page = min(max(self.page + step, 0), last)
        self.show()

    def show(self) -> None:
        """Draws the current page."""
        here = range(self.page * PAGE, min((self.page + 1) * PAGE, len(self.names)))
        self.grid.children = [self.cell(number) for number in here]
        self.count()

    def cell(self, number: int) -> ipywidgets.VBox:
        """One picture with what is asked and its three buttons."""
        row, name = self.rows.loc[number], self.names[number]
        title = ipywidgets.Label(f"{row['class']}, {row['shift']}, {row['scale']:g}")
        picture = ipywidgets.Image(value=row["image"], format="png", width=128)
        buttons = ipywidgets.ToggleButtons(options=via.ANSWERS, value=self.answers.get(name), layout={"width": "150px"})
        buttons.observe(lambda change: self.answer(name, change["new"]), names="value")
        return ipywidgets.VBox([title, picture, buttons])

    def answer(self, name: str, said: str) -> None:
        """Keeps one answer and saves all of them."""
        self.answers[name] = said
        via.write(self.rows, self.path, answers=self.answers)
        self.count()

    def count(self) -> None:
        """Tells how far the annotator is."""
        pages = -(-len(self.names) // PAGE)
        self.state.value = f"page {self.page + 1} of {pages}, {len(self.answers)} of {len(self.names)} pictures answered"
