import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPTextModel, CLIPTokenizer

from cnslib.core import names
from cnslib.method import inversion
from cnslib.models import text_to_image, tokens

WIDTH = 16
CLASSES = {"sneaker": 7, "ankle boot": 2}


def vector(number):
    return torch.randn(WIDTH, generator=torch.Generator().manual_seed(number))


VECTORS = {name: vector(number) for name, number in CLASSES.items()}


def foreign_encoder(folder, pipe, words):
    tokenizer = CLIPTokenizer.from_pretrained(pipe)
    encoder = CLIPTextModel.from_pretrained(pipe.parent / "text_encoder", dtype=torch.float16)
    for number, text in enumerate(words):
        tokenizer.add_tokens(text)
        encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        encoder.get_input_embeddings().weight.data[tokenizer.convert_tokens_to_ids(text)] = vector(number).half()
    tokenizer.save_pretrained(folder / "tokenizer")
    encoder.save_pretrained(folder / "text_encoder")
    path = folder / "text_encoder" / "model.safetensors"
    save_file({f"text_model.{key}": value for key, value in load_file(path).items()}, path)
    torch.save({"initializer_words": [text[1:].split("-")[0] for text in words], "tokens": words}, folder / "tokens.pt")
    return len(tokenizer) - len(words)


def write_files(folder):
    for name, number in CLASSES.items():
        torch.save(VECTORS[name], folder / f"{number}.bin")


def same(found, wanted=VECTORS):
    return found.keys() == wanted.keys() and all(torch.equal(found[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("layout", ["bare", "word", "placeholder"])
def test_every_layout_of_a_token_file_is_read(tmp_path, layout):
    for number in CLASSES.values():
        text, value = f"<thing-{number}>", vector(number)
        path = tmp_path / (f"{number}/3000_learned_embeds.bin" if layout == "placeholder" else f"{number}.bin")
        path.parent.mkdir(exist_ok=True)
        torch.save({"bare": value, "word": {text: value}, "placeholder": {"placeholder": (text, value)}}[layout], path)
    assert same(tokens.read_files(tmp_path, CLASSES))


def test_classes_without_a_file_are_named(tmp_path):
    write_files(tmp_path)
    told = r"2 of 4 classes missing, \['bag \(3\.bin\)', 'coat \(4\.bin\)'\]; accepted: <index>\.bin or <index>/3000_learned"
    with pytest.raises(FileNotFoundError, match=told):
        tokens.read_files(tmp_path, CLASSES | {"bag": 3, "coat": 4})


def test_converted_tokens_load_in_the_pipeline_with_their_vectors(tmp_path, tiny_pipeline_dir):
    paths = tokens.to_ours(VECTORS, tmp_path, source="elsewhere")
    fresh = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(fresh, tmp_path, list(CLASSES))
    for name, value in VECTORS.items():
        (number,) = fresh.tokenizer(names.token(name), add_special_tokens=False).input_ids
        assert torch.equal(fresh.text_encoder.get_input_embeddings().weight[number], value)
        assert inversion.loss_curve(paths[name]) == []
    with pytest.raises(FileNotFoundError, match=r"coat\.safetensors does not exist, the token of 'coat'; the inversion step makes"):
        text_to_image.load_tokens(fresh, tmp_path, ["coat"])


def test_a_foreign_encoder_gives_the_vectors_of_its_words(tmp_path, tiny_pipeline_dir):
    words = ["<tench-0>", "<great white shark-1>", "<Ankle Boot-2>", "<bag-3>"]
    before = foreign_encoder(tmp_path, tiny_pipeline_dir / "tokenizer", words)
    found = tokens.read_encoder(tmp_path, {"shark": 1, "ankle boot": 2})
    assert same(found, {"shark": vector(1).half(), "ankle boot": vector(2).half()})
    rows = tokens.embeddings(tmp_path / "text_encoder" / "model.safetensors")
    assert torch.equal(rows[before + 2], vector(2).half())


def test_the_published_weights_alone_give_the_rows_in_the_order_of_the_index(tmp_path):
    path, matrix = tmp_path / "model.safetensors", torch.randn(30 + 1000, WIDTH)
    save_file({"text_model.embeddings.token_embedding.weight": matrix, "text_model.final_layer_norm.bias": torch.zeros(3)}, path)
    found = tokens.read_rows(path, CLASSES, vocabulary=30)
    assert same(found, {"sneaker": matrix[37], "ankle boot": matrix[32]})
    with pytest.raises(ValueError, match=r"embeddings: 1030 is not accepted; accepted: 49408 \+ 1000"):
        tokens.read_rows(path, CLASSES, vocabulary=49408)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"<thing-8>": vector(0)}, r"7\.bin, token: '<thing-8>' is not accepted; accepted: <display name-7>"),
        (torch.full((WIDTH,), float("nan")), r"7\.bin holds no vector"),
        (torch.zeros(WIDTH - 1), r"widths of the vectors, .*15: 'sneaker'.*; accepted: one width"),
    ],
)
def test_a_file_that_is_no_token_of_its_class_is_named(tmp_path, content, message):
    write_files(tmp_path)
    torch.save(content, tmp_path / "7.bin")
    with pytest.raises(ValueError, match=message):
        tokens.read_files(tmp_path, CLASSES)
