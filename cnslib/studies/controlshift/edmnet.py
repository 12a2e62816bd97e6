"""The networks of EDM's public checkpoints, under the names of their tensors, and their preconditioning (Karras et al. 2022, Table 1).

"Elucidating the Design Space of Diffusion-Based Generative Models" trains two kinds of network: DDPM++ for CIFAR-10 at 32 px, ADM
for ImageNet at 64 px. Both are conditioned on classes; written anew from the paper and from the names and shapes of the tensors.
"""

import math
from dataclasses import dataclass

import torch
from diffusers import EDMEulerScheduler
from diffusers.models.embeddings import get_timestep_embedding
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from cnslib.core.names import demand

PLUS, ADM = FAMILIES = ("DDPM++", "ADM")
GROUPS, LEAST = 32, 4  # groups of a normalisation, and the fewest channels in each
SCALING = EDMEulerScheduler()  # c_skip, c_out, c_in and c_noise of Table 1, sigma_data = 0.5
HEAD = 64  # channels of an attention head of ADM; DDPM++ has a single head


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network: `widths` (channels) and `attention` (whether there is any) per resolution, the finest first.

    `blocks` are per resolution, `embedding` is the width of what tells every block noise level and class, and `augmentations` is
    that of the numbers that tell DDPM++ in its training how an image was augmented.
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

    def __post_init__(self):
        demand(self.family in FAMILIES, "edm: family", self.family, ", ".join(FAMILIES))

    def at(self, level: int) -> str:
        """How the tensors of a resolution are named."""
        return f"{self.side >> level}x{self.side >> level}"


class Denoiser(nn.Module):
    """D(x; sigma), the expected image given a noisy one (Eq. 7), of a network without noise in its own scaling."""

    def __init__(self, sizes: Architecture):
        super().__init__()
        self.sizes = sizes
        self.model = UNet(sizes)

    def forward(
        self, noisy: Float[Tensor, "batch colours side side"], sigma: Float[Tensor, ""], labels: Float[Tensor, "batch classes"]
    ) -> Float[Tensor, "batch colours side side"]:
        """Images in [-1, 1] plus noise of deviation sigma to images without, by one-hot labels; the type of `noisy` is kept."""
        noise = SCALING.precondition_noise(sigma).float().expand(len(noisy))
        seen = self.model(SCALING.precondition_inputs(noisy, sigma).float(), noise, labels)
        return SCALING.precondition_outputs(noisy, seen.to(noisy.dtype), sigma)


