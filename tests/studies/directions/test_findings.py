"""Sliders beside texts: what is counted along a trajectory, what is left at equal gain, and which verdicts follow."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import bootstrap, verdicts
from cnslib.studies.directions import findings

SHIFT = "heavy snow"
BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")


def path(method, alignment, *, seed=1, structure=1.0, step=0.1, probability=0.9):
    """The scores of one trajectory with known values at scales 0, 1, 2, ..."""
    count = len(alignment)
    steps = np.broadcast_to(step, count) * (np.arange(count) > 0)
    key = {"method": method, "shift": SHIFT, "class": "bag", "seed": seed, "scale": np.arange(count, dtype=float)}
    return pd.DataFrame({**key, "alignment": alignment, "structure": structure, "step": steps, "class_probability": probability})


def test_a_trajectory_is_summed_up_as_by_hand():
    scores = pd.concat(
        [
            path("slider", [0.1, 0.3, 0.2, 0.5], structure=[1, 0.9, 0.8, 0.7], step=[0, 0.1, 0.1, 0.2]),
            path("two prompts", [0.1, 0.6], structure=[1, 0.4], step=[0, 0.7], probability=[0.9, 0.05]),
        ]
    )
    rows = findings.per_trajectory(scores.sample(frac=1, random_state=0), labels=10).set_index("method")
    slider, prompts = rows.loc["slider"], rows.loc["two prompts"]
    assert (slider["gain"], slider["structure"], slider["largest"], slider["rising"]) == pytest.approx((0.4, 0.7, 0.5, 2 / 3))
    assert (prompts["gain"], prompts["structure"], prompts["largest"], prompts["rising"]) == pytest.approx((0.5, 0.4, 1.0, 1.0))
    assert (slider["class_kept"], prompts["class_kept"]) == (1, 0)


def test_a_garment_that_did_not_start_in_its_class_cannot_lose_it():
    rows = findings.per_trajectory(path("slider", [0.0, 0.1], probability=0.01), labels=10)
    assert rows["class_kept"].isna().all()
    assert findings.summary(rows, ["class_kept"], settings=BOOTSTRAP).loc[0, "n"] == 0


def test_structure_is_compared_at_the_first_scale_that_gains_as_much_as_two_prompts():
    parts = [path("two prompts", [0.0, 0.3], structure=[1, 0.5]), path("slider", [0.1, 0.2, 0.4, 0.9], structure=[1, 0.9, 0.8, 0.1])]
    parts.append(path("class token", [0.0, 0.1, 0.2, 0.29]))
    parts += [path("two prompts", [0.2, 0.1], seed=2), path("slider", [0.0, 0.1, 0.2, 0.3], seed=2)]  # nothing gained: not asked
    rows = findings.matched(pd.concat(parts), labels=10).set_index("method")
    assert (rows.loc["slider", "scale"], rows.loc["slider", "structure"], rows.loc["slider", "reached"]) == (2.0, 0.8, 1.0)
    assert (rows.loc["two prompts", "scale"], rows.loc["two prompts", "structure"]) == (1.0, 0.5)
    assert rows.loc["slider", "class_kept"] == 1 and np.isnan(rows.loc["class token", "class_kept"])
    assert rows.loc["class token", "reached"] == 0 and np.isnan(rows.loc["class token", "structure"])
    assert len(rows) == 3


def test_at_equal_gain_paths_are_read_between_their_pictures():
    """Both reach 0.4. At a quarter, 0.1, the slider is halfway to its first picture, and the text a quarter of the way to its own."""
    parts = [path("slider", [0.0, 0.2, 0.4], structure=[1, 0.9, 0.8]), path("whole text", [0.0, 0.4, 0.6], structure=[1, 0.6, 0.1])]
    rows = findings.equal_gain(pd.concat(parts), labels=10).set_index("share")
    assert rows["gain"].to_dict() == pytest.approx({0.25: 0.1, 0.5: 0.2, 0.75: 0.3})
    assert rows["structure"].to_dict() == pytest.approx({0.25: 0.95 - 0.9, 0.5: 0.9 - 0.8, 0.75: 0.85 - 0.7})
    assert (rows["class_kept"] == 0).all()


def test_equal_paths_do_not_differ_at_any_gain():
    """Though they fall back at their end."""
    slider = path("slider", [0.1, 0.2, 0.4, 0.6, 0.5], structure=[1, 0.9, 0.7, 0.6, 0.2])
    rows = findings.equal_gain(pd.concat([slider, slider.assign(method="whole text")]), labels=10)
    assert len(rows) == 3 and np.allclose(rows[["structure", "class_kept"]], 0)


def test_steps_that_one_of_two_paths_lacks_are_not_looked_at():
    """With the picture at 0.5 the slider would keep 0.95 at a gain of 0.2, and without it 0.75."""
    slider = path("slider", [0.0, 0.4], structure=[1, 0.5])
    finer = slider.iloc[1:].assign(scale=0.5, alignment=0.2, structure=0.95)
    both = pd.concat([slider, finer, path("class token", [0.0, 0.4], structure=[1, 0.5])])
    assert np.allclose(findings.equal_gain(both, labels=10)["structure"], 0)
    text = pd.concat([path("whole text", [0.0, 0.4], structure=[1, 0.5]), finer.assign(method="whole text", structure=0.75)])
    assert findings.equal_gain(pd.concat([slider, finer, text]), labels=10).set_index("share").loc[0.5, "structure"] == pytest.approx(0.2)


def test_where_nothing_is_gained_nothing_is_compared_and_two_prompts_have_no_knob():
    parts = [path("slider", [0.0, -0.1]), path("whole text", [0.0, 0.3]), path("two prompts", [0.0, 0.3])]
    assert findings.equal_gain(pd.concat(parts), labels=10).empty


def test_a_class_that_is_lost_on_one_path_alone_counts_one():
    slider, text = path("slider", [0.0, 0.4], probability=0.9), path("class token", [0.0, 0.4], probability=[0.9, 0.0])
    rows = findings.equal_gain(pd.concat([slider, text]), labels=2).set_index("share")["class_kept"]
    assert rows.to_dict() == {0.25: 0.0, 0.5: 1.0, 0.75: 1.0}  # 0.675, 0.45 and 0.225 against chance, 0.5
    unknown = pd.concat([one.assign(class_probability=0.1) for one in (slider, text)])
    assert findings.equal_gain(unknown, labels=2)["class_kept"].isna().all()


def walks() -> pd.DataFrame:
    """Four garments by every method; the slider loses 0.1 less of the structure than a text on its way to the same gain."""
    lost = {"slider": 0.4, "two prompts": 0.9, "class token": 0.5, "end tokens": 0.5, "whole text": 0.5}
    steps = {method: [0.0, 0.5, 1.0] if method != "two prompts" else [0.0, 1.0] for method in lost}
    return pd.concat(
        [
            path(method, [0.4 * step for step in steps[method]], seed=seed, structure=[1 - share * step for step in steps[method]])
            for seed in (1, 2, 3, 4)
            for method, share in lost.items()
        ]
    )


def summaries() -> dict[str, pd.DataFrame]:
    table = findings.per_trajectory(walks(), labels=10)
    columns, met = ["rising", "largest"], findings.matched(walks(), labels=10)
    level = findings.over_shares(findings.equal_gain(walks(), labels=10))
    return {
        "summary": findings.summary(table, columns, settings=BOOTSTRAP),
        "slider_minus": findings.against_slider(table, columns, settings=BOOTSTRAP),
        "equal_gain_slider_minus": findings.against_slider(met, ["structure"], settings=BOOTSTRAP),
        "knob_for_knob": findings.summary(level, ["structure", "class_kept"], settings=BOOTSTRAP),
    }


def test_every_claim_reads_its_own_number():
    """At the shares 0.25, 0.5 and 0.75 of a walk that loses 0.1 more: 0.05 in the mean. Two prompts lose 0.5 more at their gain."""
    ours = findings.claimed(summaries())
    estimates = {name: record["estimate"] for name, record in ours.items()}
    known = {"knob": 0.05, "rising": 1, "gradual": 0.5 - 1, "structure": 0.5, "consistent": 0, "stable": 0}
    assert estimates == pytest.approx(known)
    said = pd.read_csv(paths.PUBLISHED / "directions.csv")
    assert set(said["id"]) == {*known, "first", "second", "interaction"} and all(record["n"] == 4 for record in ours.values())
    assert findings.metrics(summaries())["knob_for_knob"]["whole text"]["structure"]["estimate"] == pytest.approx(0.05)


def test_words_of_a_summary_stand_in_the_order_of_the_methods():
    table = findings.cells(summaries()["summary"])
    assert table.index.tolist() == ["slider", "two prompts", "class token", "end tokens", "whole text"]
    assert table.loc["slider", "largest"] == "0.50 (0.50 to 0.50), n = 4"


def test_the_boxes_hold_each_scale_of_the_slider_and_two_prompts_last():
    gained = findings.spread(walks())
    assert list(dict.fromkeys(gained["column"])) == ["1", "2", "two prompts"]
    assert gained.groupby("column")["gain"].mean().to_dict() == pytest.approx({"1": 0.2, "2": 0.4, "two prompts": 0.4})


def test_the_difference_is_told_by_share_and_by_shift():
    equal = findings.equal_gain(walks(), labels=10)
    along = findings.along(equal, settings=BOOTSTRAP).query("method == 'whole text'").set_index("share")["estimate"]
    assert along.to_dict() == pytest.approx({0.25: 0.025, 0.5: 0.05, 0.75: 0.075})
    assert findings.by_shift(equal, settings=BOOTSTRAP).loc[SHIFT, "estimate"] == pytest.approx(0.05)


def test_differences_from_the_slider_are_paired_on_the_trajectory():
    parts = [path("slider", [0, 0.5 + seed], seed=seed) for seed in (1, 2, 3)]
    parts += [path("end tokens", [0, 0.2 + seed], seed=seed) for seed in (1, 2, 3)]
    table = findings.per_trajectory(pd.concat(parts), labels=10)
    row = findings.against_slider(table, ["gain"], settings=BOOTSTRAP).iloc[0]
    assert row["method"] == "end tokens" and row["n"] == 3
    assert (row["estimate"], row["low"], row["high"]) == pytest.approx((0.3, 0.3, 0.3))


def test_the_interval_of_a_difference_of_shares_stays_within_what_is_possible():
    """Of two trajectories: by Student's t with one degree of freedom it would reach from -6.9 to 5.9."""
    table = pd.DataFrame({"method": "two prompts", "class": "bag", "seed": [1, 2], "class_kept": [-1.0, 0.0], "structure": [-1.0, 0.0]})
    found = findings.differences(table, ["class_kept", "structure"], settings=BOOTSTRAP).set_index("measure")
    assert found.loc["class_kept", ["low", "high"]].tolist() == [-1, 1]
    assert found.loc["structure", "low"] < -1 and found.loc["structure", "high"] > 1


