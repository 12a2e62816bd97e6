"""Parameters of the studies, chapters beyond the main analyses: one section per section of params.yaml."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from cnslib.core.names import demand
from cnslib.core.settings import fields as f
from cnslib.core.settings.method import STRIDES, Filtering, Resampled

NETWORKS = ("DeepLabV3Plus", "FPN", "PSPNet")  # of XIMAGENET-12's Table 3; its reference first
Pair = Annotated[list[f.Shift], Field(min_length=2, max_length=2), f.DISTINCT]
Projects = Annotated[list[str], f.rule(lambda files: len(files) in (0, 2), "none, or two VIA projects, one per annotator")]
Annotator = Annotated[str, f.rule(lambda name: not name or f.is_file_name(name), f.NAMED)]  # whose name opens a contact sheet
Networks = Annotated[
    f.Names,
    f.rule(lambda names: set(names) <= set(NETWORKS), ", ".join(NETWORKS)),
    f.rule(lambda names: names[0] == NETWORKS[0], f"{NETWORKS[0]} first: others are set beside it"),
]


class Scenarios(Resampled, f.Learning):
    """XIMAGENET-12: who answers about photographs and garments, how many, at which severities; the drawing; the trainings of EX2."""

    classifiers: f.Sources
    cutouts: f.Some
    backbones: f.Sources
    images: f.Count
    severities: f.AllSeverities
    photo_severities: f.AllSeverities
    drawing_steps: f.Steps
    guidance: f.Guidance
    training_images: f.Count
    steps: f.Count
    checks: f.Count


class Photos(Resampled, f.Seeded):
    """The photo set: ImageNet classifiers by name and source, the one of CE and rCE, how many cut-outs, at which severities."""

    classifiers: f.Sources
    reference: str
    cutouts: f.Some
    severities: f.Severities

    def __post_init__(self):
        demand(self.reference in self.classifiers, "photos.reference", self.reference, ", ".join(self.classifiers))
        demand(self.severities[-1] <= 1, "photos.severities", self.severities, "from 0.0 up to 1.0")


class Labels(Filtering, f.Seeded):
    """The labelled set: the shifts that people label, who decides what is easy, the annotators' files; and the filter held against it."""

    pair: list[f.Shift]
    expert: str
    peers: list[str]
    clear: f.Inside
    files: Projects
    study: f.Count
    study_files: Projects
    annotator: Annotator


class Corruptions(Resampled):
    """ImageNet-C's corruptions: pictures per class, the side whose parameters they take, levels of contrast between ImageNet-C's five.

    `cutouts` of the photo set are corrupted, too, with the parameters of 224 px.
    """

    images: f.Count
    side: Literal[64, 224]
    contrast: list[f.Part]
    contrast_severities: f.RisingPositive
    cutouts: f.Some
    reference: str

    def __post_init__(self):
        same = len(self.contrast) == len(self.contrast_severities)
        demand(same, "corruptions.contrast", self.contrast, f"one value for each of {len(self.contrast_severities)} severities")


class Directions(Resampled):
    """Shifts by text, under which shifts, at which further scales and of how many seeds of each class; then two sliders in one image.

    `pairs` are the shifts that meet, `pair_weights` the weights of each slider, `pair_seeds` the seeds of each class.
    """

    shifts: f.Shifts
    finer: Annotated[f.RisingPositive, Field(min_length=1)]
    seeds: f.Count
    pairs: list[Pair]
    pair_weights: f.Severities
    pair_seeds: f.Count


class Scheduling(f.Section):
    """One sampler: a scheduler of diffusers, its steps and their spacing. Its DDIM takes equal strides, whatever the spacing."""

    scheduler: Literal["DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler"]
    steps: Annotated[f.Steps, Field(ge=2)]
    spacing: Literal["leading", "linspace", "trailing"]

    def __post_init__(self):
        strides = self.scheduler != "DDIMScheduler" or self.spacing in STRIDES
        demand(strides, "ablation.samplers: spacing of a DDIMScheduler", self.spacing, " or ".join(STRIDES))


class Ablation(Resampled):
    """Samplers, what is drawn by all of them, and numbers of classes."""

    samplers: Annotated[dict[f.FileName, Annotated[Scheduling, f.mapped(Scheduling)]], Field(min_length=1), f.OTHER_FILES]
    reference: str
    rce_reference: str
    shifts: f.Shifts
    seeds: f.Count
    counts: Annotated[f.Counts, f.RISING]

    def __post_init__(self):
        demand(self.reference in self.samplers, "ablation.reference", self.reference, ", ".join(self.samplers))


class Dataset(f.Section):
    """What the tables of the benchmark cannot tell about it: the required entries of Croissant (`cns export`)."""

    name: f.Text
    description: f.Text
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
    url: Annotated[str, StringConstraints(pattern="^https?://")]
    license: Annotated[list[str], Field(min_length=1)]
    creator: f.Text
    date_published: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    cite_as: f.Text
    keywords: list[str]


class Controlshift(Resampled, f.Seeded):
    """Shifts of latents: what each step sets them to, step 0 being what is trained on; sizes and drawing of the data sets; trainings.

    `factors` are those of a truncation, `angles` those of extend and overlap in degrees. Images are per class and set. `reference` is
    the network whose training sets are compared, `least` the accuracy at step 0 from which on a classifier takes part.
    """

    factors: f.Rising
    angles: Annotated[list[Annotated[f.Number, Field(ge=0, le=90)]], Field(min_length=2), f.RISING]
    train_images: f.Count
    validation_images: f.Count
    test_images: f.Count
    drawing_steps: Annotated[f.Steps, Field(ge=2)]
    guidance: f.Guidance
    side: f.Count
    draws: f.Count
    networks: f.Names
    reference: str
    runs: f.Count
    training_steps: f.Count
    batch_size: f.Count
    learning_rate: f.Positive
    penalties: Annotated[list[f.Positive], Field(min_length=1)]
    training_seed: f.Seed
    least: f.Decay
    rce_reference: str

    def __post_init__(self):
        demand(self.factors[0] > 0, "controlshift.factors", self.factors, "above 0")
        demand(self.angles[0] == 0, "controlshift.angles", self.angles, "rising from 0.0 to 90.0")
        demand(len(self.factors) == len(self.angles), "controlshift.factors", self.factors, f"{len(self.angles)}, as many as angles")
        demand(self.reference in self.networks, "controlshift.reference", self.reference, ", ".join(self.networks))


class Segmentation(Resampled, f.Learning):
    """Segmentation and saliency under scenarios: networks, their encoder and trainings, and what is asked at which severities.

    `runs` are the trainings of every network: two at least, since a single one cannot tell how much another would differ.
    """

    networks: Networks
    encoder: str
    runs: f.Some
    steps: f.Count
    images: f.Count
    severities: f.AllSeverities
    overlap: f.Inside
    photographs: f.Count
    photo_classifiers: f.Sources


STUDIES = (Scenarios, Photos, Labels, Corruptions, Directions, Ablation, Dataset, Controlshift, Segmentation)
