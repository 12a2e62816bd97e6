import hashlib

import torch

from cnslib.core import paths, seeds


def test_a_run_has_folders_of_its_own_and_everything_else_lies_under_the_root(tmp_path):
    layout = paths.Layout(str(tmp_path / "run"), "accuracy")
    assert layout.figures == tmp_path / "run" / "figures" / "accuracy" and layout.figures.is_dir() and layout.metrics.is_dir()
    assert layout.artifacts("sliders") == layout.locate("artifacts/sliders") == tmp_path / "run" / "artifacts" / "sliders"
    assert layout.locate("data/photos") == paths.PHOTOS


def test_the_seed_is_the_head_of_the_sha256_of_the_json_key():
    assert seeds.seed_of("bag", 3) == int.from_bytes(hashlib.sha256(b'["bag", 3]').digest()[:8], "big") >> 1
    draw = lambda *key: torch.rand(4, generator=seeds.generator(*key))  # noqa: E731
    assert torch.equal(draw("bag", 3), draw("bag", 3)) and not torch.equal(draw("bag", 3), draw("bag", "3"))