def test_where_no_trajectory_differs_a_difference_could_still_have_been_missed():
    """Wilson's bound of a share that none of seven classes shows; a single trajectory that differs is resampled as ever."""
    names = [f"class {number}" for number in range(8)]
    table = pd.DataFrame({"method": "two prompts", "class": names, "seed": 1, "class_kept": [0.0] * 7 + [np.nan]})
    settings = Bootstrap(resamples=200, confidence=0.95, seed=1, target="other classes")
    found = findings.differences(table, ["class_kept"], settings=settings).iloc[0]
    wilson = bootstrap.counted(0, 7, confidence=0.95)["high"]
    assert found["n"] == 7 and (found["low"], found["estimate"], found["high"]) == pytest.approx((-wilson, 0.0, wilson))
    assert np.isnan(findings.differences(table[:1], ["class_kept"], settings=settings)["low"]).all()  # of one class nothing is known
    one = findings.differences(table.assign(class_kept=[1.0] + [0.0] * 7), ["class_kept"], settings=settings).iloc[0]
    assert one["estimate"] == pytest.approx(0.125) and one["low"] > -wilson


def test_the_three_examples_are_different_trajectories():
    parts = [path("class token", [0.0, 0.9], seed=1, structure=[1, 0.5]), path("class token", [0.0, 0.1], seed=2, structure=[1, 0.1])]
    parts.append(path("class token", [0.0, -0.1], seed=3, structure=[1, 0.3]))
    chosen = findings.examples(findings.per_trajectory(pd.concat(parts), labels=10), "class token")
    assert {title: key[2] for title, key in chosen.items()} == {"most gain": 1, "least structure": 2, "fewest rises": 3}


