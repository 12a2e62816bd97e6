"""What notebook 20 says: each sentence follows its numbers."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core.settings.method import Bootstrap
from cnslib.studies.labels import findings

SHARES = pd.DataFrame({"scale": [0.0, 2.5], "n": [10, 10], "estimate": [0.0, 0.5], "low": [0.0, 0.25], "high": [0.0, 0.75]})
WEAK = "at scale 0, where stage (ii) has dropped the weak ones,"
TOLD = f"At scale 2.5 50% (25% to 75%) of the images are out of class; {WEAK} none"
KAPPA = {"n": 1200, "estimate": 0.5, "low": 0.25, "high": 0.75}


def test_what_is_lost_is_a_share_of_every_scale_with_its_interval():
    keys = {"class": ["a"] * 8, "seed": [1, 2, 3, 4] * 2, "scale": [2.5] * 4 + [0.0] * 4}
    labelled = pd.DataFrame(keys).assign(kind=["out of class", "out of class", "in class", "in class"] + ["in class"] * 4)
    shares = findings.lost(labelled, settings=Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes"))
    assert shares["scale"].tolist() == [0.0, 2.5] and shares["estimate"].tolist() == [0.0, 0.5]
    assert shares["n"].tolist() == [4, 4] and shares["low"].iloc[1] < 0.5 < shares["high"].iloc[1]


def test_stages_and_kinds_are_counted():
    assert findings.stages_told(SHARES) == TOLD
    assert findings.stages_told(SHARES.assign(estimate=[0.2, 0.5])).endswith(f"{WEAK} 20% (0% to 0%)")
    strongest = pd.DataFrame({"kind": ["in class", "out of class", "out of class"]})
    said = findings.kinds_told(strongest)
    assert said == "Of 3 hard pictures at the largest scale, 1 are in class, 0 are partly in class, 2 are out of class"


@pytest.mark.parametrize(("low", "high", "side"), [(0.25, 0.75, "beyond"), (-0.1, 0.75, "not surely beyond"), (-0.5, -0.1, "less than")])
def test_an_agreement_is_beyond_chance_where_its_interval_is(low, high, side):
    assert findings.agreed(KAPPA | {"low": low, "high": high}).startswith(f"agree {side} chance: kappa 0.50 (")


def test_the_answer_says_who_answered_and_tells_kappa_where_there_is_one():
    said = findings.answer(KAPPA, SHARES, people=False)
    assert said == f"{findings.NOBODY} agree beyond chance: kappa 0.50 (0.25 to 0.75), n = 1,200 pictures. {TOLD}."
    nothing = findings.answer({"n": 10, "estimate": np.nan}, SHARES, people=True)
    assert nothing == f"{findings.PEOPLE} leave no kappa, for all of the 10 are alike. {TOLD}."
