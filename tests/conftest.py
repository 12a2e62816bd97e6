"""Tiny random-weight models in the formats of the real ones, written once per test session."""

from pathlib import Path

import hypothesis
import pytest
from tiny_pipeline import WIDTH, tiny_scheduler, tiny_text, tiny_unet, tiny_vae

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def tiny_pipeline_dir(tmp_path_factory) -> Path:
    """Directory of a StableDiffusionPipeline with random weights: runs in milliseconds, draws noise. Read only."""
    import torch
    from diffusers import StableDiffusionPipeline

    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokenizer, text_encoder = tiny_text()
        pipe = StableDiffusionPipeline(
            vae=tiny_vae(),
            text_encoder=text_encoder,
            tokenizer=tokenizer,
            unet=tiny_unet(),
            scheduler=tiny_scheduler(),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
    path = tmp_path_factory.mktemp("models") / "tiny-sd"
    pipe.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def tiny_tokens_dir(tmp_path_factory) -> Path:
    """Textual-inversion files of two classes for the tiny pipeline, named as the inversion step names them. Read only."""
    import torch
    from safetensors.torch import save_file

    from cnslib.core.names import identifier, token
    from cnslib.core.units import seal

    folder = tmp_path_factory.mktemp("tokens")
    generator = torch.Generator().manual_seed(0)
    for name in ("sneaker", "ankle boot"):
        vector = torch.randn(WIDTH, generator=generator)
        save_file({token(name): vector}, folder / f"{identifier(name)}.safetensors")
        seal(folder / f"{identifier(name)}.safetensors")
    return folder
