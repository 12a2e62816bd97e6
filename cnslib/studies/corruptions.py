"""The fifteen corruptions of ImageNet-C (Hendrycks and Dietterich 2019, section 3.1) by severity, with the released code's parameters.

A corruption takes a picture in [0, 1], the generator that it may draw from, and its parameters in the order of `published/imagenet_c.csv`,
for pictures of 64 px (Tiny ImageNet-C) and of 224 px. Two things differ from the released code: the ice of its frost is drawn, since its
photographs are not ours to pass on; and blurs treat the rim by the rules of SciPy and NumPy.
"""

import io
import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8
from PIL import Image
from scipy.ndimage import affine_transform, convolve, gaussian_filter, map_coordinates
from skimage.color import hsv2rgb, rgb2hsv
from skimage.transform import AffineTransform
from skimage.util import random_noise

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.pictures import read
from cnslib.core.seeds import seed_of
from cnslib.core.settings.method import Evaluation
from cnslib.core.settings.sections import Corruptions, Photos
from cnslib.data import catalog, imagenet
from cnslib.method import evaluation
from cnslib.stats import bootstrap, ranking
from cnslib.studies import photos, shared
from cnslib.world import cutouts
from cnslib.world.cutouts import CutOut

Pixels = Float[np.ndarray, "side side 3"]
Map = Float[np.ndarray, "side side"]
Random = np.random.Generator
LARGE = 8  # a disk of a larger radius is softened over two pixels in place of one
LUMINANCE = (0.299, 0.587, 0.114)  # Rec. 601
TINT = (0.85, 0.95, 1.0)  # of drawn ice
NEEDLES, DENSITY = 6, 2.2  # directions of the needles; deviations above which a point grows one


def contrast(picture: Pixels, rng: Random, kept: float) -> Pixels:
    """Each channel drawn towards its mean over the picture, of whose distance this share is kept."""
    mean = picture.mean((0, 1))
    return mean + kept * (picture - mean)


def elastic_transform(picture: Pixels, rng: Random, strength: float, smoothness: float, reach: float) -> Pixels:
    """A picture bent by a smooth random field; then three corners of the middle third are pulled by up to `reach` pixels."""
    side = len(picture)
    fields = [gaussian_filter(rng.uniform(-1, 1, (side, side)), smoothness, mode="reflect", truncate=3) for _ in range(2)]
    bent = np.indices((side, side)) + strength * np.stack(fields)  # where each pixel looks
    corners = side // 2 + side // 3 * np.array([[1, 1], [1, -1], [-1, -1]], float)
    pulled = AffineTransform.from_estimate(corners + rng.uniform(-reach, reach, corners.shape), corners)
    places = pulled(bent.reshape(2, -1).T).T.reshape(2, side, side)
    return np.stack([map_coordinates(channel, places, order=1, mode="mirror") for channel in np.moveaxis(picture, -1, 0)], -1)


def pixelate(picture: Pixels, rng: Random, share: float) -> Pixels:
    """The picture at this share of its side, in blocks."""
    side = len(picture)
    small = max(1, int(side * share))
    image = Image.fromarray(np.rint(picture * 255).astype(np.uint8)).resize((small, small), Image.Resampling.BOX)
    return np.asarray(image.resize((side, side), Image.Resampling.BOX)) / 255


def jpeg(picture: Pixels, rng: Random, quality: float) -> Pixels:
    """The picture after Pillow's JPEG of this quality."""
    Image.fromarray(np.rint(picture * 255).astype(np.uint8)).save(buffer := io.BytesIO(), format="JPEG", quality=int(quality))
    return np.asarray(Image.open(buffer, formats=("JPEG",))) / 255


def defocus(picture: Pixels, rng: Random, radius: float, softness: float) -> Pixels:
    """A lens out of focus: a point becomes a disk with a softened edge."""
    margin = 2 if radius > LARGE else 1
    reach = math.floor(radius) + margin
    down, right = np.indices((2 * reach + 1, 2 * reach + 1)) - reach
    inside = (down**2 + right**2 <= radius**2).astype(float)
    disk = gaussian_filter(inside / inside.sum(), softness, radius=margin, mode="constant")
    return convolve(picture, disk[..., None], mode="mirror")


