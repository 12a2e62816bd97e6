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


@dataclass(frozen=True)
class Augmentation:
    """DeiT's recipe: strong augmentation for the same networks."""

    classifiers: dict[str, dict]
    policy: str
    erasing: float
    mixup: float
    cutmix: float
    mixed: float
    smoothing: float
    batch_size: int
    learning_rate: float
    weight_decay: float
    average: float
    quality_images: int
    seed: int


@dataclass(frozen=True)
class Pretraining:
    """One network with different pasts: objectives by name, classifiers with objective and adaptation, and the adaptations."""

    network: dict[str, object]
    objectives: dict[str, dict]
    classifiers: dict[str, dict]
    finetuned: dict[str, float]
    probe: dict[str, float]
    batch_size: int
    learning_rate: float
    average: float
    quality_images: int
    seed: int


RECIPES = (Autoencoder, Diffusion, Contrastive, Selfsupervised, Oracle, Zoo, Augmentation, Pretraining)
