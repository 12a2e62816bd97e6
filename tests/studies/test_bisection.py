import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_settings import resampled
from tiny_sliders import random_sliders

from cnslib.core import recipes, tables
from cnslib.core.settings.method import Generation
from cnslib.core.settings.sections import Bisection
from cnslib.method import generation
from cnslib.models import classifiers
from cnslib.studies import bisection, shared

DRAWING = Generation(4, 3.0, [0.0, 1.0], [3.0], 0.75, "", 0, 0)
KEYS = [("heavy snow", "ankle boot", 1), ("heavy snow", "sneaker", 1), ("heavy snow", "sneaker", 2)]
LABELS = ["sneaker", "ankle boot"]
GRID = [0.0, 0.5, 1.0]
CHOSEN = {"shifts": ["heavy snow"], "classes": LABELS, "seeds": 2, "classifiers": ["bright", "dark"]}
SETTINGS = Bisection(bootstrap=resampled(10), seed=1, resolution=1 / 8, scans=1, scan_step=1 / 4, **CHOSEN)
pytestmark = pytest.mark.usefixtures("in_place")


def judge(name: str, sign: float, folder: Path) -> classifiers.Classifier:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "config.json").write_text(f'{{"sign": {sign}}}')

    def network(inputs: torch.Tensor) -> torch.Tensor:
        bright = sign * (inputs.mean((1, 2, 3)) - 127)
        return torch.stack([bright, -bright], dim=1)

    def transform(picture) -> torch.Tensor:
        return torch.tensor(np.asarray(picture), dtype=torch.float32)

    return classifiers.Classifier(name, str(folder / name), LABELS, network, transform, {"sign": sign}, 1, "cpu")


@pytest.fixture(scope="module")
def bisected(pipe, origin, tmp_path_factory):
    """Where pictures and answers lie, failure points and answers."""
    sliders, judges = random_sliders(pipe, tmp_path_factory.mktemp("sliders"), ["heavy snow"], LABELS), tmp_path_factory.mktemp("judges")
    asked, folder = [judge("bright", 1.0, judges), judge("dark", -1.0, judges)], tmp_path_factory.mktemp("bisected")
    own = bisection.Studio(generation.Sampler(pipe, settings=DRAWING), origin, sliders, asked, folder)
    return folder, *bisection.bisect(own, failures(), scales=GRID, settings=SETTINGS)


def failures() -> pd.DataFrame:
    """Brackets that the grid might have left: both models fail in the upper cell, on the last trajectory one fails in the lower."""
    cells = {KEYS[0]: [(0.5, 1.0)] * 2, KEYS[1]: [(0.5, 1.0), (-np.inf, 0.0)], KEYS[2]: [(0.0, 0.5), (1.0, np.inf)]}
    rows = [(name, *key, *cells[key][i]) for key in KEYS for i, name in enumerate(("bright", "dark"))]
    table = pd.DataFrame(rows, columns=["model", *tables.TRAJECTORY, "after", "failure_point"])
    return table.assign(failure_point=table["failure_point"].replace(np.inf, np.nan))


def test_a_bracket_ends_between_a_right_and_a_wrong_answer(bisected):
    _, points, answers = bisected
    wrong = answers.assign(wrong=answers["top1"] != answers["class"]).set_index(["model", *tables.KEY])["wrong"]
    for row in points[bisection.bracketed(points)].itertuples(index=False):
        place = (row.model, *row[1:4])
        assert row.until - row.after == SETTINGS.resolution and row.grid_after <= row.after and row.until <= row.grid_until
        assert not wrong.get((*place, row.after), False) and wrong.get((*place, row.until), True)
    rest = points[~bisection.bracketed(points)]
    assert (rest["after"] == rest["grid_after"]).all() and (rest["until"] == rest["grid_until"]).all()


def test_the_tiny_units_are_the_golden_ones(bisected):
    folder = bisected[0]
    path = sorted((folder / "pictures").rglob("*.parquet"))[0].relative_to(folder / "pictures")
    assert not difference(recipes.CLOSEUPS, tables.read(folder / "pictures" / path, tables.images))
    assert not difference(recipes.CLOSEUP_PREDICTIONS, tables.read(folder / "predictions" / path, tables.predictions), within=1e-2)


def search(thresholds: list[float], resolution: float = 1 / 32) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """The bisected brackets of models that are wrong from a threshold on, and the scales that were drawn."""
    grid, drawn = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5], []
    edges, first = np.array([-np.inf, *grid, np.inf]), np.searchsorted(grid, thresholds)

    def wrong_at(scales: list[float]) -> np.ndarray:
        drawn.extend(scales)
        return np.array(scales)[:, None] >= np.array(thresholds)

    return *bisection.halve(edges[first], edges[first + 1], wrong_at, resolution=resolution), drawn


def test_random_thresholds_lie_within_the_resolution_and_models_share_scales():
    thresholds = np.random.default_rng(1).uniform(0.001, 2.5, 300)
    after, until, drawn = search(thresholds.tolist())
    assert (until - after == 1 / 32).all() and ((after < thresholds) & (thresholds <= until)).all() and len(drawn) == len(set(drawn)) == 75
    for threshold in thresholds[:20]:
        assert [one[0] for one in search([threshold])[:2]] == [one[thresholds == threshold][0] for one in (after, until)]
    assert search([1.2, 1.2, np.inf])[2] == [1.25, 1.125, 1.1875, 1.21875]
    assert search([-np.inf, np.inf])[1].tolist() == [0.0, np.inf] and search([-np.inf, np.inf])[2] == []


def test_the_first_kept_seeds_are_chosen_and_scans_drawn_by_lot_among_brackets():
    keys = [(s, c, n) for s in ("heavy snow", "heavy rain") for c in (*LABELS, "shirt") for n in (9, 4, 7)]
    kept = pd.DataFrame(keys, columns=tables.TRAJECTORY)
    chosen = shared.choose(kept, SETTINGS, SETTINGS.classes)
    assert chosen.to_numpy().tolist() == [["heavy snow", c, n] for c in ("ankle boot", "sneaker") for n in (4, 7)]
    with pytest.raises(ValueError, match=r"bisection\.shifts: \['heavy snow'\].*of the 9 kept trajectories"):
        shared.choose(kept[kept["shift"] == "heavy rain"], SETTINGS, LABELS)
    points = chosen.assign(grid_after=[0.5, 0.5, 0.5, 2.5], grid_until=[1.0, 1.0, 1.0, np.inf])
    lots = {tuple(bisection.scanned(points, settings=dataclasses.replace(SETTINGS, seed=seed))) for seed in range(20)}
    assert len(lots) == 3 and all(len(keys) == 1 and keys[0][1:] != ("sneaker", 7) for keys in lots)
