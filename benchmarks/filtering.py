"""Alignment scores of the filter: three passes with four embeddings against one. `python benchmarks/filtering.py [--device cuda]`."""

import argparse
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
import turns
from torch import nn

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.method import filtering
from cnslib.models import encoders

SHIFT, SEEDS = "heavy snow", 3
DETECTORS = list(filtering.DETECTORS)
PROMPTS = (filtering.CLASS_PROMPT, filtering.SHIFT_PROMPT, "a picture in {shift}")  # the last one takes no part in the filter


class Scoring:
    """The four alignments of some pictures by either procedure."""

    def __init__(self, device: str):
        """Loads both encoders and reads one shift's pictures and the unshifted ones."""
        base = read.load(paths.resolve("params.yaml"))["base"]
        folder = paths.Layout(base.out).artifacts("generation")
        self.clip, self.image_encoder = encoders.Clip(base.clip, device=device), encoders.ImageEncoder(base.image_encoder, device=device)
        self.tables = [tables.read(folder / f"{identifier(name)}.parquet", tables.images) for name in (UNSHIFTED, SHIFT)]
        self.tables = [table[table["seed"] <= SEEDS].reset_index(drop=True) for table in self.tables]
        self.groups = list(tables.trajectories(pd.concat(self.tables), [SHIFT]).sort_values(tables.KEY).groupby("class"))

    def reference(self) -> np.ndarray:
        """As the released code: a pass per kind of score, a batch per class, each picture decoded twice in each pass."""
        passes = [self.by_text, self.by_reference(self.clip.image_features), self.by_reference(self.image_encoder.features)]
        return np.concatenate([np.concatenate([scored(name, rows) for name, rows in self.groups]) for scored in passes], axis=1)

    def by_text(self, name: str, rows: pd.DataFrame) -> np.ndarray:
        """Cosines with each prompt: every picture embedded once per prompt, and every prompt once per picture."""
        seen, found = self.decoded(rows), []
        for prompt in PROMPTS:
            tokens = self.clip.tokenizer([prompt.format(name=name, shift=SHIFT)] * len(seen))
            with torch.no_grad():
                text = self.clip.model.encode_text(tokens.to(self.clip.device)).cpu()
            found.append(nn.functional.cosine_similarity(self.clip.image_features(seen), text).numpy())
        return np.stack(found[:2], axis=1)

    def by_reference(self, features: Callable[[np.ndarray], torch.Tensor]) -> Callable[[str, pd.DataFrame], np.ndarray]:
        """Cosines with the first picture of the same trajectory."""

        def scored(name: str, rows: pd.DataFrame) -> np.ndarray:
            embedded = features(self.decoded(rows)).unflatten(0, (rows["seed"].nunique(), -1))
            return nn.functional.cosine_similarity(embedded, embedded[:, :1], dim=2).reshape(-1, 1).numpy()

        return scored

    def decoded(self, rows: pd.DataFrame) -> np.ndarray:
        """The pictures of a class, of which the first decoding is thrown away."""
        return [tables.pictures(rows, SHIFT) for _ in range(2)][1]

    def ours(self) -> np.ndarray:
        """As the filtering step measures, without the oracle, which the released code does not have."""
        views = [self.viewed(table) for table in self.tables]
        measured = filtering.measure(SHIFT, views[1], views[0], self.clip)
        return measured.sort_values(tables.KEY)[DETECTORS].to_numpy()

    def viewed(self, table: pd.DataFrame) -> filtering.Views:
        """Every picture decoded and embedded once by each encoder."""
        seen = tables.pictures(table, SHIFT)
        features = self.clip.image_features(seen), self.image_encoder.features(seen)
        return filtering.Views(table.drop(columns="image"), *features, np.ones(len(table)))


def main() -> int:
    """The measured ratio; results are apart by the largest difference of two cosines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    scoring = Scoring(parser.parse_args().device)
    images = sum(map(len, scoring.tables))
    contest = turns.Contest("filter scores", scoring.reference, scoring.ours, lambda a, b: np.abs(a - b).max(), 1e-5)
    return turns.report(contest, notes=f"{images} pictures; ours rounds to six digits")


if __name__ == "__main__":
    sys.exit(main())
