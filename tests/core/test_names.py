"""Names of shifts, classes and tokens; folders of a run; seeds of images."""

import hashlib

import pytest
import torch

from cnslib.core import names, paths, seeds


def test_a_token_is_lower_case_without_blanks_and_of_one_class():
    assert names.token("Great White Shark") == "<great-white-shark*>"
    names.require_distinct(["sneaker", "ankle boot"])
    with pytest.raises(ValueError, match=r"'Ankle Boot' and 'ankle boot' both become the token <ankle-boot\*>"):
        names.require_distinct(["sneaker", "Ankle Boot", "ankle boot"])


def test_a_demand_that_fails_names_key_value_and_what_is_accepted():
    names.demand(True, "base.seeds", 3, "1 or more")
    with pytest.raises(ValueError, match=r"^base\.seeds: 0 is not accepted; accepted: 1 or more$"):
        names.demand(False, "base.seeds", 0, "1 or more")


def test_a_run_has_folders_of_its_own_and_everything_else_lies_under_the_root(tmp_path):
    layout = paths.Layout(str(tmp_path / "run"), "accuracy")
    assert layout.figures == tmp_path / "run" / "figures" / "accuracy" and layout.figures.is_dir() and layout.metrics.is_dir()
    assert layout.artifacts("sliders") == layout.locate("artifacts/sliders") == tmp_path / "run" / "artifacts" / "sliders"
    assert layout.locate("data/photos") == paths.PHOTOS


def test_the_seed_is_the_head_of_the_sha256_of_the_json_key():
    assert seeds.seed_of("bag", 3) == int.from_bytes(hashlib.sha256(b'["bag", 3]').digest()[:8], "big") >> 1
    draw = lambda *key: torch.rand(4, generator=seeds.generator(*key))  # noqa: E731
    assert torch.equal(draw("bag", 3), draw("bag", 3)) and not torch.equal(draw("bag", 3), draw("bag", "3"))
