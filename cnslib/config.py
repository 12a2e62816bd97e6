"""Parameters of the steps that make something: one frozen dataclass per section of params.yaml, its values checked when it is built."""

from dataclasses import dataclass

SHIFTS = (
    "cartoon style",
    "plush toy style",
    "pencil sketch style",
    "painting style",
    "design of sculpture",
    "graffiti style",
    "video game renditions style",
    "style of a tattoo",
    "heavy snow",
    "heavy rain",
    "heavy fog",
    "heavy smog",
    "heavy dust",
    "heavy sandstorm",
)
UNSHIFTED = "unshifted"
PREDICTIONS = ("v_prediction", "epsilon")
DRAWINGS = ("exact", "fused", "fast")
FETCHED = ("pipeline", "clip", "image_encoder", "oracle")


def identifier(name: str) -> str:
    """A class or shift name as part of a file name: blanks become underscores."""
    return name.replace(" ", "_")


def demand(holds: bool, key: str, value: object, accepted: str) -> None:
    """Raises ValueError naming the key, the offending value and what is accepted, unless the condition holds."""
    if not holds:
        raise ValueError(f"{key}: {value!r} is not accepted; accepted: {accepted}")


@dataclass(frozen=True)
class Base:
    """What every step shares: folders, models and where they come from, and the grid of classes, shifts, scales and seeds."""

    out: str
    device: str
    pipeline: str
    clip: str
    image_encoder: str
    oracle: str
    labels: str
    catalog: str
    classes: list[str]
    shifts: list[str]
    scales: list[float]
    seeds: int
    shown: list[str]
    prediction: str
    sources: dict[str, dict[str, object]]
    in_star: str
    recipe: str
    drawing: str

    def __post_init__(self):
        demand(self.prediction in PREDICTIONS, "base.prediction", self.prediction, ", ".join(PREDICTIONS))
        demand(self.drawing in DRAWINGS, "base.drawing", self.drawing, ", ".join(DRAWINGS))
        for key, place in self.sources.items():
            demand(key in FETCHED, "base.sources", key, f"keys of base that name a model directory: {', '.join(FETCHED)}")
            demand(set(place) == {"hub", "revision", "sha256"}, f"base.sources.{key}", place, "hub, revision and sha256 by file")
        for shift in self.shifts:
            demand(shift in SHIFTS, "base.shifts", shift, ", ".join(SHIFTS))
        for key in ("classes", "shifts", "scales"):
            values = getattr(self, key)
            demand(bool(values) and len(set(values)) == len(values), f"base.{key}", values, "a list without repetitions")
        demand(self.scales == sorted(self.scales) and self.scales[0] == 0, "base.scales", self.scales, "ascending from 0.0")
        demand(self.seeds >= 1, "base.seeds", self.seeds, "at least 1")


@dataclass(frozen=True)
class World:
    """Renders of the catalog that stand for the classification data set: images per class of each split."""

    train_images: int
    heldout_images: int
    seed: int


@dataclass(frozen=True)
class Inversion:
    """Textual inversion of one token per class, and the size of its comparison with the text prompt."""

    learning_rate: float
    steps: int
    batch_size: int
    images_per_class: int
    validation_images: int
    sampling_steps: int
    guidance: float
    judge: str
    seed: int

    def __post_init__(self):
        demand(self.steps >= 1, "inversion.steps", self.steps, "at least 1")
        demand(self.validation_images >= 3, "inversion.validation_images", self.validation_images, "at least 3")


@dataclass(frozen=True)
class Sliders:
    """LoRA slider training (paper section 3.2; released code's values in the reference) and the health report."""

    rank: int
    alpha: float
    eta: float
    learning_rate: float
    iterations: int
    batch_size: int
    denoising_steps: int
    health_seeds: int
    health_steps: int
    health_guidance: float
    least_gain: float
    seed: int

    def __post_init__(self):
        demand(self.rank >= 1, "sliders.rank", self.rank, "at least 1")
        demand(self.denoising_steps >= 2, "sliders.denoising_steps", self.denoising_steps, "at least 2")


@dataclass(frozen=True)
class Generation:
    """DDIM sampling with classifier-free guidance; the slider acts on the last `start_fraction` of the steps."""

    steps: int
    guidance: float
    guidances: list[float]
    start_fraction: float
    negative_prompt: str

    def __post_init__(self):
        demand(0 < self.start_fraction <= 1, "generation.start_fraction", self.start_fraction, "in (0, 1]")


@dataclass(frozen=True)
class Filtering:
    """Out-of-class filter: recall that sets the thresholds, and how many of the four tests an image must pass."""

    recall: float
    passes: int
    resamples: int
    confidence: float
    seed: int

    def __post_init__(self):
        demand(0 < self.recall < 1, "filtering.recall", self.recall, "between 0 and 1")
        demand(self.passes in (1, 2, 3, 4), "filtering.passes", self.passes, "1, 2, 3 or 4")


@dataclass(frozen=True)
class Evaluation:
    """Classifiers by name (a directory, "timm:<name>" or "open_clip:<name>/<tag>") and their preprocessing."""

    classifiers: dict[str, str]
    batch_size: int
    preprocessing: str

    def __post_init__(self):
        demand(self.preprocessing in ("model", "paper"), "evaluation.preprocessing", self.preprocessing, "model, paper")


MAKING = (Base, World, Inversion, Sliders, Generation, Filtering, Evaluation)
