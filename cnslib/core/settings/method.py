"""Parameters of the steps that make something: one frozen dataclass per section of params.yaml, its values checked when it is built."""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier

STRIDES = ("leading", "trailing")  # spacings of timesteps at which DDIM, whose strides are even, comes out where its next step begins
MODELS = ("pipeline", "clip", "image_encoder", "oracle")  # keys of base that name a model directory
# No text for a number, no key that nobody reads, nothing that is not a finite number.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
T = TypeVar("T", bound=Sequence)
Target = Literal["same classes", "other objects", "other classes"]  # what an interval speaks about
SAME: Target = "same classes"
OBJECTS: Target = "other objects"
OTHER: Target = "other classes"
FEWEST = 5  # units that resampling needs, or more than it has strata: of a mean of 4, 3 and 2 it held the truth 87, 76 and 51 times in 100
ABOUT: dict[Target, str] = {SAME: "same classes, other pictures", OBJECTS: "same classes, other objects", OTHER: "other classes"}
F = TypeVar("F", bound=Collection)


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


def file_name(name: str) -> str:
    """The same name; ValueError unless it can be a part of a file's name on every system."""
    plain = bool(name) and name == name.strip() and name.isprintable() and len(name.encode()) <= 100
    if not plain or name.startswith(".") or set(name) & set('/\\:*?"<>|'):
        raise ValueError('a name of at most 100 printable characters without / \\ : * ? " < > |, that begins with no dot or blank')
    return name


def distinct_files(values: F) -> F:
    """The same names; ValueError where two of them would share one file, on a system that knows no capitals either."""
    found: dict[str, str] = {}
    for name in values:
        other = found.setdefault(identifier(name).casefold(), name)
        if other != name:
            raise ValueError(f"names of different files, but {other!r} and {name!r} share {identifier(name)}")
    return values


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
Steps = Annotated[int, Field(ge=1, le=1000)]  # of a sampler: the noise schedule has a thousand
Guidance = Annotated[Number, Field(ge=0, le=100)]
Decay = Annotated[Number, Field(ge=0, lt=1)]  # of averaged weights
Difference = Annotated[Number, Field(ge=-2, le=2)]  # of two cosines
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(distinct)]
Shifts = Annotated[list[Shift], Field(min_length=1), AfterValidator(distinct)]
Rising = Annotated[list[Number], Field(min_length=2), AfterValidator(rising)]
Scales = Annotated[list[Number], Field(min_length=1), AfterValidator(rising), AfterValidator(from_zero)]
Severities = Annotated[Rising, AfterValidator(from_zero)]
FileName = Annotated[str, AfterValidator(file_name)]
Files = Annotated[list[FileName], AfterValidator(distinct), AfterValidator(distinct_files)]
Named = Annotated[Files, Field(min_length=1)]
Sources = Annotated[dict[FileName, str], Field(min_length=1), AfterValidator(distinct_files)]  # a directory or address for each name


@dataclass(frozen=True, config=STRICT)
class Bootstrap:
    """Resamples of what was drawn together, the confidence of the intervals, the seed of the draws, and what would be drawn anew."""

    resamples: Count
    confidence: Inside
    seed: Seed
    target: Target

    @property
    def named(self) -> str:
        """What an interval is and what it is about, for captions."""
        return f"{self.confidence:.0%} intervals ({ABOUT[self.target]})"

    def of(self, target: Target) -> "Bootstrap":
        """The same about another target."""
        return replace(self, target=target)

    def apart(self, number: int) -> "Bootstrap":
        """The same for pictures that have nothing but their classes in common with others: another seed, lest both draw alike.

        Where classes are drawn, they are the same on both sides: the seed stays, and a class counts as much on one as on the other.
        """
        return self if self.target == OTHER else replace(self, seed=self.seed + number)

    @property
    def one_by_one(self) -> "Bootstrap":
        """The same about pictures whose seeds only number them within their class: other objects in the place of other seeds."""
        return self.of(OBJECTS) if self.target == SAME else self


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

    out: Text
    device: Text
    pipeline: str
    clip: str
    image_encoder: str
    oracle: str
    labels: str
    catalog: str
    classes: Annotated[Named, Field(min_length=2)]  # one class is always right; and other classes, or seeds, are drawn anew from these
    shifts: Named
    scales: Annotated[Scales, Field(min_length=2)]
    seeds: Some
    shown: Annotated[list[str], AfterValidator(distinct)]
    prediction: Literal["v_prediction", "epsilon"]
    sources: dict[Annotated[str, AfterValidator(known_model)], Annotated[Source, mapped(Source)]]
    in_star: str
    recipe: str
    drawing: Literal["exact", "fused", "fast"]
    workers: str
    bootstrap: Annotated[Bootstrap, mapped(Bootstrap)]


