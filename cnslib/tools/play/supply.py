"""Pictures and answers on demand: the benchmark's own where it has them, else drawn by the image model with the slider, and kept.

At a scale of the benchmark the picture is the stored one, byte for byte. Between them it is drawn as notebook 10 draws: from the
same seed, alone in its pass. So a picture depends on its key alone, and not on who looked at what before.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core import paths, sources, tables
from cnslib.core.settings.read import Run
from cnslib.method import drawing, evaluation
from cnslib.models import encoders, text_to_image
from cnslib.models.classifiers import Classifier
from cnslib.plots import sheets
from cnslib.studies.bisection.closeups import Closeup, Studio
from cnslib.tools.play.state import Look

Picture = UInt8[np.ndarray, "height width 3"]
KEPT = Path("build") / "play"  # below the run's folder; not in git


@dataclass(frozen=True)
class Supply:
    """The pictures and answers of one run. Models are loaded when they are first needed, and stay."""

    run: Run

    @cached_property
    def studio(self) -> Studio:
        """What pictures are drawn from, and where they are kept."""
        base, layout = sources.provide(self.run.base, ["pipeline"]), self.run.layout
        directory, tokens, way = paths.resolve(base.pipeline), layout.artifacts("inversion"), drawing.chosen(base.drawing)
        pipe = text_to_image.load_pipeline(directory, base.device)
        text_to_image.load_tokens(pipe, tokens, base.classes)
        sampler = way.single(pipe, settings=way.settings(self.run.generation))
        origin = text_to_image.origin(directory, tokens, base.classes)
        return Studio(sampler, origin, layout.artifacts("sliders"), [], layout.root / KEPT)

    @cached_property
    def trajectories(self) -> dict[tuple[str, str, int], dict[float, Picture]]:
        """The pictures of every trajectory that was looked at, by scale, as far as they are here."""
        return {}

    @cached_property
    def judges(self) -> dict[str, Classifier]:
        """The classifiers that were asked so far."""
        return {}

    def at_hand(self, shift: str, name: str, seed: int) -> dict[float, Picture]:
        """The pictures of a trajectory that need not be drawn, by scale: the benchmark's, and those of earlier looks."""
        key = shift, name, seed
        if key not in self.trajectories:
            row = pd.DataFrame([key], columns=tables.TRAJECTORY)
            stored = sheets.pictures(self.run.layout.artifacts("generation"), row, self.run.base.scales)
            self.trajectories[key] = {} if stored is None else dict(zip(map(float, self.run.base.scales), stored[0], strict=True))
        return self.trajectories[key]

    def picture(self, look: Look) -> Picture:
        """The picture of a look, drawn where it is not at hand. Errors name a value that the benchmark lacks, and a missing slider."""
        look.require(self.run.base)
        known = self.at_hand(look.shift, look.name, look.seed)
        if look.scale not in known:
            shot = Closeup(self.studio, look.shift, look.name, look.seed)
            shot.draw([look.scale])
            drawn = zip(shot.pictures["scale"], tables.pictures(shot.pictures, shot.picture_path.name), strict=True)
            known |= {scale: picture for scale, picture in drawn if scale not in known}
        return known[look.scale]

    def answers(self, look: Look, names: Sequence[str]) -> pd.DataFrame:
        """What some classifiers say to the picture of a look, as `answered`."""
        base, asked = self.run.base, self.run.evaluation
        missing = [name for name in names if name not in self.judges]
        if missing:
            labels = encoders.read_labels(base.labels)
            found = evaluation.loaded(missing, labels, settings=asked, device=base.device)
            self.judges.update(zip(missing, found, strict=True))
        return answered([self.judges[name] for name in names], self.picture(look), look.name)


def answered(group: Sequence[Classifier], picture: Picture, name: str) -> pd.DataFrame:
    """What classifiers say to one picture of class `name`, a row each: model, answer, confidence, true_probability, right.

    `confidence` is the probability of the answer, `true_probability` that of the class. Each is asked about the picture alone.
    """
    rows = []
    for one in group:
        shares = evaluation.batch_logits(one, [picture], size=1)[0].double().softmax(0).numpy()
        best, true = int(shares.argmax()), one.labels.index(name)
        rows.append((one.name, one.labels[best], float(shares[best]), float(shares[true]), best == true))
    return pd.DataFrame(rows, columns=["model", "answer", "confidence", "true_probability", "right"])


def nearest(known: Collection[float], scale: float) -> float | None:
    """The scale nearest to one, of those at hand; of two equally near ones the lower. None where there is none."""
    return min(sorted(known), key=lambda other: round(abs(other - scale), 6), default=None)
