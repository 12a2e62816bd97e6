"""Objects with exact masks in their scenes, and foreground and background scenarios of them (XIMAGENET-12, section 3.1).

Objects are garments of the mini world and the photo set's cut-outs. A subject also knows another background without any object. The paper
sends transparent images to Stable Diffusion XL; here the base model repaints what the mask leaves free (inpainting), as diffusers' pipeline
does for a UNet without extra channels, which itself accepts latents of four channels alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from PIL import Image as Raster
from PIL import ImageOps
from scipy.ndimage import gaussian_filter, grey_dilation, grey_erosion
from torch import Tensor

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.pictures import opened, read
from cnslib.core.settings.sections import Scenarios
from cnslib.data import catalog, imagenet
from cnslib.models import text_to_image
from cnslib.studies import pools
from cnslib.world import cutouts, scenes

# Scenarios of an image with values in [0, 1] and its mask: 1 on the object, 0 on the background and between at a soft edge. Severity 0 is
# the image itself and 1 the scenario as published. What a scenario does not change keeps its bits: outside the object, or inside.

Image = Float[np.ndarray, "height width 3"]
Mask = Float[np.ndarray, "height width"]

SIGMA, RADIUS = 3.0, 7  # a 15 x 15 Gaussian, as in the released code
BANDS = {"red": [(0, 29), (150, 180)], "green": [(30, 89)], "blue": [(90, 149)]}  # hues in units of two degrees, as in the released code
RAINBOW = 90  # largest shift of the hue in the same unit, as in the released code
SATURATION = 0.8  # at least, of a coloured background: ours. The released code keeps it, and on a pale ground a hue is hardly seen
GREY = np.array([0.299, 0.587, 0.114])  # luma, Rec. 601
GAIN, LIFT, SHARPEN = 1.5, 0.1, 1.0  # brightness is ours: the paper gives no amounts, and those of the released code saturate

COLOURS = ("grey", *BANDS, "rainbow")
DRAWN, SUMMED = "drawn background", "summed background"  # the second is the random background of the released code
COMPOSED = ("random background", DRAWN)
NAMES = (*COLOURS, "bright background", "bright object", "blurred background", "blurred object", "segmented", *COMPOSED)  # keep a part
UNDRAWN = tuple(name for name in NAMES if name != DRAWN)  # those that need no text-to-image model
FOLDERS = {  # as the released code writes them, and Tables 2 and 3 name what no released code writes
    "grey": "image_grey",
    "red": "image_r",
    "green": "image_g",
    "blue": "image_b",
    "rainbow": "image_rainbow",
    "blurred background": "blur_background",
    "blurred object": "blur_object",
    "segmented": "segmented_image",
    "random background": "random_background",
    DRAWN: "generated_background",
}
TABLE1 = ("blurred background", "blurred object", "green", "blue", "grey", "red", "random background", "segmented")  # in its order


def scenario(name: str, image: Image, mask: Mask, severity: float, *, generator: Any = None, background: Any = None) -> Image:
    """An image under a scenario of `NAMES`, or under `SUMMED` (section 3.1); colours, which draw from the generator, change the background.

    `background`, of the same size, is the random picture or the one drawn around the object. `SUMMED` is the saturating sum of object and
    new background, as the released code has it.
    """
    if name == SUMMED:
        return np.clip(scenario("segmented", image, mask, severity) + severity * background, 0, 1) if severity else image
    if name == "grey":
        changed = mixed(image, np.repeat((image @ GREY)[..., None], 3, axis=-1), severity)
    elif name in COLOURS:
        changed = coloured(image, name, severity, generator)
    elif name == "segmented":
        changed = mixed(image, np.zeros_like(image), severity)
    elif name in COMPOSED:
        changed = mixed(image, background, severity)
    else:
        changed = (bright if name.startswith("bright") else blur)(image, severity)
    cover = (mask if name.endswith("object") else 1 - mask)[..., None]
    return np.where(cover > 0, cover * changed + (1 - cover) * image, image)


def coloured(image: Image, colour: str, severity: float, generator: np.random.Generator) -> Image:
    """Towards one random hue of a band, or for the rainbow all hues turned by one angle; value stays, saturation at least `SATURATION`."""
    hues, saturation, value = np.moveaxis(rgb_to_hsv(image), -1, 0)
    if colour == "rainbow":
        hues = (hues + generator.uniform(0, RAINBOW) / 180) % 1
    else:
        low, high = BANDS[colour][generator.integers(len(BANDS[colour]))]
        hues = np.full_like(hues, generator.uniform(low, high) / 180)
    return mixed(image, hsv_to_rgb(np.stack([hues, np.maximum(saturation, SATURATION), value], axis=-1)), severity)


def bright(image: Image, severity: float) -> Image:
    """Brighter and sharper: a weighted sum, then unsharp masking."""
    lifted = np.clip(GAIN * image + LIFT, 0, 1)
    return mixed(image, np.clip(lifted + SHARPEN * (lifted - blur(lifted, 1.0)), 0, 1), severity)


def blur(image: Image, severity: float) -> Image:
    """Blurred by a Gaussian whose width grows with the severity."""
    return gaussian_filter(image, SIGMA * severity, radius=RADIUS, axes=(0, 1)) if severity else image


def mixed(image: Image, changed: Image, severity: float) -> Image:
    """On the way from an image to a changed one; the image itself at severity 0, the changed one at 1, both bit for bit."""
    return image if severity == 0 else changed if severity == 1 else (1 - severity) * image + severity * changed


def rough(mask: Mask, share: float) -> Mask:
    """A mask whose edge lies further out by a share of the longer side, or further in where that is below 0 (Fig. 6)."""
    radius = round(abs(share) * max(mask.shape))
    disk = np.hypot(*np.mgrid[-radius : radius + 1, -radius : radius + 1]) <= radius
    return (grey_dilation if share > 0 else grey_erosion)(mask, footprint=disk)


# Subjects: objects in their scenes.

CHUNK = 12  # pictures per pipeline call
SIDE = 224  # px of published pictures
Pictures = UInt8[np.ndarray, "images height width 3"]
ENDS = [0.0, 1.0]  # an image without a scenario, and at its end


@dataclass(frozen=True)
class Subject:
    """One object in its scene, the exact mask, another empty background, and, where there is one, a scene drawn around the object."""

    label: str
    seed: int
    image: Image
    mask: Mask
    other: Image
    drawn: Image | None = None


def subject(label: str, seed: int, image: Float[Tensor, "3 h w"], mask: Float[Tensor, "1 h w"], other: Float[Tensor, "3 h w"]) -> Subject:
    """With channels last, in double precision."""
    scene, background = (one.clamp(0, 1).permute(1, 2, 0).double().numpy() for one in (image, other))
    return Subject(label, seed, scene, mask[0].clamp(0, 1).double().numpy(), background)


def garments(pool: scenes.Garments, part: str, classes: list[str], *, count: int, seed: int) -> list[Subject]:
    """The first `count` garments of each class as catalog scenes, each with a web scene's background. ValueError for a class with fewer."""
    subjects = []
    for name in classes:
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[:count]
        demand(len(rows) == count, "images", count, f"at most {len(rows)}, the garments of class {name!r} in pool {part!r}")
        keys = [("scenarios", part, name, seed, number) for number in range(count)]
        scene = scenes.scenes(pool.grey[rows], scenes.draw(keys), style="catalog")
        others = scenes.backdrop(scenes.draw([(*key, "other") for key in keys]), scene.image.shape[-1], wide=1.0)
        subjects += [subject(name, number, scene.image[number], scene.mask[number], others[number]) for number in range(count)]
    return subjects


