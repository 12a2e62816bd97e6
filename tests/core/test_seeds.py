"""Seeds of images."""

import hashlib

import torch

from cnslib.core import seeds


def test_the_seed_is_the_head_of_the_sha256_of_the_json_key():
    expected = int.from_bytes(hashlib.sha256(b'["bag", 3]').digest()[:8], "big") >> 1
    assert seeds.seed_of("bag", 3) == expected


def test_equal_keys_give_equal_draws_and_other_keys_other_draws():
    draw = lambda *key: torch.rand(4, generator=seeds.generator(*key))  # noqa: E731
    assert torch.equal(draw("bag", 3), draw("bag", 3))
    assert not torch.equal(draw("bag", 3), draw("bag", 4))
    assert not torch.equal(draw("bag", 3), draw("bag", "3"))
