"""Labels by people as projects of the VGG Image Annotator (VIA 2, Dutta and Zisserman 2019): written, read back, made by clicking.

One project file is one annotator's: pictures with one question each. VIA knows a picture by its file name followed by its size in
bytes. `Sheet` is a contact sheet for JupyterLab on which an annotator labels pictures; every click is saved to such a project.
"""

import html
import json
from pathlib import Path

import ipywidgets
import pandas as pd

from cnslib.core import paths, tables, units
from cnslib.core.names import identifier

ANSWERS = ("class", "partial class properties", "not class")  # section I.1
ATTRIBUTE = "answer"
QUESTION = "Does the picture show the class that its file name gives?"
JPEG = b"\xff\xd8"  # what its bytes begin with; other pictures are PNG
VERSION = "2.0.10"  # of VIA's data format
PARTS = ("_via_settings", "_via_img_metadata", "_via_attributes")  # without them VIA opens no project


def file_names(rows: pd.DataFrame) -> list[str]:
    """The picture file of each row (shift, class, seed, scale, image), in the style of the published data set."""
    keys = rows[tables.KEY].itertuples(index=False, name=None)
    endings = ["jpg" if data.startswith(JPEG) else "png" for data in rows["image"]]
    return [
        f"{identifier(name)}-{identifier(shift)}-seed_{seed:04d}-scale_{round(1000 * scale):04d}.{ending}"
        for (shift, name, seed, scale), ending in zip(keys, endings, strict=True)
    ]


def project(rows: pd.DataFrame, *, name: str, answers: dict[str, str] | None = None) -> dict:
    """A VIA 2 project of some images (key and bytes) with a radio button for the three answers; `answers` by file name, if any."""
    given = answers or {}
    pictures = {}
    for file, data in zip(file_names(rows), rows["image"], strict=True):
        attributes = {ATTRIBUTE: given[file]} if file in given else {}
        pictures[f"{file}{len(data)}"] = {"filename": file, "size": len(data), "regions": [], "file_attributes": attributes}
    question = {"type": "radio", "description": QUESTION, "options": dict.fromkeys(ANSWERS, ""), "default_options": {}}
    core = {"buffer_size": 18, "filepath": {}, "default_filepath": ""}
    return {
        "_via_settings": {"core": core, "project": {"name": name}},
        "_via_img_metadata": pictures,
        "_via_attributes": {"region": {}, "file": {ATTRIBUTE: question}},
        "_via_data_format_version": VERSION,
        "_via_image_id_list": list(pictures),
    }


def write(rows: pd.DataFrame, path: Path, *, answers: dict[str, str] | None = None) -> None:
    """Writes a project file, atomically; its name is that of the file."""
    units.write_bytes(path, (json.dumps(project(rows, name=path.stem, answers=answers), indent=1) + "\n").encode())


def export(rows: pd.DataFrame, path: Path) -> None:
    """Writes a project without answers and its pictures beside it, where VIA looks for them."""
    write(rows, path)
    for file, data in zip(file_names(rows), rows["image"], strict=True):
        units.write_bytes(path.parent / file, data)


def read(path: Path, rows: pd.DataFrame, *, finished: bool = True) -> dict[str, str]:
    """One annotator's answers by file name; `rows` are the images that were asked for.

    Raises FileNotFoundError for a missing file; ValueError, naming file and picture, for what is no VIA 2 project, a picture
    that is missing or that nobody asked for, an unknown answer, and, in a finished project, a picture without an answer.
    """
    said = [(entry["filename"], entry["file_attributes"].get(ATTRIBUTE, "")) for entry in load(path).values()]
    pictures = dict(said)
    require(
        path,
        sorted({file for file, answer in said if answer != pictures[file]}),
        "answered twice and differently",
        "one answer per picture",
    )
    asked = file_names(rows)
    require(path, [file for file in asked if file not in pictures], "missing", "a project with every picture that was asked for")
    require(path, sorted(set(pictures) - set(asked)), "not part of this project", "the pictures that were asked for")
    unknown = [f"{file} ({answer!r})" for file, answer in pictures.items() if answer and answer not in ANSWERS]
    require(path, unknown, "answered by an unknown label", f"the labels {', '.join(ANSWERS)}")
    if finished:
        require(path, [file for file in asked if not pictures[file]], "without an answer", "one answer per picture")
    return {file: pictures[file] for file in asked if pictures[file]}