def glass(picture: Pixels, rng: Random, deviation: float, reach: float, rounds: float) -> Pixels:
    """Frosted glass: blurred, every pixel exchanged with a random one up to `reach` away, last to first, for some rounds, blurred again."""
    side, near = len(picture), int(reach)
    order, inner = list(range(side * side)), np.arange(side - near, near, -1)
    places = (inner[:, None] * side + inner).ravel()
    for _ in range(int(rounds)):
        down, right = rng.integers(-near, near, (2, len(places)))
        for place, other in zip(places.tolist(), (places + down * side + right).tolist(), strict=True):
            order[place], order[other] = order[other], order[place]
    blur = (deviation, deviation, 0)
    shuffled = gaussian_filter(picture, blur, mode="nearest").reshape(-1, 3)[order].reshape(picture.shape)
    return gaussian_filter(shuffled, blur, mode="nearest")


def smeared(picture: Pixels, angle: float, length: float, spread: float) -> Pixels:
    """Each pixel a mean of those ahead of it at this angle in degrees, up to twice the length away, with weights of half a Gaussian."""
    steps = np.arange(2 * int(length) + 1)
    weights = np.exp(-(steps**2) / (2 * spread**2))
    down, right = (np.rint(steps * turn(math.radians(angle))).astype(int) for turn in (math.sin, math.cos))
    rim, side = len(steps), len(picture)
    wide = np.pad(picture, [(rim, rim), (rim, rim), (0, 0)], mode="edge")
    parts = zip(weights / weights.sum(), rim + down, rim + right, strict=True)
    return sum(weight * wide[top : top + side, left : left + side] for weight, top, left in parts)


def zoom(picture: Pixels, rng: Random, end: float, step: float) -> Pixels:
    """A camera that comes nearer: the mean of the picture and of its enlargements from 1 up to `end`."""
    factors = np.arange(1, end, step)
    return (picture + sum(enlarged(picture, factor) for factor in factors)) / (len(factors) + 1)


def enlarged(picture: Pixels, factor: float) -> Pixels:
    """The middle of a picture at its full size, interpolated linearly."""
    centre = (len(picture) - 1) / 2 * (1 - 1 / factor)
    return affine_transform(picture, [1 / factor, 1 / factor, 1], [centre, centre, 0], order=1, mode="nearest")


def brightness(picture: Pixels, rng: Random, added: float) -> Pixels:
    """The value of every pixel raised by as much, its hue and saturation kept."""
    hue, saturation, value = np.moveaxis(rgb2hsv(picture), -1, 0)
    return hsv2rgb(np.stack([hue, saturation, np.clip(value + added, 0, 1)], -1))


def fog(picture: Pixels, rng: Random, thickness: float, decay: float) -> Pixels:
    """Clouds added, and the whole darkened so that its brightest value stays."""
    brightest = picture.max()
    return (picture + thickness * plasma(len(picture), rng, decay)[..., None]) * brightest / (brightest + thickness)


def plasma(side: int, rng: Random, decay: float) -> Map:
    """A fractal surface from 0 to 1, which repeats itself, by midpoint displacement: each new point is the mean of four, displaced.

    Displacements fall by the square of `decay` at each halving, as in the released code.
    """
    heights, swing = np.zeros((1, 1)), 1.0
    while len(heights) < side:
        fine, move = np.repeat(np.repeat(heights, 2, 0), 2, 1), swing * rng.uniform(-1, 1, (3, *heights.shape))
        below, right = np.roll(heights, -1, 0), np.roll(heights, -1, 1)
        middle = (heights + below + right + np.roll(below, -1, 1)) / 4 + move[0]
        fine[1::2, 1::2] = middle
        fine[::2, 1::2] = (heights + right + middle + np.roll(middle, 1, 0)) / 4 + move[1]
        fine[1::2, ::2] = (heights + below + middle + np.roll(middle, 1, 1)) / 4 + move[2]
        heights, swing = fine, swing / decay**2
    return ((heights - heights.min()) / np.ptp(heights))[:side, :side]


