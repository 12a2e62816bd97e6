"""Parameters of the studies: one frozen dataclass per section of params.yaml, its values checked when it is built.

A study is a chapter beyond the main analyses: CNS-Bench's own further experiments, and those of its sibling papers.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic.dataclasses import dataclass

from cnslib.core.names import demand
from cnslib.core.settings.method import (
    STRICT,
    STRIDES,
    Count,
    Decay,
    FileName,
    Filtering,
    Guidance,
    Inside,
    Names,
    Number,
    Positive,
    Resampled,
    Rising,
    Seed,
    Severities,
    Shift,
    Shifts,
    Some,
    Sources,
    Steps,
    Text,
    distinct,
    distinct_files,
    file_name,
    mapped,
    rising,
)


def to_one(values: list[Number]) -> list[Number]:
    """The same list; ValueError unless it ends with 1."""
    if values[-1] != 1:
        raise ValueError("ascending from 0.0 to 1.0")
    return values


Whole = Annotated[Severities, AfterValidator(to_one)]  # every severity there is, from none to all


@dataclass(frozen=True, config=STRICT)
class Scenarios(Resampled):
    """XIMAGENET-12: who answers about photographs and garments, how many, at which severities; the drawing; the trainings of EX2."""

    classifiers: Sources
    cutouts: Some
    backbones: Sources
    images: Count
    severities: Whole
    photo_severities: Whole
    drawing_steps: Steps
    guidance: Guidance
    training_images: Count
    steps: Count
    checks: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    seed: Seed


CHAPTERS = (Scenarios,)

NETWORKS = ("DeepLabV3Plus", "FPN", "PSPNet")  # of XIMAGENET-12's Table 3; its reference first


def none_or_two(files: list[str]) -> list[str]:
    """The same list; ValueError unless it is empty or names two files."""
    if len(files) not in (0, 2):
        raise ValueError("none, or two VIA projects, one per annotator")
    return files


def nobody_or_file_name(name: str) -> str:
    """The same name: empty, or one that can be a part of a file's name."""
    return name and file_name(name)


def reference_first(names: list[str]) -> list[str]:
    """The same list; ValueError unless all are NETWORKS and the first is the one that others are set beside."""
    if not set(names) <= set(NETWORKS):
        raise ValueError(", ".join(NETWORKS))
    if names[0] != NETWORKS[0]:
        raise ValueError(f"{NETWORKS[0]} first: others are set beside it")
    return names


Fraction = Annotated[Number, Field(gt=0, le=1)]
Pair = Annotated[list[Shift], Field(min_length=2, max_length=2), AfterValidator(distinct)]
Projects = Annotated[list[str], AfterValidator(none_or_two)]
Annotator = Annotated[str, AfterValidator(nobody_or_file_name)]  # whose name opens a contact sheet


@dataclass(frozen=True, config=STRICT)
class Photos(Resampled):
    """The photo set: ImageNet classifiers by name and source, the one of CE and rCE, how many cut-outs, at which severities."""

    classifiers: Sources
    reference: str
    cutouts: Some
    severities: Severities
    seed: Seed

    def __post_init__(self):
        demand(self.reference in self.classifiers, "photos.reference", self.reference, ", ".join(self.classifiers))
        demand(self.severities[-1] <= 1, "photos.severities", self.severities, "from 0.0 up to 1.0")


@dataclass(frozen=True, config=STRICT)
class Labels(Filtering):
    """The labelled set: the shifts that people label, who decides what is easy, the annotators' files; and the filter held against it."""

    pair: list[Shift]
    expert: str
    peers: list[str]
    clear: Inside
    files: Projects
    study: Count
    study_files: Projects
    annotator: Annotator
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Corruptions(Resampled):
    """ImageNet-C's corruptions: pictures per class, the side whose parameters they take, levels of contrast between ImageNet-C's five.

    `cutouts` of the photo set are corrupted, too, with the parameters of 224 px.
    """

    images: Count
    side: Literal[64, 224]
    contrast: list[Fraction]
    contrast_severities: Annotated[list[Positive], AfterValidator(rising)]
    cutouts: Some
    reference: str

    def __post_init__(self):
        same = len(self.contrast) == len(self.contrast_severities)
        demand(same, "corruptions.contrast", self.contrast, f"one value for each of {len(self.contrast_severities)} severities")


