"""Parameters of the analyses: one section per section of params.yaml, whose comments say what each key is."""

from functools import partial
from typing import Any

from cnslib.core.names import demand
from cnslib.core.settings.fields import Learning, Rule, Seeded, section
from cnslib.core.settings.method import Evaluation, Resampled

AXES = ("architecture", "convolution size", "transformer size", "pre-training")


def in_one_family(line) -> bool:
    """Whether every classifier is in at most one family."""
    members = [name for family in line.families.values() for name in family]
    return len(set(members)) == len(members)


LINE: list[Rule] = [
    ("families", in_one_family, "every classifier in at most one family"),
    *((key, lambda s, key=key: {*getattr(s, key)} <= {*s.families}, lambda s: ", ".join(s.families)) for key in ("sizes", "pretrained")),
]
DENOISER: list[Rule] = [
    ("keep", lambda s: s.keep[-1] == 1 and s.keep == sorted(s.keep, reverse=True), "one number of classes per stage, falling to 1"),
    (
        "trials",
        lambda s: len(s.trials) == len(s.keep) and s.trials == sorted(set(s.trials)),
        "as many numbers as denoiser.keep has, rising",
    ),
]
OTHER_NAME = ("name", lambda s: s.name != s.plain, "another name than report.plain")
ALL_AXES = ("members", lambda s: tuple(s.members) == AXES, f"the axes {', '.join(AXES)}, in this order")
named = partial(section, __name__)

Accuracy: Any = named("Accuracy", Resampled, String="reference")
Ranking: Any = named("Ranking", Resampled)
Axes: Any = named("Axes", Resampled, NamesBy="members", String="reference", Positive="margin", rules=[ALL_AXES])
Failure: Any = named("Failure", Resampled)
Bisection: Any = named(
    "Bisection",
    Resampled,
    Seeded,
    Shifts="shifts",
    Names="classes classifiers",
    Count="seeds",
    Halving="resolution scan_step",
    Whole="scans",
)
Line: Any = named("Line", Resampled, IdAccuracy="id_accuracy", Lists="families", Strings="sizes pretrained same_pool", rules=LINE)
Calibration: Any = named("Calibration", Resampled, Seeded, Some="scenes severities")
Denoiser: Any = named("Denoiser", Resampled, Seeded, Shifts="shifts", Count="seeds", Scales="scales", Counts="keep trials", rules=DENOISER)
Oodcv: Any = named(
    "Oodcv",
    Resampled,
    Seeded,
    Shifts="shifts",
    Severities="scales",
    Part="start_fraction",
    WithName="unknown",
    Count="seeds ladder_images severities training_images validation_images epochs patience batch_size",
    Some="reference_images",
    Sources="networks",
    Positive="learning_rate",
    Angle="rotation",
    Zoom="zoom",
)
Synthetic: Any = named("Synthetic", Resampled, Learning, String="network", Inside="share", Count="runs steps style_images", Share="lowest")
Report: Any = named(
    "Report", Resampled, String="model plain reference", Positive="blur", FileName="name", Count="batch_size", rules=[OTHER_NAME]
)
ANALYSES = (Accuracy, Ranking, Axes, Failure, Bisection, Line, Calibration, Denoiser, Oodcv, Synthetic, Report)


def require_evaluated(axes: Axes, bisection: Bisection, evaluation: Evaluation) -> None:
    """Raises ValueError where an axis, its reference or the bisection names a classifier that the evaluation does not know."""
    wanted = [(f"axes.members.{axis}", name) for axis, names in axes.members.items() for name in names]
    wanted += [("axes.reference", axes.reference), *(("bisection.classifiers", name) for name in bisection.classifiers)]
    for key, name in wanted:
        demand(name in evaluation.classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluation.classifiers)}")
