"""Parameters of the studies beyond the main analyses: one frozen dataclass per section of params.yaml, checked when it is built."""

from dataclasses import dataclass

from cnslib.analyses import Resampling
from cnslib.config import SHIFTS, Filtering, demand

NETWORKS = ("DeepLabV3Plus", "FPN", "PSPNet")  # of XIMAGENET-12's Table 3; its reference first
SCHEDULERS = ("DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler")
SPACINGS = ("leading", "linspace", "trailing")  # those of diffusers; its DDIM takes equal strides, whatever the spacing


@dataclass(frozen=True)
class Photos(Resampling):
    """The photo set: ImageNet classifiers by name and source, the one of CE and rCE, how many cut-outs, at which severities."""

    classifiers: dict[str, str]
    reference: str
    cutouts: int
    severities: list[float]

    def __post_init__(self):
        demand(self.reference in self.classifiers, "photos.reference", self.reference, ", ".join(self.classifiers))
        demand(self.cutouts >= 2, "photos.cutouts", self.cutouts, "at least 2")
        rising = self.severities == sorted(set(self.severities)) and len(self.severities) > 1
        demand(rising and self.severities[0] == 0 and self.severities[-1] <= 1, "photos.severities", self.severities, "from 0.0 up to 1.0")


@dataclass(frozen=True)
class Labels(Filtering):
    """The labelled set: the shifts that people label, who decides what is easy, the annotators' files, and the user study."""

    pair: list[str]
    expert: str
    peers: list[str]
    clear: float
    files: list[str]
    study: int
    study_files: list[str]
    annotator: str

    def __post_init__(self):
        super().__post_init__()
        for shift in self.pair:
            demand(shift in SHIFTS, "labels.pair", shift, ", ".join(SHIFTS))
        demand(0 < self.clear < 1, "labels.clear", self.clear, "between 0 and 1")
        demand(self.study >= 1, "labels.study", self.study, "at least 1")
        for key in ("files", "study_files"):
            demand(len(getattr(self, key)) in (0, 2), f"labels.{key}", getattr(self, key), "none, or two VIA projects, one per annotator")


@dataclass(frozen=True)
class Corruptions(Resampling):
    """ImageNet-C's corruptions: pictures per class, and the parameter of each severity, mild to heavy."""

    images: int
    contrast: list[float]
    contrast_severities: list[float]
    noise: list[float]
    blur: list[float]
    jpeg: list[float]
    reference: str

    def __post_init__(self):
        demand(self.images >= 1, "corruptions.images", self.images, "at least 1")
        ordered = self.contrast_severities == sorted(set(self.contrast_severities)) and self.contrast_severities[0] > 0
        demand(ordered, "corruptions.contrast_severities", self.contrast_severities, "ascending, above 0")
        same = len(self.contrast) == len(self.contrast_severities)
        demand(same, "corruptions.contrast", self.contrast, f"one value for each of {len(self.contrast_severities)} severities")
        lengths = {len(self.noise), len(self.blur), len(self.jpeg)}
        demand(len(lengths) == 1, "corruptions.noise", self.noise, "as many values as blur and jpeg have")


@dataclass(frozen=True)
class Directions(Resampling):
    """Shifts by text: under which shifts, and how many seeds of each class, the baselines are drawn."""

    shifts: list[str]
    seeds: int

    def __post_init__(self):
        for shift in self.shifts:
            demand(shift in SHIFTS, "directions.shifts", shift, ", ".join(SHIFTS))
        demand(len(set(self.shifts)) == len(self.shifts) > 0, "directions.shifts", self.shifts, "a list without repetitions")
        demand(self.seeds >= 1, "directions.seeds", self.seeds, "at least 1")


@dataclass(frozen=True)
class Composition(Resampling):
    """Two sliders in one image: which pairs of shifts, at which weights of each, and how many seeds of each class."""

    pairs: list[list[str]]
    weights: list[float]
    seeds: int

    def __post_init__(self):
        for pair in self.pairs:
            demand(len(set(pair)) == len(pair) == 2, "composition.pairs", pair, "two different shifts")
            for shift in pair:
                demand(shift in SHIFTS, "composition.pairs", shift, ", ".join(SHIFTS))
        ordered = self.weights == sorted(set(self.weights)) and self.weights[0] == 0 and len(self.weights) > 1
        demand(ordered, "composition.weights", self.weights, "two or more of base.scales, ascending from 0.0")
        demand(self.seeds >= 1, "composition.seeds", self.seeds, "at least 1")


