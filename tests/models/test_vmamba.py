import json
import sys
from types import ModuleType

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from tiny_encoders import flat

from cnslib.models import classifiers, registry, vmamba

SMALL = {"embed_dim": 8, "depths": (1, 1), "states": 3, "num_classes": 5}
OLD = {  # printed in an issue of a project that loads the small one
    "patch_embed.0": "patch_embed.proj", "patch_embed.2": "patch_embed.norm", ".norm": ".ln_1", ".op.": ".self_attention.",
    "downsample.1": "downsample.norm", "downsample.2": "downsample.reduction", "classifier.": "",
}  # fmt: skip


def older(name):
    key = next(
        key for key in ("classifier.", "downsample.1", "downsample.2", "patch_embed.0", "patch_embed.2", ".op.", ".norm") if key in name
    )
    return name.replace(key, OLD[key])


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_scan_is_the_closed_form_of_its_recurrence():
    """y_t = sum over s <= t of C_t exp(A (steps after s up to t)) step_s B_s u_s: no loop, no state."""
    u, step, rate = random(2, 4, 3, 7), random(2, 4, 3, 7, seed=1).abs(), -random(4, 3, 5, seed=2).exp()
    write, look = random(2, 4, 5, 7, seed=3), random(2, 4, 5, 7, seed=4)
    until = step.cumsum(-1)
    between = (until[..., :, None] - until[..., None, :]).tril()  # [..., t, s]
    kernel = torch.einsum("bknt,bkns,bkdnts->bkdts", look, write, (rate[..., None, None] * between[:, :, :, None]).exp()).tril()
    expected = torch.einsum("bkdts,bkds->bkdt", kernel, step * u)
    assert torch.allclose(vmamba.scan(u, step, rate, write, look), expected, rtol=1e-10, atol=1e-12)


def test_reading_in_four_orders_and_merging_are_adjoint():
    x, y = random(2, 3, 4, 5), random(2, 4, 3, 20, seed=1)
    read = vmamba.cross_scan(x)
    assert torch.allclose((read * y).sum(), (x * vmamba.cross_merge(y, 4, 5)).sum())
    picture = torch.arange(6.0).view(1, 1, 2, 3)
    orders = [[0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5], [5, 4, 3, 2, 1, 0], [5, 2, 4, 1, 3, 0]]
    assert vmamba.cross_scan(picture)[0, :, 0].tolist() == orders
    assert vmamba.Merge()(picture.permute(0, 2, 3, 1)).flatten().tolist() == [0, 3, 1, 4]  # the odd column is cut off


@pytest.mark.parametrize(
    ("sizes", "values", "tensors"),
    [({"embed_dim": 96, "depths": (2, 2, 9, 2)}, 22_893_448, 212), ({"embed_dim": 96}, 44_417_416, 446), ({}, 76_254_056, 446)],
)
def test_it_has_as_many_parameters_and_tensors_as_the_published(sizes, values, tensors):
    with torch.device("meta"):
        state = timm.create_model("vssm_base_v0", **sizes).state_dict()
    assert (sum(value.numel() for value in state.values()), len(state)) == (values, tensors)
    assert state["layers.0.blocks.0.op.x_proj_weight"].shape == ((4, 40, 256) if not sizes else (4, 38, 192))


def test_both_spellings_of_the_checkpoint_load_strictly_with_its_settings_unread(tmp_path, monkeypatch):
    with torch.device("meta"):
        state = flat(timm.create_model("vssm_base_v0"))
    state["classifier.norm.bias"] = torch.arange(1024.0)
    path = tmp_path / "vssmbase_dp06_ckpt_epoch_241.pth"
    yacs, node = ModuleType("yacs.config"), type("CfgNode", (dict,), {"__module__": "yacs.config"})
    yacs.CfgNode = node
    for module in (ModuleType("yacs"), yacs):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    settings = node(MODEL=node(DROP_PATH_RATE=0.6))
    settings.__dict__["__immutable__"] = True
    for names in (state, {older(name): value for name, value in state.items()}):
        torch.save({"model": names, "config": settings, "epoch": 241}, path)
        model, _ = registry.build(f"registry:vssm_base_v0@{path}", key="x")
        assert model.state_dict()["classifier.norm.bias"].tolist() == list(range(1024))
    short = {older(name): value for name, value in state.items() if name != "layers.2.blocks.26.op.Ds"}
    torch.save({"model": short}, path)
    with pytest.raises(ValueError, match=r"x: .*241.pth does not fit the model: 445 tensors match, 1 missing \(layers.2.blocks.26.op.Ds\)"):
        registry.build(f"registry:vssm_base_v0@{path}", key="x")


def test_a_small_one_learns_and_is_a_classifier_of_the_benchmark(tmp_path):
    torch.manual_seed(0)
    model = timm.create_model("vssm_base_v0", **SMALL).double()
    picture = random(1, 3, 8, 12).requires_grad_()
    assert torch.autograd.gradcheck(model, (picture,), fast_mode=True)
    save_file({name: value.float() for name, value in model.state_dict().items()}, tmp_path / "model.safetensors")
    config = {"architecture": "vssm_base_v0", "num_classes": 5, "model_args": SMALL, "pretrained_cfg": {"input_size": [3, 32, 32]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = classifiers.load("mine", str(tmp_path), list("abcde"))
    images = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
    pixels = torch.stack([found.transform(classifiers.Image.fromarray(image)) for image in images]).double()
    assert torch.allclose(found.logits(images), model(pixels).float(), atol=1e-5)
