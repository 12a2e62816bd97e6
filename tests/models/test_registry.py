import hashlib

import numpy as np
import open_clip
import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file
from tiny_encoders import flat

from cnslib.core import units
from cnslib.data import imagenet
from cnslib.models import classifiers, registry

PICTURE = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)


def load(name, path="", options="", **settings):
    source = f"registry:{name}" + (f"@{path}" if path else "") + options
    return classifiers.load(name, source, list(imagenet.labels()), **settings)


def of_kind(kind):
    return [found for found in registry.entries().values() if found.kind == kind]


def test_timm_and_open_clip_know_every_name_with_its_preprocessing_and_repository():
    known = set(timm.list_pretrained())
    assert {kind: len(of_kind(kind)) for kind in ("timm", "linear_head", "open_clip")} == {"timm": 21, "linear_head": 9, "open_clip": 6}
    for found in of_kind("timm") + of_kind("linear_head"):
        config = timm.get_pretrained_cfg(found.architecture)
        own = {name: getattr(config, name) for name in ("input_size", "crop_pct", "mean", "std")}
        assert found.architecture in known and config.hf_hub_id == found.hub
        if found.kind == "timm":
            assert found.model == found.architecture and own == {name: found.settings[name] for name in own}, found.model
        else:
            assert config.num_classes == 0 and (config.mean, config.std) == (found.settings["mean"], found.settings["std"])
    assert {found.architecture for found in of_kind("checkpoint")} <= set(timm.list_models())
    for found in of_kind("open_clip"):
        name, tag = found.architecture.split("/")
        assert (name, tag) in open_clip.list_pretrained()
        config = open_clip.get_pretrained_cfg(name, tag)
        assert (config["mean"], config["std"], config["hf_hub"]) == (found.settings["mean"], found.settings["std"], f"{found.hub}/")
        assert open_clip.get_model_config(name)["vision_cfg"]["image_size"] == found.input_size


def test_alexnet_answers_with_the_weights_of_its_file_under_either_preprocessing(tmp_path):
    with torch.device("meta"):
        state = flat(torchvision.models.alexnet())
    torch.save(state | {"classifier.6.bias": torch.arange(1000.0)}, tmp_path / "alexnet-owt-7be5be79.pth")
    with pytest.raises(ValueError, match=r"classifiers.alexnet: .*7be5be79.pth has sha256 .*; accepted: 7be5be79"):
        load("alexnet", tmp_path)
    digest = hashlib.sha256((tmp_path / "alexnet-owt-7be5be79.pth").read_bytes()).hexdigest()
    own, paper = (load("alexnet", tmp_path, f";sha256={digest}", preprocessing=how) for how in ("model", "paper"))
    assert own.logits(PICTURE).tolist() == [list(range(1000))]
    assert (own.settings["interpolation"], paper.settings) == ("bilinear", classifiers.paper_settings((3, 224, 224)))
    assert own.preprocessing != paper.preprocessing


def test_dinov2_needs_its_head_and_resamples_its_position_embedding(tmp_path):
    found = registry.entry("dinov2_vit_small_patch14")
    with pytest.raises(FileNotFoundError, match=r"dinov2_vits14_linear4_head.pth does not exist"):
        load(found.model, tmp_path)
    with torch.device("meta"):
        state = timm.create_model(found.architecture).state_dict()
    save_file({name: torch.zeros(value.shape, dtype=torch.float16) for name, value in state.items()}, tmp_path / found.file)
    torch.save({"weight": torch.zeros(1).expand(1000, 1920), "bias": torch.zeros(1000)}, tmp_path / found.head)
    network = load(found.model, tmp_path).network
    assert state["pos_embed"].shape == (1, 1 + 37**2, 384)
    assert network.backbone.pos_embed.shape == (1, 1 + 16**2, 384) and network.blocks == 4


def test_the_digest_of_a_source_is_that_of_its_files_and_its_row(tmp_path, monkeypatch):
    digests = set()
    for content in (b"1", b"2"):
        (tmp_path / "a.pth").write_bytes(content)
        digests |= {classifiers.digest(f"registry:alexnet@{tmp_path}"), classifiers.digest(f"registry:alexnet@{tmp_path / 'a.pth'}")}
    assert len(digests) == 4
    monkeypatch.setattr(units, "file_digest", lambda path: pytest.fail(f"{path} was read"))  # an empty path is the whole repository
    before, row = registry.source_digest("registry:alexnet"), registry.entry("alexnet")
    for change, same in (({"crop_pct": 0.5}, False), ({"sha256": "0" * 8}, False), ({"family": "other"}, True)):
        changed = registry.Entry(**vars(row) | change)
        monkeypatch.setattr(registry, "entry", lambda _, changed=changed: changed)
        assert (registry.source_digest("registry:alexnet") == before) == same
