"""The paper's run on a cluster: units and hours by hand, wall times without trouble, the supplement's numbers beside each other."""

import dataclasses
import math

import numpy as np
import pytest
from tiny_settings import CALM

from cnslib.core import clusters, paths, workers
from cnslib.core.settings import read
from cnslib.method import evaluation
from cnslib.tools.simulation import budget


@pytest.fixture(scope="module")
def sections() -> dict:
    return read.load(paths.resolve("params.yaml"), paths.resolve("paper.yaml"))


def test_units_and_hours_are_those_of_supplement_g_3_and_grow_with_the_classes(sections):
    table = budget.work(sections, [100, 1000]).set_index(["classes", "stage"])
    assert table.loc[100, "units"].to_dict() == {"sliders": 1400, "images": 1400, "answers": 43}
    assert table.loc[100, "hours"].to_dict() == pytest.approx({"sliders": 2000, "images": 350, "answers": 1000})
    assert table.loc[1000, "hours"].to_list() == pytest.approx([20000, 3500, 10000])
    assert table.loc[(1000, "answers"), "units"] == 43 and table.loc[(1000, "sliders"), "hours of one"] == pytest.approx(2000 / 1400)


def test_answers_by_shift_are_the_same_hours_in_more_pieces(sections):
    whole, parts = (budget.stages(sections, 100, piece=piece)[-1] for piece in budget.PIECES)
    assert parts.units == 14 * whole.units and parts.units * parts.hours == pytest.approx(whole.units * whole.hours)


def test_hours_of_another_device_take_the_place_of_the_reported_ones(sections, tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text("step,hours\nsliders,700\ngeneration,1400\nevaluation,43\n")
    spent = budget.measured(path)
    assert [stage.hours for stage in budget.stages(sections, 100, spent=spent)] == pytest.approx([0.5, 1.0, 1.0])
    assert budget.compared(spent)["times"].to_dict() == pytest.approx({"sliders": 2000 / 700, "generation": 0.25, "evaluation": 1000 / 43})
    settings = dataclasses.replace(sections["plan"], classes=[100], workers=[64], runs=2)
    faster, reported = (budget.grid(sections, settings, confidence=0.95, **how) for how in ({"spent": spent}, {}))
    assert faster["ideal"].iloc[0] == pytest.approx(2143 / 64) and reported["ideal"].iloc[0] == pytest.approx(3350 / 64)


def test_hours_of_other_steps_are_refused_by_name(tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text("step,hours\nsliders,700\nimages,1400\n")
    with pytest.raises(ValueError, match=r"sliders, images.*accepted: sliders, generation, evaluation"):
        budget.measured(path)


def test_the_hours_measured_here_are_there_for_every_step(sections):
    assert (budget.compared(budget.measured(paths.resolve(sections["plan"].measured))) > 0).all(axis=None)


def test_wall_times_are_told_in_days_from_two_days_on():
    assert budget.duration(48.0, 36.0, 60.0) == "2.0 days (1.5 to 2.5)" and budget.duration(9.76, 9.41, 10.11) == "9.8 hours (9.4 to 10.1)"


def test_without_trouble_the_wall_time_is_that_of_full_rounds_and_has_no_width(sections):
    given = budget.stages(sections, 100)
    (row,) = budget.walls(given, [64], CALM, runs=3, seed=1, confidence=0.95).to_dict("records")
    rounds = sum(math.ceil(stage.units / 64) * stage.hours for stage in given)
    assert row["estimate"] == row["low"] == row["high"] == pytest.approx(rounds) and row["n"] == 3 and row["longest"] == "sliders"


def test_pieces_longer_than_half_a_block_have_no_wall_time(sections):
    settings = dataclasses.replace(sections["plan"], classes=[100, 1000], workers=[64], walltime=72.0, runs=2)
    found = budget.grid(sections, settings, confidence=0.95)
    assert found.set_index(["classes", "piece"])["estimate"].isna().to_dict() == {
        (100, budget.WHOLE): False,
        (100, budget.BY_SHIFT): False,
        (1000, budget.WHOLE): True,  # 233 hours a classifier
        (1000, budget.BY_SHIFT): False,
    }
    known = found.dropna(subset="estimate")
    assert (known["estimate"] > known["ideal"]).all() and len(budget.records(found)) == 3
    assert "it does not fit into a block" in budget.told(found, 64, 1000) and "GPUs work" in budget.told(found, 64, 100)


@pytest.mark.parametrize("name", ["slurm.yaml", "template.yaml"])
def test_a_block_of_the_templates_holds_every_piece_of_the_papers_run_twice(sections, name):
    """A piece of a cluster is one classifier; blocks have hours enough for 100 classes, and 1,000 are longer than any."""
    cluster = read.load(paths.ROOT / "clusters" / name)["cluster"]
    hours, minutes, _ = str(cluster.options["walltime"]).split(":")
    trouble = dataclasses.replace(CALM, walltime=int(hours) + int(minutes) / 60)
    fitting = [budget.fits(budget.stages(sections, classes), trouble) for classes in (100, 1000)]
    clusters.use(cluster, paths.ROOT)
    assert fitting == [True, False] and workers.share(evaluation.TOGETHER) == 1


def test_short_blocks_cut_more_work_off_and_those_that_hold_no_piece_are_left_out(sections):
    settings = dataclasses.replace(sections["plan"], workers=[64], walltimes=[6.0, 24.0, 72.0], runs=2)
    found = budget.blocks(sections, settings)
    by_shift = found.query("piece == @budget.BY_SHIFT").set_index("walltime")["lost"]
    assert by_shift[6.0] > by_shift[72.0] and found.query("piece == @budget.WHOLE")["walltime"].to_list() == [72.0]
    assert "blocks of 72 hours lose" in budget.lost(found)


def test_the_blocks_say_what_they_are_a_share_of_and_name_the_classes_and_workers_that_were_simulated(sections):
    settings = dataclasses.replace(sections["plan"], classes=[300, 1000], workers=[2, 8], between=40.0, walltime=72.0, runs=7)
    said = budget.blocks_extent(settings)
    assert said.startswith("Share of the answers' GPU-hours that were cut off") and said.endswith("mean of 7 simulated runs")
    assert "300 classes, 2 GPUs, a failure of each every 40 hours" in said and "72" not in said and "brackets" not in said


def test_files_are_counted_by_hand(sections):
    small, large = budget.files(sections, [100, 1000]).to_dict("records")
    assert small["files"] == 2 * (1400 + 15 + 43) and large["sliders"] == 14_000
    assert small["pictures"] == 100 * 50 * (1 + 14 * 5) == 355_000
    assert large["GiB of images"] == pytest.approx(10 * small["GiB of images"])
    assert np.isclose(14 * small["GiB of one image table"], small["GiB of images"])


def test_the_supplements_numbers_agree_with_each_other(sections):
    """1,400 sliders of 1 to 2 hours in 2,000 hours; 10 to 20 minutes for the pictures of each in 350."""
    found = budget.reported(sections)
    assert found["ours"].to_list() == pytest.approx([1400, 2000 / 1400, 60 * 350 / 1400]) and found["fits"].all()


def test_shares_of_the_hours_are_those_of_3350(sections):
    """2,000, 350 and 1,000 GPU-hours."""
    assert budget.shares(budget.work(sections, [100])) == "Of 3,350 GPU-hours: sliders 60%, images 10%, answers 30%."
