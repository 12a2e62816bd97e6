"""Our sliders and tokens in the layouts of others' programs: the authors' released sliders, dataset interfaces' tokens (docs/interop.md).

`classes` gives the ImageNet index of each class name.
"""

import collections
import copy
import io
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from torch import Tensor

from cnslib.core import names, units
from cnslib.core.names import demand, identifier
from cnslib.models import adapters, weights
from cnslib.models.kohya import ALPHA, DOWN, UP, stems
from cnslib.models.tokens import OLD, Vector, refuse_existing


def to_released(unet: UNet2DConditionModel, path: Path) -> dict[str, Tensor]:
    """The tensors of an adapter file of ours under their released names, bit for bit, with alpha beside each pair of factors.

    ValueError names a file that is not a whole adapter of this UNet.
    """
    adapters.require_complete(unet, path)
    config = json.loads(adapters.header(path)[adapters.CONFIG])
    ours, found = safetensors.torch.load_file(path), {}
    for stem, name in stems(unet).items():
        down, up = ours[f"unet.{name}.lora_A.weight"], ours[f"unet.{name}.lora_B.weight"]
        exact = (torch.tensor(config["unet.lora_alpha"], dtype=kind) for kind in (down.dtype, torch.float32, torch.float64))
        found[f"{stem}.{ALPHA}"] = next(alpha for alpha in exact if alpha.item() == config["unet.lora_alpha"])
        found[f"{stem}.{DOWN}"], found[f"{stem}.{UP}"] = down, up
    return found


def export_slider(unet: UNet2DConditionModel, source: Path, target: Path) -> None:
    """Writes an adapter file of ours in the released layout: a .pt state dict, or .safetensors that keeps our header entries."""
    demand(target.suffix in (".pt", ".safetensors"), f"slider {target}: suffix", target.suffix, ".pt, .safetensors")
    weights, buffer = to_released(unet, source), io.BytesIO()
    if target.suffix == ".safetensors":
        entries = {key: value for key, value in adapters.header(source).items() if key != adapters.CONFIG}
        buffer.write(adapters.with_header(safetensors.torch.save(weights, {"format": "pt"}), entries))
    else:
        torch.save(collections.OrderedDict(weights), buffer)
    units.write_bytes(target, buffer.getvalue())


def from_ours(folder: Path, classes: Mapping[str, int]) -> dict[str, Vector]:
    """The vectors of our token files. FileNotFoundError or ValueError name a file that is missing or another class's."""
    found = {}
    for name in classes:
        path = folder / f"{identifier(name)}.safetensors"
        tensors = weights.read_weights(path)
        demand(list(tensors) == [names.token(name)], f"{path}, tokens", list(tensors)[:2], names.token(name))
        found[name] = tensors[names.token(name)]
    return found


def write_files(vectors: Mapping[str, Vector], folder: Path, *, classes: Mapping[str, int]) -> None:
    """Writes the tokens as dataset interfaces publish theirs: a bare tensor `<index>.bin` per class. Existing files stay."""
    refuse_existing(*(folder / f"{classes[name]}.bin" for name in vectors))
    for name, vector in vectors.items():
        with units.atomic(folder / f"{classes[name]}.bin") as partial:
            torch.save(vector.clone(), partial)


def write_encoder(pipe: StableDiffusionPipeline, vectors: Mapping[str, Vector], folder: Path, *, classes: Mapping[str, int]) -> None:
    """Writes the folder that the authors' training and generation read: text_encoder/, tokenizer/ and tokens.pt, for transformers 4 too.

    The pipeline stays as it is. FileExistsError where the folder exists.
    """
    refuse_existing(folder)
    words = {classes[name]: (f"<{name}-{classes[name]}>", name) for name in sorted(vectors, key=lambda name: classes[name])}
    tokenizer, encoder = copy.deepcopy(pipe.tokenizer), copy.deepcopy(pipe.text_encoder)
    added = tokenizer.add_tokens([text for text, _ in words.values()])
    demand(added == len(words), "tokenizer of the pipeline, new tokens", added, f"{len(words)}: a pipeline without these tokens")
    encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    rows = encoder.get_input_embeddings().weight.data
    for text, name in words.values():
        rows[tokenizer.convert_tokens_to_ids(text)] = vectors[name].to(rows)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / folder.name
        encoder.save_pretrained(made / "text_encoder")
        rename_old(made / "text_encoder" / "model.safetensors")
        tokenizer.save_pretrained(made / "tokenizer")
        tokenizer.backend_tokenizer.model.save(str(made / "tokenizer"))  # with the next line the three files that transformers 4 reads
        (made / "tokenizer" / "added_tokens.json").write_text(json.dumps(tokenizer.get_added_vocab()))
        both = [words.get(number, ("", "")) for number in range(max(words) + 1)]
        torch.save({"initializer_words": [name for _, name in both], "tokens": [text for text, _ in both]}, made / "tokens.pt")
        os.replace(made, folder)


def rename_old(path: Path) -> None:
    """Gives the weights of a text encoder the names that every version of transformers reads."""
    found = safetensors.torch.load(path.read_bytes())
    old = {key if key.startswith(OLD) else OLD + key: value for key, value in found.items()}
    units.write_bytes(path, safetensors.torch.save(old, {"format": "pt"}))
