"""Names of shifts, classes and tokens."""

import pytest

from cnslib.core import names


def test_there_are_fourteen_shifts_eight_of_them_styles():
    assert len(set(names.SHIFTS)) == 14
    assert sum(name.startswith("heavy") for name in names.SHIFTS) == 6
    assert names.identifier("style of a tattoo") == "style_of_a_tattoo"


def test_a_shift_of_ones_own_is_none_of_the_paper():
    assert names.of_the_paper(["heavy snow", "heavy rain in heavy fog", "cartoon style"]) == ["heavy snow", "cartoon style"]


def test_a_token_is_lower_case_without_blanks():
    assert names.token("ankle boot") == "<ankle-boot*>"
    assert names.token("Great White Shark") == "<great-white-shark*>"


def test_classes_that_would_share_a_token_are_named():
    names.require_distinct(["sneaker", "ankle boot"])
    with pytest.raises(ValueError, match=r"'Ankle Boot' and 'ankle boot' both become the token <ankle-boot\*>"):
        names.require_distinct(["sneaker", "Ankle Boot", "ankle boot"])


def test_a_demand_that_fails_names_key_value_and_what_is_accepted():
    names.demand(True, "base.seeds", 3, "1 or more")
    with pytest.raises(ValueError, match=r"^base\.seeds: 0 is not accepted; accepted: 1 or more$"):
        names.demand(False, "base.seeds", 0, "1 or more")
