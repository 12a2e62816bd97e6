"""Sliders in the authors' released layout (kohya-like keys, .pt or .safetensors), to and from our adapter files.

The released code names a module `lora_unet_` plus its path with underscores for dots and scales it by alpha / rank.
"""

import collections
import io
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from peft import LoraConfig
from torch import Tensor

from cnslib.core import units
from cnslib.core.names import identifier
from cnslib.models import adapters
from cnslib.models.weights import Match, Shapes, match, read_weights, shapes

PREFIX = "lora_unet_"
ALPHA, DOWN, UP = "alpha", "lora_down.weight", "lora_up.weight"
CONFIG = "lora_adapter_metadata"  # the header entry that holds rank and alpha
SCALING = ("alpha_pattern", "rank_pattern", "use_rslora", "use_dora")  # peft settings that no released file can express
METHOD = "noxattn"


def stems(unet: UNet2DConditionModel) -> dict[str, str]:
    """The released name of each module to adapt, with the module's own path.

    Built from the UNet's paths: a released name alone does not tell which underscores were dots. Raises ValueError where two
    modules share one.
    """
    names = [key.removeprefix("unet.").removesuffix(".lora_A.weight") for key in adapters.factor_shapes(unet, 1) if "lora_A" in key]
    found = {PREFIX + name.replace(".", "_"): name for name in names}
    if len(found) != len(names):
        raise ValueError(f"two of {len(names)} modules of this UNet share a name in the released layout")
    return found


def released_shapes(unet: UNet2DConditionModel, rank: int) -> Shapes:
    """Name and shape of every tensor of a released file of this rank for a UNet without adapter."""
    ours = adapters.factor_shapes(unet, rank)
    expected: dict[str, tuple[int, ...]] = {}
    for stem, name in stems(unet).items():
        expected[f"{stem}.{ALPHA}"] = ()
        expected[f"{stem}.{DOWN}"] = ours[f"unet.{name}.lora_A.weight"]
        expected[f"{stem}.{UP}"] = ours[f"unet.{name}.lora_B.weight"]
    return expected


def compare(unet: UNet2DConditionModel, weights: Mapping[str, Tensor]) -> Match:
    """Which tensors of a released file the UNet's modules take, and which are missing, unexpected or of another shape."""
    return match(shapes(weights), released_shapes(unet, file_rank(weights)))


def file_rank(weights: Mapping[str, Tensor]) -> int:
    """The rank of most modules of a released file; 0 where it has none."""
    ranks = collections.Counter(value.shape[0] for key, value in weights.items() if key.endswith(DOWN) and value.ndim)
    return ranks.most_common(1)[0][0] if ranks else 0


def require_complete(unet: UNet2DConditionModel, weights: Mapping[str, Tensor], path: Path) -> Match:
    """Returns the match where it is complete; ValueError counts and shows what is not."""
    found = compare(unet, weights)
    if not found.complete:
        accepted = f"alpha and both factors of each of the {len(stems(unet))} modules to adapt, all of one rank, and nothing else"
        raise ValueError(f"slider {path} does not fit this UNet: {found}; accepted: {accepted}")
    return found


def file_alpha(weights: Mapping[str, Tensor], path: Path) -> float:
    """The alpha that all modules of a released file share; ValueError where they differ or it is no positive number."""
    alphas = sorted({value.item() for key, value in weights.items() if key.endswith(f".{ALPHA}")})
    if len(alphas) != 1 or not 0 < alphas[0] < math.inf:
        raise ValueError(f"slider {path}: alpha is {', '.join(map(str, alphas[:3]))}; accepted: one positive number for all modules")
    return float(alphas[0])


def to_released(unet: UNet2DConditionModel, path: Path) -> dict[str, Tensor]:
    """The tensors of an adapter file of ours under their released names, bit for bit, with alpha beside each pair of factors.

    Raises FileNotFoundError or ValueError, naming the file, where it is not a whole adapter of this UNet, or where its scale is
    more than one alpha over one rank.
    """
    adapters.require_complete(unet, path)
    config = json.loads(adapters.header(path)[CONFIG])
    for key in SCALING:
        if config.get(f"unet.{key}"):
            raise ValueError(f"slider {path}: {key} is {config[f'unet.{key}']}; accepted: one alpha and one rank, no {key}")
    ours, found = safetensors.torch.load_file(path), {}
    for stem, name in stems(unet).items():
        down, up = ours[f"unet.{name}.lora_A.weight"], ours[f"unet.{name}.lora_B.weight"]
        found[f"{stem}.{ALPHA}"] = scalar(config["unet.lora_alpha"], down.dtype)
        found[f"{stem}.{DOWN}"], found[f"{stem}.{UP}"] = down, up
    return found


