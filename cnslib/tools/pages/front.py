"""The numbers in the README and in docs/: `cns front` writes them between their marks from metrics/ and figures/.

A page marks the place of a table with `<!-- filled: NAME -->` and `<!-- end -->`; what stands between them is replaced.
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cnslib.core import paths
from cnslib.core.names import demand
from cnslib.stats import gates, verdicts

MARKED = re.compile(r"(<!-- filled: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
# What is measured, where its record lies (the step, then the keys in metrics/<step>.json), and what the paper says; {n} is the record's n.
NUMBERS = [
    ("steps of 0.5 that raise the alignment with the shift ({n} trajectories)", ("calibration", "rising", "alignment"), "0.73"),
    (
        "filter at the paper's recall 0.9: out-of-class images found, of {n} shifted images of trajectories that start in class",
        ("filtering", "recall_of_the_paper", "ours", "tpr"),
        "0.88",
    ),
    ("the same filter: good images dropped, of {n}", ("filtering", "recall_of_the_paper", "ours", "fpr"), "0.12"),
    ("mean accuracy at scale 0, {n} trajectories that start in class", ("accuracy", "accuracy_scale_0"), "0.91"),
    ("mean accuracy at scale 2.5", ("accuracy", "accuracy_scale_2.5"), "0.79"),
    ("the same, every shift with the same weight", ("accuracy", "accuracy_scale_2.5_every_shift_alike"), ""),
    ("the same, without the classifiers that learned from the generator's pool", ("accuracy", "accuracy_scale_2.5_other_pool"), ""),
    ("the same, if other classes were drawn", ("accuracy", "accuracy_scale_2.5_other_classes"), ""),
    ("Kendall's tau of the classifiers' order at scale 2.5 with that at scale 0", ("ranking", "tau_scale_2.5"), ""),
]
# The base models, and which of their measured qualities the cards tell.
QUALITIES = {
    "vae_psnr_db": "autoencoder: PSNR in dB, held-out web scenes with and without shifts",
    "vae_psnr_db_worst_shift": "autoencoder: PSNR in dB under the shift it draws worst",
    "frechet_heldout": "mini-SD: Fréchet distance of drawings to unseen scenes, in features of the image encoder",
    "frechet_floor": "the same between two sets of unseen scenes",
    "copied": "mini-SD: share of drawings nearer to a scene of its training than 99 of 100 unseen scenes are",
    "clip_class_accuracy": "text-image encoder: garments named from their class texts",
    "clip_shift_accuracy": "text-image encoder: shifts named from their texts",
    "clip_nothing_accuracy": "text-image encoder: empty scenes to which it gives no class",
    "dino_knn_accuracy": "image encoder: garments named by the nearest neighbours",
    "real_class_accuracy": "oracle: class of rendered pictures",
    "real_shift_accuracy": "oracle: shift of rendered pictures",
    "text_class_accuracy": "oracle: class of drawn pictures, by the prompt",
    "text_shift_accuracy": "oracle: shift of drawn pictures, by the prompt",
}


def pages() -> list[Path]:
    """The pages that hold filled tables."""
    return [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


def filled(text: str) -> str:
    """A page with all of its tables written anew; ValueError names an unknown table."""

    def table(found: re.Match) -> str:
        demand(found[2] in TABLES, "filled", found[2], ", ".join(TABLES))
        return f"{found[1]}{TABLES[found[2]]()}\n{found[3]}"

    return MARKED.sub(table, text)


BECAME = {  # what a verdict means for a claim about robustness
    "hold": verdicts.CONFIRMED,
    "point the other way": (verdicts.OPPOSITE,),
    "stay open": (verdicts.UNDECIDED,),
    "cannot be measured here": (verdicts.UNMEASURED,),
}
AS_RULE = {"exists": "above 0"}  # what a rule of the claims asks of an interval, where it has other words
DIFFUSION = "[27 denoiser](../notebooks/27_denoiser.ipynb) asks it about few pictures"
ELSEWHERE = dict.fromkeys(("diffusion_worse", "diffusion_widens"), DIFFUSION)  # who asks what cannot be measured here


def listed() -> pd.DataFrame:
    """The paper's claims about robustness in its order: claim, verdict and interval."""
    claims = pd.read_csv(paths.ROOT / "published" / "claims.csv")[["id", "claim", "measure"]]
    found = pd.read_csv(paths.ROOT / "figures" / "axes" / "claims.csv").drop(columns="claim")
    return claims.merge(found, on="id", validate="one_to_one").query("measure != 'held-out error'")


def verdict() -> str:
    """How many claims about robustness the paper makes, and what became of them."""
    words = listed()["verdict"]
    return markdown(["claims about robustness", *BECAME], [len(words), *(int(words.isin(own).sum()) for own in BECAME.values())])


def claims() -> str:
    """What the gates say of the verdicts, and every claim about robustness under what became of it.

    A claim has its number here and, where it stays open, what could have been seen.
    """
    table, rows = listed(), []
    for name, words in BECAME.items():
        for own in table[table["verdict"].isin(words)].itertuples():
            measured = ranged(own._asdict()) if own.n > 0 else ELSEWHERE.get(own.id, "")
            rows.append([name, own.claim, measured, seen(own) if own.verdict == verdicts.UNDECIDED else ""])
    heads = ["what became of it", "claim", "here", "least that could have been seen, taken by itself"]
    return f"{safety()}\n\n{markdown(heads, *rows)}"


