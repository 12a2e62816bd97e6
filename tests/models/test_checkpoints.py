"""Checkpoints: every layout gives the saved model, and a partial one is refused with counts."""

import pytest
import timm
import torch
import torchvision
from tiny_encoders import VIT, flat

from cnslib.models import checkpoints, weights

KEY = "evaluation.classifiers.x"
OPENMMLAB = {
    "blocks.0.norm": "backbone.layers.0.ln",
    "blocks.0.attn.": "backbone.layers.0.attn.",
    "blocks.0.mlp.fc1.": "backbone.layers.0.ffn.layers.0.0.",
    "blocks.0.mlp.fc2.": "backbone.layers.0.ffn.layers.1.",
    "patch_embed.proj.": "backbone.patch_embed.projection.",
    "norm.": "backbone.ln1.",
    "head.": "head.layers.head.",
    "cls_token": "backbone.cls_token",
    "pos_embed": "backbone.pos_embed",
}


def tiny(seed=0, **arguments):
    """A vision transformer of timm with random weights, for 32-px pictures."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = timm.create_model("vit_tiny_patch16_224", **{**VIT, "num_classes": 5, **arguments}).eval()
        for parameter in model.parameters():
            parameter.data.normal_(std=0.1)
    return model.requires_grad_(False)


def with_prefix(state, prefix):
    return {prefix + name: value for name, value in state.items()}


def openmmlab(state):
    """The names of OpenMMLab's vision transformer."""
    renamed = {}
    for name, value in state.items():
        start = next(start for start in OPENMMLAB if name.startswith(start))
        renamed[OPENMMLAB[start] + name.removeprefix(start)] = value
    return renamed


def mocov3(state):
    """A checkpoint of MoCo v3: encoder, momentum encoder and predictor of a distributed training."""
    others = with_prefix(state, "module.momentum_encoder.") | {"module.predictor.0.weight": torch.ones(2, 2)}
    return {"epoch": 300, "arch": "vit_base", "state_dict": with_prefix(state, "module.base_encoder.") | others, "optimizer": {}}


@pytest.mark.parametrize(
    "layout",
    [
        lambda state: state,
        lambda state: {"model": state, "epoch": 100},
        lambda state: {"state_dict": with_prefix(state, "module."), "optimizer": {}},
        mocov3,
        lambda state: {"meta": {"epoch": 150}, "state_dict": openmmlab(state)},
    ],
    ids=["bare", "MAE and DeiT", "distributed", "MoCo v3", "OpenMMLab"],
)
def test_every_layout_of_a_checkpoint_gives_the_saved_model(tmp_path, layout):
    saved, other = tiny(), tiny(seed=1)
    torch.save(layout(saved.state_dict()), tmp_path / "checkpoint.pth")
    found = checkpoints.load(other, tmp_path / "checkpoint.pth", key=KEY)
    image = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert (len(found.matched), found.complete) == (len(saved.state_dict()), True)
    assert torch.equal(other(image), saved(image))


def test_a_resnet_of_moco_v3_has_timms_names(tmp_path):
    with torch.device("meta"):
        theirs, ours = torchvision.models.resnet50(), timm.create_model("resnet50")
    torch.save({"arch": "resnet50", "state_dict": with_prefix(flat(theirs), "module.")}, tmp_path / "linear.pth.tar")
    found = checkpoints.renamed(tmp_path / "linear.pth.tar", key=KEY)
    assert weights.match(weights.shapes(found), weights.shapes(ours.state_dict())).complete


def test_a_partial_checkpoint_is_refused_and_counted(tmp_path):
    state = tiny().state_dict()
    changed = {name: value for name, value in state.items() if not name.startswith("head.")}
    torch.save({"model": changed}, tmp_path / "backbone.pth")
    with pytest.raises(
        ValueError, match=r"backbone.pth does not fit .*: 18 tensors match, 2 missing \(head.bias, head.weight\), .*without its"
    ):
        checkpoints.load(tiny(), tmp_path / "backbone.pth", key=KEY)
    changed |= {"head.0.weight": torch.ones(1), "norm.weight": torch.ones(3)}
    torch.save(mocov3(changed), tmp_path / "pretrained.pth")
    counts = (
        r"17 tensors match, 2 missing .*, 1 unexpected \(head.0.weight\), 1 of another shape \(norm.weight\); a partial load is refused"
    )
    model, before = tiny(seed=1), tiny(seed=1).state_dict()
    with pytest.raises(ValueError, match=counts):
        checkpoints.load(model, tmp_path / "pretrained.pth", key=KEY)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_file_without_tensors_or_with_two_networks_is_refused(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "empty.pth")
    with pytest.raises(ValueError, match=r"empty\.pth holds no tensors"):
        checkpoints.renamed(tmp_path / "empty.pth", key=KEY)
    torch.save({"module.a": torch.ones(1), "a": torch.ones(1)}, tmp_path / "two.pth")
    with pytest.raises(ValueError, match=r"two\.pth holds 1 tensors under two names"):
        checkpoints.renamed(tmp_path / "two.pth", key=KEY)


@pytest.mark.parametrize(("blocks", "features"), [(1, "concatenated"), (4, "concatenated"), (1, "interleaved")])
def test_a_linear_head_sees_class_tokens_and_the_mean_patch_in_the_released_order(tmp_path, blocks, features):
    backbone = tiny(depth=5, num_classes=0, reg_tokens=4)
    head = torch.nn.Linear(16 * (blocks + 1), 7)
    state = (
        {"state_dict": with_prefix(head.state_dict(), "module.linear."), "best_acc": 78.2}
        if features == "interleaved"
        else head.state_dict()
    )
    torch.save(dict(state), tmp_path / "head.pth")
    model = checkpoints.probe(backbone, tmp_path / "head.pth", features=features, key=KEY)
    image = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    seen = []
    handles = [block.register_forward_hook(lambda module, inputs, output: seen.append(backbone.norm(output))) for block in backbone.blocks]
    with torch.no_grad():
        last = backbone.forward_features(image)
        for handle in handles:
            handle.remove()
        found, logits = model.features(image), model(image)
    parts = [tokens[:, 0] for tokens in seen[-blocks:]] + [last[:, 5:].mean(dim=1)]
    expected = torch.cat(parts, dim=1)
    if features == "interleaved":
        expected = torch.empty_like(found)
        expected[:, 0::2], expected[:, 1::2] = parts
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(logits, head(expected), atol=1e-5)


@pytest.mark.parametrize(("width", "features"), [(48, "concatenated"), (80, "interleaved")])
def test_a_linear_head_of_another_width_is_refused(tmp_path, width, features):
    torch.save(dict(torch.nn.Linear(width, 7).state_dict()), tmp_path / "head.pth")
    with pytest.raises(ValueError, match=rf"{KEY}: .*head.pth holds .*\(7, {width}\).*; accepted: a linear head, weight and bias, on 32"):
        checkpoints.probe(tiny(num_classes=0), tmp_path / "head.pth", features=features, key=KEY)
