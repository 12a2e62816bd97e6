"""IN* tokens of others: dataset interfaces' files and text encoder (Vendrow et al. 2023; CNS-Bench section 3.1), to and from ours.

There a class is the word `<display name-ImageNet index>`; here it is `names.token`. `classes` gives the index of each class name.
"""

import collections
import copy
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import CLIPTokenizer

from cnslib.core import names, sources, units
from cnslib.core.names import identifier
from cnslib.models import adapters, weights

IMAGENET = 1000
LEARNED = "3000_learned_embeds.bin"  # what a single inversion of dataset interfaces leaves, in a folder per class
ROWS = "embeddings.token_embedding.weight"
OLD = "text_model."  # how every text encoder file before transformers 5 begins its names, the published one included
Vector = Float[Tensor, "width"]


def word(display: str, number: int) -> str:
    """What dataset interfaces call a class: `<great white shark-2>`."""
    return f"<{display}-{number}>"


def parse(text: str, path: Path) -> tuple[str, int]:
    """Display name and index of such a word; ValueError for another one."""
    if not (found := re.fullmatch(r"<(.+)-(\d+)>", text)):
        raise ValueError(f"{path}: token {text!r} is not accepted; accepted: <display name-ImageNet index>")
    return found[1], int(found[2])


def located(source: Path) -> Path:
    """What there is to read at a path: a file, a folder with tokens.pt, a text encoder's weights, or a folder of token files.

    It may lie one folder deeper, as unzipping makes it; where nothing is found it is the path itself.
    """
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
    """The vector of each class from dataset interfaces' files: `<index>.bin`, or `<index>/3000_learned_embeds.bin`.

    FileNotFoundError counts and shows the classes without a file; ValueError names a file that is no token, or another class's.
    """
    paths = {name: folder / f"{number}.bin" for name, number in classes.items()}
    paths = {name: path if path.exists() else folder / str(classes[name]) / LEARNED for name, path in paths.items()}
    missing = [f"{name} ({classes[name]}.bin)" for name, path in paths.items() if not path.exists()]
    if missing:
        accepted = f"<index>.bin or <index>/{LEARNED}"
        raise FileNotFoundError(f"tokens {folder}: {len(missing)} of {len(paths)} classes missing, {missing[:2]}; accepted: {accepted}")
    return same_width({name: read_file(path, classes[name]) for name, path in paths.items()}, folder)


def read_file(path: Path, number: int) -> Vector:
    """The vector in a token file: a bare tensor, {word: tensor}, or {"placeholder": (word, tensor)}.

    Raises ValueError, naming the file, for anything else and for a word of another class; other errors as those of `weights.load_torch`.
    """
    found = weights.load_torch(path)
    if isinstance(found, dict) and len(found) == 1:
        ((text, found),) = found.items()
        if text == "placeholder" and isinstance(found, tuple | list) and len(found) == 2:
            text, found = found
        if parse(str(text), path)[1] != number:
            raise ValueError(f"{path} holds the token {text!r}; accepted: the one of class {number}")
    if not isinstance(found, Tensor) or found.shape[-1:] != (found.numel(),) or not found.isfinite().all():
        raise ValueError(f"{path} holds no vector of finite numbers; accepted: a tensor, {{word: tensor}}, placeholder: (word, tensor)")
    return found.detach().flatten().clone()


def same_width(vectors: dict[str, Vector], source: Path) -> dict[str, Vector]:
    """Returns the vectors; ValueError where their widths differ."""
    widths = collections.Counter(len(vector) for vector in vectors.values())
    if len(widths) > 1:
        odd = [name for name, vector in vectors.items() if len(vector) != widths.most_common(1)[0][0]]
        raise ValueError(f"tokens {source}: widths {sorted(widths)}, for example of {odd[:2]}; accepted: one width")
    return vectors


