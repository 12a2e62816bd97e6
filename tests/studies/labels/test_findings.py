"""What notebook 20 says: each sentence follows its numbers."""

import numpy as np
import pandas as pd

from cnslib.studies.labels import findings
from cnslib.studies.labels.staging import KINDS

COUNTED = pd.DataFrame([[8, 0, 0, 2], [2, 1, 1, 4]], columns=["in class, easy", *KINDS], index=[0.0, 2.5])


def test_stages_and_kinds_are_counted():
    assert findings.stages_told(COUNTED) == "20% of the images at scale 0 are out of class, 50% at 2.5"
    strongest = pd.DataFrame({"kind": ["in class", "out of class", "out of class"]})
    said = findings.kinds_told(strongest)
    assert said == "Of 3 hard pictures at the largest scale, 1 are in class, 0 are partly in class, 2 are out of class"


def test_the_answer_tells_kappa_where_there_is_one():
    labelled = pd.DataFrame({"stage": ["hard"] * 10 + ["easy"] * 8})
    agreement = {"pair": {"n": 4, "estimate": 0.5, "low": 0.25, "high": 0.75}, "all shifts": {"n": 10, "estimate": np.nan}}
    said = findings.answer(labelled, agreement, COUNTED, "labels: oracle")
    first = "Of 18 images 10 are worth a look, and two answers agree with kappa 0.50 (0.25 to 0.75) on 4 pictures (pair)"
    assert said == f"{first} and no kappa on 10 pictures (all shifts). {findings.stages_told(COUNTED)} (labels: oracle)."
