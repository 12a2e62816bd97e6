"""Parameters of the analyses, the studies, the base models' trainings and a cluster; params.yaml and world.yaml explain their keys."""

from typing import Annotated, Any, Literal

from pydantic import Field

from cnslib.core.names import demand
from cnslib.core.settings import fields as f
from cnslib.core.settings.fields import Rule, section
from cnslib.core.settings.method import STRIDES, Filtering, Resampled

AXES = ("architecture", "convolution size", "transformer size", "pre-training")
NETWORKS = ("DeepLabV3Plus", "FPN", "PSPNet")  # of XIMAGENET-12's Table 3; its reference first
TRAINED = "seed batch_size learning_rate average"
MEASURED = f"{TRAINED} quality_images"


def among(key: str, other: str) -> Rule:
    """The rule that a key's name is one of those of another key."""
    return key, lambda s: getattr(s, key) in getattr(s, other), lambda s: ", ".join(getattr(s, other))


def in_one_family(line: Any) -> bool:
    """Whether every classifier is in at most one family, and whether sizes and pretrained name families."""
    members = [name for family in line.families.values() for name in family]
    return len(set(members)) == len(members) and {*line.sizes, *line.pretrained} <= {*line.families}


def falls_to_one(denoiser: Any) -> bool:
    """Whether fewer classes stay from stage to stage, in the end one, while the timesteps rise."""
    keep, trials = denoiser.keep, denoiser.trials
    return keep[-1] == 1 and keep == sorted(keep, reverse=True) and len(trials) == len(keep) and trials == sorted(set(trials))


ALL_AXES: Rule = ("members", lambda s: tuple(s.members) == AXES, f"the axes {', '.join(AXES)}, in this order")
FAMILIES: Rule = ("families", in_one_family, "every classifier in at most one family; sizes and pretrained name families")
STAGES: Rule = ("keep", falls_to_one, "one number of classes per stage, falling to 1, and as many rising numbers of trials")
OTHER_NAME: Rule = ("name", lambda s: s.name != s.plain, "another name than report.plain")
TO_ONE: Rule = ("severities", lambda s: s.severities[-1] <= 1, "from 0.0 up to 1.0")
LEVELS: Rule = ("contrast", lambda s: len(s.contrast) == len(s.contrast_severities), "one value for each of contrast_severities")
ANGLES: Rule = ("angles", lambda s: s.angles[0] == 0 and len(s.factors) == len(s.angles), "rising from 0.0, as many as factors")
FIRST: Rule = ("networks", lambda s: {*s.networks} <= {*NETWORKS} and s.networks[0] == NETWORKS[0], f"{NETWORKS[0]} first, of {NETWORKS}")

# What is made, and by whom. How Parsl gets workers: `provider` and `launcher` are classes of parsl.providers and parsl.launchers.
INVERTED = "steps batch_size images_per_class validation_images sampling_steps guidance judge features"
World: Any = section("World", "seed train_images heldout_images")
Inversion: Any = section("Inversion", f"seed learning_rate {INVERTED}")
Cluster: Any = section("Cluster", "provider launcher options workers card_each retries idle address setup")

# The analyses.
Accuracy: Any = section("Accuracy", "reference", Resampled)
Ranking: Any = section("Ranking", "", Resampled)
Axes: Any = section("Axes", "members reference margin", Resampled, rules=[ALL_AXES])
Failure: Any = section("Failure", "", Resampled)
Bisection: Any = section(
    "Bisection", "seed shifts classes classifiers seeds resolution scan_step scans", Resampled, shifts=f.Names, classifiers=f.Names
)
Line: Any = section("Line", "id_accuracy families sizes pretrained same_pool", Resampled, rules=[FAMILIES])

