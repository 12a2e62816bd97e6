"""Parameters of the analyses: one section per section of params.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from cnslib.core.names import demand
from cnslib.core.settings import fields as f
from cnslib.core.settings.method import Evaluation, Resampled

AXES = ("architecture", "convolution size", "transformer size", "pre-training")
Halving = Annotated[f.Number, f.rule(lambda value: value in [0.5 / 2**k for k in range(1, 11)], "0.5 halved one to ten times")]
WithName = Annotated[str, f.rule(lambda text: "{name}" in text, "a text with {name} in the place of the class")]


class Accuracy(Resampled):
    """Accuracy, CE and rCE: the reference classifier."""

    reference: str


class Ranking(Resampled):
    """Ranks, ties and changes of order."""


class Axes(Resampled):
    """The paper's axes: classifiers along each in order, the classifier of CE and rCE, and the difference that counts as none."""

    members: dict[str, Annotated[f.Names, Field(min_length=2)]]
    reference: str
    margin: f.Positive

    def __post_init__(self):
        demand(tuple(self.members) == AXES, "axes.members", list(self.members), f"the axes {', '.join(AXES)}, in this order")


class Failure(Resampled):
    """Failure points as survival data."""


class Bisection(Resampled, f.Seeded):
    """Continuous failure points: whose trajectories are bisected how finely, and how many, drawn by lot, are scanned in full."""

    shifts: f.Shifts
    classes: f.Names
    seeds: f.Count
    classifiers: f.Names
    resolution: Halving
    scans: f.Whole
    scan_step: Halving


class Line(Resampled):
    """Accuracy on the line: what ID accuracy is measured on, which classifiers belong together, and which knew the benchmark's makers.

    `same_pool` learned from the pictures that taught the generator or the filter's encoder: they are no independent witnesses.
    """

    id_accuracy: Literal["catalog", "scale 0"]
    families: dict[str, list[str]]
    sizes: list[str]
    pretrained: list[str]
    same_pool: list[str]

    def __post_init__(self):
        members = [name for family in self.families.values() for name in family]
        demand(len(set(members)) == len(members), "line.families", members, "every classifier in at most one family")
        for key in ("sizes", "pretrained"):
            for name in getattr(self, key):
                demand(name in self.families, f"line.{key}", name, ", ".join(self.families))


class Calibration(Resampled, f.Seeded):
    """Severity calibration: the rendered scenes that check the measures."""

    scenes: f.Some
    severities: f.Some


class Denoiser(Resampled, f.Seeded):
    """Diffusion classifier: whose trajectories it judges at which scales, and its stages (classes kept, timesteps tried)."""

    shifts: f.Shifts
    seeds: f.Count
    scales: f.Scales
    keep: f.Counts
    trials: f.Counts

    def __post_init__(self):
        falling = self.keep[-1:] == [1] and self.keep == sorted(self.keep, reverse=True)
        demand(falling, "denoiser.keep", self.keep, "one number of classes per stage, falling to 1")
        rising = len(self.trials) == len(self.keep) and self.trials == sorted(set(self.trials))
        demand(rising, "denoiser.trials", self.trials, "as many numbers of timesteps as denoiser.keep has, rising from 1 or more")


class Oodcv(Resampled, f.Seeded):
    """OOD-CV comparison: the generated grid, the rendered reference and its ladder of severities, and the classifiers' training."""

    shifts: f.Shifts
    scales: f.Severities
    seeds: f.Count
    start_fraction: f.Part
    unknown: WithName
    reference_images: f.Some
    ladder_images: f.Count
    severities: f.Count
    networks: f.Sources
    training_images: f.Count
    validation_images: f.Count
    epochs: f.Count
    patience: f.Count
    batch_size: f.Count
    learning_rate: f.Positive
    rotation: Annotated[f.Number, Field(ge=0, le=180)]
    zoom: Annotated[f.Number, Field(ge=1, le=10)]


class Synthetic(Resampled, f.Learning):
    """Fine-tuning with generated images: the network, its training, runs per arm, and the style reference."""

    network: str
    share: f.Inside
    runs: f.Count
    steps: f.Count
    style_images: f.Count
    lowest: f.Share


class Report(Resampled):
    """A classifier of one's own: a network of timm behind a blur, what it is called and set beside, the classifier of CE and rCE."""

    model: str
    plain: str
    blur: f.Positive
    name: f.FileName
    batch_size: f.Count
    reference: str

    def __post_init__(self):
        demand(self.name != self.plain, "report.name", self.name, f"another name than that of {self.plain!r}")


ANALYSES = (Accuracy, Ranking, Axes, Failure, Bisection, Line, Calibration, Denoiser, Oodcv, Synthetic, Report)


def require_evaluated(axes: Axes, bisection: Bisection, evaluation: Evaluation) -> None:
    """Raises ValueError where an axis, its reference or the bisection names a classifier that the evaluation does not know."""
    wanted = [(f"axes.members.{axis}", name) for axis, names in axes.members.items() for name in names]
    wanted += [("axes.reference", axes.reference), *(("bisection.classifiers", name) for name in bisection.classifiers)]
    for key, name in wanted:
        demand(name in evaluation.classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluation.classifiers)}")
