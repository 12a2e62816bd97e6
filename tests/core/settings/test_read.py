"""Parameter files: what is accepted and how errors read."""

import dataclasses
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from cnslib.core import paths
from cnslib.core.settings import read

PARAMS = paths.ROOT / "params.yaml"
START = "from cnslib.core.settings.read import start\nprint(start('accuracy', params, overlay).settings.reference)"
SAID_TWICE = {"smoke.yaml": {("bisection", "seeds"), ("bisection", "scans"), ("scenarios", "photo_severities")}}


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """A copy of params.yaml with one replacement."""
    text = PARAMS.read_text()
    assert old in text
    path = tmp_path / "params.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("name", ["params.yaml", "world.yaml"])
def test_the_committed_files_are_accepted(name):
    assert read.load(paths.ROOT / name)["base"].out == "."


def test_the_smoke_overlay_replaces_single_values():
    smoke = read.load(PARAMS, paths.ROOT / "smoke.yaml")
    assert smoke["base"].classes == ["trouser", "ankle boot"] and smoke["sliders"].rank == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  rank: 4", "  rnak: 4", r"unknown key sliders\.rnak; accepted: texts, rank, alpha"),
        ("  rank: 4", "  rank: four", r"sliders\.rank: 'four' is not accepted; accepted: a valid integer"),
        ("  rank: 4", "  rank: 4.5", r"sliders\.rank: 4\.5"),
        ("  eta: 1.3 ", "  #", r"missing key sliders\.eta"),
        ("  texts: {}", "  texts: {heavy frog: in mist}", r"sliders\.texts: 'heavy frog' is not accepted; accepted: .*heavy fog"),
        ("- heavy fog", "- heavy frog", "heavy frog.*accepted: .*heavy fog"),
        ("  passes: 2", "  passes: 5", r"filtering\.passes: 5"),
        ("sliders:\n", "slider:\n", "unknown section 'slider'"),
        ("scales: [0.0, 0.5", "scales: [0.5, 0.0", r"base\.scales"),
        ("confidence: 0.95", "confidence: 95", r"base\.bootstrap\.confidence: 95 is not accepted; accepted: less than 1"),
        ("  guidance: 2.25 ", "  guidance: true ", r"generation\.guidance: True is not accepted; accepted: a valid number"),
        ("keep: [3, 1]", "keep: [3, 2]", r"denoiser\.keep: \[3, 2\] is not accepted; accepted: one number"),
        ("sources: {}", "sources: {pipeline: {hub: a}}", r"missing key base\.sources\.pipeline\.revision"),
    ],
)
def test_one_clear_error_names_key_value_and_what_is_accepted(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message) as raised:
        read.load(edited(tmp_path, old, new))
    assert "\n" not in str(raised.value)


def test_numbers_are_read_as_yaml_1_2(tmp_path):
    path = edited(tmp_path, "learning_rate: 3.0e-3", "learning_rate: 3e-4")
    assert read.load(path)["sliders"].learning_rate == 3e-4


def test_a_missing_file_and_an_unknown_overlay_key_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.yaml"):
        read.load(tmp_path / "absent.yaml")
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("sliders: {rnak: 2}")
    with pytest.raises(ValueError, match=r"sliders\.rnak is not a key"):
        read.load(PARAMS, overlay)


@pytest.mark.parametrize(
    ("change", "key"), [("axes: {reference: vgg}", "axes.reference"), ("bisection: {classifiers: [vgg]}", "bisection.classifiers")]
)
def test_a_classifier_that_is_not_evaluated_is_named(tmp_path, change, key):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(change)
    with pytest.raises(ValueError, match=rf"{key}: 'vgg' is not accepted; accepted: the keys of evaluation.classifiers: alexnet"):
        read.load(PARAMS, overlay)


