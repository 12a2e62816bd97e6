"""One order and one look of shifts, families and classifiers, the same in every figure of a notebook; `figures.use_style` fixes them."""

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping

import seaborn as sns
from matplotlib.colors import to_rgb

MARKERS = "osD^vPX"
YELLOW, OLIVE = 8, (0.62, 0.57, 0.05)  # the palette's yellow cannot be read on white
DARKENED, DARKER = (0, 2, 3, 4, 7), 0.55  # five of its ten colours once more, with a share of black: the paper has fourteen shifts
PALEST = 0.7  # share of white in the first classifier of a family; the last has the family's own colour
PLACES = 105  # looks that can be distinguished
FIXED: dict[str, dict] = {}  # the look of each name, in the order of the figures
DISPLAYED = {  # classifiers and detectors, as figures write them
    "alexnet": "AlexNet", "resnet": "ResNet", "resnet20": "ResNet-20", "resnext": "ResNeXt", "regnet": "RegNet", "densenet": "DenseNet",
    "vgg": "VGG", "convnext": "ConvNeXt", "vit": "ViT", "deit": "DeiT", "mixer": "MLP-Mixer", "svm": "SVM", "vmamba": "VMamba",
    "web": "ViT, web", "mae": "MAE", "mae_probe": "MAE, probe", "simclr": "SimCLR",
    "clip_zero_shot": "CLIP, zero-shot", "clip_probe": "CLIP, probe",
    "clip_finetuned": "CLIP, fine-tuned", "denoiser_l1": "diffusion, L1", "denoiser_l2": "diffusion, L2", "clip_class": "CLIP: class",
    "clip_class_shift": "CLIP: class in shift", "clip_reference": "CLIP: unshifted image", "image_reference": "DINO: unshifted image",
    "squeezenet": "SqueezeNet", "lite0": "EfficientNet-Lite0", "lite1": "EfficientNet-Lite1", "lite2": "EfficientNet-Lite2",
}  # fmt: skip


def displayed(name: str) -> str:
    """A name as figures write it: "ViT-S" for vit_s; one that we don't know as it is."""
    family, _, size = name.rpartition("_")
    return f"{DISPLAYED[family]}-{size.upper()}" if size in ("xs", "s", "m", "l") and family in DISPLAYED else DISPLAYED.get(name, name)


def families(models: Iterable[str], members: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Family and classifiers, every classifier in one family, in the order of the classifiers; one of no family is one by itself."""
    owner = {model: family for family, names in members.items() for model in names}
    grouped: dict[str, list[str]] = {}
    for model in models:
        grouped.setdefault(owner.get(model, model), []).append(model)
    return grouped


def fix(*, shifts: Iterable[str], grouped: Mapping[str, list[str]]) -> None:
    """Fixes order and look of shifts, and of families with their classifiers, in place of what was fixed before."""
    FIXED.clear()
    FIXED.update({shift: look(place) for place, shift in enumerate(shifts)})
    for place, (family, models) in enumerate(grouped.items()):
        for number, model in enumerate(models):
            paleness = PALEST * (1 - (number + 1) / len(models))
            colour = tuple(part + (1 - part) * paleness for part in to_rgb(look(place)["color"]))
            FIXED[model] = {"color": colour, "marker": MARKERS[(place + number) % len(MARKERS)]}
        FIXED[family] = look(place) if family not in models else FIXED[family] | {"color": look(place)["color"]}


def look(place: int) -> dict:
    """The colour and marker of a place, fifteen and seven of them: of PLACES names no two are alike."""
    colours = sns.color_palette("colorblind")
    colours[YELLOW] = OLIVE
    colours += [tuple((1 - DARKER) * part for part in colours[number]) for number in DARKENED]
    return {"color": colours[place % len(colours)], "marker": MARKERS[place % len(MARKERS)]}


def ordered(names: Iterable[str]) -> list[str]:
    """The names once each: those without a fixed place as they come, then the others in the fixed order."""
    names = dict.fromkeys(names)
    return [*itertools.filterfalse(FIXED.__contains__, names), *filter(names.__contains__, FIXED)]


def looks(names: Iterable[str]) -> dict[str, dict]:
    """Colour and marker of each name; one without a fixed look takes, in their order, what no other has, a colour of its own if any."""
    names = set(names)
    unfixed, fixed_looks = sorted(names - FIXED.keys()), {name: fixed for name, fixed in FIXED.items() if name in names}
    if not unfixed:
        return fixed_looks
    taken = [fixed["color"] for fixed in fixed_looks.values()]
    free = sorted(
        (look(place) for place in range(PLACES) if look(place) not in fixed_looks.values()), key=lambda one: one["color"] in taken
    )
    return dict(zip(unfixed, itertools.cycle(free), strict=False)) | fixed_looks


@contextlib.contextmanager
def pinned(names: Iterable[str]) -> Iterator[None]:
    """Names without a fixed look keep one and the same within the block, whichever of them are drawn together."""
    before = dict(FIXED)
    FIXED.update(looks(names))
    try:
        yield
    finally:
        FIXED.clear()
        FIXED.update(before)
