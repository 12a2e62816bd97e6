"""Units over workers: the same bytes as in this process, whoever dies; files are believed, and failures told by name.

The work is small (tests/tiny/tiny_work.py) except in the last tests, where a tiny chain runs; workers, deaths and Parsl are real.
"""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import papermill
import pytest
import tiny_work
from nbformat.v4 import new_code_cell, new_notebook

from cnslib.core import clusters, paths, sites, tasks, workers
from cnslib.core.settings import read
from cnslib.tools import kernels, runner

LOCAL = paths.ROOT / "clusters" / "local.yaml"


@pytest.fixture
def local():
    return read.load(LOCAL)["cluster"]


def undisturbed(folder: Path) -> dict[str, bytes]:
    """The bytes of all units as this process makes them."""
    shelf = tiny_work.shelf(folder)
    workers.each(tiny_work.square, [(folder, number, shelf[number]) for number in shelf.waiting()], device="cpu")
    return made(folder)


def made(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "made").iterdir()}


def flaky(folder: Path, number: int, unit) -> None:
    """Fails the first time that a number is tried."""
    if not (folder / str(number)).exists():
        (folder / str(number)).touch()
        raise OSError(f"{number} failed once")
    tiny_work.square(folder, number, unit)


def spread(function, folder, cluster):
    """What became of every number, on threads in the place of a cluster's workers."""
    shelf = tiny_work.shelf(folder)
    pieces = [(folder, number, shelf[number]) for number in shelf.waiting()]
    place = {"cluster": cluster, "folder": folder / "work", "device": "cpu", "desc": None, "threaded": True}
    with ThreadPoolExecutor(1) as engine:
        return {number: found for number, _, found in clusters.spread(function, pieces, **place, executor=engine)}


@pytest.fixture
def unwatched(monkeypatch):
    monkeypatch.setattr(tasks, "follow", lambda owner: None)


def test_what_fails_once_is_made_in_the_second_attempt(tmp_path, local, unwatched):
    found = spread(flaky, tmp_path, local)
    assert len(found) == tiny_work.COUNT and not any(isinstance(one, Exception) for one in found.values())
    assert made(tmp_path) == undisturbed(tmp_path / "here")


def test_without_retries_every_failure_is_told_by_name_and_nothing_is_left_behind(tmp_path, local, unwatched):
    found = spread(flaky, tmp_path, dataclasses.replace(local, retries=0))
    assert [str(found[number]).split("; see")[0] for number in range(2)] == [
        "made/0: OSError: 0 failed once",
        "made/1: OSError: 1 failed once",
    ]
    assert not list((tmp_path / "work").glob("tasks-*"))


def test_a_poisoned_unit_in_this_process_leaves_the_others_alone(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "killed").touch()
    (tmp_path / "go").touch()
    shelf = tiny_work.shelf(tmp_path)
    with pytest.raises(ValueError, match="4 is poison"):
        workers.each(tiny_work.eventful, [(tmp_path, number, shelf[number]) for number in shelf.waiting()], device="meta")
    assert shelf.waiting() == [tiny_work.POISON]


def test_several_failures_in_this_process_are_told_together(tmp_path):
    shelf = tiny_work.shelf(tmp_path)
    with pytest.raises(RuntimeError, match=r"^6 of 6 failed.*made/0: 0 failed once; made/1: 1 failed once"):
        workers.each(flaky, [(tmp_path, number, shelf[number]) for number in shelf.waiting()], device="meta")


def test_without_parsl_the_extra_is_named(tmp_path, local, monkeypatch):
    monkeypatch.setitem(sys.modules, "parsl", None)
    with pytest.raises(ModuleNotFoundError, match=r"base\.workers: Parsl is not installed; accepted: `pip install cnslib\[cluster\]`"):
        clusters.pool(local, tmp_path)


# A driver that is killed while two units are being made, and one that goes on; two workers of Parsl on this machine.


def start(folder: Path) -> subprocess.Popen:
    lines = ["import sys", "from pathlib import Path", "import tiny_work", "from cnslib.core import clusters"]
    lines += ["clusters.HEARTBEAT = 2", "tiny_work.drive(Path(sys.argv[1]), sys.argv[2])"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(tiny_work.__file__).parent), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen([sys.executable, "-c", "; ".join(lines), str(folder), str(LOCAL)], env=environment)


