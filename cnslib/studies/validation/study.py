"""The user study of what the filter leaves (CNS-Bench section J): which pictures are asked about, and what is still out of class."""

import numpy as np
import pandas as pd

from cnslib.core import paths, tables
from cnslib.stats import bootstrap
from cnslib.studies.labels.staging import OUT


def sample(rows: pd.DataFrame, size: int, seed: int) -> pd.DataFrame:
    """A seeded sample in which every (shift, scale) has its proportional place, up to one image (section J).

    Rows are put in random order within their stratum, and every N/n-th is taken from a random start. All rows where there are no more.
    """
    rng = np.random.default_rng(seed)
    shuffled = rows.sort_values(tables.KEY).iloc[rng.permutation(len(rows))].sort_values(["shift", "scale"], kind="stable")
    count = min(size, len(rows))
    places = ((np.arange(count) + rng.uniform()) * len(rows) / max(count, 1)).astype(int)
    return shuffled.iloc[places].sort_values(tables.KEY)


def shares(kinds: pd.Series, asked: pd.DataFrame, benchmark: pd.DataFrame, *, who: str, chance: float, confidence: float) -> pd.DataFrame:
    """The share of out-of-class images in the user study with Wilson intervals, beside the paper's and what the oracle says by itself.

    `benchmark` holds all images that `asked` was drawn from: its share is counted, so its interval is the share itself.
    """
    text = pd.read_csv(paths.PUBLISHED / "cns_text.csv").set_index("id")["value"]
    paper = np.arange(int(text["user_study_images"])) < int(text["user_study_ooc"])
    once = [(table["class_probability"] < chance).to_numpy() for table in (asked, benchmark)]
    cases = {"paper (people)": paper, f"sample ({who})": (kinds == OUT).to_numpy(), "sample (oracle, once)": once[0]}
    rows = {what: bootstrap.independent_share(case, confidence=confidence) for what, case in cases.items()}
    share = float(once[1].mean())
    rows["whole benchmark (oracle, once)"] = {"n": len(benchmark), "estimate": share, "low": share, "high": share}
    return pd.DataFrame([{"what": what, **row} for what, row in rows.items()])
