"""Labels by people as projects of the VGG Image Annotator (VIA 2, Dutta and Zisserman 2019), one file per annotator.

VIA knows a picture by its file name followed by its size in bytes. `Sheet` is a contact sheet for JupyterLab that writes such a project.
"""

import html
import json
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pandas as pd
from jaxtyping import UInt8
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from cnslib.core import paths, tables, units
from cnslib.core.names import demand, identifier
from cnslib.core.sources import document

ANSWERS = ("class", "partial class properties", "not class")  # section I.1
IN, PARTLY, OUT = KINDS = ("in class", "partly in class", "out of class")  # what two answers make of an image (Fig. 28)
ANNOTATORS = ["first", "second"]
CLEAR = ("unclear", "clear")  # Table 9
QUESTIONS = {
    "answer": ("Does the picture show the class that its file name gives?", ANSWERS),
    "shift": ("Is the shift that its file name gives clearly visible?", CLEAR),
}
JPEG = b"\xff\xd8"  # what its bytes begin with; other pictures are PNG
Picture = TypedDict("Picture", {"filename": str, "file_attributes": dict})  # noqa: UP013
Parts = {"_via_settings": dict, "_via_img_metadata": dict[str, Picture], "_via_attributes": dict}  # without them VIA opens no project
Project = TypedDict("Project", Parts)  # type: ignore[misc]


def stems(rows: pd.DataFrame) -> list[str]:
    """The picture's name of each row (shift, class, seed, scale), in the style of the published data set, without its ending."""
    keys = rows[tables.KEY].itertuples(index=False, name=None)
    return [f"{identifier(c)}-{identifier(shift)}-seed_{seed:04d}-scale_{round(1000 * scale):04d}" for shift, c, seed, scale in keys]


def file_names(rows: pd.DataFrame) -> list[str]:
    """The picture file of each row (shift, class, seed, scale, image)."""
    return [f"{stem}.{'jpg' if data.startswith(JPEG) else 'png'}" for stem, data in zip(stems(rows), rows["image"], strict=True)]


def write(rows: pd.DataFrame, path: Path, *, answers: dict[str, str] | None = None, shifts: dict[str, str] | None = None) -> None:
    """Writes a VIA 2 project of some images (key and bytes) with a radio button; `answers` are those known, by file name.

    With `shifts`, the answers known to it, the project has the question of Table 9 as well.
    """
    known = {"answer": answers or {}} | ({} if shifts is None else {"shift": shifts})
    pictures = {
        f"{file}{len(data)}": {
            "filename": file,
            "size": len(data),
            "regions": [],
            "file_attributes": {key: given[file] for key, given in known.items() if file in given},
        }
        for file, data in zip(file_names(rows), rows["image"], strict=True)
    }
    radio = {
        key: {"type": "radio", "description": text, "options": dict.fromkeys(options, ""), "default_options": {}}
        for key, (text, options) in QUESTIONS.items()
        if key in known
    }
    project = {
        "_via_settings": {"core": {"buffer_size": 18, "filepath": {}, "default_filepath": ""}, "project": {"name": path.stem}},
        "_via_img_metadata": pictures,
        "_via_attributes": {"region": {}, "file": radio},
        "_via_data_format_version": "2.0.10",
        "_via_image_id_list": list(pictures),
    }
    units.write_bytes(path, (json.dumps(project, indent=1) + "\n").encode())


def export(rows: pd.DataFrame, path: Path) -> None:
    """Writes a project of both questions without answers and its pictures beside it, where VIA looks for them."""
    write(rows, path, shifts={})
    for file, data in zip(file_names(rows), rows["image"], strict=True):
        units.write_bytes(path.parent / file, data)


def answered(path: Path, question: str = "answer") -> list[tuple[str, str]]:
    """File name and answer, "" without one, of each picture of a project; errors as those of `read`."""
    try:
        content: Any = TypeAdapter(Project).validate_python(document(path, key="labels", remedy="accepted: a VIA 2 project file (json)"))
    except FileNotFoundError:
        raise FileNotFoundError(f"labels: project {path} does not exist; accepted: a VIA 2 project file (json)") from None
    except ValidationError as error:
        what = error.errors()[0]
        raise ValueError(f"{path}: {'.'.join(map(str, what['loc']))} {what['msg']}; accepted: a VIA 2 project file (json)") from None
    return [(entry["filename"], entry["file_attributes"].get(question, "")) for entry in content["_via_img_metadata"].values()]


def read(path: Path, rows: pd.DataFrame, *, finished: bool = True, question: str = "answer") -> dict[str, str]:
    """One annotator's answers to one of the QUESTIONS about the images in `rows`, by file name."""
    entries, options = answered(path, question), QUESTIONS[question][1]
    pictures, wanted = dict(entries), file_names(rows)
    wrong = {
        "answered twice and differently": sorted({file for file, answer in entries if answer != pictures[file]}),
        "missing": [file for file in wanted if file not in pictures],
        "not part of this project": sorted(set(pictures) - set(wanted)),
        "answered by an unknown label": [f"{file} ({answer!r})" for file, answer in pictures.items() if answer not in ("", *options)],
        "without an answer": [file for file in wanted if finished and not pictures.get(file)],
    }
    for problem, files in wrong.items():
        if files:
            accepted = f"one answer per picture, {', '.join(options)}"
            raise ValueError(f"{path}: pictures {problem}: {len(files)}, first {files[0]}; accepted: {accepted}")
    return {file: pictures[file] for file in wanted if pictures[file]}


