"""Parameters of the base models' trainings (world.yaml): one frozen dataclass per section and notebook."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from cnslib.core.settings.method import (
    STRICT,
    Count,
    Decay,
    FileName,
    Guidance,
    Number,
    Positive,
    Seed,
    Share,
    Steps,
    distinct_files,
    rising,
)

Members = Annotated[dict[FileName, dict], Field(min_length=1), AfterValidator(distinct_files)]


@dataclass(frozen=True, config=STRICT)
class Autoencoder:
    """Training of mini-SD's VAE."""

    channels: Annotated[list[Count], Field(min_length=1)]
    latent_channels: Count
    kl_weight: Positive
    steps: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    quality_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Diffusion:
    """Training of mini-SD's text encoder and UNet."""

    channels: Annotated[list[Count], Field(min_length=1)]
    width: Count
    layers: Count
    images: Count
    severities: Annotated[list[Share], Field(min_length=2, max_length=2), AfterValidator(rising)]
    caption_dropout: Share
    steps: Count
    batch_size: Count
    ranks: Count
    learning_rate: Positive
    average: Decay
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Redrawing:
    """Scenes that mini-SD draws again, of which the judges of its pictures learn."""

    per_caption: Annotated[Count, Field(ge=2)]  # one scene of each style
    strengths: Annotated[list[Share], Field(min_length=1)]
    nothing: Annotated[list[Share], Field(min_length=1)]
    severities: Annotated[list[Share], Field(min_length=2, max_length=2), AfterValidator(rising)]
    steps: Steps
    guidance: Guidance
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Contrastive:
    """Training of mini-CLIP."""

    vision: str
    width: Count
    layers: Count
    steps: Count
    learning_rate: Positive
    average: Decay
    severities: Annotated[list[Share], Field(min_length=2, max_length=2), AfterValidator(rising)]
    omitted: Share
    redrawn: Share
    quality_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Selfsupervised:
    """Training of mini-DINO."""

    architecture: str
    arguments: dict[str, object]
    temperature: Positive
    steps: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    redrawn: Share
    quality_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Oracle:
    """Training of the oracle, and the prompts on which it judges mini-SD."""

    architecture: str
    arguments: dict[str, object]
    steps: Count
    batch_size: Count
    learning_rate: Positive
    average: Decay
    redrawn: Share
    quality_images: Count
    prompt_seeds: Count
    sampling_steps: Steps
    guidance: Guidance
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Fidelity:
    """Pictures that mini-SD is measured by, beside scenes of its training."""

    per_caption: Annotated[Count, Field(ge=2)]
    scenes: Count
    severities: Annotated[list[Share], Field(min_length=2, max_length=2), AfterValidator(rising)]
    steps: Steps
    guidance: Guidance
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Zoo:
    """Training of the classifiers: steps, timm architecture and its arguments by name."""

    classifiers: Members
    batch_size: Count
    learning_rate: Positive
    average: Decay
    quality_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Augmentation:
    """DeiT's recipe: strong augmentation for the same networks."""

    classifiers: Members
    policy: str
    erasing: Share
    mixup: Annotated[Number, Field(ge=0, le=10)]
    cutmix: Annotated[Number, Field(ge=0, le=10)]
    mixed: Share
    smoothing: Decay
    batch_size: Count
    learning_rate: Positive
    weight_decay: Annotated[Number, Field(ge=0, le=10)]
    average: Decay
    quality_images: Count
    seed: Seed


@dataclass(frozen=True, config=STRICT)
class Pretraining:
    """One network with different pasts: objectives by name, classifiers with objective and adaptation, and the adaptations."""

    network: dict[str, object]
    objectives: Members
    classifiers: Members
    finetuned: dict[str, Positive]
    probe: dict[str, Positive]
    batch_size: Count
    learning_rate: Positive
    average: Decay
    quality_images: Count
    seed: Seed


RECIPES = (Autoencoder, Diffusion, Redrawing, Contrastive, Selfsupervised, Oracle, Fidelity, Zoo, Augmentation, Pretraining)