def safety() -> str:
    """Which gates are missed, in words, on which all verdicts rest."""
    found = gates.restored(record("gates"))
    wrong = [gates.bounded(key, found[key]["estimate"], words=True) for key in gates.missed(found)]
    said = missing(found, "glossary.md")
    return f"{said}: {'; '.join(wrong)}. By our rule the verdicts below are not safe." if wrong else f"{said}."


def missing(found: dict[str, dict], glossary: str) -> str:
    """How many gates are missed, of those that could fail; `glossary` is the page that says what a gate is."""
    wrong, of = len(gates.missed(found)), f"{len(gates.counted(found))} [gates]({glossary}#gate)"
    return f"{wrong} of {of} {'is' if wrong == 1 else 'are'} missed" if wrong else f"None of {of} is missed"


def seen(own: Any) -> str:
    """The least that could have been seen of an open claim, and whether Holm's correction asked for more than that."""
    return f"{own.smallest:.2f}{', but Holm asks more' if left_open_by_holm(own) else ''}"


def left_open_by_holm(own: Any) -> bool:
    """Whether the interval of an open claim leaves out the other answer: then only Holm's correction keeps it open.

    A rule that names a margin, which the table does not have, counts as held open by its interval.
    """
    rule = AS_RULE.get(own.rule, own.rule)
    if own.verdict != verdicts.UNDECIDED or not verdicts.STATEMENT.match(str(rule)):
        return False
    claim = verdicts.read(rule, math.nan, math.nan, tolerance=0.0, null=0.0)
    return claim.verdict(own.low, own.high) != verdicts.UNDECIDED


def findings() -> str:
    """The claims that hold and those that point the other way, in two sentences, one about the others, and one about the gates."""
    table = listed()
    said = {name: "; ".join(table.loc[table["verdict"].isin(BECAME[name]), "claim"]) or "none" for name in list(BECAME)[:2]}
    first = "\n\n".join(f"**Claims that {name}:** {own}." for name, own in said.items())
    found = gates.restored(record("gates"))
    unsafe = ": no verdict is safe" if gates.missed(found) else ""
    return f"{first}\n{others(table)} {missing(found, 'docs/glossary.md')}{unsafe}."


def others(table: pd.DataFrame) -> str:
    """What became of the other claims, and how many of them only Holm's correction keeps open."""
    left, unmeasured = (table[table["verdict"].isin(BECAME[name])] for name in list(BECAME)[2:])
    alone = sum(left_open_by_holm(own) for own in left.itertuples())
    through = f" ({alone} through Holm's correction alone)" if alone else ""
    said = [f"stay open{through}"] * bool(len(left)) + ["cannot be measured here"] * bool(len(unmeasured))
    return f"The others {' or '.join(said)}." if said else "There are no others."


def numbers() -> str:
    """The main numbers with intervals, beside the paper's."""
    rows = []
    for what, place, paper in NUMBERS:
        found = record(*place)
        rows.append([what.format(n=f"{found['n']:,}"), ranged(found), paper])
    return markdown(["what", "here", "paper"], *rows)


def classifiers() -> str:
    """The accuracy of every base classifier on pictures without a shift that no training has seen."""
    found = record("world", "classifier_accuracy")
    rows = [[f"`{name}`", ranged(own, 3), f"{own['n']:,}"] for name, own in sorted(found.items())]
    return markdown(["classifier", "accuracy without a shift", "n"], *rows)


def qualities() -> str:
    """The measured quality of the other base models."""
    found = {words: record("world", key) for key, words in QUALITIES.items()}
    return markdown(["what", "measured", "n"], *[[words, ranged(own, 3), f"{own['n']:,}"] for words, own in found.items()])


TABLES: dict[str, Callable[[], str]] = {
    "verdict": verdict,
    "claims": claims,
    "findings": findings,
    "numbers": numbers,
    "classifiers": classifiers,
    "qualities": qualities,
}


def record(step: str, *keys: str) -> dict[str, Any]:
    """What metrics/<step>.json holds under some keys; ValueError names the first that is missing."""
    found = json.loads((paths.ROOT / "metrics" / f"{step}.json").read_text())
    for key in keys:
        demand(key in found, f"metrics/{step}.json", key, ", ".join(found))
        found = found[key]
    return found


def ranged(found: dict[str, float], digits: int = 2) -> str:
    """An estimate with its interval."""
    estimate, low, high = (f"{round(found[key], digits) + 0.0:.{digits}f}" for key in ("estimate", "low", "high"))  # no -0.00
    return f"{estimate} ({low} to {high})"


def markdown(head: Sequence, *rows: Sequence) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def main(arguments: list[str]) -> int:
    """Command line: fills the pages and names those that changed; with --check it writes nothing and is 1 where one would change."""
    parser = argparse.ArgumentParser(prog="cns front", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page is behind the results")
    options = parser.parse_args(arguments)
    behind = {page: text for page in pages() if (text := filled(page.read_text())) != page.read_text()}
    for page, text in behind.items():
        if not options.check:
            page.write_text(text)
        print(f"{'behind' if options.check else 'filled'}: {page.relative_to(paths.ROOT)}", file=sys.stderr)
    return int(options.check and bool(behind))
