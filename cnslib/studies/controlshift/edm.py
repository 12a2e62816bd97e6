"""EDM's public checkpoints as the decoder of Control+Shift (section 4): reading them, Heun's method, and what `datasets` draws from.

Networks are written from the paper (Karras et al. 2022) and the names of the tensors: DDPM++ for CIFAR-10 at 32 px, ADM for ImageNet
at 64 px. Of the same random weights, networks and sampler give in single precision what the authors' code gives, to within 2e-6 of
images in [-1, 1]; of 9,216 bytes of the rounded pictures 2 differed. The checkpoints `edm-cifar10-32x32-cond-vp.pkl` and
`edm-imagenet-64x64-cond-adm.pkl` have a non-commercial licence of their own. They are pickles, which run code when they are read, and
nothing here reads these: RECIPE turns one into tensors, once, in a checkout of that code (docs/paper_scale.md).
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from diffusers import EDMEulerScheduler
from diffusers.models.embeddings import get_timestep_embedding
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from cnslib.core import paths, recipes, units
from cnslib.core.names import demand
from cnslib.core.settings.method import Base
from cnslib.core.settings.sections import Controlshift
from cnslib.data import imagenet
from cnslib.models import text_to_image
from cnslib.models.weights import header, read_weights, require_same, shapes
from cnslib.studies.controlshift.datasets import Decoder, Pictures, text_to_image_decoder

RECIPE = """
    import pickle, safetensors.torch
    network = pickle.load(open("edm-cifar10-32x32-cond-vp.pkl", "rb"))["ema"]
    told = {"preconditioning": type(network).__name__}
    safetensors.torch.save_file(network.state_dict(), "edm-cifar10-32x32-cond-vp.safetensors", told)"""
PRECONDITIONING = "EDMPrecond"  # what the EDM training wraps its networks in; those of the baselines have the same tensors
PLUS, ADM = "DDPM++", "ADM"
GROUPS, LEAST = 32, 4  # groups of a normalisation, and the fewest channels in each
SCALING = EDMEulerScheduler()  # c_skip, c_out, c_in and c_noise of Table 1, sigma_data = 0.5
Images = Float[Tensor, "batch colours side side"]
HEAD = 64  # channels of an attention head of ADM; DDPM++ has a single head


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network: `widths` (channels) and `attention` (whether there is any) per resolution, the finest first.

    `embedding` is the width of what tells every block noise level and class, `augmentations` that of what tells DDPM++ how an image was
    changed.
    """

    family: str
    side: int
    colours: int
    channels: int
    embedding: int
    widths: tuple[int, ...]
    attention: tuple[bool, ...]
    blocks: int
    classes: int
    augmentations: int

    def at(self, level: int) -> str:
        """How the tensors of a resolution are named."""
        return f"{self.side >> level}x{self.side >> level}"


class Denoiser(nn.Module):
    """D(x; sigma), the expected image given a noisy one (Eq. 7), of a network without noise in its own scaling."""

    def __init__(self, sizes: Architecture):
        super().__init__()
        self.sizes = sizes
        self.model = UNet(sizes)

    def forward(self, noisy: Images, sigma: Float[Tensor, ""], labels: Float[Tensor, "batch classes"]) -> Images:
        """Images in [-1, 1] plus noise of deviation sigma to images without, by one-hot labels; the type of `noisy` is kept."""
        noise = SCALING.precondition_noise(sigma).float().expand(len(noisy))
        prediction = self.model(SCALING.precondition_inputs(noisy, sigma).float(), noise, labels)
        return SCALING.precondition_outputs(noisy, prediction.to(noisy.dtype), sigma)


