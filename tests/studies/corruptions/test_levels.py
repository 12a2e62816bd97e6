"""The fifteen corruptions by severity: the published parameters, the same bits every time, and more damage at a higher severity."""

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes
from cnslib.studies.corruptions import levels


def pictures(count=2, side=32, seed=0):
    """Smooth pictures with an edge."""
    rng = np.random.default_rng(seed)
    ramp = np.linspace(40, 200, side)
    drawn = ramp[None, :, None, None] * np.ones((count, side, side, 3)) * rng.uniform(0.6, 1, (count, 1, 1, 3))
    drawn[:, side // 4 : side // 2, side // 4 : side // 2] = 20
    return drawn.astype(np.uint8)


KEYS = [("bag", number) for number in range(2)]


def test_the_fifteen_are_imagenet_cs():
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv")
    assert len(levels.EFFECTS) == 15 and set(table["corruption"]) == set(levels.EFFECTS)
    assert {kind: len(own) for kind, own in levels.KINDS.items()} == {"noise": 3, "blur": 4, "weather": 4, "digital": 4}
    assert table.groupby(["corruption", "side"])["severity"].apply(list).map(lambda own: own == [1, 2, 3, 4, 5]).all()


@pytest.mark.parametrize(
    ("side", "name", "first", "last"),
    [
        (64, "gaussian noise", (0.04,), (0.18,)),
        (224, "gaussian noise", (0.08,), (0.38,)),
        (64, "jpeg compression", (65,), (25,)),
        (224, "jpeg compression", (25,), (7,)),
        (224, "fog", (1.5, 2), (3, 1.4)),
        (224, "elastic transform", (488, 170.8, 24.4), (29.28, 2.44, 4.88)),
        (64, "snow", (0.1, 0.2, 1, 0.6, 8, 3, 0.8), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)),
    ],
)
def test_first_and_last_parameters_are_the_published_ones(side, name, first, last):
    own = levels.published(side)[name]
    assert list(own) == [1, 2, 3, 4, 5] and own[1.0] == first and own[5.0] == last


def test_contrast_has_seven_levels_in_order():
    graded = levels.levels(corruption_settings())
    assert list(graded["contrast"]) == [1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]
    assert [value for (value,) in graded["contrast"].values()] == [0.4, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05]
    assert all(len(own) == 5 for name, own in graded.items() if name != "contrast")


@pytest.mark.parametrize("name", levels.EFFECTS)
def test_equal_inputs_give_equal_bytes_leave_the_original_alone_and_belong_to_the_picture(name):
    plain = pictures()
    before, parameters = plain.copy(), levels.published(64)[name][5.0]
    first, second = (levels.corrupt(name, plain, parameters, keys=KEYS) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(plain, before)
    assert first.dtype == np.uint8 and first.shape == plain.shape and (first != plain).any()
    alone = levels.corrupt(name, plain[1:], parameters, keys=KEYS[1:])
    np.testing.assert_array_equal(alone[0], first[1])


@pytest.mark.parametrize("name", sorted(set(levels.EFFECTS) - {"snow", "fog", "frost", "elastic transform"}))
def test_a_higher_severity_takes_more_of_the_picture(name):
    plain = pictures(side=64)
    apart = [np.abs(levels.corrupt(name, plain, own, keys=KEYS).astype(int) - plain).mean() for own in levels.published(64)[name].values()]
    assert apart[0] > 0 and apart[-1] > 1.3 * apart[0]


def test_unknown_names_and_sides_are_told():
    with pytest.raises(ValueError, match=r"rust.*gaussian noise"):
        levels.corrupt("rust", pictures(), (1.0,), keys=KEYS)
    with pytest.raises(ValueError, match=r"128.*64, 224"):
        levels.published(128)


def test_the_table_says_every_parameter_in_words():
    table = levels.table(levels.levels(corruption_settings()))
    assert table.shape == (15, 7) and table.loc["motion blur", 5.0] == "12, 3" and table.loc["snow", 3.5] == ""


def test_the_corrupted_pictures_are_the_golden_ones():
    graded = levels.published(64)
    drawn = [levels.corrupt(name, pictures(1), graded[name][3], keys=KEYS[:1]) for name in sorted(graded)]
    assert not difference(recipes.CORRUPTED, np.concatenate(drawn))