@dataclass(frozen=True)
class Ablation(Resampling):
    """Samplers (a diffusers scheduler and its steps each), what is drawn by all of them, and numbers of classes."""

    samplers: dict[str, dict]
    reference: str
    rce_reference: str
    shifts: list[str]
    seeds: int
    counts: list[int]

    def __post_init__(self):
        for name, one in self.samplers.items():
            key = f"ablation.samplers.{name}"
            demand(one.keys() == {"scheduler", "steps", "spacing"}, key, one, "the keys scheduler, steps and spacing")
            demand(one["scheduler"] in SCHEDULERS, f"{key}.scheduler", one["scheduler"], ", ".join(SCHEDULERS))
            demand(isinstance(one["steps"], int) and one["steps"] >= 2, f"{key}.steps", one["steps"], "at least 2")
            spacings = SPACINGS[:1] if one["scheduler"] == "DDIMScheduler" else SPACINGS
            demand(one["spacing"] in spacings, f"{key}.spacing", one["spacing"], ", ".join(spacings))
        demand(self.reference in self.samplers, "ablation.reference", self.reference, ", ".join(self.samplers))
        for shift in self.shifts:
            demand(shift in SHIFTS, "ablation.shifts", shift, ", ".join(SHIFTS))
        demand(self.seeds >= 1, "ablation.seeds", self.seeds, "at least 1")
        demand(self.counts == sorted(set(self.counts)), "ablation.counts", self.counts, "numbers of classes, ascending")


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


@dataclass(frozen=True)
class Controlshift(Resampling):
    """Data sets under shifts of latents: what each step sets the shifts to, step 0 being what is trained on, their sizes, the drawing.

    `factors` are those of a truncation, `angles` those of extend and overlap in degrees. Images are per class and set.
    """

    factors: list[float]
    angles: list[float]
    train_images: int
    validation_images: int
    test_images: int
    steps: int
    guidance: float
    side: int
    draws: int

    def __post_init__(self):
        rising = [values == sorted(set(values)) and len(values) > 1 for values in (self.factors, self.angles)]
        demand(rising[0] and self.factors[0] > 0, "controlshift.factors", self.factors, "two or more, rising, above 0")
        demand(rising[1] and self.angles[0] == 0 and self.angles[-1] <= 90, "controlshift.angles", self.angles, "rising from 0.0 to 90.0")
        demand(len(self.factors) == len(self.angles), "controlshift.factors", self.factors, f"{len(self.angles)}, as many as angles")
        for key in ("train_images", "validation_images", "test_images", "side", "draws"):
            demand(getattr(self, key) >= 1, f"controlshift.{key}", getattr(self, key), "at least 1")
        demand(self.steps >= 2, "controlshift.steps", self.steps, "at least 2")


@dataclass(frozen=True)
class Degradation(Resampling):
    """Classifiers of the shifted data sets: which, trained how, and how often where training sets are compared."""

    networks: list[str]
    runs: int
    steps: int
    batch_size: int
    learning_rate: float
    penalties: list[float]
    least: float
    reference: str
    rce_reference: str

    def __post_init__(self):
        demand(len(set(self.networks)) == len(self.networks) > 0, "degradation.networks", self.networks, "a list without repetitions")
        demand(self.reference in self.networks, "degradation.reference", self.reference, ", ".join(self.networks))
        demand(len(self.penalties) > 0 and min(self.penalties) > 0, "degradation.penalties", self.penalties, "one or more, above 0")
        demand(0 <= self.least < 1, "degradation.least", self.least, "in [0, 1)")
        for key in ("runs", "steps", "batch_size"):
            demand(getattr(self, key) >= 1, f"degradation.{key}", getattr(self, key), "at least 1")


@dataclass(frozen=True)
class Segmentation(Resampling):
    """Segmentation and saliency under scenarios: networks, their encoder and training, and what is asked at which severities."""

    networks: list[str]
    encoder: str
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    images: int
    severities: list[float]
    overlap: float
    photographs: int
    photo_classifiers: dict[str, str]

    def __post_init__(self):
        for name in self.networks:
            demand(name in NETWORKS, "segmentation.networks", name, ", ".join(NETWORKS))
        demand(
            self.networks[:1] == list(NETWORKS[:1]),
            "segmentation.networks",
            self.networks,
            f"{NETWORKS[0]} first: others are set beside it",
        )
        rising = self.severities == sorted(set(self.severities)) and len(self.severities) > 1
        full = rising and self.severities[0] == 0 and self.severities[-1] == 1
        demand(full, "segmentation.severities", self.severities, "ascending from 0.0 to 1.0")
        demand(0 < self.overlap < 1, "segmentation.overlap", self.overlap, "between 0 and 1")
        for key in ("steps", "batch_size", "images", "photographs"):
            demand(getattr(self, key) >= 1, f"segmentation.{key}", getattr(self, key), "at least 1")


STUDIES = (Photos, Labels, Corruptions, Directions, Composition, Ablation, Dataset, Controlshift, Degradation, Segmentation)
