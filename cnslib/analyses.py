"""Parameters of the analyses: one frozen dataclass per section of params.yaml, its values checked when it is built."""

from dataclasses import dataclass

from cnslib.config import SHIFTS, Evaluation, demand

AXES = ("architecture", "convolution size", "transformer size", "pre-training")


@dataclass(frozen=True)
class Resampling:
    """Resamples of whole (class, seed) and the confidence of the intervals, for the steps that need nothing else."""

    resamples: int
    confidence: float
    seed: int


@dataclass(frozen=True)
class Accuracy:
    """Accuracy, CE and rCE: the reference classifier and the bootstrap."""

    reference: str
    resamples: int
    confidence: float
    seed: int


class Ranking(Resampling):
    """Ranks, ties and changes of order."""


@dataclass(frozen=True)
class Axes(Resampling):
    """The paper's axes: classifiers along each in order, the classifier of CE and rCE, and the difference that counts as none."""

    members: dict[str, list[str]]
    reference: str
    margin: float

    def __post_init__(self):
        demand(tuple(self.members) == AXES, "axes.members", list(self.members), f"the axes {', '.join(AXES)}, in this order")
        for axis, names in self.members.items():
            demand(len(names) > 1 and len(set(names)) == len(names), f"axes.members.{axis}", names, "two or more different classifiers")
        demand(self.margin > 0, "axes.margin", self.margin, "above 0")


class Failure(Resampling):
    """Failure points as survival data."""


@dataclass(frozen=True)
class Bisection(Resampling):
    """Continuous failure points: whose trajectories are bisected how finely, and how many are scanned in full."""

    shifts: list[str]
    classes: list[str]
    seeds: int
    classifiers: list[str]
    resolution: float
    scans: int
    scan_step: float

    def __post_init__(self):
        for shift in self.shifts:
            demand(shift in SHIFTS, "bisection.shifts", shift, ", ".join(SHIFTS))
        for key in ("shifts", "classes", "classifiers"):
            values = getattr(self, key)
            demand(bool(values) and len(set(values)) == len(values), f"bisection.{key}", values, "a list without repetitions")
        halvings = [0.5 / 2**k for k in range(1, 11)]
        demand(self.resolution in halvings, "bisection.resolution", self.resolution, "0.5 halved one to ten times")
        demand(self.scan_step in halvings, "bisection.scan_step", self.scan_step, "0.5 halved one to ten times")
        demand(self.seeds >= 1, "bisection.seeds", self.seeds, "at least 1")
        demand(self.scans >= 0, "bisection.scans", self.scans, "0 or more")


@dataclass(frozen=True)
class Line(Resampling):
    """Accuracy on the line: what ID accuracy is measured on, and which classifiers belong together."""

    id_accuracy: str
    families: dict[str, list[str]]
    sizes: list[str]
    pretrained: list[str]

    def __post_init__(self):
        demand(self.id_accuracy in ("catalog", "scale 0"), "line.id_accuracy", self.id_accuracy, "catalog, scale 0")
        members = [name for own in self.families.values() for name in own]
        demand(len(set(members)) == len(members), "line.families", members, "every classifier in at most one family")
        for key in ("sizes", "pretrained"):
            for name in getattr(self, key):
                demand(name in self.families, f"line.{key}", name, ", ".join(self.families))


@dataclass(frozen=True)
class Calibration(Resampling):
    """Severity calibration: the rendered scenes that check the rulers, and the equal perceived steps that are asked for."""

    scenes: int
    severities: int
    steps: int

    def __post_init__(self):
        for key in ("scenes", "severities", "steps"):
            demand(getattr(self, key) >= 2, f"calibration.{key}", getattr(self, key), "at least 2")


@dataclass(frozen=True)
class Published:
    """What follows from the published tables: confidence of the intervals, roundings that are tried, simulated latents."""

    confidence: float
    starts: int
    images: int
    seed: int

    def __post_init__(self):
        demand(0 < self.confidence < 1, "published.confidence", self.confidence, "between 0 and 1")
        demand(self.starts >= 10, "published.starts", self.starts, "at least 10")
        demand(self.images >= 2, "published.images", self.images, "at least 2")


