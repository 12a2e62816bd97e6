"""Every kind of unit: the number of its recipe, the modules that make it, and the recipes of which it makes use.

Raise a number when the same inputs give other bytes than before: all units of that kind, and of the kinds that make use of it, are
then made anew. Nothing is made anew because code changed; `python -m cnslib.stale` lists what older code made.
"""

from cnslib.units import Recipe

# What several kinds make use of. These are no units themselves.
SCENES = Recipe("scenes", 1, ("cnslib.world", "cnslib.textures"))  # unshifted
SHIFTS = Recipe("shifts", 1, ("cnslib.shifts", "cnslib.styles", "cnslib.weather"), (SCENES,))
PHOTOGRAPHS = Recipe("photographs", 1, ("cnslib.backgrounds", "cnslib.cutouts", "cnslib.placement"), (SCENES,))
SUBJECTS = Recipe("subjects", 1, ("cnslib.scenarios", "cnslib.scenes", "cnslib.subjects"), (SCENES,))
ENCODERS = Recipe("encoders", 1, ("cnslib.encoders",))
CLASSIFIERS = Recipe("classifiers", 1, ("cnslib.alexnet", "cnslib.backbones", "cnslib.classifiers"), (ENCODERS,))
REGISTRY = Recipe("registry", 1, ("cnslib.foreign", "cnslib.registry"))
GUESTS = Recipe("guests", 1, ("cnslib.guests", "cnslib.lite"), (CLASSIFIERS,))
STEPPER = Recipe("stepper", 1, ("cnslib.stepping",))
EDM = Recipe("edm", 1, ("cnslib.edm", "cnslib.edmnet"))
STRONG = Recipe("augmentation", 1, ("cnslib.supervised", "cnslib.training"))

# The base models.
PLAIN = Recipe("zoo", 1, ("cnslib.training", "cnslib.zoo"), (SCENES,))
AUGMENTED = Recipe("zoo-augmented", 1, (), (PLAIN, STRONG))
PRETRAINED = {
    "mae": Recipe("zoo-mae", 1, ("cnslib.finetuning", "cnslib.pretraining"), (AUGMENTED,)),
    "simclr": Recipe("zoo-simclr", 1, ("cnslib.finetuning", "cnslib.pretraining", "cnslib.selfsupervised"), (AUGMENTED,)),
    "web": Recipe("zoo-web", 1, ("cnslib.finetuning", "cnslib.pretraining"), (AUGMENTED,)),
    "clip": Recipe(
        "zoo-clip",
        1,
        ("cnslib.backbones", "cnslib.contrastive", "cnslib.diffusion", "cnslib.finetuning", "cnslib.pretraining"),
        (AUGMENTED, SHIFTS),
    ),
}
AUTOENCODER = Recipe("mini-sd-vae", 1, ("cnslib.autoencoder", "cnslib.training"), (SHIFTS,))
DIFFUSION = Recipe("mini-sd", 1, ("cnslib.diffusion", "cnslib.training"), (AUTOENCODER,))
CONTRASTIVE = Recipe("mini-clip", 1, ("cnslib.contrastive", "cnslib.diffusion", "cnslib.training"), (SHIFTS,))
SELFSUPERVISED = Recipe("mini-dino", 1, ("cnslib.selfsupervised", "cnslib.training"), (SHIFTS,))
ORACLE = Recipe("oracle", 1, (), (PLAIN, SHIFTS))

# The five steps.
TOKENS = Recipe("tokens", 1, ("cnslib.inversion",))
GIVEN_TOKENS = Recipe("given-tokens", 1, ("cnslib.provision", "cnslib.tokens"))
SAMPLES = Recipe("samples", 1, ("cnslib.models", "cnslib.samples"))
SLIDERS = Recipe("sliders", 1, ("cnslib.adapters", "cnslib.models", "cnslib.sliders"))
FAST_SLIDERS = Recipe("sliders-fast", 1, ("cnslib.descent", "cnslib.fastsliders"), (SLIDERS,))
RELEASED_SLIDERS = Recipe("sliders-released", 1, ("cnslib.descent", "cnslib.kohya", "cnslib.released"), (SLIDERS,))
GIVEN_SLIDERS = Recipe("given-sliders", 1, ("cnslib.kohya", "cnslib.provision"))
GENERATION = Recipe("generation", 1, ("cnslib.adapters", "cnslib.generation", "cnslib.models"))
FUSED = Recipe("generation-fused", 1, ("cnslib.fusion",), (GENERATION,))
HEALTH = Recipe("health", 1, ("cnslib.health",), (ENCODERS, GENERATION))
SLIDER_STRIPS = Recipe("slider-strips", 1, ("cnslib.health", "cnslib.sliderstrips"), (GENERATION,))
ALIGNMENT = Recipe("alignment", 1, ("cnslib.alignment",), (ENCODERS,))
EVALUATION = Recipe("evaluation", 1, ("cnslib.evaluation", "cnslib.feeding"), (CLASSIFIERS,))