@dataclass(frozen=True, config=STRICT)
class Directions(Resampled):
    """Shifts by text, under which shifts, at which further scales and of how many seeds of each class; then two sliders in one image.

    `pairs` are the shifts that meet, `pair_weights` the weights of each slider, `pair_seeds` the seeds of each class.
    """

    shifts: Shifts
    finer: Annotated[list[Positive], Field(min_length=1), AfterValidator(rising)]
    seeds: Count
    pairs: list[Pair]
    pair_weights: Severities
    pair_seeds: Count


@dataclass(frozen=True, config=STRICT)
class Scheduling:
    """One sampler: a scheduler of diffusers, its steps and their spacing. Its DDIM takes equal strides, whatever the spacing."""

    scheduler: Literal["DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler"]
    steps: Annotated[int, Field(ge=2, le=1000)]
    spacing: Literal["leading", "linspace", "trailing"]

    def __post_init__(self):
        strides = self.scheduler != "DDIMScheduler" or self.spacing in STRIDES
        demand(strides, "ablation.samplers: spacing of a DDIMScheduler", self.spacing, " or ".join(STRIDES))


@dataclass(frozen=True, config=STRICT)
class Ablation(Resampled):
    """Samplers, what is drawn by all of them, and numbers of classes."""

    samplers: Annotated[dict[FileName, Annotated[Scheduling, mapped(Scheduling)]], Field(min_length=1), AfterValidator(distinct_files)]
    reference: str
    rce_reference: str
    shifts: Shifts
    seeds: Count
    counts: Annotated[list[Count], Field(min_length=1), AfterValidator(rising)]

    def __post_init__(self):
        demand(self.reference in self.samplers, "ablation.reference", self.reference, ", ".join(self.samplers))


@dataclass(frozen=True, config=STRICT)
class Dataset:
    """What the tables of the benchmark cannot tell about it: the required entries of Croissant (`cns export`)."""

    name: Text
    description: Text
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
    url: Annotated[str, StringConstraints(pattern="^https?://")]
    license: Annotated[list[str], Field(min_length=1)]
    creator: Text
    date_published: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    cite_as: Text
    keywords: list[str]


@dataclass(frozen=True, config=STRICT)
class Controlshift(Resampled):
    """Shifts of latents: what each step sets them to, step 0 being what is trained on; sizes and drawing of the data sets; trainings.

    `factors` are those of a truncation, `angles` those of extend and overlap in degrees. Images are per class and set. `reference` is
    the network whose training sets are compared, `least` the accuracy at step 0 from which on a classifier takes part.
    """

    factors: Rising
    angles: Annotated[list[Annotated[Number, Field(ge=0, le=90)]], Field(min_length=2), AfterValidator(rising)]
    train_images: Count
    validation_images: Count
    test_images: Count
    drawing_steps: Annotated[int, Field(ge=2, le=1000)]
    guidance: Guidance
    side: Count
    draws: Count
    seed: Seed
    networks: Names
    reference: str
    runs: Count
    training_steps: Count
    batch_size: Count
    learning_rate: Positive
    penalties: Annotated[list[Positive], Field(min_length=1)]
    training_seed: Seed
    least: Annotated[Number, Field(ge=0, lt=1)]
    rce_reference: str

    def __post_init__(self):
        demand(self.factors[0] > 0, "controlshift.factors", self.factors, "above 0")
        demand(self.angles[0] == 0, "controlshift.angles", self.angles, "rising from 0.0 to 90.0")
        demand(len(self.factors) == len(self.angles), "controlshift.factors", self.factors, f"{len(self.angles)}, as many as angles")
        demand(self.reference in self.networks, "controlshift.reference", self.reference, ", ".join(self.networks))


@dataclass(frozen=True, config=STRICT)
class Segmentation(Resampled):
    """Segmentation and saliency under scenarios: networks, their encoder and trainings, and what is asked at which severities.

    `runs` are the trainings of every network: two at least, since a single one cannot tell how much another would differ.
    """

    networks: Annotated[Names, AfterValidator(reference_first)]
    encoder: str
    runs: Some
    steps: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    images: Count
    severities: Whole
    overlap: Inside
    photographs: Count
    photo_classifiers: Sources
    seed: Seed


STUDIES = (Photos, Labels, Corruptions, Directions, Ablation, Dataset, Controlshift, Segmentation)
