"""VMamba's first version (Liu et al. 2024), whose `vssm_base_v0` CNS-Bench evaluated (Table 4), in plain PyTorch: no kernel, any device.

A picture is read in four orders, each by a recurrence whose parameters depend on what is read (selective scan, Gu and Dao 2023). Names and
shapes of the tensors are those of the public checkpoints.
"""

import math

import torch
from jaxtyping import Float
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn
from torch.nn import functional
from torchvision.ops import Permute

ORDERS = 4  # row by row, column by column, and both backwards
Map = Float[Tensor, "batch channels height width"]
Read = Float[Tensor, "batch 4 channels length"]
BLOCK, DOWN = r"(layers\.\d+\.blocks\.\d+)\.", r"(layers\.\d+\.downsample)\."
OLDER = {  # the spelling of checkpoints from before January 2024
    r"patch_embed\.proj\.": "patch_embed.0.",
    r"patch_embed\.norm\.": "patch_embed.2.",
    rf"{BLOCK}ln_1\.": r"\1.norm.",
    rf"{BLOCK}self_attention\.": r"\1.op.",
    rf"{DOWN}norm\.": r"\1.1.",
    rf"{DOWN}reduction\.": r"\1.2.",
    r"norm\.": "classifier.norm.",
    r"head\.": "classifier.head.",
}
CONFIG = {"input_size": (3, 224, 224), "num_classes": 1000, "crop_pct": 0.875, "interpolation": "bicubic"}
CONFIG |= {"mean": IMAGENET_DEFAULT_MEAN, "std": IMAGENET_DEFAULT_STD, "first_conv": "patch_embed.0", "classifier": "classifier.head"}
default_cfgs = generate_default_cfgs({"vssm_base_v0.untrained": CONFIG})


def scan(u: Read, step: Read, rate: Float[Tensor, "4 channels states"], write: Tensor, look: Tensor) -> Read:
    """y_t = C_t h_t of h_t = exp(step_t A) h_(t-1) + step_t B_t u_t, h_0 = 0; `rate` is A, and [batch 4 states length] are B and C."""
    inputs = [part.movedim(-1, 0).contiguous() for part in (step, step * u, write, look)]  # step by step through memory
    state, outputs = u.new_zeros(*u.shape[:-1], rate.shape[-1]), []
    for pace, added, into, out in zip(*inputs, strict=True):
        state = (pace[..., None] * rate).exp() * state + added[..., None] * into[:, :, None]
        outputs.append((state * out[:, :, None]).sum(-1))
    return torch.stack(outputs, -1)


def cross_scan(x: Map) -> Read:
    """The pixels of a map in the four orders."""
    both = torch.stack([x.flatten(2), x.transpose(2, 3).flatten(2)], 1)
    return torch.cat([both, both.flip(-1)], 1)


def cross_merge(y: Read, height: int, width: int) -> Map:
    """The sum of four sequences at the pixels that they come from: the adjoint of `cross_scan`."""
    rows, columns = (y[:, :2] + y[:, 2:].flip(-1)).unbind(1)
    return rows.unflatten(-1, (height, width)) + columns.unflatten(-1, (width, height)).transpose(2, 3)