def read_encoder(folder: Path, classes: Mapping[str, int]) -> dict[str, Vector]:
    """The vector of each class from a folder of dataset interfaces: `text_encoder/`, `tokenizer/` and `tokens.pt`.

    Raises FileNotFoundError for a missing part, ValueError, naming the token, unless each is one word of the tokenizer.
    """
    for part in ("text_encoder", "tokenizer", "tokens.pt"):
        if not (folder / part).exists():
            raise FileNotFoundError(f"text encoder {folder} has no {part}; accepted: text_encoder/, tokenizer/ and tokens.pt")
    weights.refuse_code(folder, key="text encoder")
    words, matrix = listed_words(folder / "tokens.pt"), embeddings(folder / "text_encoder")
    tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)  # a folder  # nosec B615
    found = {}
    for name, number in classes.items():
        text = words[number] if number < len(words) else ""
        if not text or parse(text, folder / "tokens.pt")[1] != number:
            raise ValueError(
                f"{folder / 'tokens.pt'}: entry {number} is {text!r}; accepted: the token of {name!r}, <display name-{number}>"
            )
        ids = tokenizer(text, add_special_tokens=False).input_ids
        if len(ids) != 1 or ids[0] >= len(matrix):
            raise ValueError(f"{folder}: token {text!r} becomes {len(ids)} words {ids[:3]}; accepted: one, of the {len(matrix)} embeddings")
        found[name] = matrix[ids[0]].clone()
    return found


def listed_words(path: Path) -> list[str]:
    """The tokens by ImageNet index, from tokens.pt; "" for an index without one."""
    found = weights.load_torch(path)
    words = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(words, list) or not all(isinstance(text, str) for text in words):
        raise ValueError(f"{path} has no list of tokens; accepted: {{'tokens': [...], 'initializer_words': [...]}}")
    return words


def read_rows(path: Path, classes: Mapping[str, int], *, vocabulary: int) -> dict[str, Vector]:
    """The vector of each class from the published text encoder alone (Edmond: imagenet_star/model.safetensors).

    It comes without tokenizer; its builder added the 1000 words in the order of their index to a vocabulary of `vocabulary`
    words (49408 for Stable Diffusion 2). Raises ValueError where the number of rows is not the sum of both.
    """
    matrix = embeddings(path)
    if len(matrix) != vocabulary + IMAGENET:
        raise ValueError(f"{path} has {len(matrix)} embeddings; accepted: {vocabulary} + {IMAGENET}")
    return {name: matrix[vocabulary + number].clone() for name, number in classes.items()}


