"""Every kind of unit: the number of its recipe, the modules that make it, and the recipes of which it makes use.

Raise a number when the same inputs give other bytes than before: all units of that kind, and of the kinds that make use of it, are
then made anew. Nothing is made anew because code changed; `cns stale` lists what older code made.
"""

from cnslib.core.units import Recipe

# What several kinds make use of. These are no units themselves.
SCENES = Recipe("scenes", 2, ("cnslib.world.scenes", "cnslib.world.textures"))  # unshifted
SHIFTS = Recipe("shifts", 1, ("cnslib.world.shifts", "cnslib.world.styles", "cnslib.world.weather"), (SCENES,))
PHOTOGRAPHS = Recipe("photographs", 1, ("cnslib.world.cutouts",), (SCENES,))
SUBJECTS = Recipe(
    "subjects",
    2,
    ("cnslib.studies.scenarios.scenarios", "cnslib.studies.scenarios.subjects", "cnslib.studies.segmentation.inputs"),
    (SCENES,),
)
ENCODERS = Recipe("encoders", 1, ("cnslib.models.encoders",))
CLASSIFIERS = Recipe("classifiers", 1, ("cnslib.models.classifiers", "cnslib.models.networks"), (ENCODERS,))
REGISTRY = Recipe("registry", 1, ("cnslib.models.checkpoints", "cnslib.models.registry"))
OWN_CLASSIFIERS = Recipe("guests", 1, ("cnslib.models.classifiers", "cnslib.models.efficientnet_lite"), (CLASSIFIERS,))
STEPPER = Recipe("stepper", 1, ("cnslib.method.drawing",))
EDM = Recipe("edm", 1, ("cnslib.studies.controlshift.edm", "cnslib.studies.controlshift.edmnet"))
STRONG = Recipe("augmentation", 1, ("cnslib.world.training",))

# The base models.
PLAIN = Recipe("zoo", 1, ("cnslib.world.training", "cnslib.world.zoo"), (SCENES,))
AUGMENTED = Recipe("zoo-augmented", 1, (), (PLAIN, STRONG))
PRETRAINED = {
    "mae": Recipe("zoo-mae", 1, ("cnslib.world.pretraining",), (AUGMENTED,)),
    "simclr": Recipe("zoo-simclr", 1, ("cnslib.world.pretraining", "cnslib.world.selfsupervised"), (AUGMENTED,)),
    "web": Recipe("zoo-web", 1, ("cnslib.world.pretraining",), (AUGMENTED,)),
    "clip": Recipe(
        "zoo-clip",
        1,
        ("cnslib.models.networks", "cnslib.world.contrastive", "cnslib.world.diffusion", "cnslib.world.pretraining"),
        (AUGMENTED, SHIFTS),
    ),
}
AUTOENCODER = Recipe("mini-sd-vae", 1, ("cnslib.world.autoencoder", "cnslib.world.training"), (SHIFTS,))
DIFFUSION = Recipe("mini-sd", 1, ("cnslib.world.diffusion", "cnslib.world.training"), (AUTOENCODER,))
REDRAWN = Recipe("redrawn", 1, ("cnslib.world.redrawing",), (SHIFTS,))
CONTRASTIVE = Recipe(
    "mini-clip", 3, ("cnslib.world.contrastive", "cnslib.world.diffusion", "cnslib.world.redrawing", "cnslib.world.training"), (SHIFTS,)
)
SELFSUPERVISED = Recipe("mini-dino", 1, ("cnslib.world.redrawing", "cnslib.world.selfsupervised", "cnslib.world.training"), (SHIFTS,))
ORACLE = Recipe("oracle", 1, ("cnslib.world.redrawing",), (PLAIN, SHIFTS))

# The five steps.
TOKENS = Recipe("tokens", 1, ("cnslib.method.inversion",))
GIVEN_TOKENS = Recipe("given-tokens", 1, ("cnslib.method.provision", "cnslib.models.tokens"))
SAMPLES = Recipe("samples", 1, ("cnslib.method.inversion", "cnslib.models.text_to_image"))
SLIDERS = Recipe("sliders", 1, ("cnslib.method.sliders", "cnslib.models.adapters", "cnslib.models.text_to_image"))
FAST_SLIDERS = Recipe("sliders-fast", 1, ("cnslib.method.sliders_fast",), (SLIDERS,))
GRADED_SLIDERS = Recipe("sliders-graded", 1, ("cnslib.method.sliders_graded",), (SLIDERS,))
RELEASED_SLIDERS = Recipe("sliders-released", 2, ("cnslib.method.sliders_released", "cnslib.models.kohya"), (SLIDERS,))
GIVEN_SLIDERS = Recipe("given-sliders", 1, ("cnslib.method.provision", "cnslib.models.kohya"))
GENERATION = Recipe("generation", 1, ("cnslib.method.generation", "cnslib.models.adapters", "cnslib.models.text_to_image"))
FUSED = Recipe("generation-fused", 1, ("cnslib.method.drawing",), (GENERATION,))
PILOT = Recipe("pilot", 1, ("cnslib.method.pilot",), (ENCODERS, GENERATION))
HEALTH = Recipe("health", 1, ("cnslib.method.health",), (ENCODERS, GENERATION))
SLIDER_STRIPS = Recipe("slider-strips", 1, ("cnslib.method.health",), (GENERATION,))
ALIGNMENT = Recipe("alignment", 1, ("cnslib.method.filtering",), (ENCODERS,))
FILTERING = Recipe("filtering", 2, ("cnslib.method.filtering",), (ALIGNMENT,))
EVALUATION = Recipe("evaluation", 1, ("cnslib.method.evaluation",), (CLASSIFIERS,))

