"""IN* tokens of others: dataset interfaces' files and text encoder (Vendrow et al. 2023; CNS-Bench section 3.1), as ours.

There a class is the word `<display name-ImageNet index>`; here it is `names.token`. `classes` gives the index of each class name.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from jaxtyping import Float
from torch import Tensor
from transformers import CLIPTokenizer

from cnslib.core import names, units
from cnslib.core.names import demand, identifier
from cnslib.models import adapters, weights

IMAGENET = 1000
LEARNED = "3000_learned_embeds.bin"  # what a single inversion of dataset interfaces leaves, in a folder per class
ROWS = "embeddings.token_embedding.weight"
OLD = "text_model."  # how every text encoder file before transformers 5 begins its names, the published one included
Vector = Float[Tensor, "width"]


def require_word(text: object, number: int, path: Path) -> None:
    """Raises ValueError unless a word is that of a class in dataset interfaces: `<great white shark-2>`."""
    demand(re.fullmatch(rf"<.+-{number}>", str(text)) is not None, f"{path}, token", text, f"<display name-{number}>")


def located(source: Path) -> Path:
    """What there is to read at a path, or one folder below: a file, tokens.pt's folder, a text encoder's weights, or a folder of tokens."""
    if source.is_file():
        return source
    for folder in (source, *sorted(path for path in source.iterdir() if path.is_dir())):
        for name in ("tokens.pt", "model.safetensors", "text_encoder/model.safetensors"):
            if (folder / name).exists():
                return folder if name == "tokens.pt" else folder / name
        if any(path.stem.isdigit() for path in folder.glob("*.bin")) or any(folder.glob(f"*/{LEARNED}")):
            return folder
    return source


def read_files(folder: Path, classes: Mapping[str, int]) -> dict[str, Vector]:
    """The vector of each class from dataset interfaces' files: `<index>.bin`, or `<index>/3000_learned_embeds.bin`."""
    paths = {name: folder / f"{number}.bin" for name, number in classes.items()}
    paths = {name: path if path.exists() else folder / str(classes[name]) / LEARNED for name, path in paths.items()}
    if missing := [f"{name} ({classes[name]}.bin)" for name, path in paths.items() if not path.exists()]:
        accepted = f"<index>.bin or <index>/{LEARNED}"
        raise FileNotFoundError(f"tokens {folder}: {len(missing)} of {len(paths)} classes missing, {missing[:2]}; accepted: {accepted}")
    vectors = {name: read_file(path, classes[name]) for name, path in paths.items()}
    widths = {len(vector): name for name, vector in vectors.items()}
    demand(len(widths) <= 1, f"tokens {folder}, widths of the vectors, with a class of each", widths, "one width")
    return vectors


def read_file(path: Path, number: int) -> Vector:
    """The vector in a token file: a bare tensor, {word: tensor}, or {"placeholder": (word, tensor)}; ValueError for anything else."""
    vector = weights.contents(path)
    if isinstance(vector, dict) and len(vector) == 1:
        ((text, vector),) = vector.items()
        if text == "placeholder" and isinstance(vector, tuple | list) and len(vector) == 2:
            text, vector = vector
        require_word(text, number, path)
    if not isinstance(vector, Tensor) or vector.shape[-1:] != (vector.numel(),) or not vector.isfinite().all():
        raise ValueError(f"{path} holds no vector of finite numbers; accepted: a tensor, {{word: tensor}}, placeholder: (word, tensor)")
    return vector.detach().flatten().clone()


def read_encoder(folder: Path, classes: Mapping[str, int]) -> dict[str, Vector]:
    """The vector of each class from a folder of dataset interfaces (text_encoder/, tokenizer/, tokens.pt); errors name part or token."""
    for part in ("text_encoder", "tokenizer", "tokens.pt"):
        if not (folder / part).exists():
            raise FileNotFoundError(f"text encoder {folder} has no {part}; accepted: text_encoder/, tokenizer/ and tokens.pt")
    weights.refuse_code(folder, key="text encoder")
    listed, matrix = weights.contents(folder / "tokens.pt"), embeddings(folder / "text_encoder")
    words: Any = listed.get("tokens") if isinstance(listed, dict) else None
    demand(isinstance(words, list), f"{folder / 'tokens.pt'}, tokens", words, "the list of the tokens by ImageNet index")
    tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)  # a folder  # nosec B615
    vectors = {}
    for name, number in classes.items():
        text = words[number] if number < len(words) else ""
        require_word(text, number, folder / "tokens.pt")
        ids = tokenizer(text, add_special_tokens=False).input_ids
        if len(ids) != 1 or ids[0] >= len(matrix):
            raise ValueError(f"{folder}: token {text!r} becomes {len(ids)} words {ids[:3]}; accepted: one, of the {len(matrix)} embeddings")
        vectors[name] = matrix[ids[0]].clone()
    return vectors


def read_rows(path: Path, classes: Mapping[str, int], *, vocabulary: int) -> dict[str, Vector]:
    """The vector of each class from the published text encoder alone (Edmond: imagenet_star/model.safetensors).

    Its builder added the 1000 words in the order of their index to a vocabulary of `vocabulary` words.
    """
    matrix = embeddings(path)
    demand(len(matrix) == vocabulary + IMAGENET, f"{path}, embeddings", len(matrix), f"{vocabulary} + {IMAGENET}")
    return {name: matrix[vocabulary + number].clone() for name, number in classes.items()}


def embeddings(path: Path) -> Float[Tensor, "words width"]:
    """The input embeddings of a CLIP text encoder, of either naming: a weight file, or a folder with one."""
    files = [path / name for name in ("model.safetensors", "pytorch_model.bin")] if path.is_dir() else [path]
    tensors = weights.read_weights(next((file for file in files if file.exists()), files[0]))
    rows = [tensors[name] for name in (ROWS, OLD + ROWS) if name in tensors]
    demand(len(rows) == 1, f"{path}, tensors", list(tensors)[:2], f"the weights of a CLIPTextModel, {ROWS} among them")
    return rows[0]


def to_ours(vectors: Mapping[str, Vector], folder: Path, *, source: str) -> dict[str, Path]:
    """Writes one textual-inversion file per class, as the inversion step does, without losses."""
    paths = {name: folder / f"{identifier(name)}.safetensors" for name in vectors}
    for name, path in paths.items():
        plain = {"class": name, "settings": {}, "losses": [], "source": source}
        data = safetensors.torch.save({names.token(name): vectors[name].contiguous()}, {"format": "pt"})
        units.write_bytes(path, adapters.with_header(data, {key: json.dumps(value) for key, value in plain.items()}))
    return paths