@dataclass(frozen=True, config=STRICT)
class World:
    """Renders of the catalog that stand for the classification data set: images per class of each split."""

    train_images: Count
    heldout_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Inversion:
    """Textual inversion of one token per class, and the size of its comparison with the text prompt."""

    learning_rate: Positive
    steps: Count
    batch_size: Count
    images_per_class: Count
    validation_images: Annotated[int, Field(ge=3)]
    sampling_steps: Steps
    guidance: Guidance
    judge: str
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Pilot:
    """Which etas are tried for each shift, on which classes and seeds, and what is asked of them at the last scale.

    Shares of the pictures whose shift is `named` and whose class is `kept`, and the part of the way that one step may take.
    """

    etas: dict[Shift, Annotated[list[Positive], AfterValidator(distinct)]]
    classes: Annotated[list[FileName], AfterValidator(distinct)]
    seeds: Count
    named: Share
    kept: Share
    largest_step: Share


@dataclass(frozen=True, config=STRICT)
class Sliders:
    """LoRA slider training (paper section 3.2; released code's values in the reference) and the health report.

    `texts`: by shift, what the prompt that its sliders learn says behind the class; "in" and the shift's name where there is none.
    `etas` and `longer`: by shift, what stands in the place of `eta` and of `iterations`. A shift beyond the paper's fourteen has words.
    """

    texts: dict[FileName, Text]
    rank: Count
    alpha: Positive
    eta: Positive
    etas: dict[FileName, Positive]
    longer: dict[FileName, Count]
    learning_rate: Positive
    iterations: Count
    batch_size: Count
    denoising_steps: Some
    health_seeds: Count
    health_steps: Steps
    health_guidance: Guidance
    least_gain: Difference
    pilot: Annotated[Pilot, mapped(Pilot)]
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Generation:
    """DDIM sampling with classifier-free guidance; the slider acts on the last `start_fraction` of the steps.

    Guidance acts in a part of the time, where 1 is pure noise and 0 the picture (Kynkaanniemi et al. 2024): from the first to the second
    value of `guided`. Pictures are stored as JPEG of `quality`, and at 0 without loss.
    """

    steps: Steps
    guidance: Guidance
    guided: Annotated[list[Share], Field(min_length=2, max_length=2), AfterValidator(rising)]
    guidances: Annotated[list[Guidance], Field(min_length=1), AfterValidator(distinct)]
    start_fraction: Annotated[Number, Field(gt=0, le=1)]
    negative_prompt: str
    quality: Annotated[int, Field(ge=0, le=100)]

    def told(self) -> dict[str, object]:
        """All settings, but for an interval of guidance that leaves nothing out, and for a quality without loss."""
        plain = {"guided": [0.0, 1.0], "quality": 0}
        return {key: value for key, value in dataclasses.asdict(self).items() if key not in plain or value != plain[key]}

    def drawn(self) -> dict[str, object]:
        """What a picture depends on: not the guidances among which one was chosen."""
        return {key: value for key, value in self.told().items() if key != "guidances"}


@dataclass(frozen=True, config=STRICT)
class Filtering(Resampled):
    """Out-of-class filter: recall that sets the thresholds, and how many of the four tests an image must pass."""

    recall: Inside
    passes: Annotated[int, Field(ge=1, le=4)]


@dataclass(frozen=True, config=STRICT)
class Evaluation:
    """Classifiers by name (a directory, "timm:<name>" or "open_clip:<name>/<tag>") and their preprocessing."""

    classifiers: Annotated[dict[FileName, str], AfterValidator(distinct_files)]
    batch_size: Count
    preprocessing: Literal["model", "paper"]


MAKING = (Base, World, Inversion, Sliders, Generation, Filtering, Evaluation)


def require_words(base: Base, sliders: Sliders) -> None:
    """Raises ValueError for a shift beyond the paper's fourteen without words in `sliders.texts`, and for values of no shift at all."""
    for shift in base.shifts:
        told = shift in SHIFTS or (shift in sliders.texts and shift != UNSHIFTED)
        demand(told, "base.shifts", shift, f"{', '.join(SHIFTS)}; or another name, with its words in sliders.texts")
    for key in ("texts", "etas", "longer"):
        for shift in getattr(sliders, key):
            demand(shift in (*SHIFTS, *base.shifts), f"sliders.{key}", shift, f"{', '.join(SHIFTS)}, and what base.shifts names")