def until(condition, seconds=300):
    """Waits for a condition; the bound only keeps a broken test from hanging."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def noted(folder: Path, number: int) -> set[int]:
    """The processes that worked on a number."""
    return {int(path.suffix[1:]) for path in (folder / "notes").glob(f"{number}.*")}


def alive(process: int) -> bool:
    """Whether a process runs: it has a command line, which one that has ended and waits to be collected lacks."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """The folder after both drivers, and when the units of the first were written."""
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
    """Its workers have gone with it, which the fixture waits for; what they had finished stays."""
    folder, written = story
    shelf = tiny_work.shelf(folder)
    assert {number: shelf[number].path.stat().st_mtime_ns for number in (0, 1)} == written
    assert [len(noted(folder, number)) for number in (0, 1)] == [1, 1]


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
    expected = undisturbed(tmp_path)
    assert made(folder) == {name: data for name, data in expected.items() if not name.startswith("4.")}


@pytest.mark.slow
def test_every_unit_has_its_cost(story):
    folder, _ = story
    lines = [json.loads(line) for line in (folder / "work" / sites.COSTS).read_text().splitlines()]
    found = {line["name"]: line for line in lines}
    assert {f"made/{number}" for number in (tiny_work.WAITING, tiny_work.DEADLY, 5)} <= found.keys() and "made/4" not in found
    assert all(line["seconds"] > 0 and line["device"] and line["memory"] > 0 and line["work"] == "squares" for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("failing", "missing"), [(1, 0), (9, tiny_work.COUNT)])
def test_a_block_that_fails_is_replaced_and_a_cluster_whose_blocks_all_fail_is_given_up(local, tmp_path, failing, missing, monkeypatch):
    """The shell of so many blocks ends before their workers start."""
    pytest.importorskip("parsl")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(tiny_work.__file__).parent), str(paths.ROOT)]))
    count = f"mkdir {tmp_path}/blocks-$RANDOM; [ $(ls -d {tmp_path}/blocks-* | wc -l) -gt {failing} ] || exit 1"
    sites.use(sites.Site(tmp_path / "work", "", dataclasses.replace(local, setup=count, options=local.options | {"max_blocks": 1})))
    shelf = tiny_work.shelf(tmp_path)
    with contextlib.closing(clusters), pytest.raises(RuntimeError, match="made/0: ") if missing else contextlib.nullcontext():
        workers.each(tiny_work.square, [(tmp_path, number, shelf[number]) for number in shelf.waiting()], device="cpu")
    blocks = len(list(tmp_path.glob("blocks-*")))
    assert len(shelf.waiting()) == missing and blocks == (local.retries + 1 if missing else failing + 1)


@pytest.mark.slow
def test_a_notebook_gives_its_workers_back_before_it_counts_as_run(tmp_path, monkeypatch):
    """Its kernel ends all processes of its group first; the one that hands work out is still needed to release the others."""
    pytest.importorskip("parsl")
    places = [str(Path(tiny_work.__file__).parent), str(paths.ROOT)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
    (tmp_path / "notes").mkdir()
    (tmp_path / "go").touch()
    code = f"from pathlib import Path\nimport tiny_work\ntiny_work.drive(Path({str(tmp_path)!r}), {str(LOCAL)!r}, tiny_work.lasting)"
    source = new_notebook(cells=[new_code_cell(code)], metadata={"kernelspec": runner.KERNELSPEC})
    nbformat.write(source, tmp_path / "source.ipynb")
    how = {"kernel_name": "python3", "kernel_manager_class": kernels.Patient}
    papermill.execute_notebook(tmp_path / "source.ipynb", tmp_path / "run.ipynb", **how)
    found = set().union(*(noted(tmp_path, number) for number in range(tiny_work.COUNT)))
    assert not tiny_work.shelf(tmp_path).waiting() and found and not any(map(alive, found))


# The steps of the method, on the tiny pipeline.


@pytest.fixture
def two_workers(local, tmp_path):
    """Two of Parsl's for this test."""
    pytest.importorskip("parsl")
    sites.use(sites.Site(tmp_path / "work", "", local))
    yield
    clusters.close()


@pytest.fixture
def chain(tiny_pipeline_dir, tiny_tokens_dir, tmp_path):
    """Sliders, images and answers in a folder: the bytes of every file."""
    from tiny_encoders import write_timm
    from tiny_sliders import CLASSES, SETTINGS, SHIFTS, pipeline

    from cnslib.core.settings.method import Evaluation, Generation
    from cnslib.method import evaluation, generation, sliders
    from cnslib.models import text_to_image

    for seed, name in enumerate(("vit", "deit")):
        write_timm(tmp_path / name, outputs=2, seed=seed)

    def run(folder: Path) -> dict[str, bytes]:
        pipe, origin = (
            pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES),
            text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES),
        )
        grid, learned, drawn = {"scales": [0.0, 1.0], "seeds": 1}, folder / "sliders", folder / "images"
        sliders.train_all(pipe, SHIFTS, CLASSES, settings=SETTINGS, origin=origin, folder=learned)
        drawing = Generation(4, 2.0, [0.0, 1.0], [2.0], 0.75, "", 0)
        generation.generate(pipe, SHIFTS, CLASSES, **grid, settings=drawing, origin=origin, sliders=learned, folder=drawn)
        settings = Evaluation({name: str(tmp_path / name) for name in ("vit", "deit")}, batch_size=4, preprocessing="model")
        asked = {"labels": CLASSES, "settings": settings, "device": "cpu"}
        evaluation.evaluate(drawn, SHIFTS, CLASSES, **grid, **asked, folder=folder / "answers")
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    return run


@pytest.mark.slow
def test_two_workers_make_the_bytes_of_this_process(chain, tmp_path, two_workers):
    spread = chain(tmp_path / "spread")
    works = [json.loads(line)["work"] for line in (tmp_path / "work" / sites.COSTS).read_text().splitlines()]
    counts = {work: works.count(work) for work in works}
    assert counts == {"sliders": 4, "starts": 2, "unshifted": 2, "images": 4, "answers": 2}  # a piece for each classifier: two workers
    logs = "".join(path.read_text() for path in (tmp_path / "work" / "logs").iterdir())
    assert f"process {os.getpid()}" not in logs and logs.count("process ") == len(works)
    sites.use(sites.Site())
    assert spread == chain(tmp_path / "here") and len(spread) == 2 * (4 + 3 + 2)  # each unit has its record
