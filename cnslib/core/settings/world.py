"""Parameters of the base models' trainings: one section per section of world.yaml, which explains their keys."""

from functools import partial
from typing import Any

from cnslib.core.settings.fields import Learning, Measured, Seeded, section

named = partial(section, __name__)

Autoencoder: Any = named("Autoencoder", Learning, Measured, Counts="channels", Count="latent_channels steps", Positive="kl_weight")
Diffusion: Any = named(
    "Diffusion", Learning, Counts="channels", Count="width layers images steps ranks", Interval="severities", Share="caption_dropout"
)
Redrawing: Any = named(
    "Redrawing", Seeded, Some="per_caption", Shares="strengths nothing", Interval="severities", Steps="steps", Guidance="guidance"
)
Contrastive: Any = named(
    "Contrastive",
    Seeded,
    Measured,
    String="vision",
    Count="width layers steps",
    Positive="learning_rate",
    Decay="average",
    Interval="severities",
    Share="omitted redrawn",
)
Selfsupervised: Any = named(
    "Selfsupervised", Learning, Measured, String="architecture", Free="arguments", Positive="temperature", Count="steps", Share="redrawn"
)
Oracle: Any = named(
    "Oracle",
    Learning,
    Measured,
    String="architecture",
    Free="arguments",
    Count="steps prompt_seeds",
    Share="redrawn",
    Steps="sampling_steps",
    Guidance="guidance",
)
Fidelity: Any = named("Fidelity", Seeded, Some="per_caption", Count="scenes", Interval="severities", Steps="steps", Guidance="guidance")
Zoo: Any = named("Zoo", Learning, Measured, Members="classifiers")
Augmentation: Any = named(
    "Augmentation",
    Learning,
    Measured,
    Members="classifiers",
    String="policy",
    Share="erasing mixed",
    Amount="mixup cutmix weight_decay",
    Decay="smoothing",
)
Pretraining: Any = named("Pretraining", Learning, Measured, Free="network", Members="objectives classifiers", Rates="finetuned probe")
RECIPES = (Autoencoder, Diffusion, Redrawing, Contrastive, Selfsupervised, Oracle, Fidelity, Zoo, Augmentation, Pretraining)
