"""Ways to pre-train one ViT (MAE, SimCLR, supervised on the web pool, CLIP), and from its backbone to a classifier.

A backbone becomes a classifier by fine-tuning of all weights, or by a linear probe on frozen features.
"""

from typing import Any

import numpy as np
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Float
from lightly.models import utils
from lightly.models.modules import MaskedVisionTransformerDecoderTIMM, MaskedVisionTransformerTIMM
from open_clip.loss import ClipLoss
from open_clip.model import CustomTextCLIP
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from cnslib.core import seeds
from cnslib.models import networks
from cnslib.world import contrastive, diffusion, scenes, selfsupervised, training
from cnslib.world.training import Schedule, fit


class MaskedAutoencoder(nn.Module):
    """MAE (He et al. 2022): the encoder sees some patches, a small decoder draws the others; parts by lightly and timm."""

    def __init__(self, architecture: str, arguments: dict, *, width: int, depth: int):
        super().__init__()
        vit: Any = timm.create_model(architecture, num_classes=0, **arguments)
        self.side = vit.patch_embed.patch_size[0]
        self.encoder = MaskedVisionTransformerTIMM(vit)
        self.embed = nn.Linear(vit.embed_dim, width)
        self.decoder = MaskedVisionTransformerDecoderTIMM(vit.patch_embed.num_patches, width, depth, num_heads=4)
        self.predict = nn.Linear(width, 3 * self.side**2)

    def forward(self, image: Tensor, kept: Tensor, hidden: Tensor) -> Float[Tensor, "batch patches pixels"]:
        """Predicted pixels of the hidden patches, in the order of `hidden` (token indices, 0 is the class token)."""
        seen = self.embed(self.encoder.encode(image, idx_keep=kept))
        blank = self.decoder.mask_token.expand(len(image), self.encoder.sequence_length, -1)
        tokens = self.decoder(utils.set_at_index(blank.to(seen.dtype), kept, seen))
        return self.predict(utils.get_at_index(tokens, hidden))


def reconstruction_loss(drawn: Float[Tensor, "batch hidden pixels"], image: Tensor, hidden: Tensor, *, side: int) -> Float[Tensor, ""]:
    """Squared error of hidden patches only, each target normalised by its own mean and deviation (He et al. 2022, section 4)."""
    target = utils.get_at_index(utils.patchify(image, side), hidden - 1)
    return F.mse_loss(drawn.float(), utils.normalize_mean_var(target))


def mae(garments: scenes.Garments, backbone: dict, *, masked: float, schedule: Schedule, device: str, width: int, depth: int, **run):
    """Pre-trains on unshifted catalog scenes without their labels; returns the encoder."""
    training.begin(schedule.seed)
    model = MaskedAutoencoder(**backbone, width=width, depth=depth).to(device)

    def loss(step: int) -> Tensor:
        key = ("mae", schedule.seed, step)
        training.reseed(*key)
        image = training.normalise(scenes.sample(garments, key, schedule.batch_size, style="catalog", unshifted=1.0).image).to(device)
        kept, hidden = (part.to(device) for part in utils.random_token_mask((len(image), model.encoder.sequence_length), masked))
        with training.autocast(device):
            drawn = model(image, kept, hidden)
        return reconstruction_loss(drawn, image, hidden, side=model.side)

    return fit(model, loss, schedule=schedule, **run).encoder.vit.cpu()


def views(garments: scenes.Garments, key: tuple, count: int) -> list[Float[Tensor, "batch 3 64 64"]]:
    """Two unshifted catalog scenes of each of `count` garments, half of them mirrored; each is rendered with draws of its own."""
    rows = torch.randperm(len(garments.labels), generator=seeds.generator(*key, "choice"))[:count]
    renders = [scenes.render(garments.grey[rows], [(*key, view, i) for i in range(count)], style="catalog") for view in range(2)]
    return [training.flip(render, seeds.generator(*key, view, "flip")) for view, render in enumerate(renders)]


