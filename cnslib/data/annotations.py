"""Labels by people as projects of the VGG Image Annotator (VIA 2, Dutta and Zisserman 2019): written, read back, made by clicking.

One project file is one annotator's: pictures with one question each. VIA knows a picture by its file name followed by its size in
bytes. `Sheet` is a contact sheet for JupyterLab on which an annotator labels pictures; every click is saved to such a project.
"""

import html
import json
from pathlib import Path
from typing import Any

import ipywidgets
import pandas as pd
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from cnslib.core import paths, tables, units
from cnslib.core.names import identifier

ANSWERS = ("class", "partial class properties", "not class")  # section I.1
JPEG = b"\xff\xd8"  # what its bytes begin with; other pictures are PNG
Picture = TypedDict("Picture", {"filename": str, "file_attributes": dict})  # noqa: UP013
Parts = {"_via_settings": dict, "_via_img_metadata": dict[str, Picture], "_via_attributes": dict}  # without them VIA opens no project
Project = TypedDict("Project", Parts)  # type: ignore[misc]


def file_names(rows: pd.DataFrame) -> list[str]:
    """The picture file of each row (shift, class, seed, scale, image), in the style of the published data set."""
    keys = rows[tables.KEY].itertuples(index=False, name=None)
    endings = ["jpg" if data.startswith(JPEG) else "png" for data in rows["image"]]
    return [
        f"{identifier(name)}-{identifier(shift)}-seed_{seed:04d}-scale_{round(1000 * scale):04d}.{ending}"
        for (shift, name, seed, scale), ending in zip(keys, endings, strict=True)
    ]


def write(rows: pd.DataFrame, path: Path, *, answers: dict[str, str] | None = None) -> None:
    """Writes a VIA 2 project of some images (key and bytes) with a radio button for the three answers, atomically.

    `answers` are those known, by file name; the project has the name of the file.
    """
    pictures = {}
    for file, data in zip(file_names(rows), rows["image"], strict=True):
        attributes = {"answer": answers[file]} if answers and file in answers else {}
        pictures[f"{file}{len(data)}"] = {"filename": file, "size": len(data), "regions": [], "file_attributes": attributes}
    asked = "Does the picture show the class that its file name gives?"
    question = {"type": "radio", "description": asked, "options": dict.fromkeys(ANSWERS, ""), "default_options": {}}
    settings = {"core": {"buffer_size": 18, "filepath": {}, "default_filepath": ""}, "project": {"name": path.stem}}
    project = {
        "_via_settings": settings,
        "_via_img_metadata": pictures,
        "_via_attributes": {"region": {}, "file": {"answer": question}},
        "_via_data_format_version": "2.0.10",
        "_via_image_id_list": list(pictures),
    }
    units.write_bytes(path, (json.dumps(project, indent=1) + "\n").encode())


def export(rows: pd.DataFrame, path: Path) -> None:
    """Writes a project without answers and its pictures beside it, where VIA looks for them."""
    write(rows, path)
    for file, data in zip(file_names(rows), rows["image"], strict=True):
        units.write_bytes(path.parent / file, data)


