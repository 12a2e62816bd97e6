import dataclasses
import itertools
from pathlib import Path

import pytest
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read

PARAMS = paths.ROOT / "params.yaml"
SECTIONS = {name: read.load(paths.ROOT / name) for name in ("params.yaml", "world.yaml")}
SECTIONS = SECTIONS["world.yaml"] | SECTIONS["params.yaml"]


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = PARAMS.read_text()
    assert old in text
    path = tmp_path / "params.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def overlaid(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  rank: 4", "  rnak: 4", r"unknown key sliders\.rnak; accepted: seed, texts, rank, alpha"),
        ("sliders:\n", "slider:\n", "unknown section 'slider'"),
        ("sources: {}", "sources: {pipeline: {hub: a}}", r"missing key base\.sources\.pipeline\.revision"),
    ],
)
def test_one_clear_error_names_key_value_and_what_is_accepted(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=rf"params\.yaml: .*{message}") as raised:
        read.load(edited(tmp_path, old, new))
    assert "\n" not in str(raised.value)


DDIM = {"DDIM": {"scheduler": "DDIMScheduler", "steps": 8, "spacing": "linspace"}}


@pytest.mark.parametrize(
    ("section", "change", "accepted"),
    [
        ("base", {"scales": [0.0, 1.0, 1.0]}, "ascending, without repetitions"),
        ("base", {"scales": [-1.0, 0.0]}, r"ascending, 0\.0 among them and not the last"),
        ("base", {"sources": {"vae": {"hub": "", "revision": "", "sha256": {}}}}, "keys of base that name a model directory: pipeline"),
        ("base", {"seeds": 10**30}, "less than 2147483648"),
        ("bisection", {"resolution": 0.3}, r"0\.5 halved one to ten times"),
        ("ablation", {"samplers": DDIM, "reference": "DDIM"}, "leading or trailing"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named_with_what_is_accepted(section, change, accepted):
    key = next(iter(change))
    with pytest.raises(ValueError, match=rf"^{section}\.{key}.*accepted; accepted: .*{accepted}") as raised:
        changed(SECTIONS[section], **change)
    assert "\n" not in str(raised.value)


def test_an_overlay_names_a_file_a_key_and_a_classifier_that_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"sliders\.rnak is not a key"):
        read.load(PARAMS, overlaid(tmp_path, "sliders: {rnak: 2}"))
    with pytest.raises(ValueError, match=r"'vgg' is not accepted; accepted: the keys of evaluation.classifiers: alexnet"):
        read.load(PARAMS, overlaid(tmp_path, "bisection: {classifiers: [vgg]}"))


def test_a_shift_of_ones_own_has_words_and_no_file_of_another(tmp_path):
    good = 'base: {shifts: [heavy snow, at night]}\nsliders: {texts: {at night: "at night"}, etas: {at night: 0.6}, longer: {}}'
    sections = read.load(PARAMS, overlaid(tmp_path, good))
    assert sections["base"].shifts == ["heavy snow", "at night"] and sections["sliders"].etas == {"at night": 0.6}
    for shifts, said in {
        "[at nihgt]": "base.shifts: 'at nihgt'.*sliders.texts",
        "[at night, at_night]": "names of different files",
    }.items():
        text = f'base: {{shifts: {shifts}}}\nsliders: {{texts: {{at night: "at night", at_night: "at night"}}}}'
        with pytest.raises(ValueError, match=said):
            read.load(PARAMS, overlaid(tmp_path, text))


def test_a_section_takes_the_shared_bootstrap_but_for_what_it_names_itself(tmp_path):
    sections = read.load(PARAMS, overlaid(tmp_path, "failure: {bootstrap: {resamples: 7}}"))
    shared = sections["base"].bootstrap
    assert sections["failure"].bootstrap == dataclasses.replace(shared, resamples=7) and sections["ranking"].bootstrap == shared


def test_numbers_are_read_as_yaml_1_2_and_an_integer_in_the_place_of_a_fraction_stays_one(tmp_path):
    """What a unit was made from is compared as text: 1 is another text than 1.0."""
    sections = read.load(edited(tmp_path, "  alpha: 4.0 ", "  alpha: 4 "), overlaid(tmp_path, "sliders: {learning_rate: 3e-4}"))
    assert type(sections["sliders"].alpha) is int and type(sections["sliders"].eta) is float
    assert sections["sliders"].learning_rate == 3e-4


def test_what_is_no_mapping_of_sections_is_refused_in_one_line_that_names_the_file(tmp_path):
    for text, message in {
        "base:\n  seeds: 3\n  seeds: 4\n": 'line 3: found duplicate key "seeds".*each key once',
        "base: !!python/object/apply:os.system [exit]\n": "line 1: could not determine a constructor for the tag",
    }.items():
        with pytest.raises(ValueError, match=rf"own\.yaml.*{message}") as raised:
            read.read(overlaid(tmp_path, text))
        assert "\n" not in str(raised.value)


def test_an_error_names_the_file_in_which_the_key_stands(tmp_path):
    for text, key in {
        "base: {seeds: {a: 1}}": r"base\.seeds: \{'a': 1\}",
        "base: {bootstrap: 3}": r"base\.bootstrap: 3",
        "accuracy: {bootstrap: [1]}": r"accuracy\.bootstrap: \[1\]",
    }.items():
        with pytest.raises(ValueError, match=rf"own\.yaml: {key} is not accepted"):
            read.load(PARAMS, overlaid(tmp_path, text))
    with pytest.raises(ValueError, match=r"params\.yaml: sliders\.rank: 0 is not accepted"):
        read.load(edited(tmp_path, "  rank: 4", "  rank: 0"), overlaid(tmp_path, "accuracy: {reference: vit}"))


TABLES = {name: read.read(paths.ROOT / name) for name in ("params.yaml", "world.yaml")}
FREE = {"arguments", "network", "objectives"}  # arguments of other libraries, and trainings' own options


def leaves(value, place=()):
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in FREE and not (place[:1] in (("zoo",), ("augmentation",), ("pretraining",)) and key == "classifiers"):
                yield from leaves(part, (*place, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves(part, (*place, number))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def replaced(value, place, new):
    if not place:
        return new
    first, *rest = place
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = replaced(copy[first], rest, new)
    return copy


@pytest.mark.parametrize("file", TABLES)
def test_every_number_has_a_range(file):
    """No key takes what is no finite number, and none is without a lower limit; each meets two of the wrong values in turn."""
    table, wrong = TABLES[file], itertools.cycle([float("nan"), -(10**30), True, float("inf"), "1", -1e30, None, float("-inf"), [1]])
    places = list(leaves(table))
    assert len(places) > 50
    for (section, *place), new in zip(2 * places, wrong, strict=False):
        with pytest.raises(ValueError) as raised:
            read.build(section, replaced(table[section], place, new), table["base"].get("bootstrap", {}))
        assert "\n" not in str(raised.value) and section in str(raised.value)


BAD_NAMES = ["", ".", "..", "../vit", "a/b", "a\\b", ".hidden", " vit", "vit ", "a\nb", "a\x00b", "con:", "x" * 101, "a*"]
BECOME_FILES = [
    ("evaluation", "classifiers", lambda name: {"vit": "a", name: "b"}),
    ("scenarios", "backbones", lambda name: {name: "b"}),
    ("base", "classes", lambda name: ["bag", name]),
    ("report", "name", lambda name: name),
]


@pytest.mark.parametrize(("section", "key", "named"), BECOME_FILES)
def test_a_name_that_becomes_a_file_cannot_leave_its_folder(section, key, named):
    for name in BAD_NAMES:
        with pytest.raises(ValueError, match=rf"^{section}\.{key}.* is not accepted; accepted: a name of at most 100 printable") as raised:
            changed(SECTIONS[section], **{key: named(name)})
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("pair", [("my model", "my_model"), ("ViT", "vit")])
def test_two_names_of_one_file_are_refused(pair):
    with pytest.raises(ValueError, match=rf"base\.classes: .*'{pair[1]}'.* is not accepted; accepted: names of different files"):
        changed(SECTIONS["base"], classes=list(pair))