def test_a_shift_of_ones_own_has_words_and_no_file_of_another(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(
        'base: {shifts: [heavy snow, at night]}\nsliders: {texts: {at night: "at night"}, etas: {at night: 0.6}, longer: {}}'
    )
    sections = read.load(PARAMS, overlay)
    assert sections["base"].shifts == ["heavy snow", "at night"] and sections["sliders"].etas == {"at night": 0.6}
    for shifts, said in {"[at nihgt]": "base.shifts: 'at nihgt'.*sliders.texts", "[at night, at_night]": "share at_night"}.items():
        overlay.write_text(f'base: {{shifts: {shifts}}}\nsliders: {{texts: {{at night: "at night", at_night: "at night"}}}}')
        with pytest.raises(ValueError, match=said):
            read.load(PARAMS, overlay)
    overlay.write_text('base: {shifts: [unshifted]}\nsliders: {texts: {unshifted: "at noon"}}')
    with pytest.raises(ValueError, match=r"base\.shifts: 'unshifted' is not accepted"):
        read.load(PARAMS, overlay)


def test_a_section_takes_the_shared_bootstrap_but_for_what_it_names_itself(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("failure: {bootstrap: {resamples: 7}}")
    sections = read.load(PARAMS, overlay)
    shared = sections["base"].bootstrap
    assert sections["failure"].bootstrap == dataclasses.replace(shared, resamples=7) and sections["ranking"].bootstrap == shared
    overlay.write_text("accuracy: {bootstrap: {samples: 7}}")
    with pytest.raises(ValueError, match=r"unknown key accuracy\.bootstrap\.samples"):
        read.load(PARAMS, overlay)


@pytest.mark.parametrize("overlay", ["smoke.yaml", "benchmark.yaml", "paper.yaml"])
def test_an_overlay_holds_only_what_it_changes(overlay):
    plain = read.read(PARAMS)
    same = {(name, key) for name, own in read.read(paths.ROOT / overlay).items() for key in own if own[key] == plain[name].get(key)}
    assert same <= SAID_TWICE.get(overlay, set())


def test_an_overlay_replaces_a_whole_mapping(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("evaluation: {classifiers: {alexnet: 'timm:resnet18'}}\naxes: {members: {}}")
    with pytest.raises(ValueError, match=r"axes\.members: \[\] is not accepted; accepted: the axes architecture"):
        read.load(PARAMS, overlay)
    assert read.load(PARAMS, paths.ROOT / "paper.yaml")["line"].families.keys().isdisjoint({"resnet", "pre-trained ViT"})


def test_an_integer_in_the_place_of_a_fraction_stays_one(tmp_path):
    """What a unit was made from is compared as text: 1 is another text than 1.0."""
    sections = read.load(edited(tmp_path, "  alpha: 4.0 ", "  alpha: 4 "))
    assert type(sections["sliders"].alpha) is int and type(sections["sliders"].eta) is float


def test_a_run_tells_its_section_with_the_comments_of_the_file_and_of_the_overlay(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("accuracy:\n  reference: vit  # another one | here\n")
    run = read.start("accuracy", "params.yaml", str(overlay))
    rows = {line.split(" | ")[0]: line for line in run._repr_markdown_().splitlines()}
    assert rows["| reference"] == r'| reference | "vit" | another one \| here |'
    assert rows["| bootstrap"].startswith(
        '| bootstrap | {"resamples": 1000, "confidence": 0.95, "seed": 1, "target": "same classes"} | of what was drawn'
    )
    assert run.settings.reference == "vit" and run.bootstrap == run.base.bootstrap and run.generation.steps == 16
    assert run.layout.figures == paths.ROOT / "figures" / "accuracy"
    with pytest.raises(AttributeError, match=r"no section 'generations'; accepted: base, world"):
        run.generations  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("{seeds: 4}", "*base.seeds: 4 to draw anew; intervals by resampling need at least 5, and those of this page are too short.*"),
        ("{seeds: 5}", ""),
        ("{classes: [bag, dress], bootstrap: {resamples: 9, confidence: 0.9, seed: 1, target: other classes}}", "*base.classes: 2 to draw"),
    ],
)
def test_a_run_says_where_too_few_are_drawn_anew(tmp_path, changes, said):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(f"base: {changes}")
    shown = read.start("ranking", "params.yaml", str(overlay))._repr_markdown_()
    assert said in shown and ("too short" in shown) == bool(said)


def test_a_run_looks_at_the_models_that_its_notebook_names(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("base: {prediction: epsilon}")
    assert read.start("sliders", "params.yaml", str(overlay)).base.prediction == "epsilon"
    with pytest.raises(ValueError, match=r"base\.pipeline: .*says prediction_type v_prediction"):
        read.start("sliders", "params.yaml", str(overlay), models=["pipeline"])
    with pytest.raises(ValueError, match=r"params\.yaml: no section 'slider'; accepted: base, world"):
        read.start("slider", "params.yaml")


def test_a_kernel_obeys_the_edited_file_wherever_it_was_started(tmp_path):
    """As JupyterLab runs a notebook: nobody hands it values, so what an edit of the file changes can come from the file alone."""
    cells = [f"params, overlay = {str(tmp_path / 'params.yaml')!r}, ''", START]
    for folder, reference in ((paths.NOTEBOOKS, "vit"), (paths.ROOT, "deit")):
        edited(tmp_path, 'accuracy:\n  reference: "alexnet"', f'accuracy:\n  reference: "{reference}"')
        notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
        done = NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
        (printed,) = (output["text"] for output in done.cells[-1].outputs if output.get("name") == "stdout")
        assert printed == f"{reference}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds nothing"),
        (b"# nothing but a comment\n", "holds nothing"),
        (b"[]", r"holds \[\]; accepted: sections"),
        (b"base", "holds 'base'"),
        (b"base: 3", "base: 3 is not accepted; accepted: keys with their values"),
        (b"base:", "base: None is not accepted"),
        (b"base: [1]", r"base: \[1\] is not accepted"),
        (b"base: {1: 2}", r"base: \{1: 2\} is not accepted"),
        (b"base:\n  seeds: 3\n  seeds: 4\n", 'line 3: found duplicate key "seeds".*each key once'),
        (b"base: {seeds: 1}\nbase: {seeds: 2}\n", 'duplicate key "base"'),
        (b"base: !!python/object/apply:os.system [exit]\n", "line 1: could not determine a constructor for the tag"),
        (b"base: !own {seeds: 3}\n", "line 1: could not determine a constructor for the tag '!own'.*without tags"),
        (b"base:\n\tseeds: 1\n", "line 2: found character"),
        (b"base: {seeds: 1", "expected"),
        (b"a: &a [*a]\n", "a: .* is not accepted"),
        (b"\xff\xfeb", r"is no text in UTF-8 \(byte 0\)"),
    ],
)
def test_what_is_no_mapping_of_sections_is_refused_in_one_line_that_names_the_file(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"own\.yaml.*{message}") as raised:
        read.read(path)
    assert "\n" not in str(raised.value)