def embeddings(path: Path) -> Float[Tensor, "words width"]:
    """The input embeddings of a CLIP text encoder, of either naming: a weight file, or a folder with one."""
    if path.is_dir():
        files = [path / name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).exists()]
        if not files:
            raise FileNotFoundError(f"text encoder {path} has no weights; accepted: model.safetensors or pytorch_model.bin")
        path = files[0]
    sources.require_downloaded(path)
    try:
        found = one_tensor(path) if path.suffix == ".safetensors" else weights.read_torch(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file ({error}); copy it again") from error
    rows = [value for key, value in found.items() if key in (ROWS, OLD + ROWS)]
    if len(rows) != 1:
        raise ValueError(f"{path} has no {ROWS}; accepted: the weights of a CLIPTextModel")
    return rows[0]


def one_tensor(path: Path) -> dict[str, Tensor]:
    """The embeddings of a safetensors file by name, without reading the rest of it."""
    with safe_open(path, "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys() if key in (ROWS, OLD + ROWS)}  # noqa: SIM118, no mapping


def to_ours(vectors: Mapping[str, Vector], folder: Path, *, source: str) -> dict[str, Path]:
    """Writes one textual-inversion file per class, as the inversion step does; they have no losses. Existing files stay.

    Raises ValueError for two classes with one token, FileExistsError for a file that is there.
    """
    names.require_distinct(list(vectors))
    paths = {name: folder / f"{identifier(name)}.safetensors" for name in vectors}
    refuse_existing(list(paths.values()))
    for name, path in paths.items():
        plain = {"class": name, "settings": {}, "losses": [], "source": source}
        data = safetensors.torch.save({names.token(name): vectors[name].contiguous()}, {"format": "pt"})
        units.write_bytes(path, adapters.with_header(data, {key: json.dumps(value) for key, value in plain.items()}))
    return paths


def from_ours(folder: Path, classes: Mapping[str, int]) -> dict[str, Vector]:
    """The vectors of our token files. FileNotFoundError or ValueError name a file that is missing or another class's."""
    found = {}
    for name in classes:
        path = folder / f"{identifier(name)}.safetensors"
        tensors = weights.read_weights(path)
        if list(tensors) != [names.token(name)]:
            raise ValueError(f"{path} holds {list(tensors)[:2]}; accepted: {names.token(name)}")
        found[name] = tensors[names.token(name)]
    return same_width(found, folder)


def refuse_existing(paths: list[Path]) -> None:
    """Raises FileExistsError, naming the first, where one of the paths exists."""
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} exists and is not overwritten")


def write_files(vectors: Mapping[str, Vector], folder: Path, *, classes: Mapping[str, int]) -> None:
    """Writes the tokens as dataset interfaces publish theirs: a bare tensor `<index>.bin` per class. Existing files stay."""
    refuse_existing([folder / f"{classes[name]}.bin" for name in vectors])
    for name, vector in vectors.items():
        with units.atomic(folder / f"{classes[name]}.bin") as partial:
            torch.save(vector.clone(), partial)


def write_encoder(pipe: StableDiffusionPipeline, vectors: Mapping[str, Vector], folder: Path, *, classes: Mapping[str, int]) -> None:
    """Writes the folder that the authors' training and generation read: text_encoder/, tokenizer/ and tokens.pt.

    The pipeline stays as it is. Vectors and weights keep single precision (the published ones are half). Names and files are
    those of transformers 4 too. Raises FileExistsError where the folder exists, ValueError for a word that the tokenizer has.
    """
    refuse_existing([folder])
    names = sorted(vectors, key=lambda name: classes[name])
    words = [word(name, classes[name]) for name in names]
    tokenizer, encoder = copy.deepcopy(pipe.tokenizer), copy.deepcopy(pipe.text_encoder)
    if tokenizer.add_tokens(words) != len(words):
        raise ValueError(f"tokenizer of the pipeline knows some of {words[:2]} already; accepted: a pipeline without these tokens")
    encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    rows = encoder.get_input_embeddings().weight.data
    for name, text in zip(names, words, strict=True):
        rows[tokenizer.convert_tokens_to_ids(text)] = vectors[name].to(rows)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / folder.name
        encoder.save_pretrained(made / "text_encoder")
        rename_old(made / "text_encoder" / "model.safetensors")
        save_tokenizer(tokenizer, made / "tokenizer")
        by_index = dict(zip((classes[name] for name in names), zip(words, names, strict=True), strict=True))
        both = [by_index.get(number, ("", "")) for number in range(max(by_index) + 1)]
        torch.save({"initializer_words": [name for _, name in both], "tokens": [text for text, _ in both]}, made / "tokens.pt")
        os.replace(made, folder)


def rename_old(path: Path) -> None:
    """Gives the weights of a text encoder the names that every version of transformers reads."""
    weights = safetensors.torch.load(path.read_bytes())
    old = {key if key.startswith(OLD) else OLD + key: value for key, value in weights.items()}
    units.write_bytes(path, safetensors.torch.save(old, {"format": "pt"}))


def save_tokenizer(tokenizer: CLIPTokenizer, folder: Path) -> None:
    """Writes a tokenizer as transformers 5 does, and beside it the three files that transformers 4 reads."""
    tokenizer.save_pretrained(folder)
    tokenizer.backend_tokenizer.model.save(str(folder))  # vocab.json, merges.txt
    units.write_bytes(folder / "added_tokens.json", json.dumps(tokenizer.get_added_vocab()).encode())