def frost(picture: Pixels, rng: Random, kept: float, added: float) -> Pixels:
    """A share of the picture and a share of drawn ice: a bluish cover of uneven thickness, with needles in a few directions."""
    side = len(picture)
    cover = 0.2 + 0.5 * plasma(side, rng, 1.5)
    for angle in rng.uniform(0, 360, NEEDLES):
        seeds = (rng.normal(size=(side, side, 1)) > DENSITY).astype(float)
        cover = cover + smeared(seeds, angle, side / 16, side / 16)[..., 0]
    return kept * picture + added * (np.clip(cover, 0, 1)[..., None] * TINT)


def snow(
    picture: Pixels, rng: Random, mean: float, spread: float, size: float, least: float, length: float, smear: float, kept: float
) -> Pixels:
    """A whitened picture behind falling flakes and the same flakes turned upside down; `size` enlarges flakes."""
    drawn = enlarged(rng.normal(mean, spread, (*picture.shape[:2], 1)), size)
    flakes = np.clip(np.where(drawn < least, 0, drawn), 0, 1)
    fallen = smeared(flakes, rng.uniform(-135, -45), length, smear)
    white = np.maximum(picture, 1.5 * (picture @ LUMINANCE)[..., None] + 0.5)
    return kept * picture + (1 - kept) * white + fallen + np.rot90(fallen, 2)


CONTRAST, JPEG = "contrast", "jpeg compression"
KINDS: dict[str, dict[str, Callable]] = {  # the four kinds of the paper, in its order
    "noise": {
        "gaussian noise": lambda picture, rng, deviation: picture + deviation * rng.normal(size=picture.shape),
        "shot noise": lambda picture, rng, photons: rng.poisson(picture * photons) / photons,  # so many of them in a white value
        "impulse noise": lambda picture, rng, share: random_noise(picture, mode="s&p", amount=share, rng=rng),  # values black or white
    },
    "blur": {
        "defocus blur": defocus,
        "glass blur": glass,
        "motion blur": lambda picture, rng, length, spread: smeared(picture, rng.uniform(-45, 45), length, spread),  # mostly sideways
        "zoom blur": zoom,
    },
    "weather": {"snow": snow, "frost": frost, "fog": fog, "brightness": brightness},
    "digital": {CONTRAST: contrast, "elastic transform": elastic_transform, "pixelate": pixelate, JPEG: jpeg},
}
EFFECTS = {name: effect for kind in KINDS.values() for name, effect in kind.items()}
Levels = dict[str, dict[float, tuple[float, ...]]]
Pictures = UInt8[np.ndarray, "images height width 3"]
TINY = 1e-6  # a value that rounding has put just below a whole number is that number


def published(side: int) -> Levels:
    """For each corruption its parameters by severity, 1 to 5, for pictures of this side. ValueError for a side without parameters."""
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv", dtype={"parameters": str})
    demand(side in set(table["side"]), "corruptions: side", side, ", ".join(map(str, sorted(set(table["side"])))))
    rows = table[table["side"] == side].set_index(["corruption", "severity"])["parameters"]
    numbers = rows.map(lambda text: tuple(float(number) for number in text.split()))
    return {name: {float(severity): parameters for severity, parameters in numbers[name].items()} for name in EFFECTS}


def levels(settings: Corruptions) -> Levels:
    """The same with the further levels of contrast, in ascending order of severity."""
    graded = published(settings.side)
    between = zip(settings.contrast_severities, [(value,) for value in settings.contrast], strict=True)
    return graded | {CONTRAST: dict(sorted((graded[CONTRAST] | dict(between)).items()))}


def corrupt(name: str, pictures: Pictures, parameters: tuple[float, ...], *, keys: list[tuple]) -> Pictures:
    """Some pictures under one corruption, cut off to 8 bits as ImageNet-C does; `keys` (class, seed) seed the draws of each picture."""
    given = ((picture / 255, np.random.default_rng(seed_of(name, *key))) for picture, key in zip(pictures, keys, strict=True))
    made = np.stack([EFFECTS[name](*inputs, *parameters) for inputs in given])
    return (np.clip(made, 0, 1) * 255 + TINY).astype(np.uint8)