def scalar(value: float, dtype: torch.dtype) -> Tensor:
    """A number as a tensor of the given type, or of the first larger one that keeps it exactly."""
    kinds = (dtype, torch.float32, torch.float64)
    return next(found for kind in kinds if (found := torch.tensor(value, dtype=kind)).item() == value)


def to_ours(unet: UNet2DConditionModel, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The factors of a released file under our names, bit for bit."""
    found = {}
    for stem, name in stems(unet).items():
        found[f"{name}.lora_A.weight"], found[f"{name}.lora_B.weight"] = weights[f"{stem}.{DOWN}"], weights[f"{stem}.{UP}"]
    return found


def export_slider(unet: UNet2DConditionModel, source: Path, target: Path) -> None:
    """Writes an adapter file of ours in the released layout: a .pt state dict, or .safetensors that keeps our header entries.

    Raises ValueError for another suffix; other errors as those of `to_released`.
    """
    weights = to_released(unet, source)
    if target.suffix == ".safetensors":
        entries = {key: value for key, value in adapters.header(source).items() if key != CONFIG}
        data = adapters.with_header(safetensors.torch.save(weights, {"format": "pt"}), entries)
    elif target.suffix == ".pt":
        buffer = io.BytesIO()
        torch.save(collections.OrderedDict(weights), buffer)
        data = buffer.getvalue()
    else:
        raise ValueError(f"slider {target}: suffix {target.suffix!r} is not accepted; accepted: .pt, .safetensors")
    units.write_bytes(target, data)


def import_slider(unet: UNet2DConditionModel, source: Path, target: Path, *, entries: dict[str, str], sha256: str | None = None) -> Match:
    """Writes a released file as an adapter file of ours, in the types it came in, and returns what was matched.

    `entries` (shift, class, base ...) join those that the file has. Nothing is written where a tensor is missing, unexpected or of
    another shape: ValueError counts them. Errors of reading are those of `weights.read_weights`.
    """
    weights = read_weights(source, sha256=sha256)
    found, alpha = require_complete(unet, weights, source), file_alpha(weights, source)
    known = adapters.header(source) if source.suffix == ".safetensors" else {}
    write(target, to_ours(unet, weights), rank=file_rank(weights), alpha=alpha, entries=known | entries)
    return found


def write(path: Path, weights: Mapping[str, Tensor], *, rank: int, alpha: float, entries: dict[str, str]) -> None:
    """Writes factors by `<module>.lora_A.weight` and `.lora_B.weight` as `adapters.save` does, but in the types they have."""
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=adapters.TARGETS).to_dict()  # type: ignore[arg-type]
    plain = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    with tempfile.TemporaryDirectory() as folder:
        StableDiffusionPipeline.save_lora_weights(folder, plain, weight_name=path.name, unet_lora_adapter_metadata=config)
        data = (Path(folder) / path.name).read_bytes()
    units.write_bytes(path, adapters.with_header(data, entries))


def released_folder(folder: Path) -> Path:
    """Where the folders of the released sliders lie: in the given folder, or in one below it, as unzipping makes it.

    Raises ValueError where they lie in several; without any it is the given one.
    """
    found = sorted({path.parents[1] for path in folder.rglob("*_class_*/*.pt")})
    if len(found) > 1:
        raise ValueError(f"sliders {folder} lie in {len(found)} folders, {found[0]} and {found[1]} among them; accepted: one of them")
    return found[0] if found else folder


def released_path(folder: Path, shift: str, number: int, *, rank: int, alpha: float) -> Path:
    """Where the released training leaves the slider of a shift and an ImageNet index, once it is finished.

    The published results name one shift with its article, the_design_of_sculpture; either form is taken. Raises FileNotFoundError,
    naming earlier checkpoints where there are some: the released loader takes the last of these silently.
    """
    names = [f"{start}{identifier(shift)}_class_{number:03d}_alpha{float(alpha)}_rank{rank}_{METHOD}" for start in ("", "the_")]
    paths = [folder / name / f"{name}_last.pt" for name in names]
    if finished := [path for path in paths if path.exists()]:
        return finished[0]
    earlier = sorted(found.name for path in paths for found in path.parent.glob("*.pt"))
    told = f"its training stopped at {', '.join(earlier)}" if earlier else "accepted: the folders of the released training"
    raise FileNotFoundError(f"slider {paths[0]} does not exist; {told}")
