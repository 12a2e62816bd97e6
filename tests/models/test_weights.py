import argparse
import os
import pickle

import pytest
import timm
import torch
from safetensors.torch import save_file
from tiny_encoders import VIT

from cnslib.models import registry, weights

KEY = "evaluation.classifiers.x"
WEIGHTS = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.alpha": torch.tensor(1.0, dtype=torch.bfloat16)}


class Runs:
    """Unpickling one creates a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def same(found):
    return found.keys() == WEIGHTS.keys() and all(
        torch.equal(found[key], value) and found[key].dtype == value.dtype for key, value in WEIGHTS.items()
    )


@pytest.mark.parametrize("suffix", [".pt", ".bin", ".pth.tar", ".safetensors", "before zip archives"])
def test_tensors_come_back_with_their_names_and_types(tmp_path, suffix):
    path = tmp_path / f"weights{suffix if suffix[0] == '.' else '.pt'}"
    save_file(WEIGHTS, path) if suffix == ".safetensors" else torch.save(WEIGHTS, path, _use_new_zipfile_serialization=suffix[0] == ".")
    assert same(weights.read_weights(path))


def test_checkpoints_may_hold_plain_values_beside_their_tensors(tmp_path):
    torch.save({"epoch": 3, "args": argparse.Namespace(lr=0.1), "model": WEIGHTS}, tmp_path / "checkpoint.pth")
    assert same(weights.read_weights(tmp_path / "checkpoint.pth"))
    torch.save({"tokens": ["<hen-8>"]}, tmp_path / "tokens.pt")
    assert weights.contents(tmp_path / "tokens.pt") == {"tokens": ["<hen-8>"]}


@pytest.mark.parametrize("kind", ["zip", "before zip", "safetensors"])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.95])
def test_a_truncated_file_is_named_wherever_it_ends(tmp_path, kind, kept):
    path = tmp_path / ("cut.safetensors" if kind == "safetensors" else "cut.pt")
    save_file(WEIGHTS, path) if kind == "safetensors" else torch.save(WEIGHTS, path, _use_new_zipfile_serialization=kind == "zip")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"cut\.\w+ is (empty|not a complete (torch|safetensors) file)"):
        weights.read_weights(path)


@pytest.mark.parametrize("write", ["torch", "torch before zip", "pickle", "a later pickle"])
def test_a_file_that_needs_code_is_refused_and_runs_nothing(tmp_path, write):
    path, trace = tmp_path / "evil.pt", tmp_path / "trace"
    if "pickle" in write:
        path.write_bytes(pickle.dumps({"x": Runs(trace)}, protocol=4 if "later" in write else 2))
    else:
        torch.save(WEIGHTS | {"x": Runs(trace)}, path, _use_new_zipfile_serialization=write == "torch")
    told = "is not a complete torch file" if "later" in write else r"could only be read by running code in it \(\w+\.mkdir\)"
    with pytest.raises(ValueError, match=rf"evil\.pt {told}"):
        weights.contents(path)
    assert not trace.exists()
    pickle.loads(pickle.dumps(Runs(trace)))
    assert trace.exists()  # what the file would have done


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
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = timm.create_model("vit_tiny_patch16_224", **{**VIT, "num_classes": 5, **arguments}).eval()
        for parameter in model.parameters():
            parameter.data.normal_(std=0.1)
    return model.requires_grad_(False)


def with_prefix(state, prefix):
    return {prefix + name: value for name, value in state.items()}


def openmmlab(state):
    starts = {name: next(start for start in OPENMMLAB if name.startswith(start)) for name in state}
    return {OPENMMLAB[starts[name]] + name.removeprefix(starts[name]): value for name, value in state.items()}


def mocov3(state):
    others = with_prefix(state, "module.momentum_encoder.") | {"module.predictor.0.weight": torch.ones(2, 2)}
    return {"epoch": 300, "arch": "vit_base", "state_dict": with_prefix(state, "module.base_encoder.") | others, "optimizer": {}}


LAYOUTS = {
    "bare": lambda state: state,
    "MAE and DeiT": lambda state: {"model": state, "epoch": 100},
    "distributed": lambda state: {"state_dict": with_prefix(state, "module."), "optimizer": {}},
    "MoCo v3": mocov3,
    "OpenMMLab": lambda state: {"meta": {"epoch": 150}, "state_dict": openmmlab(state)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_a_checkpoint_gives_the_saved_model(tmp_path, layout):
    saved, other = tiny(), tiny(seed=1)
    torch.save(LAYOUTS[layout](saved.state_dict()), tmp_path / "checkpoint.pth")
    weights.load(other, tmp_path / "checkpoint.pth", key=KEY)
    image = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(other(image), saved(image))


def test_a_checkpoint_of_two_networks_is_refused(tmp_path):
    torch.save({"module.a": torch.ones(1), "a": torch.ones(1)}, tmp_path / "two.pth")
    with pytest.raises(ValueError, match=r"two\.pth holds 1 tensors under two names"):
        weights.renamed(weights.read_weights(tmp_path / "two.pth"), tmp_path / "two.pth")


@pytest.mark.parametrize(("blocks", "features"), [(1, "concatenated"), (4, "concatenated"), (1, "interleaved")])
def test_a_linear_head_sees_class_tokens_and_the_mean_patch_in_the_released_order(tmp_path, blocks, features):
    backbone, head = tiny(depth=5, num_classes=0, reg_tokens=4), torch.nn.Linear(16 * (blocks + 1), 7)
    dino = {"state_dict": with_prefix(head.state_dict(), "module.linear."), "best_acc": 78.2}
    torch.save(dino if features == "interleaved" else dict(head.state_dict()), tmp_path / "head.pth")
    model = registry.probe(backbone, tmp_path / "head.pth", features=features, key=KEY)
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
