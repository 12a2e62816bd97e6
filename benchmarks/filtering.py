"""Alignment scores of the filter: three passes that embed an image four times against one. `python benchmarks/filtering.py`."""

import sys

import numpy as np
import pandas as pd
import turns
from torch import nn

from cnslib import alignment, encoders, parameters, paths, tables
from cnslib.config import UNSHIFTED, identifier

SHIFT, SEEDS = "heavy snow", 3
DETECTORS = list(alignment.DETECTORS)
PROMPTS = (alignment.CLASS_PROMPT, alignment.SHIFT_PROMPT, "a picture in {shift}")  # the last one takes no part in the filter


class Scoring:
    """The four alignments of some pictures by either procedure."""

    def __init__(self):
        """Loads both encoders and reads one shift's pictures and the unshifted ones."""
        base = parameters.load(paths.resolve("params.yaml"))["base"]
        folder = paths.Layout(base.out).artifacts("generation")
        self.clip, self.image_encoder = encoders.Clip(base.clip), encoders.ImageEncoder(base.image_encoder)
        self.tables = [tables.read(folder / f"{identifier(name)}.parquet", tables.images) for name in (UNSHIFTED, SHIFT)]
        self.tables = [table[table["seed"] <= SEEDS].reset_index(drop=True) for table in self.tables]
        self.groups = list(tables.trajectories(pd.concat(self.tables), [SHIFT]).sort_values(tables.KEY).groupby(tables.TRAJECTORY))

    def reference(self) -> np.ndarray:
        """As the released code: a pass per kind of score, a batch per trajectory, each picture decoded twice in each.

        The first pass embeds every picture once per prompt, and every prompt once per picture.
        """
        found = []
        for (_, name, _), rows in self.groups:
            texts = [prompt.format(name=name, shift=SHIFT) for prompt in PROMPTS]
            seen, _ = self.decoded(rows), self.decoded(rows)
            by_prompt = [np.concatenate([self.aligned(picture, text) for picture in seen]) for text in texts]
            found.append(by_prompt[:2])
        for features in (self.clip.image_features, self.image_encoder.features):
            for place, (_, rows) in enumerate(self.groups):
                seen, _ = self.decoded(rows), self.decoded(rows)
                embedded = features(seen)
                found[place].append(nn.functional.cosine_similarity(embedded, embedded[:1]).numpy())
        return np.concatenate([np.stack(own, axis=1) for own in found])

    def decoded(self, rows: pd.DataFrame) -> np.ndarray:
        """The pictures of a trajectory."""
        return tables.pictures(rows, SHIFT)

    def aligned(self, picture: np.ndarray, text: str) -> np.ndarray:
        """Cosine of one picture and one text, both embedded for it."""
        return (self.clip.image_features(picture[None]) * self.clip.text_features([text])).sum(1).numpy()

    def ours(self) -> np.ndarray:
        """As the filtering step measures, without the oracle, which the released code does not have."""
        views = [self.viewed(table) for table in self.tables]
        measured = alignment.measure(SHIFT, views[1], views[0], self.clip)
        return measured.sort_values(tables.KEY)[DETECTORS].to_numpy()

    def viewed(self, table: pd.DataFrame) -> alignment.Views:
        """Every picture decoded and embedded once by each encoder."""
        seen = tables.pictures(table, SHIFT)
        features = self.clip.image_features(seen), self.image_encoder.features(seen)
        return alignment.Views(table.drop(columns="image"), *features, np.ones(len(table)))


def main() -> int:
    """The measured ratio; results are apart by the largest difference of two cosines."""
    scoring = Scoring()
    images = sum(map(len, scoring.tables))
    contest = turns.Contest("filter scores", scoring.reference, scoring.ours, lambda a, b: np.abs(a - b).max(), 1e-5)
    return turns.report(contest, notes=f"{images} pictures; ours rounds to six digits")


if __name__ == "__main__":
    sys.exit(main())
