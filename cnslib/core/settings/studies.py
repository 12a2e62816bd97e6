"""Parameters of the studies, chapters beyond the main analyses: one section per section of params.yaml, which explains their keys."""

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from cnslib.core.names import demand
from cnslib.core.settings import fields as f
from cnslib.core.settings.method import STRIDES, Filtering, Resampled

NETWORKS = ("DeepLabV3Plus", "FPN", "PSPNet")  # of XIMAGENET-12's Table 3; its reference first
PHOTOS: list[f.Rule] = [
    ("reference", lambda s: s.reference in s.classifiers, lambda s: ", ".join(s.classifiers)),
    ("severities", lambda s: s.severities[-1] <= 1, "from 0.0 up to 1.0"),
]
CONTROLSHIFT: list[f.Rule] = [
    ("angles", lambda s: s.angles[0] == 0, "rising from 0.0 to 90.0"),
    ("factors", lambda s: s.factors[0] > 0 and len(s.factors) == len(s.angles), "above 0, as many as angles"),
    ("reference", lambda s: s.reference in s.networks, lambda s: ", ".join(s.networks)),
]
CONTRAST = ("contrast", lambda s: len(s.contrast) == len(s.contrast_severities), "one value for each of corruptions.contrast_severities")
SEGMENTATION = (
    "networks",
    lambda s: {*s.networks} <= {*NETWORKS} and s.networks[0] == NETWORKS[0],
    f"{NETWORKS[0]} first, then others of {', '.join(NETWORKS)}",
)
named = partial(f.section, __name__)


class Scheduling(f.Section):
    """One sampler: a scheduler of diffusers, its steps and their spacing. Its DDIM takes equal strides, whatever the spacing."""

    scheduler: Literal["DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler"]
    steps: f.SomeSteps
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
    counts: f.RisingCounts
    rules: ClassVar = (("reference", lambda s: s.reference in s.samplers, lambda s: ", ".join(s.samplers)),)


Scenarios: Any = named(
    "Scenarios",
    Resampled,
    f.Learning,
    Sources="classifiers backbones",
    Some="cutouts",
    Count="images training_images steps checks",
    AllSeverities="severities photo_severities",
    Steps="drawing_steps",
    Guidance="guidance",
)
Photos: Any = named(
    "Photos", Resampled, f.Seeded, Sources="classifiers", String="reference", Some="cutouts", Severities="severities", rules=PHOTOS
)
Labels: Any = named(
    "Labels",
    Filtering,
    f.Seeded,
    ShiftList="pair",
    String="expert",
    Strings="peers",
    Inside="clear",
    Projects="files study_files",
    Count="study",
    Annotator="annotator",
)
Corruptions: Any = named(
    "Corruptions",
    Resampled,
    Count="images",
    Side="side",
    Parts="contrast",
    RisingPositive="contrast_severities",
    Some="cutouts",
    String="reference",
    rules=[CONTRAST],
)
Directions: Any = named(
    "Directions", Resampled, Shifts="shifts", Finer="finer", Count="seeds pair_seeds", Pairs="pairs", Severities="pair_weights"
)
Dataset: Any = named(
    "Dataset",
    Text="name description creator cite_as",
    Version="version",
    Address="url",
    Names="license",
    Date="date_published",
    Strings="keywords",
)
Controlshift: Any = named(
    "Controlshift",
    Resampled,
    f.Seeded,
    Rising="factors",
    Angles="angles",
    Count="train_images validation_images test_images side draws runs training_steps batch_size",
    SomeSteps="drawing_steps",
    Guidance="guidance",
    Names="networks",
    String="reference rce_reference",
    Positive="learning_rate",
    Positives="penalties",
    Seed="training_seed",
    Decay="least",
    rules=CONTROLSHIFT,
)
Segmentation: Any = named(
    "Segmentation",
    Resampled,
    f.Learning,
    Names="networks",
    String="encoder",
    Some="runs",
    Count="steps images photographs",
    AllSeverities="severities",
    Inside="overlap",
    Sources="photo_classifiers",
    rules=[SEGMENTATION],
)
STUDIES = (Scenarios, Photos, Labels, Corruptions, Directions, Ablation, Dataset, Controlshift, Segmentation)
