"""Sections of the analyses: what each accepts."""

from pathlib import Path

import pytest
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.core.settings.analyses import AXES, Axes, Line
from cnslib.core.settings.method import Bootstrap

PARAMS = paths.ROOT / "params.yaml"


def settings(**changes) -> Axes:
    members = {axis: ["alexnet", "resnet"] for axis in AXES}
    return changed(Axes(Bootstrap(100, 0.95, 1, "same classes"), members, "alexnet", 0.05), **changes)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({axis: ["vit", "deit"] for axis in AXES[1:]}, r"axes\.members: .*accepted: the axes architecture"),
        ({axis: ["vit", "vit"] for axis in AXES}, r"axes\.members\.architecture: .*without repetitions"),
        ({axis: ["vit"] for axis in AXES}, r"axes\.members\.architecture: \['vit'\]"),
    ],
)
def test_axes_are_the_papers_and_hold_different_classifiers(members, message):
    with pytest.raises(ValueError, match=message):
        settings(members=members)


@pytest.mark.parametrize(("old", "new"), [("[vit_xs, vit_s,", "[vgg, vit_s,"), ("margin: 0.05", 'margin: 0.05\n  reference: "vgg"')])
def test_a_classifier_that_is_not_evaluated_is_named_when_the_parameters_are_read(tmp_path: Path, old, new):
    before, section, after = PARAMS.read_text().partition("\naxes:\n")
    after = after.replace('  reference: "alexnet"', "  #", 1) if "reference" in new else after
    assert old in after
    (tmp_path / "params.yaml").write_text(before + section + after.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"axes\..*'vgg' is not accepted; accepted: the keys of evaluation\.classifiers: .*resnet"):
        read.load(tmp_path / "params.yaml")


def one(**changes) -> Line:
    families = {"resnet": ["a", "b", "c"], "vit": ["d", "e"]}
    return changed(Line(Bootstrap(100, 0.95, 1, "same classes"), "catalog", families, ["resnet"], ["vit"], []), **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id_accuracy": "validation"}, r"line\.id_accuracy: 'validation' .*'catalog' or 'scale 0'"),
        ({"families": {"resnet": ["x"], "vit": ["x"]}}, r"line\.families: .*every classifier in at most one family"),
        ({"sizes": ["mixer"]}, r"line\.sizes: 'mixer' is not accepted; accepted: resnet, vit"),
    ],
)
def test_families_of_the_line_hold_a_classifier_once_and_are_those_that_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        one(**change)


@pytest.mark.parametrize("value", [0.5, 0.3, 0.5**12])
def test_a_resolution_is_a_half_halved(value):
    with pytest.raises(ValueError, match=r"bisection\.resolution: .*0\.5 halved one to ten times"):
        changed(read.load(PARAMS)["bisection"], resolution=value)


def test_the_text_for_an_unknown_class_has_a_place_for_its_name():
    with pytest.raises(ValueError, match=r"oodcv\.unknown: 'a picture' is not accepted; accepted: a text with \{name\}"):
        changed(read.load(PARAMS)["oodcv"], unknown="a picture")
