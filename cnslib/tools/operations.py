"""What the networks that look at pictures cost per picture: operations of their shapes, and this device's rate of operations.

Encoders and classifiers are built as the parameters name them, with random weights: no file of weights is read or fetched. Operations
are multiplications and additions (two per pair) of convolutions, matrix products and attention, counted without memory on torch's
meta device; what else a network does is no operation, but is in the rate. The rate is that of the middle network, by operations, of
each kind: those that mostly convolve, and those that mostly multiply matrices (transformers, mixers, ConvNeXt).

Assumed: every network of a kind runs at the rate of its middle one, in the batch that was measured. Single networks can be off by a
factor of two or three, mostly those too small to fill the device; their sum is off by less. Pictures are decoded and prepared on the
CPU beside this: the evaluation's once per group of classifiers and distinct preprocessing, the filter's once for its three encoders,
whose preprocessings differ at the paper's scale.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import open_clip
import timm
import torch
import torchvision
from open_clip import transform as clip_transform
from PIL import Image
from timm.data import create_transform, resolve_data_config
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from cnslib.core import paths, tables, units
from cnslib.core.names import demand
from cnslib.core.workers import one_thread
from cnslib.method.evaluation import TOGETHER
from cnslib.models import classifiers, efficientnet_lite, encoders, registry, weights
from cnslib.models.registry import CLASSES, Entry
from cnslib.tools.rates import timed

CONVOLUTIONS, PRODUCTS = "convolutions", "matrix products"  # kinds of networks
CPU_OPERATIONS = 1e11  # of a measured batch where the device is a CPU: seconds on a few cores
FILLS = {"uniform_", "normal_", "zero_", "fill_", "erfinv_", "mul_", "add_", "clamp_"}  # of which libraries make initial weights
BLOB = 16  # pixels: blobs of this size fill as many PNG bytes as pictures do


@dataclass(frozen=True)
class Network:
    """One network by its shape: operations per picture, what most of them are, its input, and how it prepares a picture for it."""

    source: str
    operations: float
    kind: str
    shape: tuple[int, int, int]
    transform: Callable[[Image.Image], Tensor]
    preprocessing: str  # the same text for the same transform


@dataclass(frozen=True)
class Speed:
    """Operations per second by kind, the networks that ran, and seconds of one core for decoding and for each preprocessing."""

    rates: dict[str, float]
    measured: dict[str, str]
    decoding: float
    preparing: dict[str, float]

    def looking(self, networks: list[Network]) -> float:
        """Seconds of the device in which all the networks look at one picture."""
        return sum(one.operations / self.rates[one.kind] for one in networks)

    def feeding(self, networks: list[Network]) -> float:
        """Seconds of one core per picture: decoded once per group of networks, prepared once per preprocessing in it."""
        groups = [networks[start : start + TOGETHER] for start in range(0, len(networks), TOGETHER)]
        distinct = [{one.preprocessing for one in group} for group in groups]
        return sum(self.decoding + sum(self.preparing[name] for name in sorted(group)) for group in distinct)


def named(sections: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Sources of the networks that see every image once, by step and parameter."""
    base, settings = sections["base"], sections["evaluation"]
    judges = {f"base.{name}": getattr(base, name) for name in ("clip", "image_encoder", "oracle")}
    return {"filtering": judges, "evaluation": {f"evaluation.classifiers.{name}": text for name, text in settings.classifiers.items()}}


def count(sections: dict[str, Any]) -> tuple[dict[str, list[Network]], dict[str, str]]:
    """The networks of each step by their shapes, and, by parameter, why one cannot be counted here."""
    found: dict[str, list[Network]] = {}
    unknown: dict[str, str] = {}
    for step, sources in named(sections).items():
        chosen = sections["evaluation"].preprocessing if step == "evaluation" else "model"
        found[step] = []
        for key, source in sources.items():
            try:
                found[step].append(network(source, key=key, preprocessing=chosen))
            except ValueError as error:
                unknown[key] = str(error)
    return found, unknown


@cache
def network(source: str, *, key: str, preprocessing: str = "model") -> Network:
    """A network by its shape. ValueError, naming the key, for one that cannot be built without its weights."""
    module = build(source, "meta", key=key)
    settings, transform = prepared(source, module)
    shape = tuple(settings["input_size"])
    if preprocessing == "paper":
        settings = classifiers.paper_settings(shape)
        transform = create_transform(**settings)
    operations, kind = counted(module, shape)
    return Network(source, operations, kind, shape, transform, units.digest(settings))


@torch.no_grad()
def counted(module: nn.Module, shape: tuple[int, int, int]) -> tuple[float, str]:
    """Operations for one picture of a module on the meta device, and what most of them are."""
    with FlopCounterMode(display=False) as counter:
        module(torch.empty(1, *shape, device="meta"))
    total = counter.get_total_flops()
    convolutions = counter.get_flop_counts()["Global"].get(torch.ops.aten.convolution, 0)
    return total, CONVOLUTIONS if 2 * convolutions > total else PRODUCTS


def build(source: str, device: str, *, key: str) -> nn.Module:
    """A network with random weights. Errors as `network`."""
    weights.refuse_code(paths.resolve(source), key=key)
    with torch.device(device), Shapes():
        if source.startswith(registry.PREFIX):
            return registered(registry.parse(source, key=key)[0], device, key).eval()
        if classifiers.is_open_clip(source):
            return image_tower(source, device, key).eval()
        return from_timm(source, key).eval()


