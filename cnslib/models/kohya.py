"""Sliders in the authors' released layout (kohya-like keys in a .pt file), as our adapter files; `exports` has the way back.

The released code names a module `lora_unet_` plus its path with underscores for dots and scales it by alpha / rank.
"""

import collections
import math
from pathlib import Path

from diffusers import UNet2DConditionModel

from cnslib.core.names import demand, identifier
from cnslib.models import adapters
from cnslib.models.weights import read_weights, require_same, shapes

ALPHA, DOWN, UP = "alpha", "lora_down.weight", "lora_up.weight"


def stems(unet: UNet2DConditionModel) -> dict[str, str]:
    """The released name of each module to adapt, with the module's own path: the name alone does not tell which underscores were dots."""
    names = [key.removeprefix("unet.").removesuffix(".lora_A.weight") for key in adapters.factor_shapes(unet, 1) if "lora_A" in key]
    return {"lora_unet_" + name.replace(".", "_"): name for name in names}


def released_shapes(unet: UNet2DConditionModel, rank: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a released file of this rank for a UNet without adapter."""
    ours = adapters.factor_shapes(unet, rank)
    parts = {ALPHA: "", DOWN: "lora_A", UP: "lora_B"}
    return {f"{stem}.{part}": ours.get(f"unet.{name}.{of}.weight", ()) for stem, name in stems(unet).items() for part, of in parts.items()}


def import_slider(unet: UNet2DConditionModel, source: Path, target: Path, *, entries: dict[str, str]) -> None:
    """Writes a released file as an adapter file of ours, in the types it came in, with the header `entries` (shift, class, base ...)."""
    weights = read_weights(source)
    ranks = collections.Counter(value.shape[0] for key, value in weights.items() if key.endswith(DOWN) and value.ndim)
    rank = max(ranks, key=lambda one: ranks[one], default=0)  # of most modules
    accepted = "alpha and both factors of each module to adapt, all of one rank, and nothing else"
    require_same(shapes(weights), released_shapes(unet, rank), f"slider {source} does not fit this UNet", accepted)
    alphas = sorted({value.item() for key, value in weights.items() if key.endswith(f".{ALPHA}")})
    demand(len(alphas) == 1 and 0 < alphas[0] < math.inf, f"slider {source}: alpha", alphas[:3], "one positive number for all modules")
    parts = {"lora_A.weight": DOWN, "lora_B.weight": UP}
    ours = {f"{name}.{part}": weights[f"{stem}.{parts[part]}"] for stem, name in stems(unet).items() for part in parts}
    adapters.write(target, ours, rank=rank, alpha=float(alphas[0]), entries=entries)


def released_folder(folder: Path) -> Path:
    """Where the released sliders lie: the folder, or one below it, as unzipping makes it; ValueError where they lie in several."""
    folders = sorted({path.parents[1] for path in folder.rglob("*_class_*/*.pt")})
    if len(folders) > 1:
        raise ValueError(f"sliders {folder} lie in {len(folders)} folders, {folders[0]} and {folders[1]} among them; accepted: one of them")
    return folders[0] if folders else folder


def released_path(folder: Path, shift: str, number: int, *, rank: int, alpha: float) -> Path:
    """Where the released training leaves the slider of a shift and an ImageNet index, once it is finished; "the" in front of it or not.

    FileNotFoundError names earlier checkpoints where there are some: the released loader takes the last of these silently.
    """
    names = [f"{start}{identifier(shift)}_class_{number:03d}_alpha{float(alpha)}_rank{rank}_noxattn" for start in ("", "the_")]
    paths = [folder / name / f"{name}_last.pt" for name in names]
    if finished := [path for path in paths if path.exists()]:
        return finished[0]
    earlier = sorted(checkpoint.name for path in paths for checkpoint in path.parent.glob("*.pt"))
    reason = f"its training stopped at {', '.join(earlier)}" if earlier else "accepted: the folders of the released training"
    raise FileNotFoundError(f"slider {paths[0]} does not exist; {reason}")