# Predictions: every classifier on the catalog, ImageNet classifiers on the photo set (supplement D and E). The corruption is the shift, its
# severity the scale. The photo set's objects stand in their unshifted scenes of 256 px, and corruptions take the parameters of 224 px.

SIDE = 224  # the parameters of photographs


def originals(pictures: Path, classes: list[str], count: int, *, side: int) -> tuple[pd.DataFrame, Pictures]:
    """The first held-out pictures of each class of the catalog, centred squares at this side: their class and seed, and the pictures."""
    by_class = [(name, seeds[:count], images[:count]) for name, seeds, images in catalog.whole(pictures, "heldout", classes)]
    rows = pd.DataFrame([(name, seed) for name, seeds, _ in by_class for seed in seeds], columns=["class", "seed"])
    return rows, np.stack([catalog.square(picture, side) for _, _, images in by_class for picture in images])


def evaluate(
    pictures: Path, classes: list[str], *, labels: list[str], settings: Corruptions, classifiers: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """Makes the tables of predictions that are missing or outdated, one per classifier; a killed run keeps the finished ones."""
    evaluation.require_labels(classes, labels)
    graded = levels(settings)
    listed = [[name, *by_severity.items()] for name, by_severity in graded.items()]
    contents = [catalog.digest(pictures, "heldout", classes), settings.images, settings.side, listed]

    def batches() -> Iterator[evaluation.Batch]:
        for keys, made in corrupted(*originals(pictures, classes, settings.images, side=settings.side), graded):
            yield from evaluation.array_batches(keys, made, size=classifiers.batch_size)

    return evaluation.answered(
        recipes.CORRUPTIONS, contents, batches, labels=labels, settings=classifiers, device=device, folder=folder, desc="corruptions"
    )


def evaluate_official(
    pictures: Path, classes: list[str], *, labels: list[str], settings: Corruptions, classifiers: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """The same for ImageNet-C's own JPEGs of the catalog's first pictures of each class, under each corruption that lies there."""
    evaluation.require_labels(classes, labels)
    groups = official(paths.resolve(settings.official), pictures, classes, settings.images)
    contents = [[*key, [units.file_digest(file) for file in files]] for *key, files in groups]

    def batches() -> Iterator[evaluation.Batch]:
        for shift, severity, name, files in groups:
            rows = pd.DataFrame({"shift": shift, "class": name, "seed": range(len(files)), "scale": severity})
            yield from evaluation.array_batches(rows, [read(file, str(file)) for file in files], size=classifiers.batch_size)

    how: dict = {"labels": labels, "settings": classifiers, "device": device, "folder": folder, "desc": "ImageNet-C"}
    return evaluation.answered(recipes.CORRUPTIONS, contents, batches, **how)


def official(root: Path, pictures: Path, classes: list[str], count: int) -> list[tuple[str, float, str, list[Path]]]:
    """The files of ImageNet-C: corruption, severity, class, and its pictures in the order of the catalog's."""
    names = [name for name in EFFECTS if (root / identifier(name)).is_dir()]
    if not names:
        raise FileNotFoundError(
            f"corruptions.official: {root} has no folder {identifier(next(iter(EFFECTS)))}, nor any other of ImageNet-C"
        )
    groups = []
    for name, severity, label in itertools.product(names, range(1, 6), classes):
        folder = imagenet.class_folder(root / identifier(name) / str(severity), label)
        wanted = sorted(file.stem for file in catalog.class_folder(pictures, "heldout", label).iterdir())[:count]
        files = [folder / f"{stem}.JPEG" for stem in wanted]
        if gone := [file for file in files if not file.is_file()]:
            raise FileNotFoundError(f"corruptions.official: {gone[0]} does not exist; accepted: the pictures of {pictures}")
        groups.append((name, float(severity), label, files))
    return groups


def corrupted(rows: pd.DataFrame, plain: Pictures, graded: Levels) -> Iterator[tuple[pd.DataFrame, Pictures]]:
    """The originals (shift "unshifted", scale 0), then every corruption at every severity: the key of each picture, and the pictures."""
    keys = list(rows[["class", "seed"]].itertuples(index=False, name=None))
    yield rows.assign(shift=UNSHIFTED, scale=0.0), plain
    for name, by_severity in graded.items():
        for severity, parameters in by_severity.items():
            yield rows.assign(shift=name, scale=severity), corrupt(name, plain, parameters, keys=keys)


def chosen(settings: Corruptions, shown: Photos) -> list[CutOut]:
    """So many of the photo set's cut-outs, evenly spaced, since neighbours are alike. ValueError for more than there are."""
    objects = photos.chosen(shown)
    demand(settings.cutouts <= len(objects), "corruptions.cutouts", settings.cutouts, f"at most photos.cutouts, {len(objects)}")
    return [objects[place * len(objects) // settings.cutouts] for place in range(settings.cutouts)]


def evaluate_photographs(*, settings: Corruptions, shown: Photos, device: str, folder: Path) -> pd.DataFrame:
    """Every classifier's predictions for the photo set, a table for each corruption and one for the pictures as they are."""
    objects = chosen(settings, shown)
    graded: Levels = {UNSHIFTED: {}, **published(SIDE)}
    keys = [(cutout.label, cutout.seed) for cutout in objects]
    inputs = [shared.digests(shown.classifiers), units.directory_digest(paths.PHOTOS), keys, shown.seed]
    stamps = {name: recipes.CORRUPTED_PHOTOGRAPHS.stamp(name, list(by_severity.items()), *inputs) for name, by_severity in graded.items()}
    rows = partial(photographs_under, shown=shown, device=device)
    return workers.stored(stamps, rows, tables.predictions, device=device, folder=folder, common=lambda: [objects])


def photographs_under(name: str, objects: list[CutOut], *, shown: Photos, device: str) -> pd.DataFrame:
    """The predictions of all classifiers under one corruption; the pictures of one object are one batch."""
    judges, parts = shared.judges(shown.classifiers, list(imagenet.labels()), device), []
    graded = {} if name == UNSHIFTED else {name: published(SIDE)[name]}  # before its batches comes the picture as it is
    for cutout in objects:
        rows = pd.DataFrame([(cutout.label, cutout.seed)], columns=["class", "seed"])
        batches = list(corrupted(rows, cutouts.shifted(cutout, UNSHIFTED, [0.0], seed=shown.seed), graded))[len(graded) :]
        keys, pictures = pd.concat([keys for keys, _ in batches], ignore_index=True), np.concatenate([made for _, made in batches])
        parts += [evaluation.predictions(judge, keys, judge.logits(pictures)) for judge in judges]
    return pd.concat(parts, ignore_index=True)


def common(predictions: pd.DataFrame) -> pd.DataFrame:
    """The rows of the severities that all corruptions have: ImageNet-C's five, and the originals."""
    severities = [set(part["scale"]) for name, part in predictions.groupby("shift", observed=True) if name != UNSHIFTED]
    return predictions[predictions["scale"].isin({0.0, *set.intersection(*severities)})]


def reversals(values: Float[np.ndarray, "resamples+1 conditions models"], models: list[str]) -> pd.DataFrame:
    """For each pair of models the p value, after Holm, of one being better under one condition and the other under another.

    That of two conditions is the larger of their one-sided ones (`ranking.wald`); the least over the conditions is returned.
    """
    first, second = np.triu_indices(len(models), 1)
    difference = values[..., second] - values[..., first]
    p, sign = ranking.wald(difference) / 2, np.sign(difference[0])
    one, other = np.triu_indices(values.shape[1], 1)
    both = np.where(sign[one] * sign[other] < 0, np.maximum(p[one], p[other]), 1.0)
    corrected = bootstrap.holm(pd.Series(both.ravel())).reshape(both.shape)
    names = np.array(models, object)
    return pd.DataFrame({"first": names[first], "second": names[second], "p_holm": corrected.min(0)})
