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
class Dataset(Resampling):
    """What the tables of the benchmark cannot tell about it: all required entries of Croissant and the licence of every other part."""

    name: str
    description: str
    version: str
    url: str
    license: list[str]
    creator: str
    date_published: str
    cite_as: str
    keywords: list[str]
    parts: dict[str, str]

    def __post_init__(self):
        for key in ("name", "description", "creator", "cite_as", "license"):
            demand(bool(getattr(self, key)), f"dataset.{key}", getattr(self, key), "something")
        demand(self.url.startswith(("http://", "https://")), "dataset.url", self.url, "a web address")
        numbers = self.version.split(".")
        demand(len(numbers) == 3 and all(n.isdecimal() for n in numbers), "dataset.version", self.version, "MAJOR.MINOR.PATCH")
        days = [len(part) for part in self.date_published.split("-") if part.isdecimal()]
        demand(days == [4, 2, 2], "dataset.date_published", self.date_published, "YYYY-MM-DD")


ANALYSES = (Accuracy, Ranking, Axes, Failure, Bisection, Line, Calibration, Published, Dataset)


def require_evaluated(axes: Axes, bisection: Bisection, evaluation: Evaluation) -> None:
    """Raises ValueError where an axis, its reference or the bisection names a classifier that the evaluation does not know."""
    wanted = [(f"axes.members.{axis}", name) for axis, names in axes.members.items() for name in names]
    wanted += [("axes.reference", axes.reference), *(("bisection.classifiers", name) for name in bisection.classifiers)]
    for key, name in wanted:
        demand(name in evaluation.classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluation.classifiers)}")
