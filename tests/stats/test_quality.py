"""Quality of the base models: votes counted by hand."""

import numpy as np
import pytest

from cnslib.stats import quality


def shown(*levels):
    """Pictures of 2 x 2 equal pixels."""
    return np.repeat(np.array(levels, np.uint8), 4).reshape(-1, 2, 2)


def test_the_five_most_similar_pictures_vote_and_the_most_frequent_error_is_named():
    known = shown(0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204), np.repeat([0, 1, 3], 5)
    asked = shown(2, 90, 210, 102, 200, 203), np.array([0, 0, 0, 1, 3, 3])
    table = quality.told_apart(known, asked, classes=["bag", "coat", "shirt", "dress"], confidence=0.95).set_index("class")
    assert table["n"].to_dict() == {"bag": 3, "coat": 1, "dress": 2}
    assert table["estimate"].to_dict() == pytest.approx({"bag": 1 / 3, "coat": 1, "dress": 1})
    assert table.loc["bag", "taken for"] == "coat" and table.loc["bag", "how often"] == pytest.approx(1 / 3)
    assert table.loc["bag", ["low", "high"]].tolist() == pytest.approx([0.0615, 0.7923], abs=1e-4)  # Wilson's of 1 in 3
