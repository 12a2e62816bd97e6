"""Scenes as mini-SD draws them again: what the judges of generated pictures learn from beside the renderer's own.

A rendered scene is encoded, mixed with noise and denoised under its own caption. At strength 0 it only goes through the VAE and back,
at 0.5 the last half of the steps are drawn anew, at 1 nothing of the scene is left but its caption (Meng et al. 2022, SDEdit).
A network that has seen rendered scenes alone takes the drawing's hand for a shift.
"""

import functools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file, save_file
from torch import Tensor

from cnslib.core import paths, recipes, seeds, units, workers
from cnslib.core.names import SHIFTS
from cnslib.core.settings.read import Run
from cnslib.core.settings.sections import Redrawing
from cnslib.models import text_to_image
from cnslib.world import scenes, training


@dataclass(frozen=True)
class Redrawn:
    """Pictures drawn again: class and shift of the caption, severity of the scene that was there before, its garment, the strength."""

    image: UInt8[Tensor, "n 3 64 64"]
    label: Int[Tensor, "n"]
    shift: Int[Tensor, "n"]
    severity: Float[Tensor, "n"]
    garment: Int[Tensor, "n"]
    strength: Float[Tensor, "n"]

    def within(self, highest: float) -> "Redrawn":
        """The pictures whose strength is not above `highest`."""
        return Redrawn(**{field.name: getattr(self, field.name)[self.strength <= highest] for field in fields(self)})

    @functools.cached_property
    def rows(self) -> list[Int[Tensor, "members"]]:
        """The rows of each caption, in the order of `diffusion.captions`."""
        caption = self.label * len(scenes.NAMES) + self.shift
        return [(caption == number).nonzero()[:, 0] for number in range(int(caption.max()) + 1)]


def make(
    pipe: StableDiffusionPipeline, garments: scenes.Garments, settings: Redrawing, *, pool: str, strengths: Sequence[float], cache: Path
) -> Redrawn:
    """So many pictures per caption and strength, cached in one file; each depends on (pool, caption, number, seed) and its strength.

    A killed run continues with the caption at which it was: those before have a file each, in a folder beside `cache`.
    """
    pairs = [(label, shift) for label in range(len(garments.classes)) for shift in range(len(scenes.NAMES))]
    files = [cache.with_suffix("") / f"{label:02d}-{shift:02d}.safetensors" for label, shift in pairs]

    def all_captions() -> dict[str, Tensor]:
        drawn = [(pipe, garments, settings, pool, *pair, strengths, file) for pair, file in zip(pairs, files, strict=True)]
        workers.each(draw_caption, [one for one in drawn if not one[-1].exists()], device=pipe.device, desc=f"redrawn {pool} scenes")
        parts = [load_file(file) for file in files]
        return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}

    data = training.cached(cache, all_captions)
    shutil.rmtree(cache.with_suffix(""), ignore_errors=True)
    return Redrawn(**data)


def draw_caption(
    pipe: StableDiffusionPipeline, garments: scenes.Garments, settings: Redrawing, pool: str, label: int, shift: int, strengths, file: Path
) -> None:
    """The pictures of one caption at all strengths, every other one of another style.

    They are drawn in bfloat16 where that is quicker: they are to learn from, and a grey level apart.
    """
    count, members, g = settings.per_caption, garments.rows(label), seeds.generator("redrawn", pool, label, shift, settings.seed)
    rows = members[torch.randint(len(members), (count,), generator=g)]
    severity = scenes.between(settings.severities, torch.rand(count, generator=g)) * (shift < len(SHIFTS))
    image, which = torch.empty(count, 3, 64, 64), torch.full((count,), shift)
    for start, style in enumerate(scenes.STYLES):
        own = list(range(start, count, len(scenes.STYLES)))
        keys = [("redrawn", pool, label, shift, settings.seed, number) for number in own]
        image[own] = scenes.batch(garments, rows[own], keys, style=style, shift=which[own], severity=severity[own]).image
    keys = [("redrawn", pool, label, shift, number, settings.seed) for number in range(count)]
    prompt, how = scenes.caption(garments.classes[label], scenes.NAMES[shift]), {"steps": settings.steps, "guidance": settings.guidance}
    with training.autocast(pipe.device):
        drawn = torch.cat([redraw(pipe, image, prompt, keys, strength=strength, **how) for strength in strengths])
    known = {"label": torch.full((count,), label), "shift": which, "severity": severity, "garment": rows}
    data = {name: value.repeat(len(strengths)) for name, value in known.items()}
    with units.atomic(file) as unfinished:
        save_file(data | {"image": drawn, "strength": torch.tensor(strengths).repeat_interleave(count)}, unfinished)


