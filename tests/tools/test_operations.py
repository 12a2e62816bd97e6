"""Operations of the networks that look at pictures: the published ones, of the shapes of the files."""

import pytest
from safetensors import safe_open

from cnslib.core import paths, tables
from cnslib.tools import operations, plan


def made_up(operations_, kind, preprocessing="a"):
    return operations.Network("", operations_, kind, (3, 8, 8), None, preprocessing)


@pytest.mark.slow
def test_operations_are_the_published_ones(looking):
    """torchvision's documentation of the same shapes prints multiply-adds in units of 1e9, which are two operations each; attention's
    products are 4 % of the ViT's."""
    published = {
        "resnet50.a1_in1k": (4.09, operations.CONVOLUTIONS),
        "resnet152.a1_in1k": (11.51, operations.CONVOLUTIONS),
        "vit_base_patch16_224.augreg_in1k": (17.56, operations.PRODUCTS),
        "convnext_base.fb_in1k": (15.36, operations.PRODUCTS),
    }
    counted = {one.source: one for one in looking[0]["evaluation"]}
    for model, (multiplications, kind) in published.items():
        one = counted[f"registry:{model}"]
        assert (one.operations, one.kind) == (pytest.approx(2e9 * multiplications, rel=0.005), kind)
    assert counted["registry:alexnet@weights/alexnet-owt-7be5be79.pth"].operations == pytest.approx(2 * 0.71e9, rel=0.01)


@pytest.mark.slow
def test_every_classifier_of_the_paper_but_vmamba_is_counted_without_weights(paper, looking):
    networks, unknown = looking
    assert list(unknown) == ["evaluation.classifiers.vssm_base_v0"]
    assert (len(networks["filtering"]), len(networks["evaluation"])) == (3, 42)
    sides = {one.source: one.shape[1] for own in networks.values() for one in own}
    assert sides.pop(paper["base"].image_encoder) == 518  # DINOv2 as timm runs it
    assert sides.pop("registry:clip_vit_large_patch14_336") == 336
    assert set(sides.values()) == {224}


def test_one_picture_costs_operations_over_rate_and_is_decoded_once_for_eight():
    """1 + 3 GFLOP at 1 and 2 GFLOP at 4 GFLOP/s. Nine networks: two groups decode for 1 s, and prepare 2 + 3 s and 2 s."""
    speed = operations.Speed({"convolutions": 1e9, "matrix products": 4e9}, {}, 1.0, {"a": 2.0, "b": 3.0})
    assert speed.looking([made_up(1e9, "convolutions"), made_up(3e9, "convolutions"), made_up(2e9, "matrix products")]) == 4.5
    assert speed.feeding([made_up(1, "convolutions", name) for name in "abababaaa"]) == 2 * 1 + (2 + 3) + 2


def test_random_networks_have_the_shapes_of_the_files(mini):
    """A classifier of timm, one of ours and the image tower of an open_clip model against the tensors of their files."""
    folders = {"classifiers/vit": "model", "classifiers/alexnet": "model", "mini-clip": "open_clip_model"}
    for folder, name in folders.items():
        with safe_open(paths.resolve(f"data/models/{folder}/{name}.safetensors"), "pt") as file:
            shapes = {key.removeprefix("visual."): tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        built = operations.build(f"data/models/{folder}", "meta", key="plan").state_dict()
        assert {key: tuple(value.shape) for key, value in built.items()}.items() <= shapes.items()


def test_the_decoded_picture_is_as_hard_to_compress_as_the_benchmarks():
    drawn = operations.picture(256)
    assert drawn.shape == (256, 256, 3)
    assert len(tables.encode(drawn)) / drawn.size == pytest.approx(plan.PNG, abs=0.08)


def test_a_network_that_is_to_run_has_initial_weights():
    """What is only counted has none: on the meta device nothing is filled."""
    networks = {device: operations.build("data/models/classifiers/vit", device, key="plan") for device in ("cpu", "meta")}
    shapes = [[value.shape for value in network.parameters()] for network in networks.values()]
    assert shapes[0] == shapes[1] and all(value.is_meta for value in networks["meta"].parameters())
    matrices = [value for value in networks["cpu"].parameters() if value.ndim > 1]
    assert matrices and all(value.isfinite().all() and value.std() > 0 for value in matrices)
