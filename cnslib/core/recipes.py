"""The table of recipes: for each kind of unit its name, its number, and the recipes of which it makes use.

Raise a number when the same inputs give other bytes than before: all units of that kind, and of the kinds that make use of it, are
then made again. Nothing is made again because code changed.
"""

from cnslib.core.units import Recipe

# What several make use of. These are no units themselves.
SCENES = Recipe("scenes", 2)
SHIFTS = Recipe("shifts", 2, (SCENES,))
PHOTOGRAPHS = Recipe("photographs", 1, (SCENES,))
SUBJECTS = Recipe("subjects", 2, (SCENES,))
ENCODERS = Recipe("encoders", 1)
CLASSIFIERS = Recipe("classifiers", 1, (ENCODERS,))
REGISTRY = Recipe("registry", 1)
USER_CLASSIFIERS = Recipe("guests", 1, (CLASSIFIERS,))
STEPPER = Recipe("stepper", 1)
EDM = Recipe("edm", 1)
STRONG = Recipe("augmentation", 1)

# The base models.
PLAIN = Recipe("zoo", 1, (SCENES,))
AUGMENTED = Recipe("zoo-augmented", 1, (PLAIN, STRONG))
PRETRAINED = {
    "mae": Recipe("zoo-mae", 1, (AUGMENTED,)),
    "simclr": Recipe("zoo-simclr", 1, (AUGMENTED,)),
    "web": Recipe("zoo-web", 1, (AUGMENTED,)),
    "clip": Recipe("zoo-clip", 1, (AUGMENTED, SHIFTS)),
}
AUTOENCODER = Recipe("mini-sd-vae", 2, (SHIFTS,))
DIFFUSION = Recipe("mini-sd", 2, (AUTOENCODER,))
DIT = Recipe("mini-dit", 1, (AUTOENCODER,))
REDRAWN = Recipe("redrawn", 1, (SHIFTS,))
CONTRASTIVE = Recipe("mini-clip", 3, (SHIFTS,))
SELFSUPERVISED = Recipe("mini-dino", 1, (SHIFTS,))
ORACLE = Recipe("oracle", 1, (PLAIN, SHIFTS))

# The five steps.
TOKENS = Recipe("tokens", 1)
GIVEN_TOKENS = Recipe("given-tokens", 1)
SAMPLES = Recipe("samples", 1)
SLIDERS = Recipe("sliders", 1)
GRADED_SLIDERS = Recipe("sliders-graded", 1, (SLIDERS,))
RELEASED_SLIDERS = Recipe("sliders-released", 2, (SLIDERS,))
PIPELINE_SLIDERS = Recipe("sliders-pipelines", 1)
GIVEN_SLIDERS = Recipe("given-sliders", 1)
GENERATION = Recipe("generation", 1)
FUSED = Recipe("generation-fused", 1, (GENERATION,))
PILOT = Recipe("pilot", 1, (ENCODERS, GENERATION))
HEALTH = Recipe("health", 1, (ENCODERS, GENERATION))
SLIDER_STRIPS = Recipe("slider-strips", 1, (GENERATION,))
ALIGNMENT = Recipe("alignment", 1, (ENCODERS,))
FILTERING = Recipe("filtering", 2, (ALIGNMENT,))
EVALUATION = Recipe("evaluation", 1, (CLASSIFIERS,))

# The further chapters.
CATALOG_PREDICTIONS = Recipe("evaluation-catalog", 1, (EVALUATION,))
USER_PREDICTIONS = Recipe("own-answers", 1, (EVALUATION,))
CORRUPTED = Recipe("corrupted", 1)
CORRUPTIONS = Recipe("corruptions", 2, (CORRUPTED, EVALUATION))
CLOSEUPS = Recipe("closeups", 1, (GENERATION,))
CLOSEUP_PREDICTIONS = Recipe("closeup-answers", 1, (CLOSEUPS, EVALUATION))
ABLATION = Recipe("ablation", 1, (EVALUATION, HEALTH))
RETRAINED = Recipe("retrained", 1, (EVALUATION, GENERATION))
DIRECTIONS = Recipe("directions", 2, (HEALTH,))
COMPOSITION = Recipe("composition", 2, (DIRECTIONS,))
ORACLE_PREDICTIONS = Recipe("sights", 2, (ENCODERS,))
MIRRORED = Recipe("mirrored", 1, (ENCODERS,))
RULERS = Recipe("rulers", 1, (ALIGNMENT, SHIFTS, ORACLE_PREDICTIONS))
FINETUNED = Recipe("oodcv-classifiers", 2, (PLAIN, STRONG))
WEATHER = Recipe("oodcv-rendered", 1, (CLASSIFIERS, FINETUNED, SHIFTS))
WEATHER_DRAWN = Recipe("oodcv-drawn", 1, (ALIGNMENT, GENERATION, WEATHER))
SYNTHETIC = Recipe("synthetic", 2, (PLAIN, SHIFTS, STRONG))
DENOISER = Recipe("denoiser", 1)
CONTROLSHIFT = Recipe("controlshift", 1)
DEGRADATION = Recipe("degradation", 1, (PLAIN, STRONG))
NEIGHBOURS = Recipe("neighbours", 1, (ENCODERS,))
DRAWN_BACKGROUNDS = Recipe("drawn-backgrounds", 1, (SUBJECTS,))
EX1 = Recipe("scenarios", 1, (CLASSIFIERS, SUBJECTS))
EX1_PHOTOGRAPHS = Recipe("scenarios-photographs", 1, (EX1, USER_CLASSIFIERS, PHOTOGRAPHS))
CUT_OUT = Recipe("cut-out", 1, (EX1, USER_CLASSIFIERS, PHOTOGRAPHS))
EX2 = Recipe("scenarios-within", 2, (PLAIN, STRONG, SUBJECTS))
SEGMENTATION = Recipe("segmentation", 3, (PLAIN, STRONG, SUBJECTS))
SALIENCY = Recipe("saliency", 1, (USER_CLASSIFIERS, PHOTOGRAPHS, SUBJECTS))
CORRUPTED_PHOTOGRAPHS = Recipe("corrupted-photographs", 1, (CORRUPTED, EVALUATION, USER_CLASSIFIERS, PHOTOGRAPHS))
PHOTOS = Recipe("photos", 1, (EVALUATION, USER_CLASSIFIERS, PHOTOGRAPHS, SHIFTS))
