"""Parameters of the base models' trainings (world.yaml): one frozen dataclass per section and notebook."""

from pydantic.dataclasses import dataclass

from cnslib.core.settings.method import STRICT, Number


@dataclass(frozen=True, config=STRICT)
class Autoencoder:
    """Training of mini-SD's VAE."""

    channels: list[int]
    latent_channels: int
    kl_weight: Number
    steps: int
    batch_size: int
    learning_rate: Number
    average: Number
    quality_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Diffusion:
    """Training of mini-SD's text encoder and UNet."""

    channels: list[int]
    width: int
    layers: int
    images: int
    caption_dropout: Number
    steps: int
    batch_size: int
    learning_rate: Number
    average: Number
    seed: int


@dataclass(frozen=True, config=STRICT)
class Contrastive:
    """Training of mini-CLIP."""

    vision: str
    width: int
    layers: int
    steps: int
    learning_rate: Number
    average: Number
    quality_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Selfsupervised:
    """Training of mini-DINO."""

    architecture: str
    arguments: dict[str, object]
    temperature: Number
    steps: int
    batch_size: int
    learning_rate: Number
    average: Number
    quality_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Oracle:
    """Training of the oracle, and the prompts on which it judges mini-SD."""

    architecture: str
    arguments: dict[str, object]
    steps: int
    batch_size: int
    learning_rate: Number
    average: Number
    quality_images: int
    prompt_seeds: int
    sampling_steps: int
    guidance: Number
    seed: int


@dataclass(frozen=True, config=STRICT)
class Zoo:
    """Training of the classifiers: steps, timm architecture and its arguments by name."""

    classifiers: dict[str, dict]
    batch_size: int
    learning_rate: Number
    average: Number
    quality_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Augmentation:
    """DeiT's recipe: strong augmentation for the same networks."""

    classifiers: dict[str, dict]
    policy: str
    erasing: Number
    mixup: Number
    cutmix: Number
    mixed: Number
    smoothing: Number
    batch_size: int
    learning_rate: Number
    weight_decay: Number
    average: Number
    quality_images: int
    seed: int


@dataclass(frozen=True, config=STRICT)
class Pretraining:
    """One network with different pasts: objectives by name, classifiers with objective and adaptation, and the adaptations."""

    network: dict[str, object]
    objectives: dict[str, dict]
    classifiers: dict[str, dict]
    finetuned: dict[str, Number]
    probe: dict[str, Number]
    batch_size: int
    learning_rate: Number
    average: Number
    quality_images: int
    seed: int


RECIPES = (Autoencoder, Diffusion, Contrastive, Selfsupervised, Oracle, Zoo, Augmentation, Pretraining)
