"""Parameters of the analyses: one frozen dataclass per section of params.yaml, its values checked when it is built."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from cnslib.core.names import demand
from cnslib.core.settings.method import (
    STRICT,
    Count,
    Decay,
    Evaluation,
    FileName,
    Inside,
    Names,
    Number,
    Positive,
    Resampled,
    Scales,
    Seed,
    Severities,
    Share,
    Shifts,
    Some,
    Sources,
)

AXES = ("architecture", "convolution size", "transformer size", "pre-training")


def a_halving(value: float) -> float:
    """The same width; ValueError unless it is 0.5 halved one to ten times."""
    if value not in [0.5 / 2**k for k in range(1, 11)]:
        raise ValueError("0.5 halved one to ten times")
    return value


Halving = Annotated[Number, AfterValidator(a_halving)]


@dataclass(frozen=True, config=STRICT)
class Accuracy(Resampled):
    """Accuracy, CE and rCE: the reference classifier."""

    reference: str


@dataclass(frozen=True, config=STRICT)
class Ranking(Resampled):
    """Ranks, ties and changes of order."""


@dataclass(frozen=True, config=STRICT)
class Axes(Resampled):
    """The paper's axes: classifiers along each in order, the classifier of CE and rCE, and the difference that counts as none."""

    members: dict[str, Annotated[Names, Field(min_length=2)]]
    reference: str
    margin: Positive

    def __post_init__(self):
        demand(tuple(self.members) == AXES, "axes.members", list(self.members), f"the axes {', '.join(AXES)}, in this order")


@dataclass(frozen=True, config=STRICT)
class Failure(Resampled):
    """Failure points as survival data."""


@dataclass(frozen=True, config=STRICT)
class Bisection(Resampled):
    """Continuous failure points: whose trajectories are bisected how finely, and how many, drawn by lot, are scanned in full."""

    shifts: Shifts
    classes: Names
    seeds: Count
    classifiers: Names
    resolution: Halving
    scans: Annotated[int, Field(ge=0)]
    scan_step: Halving
    seed: Seed


@dataclass(frozen=True, config=STRICT)
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
        members = [name for own in self.families.values() for name in own]
        demand(len(set(members)) == len(members), "line.families", members, "every classifier in at most one family")
        for key in ("sizes", "pretrained"):
            for name in getattr(self, key):
                demand(name in self.families, f"line.{key}", name, ", ".join(self.families))


@dataclass(frozen=True, config=STRICT)
class Calibration(Resampled):
    """Severity calibration: the rendered scenes that check the rulers, and the equal perceived steps that are asked for."""

    scenes: Some
    severities: Some
    steps: Some
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Denoiser(Resampled):
    """Diffusion classifier: whose trajectories it judges at which scales, and its stages (classes kept, timesteps tried)."""

    shifts: Shifts
    seeds: Count
    scales: Scales
    keep: Annotated[list[Count], Field(min_length=1)]
    trials: Annotated[list[Count], Field(min_length=1)]
    seed: Seed

    def __post_init__(self):
        falling = self.keep[-1:] == [1] and self.keep == sorted(self.keep, reverse=True)
        demand(falling, "denoiser.keep", self.keep, "one number of classes per stage, falling to 1")
        rising = len(self.trials) == len(self.keep) and self.trials == sorted(set(self.trials))
        demand(rising, "denoiser.trials", self.trials, "as many numbers of timesteps as denoiser.keep has, rising from 1 or more")


def with_a_name(text: str) -> str:
    """The same text; ValueError unless it holds {name}."""
    if "{name}" not in text:
        raise ValueError("a text with {name} in the place of the class")
    return text


@dataclass(frozen=True, config=STRICT)
class Oodcv(Resampled):
    """OOD-CV comparison: the generated grid, the rendered reference and its ladder of severities, and the classifiers' training."""

    shifts: Shifts
    scales: Severities
    seeds: Count
    start_fraction: Annotated[Number, Field(gt=0, le=1)]
    unknown: Annotated[str, AfterValidator(with_a_name)]
    reference_images: Some
    ladder_images: Count
    severities: Count
    networks: Sources
    training_images: Count
    validation_images: Count
    epochs: Count
    patience: Count
    batch_size: Count
    learning_rate: Positive
    rotation: Annotated[Number, Field(ge=0, le=180)]
    zoom: Annotated[Number, Field(ge=1, le=10)]
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Synthetic(Resampled):
    """Fine-tuning with generated images: the network, its training, runs per arm, and the style reference."""

    network: str
    share: Inside
    runs: Count
    steps: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    style_images: Count
    lowest: Share
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Report(Resampled):
    """A classifier of one's own: a network of timm behind a blur, what it is called and set beside, the classifier of CE and rCE."""

    model: str
    plain: str
    blur: Positive
    name: FileName
    batch_size: Count
    reference: str

    def __post_init__(self):
        demand(self.name != self.plain, "report.name", self.name, f"another name than that of {self.plain!r}")


NotNegative = Annotated[Number, Field(ge=0)]


@dataclass(frozen=True, config=STRICT)
class Trouble:
    """What goes wrong on a cluster, in hours: between the failures of a worker on average, until a lost one is replaced, of a block,
    and until workers have loaded. `spread` is the standard deviation of a unit's hours over their mean."""

    between: Positive
    replacing: NotNegative
    walltime: Positive
    loading: NotNegative
    spread: NotNegative


@dataclass(frozen=True, config=STRICT)
class Plan(Trouble, Resampled):
    """The paper's run on a cluster: its overlay, hours of a device beside the reported ones, numbers of workers and of classes, what goes
    wrong, lengths of a block to compare, and simulated runs."""

    overlay: str
    measured: str
    workers: Annotated[list[Count], Field(min_length=1)]
    classes: Annotated[list[Count], Field(min_length=1)]
    walltimes: Annotated[list[Positive], Field(min_length=1)]
    runs: Annotated[int, Field(ge=2)]
    seed: Seed


ANALYSES = (Accuracy, Ranking, Axes, Failure, Bisection, Line, Calibration, Denoiser, Oodcv, Synthetic, Report, Plan)


def require_evaluated(axes: Axes, bisection: Bisection, evaluation: Evaluation) -> None:
    """Raises ValueError where an axis, its reference or the bisection names a classifier that the evaluation does not know."""
    wanted = [(f"axes.members.{axis}", name) for axis, names in axes.members.items() for name in names]
    wanted += [("axes.reference", axes.reference), *(("bisection.classifiers", name) for name in bisection.classifiers)]
    for key, name in wanted:
        demand(name in evaluation.classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluation.classifiers)}")
