"""The networks of EDM's public checkpoints, under the names of their tensors, and their preconditioning (Karras et al. 2022, Table 1).

Two kinds, both conditioned on classes: DDPM++ for CIFAR-10 at 32 px, ADM for ImageNet at 64 px. Written anew from the paper and from
the names and shapes of the tensors.
"""

import math
from dataclasses import dataclass

import torch
from diffusers import EDMEulerScheduler
from diffusers.models.embeddings import get_timestep_embedding
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

PLUS, ADM = "DDPM++", "ADM"
GROUPS, LEAST = 32, 4  # groups of a normalisation, and the fewest channels in each
SCALING = EDMEulerScheduler()  # c_skip, c_out, c_in and c_noise of Table 1, sigma_data = 0.5
Images = Float[Tensor, "batch colours side side"]
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
        seen = self.model(SCALING.precondition_inputs(noisy, sigma).float(), noise, labels)
        return SCALING.precondition_outputs(noisy, seen.to(noisy.dtype), sigma)


class UNet(nn.Module):
    """A U-Net of residual blocks that know noise level and class (F in Eq. 7)."""

    def __init__(self, sizes: Architecture):
        super().__init__()
        self.sizes, plus = sizes, sizes.family == PLUS
        self.map_layer0 = nn.Linear(sizes.channels, sizes.embedding)
        self.map_layer1 = nn.Linear(sizes.embedding, sizes.embedding)
        self.map_label = nn.Linear(sizes.classes, sizes.channels if plus else sizes.embedding, bias=plus)
        self.enc, widths = encoder(sizes)
        self.dec = decoder(sizes, widths)
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


def encoder(sizes: Architecture) -> tuple[nn.ModuleDict, list[int]]:
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


def decoder(sizes: Architecture, skips: list[int]) -> nn.ModuleDict:
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

    DDPM++ adds noise level and class to the features and divides every sum of two paths by sqrt(2); ADM scales and moves by them.
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
        new, told = self.conv0(functional.silu(self.norm0(x))), self.affine(embedding)[:, :, None, None]
        if self.plus:
            new = self.norm1(new + told)
        else:
            scale, move = told.chunk(2, dim=1)
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

    def __init__(self, channels: int, kernel: int, way: str):
        super().__init__()
        self.kernel, self.way = kernel, way
        self.register_buffer("resample_filter", torch.full((1, 1, 2, 2), 0.25))
        if kernel:
            self.weight = nn.Parameter(torch.zeros(channels, channels, kernel, kernel))
            self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Every channel by itself: means of 2 x 2 pixels, or each pixel four times."""
        each, channels = self.resample_filter.expand(x.shape[1], 1, 2, 2), x.shape[1]
        if self.way == "down":
            x = functional.conv2d(x, each, stride=2, groups=channels)
        else:
            x = functional.conv_transpose2d(x, 4 * each, stride=2, groups=channels)
        return functional.conv2d(x, self.weight, self.bias, padding=self.kernel // 2) if self.kernel else x
