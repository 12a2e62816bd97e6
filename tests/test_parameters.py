"""Parameter files: what is accepted and how errors read."""

from pathlib import Path

import pytest

from cnslib import config, parameters, paths

PARAMS = paths.ROOT / "params.yaml"


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """A copy of params.yaml with one replacement."""
    text = PARAMS.read_text()
    assert old in text
    path = tmp_path / "params.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("name", ["params.yaml", "world.yaml"])
def test_the_committed_files_are_accepted(name):
    assert parameters.load(paths.ROOT / name)["base"].out == "."


def test_the_smoke_overlay_replaces_single_values():
    smoke = parameters.load(PARAMS, paths.ROOT / "smoke.yaml")
    assert smoke["base"].classes == ["trouser", "ankle boot"] and smoke["sliders"].rank == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  rank: 2", "  rnak: 4", r"key sliders\.(rnak|rank)"),
        ("  rank: 2", "  rank: four", r"sliders\.rank is 'four'"),
        ("  rank: 2", "  rank: 4.5", r"sliders\.rank is 4\.5"),
        ("  eta: 4.0 ", "  #", r"missing key sliders\.eta"),
        ("- heavy fog", "- heavy frog", "heavy frog.*accepted: .*heavy fog"),
        ("  passes: 2", "  passes: 5", r"filtering\.passes: 5"),
        ("sliders:\n", "slider:\n", "unknown section 'slider'"),
        ("scales: [0.0, 0.5", "scales: [0.5, 0.0", r"base\.scales"),
    ],
)
def test_one_clear_error_names_key_value_and_what_is_accepted(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        parameters.load(edited(tmp_path, old, new))


def test_numbers_are_read_as_yaml_1_2(tmp_path):
    path = edited(tmp_path, "learning_rate: 1.5e-3", "learning_rate: 3e-4")
    assert parameters.load(path)["sliders"].learning_rate == 3e-4


def test_a_missing_file_and_an_unknown_overlay_key_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.yaml"):
        parameters.load(tmp_path / "absent.yaml")
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("sliders: {rnak: 2}")
    with pytest.raises(ValueError, match=r"sliders\.rnak is not a key"):
        parameters.load(PARAMS, overlay)


@pytest.mark.parametrize(
    ("change", "key"), [("axes: {reference: vgg}", "axes.reference"), ("bisection: {classifiers: [vgg]}", "bisection.classifiers")]
)
def test_a_classifier_that_is_not_evaluated_is_named(tmp_path, change, key):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(change)
    with pytest.raises(ValueError, match=rf"{key}: 'vgg' is not accepted; accepted: the keys of evaluation.classifiers: alexnet"):
        parameters.load(PARAMS, overlay)


def test_a_notebook_gets_all_of_its_section_and_the_base_keys_it_names():
    sections = parameters.load(PARAMS)
    names = [*sections["accuracy"].__dataclass_fields__, "shifts"]
    values = parameters.flat(sections, names, "accuracy")
    assert values["reference"] == "alexnet" and values["shifts"] == sections["base"].shifts and "device" not in values


def test_a_notebook_may_name_another_section_and_its_own_key_hides_one_of_base():
    sections = parameters.load(PARAMS)
    names = [*sections["bisection"].__dataclass_fields__, "generation"]
    values = parameters.flat(sections, names, "bisection")
    assert values["generation"]["guidance"] == sections["generation"].guidance
    assert values["seeds"] == sections["bisection"].seeds != sections["base"].seeds


@pytest.mark.parametrize(("change", "message"), [(["reference"], "undeclared"), (["sede"], "unknown")])
def test_undeclared_keys_and_foreign_names_are_refused(change, message):
    sections = parameters.load(PARAMS)
    names = set(sections["accuracy"].__dataclass_fields__) ^ set(change)
    with pytest.raises(ValueError, match=message):
        parameters.flat(sections, sorted(names), "accuracy")


def test_there_are_fourteen_shifts_eight_of_them_styles():
    assert len(set(config.SHIFTS)) == 14
    assert sum(name.startswith("heavy") for name in config.SHIFTS) == 6
    assert config.identifier("style of a tattoo") == "style_of_a_tattoo"
