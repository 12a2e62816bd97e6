"""Sections of the steps that make something: what each accepts."""

import pytest
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import method, read

SECTIONS = read.load(paths.ROOT / "params.yaml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.0, 1.0], "ascending, without repetitions"),
        ([0.0, 1.0, 0.5], "ascending, without repetitions"),
        ([0.5, 1.0], r"ascending from 0\.0"),
        ([], "at least 1"),
    ],
)
def test_scales_rise_from_zero(values, message):
    with pytest.raises(ValueError, match=rf"base\.scales: .*{message}"):
        changed(SECTIONS["base"], scales=values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["bag", "bag"]}, r"base\.classes: .*a list without repetitions"),
        ({"shifts": ["heavy/fog"]}, r"heavy/fog.*accepted: a name of at most 100 printable characters"),
        ({"drawing": "quick"}, r"base\.drawing: 'quick' is not accepted; accepted: 'exact', 'fused' or 'fast'"),
        ({"prediction": "sample"}, r"base\.prediction: 'sample' is not accepted; accepted: 'v_prediction' or 'epsilon'"),
        ({"sources": {"vae": {"hub": "", "revision": "", "sha256": {}}}}, r"keys of base that name a model directory: pipeline, clip"),
        ({"seeds": 0}, r"base\.seeds: 0"),
    ],
)
def test_what_the_steps_share_is_checked(change, message):
    with pytest.raises(ValueError, match=message):
        changed(SECTIONS["base"], **change)


def test_a_slider_acts_on_a_part_of_the_steps_or_on_all():
    assert changed(SECTIONS["generation"], start_fraction=1).start_fraction == 1
    for value in (0, 1.1):
        with pytest.raises(ValueError, match=r"generation\.start_fraction"):
            changed(SECTIONS["generation"], start_fraction=value)


def test_a_section_is_frozen_and_takes_no_text_for_a_number():
    with pytest.raises(AttributeError):
        SECTIONS["sliders"].rank = 8
    with pytest.raises(ValueError, match="resamples"):
        method.Bootstrap(resamples="100", confidence=0.95, seed=1, target="same classes")


def test_pictures_apart_have_other_draws_unless_classes_are_drawn():
    own = method.Bootstrap(resamples=100, confidence=0.95, seed=3, target="same classes")
    assert own.apart(2).seed == 5 and own.of("other objects").apart(2).seed == 5 and own.of("other classes").apart(2).seed == 3
    assert own.one_by_one == own.of("other objects") and own.of("other classes").one_by_one == own.of("other classes")
