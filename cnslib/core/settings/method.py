"""Parameters that every step shares, and those of the steps that make something: one section per section of params.yaml."""

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field

from cnslib.core.names import SHIFTS, UNSHIFTED, demand
from cnslib.core.settings import fields as f

STRIDES = ("leading", "trailing")  # spacings of timesteps at which DDIM, whose strides are even, comes out where its next step begins
MODELS = ("pipeline", "clip", "image_encoder", "oracle")  # keys of base that name a model directory
Target = Literal["same classes", "other objects", "other classes"]  # what an interval speaks about
SAME: Target = "same classes"
OBJECTS: Target = "other objects"
OTHER: Target = "other classes"
FEWEST = 5  # units that resampling needs, or more than it has strata: of a mean of 4, 3 and 2 it held the truth 87, 76 and 51 times in 100
ABOUT: dict[Target, str] = {SAME: "same classes, other images", OBJECTS: "same classes, other objects", OTHER: "other classes"}
Model = Annotated[str, f.rule(lambda key: key in MODELS, f"keys of base that name a model directory: {', '.join(MODELS)}")]


class Bootstrap(f.Section):
    """Resamples of what was drawn together, the confidence of the intervals, the seed of the draws, and what would be drawn again."""

    resamples: f.Count
    confidence: f.Inside
    seed: f.Seed
    target: Target

    @property
    def interval_note(self) -> str:
        """What an interval is and what it is about, for captions."""
        return f"{self.confidence:.0%} intervals ({ABOUT[self.target]})"

    def of(self, target: Target) -> "Bootstrap":
        """The same about another target."""
        return dataclasses.replace(self, target=target)

    def apart(self, number: int) -> "Bootstrap":
        """The same for pictures that share nothing but classes with others: another seed; where classes are drawn, the same as there."""
        return self if self.target == OTHER else dataclasses.replace(self, seed=self.seed + number)

    @property
    def one_by_one(self) -> "Bootstrap":
        """The same about pictures whose seeds only number them within their class: other objects in the place of other seeds."""
        return self.of(OBJECTS) if self.target == SAME else self


Resampling = Annotated[Bootstrap, f.mapped(Bootstrap)]


class Resampled(f.Section):
    """A section whose numbers have intervals: those of `base.bootstrap`, where its own `bootstrap` does not say otherwise."""

    bootstrap: Resampling


# Where a model directory comes from if it is not there, and what its files are checked against.
Source: Any = f.section("Source", "hub revision sha256", hub=str, revision=str, sha256=dict[str, str])


class Base(f.Section):
    """What every step shares: folders, models and where they come from, the grid of classes, shifts, scales and seeds, the bootstrap."""

    out: f.Text
    device: f.Text
    pipeline: str
    clip: str
    image_encoder: str
    oracle: str
    labels: str
    catalog: str
    classes: Annotated[f.Files, Field(min_length=2)]  # one class is always right; and other classes, or seeds, are drawn from these
    shifts: Annotated[f.Files, Field(min_length=1)]
    scales: f.BothSides
    seeds: f.Some
    shown: Annotated[list[str], f.DISTINCT]
    prediction: Literal["v_prediction", "epsilon"]
    sources: dict[Model, Annotated[Source, f.mapped(Source)]]
    in_star: str
    recipe: str
    drawing: Literal["exact", "fused", "fast", "exact bfloat16", "fused bfloat16", "fast bfloat16"]
    workers: str
    bootstrap: Resampling


# Which etas are tried for each shift, on which classes and seeds, and what is asked of them at the last scale: shares of the pictures whose
# shift is `named` and whose class is `kept`, and the part of the way that one step may take.
TRIED = dict[f.Shift, Annotated[list[f.Positive], f.DISTINCT]]
Pilot: Any = f.section("Pilot", "etas classes seeds named kept largest_step", etas=TRIED, classes=f.Files)
# LoRA slider training (paper section 3.2; released code's values in the reference) and the health report. `texts`: by shift, what the
# prompt that its sliders learn says behind the class; "in" and the shift's name where there is none. `etas` and `longer`: by shift,
# what stands in the place of `eta` and of `iterations`. `least_gain` is a difference of cosines.
LEARNED = "learning_rate iterations batch_size denoising_steps health_seeds health_steps health_guidance least_gain pilot"
Sliders: Any = f.section(
    "Sliders",
    f"seed texts rank alpha eta etas longer {LEARNED}",
    texts=dict[f.FileName, f.Text],
    etas=dict[f.FileName, f.Positive],
    longer=dict[f.FileName, f.Count],
    denoising_steps=f.Some,
    least_gain=Annotated[f.Number, Field(ge=-2, le=2)],
    pilot=Annotated[Pilot, f.mapped(Pilot)],
)


class Generation(f.Section):
    """DDIM sampling with classifier-free guidance; the slider acts on the last `start_fraction` of the steps.

    Guidance acts from the first to the second value of `guided`, where 1 is pure noise and 0 the picture (Kynkaanniemi et al. 2024).
    Pictures are stored as JPEG of `quality`, and at 0 without loss; they have `side` pixels, and at 0 those drawn.
    """

    steps: f.Count
    guidance: f.NotNegative
    guided: f.Interval
    guidances: Annotated[list[f.NotNegative], Field(min_length=1), f.DISTINCT]
    start_fraction: f.Share
    negative_prompt: str
    quality: Annotated[int, Field(ge=0, le=100)]
    side: Annotated[int, Field(ge=0)]

    def recorded(self) -> dict[str, object]:
        """All settings, but for an interval of guidance that leaves nothing out, a quality without loss, and the size as drawn."""
        plain = {"guided": [0.0, 1.0], "quality": 0, "side": 0}
        return {key: value for key, value in dataclasses.asdict(self).items() if key not in plain or value != plain[key]}

    def drawn(self) -> dict[str, object]:
        """What a picture depends on: not the guidances among which one was chosen."""
        return {key: value for key, value in self.recorded().items() if key != "guidances"}


class Filtering(Resampled):
    """Out-of-class filter: recall that sets the thresholds, and how many of the four tests an image must pass."""

    recall: f.Inside
    passes: Annotated[int, Field(ge=1, le=4)]


class Evaluation(f.Section):
    """Classifiers by name (a directory, "timm:<name>" or "open_clip:<name>/<tag>") and their preprocessing."""

    classifiers: Annotated[dict[f.FileName, str], f.OTHER_FILES]
    batch_size: f.Count
    preprocessing: Literal["model", "paper"]


def require_words(base: Base, sliders: Sliders) -> None:
    """Raises ValueError for a shift beyond the paper's fourteen without words in `sliders.texts`, and for values of no shift at all."""
    for shift in base.shifts:
        worded = shift in SHIFTS or (shift in sliders.texts and shift != UNSHIFTED)
        demand(worded, "base.shifts", shift, f"{', '.join(SHIFTS)}; or another name, with its words in sliders.texts")
    for key in ("texts", "etas", "longer"):
        for shift in getattr(sliders, key):
            demand(shift in (*SHIFTS, *base.shifts), f"sliders.{key}", shift, f"{', '.join(SHIFTS)}, and what base.shifts names")
