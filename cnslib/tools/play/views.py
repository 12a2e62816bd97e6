"""What is shown, as HTML: a picture, the classifiers' answers, and the end of a round. The same input gives the same text.

Right and wrong differ by sign and word, not by colour alone.
"""

import base64
import html
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8

from cnslib.core import tables
from cnslib.tools.play.state import YOU, Look, Round, compared

RIGHT, WRONG = "#0173b2", "#de8f05"  # of the colour-blind palette that the figures have
CELL = 'style="text-align:left; padding:1px 10px; white-space:nowrap; vertical-align:top"'
Picture = UInt8[np.ndarray, "height width 3"]


def picture(shown: Picture, *, text: str, side: int = 256) -> str:
    """A picture enlarged without smoothing; `text` is what it is called where it cannot be seen."""
    data = base64.b64encode(tables.encode(shown)).decode()
    style = f"width:{side}px; height:{side}px; image-rendering:pixelated"
    return f'<img alt="{html.escape(text)}" src="data:image/png;base64,{data}" style="{style}">'


def named(look: Look) -> str:
    """A look in words."""
    return f"{look.name} in {look.shift}, seed {look.seed}, scale {look.scale:g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells of HTML under a row of headings."""
    top = "".join(f"<th {CELL}>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td {CELL}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><tr>{top}</tr>{body}</table>'


def bar(share: float, *, right: bool) -> str:
    """A share of one as a bar with its number."""
    colour = RIGHT if right else WRONG
    filled = f'<span style="display:inline-block; height:10px; width:{100 * share:.0f}px; background:{colour}"></span>'
    return f'<span style="display:inline-block; width:104px">{filled}</span> {share:.0%}'


def verdict(right: bool) -> str:
    """A sign and a word."""
    return f'<b style="color:{RIGHT}">&#10003;</b> right' if right else f'<b style="color:{WRONG}">&#10007;</b> wrong'


def answers(asked: pd.DataFrame, *, scale: float) -> str:
    """A row for each classifier: its answer at a scale, whether that is right, and how sure it is."""
    rows = [
        (html.escape(row.model), html.escape(row.answer), verdict(row.right), bar(row.confidence, right=row.right))
        for row in asked.itertuples()
    ]
    return table(["classifier", f"answer at scale {scale:g}", "", "confidence"], rows)


def places(asked: pd.DataFrame) -> pd.Series:
    """The place of each classifier by what it gives the true class, 1 for the most; equal ones share the better place."""
    return asked.set_index("model")["true_probability"].round(6).rank(method="min", ascending=False).astype(int)


def ranks(asked: pd.DataFrame, start: pd.DataFrame, *, scale: float) -> str:
    """The classifiers in the order of what they give the true class at a scale, with their place at scale 0 from the answers there."""
    now, before = places(asked), places(start)
    rows = []
    for row in asked.assign(place=asked["model"].map(now)).sort_values(["place", "model"]).itertuples():
        said = html.escape(row.model), html.escape(row.answer), verdict(row.right), bar(row.true_probability, right=row.right)
        rows.append((str(row.place), moved(before[row.model], row.place), *said))
    return table([f"place at {scale:g}", "at 0", "classifier", "answer", "", "true class"], rows)


def moved(before: int, now: int) -> str:
    """A place at scale 0, and which way it has changed since."""
    sign = "&#8593; up" if now < before else "&#8595; down" if now > before else "="
    return f"{before} {sign}"


def columns(scales: Sequence[float]) -> list[str]:
    """The scales as headings, and one for what never fails."""
    return [*(f"{scale:g}" for scale in scales), "never"]


def outcome(played: Round, first: Int[np.ndarray, "models"], models: Sequence[str]) -> str:
    """The reader's failure point in a sentence, beside those of the classifiers on the same pictures."""
    names, own, counts = columns(played.scales), played.failure, compared(played.failure, first)
    word = "You can name it at every scale" if own == len(played.scales) else f"Your failure point is scale {names[own]}"
    others = f"fail earlier: {counts['earlier']}; at the same scale: {counts['same']}; later or never: {counts['later']}"
    what = html.escape(f"{played.name} in {played.shift}")
    return f"<p>This was: <b>{what}</b>. <b>{word}.</b> Of {len(models)} classifiers {others}.</p>"


def failure_points(played: Round, first: Int[np.ndarray, "models"], models: Sequence[str], pictures: Sequence[Picture]) -> str:
    """A column for each scale: its picture, and who fails there first, the reader in front."""
    names = columns(played.scales)
    seen = [picture(one, text=f"scale {name}", side=80) for one, name in zip(pictures, names, strict=False)]
    here = [[model for model, place in zip(models, first, strict=True) if place == column] for column in range(len(names))]
    you = f'<b style="background:{RIGHT}; color:white; padding:0 6px">{YOU}</b>'
    cells = [listed(([you] if column == played.failure else []) + [*map(html.escape, own)]) for column, own in enumerate(here)]
    return table([*(f"scale {name}" for name in names[:-1]), names[-1]], [[*seen, ""], cells])


def note(*lines: str) -> str:
    """Lines below a picture."""
    return f'<div style="line-height:1.35">{"<br>".join(map(html.escape, lines))}</div>'


def heading(text: str) -> str:
    """A line above a widget."""
    return f'<div style="font-size:115%; font-weight:bold; margin-top:10px">{html.escape(text)}</div>'


def listed(names: Collection[str]) -> str:
    """Names under each other."""
    return f'<div style="line-height:1.35; vertical-align:top">{"<br>".join(names)}</div>'


def progress(played: Round) -> str:
    """What the reader is to do next, in the round as it stands."""
    scale = f"{played.scales[played.lowest]:g}"
    if not played.may_answer:
        return f"<p>Not so at scale {scale}. Turn the slider further down, and answer again.</p>"
    what = html.escape(played.shift.capitalize())
    return f"<p>{what}: what is it? Turn the slider down until you can name it. Lowest scale seen: {scale}.</p>"


def tally(found: pd.DataFrame, garments: int) -> str:
    """The reader's place among the classifiers over all garments so far, and the names around it."""
    own: Any = found[found["name"] == YOU].iloc[0]
    around = found.iloc[max(0, own.name - 2) : own.name + 3]
    rows = [
        (str(row.place), f"<b>{YOU}</b>" if row.name == YOU else html.escape(row.name), f"{row.mean_scale:.2f}")
        for row in around.itertuples(index=False)
    ]
    word = "garment" if garments == 1 else "garments"
    return f"<p>Over {garments} {word} you are at place {own['place']} of {len(found)}.</p>" + table(
        ["place", "", "mean failure point"], rows
    )


def problem(error: Exception) -> str:
    """An error in a line, as the library words it."""
    return f"<p>{html.escape(str(error))}</p>"