def simclr(garments: scenes.Garments, backbone: dict, *, schedule: Schedule, **run) -> nn.Module:
    """Pre-trains to find the other view of each garment (NT-Xent, Chen et al. 2020) without labels; returns the backbone."""
    training.begin(schedule.seed)
    model = timm.create_model(backbone["architecture"], num_classes=0, **backbone["arguments"])
    drawn = lambda step: views(garments, ("simclr", schedule.seed, step), schedule.batch_size)  # noqa: E731
    return selfsupervised.contrast(model, drawn, schedule=schedule, **run)


def web(garments: scenes.Garments, backbone: dict, *, schedule: Schedule, **run) -> nn.Module:
    """Pre-trains with labels on unshifted web scenes: three times as many garments, other poses and palettes."""
    training.begin(schedule.seed)
    model = timm.create_model(backbone["architecture"], num_classes=len(garments.classes), **backbone["arguments"])
    trained = training.train(model, garments, name="web", style="web", schedule=schedule, **run)
    trained.reset_classifier(0)  # type: ignore[operator]
    return trained


def clip(garments: scenes.Garments, _backbone: dict, *, width: int, layers: int, schedule: Schedule, device: str, **run):
    """Pre-trains the zoo's ViT as mini-CLIP: captions with their shifts (InfoNCE on batches of all captions); returns model and config."""
    training.begin(schedule.seed)
    tokens = diffusion.tokenizer(garments.classes)
    settings = contrastive.config(tokens, vision=networks.vit_64.__name__, width=width, layers=layers, pool="token")
    model = CustomTextCLIP(**settings["model_cfg"], output_dict=False).to(device)
    ids, nce = diffusion.token_table(tokens, garments.classes)[:-1].to(device), ClipLoss()

    def loss(step: int) -> Tensor:
        key = ("clip", schedule.seed, step)
        training.reseed(*key)
        batch = contrastive.one_of_each(garments, key)
        with training.autocast(device):
            image, text, scale = model(training.normalise(batch.image).to(device), ids[batch.caption])
        return nce(image.float(), text.float(), scale.clamp(max=100))

    return fit(model, loss, schedule=schedule, **run).cpu(), settings


def headed(backbone: nn.Module, architecture: str, arguments: dict, *, classes: int = len(scenes.CLASSES)) -> nn.Module:
    """A classifier with the backbone's weights and a new head."""
    model = timm.create_model(architecture, num_classes=classes, **arguments)
    model.load_state_dict(backbone.state_dict(), strict=False)
    return model


def finetune(garments: scenes.Garments, backbone: nn.Module, network: dict, *, schedule: Schedule, **run) -> nn.Module:
    """Trains backbone and a new head on unshifted catalog scenes: one recipe and the same scenes, whatever the backbone's past."""
    training.begin(schedule.seed)
    model = headed(backbone, **network, classes=len(garments.classes))
    return training.train(model, garments, name="finetuning", style="catalog", schedule=schedule, **run)


def probe(garments: scenes.Garments, backbone: nn.Module, network: dict, *, penalty: float, seed: int, device: str) -> nn.Module:
    """Logistic regression on the frozen features of one catalog scene per garment; the features' scaling becomes part of the head."""
    parts = []
    for rows in torch.arange(len(garments.labels)).split(1000):
        image = scenes.render(garments.grey[rows], [("probe", seed, i) for i in rows.tolist()], style="catalog")
        parts.append(training.predict(backbone, image, device=device))
    table = torch.cat(parts).double().numpy()
    scale, line = make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=2000)).fit(table, garments.labels)
    model = headed(backbone.cpu(), **network, classes=len(garments.classes))
    sides = np.array([-0.5, 0.5]) if len(garments.classes) == 2 else None  # of two classes scikit-learn keeps the difference
    weight = torch.from_numpy((line.coef_ if sides is None else np.outer(sides, line.coef_)) / scale.scale_)
    bias = torch.from_numpy(line.intercept_ if sides is None else sides * line.intercept_) - weight @ torch.from_numpy(scale.mean_)
    model.load_state_dict({"head.weight": weight, "head.bias": bias}, strict=False)
    return model