@dataclass(frozen=True)
class Denoiser(Resampling):
    """Diffusion classifier: whose trajectories it judges at which scales, and its stages (classes kept, timesteps tried)."""

    shifts: list[str]
    seeds: int
    scales: list[float]
    keep: list[int]
    trials: list[int]

    def __post_init__(self):
        for shift in self.shifts:
            demand(shift in SHIFTS, "denoiser.shifts", shift, ", ".join(SHIFTS))
        for key in ("shifts", "scales"):
            values = getattr(self, key)
            demand(bool(values) and len(set(values)) == len(values), f"denoiser.{key}", values, "a list without repetitions")
        demand(self.scales == sorted(self.scales) and self.scales[0] == 0, "denoiser.scales", self.scales, "ascending from 0.0")
        demand(self.seeds >= 1, "denoiser.seeds", self.seeds, "at least 1")
        falling = self.keep[-1:] == [1] and self.keep == sorted(self.keep, reverse=True)
        demand(falling, "denoiser.keep", self.keep, "one number of classes per stage, falling to 1")
        rising = len(self.trials) == len(self.keep) and self.trials == sorted(set(self.trials)) and self.trials[0] >= 1
        demand(rising, "denoiser.trials", self.trials, "as many numbers of timesteps as denoiser.keep has, rising from 1 or more")


@dataclass(frozen=True)
class Oodcv(Resampling):
    """OOD-CV comparison: the generated grid, the rendered reference and its ladder of severities, and the classifiers' training."""

    shifts: list[str]
    scales: list[float]
    seeds: int
    start_fraction: float
    unknown: str
    reference_images: int
    ladder_images: int
    severities: int
    networks: dict[str, str]
    training_images: int
    validation_images: int
    epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    rotation: float
    zoom: float

    def __post_init__(self):
        for shift in self.shifts:
            demand(shift in SHIFTS, "oodcv.shifts", shift, ", ".join(SHIFTS))
        rising = self.scales == sorted(set(self.scales)) and len(self.scales) > 1 and self.scales[0] == 0
        demand(rising, "oodcv.scales", self.scales, "two or more, ascending from 0.0")
        demand("{name}" in self.unknown, "oodcv.unknown", self.unknown, "a text with {name} in the place of the class")
        demand(self.zoom >= 1, "oodcv.zoom", self.zoom, "at least 1")
        for key in ("seeds", "ladder_images", "severities", "training_images", "validation_images", "epochs", "patience"):
            demand(getattr(self, key) >= 1, f"oodcv.{key}", getattr(self, key), "at least 1")
        demand(self.reference_images >= 2, "oodcv.reference_images", self.reference_images, "at least 2")


@dataclass(frozen=True)
class Synthetic(Resampling):
    """Fine-tuning with generated images: the network, its training, runs per arm, and the style reference."""

    network: str
    share: float
    runs: int
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    style_images: int
    lowest: float

    def __post_init__(self):
        demand(0 < self.share < 1, "synthetic.share", self.share, "between 0 and 1")
        demand(0 <= self.lowest <= 1, "synthetic.lowest", self.lowest, "in [0, 1]")
        for key in ("runs", "steps", "batch_size", "style_images"):
            demand(getattr(self, key) >= 1, f"synthetic.{key}", getattr(self, key), "at least 1")


@dataclass(frozen=True)
class Report(Resampling):
    """A classifier of one's own: a network of timm behind a blur, what it is called and set beside, the classifier of CE and rCE."""

    model: str
    plain: str
    blur: float
    name: str
    batch_size: int
    reference: str

    def __post_init__(self):
        demand(self.blur > 0, "report.blur", self.blur, "above 0")
        demand(self.batch_size >= 1, "report.batch_size", self.batch_size, "at least 1")
        demand(self.name != self.plain, "report.name", self.name, f"another name than that of {self.plain!r}")


ANALYSES = (Accuracy, Ranking, Axes, Failure, Bisection, Line, Calibration, Published, Denoiser, Oodcv, Synthetic, Report)


def require_evaluated(axes: Axes, bisection: Bisection, evaluation: Evaluation) -> None:
    """Raises ValueError where an axis, its reference or the bisection names a classifier that the evaluation does not know."""
    wanted = [(f"axes.members.{axis}", name) for axis, names in axes.members.items() for name in names]
    wanted += [("axes.reference", axes.reference), *(("bisection.classifiers", name) for name in bisection.classifiers)]
    for key, name in wanted:
        demand(name in evaluation.classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluation.classifiers)}")
