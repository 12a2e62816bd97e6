"""Pieces of work as files: what is shared is loaded once, and what counts as done is what lies there."""

import pytest
import tiny_work
import torch
from torch import nn

from cnslib.core import sites, tasks, units, workers


class Studio:
    """Something heavy that holds a network."""

    def __init__(self, network: nn.Module):
        self.network = network


def answer(studio: Studio, number: float) -> tuple[int, int, float]:
    """Which objects were used, and what the network says."""
    return id(studio), id(studio.network), studio.network(torch.tensor([number])).item()


def loud(number: int) -> int:
    print(f"python says {number}", flush=True)
    return 1 // number


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    """A worker that has loaded nothing, does not watch its parent, and waits no longer than a test may."""
    monkeypatch.setattr(tasks, "kept", {})
    monkeypatch.setattr(tasks, "follow", lambda owner: None)
    monkeypatch.setattr(tasks, "PATIENCE", 0.1)


def write(function, pieces, folder):
    return tasks.write(function, pieces, folder / "tasks", folder / "logs", device="cpu", threaded=False)


def values(made):
    for task in made:
        tasks.run(str(task.file))
    return [tasks.outcome(task)[0] for task in made]


def test_what_pieces_share_is_stored_once_and_loaded_once(tmp_path):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        studio = Studio(nn.Linear(1, 1))
    made = write(answer, [(studio, 1.0), (studio, 2.0), (Studio(studio.network), 3.0)], tmp_path)
    (first, network, one), (second, same, two), (third, again, three) = values(made)
    assert first == second != third and network == same == again
    assert [one, two, three] == [answer(studio, number)[2] for number in (1.0, 2.0, 3.0)]
    assert max(task.file.stat().st_size for task in made) < 10_000


def test_what_no_task_needs_any_more_is_let_go(tmp_path):
    values(write(answer, [(Studio(nn.Linear(1, 1)), float(number)) for number in range(2)], tmp_path))
    held = set(tasks.kept)
    values(write(loud, [(1,)], tmp_path / "later"))
    assert held and not held & set(tasks.kept)


def test_a_log_holds_what_was_printed_and_the_traceback(tmp_path):
    fine, broken = write(loud, [(1,), (0,)], tmp_path)
    tasks.run(str(fine.file))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: integer division"):
        tasks.run(str(broken.file))
    assert "python says 1\ndone" in fine.log.read_text()
    assert "python says 0" in broken.log.read_text() and "return 1 // number" in broken.log.read_text()


def test_the_cost_comes_back_with_the_value(tmp_path):
    (task,) = write(loud, [(1,)], tmp_path)
    tasks.run(str(task.file))
    value, cost = tasks.outcome(task)
    assert value == 1 and isinstance(cost, sites.Cost) and 0 < cost.seconds < 60 and cost.device and cost.memory >= 0


def test_a_worker_that_says_done_is_not_believed(tmp_path):
    """Nothing there; a unit that was changed after it was written; a result that was."""
    shelf = tiny_work.shelf(tmp_path, 1)
    (task,) = write(tiny_work.square, [(tmp_path, 0, shelf[0])], tmp_path)
    with pytest.raises(RuntimeError, match=r"the worker was done, but .*000000\.result does not exist"):
        tasks.outcome(task)
    tasks.run(str(task.file))
    assert tasks.outcome(task)[0] is None
    shelf[0].path.write_text("1\n")
    with pytest.raises(RuntimeError, match=r"made/0\.txt is not there, or not as it was written"):
        tasks.outcome(task)
    tiny_work.square(tmp_path, 0, shelf[0])
    task.result.write_bytes(b"something else")
    with pytest.raises(RuntimeError, match=r"000000\.result is not as it was written"):
        tasks.outcome(task)


def idle(unit: units.Unit) -> None:
    """Makes nothing."""


def test_a_piece_that_does_not_make_its_unit_fails(tmp_path):
    shelf = tiny_work.shelf(tmp_path, 1)
    (task,) = write(idle, [(shelf[0],)], tmp_path)
    with pytest.raises(RuntimeError, match=r"made/0\.txt was not made"):
        tasks.run(str(task.file))
    with pytest.raises(RuntimeError, match=r"made/0\.txt was not made"):
        workers.each(idle, [(shelf[0],)], device="cpu")


def test_tasks_that_others_could_have_written_are_not_opened(tmp_path):
    task, *_ = write(loud, [(1,)], tmp_path)
    task.file.parent.chmod(0o777)
    for reading in (lambda: tasks.run(str(task.file)), lambda: tasks.outcome(task)):
        with pytest.raises(PermissionError, match="can be written by others than this user"):
            reading()
    assert not task.log.exists()


def test_a_flipped_bit_in_what_tasks_share_is_named_before_it_is_opened(tmp_path):
    task, *_ = write(loud, [(1,)], tmp_path)
    common = task.file.parent / tasks.COMMON
    content = bytearray(common.read_bytes())
    content[len(content) // 2] ^= 1
    common.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=tasks.COMMON):
        tasks.run(str(task.file))