def published(root: Path, classes: list[str], *, first: int, count: int) -> list[Subject]:
    """Squares of XIMAGENET-12's tree (image/<wnid>/<stem>.JPEG, masks/<wnid>/<stem>.png): of each class `count` from the `first` on.

    A mask is the object wherever it is not 0, since some hold label numbers. Pictures without a mask do not count. The other background
    is a picture of the next class.
    """
    by_class: dict[str, list[tuple[Image, Mask]]] = {}
    for name in classes:
        folder = imagenet.class_folder(root / "image", name)
        pairs = [(file, root / "masks" / folder.name / f"{file.stem}.png") for file in sorted(folder.iterdir())]
        whole = [pair for pair in pairs if pair[1].is_file()][first : first + count]
        what = f"scenarios.tree: {folder}, pictures with a mask in {root / 'masks' / folder.name} from number {first} on"
        demand(len(whole) == count, what, len(whole), f"{count} or more")
        by_class[name] = [squares(*pair) for pair in whole]
    others = dict(zip(classes, [*classes[1:], classes[0]], strict=True))
    return [Subject(name, first + i, *pair, by_class[others[name]][i][0]) for name in classes for i, pair in enumerate(by_class[name])]


def squares(file: Path, mask: Path) -> tuple[Image, Mask]:
    """A picture and its mask, cropped and resized alike."""
    picture = read(file, str(file))
    with opened(mask, str(mask)) as stored:
        values = np.asarray(stored if stored.mode in ("1", "L", "P", "I", "I;16") else stored.convert("L")) != 0
    fits = values.shape == picture.shape[:2] and values.any()
    demand(fits, f"scenarios.tree: {mask}", values.shape, f"{picture.shape[:2]} as its picture, with an object")
    cut = ImageOps.fit(Raster.fromarray(values.astype(np.uint8)), (SIDE, SIDE), Raster.Resampling.NEAREST)
    return catalog.square(picture, SIDE) / 255, np.asarray(cut, float)