# The further chapters.
CATALOG_ANSWERS = Recipe("evaluation-catalog", 1, ("cnslib.data.catalog",), (EVALUATION,))
OWN_ANSWERS = Recipe("own-answers", 1, ("cnslib.studies.asking",), (EVALUATION,))
CORRUPTED = Recipe(
    "corrupted",
    1,
    (
        "cnslib.studies.corruptions.blurs",
        "cnslib.studies.corruptions.effects",
        "cnslib.studies.corruptions.levels",
        "cnslib.studies.corruptions.weather",
    ),
)
CORRUPTIONS = Recipe("corruptions", 2, ("cnslib.data.catalog", "cnslib.studies.corruptions.answers"), (CORRUPTED, EVALUATION))
CLOSEUPS = Recipe("closeups", 1, ("cnslib.studies.bisection.closeups",), (GENERATION,))
CLOSEUP_ANSWERS = Recipe("closeup-answers", 1, (), (CLOSEUPS, EVALUATION))
ABLATION = Recipe("ablation", 1, ("cnslib.studies.ablation.samplers",), (EVALUATION, HEALTH))
DIRECTIONS = Recipe("directions", 2, ("cnslib.method.sliders", "cnslib.studies.directions.texts"), (HEALTH,))
COMPOSITION = Recipe("composition", 2, ("cnslib.studies.directions.composition",), (DIRECTIONS,))
SIGHTS = Recipe("sights", 2, ("cnslib.method.sights",), (ENCODERS,))
MIRRORED = Recipe("mirrored", 1, ("cnslib.studies.labels.mirrors",), (ENCODERS,))
RULERS = Recipe("rulers", 1, ("cnslib.studies.calibration",), (ALIGNMENT, SHIFTS, SIGHTS))
FINETUNED = Recipe("oodcv-classifiers", 2, ("cnslib.studies.oodcv.training",), (PLAIN, STRONG))
WEATHER = Recipe("oodcv-rendered", 1, ("cnslib.studies.oodcv.weather",), (CLASSIFIERS, FINETUNED, SHIFTS))
WEATHER_DRAWN = Recipe("oodcv-drawn", 1, ("cnslib.studies.oodcv.generated",), (ALIGNMENT, GENERATION, WEATHER))
SYNTHETIC = Recipe("synthetic", 2, ("cnslib.studies.synthetic",), (PLAIN, SHIFTS, STRONG))
DENOISER = Recipe("denoiser", 1, ("cnslib.studies.denoiser.diffusion_classifier",))
CONTROLSHIFT = Recipe(
    "controlshift", 1, ("cnslib.models.text_to_image", "cnslib.studies.controlshift.datasets", "cnslib.studies.controlshift.latents")
)
DEGRADATION = Recipe("degradation", 1, ("cnslib.models.networks", "cnslib.studies.controlshift.training"), (PLAIN, STRONG))
NEIGHBOURS = Recipe("neighbours", 1, ("cnslib.studies.controlshift.datasets", "cnslib.studies.controlshift.distance"), (ENCODERS,))
DRAWN_BACKGROUNDS = Recipe("drawn-backgrounds", 1, ("cnslib.models.text_to_image", "cnslib.studies.scenarios.subjects"), (SUBJECTS,))
EX1 = Recipe("scenarios", 1, ("cnslib.studies.scenarios.experiment1",), (CLASSIFIERS, SUBJECTS))
EX1_PHOTOGRAPHS = Recipe("scenarios-photographs", 1, (), (EX1, OWN_CLASSIFIERS, PHOTOGRAPHS))
EX2 = Recipe("scenarios-within", 2, ("cnslib.studies.scenarios.experiment2",), (PLAIN, STRONG, SUBJECTS))
SEGMENTATION = Recipe("segmentation", 3, ("cnslib.studies.segmentation.masks",), (PLAIN, STRONG, SUBJECTS))
SALIENCY = Recipe("saliency", 1, ("cnslib.studies.segmentation.saliency",), (OWN_CLASSIFIERS, PHOTOGRAPHS, SUBJECTS))
CORRUPTED_PHOTOGRAPHS = Recipe(
    "corrupted-photographs", 1, ("cnslib.studies.corruptions.photographs",), (CORRUPTED, EVALUATION, OWN_CLASSIFIERS, PHOTOGRAPHS)
)
PHOTOS = Recipe("photos", 1, ("cnslib.data.imagenet", "cnslib.studies.photos"), (EVALUATION, OWN_CLASSIFIERS, PHOTOGRAPHS, SHIFTS))


def every() -> dict[str, Recipe]:
    """All recipes by name. ValueError where two share a name."""
    found = [value for value in globals().values() if isinstance(value, Recipe)] + list(PRETRAINED.values())
    table = {recipe.name: recipe for recipe in found}
    if len(table) < len(found):
        raise ValueError(f"kinds: {len(found)} recipes with {len(table)} names; accepted: a name of its own for each")
    return table
