import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
import tiny_work
import torch
from tiny_work import alive, contents, until
from torch import nn

from cnslib.core import clusters, paths, workers
from cnslib.core.settings import read

FILES = sorted((paths.ROOT / "clusters").glob("*.yaml"))
LOCAL = paths.ROOT / "clusters" / "local.yaml"


@pytest.fixture
def local():
    return read.load(LOCAL)["cluster"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_ready_file_is_what_parsl_accepts(path, tmp_path):
    pytest.importorskip("parsl")
    cluster = read.load(path)["cluster"]
    executor = clusters.configuration(cluster, tmp_path).executors[0]
    assert type(executor.provider).__name__ == cluster.provider and executor.max_workers_per_node == cluster.workers
    assert len(executor.available_accelerators) == (cluster.workers if cluster.card_each else 0)
    options = {key: value for key, value in cluster.options.items() if value != "" and hasattr(executor.provider, key)}
    assert {key: getattr(executor.provider, key) for key in options} | {"walltime": 0} == options | {"walltime": 0}


def answer(network: nn.Module, number: float) -> tuple[int, float]:
    return id(network), network(torch.tensor([number])).item()


def loud(number: int) -> int:
    print(f"python says {number}", flush=True)
    return 1 // number


@pytest.fixture
def worker(monkeypatch):
    """A worker that has loaded nothing, does not watch its parent, and waits no longer than a test may."""
    monkeypatch.setattr(clusters, "kept", {})
    monkeypatch.setattr(clusters, "follow", lambda owner: None)
    monkeypatch.setattr(clusters, "PATIENCE", 0.1)


def values(function, pieces, folder) -> list:
    packed, shared = clusters.pack(function, pieces)
    (folder / "objects").write_bytes(shared)
    told = str(folder / "objects"), clusters.hashlib.sha256(shared).hexdigest()
    assert max(map(len, packed)) < 1_000
    return [clusters.run(data, *told, "made/0", str(folder / "log"), False) for data in packed]


def test_what_pieces_share_is_stored_once_and_loaded_once(tmp_path, worker):
    network = nn.Linear(1, 1)
    (first, one), (second, two) = values(answer, [(network, 1.0), (network, 2.0)], tmp_path)
    assert first == second != id(network) and [one, two] == [answer(network, number)[1] for number in (1.0, 2.0)]
    held = set(clusters.kept)
    assert values(loud, [(1,)], tmp_path) == [1] and not held & set(clusters.kept)  # what no piece needs any more is let go


class Trap:
    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return self.mark.touch, ()


def test_a_file_that_was_exchanged_is_named_and_never_opened(tmp_path, worker):
    _, shared = clusters.pack(loud, [(1,)])
    exchanged, mark = tmp_path / "objects", tmp_path / "opened"
    exchanged.write_bytes(pickle.dumps(Trap(mark)))
    with pytest.raises(ValueError, match="objects is not as it was written"):
        clusters.loaded(str(exchanged), clusters.hashlib.sha256(shared).hexdigest())
    assert not mark.exists()
    pickle.loads(exchanged.read_bytes())
    assert mark.exists()


def test_a_worker_that_says_done_is_not_believed(tmp_path, worker):
    unit, future = tiny_work.shelf(tmp_path)[0], Future()
    future.set_result(7)
    for _ in ("nothing is there", "it was changed after it was written"):
        error = clusters.outcome(future, (unit,), "made/0", tmp_path / "log")
        assert "made/0: the worker was done, but" in str(error) and "0.txt is not there, or not as it was written" in str(error)
        tiny_work.square(tmp_path, 0, unit)
        unit.path.write_text("1\n")
    tiny_work.square(tmp_path, 0, unit)
    assert clusters.outcome(future, (unit,), "made/0", tmp_path / "log") == 7


def start(folder: Path) -> subprocess.Popen:
    lines = ["import sys", "from pathlib import Path", "import tiny_work", "from cnslib.core import clusters"]
    lines += ["clusters.HEARTBEAT = 2", "tiny_work.drive(Path(sys.argv[1]), sys.argv[2])"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(tiny_work.PLACES)}
    return subprocess.Popen([sys.executable, "-c", "; ".join(lines), str(folder), str(LOCAL)], env=environment)


def noted(folder: Path, number: int) -> set[int]:
    return {int(path.suffix[1:]) for path in (folder / "notes").glob(f"{number}.*")}


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    pytest.importorskip("parsl")
    folder = tmp_path_factory.mktemp("story")
    (folder / "notes").mkdir()
    first, shelf = start(folder), tiny_work.shelf(folder)
    until(lambda: all(noted(folder, number) for number in (tiny_work.WAITING, tiny_work.DEADLY)) and shelf[0].done and shelf[1].done)
    first.send_signal(signal.SIGKILL)
    first.wait()
    written = {number: shelf[number].path.stat().st_mtime_ns for number in (0, 1)}
    orphans = noted(folder, tiny_work.WAITING) | noted(folder, tiny_work.DEADLY)
    until(lambda: not any(map(alive, orphans)))
    (folder / "go").touch()
    assert start(folder).wait(300) == 0
    return folder, written


@pytest.mark.slow
def test_a_driver_that_was_killed_is_taken_up_where_it_was(story):
    folder, written = story
    shelf = tiny_work.shelf(folder)
    assert {number: shelf[number].path.stat().st_mtime_ns for number in (0, 1)} == written
    assert [len(noted(folder, number)) for number in (0, 1)] == [1, 1] and not list((folder / "work").glob("shared-*"))


@pytest.mark.slow
def test_a_worker_that_was_killed_is_replaced_and_its_unit_made_by_another(story):
    folder, _ = story
    assert tiny_work.shelf(folder)[tiny_work.DEADLY].done and len(noted(folder, tiny_work.DEADLY)) == 3  # of the first driver, killed, done


@pytest.mark.slow
def test_a_unit_that_always_fails_is_named_with_its_log_and_the_others_are_made(story, local, tmp_path):
    folder, _ = story
    error, log = (folder / "error").read_text(), folder / "work" / "logs" / "made-4.log"
    assert error == f"made/4: ValueError: 4 is poison, tried {local.retries} times before; see {log}"
    assert "Traceback" in log.read_text() and "5 squared" in log.with_name("made-5.log").read_text()
    shelf = tiny_work.shelf(tmp_path)
    workers.each(tiny_work.square, [(tmp_path, number, shelf[number]) for number in shelf.waiting()], device="cpu")
    expected = contents(tmp_path / "made")
    assert contents(folder / "made") == {name: data for name, data in expected.items() if not name.startswith("4.")}
