import re

import pytest
from ruamel.yaml import YAML
from transformers import CLIPTokenizer

from cnslib.core import paths
from cnslib.core.settings import read

TEXT = (paths.ROOT / "CONTRIBUTING.md").read_text()
CLASSIFIER, WORDS, SHIFT = (YAML(typ="safe").load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
PARAMS = paths.ROOT / "params.yaml"


def added(table, change):
    if isinstance(change, dict):
        return table | {key: added(table[key], value) if key in table else value for key, value in change.items()}
    return table + change if isinstance(change, list) else change


@pytest.fixture
def changed(tmp_path):
    def call(change) -> tuple[dict, dict]:
        YAML().dump(added(YAML(typ="safe").load(PARAMS.read_text()), change), tmp_path / "params.yaml")
        before, after = read.load(PARAMS), read.load(tmp_path / "params.yaml")
        assert {name for name in after if after[name] != before[name]} == change.keys()
        return before, after

    return call


def test_a_classifier_is_one_line(changed):
    before, after = changed(CLASSIFIER)
    assert after["evaluation"].classifiers == before["evaluation"].classifiers | {"mine": "weights/mine"}


@pytest.mark.parametrize("change", [WORDS, SHIFT])
def test_the_mini_model_knows_every_word_of_the_texts(change):
    tokenizer = CLIPTokenizer.from_pretrained(paths.ROOT / "data" / "models" / "mini-sd" / "tokenizer")
    for words in change["sliders"]["texts"].values():
        assert tokenizer.tokenize(words) == [f"{word}</w>" for word in words.split()]