class UNet(nn.Module):
    """A U-Net of residual blocks that know noise level and class."""

    def __init__(self, sizes: Architecture):
        super().__init__()
        self.sizes, plus = sizes, sizes.family == PLUS
        self.map_layer0 = nn.Linear(sizes.channels, sizes.embedding)
        self.map_layer1 = nn.Linear(sizes.embedding, sizes.embedding)
        self.map_label = nn.Linear(sizes.classes, sizes.channels if plus else sizes.embedding, bias=plus)
        self.enc, self.dec = encoder(sizes), decoder(sizes)
        if plus:  # images are drawn as not augmented: this layer is in the files, and adds nothing
            self.map_augment = nn.Linear(sizes.augmentations, sizes.channels, bias=False)
        else:
            self.out_norm = norm(sizes, sizes.widths[0])
            self.out_conv = nn.Conv2d(sizes.widths[0], sizes.colours, 3, padding=1)

    def forward(self, x: Tensor, noise: Float[Tensor, "batch"], labels: Float[Tensor, "batch classes"]) -> Tensor:
        """What is left to say about an image once its scaling is known (F in Eq. 7)."""
        embedding, skips = self.embed(noise, labels), []
        for name, part in self.enc.items():
            x = part(x) if name.endswith("conv") else part(x, embedding)
            skips.append(x)
        for name, part in self.dec.items():
            if "block" in name:
                x = torch.cat([x, skips.pop()], dim=1)
            if "aux" not in name:
                x = part(x, embedding)
        return self.finish(x)

    def embed(self, noise: Float[Tensor, "batch"], labels: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch embedding"]:
        """What tells every block noise level and class; DDPM++ adds the class before its two layers, ADM after them."""
        plus, channels = self.sizes.family == PLUS, self.sizes.channels
        waves = get_timestep_embedding(noise, channels, flip_sin_to_cos=not plus, downscale_freq_shift=int(plus))
        if plus:
            waves = waves + self.map_label(labels * math.sqrt(self.sizes.classes))
        embedding = self.map_layer1(functional.silu(self.map_layer0(waves)))
        return functional.silu(embedding if plus else embedding + self.map_label(labels))

    def finish(self, x: Tensor) -> Tensor:
        """The last normalisation and convolution."""
        if self.sizes.family == ADM:
            return self.out_conv(functional.silu(self.out_norm(x)))
        last = self.sizes.at(0)
        return self.dec[f"{last}_aux_conv"](functional.silu(self.dec[f"{last}_aux_norm"](x)))


def encoder(sizes: Architecture) -> nn.ModuleDict:
    """From the finest resolution to the coarsest."""
    parts = nn.ModuleDict({f"{sizes.at(0)}_conv": nn.Conv2d(sizes.colours, sizes.channels, 3, padding=1)})
    before = sizes.channels
    for level, width in enumerate(sizes.widths):
        if level:
            parts[f"{sizes.at(level)}_down"] = Block(sizes, before, before, resample="down")
        for number in range(sizes.blocks):
            parts[f"{sizes.at(level)}_block{number}"] = Block(sizes, before, width, attention=sizes.attention[level])
            before = width
    return parts


def decoder(sizes: Architecture) -> nn.ModuleDict:
    """Back to the finest resolution; every block is given one output of the encoder, the last first. DDPM++ attends in the last alone."""
    parts, skips, before = nn.ModuleDict(), skip_widths(sizes), sizes.widths[-1]
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


def skip_widths(sizes: Architecture) -> list[int]:
    """Channels of the outputs of the encoder's parts, in order."""
    found = [sizes.channels]
    for level, width in enumerate(sizes.widths):
        found += ([sizes.widths[level - 1]] if level else []) + [width] * sizes.blocks
    return found


def norm(sizes: Architecture, channels: int) -> nn.GroupNorm:
    """Normalisation by groups of channels."""
    return nn.GroupNorm(min(GROUPS, channels // LEAST), channels, eps=1e-6 if sizes.family == PLUS else 1e-5)


class Block(nn.Module):
    """A residual block that may halve or double the side first, and attend to all pixels at its end.

    DDPM++ adds noise level and class to the features and divides every sum of two paths by sqrt(2); ADM scales and moves by them.
    """

    def __init__(self, sizes: Architecture, inside: int, outside: int, *, attention: bool = False, resample: str | None = None):
        super().__init__()
        self.plus = sizes.family == PLUS
        self.norm0, self.norm1 = norm(sizes, inside), norm(sizes, outside)
        self.conv0 = ResampledConv(outside, 3, resample) if resample else nn.Conv2d(inside, outside, 3, padding=1)
        self.affine = nn.Linear(sizes.embedding, outside if self.plus else 2 * outside)
        self.conv1 = nn.Conv2d(outside, outside, 3, padding=1)
        self.skip: nn.Module = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()
        if resample:
            self.skip = ResampledConv(outside, 1, resample) if self.plus else Resample(resample)
        self.heads = (1 if self.plus else outside // HEAD) if attention else 0
        if attention:
            self.norm2, self.qkv, self.proj = norm(sizes, outside), nn.Conv2d(outside, 3 * outside, 1), nn.Conv2d(outside, outside, 1)

    def forward(self, x: Tensor, embedding: Float[Tensor, "batch embedding"]) -> Tensor:
        """The features of the next part."""
        share = math.sqrt(0.5) if self.plus else 1.0
        new, told = self.conv0(functional.silu(self.norm0(x))), self.affine(embedding)[:, :, None, None]
        new = self.conv1(functional.silu(self.inform(new, told)))
        x = (self.skip(x) + new) * share
        return (x + self.attend(x)) * share if self.heads else x

    def inform(self, x: Tensor, told: Float[Tensor, "batch width 1 1"]) -> Tensor:
        """Normalised features that know noise level and class."""
        if self.plus:
            return self.norm1(x + told)
        scale, move = told.chunk(2, dim=1)
        return self.norm1(x) * (1 + scale) + move

    def attend(self, x: Tensor) -> Tensor:
        """Attention among all pixels; query, key and value of a channel lie side by side."""
        parts = self.qkv(self.norm2(x)).reshape(len(x), self.heads, x.shape[1] // self.heads, 3, -1)
        query, key, value = parts.permute(3, 0, 1, 4, 2)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(2, 3).reshape(x.shape))


class Resample(nn.Module):
    """Half or twice the side with the filter of the file, a box of 2 x 2 pixels."""

    resample_filter: Tensor

    def __init__(self, way: str):
        super().__init__()
        self.way = way
        self.register_buffer("resample_filter", torch.full((1, 1, 2, 2), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        """Features at the other resolution."""
        return resampled(x, self.resample_filter, self.way)


class ResampledConv(nn.Conv2d):
    """A convolution at half or twice the side of its input; the filter is the file's, a box of 2 x 2 pixels."""

    resample_filter: Tensor

    def __init__(self, channels: int, kernel: int, way: str):
        super().__init__(channels, channels, kernel, padding=kernel // 2)
        self.way = way
        self.register_buffer("resample_filter", torch.full((1, 1, 2, 2), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        """Features at the other resolution."""
        return super().forward(resampled(x, self.resample_filter, self.way))


def resampled(x: Tensor, box: Float[Tensor, "1 1 2 2"], way: str) -> Tensor:
    """Every channel by itself: means of 2 x 2 pixels, or each pixel four times."""
    each, channels = box.expand(x.shape[1], 1, 2, 2), x.shape[1]
    if way == "down":
        return functional.conv2d(x, each, stride=2, groups=channels)
    return functional.conv_transpose2d(x, 4 * each, stride=2, groups=channels)