def load(path: Path) -> dict[str, dict]:
    """The pictures of a VIA 2 project file."""
    if not path.exists():
        raise FileNotFoundError(f"labels: project {path} does not exist; accepted: a VIA 2 project file (json)")
    try:
        content = json.loads(path.read_text())
        missing = [part for part in PARTS if part not in content]
    except (ValueError, TypeError, RecursionError):
        missing = list(PARTS)
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; accepted: a VIA 2 project file (json)")
    found = content["_via_img_metadata"]
    if not isinstance(found, dict) or not all(understood(entry) for entry in found.values()):
        raise ValueError(f"{path}: a picture has no filename or file_attributes; accepted: a VIA 2 project file (json)")
    return found


def understood(entry: object) -> bool:
    """Whether an entry of a project is a picture with its attributes, whose answer is a text."""
    if not isinstance(entry, dict) or not isinstance(entry.get("filename"), str) or not isinstance(entry.get("file_attributes"), dict):
        return False
    return isinstance(entry["file_attributes"].get(ATTRIBUTE, ""), str)


def require(path: Path, wrong: list[str], problem: str, accepted: str) -> None:
    """Raises ValueError that counts the wrong pictures and shows the first, if there are any."""
    if wrong:
        verb = "picture is" if len(wrong) == 1 else "pictures are"
        raise ValueError(f"{path}: {len(wrong)} {verb} {problem}, first {wrong[0]}; accepted: {accepted}")


PAGE = 24  # pictures that are shown at once
COLUMNS = 6
BUTTONS = dict(zip(("class", "partly class", "not class"), ANSWERS, strict=True))  # what fits on a button, and what it answers


class Sheet(ipywidgets.VBox):
    """Pages of pictures with three buttons each; `path` is the annotator's VIA project, and a sheet continues where it ended.

    `rows` are the images that are asked for: key and bytes. Errors of an existing project are those of `read`.
    """

    def __init__(self, rows: pd.DataFrame, path: Path):
        self.rows, self.path = rows.reset_index(drop=True), path
        self.answers = read(path, rows, finished=False) if path.exists() else {}
        self.names = file_names(self.rows)
        self.page = next((i for i, name in enumerate(self.names) if name not in self.answers), 0) // PAGE
        self.state = ipywidgets.Label()
        self.grid = ipywidgets.GridBox(layout=ipywidgets.Layout(grid_template_columns=f"repeat({COLUMNS}, 1fr)"))
        kept = f"Every click is saved to <code>{html.escape(paths.shown(path))}</code>."
        asked = ipywidgets.HTML(f"Does the picture show what stands above it? {kept}")
        bar = ipywidgets.HBox([self.turner("back", -1), self.turner("next", 1), self.state])
        super().__init__([bar, asked, self.grid, bar])  # who has come to the last picture need not go up again
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
        title = ipywidgets.HTML(f"<b>{html.escape(row['class'])}</b><br>{html.escape(row['shift'])}, {row['scale']:g}")
        picture = ipywidgets.Image(value=row["image"], format=name.rsplit(".", 1)[-1], width=128)
        told = {"options": BUTTONS.items(), "tooltips": ANSWERS}
        buttons = ipywidgets.ToggleButtons(**told, value=self.answers.get(name), layout={"width": "150px"})
        buttons.observe(lambda change: self.answer(name, change["new"]), names="value")
        return ipywidgets.VBox([title, picture, buttons])

    def answer(self, name: str, said: str) -> None:
        """Keeps one answer and saves all of them."""
        self.answers[name] = said
        write(self.rows, self.path, answers=self.answers)
        self.count()

    def count(self) -> None:
        """Tells how far the annotator is."""
        pages = -(-len(self.names) // PAGE)
        self.state.value = f"page {self.page + 1} of {pages}, {len(self.answers)} of {len(self.names)} pictures answered"
