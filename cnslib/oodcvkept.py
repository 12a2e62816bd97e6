"""Which generated images of the OOD-CV comparison the benchmark's filter keeps (CNS-Bench section 3.4)."""

from pathlib import Path

import pandas as pd

from cnslib import alignment, filtering, tables
from cnslib.config import Filtering


def filtered(seen: pd.DataFrame, alignments: Path, *, labels: int, settings: Filtering) -> pd.DataFrame:
    """The trajectories (shift, class, seed) that the benchmark's filter keeps whole; its thresholds are those of the filtering step.

    `alignments` is that step's folder of cosines, on whose labelled images the thresholds are set; the oracle knows `labels` classes.
    """
    files = sorted(alignments.glob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"{alignments} holds no table of alignments; the filtering step makes them")
    known = pd.concat([tables.read(path, alignment.schema) for path in files], ignore_index=True)
    known = known.assign(oracle_ooc=filtering.out_of_class(known["class_probability"], labels=labels))
    limits = filtering.thresholds(known[filtering.started_in_class(known)], settings.recall)
    verdict = filtering.keeps(filtering.rules(settings.passes)["ours"], seen, limits)
    return filtering.kept_trajectories(seen.assign(keep=filtering.whole(seen, verdict)))
