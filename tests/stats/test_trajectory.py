"""The rising steps of trajectories, by hand."""

import numpy as np
import pandas as pd

from cnslib.stats import trajectory

SCALES = [0.0, 0.5, 1.0]


def test_rising_steps_are_counted_within_trajectories_and_only_between_readings():
    ways = {1: [0.0, 0.2, 0.1, 0.3], 2: [0.5, 0.5, 0.6, 0.7], 3: [0.1, np.nan, 0.3, 0.4]}
    parts = [
        pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": s, "scale": [*SCALES, 1.5], "asked": way}) for s, way in ways.items()
    ]
    steps = trajectory.rises(pd.concat(parts).sample(frac=1, random_state=0), "asked")
    assert steps.groupby("seed")["rises"].agg(["size", "sum"]).to_numpy().tolist() == [[3, 2], [3, 2], [1, 1]]  # no change is no rise
    assert set(steps["scale"]) == {0.5, 1.0, 1.5}
