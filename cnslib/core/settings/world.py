"""Parameters of the base models' trainings (world.yaml): one section per section and notebook."""

from typing import Annotated

from pydantic import Field

from cnslib.core.settings import fields as f

Shares = Annotated[list[f.Share], Field(min_length=1)]
Amount = Annotated[f.Number, Field(ge=0, le=10)]


class Measured(f.Section, kw_only=True):
    """A model whose quality is measured on so many pictures."""

    quality_images: f.Count


class Autoencoder(f.Learning, Measured):
    """Training of mini-SD's VAE."""

    channels: f.Counts
    latent_channels: f.Count
    kl_weight: f.Positive
    steps: f.Count


class Diffusion(f.Learning):
    """Training of mini-SD's text encoder and UNet."""

    channels: f.Counts
    width: f.Count
    layers: f.Count
    images: f.Count
    severities: f.Interval
    caption_dropout: f.Share
    steps: f.Count
    ranks: f.Count


class Redrawing(f.Seeded):
    """Scenes that mini-SD draws again, of which the judges of its pictures learn."""

    per_caption: f.Some  # one scene of each style
    strengths: Shares
    nothing: Shares
    severities: f.Interval
    steps: f.Steps
    guidance: f.Guidance


class Contrastive(f.Seeded, Measured):
    """Training of mini-CLIP."""

    vision: str
    width: f.Count
    layers: f.Count
    steps: f.Count
    learning_rate: f.Positive
    average: f.Decay
    severities: f.Interval
    omitted: f.Share
    redrawn: f.Share


class Selfsupervised(f.Learning, Measured):
    """Training of mini-DINO."""

    architecture: str
    arguments: dict[str, object]
    temperature: f.Positive
    steps: f.Count
    redrawn: f.Share


class Oracle(f.Learning, Measured):
    """Training of the oracle, and the prompts on which it judges mini-SD."""

    architecture: str
    arguments: dict[str, object]
    steps: f.Count
    redrawn: f.Share
    prompt_seeds: f.Count
    sampling_steps: f.Steps
    guidance: f.Guidance


class Fidelity(f.Seeded):
    """Pictures that mini-SD is measured by, beside scenes of its training."""

    per_caption: f.Some
    scenes: f.Count
    severities: f.Interval
    steps: f.Steps
    guidance: f.Guidance


class Zoo(f.Learning, Measured):
    """Training of the classifiers: steps, timm architecture and its arguments by name."""

    classifiers: f.Members


class Augmentation(f.Learning, Measured):
    """DeiT's recipe: strong augmentation for the same networks."""

    classifiers: f.Members
    policy: str
    erasing: f.Share
    mixup: Amount
    cutmix: Amount
    mixed: f.Share
    smoothing: f.Decay
    weight_decay: Amount


class Pretraining(f.Learning, Measured):
    """One network with different pasts: objectives by name, classifiers with objective and adaptation, and the adaptations."""

    network: dict[str, object]
    objectives: f.Members
    classifiers: f.Members
    finetuned: dict[str, f.Positive]
    probe: dict[str, f.Positive]


RECIPES = (Autoencoder, Diffusion, Redrawing, Contrastive, Selfsupervised, Oracle, Fidelity, Zoo, Augmentation, Pretraining)
