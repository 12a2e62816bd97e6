"""Areas under a ROC curve against scikit-learn's: equal, not close."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cnslib.stats import bootstrap, roc


@pytest.mark.parametrize("levels", [2, 7, 10**6])
@pytest.mark.parametrize("rows", [2, 3, 40, 1000])
def test_the_area_is_scikit_learns_to_the_last_bit(rows, levels):
    """With equal scores and without, and with rows that do not count."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = rng.integers(0, levels, rows) / levels
        positive = np.arange(rows) % 2 == 0
        weights = (np.rint(rng.standard_gamma(0.1 + seed, (3, rows)) * bootstrap.EXACT) + 1) / bootstrap.EXACT
        weights[:, 2:][rng.random((3, rows - 2)) < 0.2] = 0
        expected = [roc_auc_score(positive, score, sample_weight=weight) for weight in weights]
        assert roc.roc_auc_scores(positive, score, sample_weights=weights).tolist() == expected


def test_without_one_of_the_two_kinds_there_is_no_area():
    positive, score = np.array([True, True, False]), np.array([0.1, 0.2, 0.3])
    found = roc.roc_auc_scores(positive, score, sample_weights=np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]))
    assert np.isnan(found).tolist() == [True, True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^scores: NaN or infinite; accepted: finite numbers$"):
        roc.roc_auc_scores(np.array([True, False]), np.array([value, 0.0]), sample_weights=np.ones((1, 2)))
