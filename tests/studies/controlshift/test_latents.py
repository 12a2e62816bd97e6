import math

import numpy as np
import pytest
from scipy.spatial import geometric_slerp

from cnslib.studies.controlshift import datasets

SIZE = 64
TARGETS = datasets.targets(SIZE, seed=1)
Z = datasets.start("test", range(8), SIZE, seed=1)
FIRST, SECOND = datasets.unit(Z[0]), datasets.unit(Z[1])


@pytest.mark.parametrize("tau", [0.0, 0.25, 0.9, 1.0])
def test_slerp_agrees_with_scipy_and_stays_between_equal_vectors(tau):
    assert np.allclose(datasets.slerp(FIRST, SECOND, tau), geometric_slerp(FIRST, SECOND, tau), atol=1e-12)
    assert np.allclose(datasets.slerp(FIRST, FIRST, tau), FIRST)


def test_shifts_begin_and_end_where_the_paper_says():
    assert np.allclose(datasets.shifted(Z, "truncation", 0.9, TARGETS), 0.9 * Z)
    begin, end = (datasets.shifted(Z, "extend", theta, TARGETS) for theta in (0.0, math.pi / 2))
    assert np.allclose(begin @ TARGETS[0], (begin * datasets.unit(Z) * math.sqrt(SIZE)).sum(1))
    assert np.allclose(datasets.unit(end), datasets.unit(Z))
    assert np.allclose(datasets.shifted(Z, "overlap", 0.0, TARGETS), begin)
    turned = datasets.shifted(Z, "overlap", math.pi / 2, TARGETS)
    assert np.allclose(turned, datasets.shifted(Z, "overlap", 0.0, TARGETS[::-1]))
    assert np.allclose(np.linalg.norm([begin, end, turned], axis=-1), math.sqrt(SIZE))  # as a decoder was trained


def test_an_image_starts_from_the_same_latent_in_any_batch_and_another_in_another_split():
    assert np.array_equal(datasets.start("test", range(5, 8), SIZE, seed=1), Z[5:])
    assert not np.allclose(datasets.start("train", range(8), SIZE, seed=1), Z)


@pytest.mark.parametrize(
    ("kind", "value", "trained", "targets", "intensity"),
    [
        ("truncation", 0.9, 0.9, TARGETS, 0),
        ("overlap", 0.0, 0.0, TARGETS, 0),
        ("truncation", 2.0, 1.0, TARGETS[:, :2], 3 / 4),  # a ball of twice the radius in the plane
        ("extend", math.pi / 2, 0.0, TARGETS, 1 / 2),  # the whole sphere doubles the support
        ("overlap", math.pi / 2, 0.0, 2 * np.eye(4)[:2], 1 / 2),  # half spheres around orthogonal poles
    ],
)
def test_the_intensity_is_that_of_geometry(kind, value, trained, targets, intensity):
    assert datasets.exact(kind, value, trained, targets) == pytest.approx(intensity, abs=1e-7)


@pytest.mark.parametrize(("kind", "value", "trained"), [("truncation", 1.05, 0.95), ("extend", 0.4, 0.0), ("overlap", 0.7, 0.0)])
def test_monte_carlo_covers_the_closed_form(kind, value, trained):
    targets = datasets.targets(4, seed=1)
    found = datasets.simulated(kind, value, trained, targets, draws=20_000, seed=1, confidence=0.999)
    assert found["low"] <= datasets.exact(kind, value, trained, targets) <= found["high"]