def test_an_error_names_the_file_in_which_the_key_stands(tmp_path):
    overlay = tmp_path / "own.yaml"
    for text, key in {
        "base: {seeds: {a: 1}}": r"base\.seeds: \{'a': 1\}",
        "base: {bootstrap: 3}": r"base\.bootstrap: 3",
        "base: {seeds: 1}": r"base\.seeds: 1",
        "base: {classes: [bag]}": r"base\.classes: \['bag'\]",
        "accuracy: {bootstrap: [1]}": r"accuracy\.bootstrap: \[1\]",
        "photos: {severities: [0.0, 2.0]}": r"photos\.severities: \[0\.0, 2\.0\]",
    }.items():
        overlay.write_text(text)
        with pytest.raises(ValueError, match=rf"own\.yaml: {key} is not accepted"):
            read.load(PARAMS, overlay)
    overlay.write_text("accuracy: {reference: vit}")
    wrong = edited(tmp_path, "  rank: 4", "  rank: 0")
    with pytest.raises(ValueError, match=r"params\.yaml: sliders\.rank: 0 is not accepted"):
        read.load(wrong, overlay)


TABLES = {name: read.read(paths.ROOT / name) for name in ("params.yaml", "world.yaml")}
FREE = {"arguments", "network", "objectives"}  # arguments of other libraries, and trainings' own options


def leaves(value, place=()):
    """Every number of a parameter file with its place; options that go to other libraries apart."""
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
    """A copy of nested values with one of them replaced."""
    if not place:
        return new
    first, *rest = place
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = replaced(copy[first], rest, new)
    return copy


@pytest.mark.parametrize("file", TABLES)
@pytest.mark.parametrize("new", [float("nan"), float("inf"), float("-inf"), -(10**30), -1e30, True, "1", None, [1]])
def test_every_number_has_a_range(file, new):
    """No key takes what is no finite number, and none is without a lower limit: by construction, for all numbers of the files."""
    table = TABLES[file]
    places = list(leaves(table))
    assert len(places) > 50
    for section, *place in places:
        values = replaced(table[section], place, new)
        with pytest.raises(ValueError) as raised:
            read.build(section, values, table["base"].get("bootstrap", {}), Path(file), {})
        assert "\n" not in str(raised.value) and section in str(raised.value)


BAD_NAMES = ["", ".", "..", "../vit", "a/b", "a\\b", ".hidden", " vit", "vit ", "a\nb", "a\x00b", "con:", "x" * 101, "a*"]


@pytest.mark.parametrize(
    ("section", "key", "named"),
    [
        ("evaluation", "classifiers", lambda name: {"vit": "a", name: "b"}),
        ("photos", "classifiers", lambda name: {"lite0": "lite:0", name: "b"}),
        ("scenarios", "backbones", lambda name: {name: "b"}),
        ("oodcv", "networks", lambda name: {name: "b"}),
        ("segmentation", "photo_classifiers", lambda name: {name: "b"}),
        ("base", "classes", lambda name: ["bag", name]),
        ("report", "name", lambda name: name),
    ],
)
def test_a_name_that_becomes_a_file_cannot_leave_its_folder(section, key, named):
    table = TABLES["params.yaml"]
    for name in BAD_NAMES:
        with pytest.raises(
            ValueError, match=rf"{section}\.{key}.* is not accepted; accepted: a name of at most 100 printable characters"
        ) as raised:
            read.build(section, table[section] | {key: named(name)}, table["base"]["bootstrap"], PARAMS, {})
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("pair", [("my model", "my_model"), ("ViT", "vit"), ("A b", "a_B")])
def test_two_names_of_one_file_are_refused(pair):
    first, second = pair
    for section, key, value in (("evaluation", "classifiers", dict.fromkeys(pair, "a")), ("base", "classes", list(pair))):
        with pytest.raises(ValueError, match=rf"{section}\.{key}: .*names of different files, but '{first}' and '{second}' share"):
            read.build(section, TABLES["params.yaml"][section] | {key: value}, TABLES["params.yaml"]["base"]["bootstrap"], PARAMS, {})