def read(path: Path, rows: pd.DataFrame, *, finished: bool = True) -> dict[str, str]:
    """One annotator's answers by file name; `rows` are the images to be answered.

    Raises FileNotFoundError for a missing file; ValueError, naming file and picture, for what is no VIA 2 project, a picture
    that is missing or not among the rows, an unknown answer, and, in a finished project, a picture without an answer.
    """
    try:
        content: Any = TypeAdapter(Project).validate_json(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"labels: project {path} does not exist; accepted: a VIA 2 project file (json)") from None
    except ValidationError as error:
        what = error.errors()[0]
        raise ValueError(f"{path}: {'.'.join(map(str, what['loc']))} {what['msg']}; accepted: a VIA 2 project file (json)") from None
    said = [(entry["filename"], entry["file_attributes"].get("answer", "")) for entry in content["_via_img_metadata"].values()]
    pictures, wanted = dict(said), file_names(rows)
    wrong = {
        "answered twice and differently": sorted({file for file, answer in said if answer != pictures[file]}),
        "missing": [file for file in wanted if file not in pictures],
        "not part of this project": sorted(set(pictures) - set(wanted)),
        "answered by an unknown label": [f"{file} ({said!r})" for file, said in pictures.items() if said and said not in ANSWERS],
        "without an answer": [file for file in wanted if finished and not pictures.get(file)],
    }
    for problem, files in wrong.items():
        if files:
            verb = "picture is" if len(files) == 1 else "pictures are"
            raise ValueError(
                f"{path}: {len(files)} {verb} {problem}, first {files[0]}; accepted: one answer per picture, {', '.join(ANSWERS)}"
            )
    return {file: pictures[file] for file in wanted if pictures[file]}


PAGE = 24  # pictures that are shown at once
BUTTONS = dict(zip(("class", "partly class", "not class"), ANSWERS, strict=True))  # what fits on a button, and what it answers


class Sheet(ipywidgets.VBox):
    """Pages of pictures with three buttons each; `path` is the annotator's VIA project, and a sheet continues where it ended.

    `rows` are the images to be answered: key and bytes. Errors of an existing project are those of `read`.
    """

    def __init__(self, rows: pd.DataFrame, path: Path):
        self.rows, self.path, self.names = rows.reset_index(drop=True), path, file_names(rows)
        self.answers = read(path, rows, finished=False) if path.exists() else {}
        self.page = next((i for i, name in enumerate(self.names) if name not in self.answers), 0) // PAGE
        self.state = ipywidgets.Label()
        self.grid = ipywidgets.GridBox(layout=ipywidgets.Layout(grid_template_columns="repeat(6, 1fr)"))
        kept = f"Every click is saved to <code>{html.escape(paths.shown(path))}</code>."
        question = ipywidgets.HTML(f"Does the picture show what stands above it? {kept}")
        turners = [ipywidgets.Button(description=name) for name in ("back", "next")]
        for button, step in zip(turners, (-1, 1), strict=True):
            button.on_click(lambda _, step=step: self.turn(step))
        bar = ipywidgets.HBox([*turners, self.state])
        super().__init__([bar, question, self.grid, bar])  # who has come to the last picture need not go up again
        self.turn(0)

    def turn(self, step: int) -> None:
        """Goes some pages on, or back, no further than the first and the last page, and draws the page."""
        last = max(len(self.names) - 1, 0) // PAGE
        self.page = min(max(self.page + step, 0), last)
        self.grid.children = [self.cell(number) for number in range(len(self.names))[self.page * PAGE :][:PAGE]]
        self.state.value = f"page {self.page + 1} of {last + 1}, {len(self.answers)} of {len(self.names)} pictures answered"

    def cell(self, number: int) -> ipywidgets.VBox:
        """One picture with its question and its three buttons, of which a click is saved at once."""
        row, name = self.rows.loc[number], self.names[number]
        title = ipywidgets.HTML(f"<b>{html.escape(row['class'])}</b><br>{html.escape(row['shift'])}, {row['scale']:g}")
        picture = ipywidgets.Image(value=row["image"], format=name.rsplit(".", 1)[-1], width=128)
        look = {"options": BUTTONS.items(), "tooltips": ANSWERS, "layout": {"width": "150px"}}
        buttons = ipywidgets.ToggleButtons(value=self.answers.get(name), **look)
        buttons.observe(lambda change: self.answer(name, change["new"]), names="value")
        return ipywidgets.VBox([title, picture, buttons])

    def answer(self, name: str, said: str) -> None:
        """Keeps one answer, saves all of them and counts them."""
        self.answers[name] = said
        write(self.rows, self.path, answers=self.answers)
        self.state.value = f"{self.state.value.split(',')[0]}, {len(self.answers)} of {len(self.names)} pictures answered"
