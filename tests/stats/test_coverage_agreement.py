"""Numbers that compare two columns of the images, simulated: how often does the interval hold what endless seeds would show?

8 classes by 40 seeds by 4 scales, 100 data sets. All classes of a seed share its noise, a (class, seed) has its own, and so has every
image: the structure of the benchmark. The truth is read off 20,000 seeds by scipy and scikit-learn, without any weights.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from cnslib.core.settings.method import SAME, Bootstrap
from cnslib.data.annotations import ANSWERS
from cnslib.method import filtering
from cnslib.stats import calibration
from cnslib.studies.labels import labelling

DATA_SETS, SEEDS, ENDLESS = 100, 40, 20_000
CLASSES, SCALES, SHIFT = 8, np.array([0.0, 1.0, 2.0, 2.5]), "heavy snow"
HARD = np.linspace(-0.8, 0.8, CLASSES)
RULER = "ruler"


def images(rng: np.random.Generator, *, seeds: int) -> pd.DataFrame:
    """One row per image: how far it is from its class, which a seed's classes share in part."""
    shape = (CLASSES, seeds, len(SCALES))
    label, seed, scale = (place.ravel() for place in np.indices(shape))
    shared = rng.normal(0, 0.5, seeds) + rng.normal(0, 0.7, shape[:2])
    far = HARD[:, None, None] + shared[..., None] + 0.8 * (SCALES - SCALES.mean()) + rng.normal(0, 0.6, shape)
    keys = {"shift": SHIFT, "class": label.astype(str), "seed": seed, "scale": SCALES[scale]}
    return pd.DataFrame(keys | {"far": far.ravel(), "named": SHIFT})


def seen(rng: np.random.Generator, rows: pd.DataFrame, *, noise: float) -> np.ndarray:
    """The distance as somebody reads it who errs."""
    return rows["far"].to_numpy() + rng.normal(0, noise, len(rows))


def labelled(rng: np.random.Generator, rows: pd.DataFrame) -> pd.DataFrame:
    """The images with what the oracle says and every detector's score, which is high in class."""
    scores = {name: -seen(rng, rows, noise=0.5 + 0.3 * place) for place, name in enumerate(filtering.DETECTORS)}
    return rows.assign(oracle_ooc=seen(rng, rows, noise=0.5) > 1, **scores)


def said(rng: np.random.Generator, rows: pd.DataFrame) -> pd.DataFrame:
    """What two annotators answer."""
    cuts = [-0.5, 1.0]
    return pd.DataFrame({who: np.array(ANSWERS)[np.digitize(seen(rng, rows, noise=0.8), cuts)] for who in labelling.ANNOTATORS})


def holds(record: dict, truth: float) -> bool:
    return record["low"] <= truth <= record["high"]


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    rng = np.random.default_rng(0)
    rows = images(rng, seeds=ENDLESS)
    reading, table, answers = seen(rng, rows, noise=0.3), labelled(rng, rows), said(rng, rows)
    ladder = reading.reshape(-1, len(SCALES))
    areas = {name: roc_auc_score(table["oracle_ooc"], -table[name]) for name in filtering.DETECTORS}
    return areas | {
        "pearson": scipy.stats.pearsonr(rows["scale"], reading).statistic,
        "spearman": scipy.stats.spearmanr(rows["scale"], reading).statistic,
        "rising": (np.diff(ladder) > 0).mean(),
        "reading": ladder[:, 1].mean(),
        "map": ladder[:, 1].mean(),
        "kappa": cohen_kappa_score(*(answers[who] for who in labelling.ANNOTATORS)),
    }


def numbers(seed: int) -> dict[str, dict]:
    """Every number of one data set with its interval, as the library publishes it."""
    rng, settings = np.random.default_rng([5, seed]), Bootstrap(100, 0.95, seed, SAME)
    rows = images(rng, seeds=SEEDS)
    found = calibration.arrange(rows.assign(**{RULER: seen(rng, rows, noise=0.3)}), [RULER])
    mean = calibration.means(found, settings=settings)
    plain, rising = (
        calibration.tabulate(own.samples, own, own.bins).query("shift == @SHIFT and scale == @SCALES[1]")
        for own in (mean, calibration.monotone(mean))
    )
    asked = rows.sample(frac=0.25, random_state=seed).reset_index(drop=True)
    return {
        **calibration.correlations(found, settings=settings).set_index("measure").to_dict("index"),
        "rising": calibration.rising(found, settings=settings).query("shift == @SHIFT").iloc[0].to_dict(),
        "reading": plain.iloc[0].to_dict(),
        "map": rising.iloc[0].to_dict(),
        **filtering.areas(labelled(rng, rows), settings=settings).set_index("detector").to_dict("index"),
        "kappa": labelling.kappa(asked, said(rng, asked), settings=settings),
    }


@pytest.mark.slow
def test_intervals_of_correlations_areas_and_kappa_hold_the_truth_as_often_as_they_say(truth):
    found = pd.DataFrame([{name: holds(own, truth[name]) for name, own in numbers(seed).items()} for seed in range(DATA_SETS)])
    assert set(found) == set(truth)
    assert found.mean().min() >= 0.88, found.mean()
    assert 0.92 <= found.mean().mean() <= 0.98, found.mean()