# The studies.
FINETUNED = "ladder_images training_images validation_images epochs patience batch_size reference_images learning_rate rotation zoom"
WEATHER = f"seed root shifts scales start_fraction unknown seeds severities networks {FINETUNED}"
SCENES = "tree roughness images training_images steps checks severities photo_severities drawing_steps guidance"
SHIFTED = "train_images validation_images test_images side draws runs training_steps training_seed drawing_steps guidance"
Calibration: Any = section("Calibration", "seed scenes severities", Resampled, scenes=f.Some, severities=f.Some)
Denoiser: Any = section("Denoiser", "seed shifts seeds scales keep trials model", Resampled, rules=[STAGES])
Oodcv: Any = section("Oodcv", WEATHER, Resampled, networks=f.ByFile)
Synthetic: Any = section("Synthetic", f"{TRAINED} tests network share runs steps style_images lowest", Resampled)
Report: Any = section("Report", "model plain reference blur name batch_size", Resampled, name=f.FileName, rules=[OTHER_NAME])
Scenarios: Any = section(
    "Scenarios", f"{TRAINED} classifiers backbones cutouts {SCENES}", Resampled, severities=f.ToOne, roughness=f.BothSides
)
SHOWN: Rule = ("shown", lambda s: {*s.shown} <= {*s.severities}, lambda s: f"some of {s.severities}")
PHOTOS: list[Rule] = [among("reference", "classifiers"), among("bisected", "classifiers"), SHOWN, TO_ONE]
Photos: Any = section(
    "Photos",
    "seed classifiers reference cutouts severities shown bisected resolution",
    Resampled,
    severities=f.FromZero,
    shown=f.FromZero,
    bisected=str,
    rules=PHOTOS,
)
Labels: Any = section("Labels", "seed pair expert peers clear files study_files study annotator", Filtering)
Corruptions: Any = section("Corruptions", "official images side contrast contrast_severities cutouts reference", Resampled, rules=[LEVELS])
Directions: Any = section("Directions", "shifts finer seeds pair_seeds pairs pair_weights", Resampled)
RAI = "data_collection data_collection_type machine_annotation_tools data_annotation_protocol data_biases data_limitations data_use_cases"
RAI += " data_social_impact personal_sensitive_information data_release_maintenance_plan"
Dataset: Any = section("Dataset", f"name description creator cite_as version url license date_published keywords {RAI}")
LEARNED = "networks reference rce_reference batch_size learning_rate penalties least"
Controlshift: Any = section(
    "Controlshift",
    f"seed decoder classes factors angles {SHIFTED} {LEARNED}",
    Resampled,
    classes=f.Files,
    rules=[ANGLES, among("reference", "networks")],
)
SEGMENTED = "networks encoder runs steps images photographs severities overlap photo_classifiers"
Segmentation: Any = section("Segmentation", f"{TRAINED} {SEGMENTED}", Resampled, severities=f.ToOne, rules=[FIRST])


class Scheduling(f.Section):
    """One sampler: a scheduler of diffusers, its steps and their spacing. Its DDIM takes equal strides, whatever the spacing."""

    scheduler: Literal["DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler"]
    steps: f.Some
    spacing: Literal["leading", "linspace", "trailing"]

    def __post_init__(self):
        strides = self.scheduler != "DDIMScheduler" or self.spacing in STRIDES
        demand(strides, "ablation.samplers: spacing of a DDIMScheduler", self.spacing, " or ".join(STRIDES))


SAMPLERS = Annotated[dict[f.FileName, Annotated[Scheduling, f.mapped(Scheduling)]], Field(min_length=1), f.OTHER_FILES]
COMPARED = "samplers reference rce_reference without shifts seeds counts retrained retrained_seeds"
RETRAINED: Any = {"retrained": Annotated[list[f.Seed], f.DISTINCT], "retrained_seeds": f.Some}
Ablation: Any = section("Ablation", COMPARED, Resampled, **RETRAINED, samplers=SAMPLERS, rules=[among("reference", "samplers")])

# Trainings of the base models.
SEEING = "architecture arguments steps redrawn"
ADDED = "policy erasing mixed mixup cutmix weight_decay smoothing"
PHRASED = "vision width layers steps learning_rate average severities omitted redrawn"


class Leg(f.Section):
    """One leg of a training: its name, optimiser steps, batch in shares of `ranks` threads, peak rate, average, and scenes of the pool."""

    name: f.FileName
    steps: f.Count
    batch_size: f.Count
    ranks: f.Count
    learning_rate: f.Positive
    average: f.Share
    scenes: f.Count

    def __post_init__(self):
        demand(self.batch_size % self.ranks == 0, f"legs: batch_size of {self.name}", self.batch_size, f"a multiple of ranks, {self.ranks}")


OTHER_NAMES = f.rule(lambda legs: len({leg.name for leg in legs}) == len(legs), "legs of different names")
LEGS = Annotated[list[Annotated[Leg, f.mapped(Leg)]], Field(min_length=1), OTHER_NAMES]
POOLED = "seed severities legs"
VAE = f"{POOLED} quality_images channels latent_channels kl_weight"
Autoencoder: Any = section("Autoencoder", VAE, severities=f.Interval, legs=LEGS)
DENOISED = f"{POOLED} channels width layers caption_dropout"
Diffusion: Any = section("Diffusion", DENOISED, severities=f.Interval, legs=LEGS)
Dit: Any = section("Dit", f"{MEASURED} steps scenes width heads layers")
Redrawing: Any = section("Redrawing", "seed per_caption strengths nothing severities steps guidance", severities=f.Interval)
Contrastive: Any = section("Contrastive", f"seed quality_images {PHRASED}", severities=f.Interval)
Selfsupervised: Any = section("Selfsupervised", f"{MEASURED} {SEEING} temperature")
Oracle: Any = section("Oracle", f"{MEASURED} {SEEING} prompt_seeds sampling_steps guidance")
Fidelity: Any = section("Fidelity", "seed per_caption scenes severities steps guidance", severities=f.Interval)
Zoo: Any = section("Zoo", f"{MEASURED} classifiers", classifiers=f.Members)
Augmentation: Any = section("Augmentation", f"{MEASURED} classifiers {ADDED}", classifiers=f.Members)
LATER = "network objectives classifiers finetuned probe"
Pretraining: Any = section("Pretraining", f"{MEASURED} {LATER}", network=dict[str, object], classifiers=f.Members)
