import dataclasses

import pandas as pd
import pytest
import tiny_sliders
from golden_units import difference
from tiny_encoders import write_timm

from cnslib.core import recipes
from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Generation, Pilot
from cnslib.method import generation, health
from cnslib.models import encoders

CLASSES = ["sneaker", "ankle boot"]
SCALES = [0.0, 1.0, 2.0]
PILOT = Pilot({"heavy snow": [0.5, 1.0]}, CLASSES[:1], 2, 0.8, 0.6, 0.45)
DRAWING = Generation(4, 2.0, [0.0, 1.0], [2.0], 0.75, negative_prompt="", quality=0, side=0)


@pytest.fixture(scope="module")
def read(pipe, origin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot")
    write_timm(folder / "oracle", outputs=len(CLASSES) + len(SHIFTS) + 2)
    shared = {
        "scales": SCALES,
        "recipe": "graded",
        "origin": origin,
        "oracle": encoders.Oracle(str(folder / "oracle"), labels=CLASSES),
        "folder": folder / "seen",
    }
    settings = dataclasses.replace(tiny_sliders.SETTINGS, pilot=PILOT)
    return lambda recipe="graded", **changes: health.pilot_readings(
        generation.Sampler(pipe, settings=DRAWING), settings=dataclasses.replace(settings, **changes), **(shared | {"recipe": recipe})
    )


def seen(shift, eta, asked, *, named=(False, True), kept=(True, True)):
    scales = [float(number) for number in range(len(asked))]
    between = [False] * (len(asked) - 2)
    rows = {"scale": scales, "asked": asked, "named": [named[0], *between, named[1]], "kept": [kept[0], *between, kept[1]]}
    return pd.DataFrame(rows).assign(shift=shift, eta=eta, seed=1, **{"class": "sneaker"})


def test_criteria_are_shares_at_the_last_scale_and_the_largest_part_of_the_rise():
    other = seen("heavy snow", 1.0, [0.0, 0.2, 0.4], named=(True, False), kept=(True, False))
    found = health.criteria(pd.concat([seen("heavy snow", 1.0, [0.2, 0.4, 1.0]), other])).iloc[0]
    assert (found["n"], found["named"], found["kept"]) == (2, 0.5, 0.5)
    assert found["largest_step"] == pytest.approx((0.7 - 0.3) / (0.7 - 0.1))  # of the means 0.1, 0.3, 0.7
    flat, rising = seen("heavy snow", 0.5, [0.4, 0.5, 0.4]), seen("heavy snow", 1.0, [0.0, 0.1, 0.9], kept=(True, False))
    found = health.criteria(pd.concat([flat, rising]))
    assert found["largest_step"].isna().tolist() == [True, False] and health.chosen(found, PILOT)["eta"].tolist() == [1.0]


def test_the_greatest_eta_that_meets_all_bounds_is_chosen_or_the_one_that_misses_least():
    rows = [
        ("heavy snow", 0.5, 0.7, 1.0, 0.4),
        ("heavy snow", 1.0, 0.8, 0.6, 0.45),  # the bounds themselves
        ("heavy snow", 1.5, 1.0, 0.5, 0.3),
        ("heavy rain", 0.5, 0.5, 1.0, 0.4),  # misses by 0.3
        ("heavy rain", 1.0, 0.9, 0.5, 0.5),  # by 0.1 and 0.05
        ("heavy rain", 1.5, 1.0, 0.45, 0.45),  # by 0.15 as well, and is the greater
    ]
    found = pd.DataFrame(rows, columns=["shift", "eta", "named", "kept", "largest_step"])
    chosen = health.chosen(found, PILOT)
    assert dict(zip(chosen["shift"], chosen["eta"], strict=True)) == {"heavy snow": 1.0, "heavy rain": 1.5}
    assert chosen["shortfall"].round(6).tolist() == [0.0, 0.15]


def test_every_trajectory_is_read_at_all_scales_and_begins_alike_at_every_eta(read):
    table = read()
    assert len(table) == 2 * 2 * 3 and set(table["class"]) == {"sneaker"}
    start = table[table["scale"] == 0].pivot(index="seed", columns="eta", values="asked")
    assert (start[0.5] == start[1.0]).all()
    assert not difference(recipes.PILOT, table, within=1e-3)