class SelectiveScan(nn.Module):
    """SS2D with a gate: mixes the pixels of a map, channels last, in twice its width."""

    def __init__(self, width: int, states: int):
        super().__init__()
        inner, rank = 2 * width, math.ceil(width / 16)
        self.sizes = [rank, states, states]
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv2d = nn.Conv2d(inner, inner, 3, padding=1, groups=inner)
        self.x_proj_weight = nn.Parameter(torch.empty(ORDERS, sum(self.sizes), inner).uniform_(-1, 1) / math.sqrt(inner))
        self.dt_projs_weight = nn.Parameter(torch.empty(ORDERS, inner, rank).uniform_(-1, 1) / math.sqrt(rank))
        steps = torch.empty(ORDERS, inner).uniform_(math.log(1e-3), math.log(0.1)).exp()  # log-uniform, after the softplus
        self.dt_projs_bias = nn.Parameter(steps.expm1().log())
        self.A_logs = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(ORDERS * inner, 1))
        self.Ds = nn.Parameter(torch.ones(ORDERS * inner))
        self.out_norm = nn.LayerNorm(inner)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Float[Tensor, "batch height width channels"]) -> Float[Tensor, "batch height width channels"]:
        """The mixed map."""
        x, gate = self.in_proj(x).chunk(2, dim=-1)
        x = functional.silu(self.conv2d(x.permute(0, 3, 1, 2)))
        mixed = cross_merge(self.mix(cross_scan(x)), *x.shape[2:]).permute(0, 2, 3, 1)
        return self.out_proj(self.out_norm(mixed.to(x.dtype)) * functional.silu(gate))

    def mix(self, u: Read) -> Read:
        """The four recurrences, in single precision at least: in half precision they overflow."""
        step, *both = torch.einsum("bkdl,kcd->bkcl", u, self.x_proj_weight).split(self.sizes, dim=2)
        step = torch.einsum("bkrl,kdr->bkdl", step, self.dt_projs_weight)
        u, step, write, look = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (u, step, *both))
        step = functional.softplus(step + self.dt_projs_bias[..., None])
        return scan(u, step, -self.A_logs.exp().unflatten(0, (ORDERS, -1)), write, look) + self.Ds.view(ORDERS, -1, 1) * u


class Block(nn.Module):
    """x + SS2D(norm(x))."""

    def __init__(self, width: int, states: int):
        super().__init__()
        self.norm, self.op = nn.LayerNorm(width), SelectiveScan(width, states)

    def forward(self, x: Tensor) -> Tensor:
        """The next features."""
        return x + self.op(self.norm(x))


class Merge(nn.Module):
    """2 x 2 pixels side by side in the channels, column by column; an odd rim is cut off."""

    def forward(self, x: Float[Tensor, "batch height width channels"]) -> Float[Tensor, "batch h w channels4"]:
        """A map of half the side and four times the channels."""
        height, width = (side // 2 * 2 for side in x.shape[1:3])
        return torch.cat([x[:, down:height:2, right:width:2] for right in (0, 1) for down in (0, 1)], -1)


class Stage(nn.Module):
    """Blocks of one width, then half the side and twice the width, but for the last stage."""

    def __init__(self, width: int, depth: int, states: int, *, last: bool):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width, states) for _ in range(depth)))
        merge = [Merge(), nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)]
        self.downsample = nn.Sequential(*([] if last else merge))

    def forward(self, x: Tensor) -> Tensor:
        """The features of the next stage."""
        return self.downsample(self.blocks(x))


class VMamba(nn.Module):
    """Patches of 4 x 4 pixels, stages of blocks, and a linear head on the mean of the normalised features."""

    older_names = OLDER  # see `weights.load`

    def __init__(self, num_classes: int = 1000, in_chans: int = 3, embed_dim: int = 128, depths: tuple = (2, 2, 27, 2), states: int = 16):
        super().__init__()
        widths = [embed_dim * 2**level for level in range(len(depths))]
        self.num_classes, self.num_features = num_classes, widths[-1]
        self.patch_embed = nn.Sequential(nn.Conv2d(in_chans, embed_dim, 4, 4), Permute([0, 2, 3, 1]), nn.LayerNorm(embed_dim))
        pairs = enumerate(zip(widths, depths, strict=True), start=1)
        self.layers = nn.Sequential(*(Stage(width, depth, states, last=level == len(depths)) for level, (width, depth) in pairs))
        self.classifier = nn.ModuleDict({"norm": nn.LayerNorm(widths[-1]), "head": nn.Linear(widths[-1], num_classes)})

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch classes"]:
        """Class scores of normalised images."""
        features = self.classifier["norm"](self.layers(self.patch_embed(image)))
        return self.classifier["head"](features.mean((1, 2)))


@register_model
def vssm_base_v0(pretrained: bool = False, **kwargs) -> VMamba:
    """VMamba-B of the paper; `embed_dim`, `depths` and `states` make smaller ones, such as the mini zoo may train."""
    return build_model_with_cfg(VMamba, "vssm_base_v0", pretrained, **kwargs)
