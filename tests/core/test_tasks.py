"""Pieces of work as files: what is shared is loaded once, and what counts as done is what lies there."""

import pickle
from pathlib import Path

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
    told = [(task, tasks.run(*task.call)) for task in made]
    return [tasks.outcome(*one)[0] for one in told]


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
    tasks.run(*fine.call)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: integer division"):
        tasks.run(*broken.call)
    assert "python says 1\ndone" in fine.log.read_text()
    assert "python says 0" in broken.log.read_text() and "return 1 // number" in broken.log.read_text()


def test_the_cost_comes_back_with_the_value(tmp_path):
    (task,) = write(loud, [(1,)], tmp_path)
    value, cost = tasks.outcome(task, tasks.run(*task.call))
    assert value == 1 and isinstance(cost, sites.Cost) and 0 < cost.seconds < 60 and cost.device and cost.memory >= 0


def test_a_worker_that_says_done_is_not_believed(tmp_path):
    """Nothing there; a unit that was changed after it was written; a result that was."""
    shelf = tiny_work.shelf(tmp_path, 1)
    (task,) = write(tiny_work.square, [(tmp_path, 0, shelf[0])], tmp_path)
    with pytest.raises(RuntimeError, match=r"the worker was done, but .*000000\.result does not exist"):
        tasks.outcome(task, "0" * 64)
    told = tasks.run(*task.call)
    assert tasks.outcome(task, told)[0] is None
    shelf[0].path.write_text("1\n")
    with pytest.raises(RuntimeError, match=r"made/0\.txt is not there, or not as it was written"):
        tasks.outcome(task, told)
    tiny_work.square(tmp_path, 0, shelf[0])
    task.result.write_bytes(b"something else")
    with pytest.raises(RuntimeError, match=r"000000\.result is not as it was written"):
        tasks.outcome(task, told)


def idle(unit: units.Unit) -> None:
    """Makes nothing."""


def test_a_piece_that_does_not_make_its_unit_fails(tmp_path):
    shelf = tiny_work.shelf(tmp_path, 1)
    (task,) = write(idle, [(shelf[0],)], tmp_path)
    with pytest.raises(RuntimeError, match=r"made/0\.txt was not made"):
        tasks.run(*task.call)
    with pytest.raises(RuntimeError, match=r"made/0\.txt was not made"):
        workers.each(idle, [(shelf[0],)], device="cpu")


def test_tasks_that_others_could_have_written_are_not_opened(tmp_path):
    task, *_ = write(loud, [(1,)], tmp_path)
    task.file.parent.chmod(0o777)
    for reading in (lambda: tasks.run(*task.call), lambda: tasks.outcome(task, "0" * 64)):
        with pytest.raises(PermissionError, match="can be written by others than this user"):
            reading()
    assert not task.log.exists()


class Trap:
    """What runs code when it is opened, as somebody may put it in the place of a file."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return self.mark.touch, ()


@pytest.mark.parametrize("name", ["000000.task", tasks.COMMON, "000000.result"])
def test_a_file_that_was_exchanged_is_named_and_never_opened(tmp_path, name):
    """Also with a record of its bytes beside it, as whoever exchanges a file would write one."""
    task, *_ = write(loud, [(1,)], tmp_path)
    call = task.call
    told = tasks.run(*call)
    tasks.kept.clear()
    exchanged, mark = task.file.parent / name, tmp_path / "opened"
    exchanged.write_bytes(pickle.dumps(Trap(mark)))
    units.record_bytes(exchanged)
    with pytest.raises((ValueError, RuntimeError), match=rf"{name} is not as it was written"):
        tasks.outcome(task, told) if name.endswith("result") else tasks.run(*call)
    assert not mark.exists()
    pickle.loads(exchanged.read_bytes())
    assert mark.exists()
