"""Parameters of the base models' trainings (world.yaml): one frozen dataclass per section and notebook."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Autoencoder:
    """Training of mini-SD's VAE."""

    channels: list[int]
    latent_channels: int
    kl_weight: float
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    quality_images: int
    seed: int


@dataclass(frozen=True)
class Diffusion:
    """Training of mini-SD's text encoder and UNet."""

    channels: list[int]
    width: int
    layers: int
    images: int
    caption_dropout: float
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    seed: int


@dataclass(frozen=True)
class Contrastive:
    """Training of mini-CLIP."""

    vision: str
    width: int
    layers: int
    steps: int
    learning_rate: float
    average: float
    quality_images: int
    seed: int


@dataclass(frozen=True)
class Selfsupervised:
    """Training of mini-DINO."""

    architecture: str
    arguments: dict[str, object]
    temperature: float
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    quality_images: int
    seed: int


@dataclass(frozen=True)
class Oracle:
    """Training of the oracle, and the prompts on which it judges mini-SD."""

    architecture: str
    arguments: dict[str, object]
    steps: int
    batch_size: int
    learning_rate: float
    average: float
    quality_images: int
    prompt_seeds: int
    sampling_steps: int
    guidance: float
    seed: int


@dataclass(frozen=True)
class Zoo:
    """Training of the classifiers: steps, timm architecture and its arguments by name."""

    classifiers: dict[str, dict]
    batch_size: int
    learning_rate: float
    average: float
    quality_images: int
    seed: int


RECIPES = (Autoencoder, Diffusion, Contrastive, Selfsupervised, Oracle, Zoo)
