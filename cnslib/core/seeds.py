"""Seeds that belong to images, never to batches or processes."""

import hashlib
import json

import torch


def seed_of(*key: str | int) -> int:
    """A 63-bit seed from the parts of a key: the head of the sha256 of its JSON form."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(*key: str | int, device: str = "cpu") -> torch.Generator:
    """A torch generator seeded by a key such as (class, shift, seed): one generator per image."""
    return torch.Generator(device).manual_seed(seed_of(*key))
