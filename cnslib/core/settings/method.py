"""Parameters of the steps that make something: one frozen dataclass per section of params.yaml, its values checked when it is built."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from cnslib.core.names import SHIFTS

MODELS = ("pipeline", "clip", "image_encoder", "oracle")  # keys of base that name a model directory
STRICT = ConfigDict(extra="forbid", strict=True)  # no text for a number, no key that nobody reads
T = TypeVar("T", bound=Sequence)
Target = Literal["same classes", "other classes"]  # what an interval speaks about
SAME: Target = "same classes"
OTHER: Target = "other classes"
ABOUT: dict[Target, str] = {SAME: "same classes, other pictures", OTHER: "other classes"}


def distinct(values: T) -> T:
    """The same list; ValueError where an entry stands in it twice."""
    if any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError("a list without repetitions")
    return values


def rising(values: T) -> T:
    """The same list; ValueError unless every entry is above the one before it."""
    if list(values) != sorted(set(values)):
        raise ValueError("ascending, without repetitions")
    return values


def from_zero(values: T) -> T:
    """The same list; ValueError unless it begins with 0."""
    if values[0] != 0:
        raise ValueError("ascending from 0.0")
    return values


def mapped(kind: type) -> BeforeValidator:
    """Lets the mapping of a parameter file stand for a dataclass inside another one."""
    return BeforeValidator(lambda given: kind(**given) if isinstance(given, dict) else given)


def known_shift(name: str) -> str:
    """The same name; ValueError unless it is one of SHIFTS."""
    if name not in SHIFTS:
        raise ValueError(", ".join(SHIFTS))
    return name


def known_model(key: str) -> str:
    """The same key; ValueError unless it is one of MODELS."""
    if key not in MODELS:
        raise ValueError(f"keys of base that name a model directory: {', '.join(MODELS)}")
    return key


# An integer may stand for a fraction and stays one: what a unit was made from would read differently with 1.0 in the place of 1.
Number = int | float
Positive = Annotated[Number, Field(gt=0)]
Inside = Annotated[Number, Field(gt=0, lt=1)]  # a share, without its ends
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Some = Annotated[int, Field(ge=2)]
Shift = Annotated[str, AfterValidator(known_shift)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(distinct)]
Shifts = Annotated[list[Shift], Field(min_length=1), AfterValidator(distinct)]
Rising = Annotated[list[Number], Field(min_length=2), AfterValidator(rising)]
Scales = Annotated[list[Number], Field(min_length=1), AfterValidator(rising), AfterValidator(from_zero)]
Severities = Annotated[Rising, AfterValidator(from_zero)]
Sources = Annotated[dict[str, str], Field(min_length=1)]  # a directory or an address for each name


@dataclass(frozen=True, config=STRICT)
class Bootstrap:
    """Resamples of what was drawn together, the confidence of the intervals, the seed of the draws, and what would be drawn anew."""

    resamples: Count
    confidence: Inside
    seed: int
    target: Target

    @property
    def named(self) -> str:
        """What an interval is and what it is about, for captions."""
        return f"{self.confidence:.0%} intervals ({ABOUT[self.target]})"

    def of(self, target: Target) -> "Bootstrap":
        """The same about another target."""
        return replace(self, target=target)


@dataclass(frozen=True, config=STRICT)
class Resampled:
    """A section whose numbers have intervals: those of `base.bootstrap`, where its own `bootstrap` does not say otherwise."""

    bootstrap: Annotated[Bootstrap, mapped(Bootstrap)]


@dataclass(frozen=True, config=STRICT)
class Source:
    """Where a model directory comes from if it is not there, and what its files are checked against."""

    hub: str
    revision: str
    sha256: dict[str, str]


@dataclass(frozen=True, config=STRICT)
class Base:
    """What every step shares: folders, models and where they come from, the grid of classes, shifts, scales and seeds, the bootstrap."""

    out: str
    device: str
    pipeline: str
    clip: str
    image_encoder: str
    oracle: str
    labels: str
    catalog: str
    classes: Names
    shifts: Shifts
    scales: Scales
    seeds: Count
    shown: list[str]
    prediction: Literal["v_prediction", "epsilon"]
    sources: dict[Annotated[str, AfterValidator(known_model)], Annotated[Source, mapped(Source)]]
    in_star: str
    recipe: str
    drawing: Literal["exact", "fused", "fast"]
    bootstrap: Annotated[Bootstrap, mapped(Bootstrap)]


@dataclass(frozen=True, config=STRICT)
class World:
    """Renders of the catalog that stand for the classification data set: images per class of each split."""

    train_images: int
    heldout_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Inversion:
    """Textual inversion of one token per class, and the size of its comparison with the text prompt."""

    learning_rate: Number
    steps: Count
    batch_size: int
    images_per_class: int
    validation_images: Annotated[int, Field(ge=3)]
    sampling_steps: int
    guidance: Number
    judge: str
    seed: int


@dataclass(frozen=True, config=STRICT)
class Sliders:
    """LoRA slider training (paper section 3.2; released code's values in the reference) and the health report.

    `texts`: by shift, what the prompt that its sliders learn says behind the class; "in" and the shift's name where there is none.
    """

    texts: dict[Shift, Annotated[str, Field(min_length=1)]]
    rank: Count
    alpha: Number
    eta: Number
    learning_rate: Number
    iterations: int
    batch_size: int
    denoising_steps: Some
    health_seeds: int
    health_steps: int
    health_guidance: Number
    least_gain: Number
    seed: int


@dataclass(frozen=True, config=STRICT)
class Generation:
    """DDIM sampling with classifier-free guidance; the slider acts on the last `start_fraction` of the steps."""

    steps: int
    guidance: Number
    guidances: list[Number]
    start_fraction: Annotated[Number, Field(gt=0, le=1)]
    negative_prompt: str


@dataclass(frozen=True, config=STRICT)
class Filtering(Resampled):
    """Out-of-class filter: recall that sets the thresholds, and how many of the four tests an image must pass."""

    recall: Inside
    passes: Literal[1, 2, 3, 4]


@dataclass(frozen=True, config=STRICT)
class Evaluation:
    """Classifiers by name (a directory, "timm:<name>" or "open_clip:<name>/<tag>") and their preprocessing."""

    classifiers: dict[str, str]
    batch_size: int
    preprocessing: Literal["model", "paper"]


MAKING = (Base, World, Inversion, Sliders, Generation, Filtering, Evaluation)
