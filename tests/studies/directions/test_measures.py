"""What is counted along a trajectory, what is left at equal gain, and what two sliders do, all as by hand."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import bootstrap
from cnslib.studies.directions import composition, measures

SHIFT, FIRST, SECOND = "heavy snow", "heavy snow", "cartoon style"
BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")


def path(method, alignment, *, seed=1, structure=1.0, step=0.1, probability=0.9):
    """The scores of one trajectory with known values at scales 0, 1, 2, ..."""
    count = len(alignment)
    steps = np.broadcast_to(step, count) * (np.arange(count) > 0)
    key = {"method": method, "shift": SHIFT, "class": "bag", "seed": seed, "scale": np.arange(count, dtype=float)}
    return pd.DataFrame({**key, "alignment": alignment, "structure": structure, "step": steps, "class_probability": probability})


def at_equal_gain(*paths, labels=10):
    return measures.equal_gain(pd.concat(paths), labels=labels).set_index("share")


def test_a_trajectory_is_summed_up_as_by_hand():
    slider = path("slider", [0.1, 0.3, 0.2, 0.5], structure=[1, 0.9, 0.8, 0.7], step=[0, 0.1, 0.1, 0.2])
    prompts = path("two prompts", [0.1, 0.6], structure=[1, 0.4], step=[0, 0.7], probability=[0.9, 0.05])
    both = pd.concat([slider, prompts]).sample(frac=1, random_state=0)
    rows = measures.per_trajectory(both, labels=10).set_index("method")[["gain", "structure", "largest", "rising", "class_kept"]]
    assert rows.loc["slider"].tolist() == pytest.approx([0.4, 0.7, 0.5, 2 / 3, 1])
    assert rows.loc["two prompts"].tolist() == pytest.approx([0.5, 0.4, 1.0, 1.0, 0])


def test_a_garment_that_did_not_start_in_its_class_cannot_lose_it():
    rows = measures.per_trajectory(path("slider", [0.0, 0.1], probability=0.01), labels=10)
    assert rows["class_kept"].isna().all()
    assert measures.summary(rows, ["class_kept"], settings=BOOTSTRAP).loc[0, "n"] == 0


def test_structure_is_compared_at_the_first_scale_that_gains_as_much_as_two_prompts():
    parts = [path("two prompts", [0.0, 0.3], structure=[1, 0.5]), path("slider", [0.1, 0.2, 0.4, 0.9], structure=[1, 0.9, 0.8, 0.1])]
    parts.append(path("class token", [0.0, 0.1, 0.2, 0.29]))
    parts += [path("two prompts", [0.2, 0.1], seed=2), path("slider", [0.0, 0.1, 0.2, 0.3], seed=2)]  # nothing gained: left out
    rows = measures.matched(pd.concat(parts), labels=10).set_index("method")[["scale", "structure", "reached", "class_kept"]]
    assert rows.loc["slider"].tolist() == [2.0, 0.8, 1.0, 1.0] and rows.loc["two prompts"].tolist() == [1.0, 0.5, 1.0, 1.0]
    assert rows.loc["class token", "reached"] == 0 and rows.loc["class token", ["structure", "class_kept"]].isna().all()
    assert len(rows) == 3


def test_at_equal_gain_paths_are_read_between_their_pictures():
    """Both reach 0.4. At a quarter, 0.1, the slider is halfway to its first picture, and the text a quarter of the way to its own."""
    slider, text = path("slider", [0.0, 0.2, 0.4], structure=[1, 0.9, 0.8]), path("whole text", [0.0, 0.4, 0.6], structure=[1, 0.6, 0.1])
    rows = at_equal_gain(slider, text)
    assert rows["gain"].to_dict() == pytest.approx({0.25: 0.1, 0.5: 0.2, 0.75: 0.3})
    assert rows["structure"].to_dict() == pytest.approx({0.25: 0.95 - 0.9, 0.5: 0.9 - 0.8, 0.75: 0.85 - 0.7})
    assert rows["lost"].to_dict() == pytest.approx({0.25: 0.05, 0.5: 0.1, 0.75: 0.15}) and (rows["class_kept"] == 0).all()


def test_equal_paths_do_not_differ_at_any_gain_though_they_fall_back_at_their_end():
    slider = path("slider", [0.1, 0.2, 0.4, 0.6, 0.5], structure=[1, 0.9, 0.7, 0.6, 0.2])
    rows = at_equal_gain(slider, slider.assign(method="whole text"))
    assert len(rows) == 3 and np.allclose(rows[["structure", "class_kept"]], 0)


def test_steps_that_one_of_two_paths_lacks_are_not_looked_at():
    """With the picture at 0.5 the slider would keep 0.95 at a gain of 0.2, and without it 0.75."""
    slider = path("slider", [0.0, 0.4], structure=[1, 0.5])
    finer = slider.iloc[1:].assign(scale=0.5, alignment=0.2, structure=0.95)
    assert np.allclose(at_equal_gain(slider, finer, path("class token", [0.0, 0.4], structure=[1, 0.5]))["structure"], 0)
    text = [path("whole text", [0.0, 0.4], structure=[1, 0.5]), finer.assign(method="whole text", structure=0.75)]
    assert at_equal_gain(slider, finer, *text).loc[0.5, "structure"] == pytest.approx(0.2)


def test_where_nothing_is_gained_nothing_is_compared_and_two_prompts_have_no_knob():
    assert at_equal_gain(path("slider", [0.0, -0.1]), path("whole text", [0.0, 0.3]), path("two prompts", [0.0, 0.3])).empty


def test_a_class_that_is_lost_on_one_path_alone_counts_one():
    slider, text = path("slider", [0.0, 0.4], probability=0.9), path("class token", [0.0, 0.4], probability=[0.9, 0.0])
    rows = at_equal_gain(slider, text, labels=2)["class_kept"]
    assert rows.to_dict() == {0.25: 0.0, 0.5: 1.0, 0.75: 1.0}  # 0.675, 0.45 and 0.225 against chance, 0.5
    unknown = [one.assign(class_probability=0.1) for one in (slider, text)]
    assert at_equal_gain(*unknown, labels=2)["class_kept"].isna().all()


def test_differences_from_the_slider_are_paired_on_the_trajectory():
    ends = {"slider": 0.5, "end tokens": 0.2}
    parts = [path(method, [0, end + seed], seed=seed) for method, end in ends.items() for seed in (1, 2, 3)]
    row = measures.against_slider(measures.per_trajectory(pd.concat(parts), labels=10), ["gain"], settings=BOOTSTRAP).iloc[0]
    assert row["method"] == "end tokens" and row["n"] == 3
    assert row[["estimate", "low", "high"]].tolist() == pytest.approx([0.3, 0.3, 0.3])


def test_the_interval_of_a_difference_of_shares_stays_within_what_is_possible():
    """Of two trajectories: by Student's t with one degree of freedom it would reach from -6.9 to 5.9."""
    table = pd.DataFrame({"method": "two prompts", "class": "bag", "seed": [1, 2], "class_kept": [-1.0, 0.0], "structure": [-1.0, 0.0]})
    found = measures.differences(table, ["class_kept", "structure"], settings=BOOTSTRAP).set_index("measure")
    assert found.loc["class_kept", ["low", "high"]].tolist() == [-1, 1]
    assert found.loc["structure", "low"] < -1 and found.loc["structure", "high"] > 1


