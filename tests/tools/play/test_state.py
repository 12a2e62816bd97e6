"""What the reader did: scales to stand at, rounds by hand, and comparisons counted by hand."""

import numpy as np
import pandas as pd
import pytest
from tiny_artifacts import run_in

from cnslib.stats.accuracy import Outcomes
from cnslib.tools.play import state
from cnslib.tools.play.state import Look, Round

SCALES = (0.0, 0.5, 1.0)


def opened() -> Round:
    return Round("heavy snow", "bag", 3, SCALES, len(SCALES) - 1)


def test_the_slider_stands_at_tenths_and_at_every_scale_of_the_benchmark():
    assert state.scales([0.0, 0.25, 0.5]) == [0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5]
    assert set(SCALES) <= set(state.scales(SCALES)) and 0.3 in state.scales(SCALES)  # not 0.30000000000000004


@pytest.mark.parametrize(
    ("look", "key"),
    [
        (Look("hail", "bag", 1, 0.0), "shift: 'hail'"),
        (Look("heavy snow", "hat", 1, 0.0), "class: 'hat'"),
        (Look("heavy snow", "bag", 3, 0.0), "seed: 3 .* 1 to 2"),
        (Look("heavy snow", "bag", 1, 0.55), "scale: 0.55"),
    ],
)
def test_a_look_outside_the_benchmark_is_refused_by_its_key(tmp_path, look, key):
    with pytest.raises(ValueError, match=key):
        look.require(run_in(tmp_path).base)


def test_who_names_the_garment_at_the_last_scale_never_fails():
    assert opened().answered("bag").failure == len(SCALES)


def test_the_failure_point_is_just_above_the_scale_of_the_right_name():
    played = opened().turned(0.5)
    assert played.may_answer and played.answered("bag").failure == 2 and not played.over


def test_turning_up_again_forgets_nothing():
    assert opened().turned(0.0).turned(1.0).answered("bag").failure == 1


def test_a_wrong_name_costs_the_scale_and_the_round_goes_on_below():
    played = opened().answered("coat")
    assert not played.over and not played.may_answer
    with pytest.raises(ValueError, match="one answer at each scale"):
        played.answered("bag")
    assert played.turned(0.5).answered("bag").failure == 2


def test_who_misses_the_garment_without_a_shift_fails_at_scale_0():
    played = opened().turned(0.0).answered("coat")
    assert played.over and played.failure == 0


def test_a_round_that_is_open_has_no_failure_point_and_one_that_is_over_takes_no_answer():
    with pytest.raises(ValueError, match="still open"):
        _ = opened().failure
    with pytest.raises(ValueError, match="answer"):
        opened().answered("bag").answered("bag")


def test_a_scale_that_the_round_lacks_is_refused():
    with pytest.raises(ValueError, match=r"scale: 0\.7"):
        opened().turned(0.7)


def outcomes() -> Outcomes:
    keys = [("heavy snow", name, seed) for name in ("bag", "coat") for seed in range(1, 6)]
    wrong = np.zeros((10, 2, 3), bool)
    wrong[:, 0, 1] = True
    wrong[2, 1, 0] = True
    return Outcomes(pd.DataFrame(keys, columns=["shift", "class", "seed"]), ["resnet", "vit"], list(SCALES), wrong)


def test_every_kept_trajectory_is_a_round_once_with_the_failures_on_its_own_pictures():
    found = outcomes()
    rounds = state.rounds(found)
    keys = [played.key for played, _ in rounds]
    assert sorted(keys) == sorted(found.trajectories.itertuples(index=False, name=None))
    assert keys != list(found.trajectories.itertuples(index=False, name=None))  # in another order than the table's
    own = {played.key: first.tolist() for played, first in rounds}
    assert own["heavy snow", "bag", 3] == [1, 0] and own["heavy snow", "bag", 4] == [1, 3]
    assert all(played.lowest == 2 for played, _ in rounds)


def test_the_order_of_the_rounds_does_not_depend_on_the_order_of_the_table():
    found = outcomes()
    turned = Outcomes(found.trajectories[::-1].reset_index(drop=True), found.models, found.scales, found.wrong[::-1])
    assert [played.key for played, _ in state.rounds(found)] == [played.key for played, _ in state.rounds(turned)]


def test_classifiers_are_counted_before_with_and_after_the_reader():
    assert state.compared(2, np.array([0, 1, 2, 3, 3])) == {"earlier": 2, "same": 1, "later": 2}


def test_the_standing_is_by_mean_failure_point_and_never_counts_as_the_last_scale():
    finished = [(3, np.array([1, 3])), (0, np.array([1, 2]))]
    table = state.standing(finished, ["resnet", "vit"], SCALES)
    assert table.to_numpy().tolist() == [["vit", 1.0, 1], ["resnet", 0.5, 2], ["you", 0.5, 2]]