def photographs(folder: Path, *, count: int, seed: int, rows: Sequence[int] | None = None) -> list[Subject]:
    """The first cut-outs of the photo set, or some rows of these, in their scenes; the other background is empty scenery."""
    objects = cutouts.read(folder, count=count)
    demand(len(objects) == count, "photographs", count, f"at most {len(objects)}, which is what {folder} holds")
    subjects = []
    for one in objects if rows is None else [objects[row] for row in rows]:
        scene, draws = cutouts.scene(one, seed=seed)[0], scenes.draw([("scenarios", seed, one.label, one.seed, "other")])
        other = cutouts.background(draws, cutouts.SIDE, cutouts.EMPTY)
        subjects.append(subject(one.label, one.seed, scene.image[0], scene.mask[0], other[0]))
    return subjects


def spread(folder: Path, *, count: int, seed: int) -> list[Subject]:
    """So many photographs, spread evenly over the photo set, which is in the order of ImageNet's classes."""
    there = len(cutouts.contents(folder))
    demand(count <= there, "segmentation.photographs", count, f"at most {there}, as {folder} has")
    return photographs(folder, count=there, seed=seed, rows=np.linspace(0, there - 1, count).round().astype(int).tolist())


def shown(subject: Subject, name: str, severity: float, *, seed: int) -> UInt8[np.ndarray, "height width 3"]:
    """One picture: a subject under a scenario, or "unshifted". Its random hue belongs to (seed, scenario, class, number)."""
    if name == UNSHIFTED:
        return rounded(subject.image)
    generator = np.random.default_rng(seeds.seed_of("scenarios", seed, name, subject.label, subject.seed))
    background = subject.drawn if name == DRAWN else subject.other
    return rounded(scenario(name, subject.image, subject.mask, severity, generator=generator, background=background))


def rounded(image: Image) -> UInt8[np.ndarray, "height width 3"]:
    """An image in [0, 1] as bytes."""
    return (image.clip(0, 1) * 255).round().astype(np.uint8)


def keys(subject: Subject, severities: list[float]) -> pd.DataFrame:
    """The key of every state of a subject: the original once (severity 0), then each scenario (`shift`) at each severity (`scale`)."""
    names = UNDRAWN if subject.drawn is None else NAMES
    states = [(UNSHIFTED, 0.0), *((name, severity) for name in names for severity in severities if severity > 0)]
    return pd.DataFrame([(name, subject.label, subject.seed, severity) for name, severity in states], columns=tables.KEY)


def pictures(subject: Subject, severities: list[float], *, seed: int) -> Pictures:
    """A subject in the states of `keys`."""
    rows = keys(subject, severities)
    return np.stack([shown(subject, name, severity, seed=seed) for name, severity in zip(rows["shift"], rows["scale"], strict=True)])