def test_where_no_trajectory_differs_a_difference_could_still_have_been_missed():
    """Wilson's bound of a share that none of seven classes shows; a single trajectory that differs is resampled as ever."""
    names = [f"class {number}" for number in range(8)]
    table = pd.DataFrame({"method": "two prompts", "class": names, "seed": 1, "class_kept": [0.0] * 7 + [np.nan]})
    settings = Bootstrap(resamples=200, confidence=0.95, seed=1, target="other classes")
    found = measures.differences(table, ["class_kept"], settings=settings).iloc[0]
    wilson = bootstrap.independent_share(np.zeros(7, bool), confidence=0.95)["high"]
    assert found["n"] == 7 and (found["low"], found["estimate"], found["high"]) == pytest.approx((-wilson, 0.0, wilson))
    assert np.isnan(measures.differences(table[:1], ["class_kept"], settings=settings)["low"]).all()  # of one class nothing is known
    one = measures.differences(table.assign(class_kept=[1.0] + [0.0] * 7), ["class_kept"], settings=settings).iloc[0]
    assert one["estimate"] == pytest.approx(0.125) and one["low"] > -wilson


def known(first, second, *, seed=1):
    """Scores of one garment with known alignments at each two weights."""
    cells = pd.DataFrame(list(first), columns=composition.WEIGHTS)
    shown = {"alignment_first": list(first.values()), "alignment_second": [second[cell] for cell in first]}
    return cells.assign(**shown, first=FIRST, second=SECOND, **{"class": "bag"}, seed=seed, structure=1.0, class_probability=1.0)


def shown(first, second):
    return measures.both_show(measures.effects(known(first, second))).iloc[0][measures.SHOWN].tolist()


def test_gains_together_alone_and_lent_are_those_counted_by_hand():
    first, second = {(0, 0): 0.1, (1, 0): 0.5, (0, 1): 0.2, (1, 1): 0.4}, {(0, 0): -0.2, (1, 0): -0.3, (0, 1): 0.3, (1, 1): 0.0}
    found = measures.effects(known(first, second).sample(frac=1, random_state=0)).set_index("shift")[measures.EFFECTS]
    assert found.loc[FIRST].tolist() == pytest.approx([0.4, 0.1, 0.3, 0.2, -0.2])
    assert found.loc[SECOND].tolist() == pytest.approx([0.5, -0.1, 0.2, 0.3, -0.2])


def test_what_the_other_slider_lends_does_not_count():
    """Alone each gains 0.4. In the picture of both the second has all of its 0.4, but the first slider alone brings 0.3 of them."""
    first = {(0, 0): 0.0, (1, 0): 0.4, (0, 1): 0.0, (1, 1): 0.4}
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.3, (0, 1): 0.4, (1, 1): 0.4}) == [0, 1, 1]
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.1, (0, 1): 0.4, (1, 1): 0.4}) == [1, 1, 0]
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.4, (0, 1): 0.4, (1, 1): 0.3}) == [0, 0, 1]
    backwards = {(0, 0): 0.0, (1, 0): -0.4, (0, 1): 0.0, (1, 1): -0.1}  # a slider that works backwards alone must still add something
    assert shown(backwards, {(0, 0): 0.0, (1, 0): 0.0, (0, 1): 0.4, (1, 1): 0.4}) == [0, 0, 0]


def test_gains_that_add_up_do_not_interact():
    first = {(one, other): 0.3 * one + 0.1 * other for one in (0, 1, 2) for other in (0, 1, 2)}
    second = {(one, other): 0.2 * other for one, other in first}
    found = measures.effects(pd.concat([known(first, second, seed=seed) for seed in (1, 2)]))
    assert len(found) == 2 * 4 * 2 and np.allclose(found["interaction"], 0)
    assert measures.both_show(found)["shows"].tolist() == [1.0] * 8
    assert np.allclose(found.query("shift == @FIRST and weight == 2")["alone"], 0.6)