class Shapes(TorchFunctionMode):
    """Leaves weights on the meta device, which are shapes alone, without initial values: drawing these takes a fifth of the time."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """The tensor as it is for a function that fills it, else what the function gives."""
        filled = getattr(func, "__name__", "") in FILLS and args and args[0].is_meta
        return args[0] if filled else func(*args, **kwargs or {})


def prepared(source: str, module: nn.Module) -> tuple[dict[str, Any], Callable[[Image.Image], Tensor]]:
    """A network's own preprocessing: its settings, with the input's shape as `input_size`, and its transform."""
    if source.startswith(registry.PREFIX):
        settings = registry.parse(source, key=source)[0].settings
        return settings, create_transform(**settings)
    if classifiers.is_open_clip(source):
        chosen = clip_transform.PreprocessCfg(**module.preprocess_cfg)  # type: ignore[arg-type]
        return asdict(chosen) | {"input_size": chosen.input_size}, clip_transform.image_transform_v2(chosen, is_train=False)
    settings = resolve_data_config({}, model=module)
    return settings, create_transform(**settings)


def from_timm(source: str, key: str) -> nn.Module:
    """A timm model by name, by the configuration in its directory, or an EfficientNet-Lite."""
    if source.startswith(efficientnet_lite.PREFIX):
        size = source.removeprefix(efficientnet_lite.PREFIX)
        demand(size in efficientnet_lite.WEIGHTS, key, source, efficientnet_lite.ACCEPTED)
        model = timm.create_model(f"tf_efficientnet_lite{size}", pretrained_cfg_overlay=efficientnet_lite.STATISTICS)
        return model.to(memory_format=torch.channels_last)  # as `lite.network`
    name = source.removeprefix("timm:") if source.startswith("timm:") else f"local-dir:{paths.resolve(source)}"
    with encoders.named_errors(key, source, "a directory with a timm model's config.json, or timm:<name>"):
        return timm.create_model(name)


def image_tower(source: str, device: str, key: str) -> nn.Module:
    """The part of an open_clip model that sees images, by the model's name or the configuration in its directory."""
    named_one = source.startswith(encoders.OPEN_CLIP)
    name = encoders.library_name(key, source)[0] if named_one else f"local-dir:{paths.resolve(source)}"
    with encoders.named_errors(key, source, "a directory of an open_clip model, or open_clip:<name>/<tag>"), quiet():
        return open_clip.create_model(name, load_weights=False, pretrained_text=False, device=device).visual


def registered(entry: Entry, device: str, key: str) -> nn.Module:
    """One of the paper's classifiers. ValueError for VMamba, which no library has."""
    if entry.kind == "vmamba":
        raise ValueError(f"{key}: {entry.model} is no model of a library, and the operations of its authors' kernel are not counted")
    if entry.kind == "open_clip":
        return image_tower(f"open_clip:{entry.architecture}", device, key)
    if entry.kind == "torchvision":
        return torchvision.models.get_model(entry.architecture, weights=None, num_classes=CLASSES)
    if entry.kind == "linear_head":
        interleaved = entry.features == "interleaved"
        blocks = 1 if interleaved else 4  # under the heads that the registry names
        backbone = timm.create_model(entry.architecture, img_size=entry.input_size, num_classes=0)
        head = nn.Linear((blocks + 1) * int(backbone.embed_dim), CLASSES)  # type: ignore[arg-type]
        return registry.Probe(backbone, head, blocks=blocks, interleaved=interleaved)
    arguments: dict[str, Any] = {"global_pool": entry.pooling, "num_classes": CLASSES} if entry.pooling else {}
    return timm.create_model(entry.architecture, **arguments)


@contextmanager
def quiet() -> Iterator[None]:
    """Without open_clip's warning that weights are random."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def measure(networks: list[Network], *, device: str, batch_size: int, side: int, seconds: float) -> Speed:
    """Passes batches through the middle network of each kind, and prepares a picture of `side` pixels; a third of the time each."""
    rates, measured = {}, {}
    for kind in sorted({one.kind for one in networks}):
        own = sorted((one for one in networks if one.kind == kind), key=lambda one: one.operations)
        middle = own[(len(own) - 1) // 2]
        rates[kind] = middle.operations / passing(middle, device=device, batch_size=batch_size, seconds=seconds / 3)
        measured[kind] = middle.source.partition("@")[0]
    return Speed(rates, measured, *preparing(networks, side=side, seconds=seconds / 3))


@torch.no_grad()
def passing(one: Network, *, device: str, batch_size: int, seconds: float) -> float:
    """Seconds per picture of a network with random weights, the copy of the batch to the device included."""
    module = build(one.source, device, key="plan")
    fitting = batch_size if device.startswith("cuda") else min(batch_size, max(1, int(CPU_OPERATIONS / one.operations)))
    pixels = torch.randn(fitting, *one.shape)
    return timed(lambda: module(pixels.to(device)), fitting, device, seconds)


def preparing(networks: list[Network], *, side: int, seconds: float) -> tuple[float, dict[str, float]]:
    """Seconds of one core to decode a picture, and to make it the input of networks, by preprocessing."""
    transforms = {one.preprocessing: one.transform for one in networks}
    share = seconds / (1 + len(transforms))
    data = tables.encode(picture(side))
    image = Image.fromarray(tables.decode(data, "plan"))
    with one_thread():
        decoding = timed(lambda: tables.decode(data, "plan"), 1, "cpu", share)
        return decoding, {name: timed(lambda run=run: run(image), 1, "cpu", share) for name, run in transforms.items()}  # type: ignore[misc]


def picture(side: int) -> np.ndarray:
    """Smooth noise, as hard to compress as a picture."""
    noise = np.random.default_rng(1).integers(0, 256, (max(2, side // BLOB), max(2, side // BLOB), 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(noise).resize((side, side), Image.Resampling.BICUBIC))