@dataclass(frozen=True)
class Experiment:
    """What all experiments on garments, or on published pictures, share: settings, classes, labels of outputs, what and where is drawn."""

    settings: Scenarios
    classes: list[str]
    labels: list[str]
    pipeline: Path
    device: str
    folder: Path

    @property
    def digest(self) -> str:
        """What the drawn scenes depend on besides their class, the recipe included: predictions for them depend on it, too."""
        if self.settings.tree:
            root = paths.resolve(self.settings.tree)
            wnids = [imagenet.wnids()[imagenet.index(name)] for name in self.classes]
            return units.digest([units.directory_digest(root / part / wnid) for wnid in wnids for part in ("image", "masks")])
        drawn = [self.settings.images, self.settings.drawing_steps, self.settings.guidance, self.settings.seed]
        return units.digest(recipes.DRAWN_BACKGROUNDS, drawn, units.directory_digest(self.pipeline))

    def subjects(self, part: str, count: int) -> list[Subject]:
        """The first garments of every class from one pool, or published pictures, held-out ones last; without drawn scenes."""
        if self.settings.tree:
            first = self.settings.training_images if part == "heldout" else 0
            return published(paths.resolve(self.settings.tree), self.classes, first=first, count=count)
        return garments(pools.garments(self.classes, part), part, self.classes, count=count, seed=self.settings.seed)

    def garments(self) -> list[Subject]:
        """The first held-out garments of every class, each with the scene drawn around it; draws what is missing, around garments alone."""
        subjects = self.subjects("heldout", self.settings.images)
        if self.settings.tree:
            return subjects
        stamps = {name: recipes.DRAWN_BACKGROUNDS.stamp(name, self.digest) for name in self.classes}
        rows = workers.stored(stamps, self.draw, tables.images, device=self.device, folder=self.folder, common=lambda: [subjects])
        drawn = dict(zip(zip(rows["class"], rows["seed"], strict=True), tables.pictures(rows, DRAWN), strict=True))
        return [replace(subject, drawn=drawn[subject.label, subject.seed] / 255) for subject in subjects]

    def draw(self, name: str, subjects: list[Subject]) -> pd.DataFrame:
        """The scenes around the subjects of one class."""
        pipe, of_class = text_to_image.load_pipeline(self.pipeline, self.device), [one for one in subjects if one.label == name]
        parts = [draw(pipe, of_class[start : start + CHUNK], settings=self.settings) for start in range(0, len(of_class), CHUNK)]
        rows = pd.DataFrame([(DRAWN, name, one.seed, 1.0) for one in of_class], columns=tables.KEY)
        return rows.assign(image=[tables.encode(picture) for part in parts for picture in part.numpy()])


@torch.no_grad()
def draw(pipe: StableDiffusionPipeline, subjects: list[Subject], *, settings: Scenarios) -> UInt8[Tensor, "images height width 3"]:
    """Scenes drawn from pure noise around some objects, prompted by their class; the noise belongs to (class, number, seed)."""
    image = torch.from_numpy(np.stack([subject.image for subject in subjects])).permute(0, 3, 1, 2).float().to(pipe.device)
    clean = pipe.vae.encode(2 * image - 1).latent_dist.mode() * pipe.vae.config.scaling_factor
    mask = torch.from_numpy(np.stack([subject.mask for subject in subjects]))[:, None].float().to(pipe.device)
    kept = (F.adaptive_avg_pool2d(mask, clean.shape[-2:]) > 0.5).float()
    noises = [("scenarios", settings.seed, "drawn", subject.label, subject.seed) for subject in subjects]
    noise = torch.cat([torch.randn((1, *clean.shape[1:]), generator=seeds.generator(*key)) for key in noises]).to(pipe.device)
    words = text_to_image.embed(pipe, [""] * len(subjects) + [scenes.caption(subject.label) for subject in subjects])
    return text_to_image.decode(pipe, repaint(pipe, clean, kept, noise, words, settings=settings))


def repaint(pipe: StableDiffusionPipeline, clean: Tensor, kept: Tensor, noise: Tensor, words: Tensor, *, settings: Scenarios) -> Tensor:
    """Latents denoised where they are free; where they are kept, the known ones enter every step at its noise level."""
    pipe.scheduler.set_timesteps(settings.drawing_steps)
    latents = noise * pipe.scheduler.init_noise_sigma
    for step in pipe.scheduler.timesteps:
        latents = kept * pipe.scheduler.add_noise(clean, noise, step[None]) + (1 - kept) * latents
        without, conditional = pipe.unet(torch.cat([latents] * 2), step, encoder_hidden_states=words).sample.chunk(2)
        latents = pipe.scheduler.step(without + settings.guidance * (conditional - without), step, latents).prev_sample
    return kept * clean + (1 - kept) * latents
