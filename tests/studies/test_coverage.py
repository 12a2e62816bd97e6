import numpy as np
import pandas as pd
from tiny_benchmark import covers

from cnslib.method import inversion

CLASSES, DATA_SETS = 8, 100


def inside(record: dict | pd.Series, true: float) -> bool:
    return bool(record["low"] <= true <= record["high"])


def test_the_jackknife_covers_distances_shares_and_their_differences():
    """Pictures of a seed share half of what makes them differ. The truth is the mean over all data sets of this size."""
    rows, reference = pd.DataFrame({"seed": np.tile(range(24), CLASSES)}), np.random.default_rng(33).normal(0, 1, (200, 4))
    found = []
    for number in range(200):
        rng = np.random.default_rng([33, number])
        features = rng.normal(0.3, 0.7, (24, 4))[rows["seed"]] + rng.normal(0, 0.7, (len(rows), 4))
        other = features + rng.normal(0.1, 0.4, features.shape)
        one, two = (inversion.distance(own, rows["seed"].to_numpy(), reference) for own in (features, other))
        near = rows.assign(learned=features[:, 0], heldout=other[:, 0])
        records = inversion.jackknife(one, 1, confidence=0.95), inversion.jackknife(two - one, 1, confidence=0.95)
        found.append([*records, inversion.nearer(near, "learned", "heldout", confidence=0.95)])
    for kind in zip(*found, strict=True):
        true = np.mean([record["estimate"] for record in kind])
        assert covers(pd.Series([inside(record, true) for record in kind], dtype=float))