class UNet(nn.Module):
    """A U-Net of residual blocks that know noise level and class (F in Eq. 7)."""

    def __init__(self, sizes: Architecture):
        super().__init__()
        self.sizes, plus = sizes, sizes.family == PLUS
        self.map_layer0 = nn.Linear(sizes.channels, sizes.embedding)
        self.map_layer1 = nn.Linear(sizes.embedding, sizes.embedding)
        self.map_label = nn.Linear(sizes.classes, sizes.channels if plus else sizes.embedding, bias=plus)
        self.enc, widths = encoder_parts(sizes)
        self.dec = decoder_parts(sizes, widths)
        if plus:  # images are drawn as not augmented: this layer is in the files, and adds nothing
            self.map_augment = nn.Linear(sizes.augmentations, sizes.channels, bias=False)
        else:
            self.out_norm = norm(sizes, sizes.widths[0])
            self.out_conv = nn.Conv2d(sizes.widths[0], sizes.colours, 3, padding=1)

    def forward(self, x: Tensor, noise: Float[Tensor, "batch"], labels: Float[Tensor, "batch classes"]) -> Tensor:
        """What is left to say about an image once its scaling is known."""
        embedding, skips = self.embed(noise, labels), []
        for name, part in self.enc.items():
            x = part(x) if name.endswith("conv") else part(x, embedding)
            skips.append(x)
        for name, part in self.dec.items():
            if "aux" not in name:
                x = part(torch.cat([x, skips.pop()], dim=1) if "block" in name else x, embedding)
        last = f"{self.sizes.at(0)}_aux"
        ends = (self.out_norm, self.out_conv) if self.sizes.family == ADM else (self.dec[f"{last}_norm"], self.dec[f"{last}_conv"])
        return ends[1](functional.silu(ends[0](x)))

    def embed(self, noise: Float[Tensor, "batch"], labels: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch embedding"]:
        """What tells every block noise level and class; DDPM++ adds the class before its two layers, ADM after them."""
        plus, channels = self.sizes.family == PLUS, self.sizes.channels
        waves = get_timestep_embedding(noise, channels, flip_sin_to_cos=not plus, downscale_freq_shift=int(plus))
        if plus:
            waves = waves + self.map_label(labels * math.sqrt(self.sizes.classes))
        embedding = self.map_layer1(functional.silu(self.map_layer0(waves)))
        return functional.silu(embedding if plus else embedding + self.map_label(labels))


def encoder_parts(sizes: Architecture) -> tuple[nn.ModuleDict, list[int]]:
    """From the finest resolution to the coarsest, and the channels of every part's output."""
    parts = nn.ModuleDict({f"{sizes.at(0)}_conv": nn.Conv2d(sizes.colours, sizes.channels, 3, padding=1)})
    outputs = [sizes.channels]
    for level, width in enumerate(sizes.widths):
        if level:
            parts[f"{sizes.at(level)}_down"] = Block(sizes, outputs[-1], outputs[-1], resample="down")
            outputs.append(outputs[-1])
        for number in range(sizes.blocks):
            parts[f"{sizes.at(level)}_block{number}"] = Block(sizes, outputs[-1], width, attention=sizes.attention[level])
            outputs.append(width)
    return parts, outputs


def decoder_parts(sizes: Architecture, skips: list[int]) -> nn.ModuleDict:
    """Back to the finest resolution; every block has one output of the encoder, the last first. DDPM++ attends in the last alone."""
    parts, skips, before = nn.ModuleDict(), [*skips], sizes.widths[-1]
    for level, width in reversed(list(enumerate(sizes.widths))):
        if level == len(sizes.widths) - 1:
            parts[f"{sizes.at(level)}_in0"] = Block(sizes, before, before, attention=True)
            parts[f"{sizes.at(level)}_in1"] = Block(sizes, before, before)
        else:
            parts[f"{sizes.at(level)}_up"] = Block(sizes, before, before, resample="up")
        for number in range(sizes.blocks + 1):
            attends = sizes.attention[level] and (sizes.family == ADM or number == sizes.blocks)
            parts[f"{sizes.at(level)}_block{number}"] = Block(sizes, before + skips.pop(), width, attention=attends)
            before = width
    if sizes.family == PLUS:
        parts[f"{sizes.at(0)}_aux_norm"] = norm(sizes, before)
        parts[f"{sizes.at(0)}_aux_conv"] = nn.Conv2d(before, sizes.colours, 3, padding=1)
    return parts


def norm(sizes: Architecture, channels: int) -> nn.GroupNorm:
    """Normalisation by groups of channels."""
    return nn.GroupNorm(min(GROUPS, channels // LEAST), channels, eps=1e-6 if sizes.family == PLUS else 1e-5)


class Block(nn.Module):
    """A residual block that may halve or double the side first, and attend to all pixels at its end.

    DDPM++ adds noise level and class to the features and divides sums of two paths by sqrt(2); ADM scales and moves by them.
    """

    def __init__(self, sizes: Architecture, inside: int, outside: int, *, attention: bool = False, resample: str = ""):
        super().__init__()
        self.plus = sizes.family == PLUS
        self.norm0, self.norm1 = norm(sizes, inside), norm(sizes, outside)
        self.conv0 = Resampled(outside, 3, resample) if resample else nn.Conv2d(inside, outside, 3, padding=1)
        self.affine = nn.Linear(sizes.embedding, outside if self.plus else 2 * outside)
        self.conv1 = nn.Conv2d(outside, outside, 3, padding=1)
        self.skip: nn.Module = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()
        if resample:
            self.skip = Resampled(outside, 1 if self.plus else 0, resample)
        self.heads = (1 if self.plus else outside // HEAD) if attention else 0
        if attention:
            self.norm2, self.qkv, self.proj = norm(sizes, outside), nn.Conv2d(outside, 3 * outside, 1), nn.Conv2d(outside, outside, 1)

    def forward(self, x: Tensor, embedding: Float[Tensor, "batch embedding"]) -> Tensor:
        """The features of the next part."""
        share = math.sqrt(0.5) if self.plus else 1.0
        new, modulation = self.conv0(functional.silu(self.norm0(x))), self.affine(embedding)[:, :, None, None]
        if self.plus:
            new = self.norm1(new + modulation)
        else:
            scale, move = modulation.chunk(2, dim=1)
            new = self.norm1(new) * (1 + scale) + move
        x = (self.skip(x) + self.conv1(functional.silu(new))) * share
        return (x + self.attend(x)) * share if self.heads else x

    def attend(self, x: Tensor) -> Tensor:
        """Attention among all pixels; query, key and value of a channel lie side by side."""
        parts = self.qkv(self.norm2(x)).reshape(len(x), self.heads, x.shape[1] // self.heads, 3, -1)
        query, key, value = parts.permute(3, 0, 1, 4, 2)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(2, 3).reshape(x.shape))


class Resampled(nn.Module):
    """Half or twice the side by the filter of the file, a box of 2 x 2 pixels; then a convolution where there is a kernel."""

    resample_filter: Tensor

    def __init__(self, channels: int, kernel: int, direction: str):
        super().__init__()
        self.kernel, self.direction = kernel, direction
        self.register_buffer("resample_filter", torch.full((1, 1, 2, 2), 0.25))
        if kernel:
            self.weight = nn.Parameter(torch.zeros(channels, channels, kernel, kernel))
            self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Every channel by itself: means of 2 x 2 pixels, or each pixel four times."""
        each, channels = self.resample_filter.expand(x.shape[1], 1, 2, 2), x.shape[1]
        if self.direction == "down":
            x = functional.conv2d(x, each, stride=2, groups=channels)
        else:
            x = functional.conv_transpose2d(x, 4 * each, stride=2, groups=channels)
        return functional.conv2d(x, self.weight, self.bias, padding=self.kernel // 2) if self.kernel else x


def load(path: Path, device: str = "cpu") -> Denoiser:
    """The denoiser of a checkpoint's tensors (.safetensors), in single precision, frozen; its sizes are read from the tensors.

    ValueError for a pickle, with the recipe that makes tensors of it, for a baseline of the paper (VP, VE, iDDPM), which the header
    tells and for other tensors than a network's.
    """
    once = f"in a checkout of the code that the file belongs to, once:{RECIPE}"
    if path.suffix in (".pkl", ".pickle"):
        raise ValueError(f"{path} is a pickle, which runs code when it is read; accepted: .safetensors, which this makes of it {once}")
    demand(path.suffix == ".safetensors", f"{path}, suffix", path.suffix, ".safetensors")
    weights, preconditioning = read_weights(path), header(path).get("preconditioning", "")
    demand(
        preconditioning == PRECONDITIONING,
        f"{path}, preconditioning in its header",
        preconditioning,
        f"{PRECONDITIONING}, as this writes it {once}",
    )
    with torch.device("meta"):
        denoiser = Denoiser(architecture(weights, path))
    sizes = denoiser.sizes
    network = f"the tensors of a {sizes.family} of {sizes.side} px with channels {sizes.widths}, and nothing else"
    require_same(shapes(weights), shapes(denoiser.state_dict()), f"{path} does not fit", network)
    plain = {key: value.to(torch.float32, copy=True) for key, value in weights.items()}  # a file's own memory is not aligned: other sums
    denoiser.load_state_dict(plain, strict=True, assign=True)
    return denoiser.to(device).eval().requires_grad_(False)


def architecture(weights: Mapping[str, Tensor], path: Path) -> Architecture:
    """The sizes of a checkpoint's network. Raises ValueError, with their number, where tensors that tell them are missing."""
    family = ADM if "model.out_conv.weight" in weights else PLUS
    sides = sorted({int(match[1]) for key in weights if (match := re.match(r"model\.enc\.(\d+)x\1_", key))}, reverse=True)
    stem, level = "model.enc.{0}x{0}_conv.weight".format(*sides or [0]), "model.enc.{0}x{0}_block0.{1}.weight"
    required = [stem, "model.map_layer0.weight", "model.map_label.weight", *(level.format(side, "conv0") for side in sides)]
    required += ["model.map_augment.weight"] if family == PLUS else []
    if lost := [key for key in required if key not in weights or weights[key].ndim < 2]:
        raise ValueError(
            f"{path} is no EDM checkpoint with classes, or not whole: {len(lost)} of {len(required)} tensors that tell its "
            f"sizes are missing, for example {lost[0]}; accepted: {PLUS} or {ADM}, with classes, of the EDM training"
        )
    embedding, channels = weights["model.map_layer0.weight"].shape
    return Architecture(
        family=family,
        side=sides[0],
        colours=weights[stem].shape[1],
        channels=channels,
        embedding=embedding,
        widths=tuple(weights[level.format(side, "conv0")].shape[0] for side in sides),
        attention=tuple(level.format(side, "qkv") in weights for side in sides),
        blocks=sum(bool(re.fullmatch(rf"model\.enc\.{sides[0]}x{sides[0]}_block\d+\.conv0\.weight", key)) for key in weights),
        classes=weights["model.map_label.weight"].shape[1],
        augmentations=weights["model.map_augment.weight"].shape[1] if family == PLUS else 0,
    )


@torch.no_grad()
def sample(denoise: Callable[[Images, Float[Tensor, ""]], Images], z: Images, *, steps: int) -> Images:
    """Images, in [-1, 1] but for overshoots, of latents z from the standard normal by Heun's method without noise (algorithm 1).

    `denoise(noisy, sigma)` is D(x; sigma), evaluated 2 steps - 1 times; the type of z is kept.
    """
    levels = EDMEulerScheduler()  # Eq. 5: from 80 down to 0.002, rho = 7, then 0
    levels.set_timesteps(steps)
    x = levels.sigmas[0].to(z.device) * z
    for sigma, following in itertools.pairwise(levels.sigmas.to(z.device)):
        slope = (x - denoise(x, sigma)) / sigma
        end = x + (following - sigma) * slope
        if following > 0:
            end = x + (following - sigma) * (slope + (end - denoise(end, following)) / following) / 2
        x = end
    return x


CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PREFIX = "edm:"  # of a decoder that is a checkpoint


def open_decoder(pipeline: Path, base: Base, settings: Controlshift, tokens: Path) -> Decoder:
    """What the settings draw from: a checkpoint ("edm:<file>") by names of CIFAR-10 or ImageNet, or the base model with its tokens."""
    classes = settings.classes or base.classes
    if settings.decoder:
        demand(settings.decoder.startswith(PREFIX), "controlshift.decoder", settings.decoder, f"{PREFIX}<file>.safetensors, or none")
        file = paths.resolve(settings.decoder.removeprefix(PREFIX))
        numbers = {name: CIFAR10.index(name) if {*classes} <= {*CIFAR10} else imagenet.index(name) for name in classes}
        return decoder(file, numbers, settings, device=base.device)
    pipe = text_to_image.load_pipeline(pipeline, base.device)
    text_to_image.load_tokens(pipe, tokens, classes)
    return text_to_image_decoder(pipe, text_to_image.origin(pipeline, tokens, classes), classes, settings)


def decoder(path: Path, numbers: Mapping[str, int], settings: Controlshift, *, device: str = "cpu") -> Decoder:
    """What `datasets.make` draws from: a checkpoint, with a name for each wanted class number of it."""
    demand(settings.guidance == 1, "controlshift.guidance", settings.guidance, "1.0: an EDM checkpoint cannot draw without a class")
    denoiser = load(path, device)
    sizes = denoiser.sizes
    valid = len(numbers) > 0 and all(0 <= number < sizes.classes for number in numbers.values())
    demand(valid, "edm: classes", dict(numbers), f"names of one or more of the numbers 0 to {sizes.classes - 1}")
    base = units.digest(recipes.EDM, units.file_digest(path))
    origin = text_to_image.Origin(base, {name: str(number) for name, number in numbers.items()})
    images = partial(drawn, denoiser, dict(numbers), settings.drawing_steps, device)
    return Decoder(images, sizes.colours * sizes.side**2, device, origin, list(numbers), settings)


@torch.no_grad()
def drawn(denoiser: Denoiser, numbers: dict[str, int], steps: int, device: str, name: str, z: Float[np.ndarray, "images d"]) -> Pictures:
    """Images of a class from latents, which are pixels in units of the largest noise."""
    sizes = denoiser.sizes
    noisy = torch.from_numpy(z).float().reshape(-1, sizes.colours, sizes.side, sizes.side).to(device)
    labels = functional.one_hot(torch.full((len(z),), numbers[name]), sizes.classes).float().to(device)
    made = sample(partial(denoiser, labels=labels), noisy, steps=steps)
    return ((made / 2 + 0.5).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