@torch.no_grad()
def redraw(
    pipe: StableDiffusionPipeline, image: Tensor, prompt: str, keys: list[tuple], *, strength: float, steps: int, guidance: float
) -> UInt8[Tensor, "n 3 side side"]:
    """Images in [0, 1] drawn again under one prompt: the last `strength` of the steps, from the noise of each image's key."""
    if not round(strength * steps):
        latents = pipe.vae.encode((image * 2 - 1).to(pipe.device)).latent_dist.mean * pipe.vae.config.scaling_factor
        return text_to_image.decode(pipe, latents).permute(0, 3, 1, 2).contiguous()
    drawer = StableDiffusionImg2ImgPipeline(**pipe.components, requires_safety_checker=False)
    drawer.set_progress_bar_config(disable=True)
    how = {"strength": strength, "num_inference_steps": steps, "guidance_scale": guidance, "generator": [seeds.generator(*k) for k in keys]}
    drawn = drawer([prompt] * len(image), image=image, output_type="pt", **how).images
    return (drawn * 255).round().to(torch.uint8).cpu()


def mixed(batch: scenes.Batch, redrawn: Redrawn, share: float, g: torch.Generator) -> scenes.Batch:
    """The batch with so large a share of its scenes, the first ones, replaced by others that were drawn again."""
    count = round(share * len(batch.label))
    return replaced(batch, slice(count), redrawn, torch.randint(len(redrawn.label), (count,), generator=g))


def same_captions(batch: scenes.Batch, redrawn: Redrawn, share: float, g: torch.Generator) -> scenes.Batch:
    """The batch with about so large a share of its scenes replaced by others of their captions."""
    places = (torch.rand(len(batch.label), generator=g) < share).nonzero()[:, 0]
    rows = [own[torch.randint(len(own), (), generator=g)] for own in (redrawn.rows[c] for c in batch.caption[places].tolist())]
    return replaced(batch, places, redrawn, torch.stack(rows) if rows else places)


def replaced(batch: scenes.Batch, places: slice | Tensor, redrawn: Redrawn, rows: Tensor) -> scenes.Batch:
    """The batch with some scenes replaced; a drawing's severity is NaN, unknown, where half or more of the steps were drawn again."""
    image, label, shift, severity = (part.clone() for part in (batch.image, batch.label, batch.shift, batch.severity))
    image[places] = redrawn.image[rows].to(image) / 255
    label[places], shift[places] = redrawn.label[rows], redrawn.shift[rows]
    severity[places] = torch.where(redrawn.strength[rows] < 0.5, redrawn.severity[rows], torch.nan)
    return scenes.Batch(image, label, shift, severity)


def place(run: Run, pool: str) -> Path:
    """The file of the pictures of one pool: others by another mini-SD or for other settings of notebook 25 do not lie there."""
    decided = recipes.REDRAWN, run.redrawing, run.base.classes, units.directory_digest(paths.MODELS / "mini-sd")
    return training.keyed(paths.CHECKPOINTS, f"redrawn-{pool}", *decided, ending=".safetensors")


def stored(path: Path, *, share: float) -> Redrawn | None:
    """The pictures of a file, where a share of a training is to be such. FileNotFoundError where they have not been made."""
    if share and not path.exists():
        raise FileNotFoundError(f"{path} does not exist; notebooks/world/25_redrawing.ipynb makes it")
    return Redrawn(**load_file(path)) if share else None