GUIDE = """<meta charset="utf-8"><title>How to label</title>
<p>Each picture's file name begins with a class. Does the picture show it? You have three answers.</p>
<ul><li><b>class</b>: you see the class, however strange, small, hidden or painted it is.</li>
<li><b>partial class properties</b>: you see some of what makes the class, such as its shape, its fur or a part of it, but not all.</li>
<li><b>not class</b>: you see another thing, or nothing that you could name.</li></ul>
<p>For the class judge the class alone: snow, a style or a blemish is no fault. A second question asks for the shift, which stands in the
file name behind the class: <b>clear</b> if you would have named it without being told, else <b>unclear</b>.</p>
<p>Do not talk to the other annotator. If you are unsure between two answers, look at the class's example once more and take the answer that
you thought of first. A real picture of each class:</p>
"""


def guide(folder: Path, examples: dict[str, UInt8[np.ndarray, "height width 3"]]) -> None:
    """Writes the annotators' instructions (Fig. 33), how_to_label.html, with an example picture of each class beside it."""
    shown = {name: f"example-{identifier(name)}.png" for name in examples}
    for name, picture in examples.items():
        units.write_bytes(folder / shown[name], tables.encode(picture))
    figures = [
        f'<figure><img src="{file}" height="160"><figcaption>{html.escape(name)}</figcaption></figure>' for name, file in shown.items()
    ]
    units.write_bytes(folder / "how_to_label.html", (GUIDE + "\n".join(figures) + "\n").encode())


def annotated(files: list[Path], rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """What two annotators said about each row, from their VIA projects; errors name the file (see `read`)."""
    different = len({file.resolve() for file in files}) == 2 == len(files)
    demand(different, key, [str(file) for file in files], "two VIA projects, one per annotator")
    said = [read(file, rows) for file in files]
    names = file_names(rows)
    return pd.DataFrame({who: [answers[name] for name in names] for who, answers in zip(ANNOTATORS, said, strict=True)}, index=rows.index)


def joined(answers: pd.DataFrame) -> pd.Series:
    """The paper's rule: out of class if one annotator says "not class"; else in class if one says "class"; else partly."""
    out, inside = ((answers[ANNOTATORS] == said).any(axis=1) for said in (ANSWERS[2], ANSWERS[0]))
    return pd.Series(np.select([out, inside], [OUT, IN], PARTLY), index=answers.index)


def visibility(files: list[Path], rows: pd.DataFrame) -> pd.DataFrame:
    """Table 9: by scale, how many answers of all annotators call the shift unclear and clear; pictures without an answer do not count."""
    given = [pd.Series(file_names(rows), rows.index).map(read(file, rows, finished=False, question="shift")) for file in files]
    answers = pd.concat([rows[["scale"]].assign(answer=one) for one in given]).dropna()
    return pd.crosstab(answers["scale"], answers["answer"]).reindex(columns=CLEAR, fill_value=0)


PAGE = 24  # pictures that are shown at once
# What fits on a button, and what it answers.
BUTTONS = {"answer": dict(zip(("class", "partly class", "not class"), ANSWERS, strict=True))}
BUTTONS["shift"] = {f"shift {word}": word for word in CLEAR}


class Sheet(ipywidgets.VBox):
    """Pages of the images in `rows` with buttons for class and shift; `path` is the annotator's VIA project, which a sheet continues."""

    def __init__(self, rows: pd.DataFrame, path: Path):
        self.rows, self.path, self.names = rows.reset_index(drop=True), path, file_names(rows)
        self.given = {key: read(path, rows, finished=False, question=key) if path.exists() else {} for key in QUESTIONS}
        self.answers = self.given["answer"]
        first = next((i for i, name in enumerate(self.names) if name not in self.answers), 0) // PAGE
        self.page = ipywidgets.BoundedIntText(first + 1, 1, max(len(self.names) - 1, 0) // PAGE + 1, description="page")
        self.page.observe(lambda _: self.turn(), names="value")
        self.state, self.grid = ipywidgets.Label(), ipywidgets.GridBox(layout={"grid_template_columns": "repeat(6, 1fr)"})
        saved = f"Every click is saved to <code>{html.escape(paths.shown(path))}</code>."
        question = ipywidgets.HTML(f"Does the picture show what stands above it? {saved}")
        super().__init__([question, self.page, self.grid, self.page, self.state])  # whoever is at the last picture need not go up
        self.turn()

    def turn(self) -> None:
        """Draws the page, and counts the answers."""
        numbers = range(len(self.names))[(self.page.value - 1) * PAGE :][:PAGE]
        self.grid.children = [self.cell(number) for number in numbers]
        self.state.value = f"{len(self.answers)} of {len(self.names)} pictures answered"

    def cell(self, number: int) -> ipywidgets.VBox:
        """One picture with its questions and their buttons, of which a click is saved at once."""
        row, name = self.rows.loc[number], self.names[number]
        title = ipywidgets.HTML(f"<b>{html.escape(row['class'])}</b><br>{html.escape(row['shift'])}, {row['scale']:g}")
        picture = ipywidgets.Image(value=row["image"], format=name.rsplit(".", 1)[-1], width=128)
        return ipywidgets.VBox([title, picture, *(self.buttons(name, key) for key in QUESTIONS)])

    def buttons(self, name: str, question: str) -> ipywidgets.ToggleButtons:
        """The buttons of one question about a picture."""
        look = {"options": BUTTONS[question].items(), "tooltips": QUESTIONS[question][1], "layout": {"width": "150px"}}
        buttons = ipywidgets.ToggleButtons(value=self.given[question].get(name), **look)
        buttons.observe(lambda change: self.answer(name, change["new"], question), names="value")
        return buttons

    def answer(self, name: str, label: str, question: str) -> None:
        """Keeps one answer and saves all of them."""
        self.given[question][name] = label
        write(self.rows, self.path, answers=self.answers, shifts=self.given["shift"])
        self.state.value = f"{len(self.answers)} of {len(self.names)} pictures answered"