# The further chapters.
CATALOG_ANSWERS = Recipe("evaluation-catalog", 1, ("cnslib.catalog",), (EVALUATION,))
CORRUPTIONS = Recipe("corruptions", 1, ("cnslib.catalog", "cnslib.corruptions"), (EVALUATION,))
CLOSEUPS = Recipe("closeups", 1, ("cnslib.closeups",), (GENERATION,))
CLOSEUP_ANSWERS = Recipe("closeup-answers", 1, (), (CLOSEUPS, EVALUATION))
ABLATION = Recipe("ablation", 1, ("cnslib.ablation",), (EVALUATION, HEALTH))
DIRECTIONS = Recipe("directions", 1, ("cnslib.directions", "cnslib.sliders"), (HEALTH,))
COMPOSITION = Recipe("composition", 1, ("cnslib.composition",), (DIRECTIONS,))
SIGHTS = Recipe("sights", 1, ("cnslib.rulers",), (ENCODERS,))
RULERS = Recipe("rulers", 1, (), (ALIGNMENT, SHIFTS, SIGHTS))
FINETUNED = Recipe("oodcv-classifiers", 1, ("cnslib.earlystopping",), (PLAIN, STRONG))
WEATHER = Recipe("oodcv-rendered", 1, ("cnslib.oodcv",), (CLASSIFIERS, FINETUNED, SHIFTS))
WEATHER_DRAWN = Recipe("oodcv-drawn", 1, ("cnslib.oodcvimages",), (ALIGNMENT, GENERATION, WEATHER))
SYNTHETIC = Recipe("synthetic", 1, ("cnslib.synthetic",), (PLAIN, SHIFTS, STRONG))
DENOISER = Recipe("denoiser", 1, ("cnslib.denoiser", "cnslib.pruning"))
CONTROLSHIFT = Recipe("controlshift", 1, ("cnslib.controlshift", "cnslib.latents", "cnslib.models"))
DEGRADATION = Recipe("degradation", 1, ("cnslib.lessons", "cnslib.smallnets"), (PLAIN, STRONG))
NEIGHBOURS = Recipe("neighbours", 1, ("cnslib.degradation", "cnslib.latentsets", "cnslib.neighbours"), (ENCODERS,))
DRAWN_BACKGROUNDS = Recipe("drawn-backgrounds", 1, ("cnslib.models", "cnslib.surroundings"), (SUBJECTS,))
CROSSING = Recipe("scenarios", 1, ("cnslib.crossing",), (CLASSIFIERS, SUBJECTS))
CROSSING_PHOTOGRAPHS = Recipe("scenarios-photographs", 1, (), (CROSSING, GUESTS, PHOTOGRAPHS))
WITHIN = Recipe("scenarios-within", 1, ("cnslib.within",), (PLAIN, STRONG, SUBJECTS))
SEGMENTATION = Recipe("segmentation", 1, ("cnslib.segmentation",), (PLAIN, STRONG, SUBJECTS))
SALIENCY = Recipe("saliency", 1, ("cnslib.saliency",), (GUESTS, PHOTOGRAPHS, SUBJECTS))
PHOTOS = Recipe("photos", 1, ("cnslib.imagenet", "cnslib.photos"), (EVALUATION, GUESTS, PHOTOGRAPHS, SHIFTS))


def every() -> dict[str, Recipe]:
    """All recipes by name. ValueError where two share a name."""
    found = [value for value in globals().values() if isinstance(value, Recipe)] + list(PRETRAINED.values())
    table = {recipe.name: recipe for recipe in found}
    if len(table) < len(found):
        raise ValueError(f"kinds: {len(found)} recipes with {len(table)} names; accepted: a name of its own for each")
    return table