def record(estimate, low, high, n=9):
    return {"n": n, "estimate": estimate, "low": low, "high": high}


def test_what_was_published_is_judged_by_the_interval():
    said = pd.DataFrame({"id": list("abcdef"), "quantity": list("uvwxyz"), "published": ["0.5", 0.9, "above 0", "above 0", "below 0", "1"]})
    ours = {"a": record(0.4, 0.3, 0.6), "b": record(0.4, 0.3, 0.6), "c": record(0.2, 0.1, 0.3), "d": record(0.2, -0.1, 0.3)}
    ours |= {"e": record(0.2, 0.1, 0.3), "f": record(np.nan, np.nan, np.nan, n=0)}
    table = verdicts.statements(ours, said)
    assert table["verdict"].tolist() == ["agrees", "same direction", "same direction", "undecided", "opposite direction", "not measured"]
    assert table.loc["v", "difference"] == pytest.approx(-0.5)


def test_rows_of_one_garment_count_as_one_in_the_interval():
    """Twenty equal rows of two garments are as uncertain as two rows; one garment has no interval, and no value no estimate."""
    rows = pd.DataFrame({"class": "bag", "seed": [1, 2]})
    few = bootstrap.mean(pd.Series([0.0, 1.0]), rows, settings=BOOTSTRAP)
    many = bootstrap.mean(pd.Series([0.0, 1.0] * 10), pd.concat([rows] * 10, ignore_index=True), settings=BOOTSTRAP)
    assert (many["low"], many["high"], many["n"]) == (few["low"], few["high"], 20)
    assert np.isnan(bootstrap.mean(pd.Series([1.0, 1.0]), rows.assign(seed=1), settings=BOOTSTRAP)["low"])
    assert bootstrap.mean(pd.Series([np.nan, 1.0]), rows, settings=BOOTSTRAP)["n"] == 1
