"""Networks of timm under names that leave their size open (MLP-Mixer) or fix it (the ViT that open_clip builds by its name)."""

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer

CONFIG = {
    "input_size": (3, 64, 64),
    "num_classes": 10,
    "classifier": "head",
    "mean": (0.5, 0.5, 0.5),
    "std": (0.25, 0.25, 0.25),
    "interpolation": "bicubic",
    "crop_pct": 1.0,
}
VIT = {"img_size": 64, "patch_size": 8, "embed_dim": 128, "depth": 4, "num_heads": 4}  # those of the zoo's `vit`
default_cfgs = generate_default_cfgs(
    {
        "mixer_64.untrained": CONFIG | {"first_conv": "stem.proj"},
        "vit_64.untrained": CONFIG | {"first_conv": "patch_embed.proj"},
    }
)


@register_model
def mixer_64(pretrained: bool = False, **kwargs) -> MlpMixer:
    """MLP-Mixer (Tolstikhin et al. 2021) for 64 px images; timm's own names fix patch size and width."""
    return build_model_with_cfg(MlpMixer, "mixer_64", pretrained, **({"img_size": 64, "patch_size": 8} | kwargs))


@register_model
def vit_64(pretrained: bool = False, **kwargs) -> VisionTransformer:
    """The zoo's ViT under one name, because an open_clip configuration holds a name and no arguments."""
    return build_model_with_cfg(VisionTransformer, "vit_64", pretrained, **(VIT | kwargs))
