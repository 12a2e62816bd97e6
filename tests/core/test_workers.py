"""Work side by side: results in order, one thread each, the same bits on any number of cores."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from cnslib.core import paths, pieces, sites, workers
from cnslib.core.settings import read


def described(number):
    return number, torch.get_num_threads(), os.getpid()


def test_a_piece_is_a_group_here_and_a_single_thing_on_a_cluster():
    """Else a block of 48 hours would have to hold six classifiers of 23 hours each."""
    sites.use(sites.Site(None, "", None))
    assert workers.share(8) == 8
    sites.use(sites.Site(None, "", read.load(paths.ROOT / "clusters" / "slurm.yaml")["cluster"]))
    assert workers.share(8) == 1


def reciprocal(number):
    return 1 / number


def gradient(seed):
    """The gradient of a convolution, whose sums depend on how many threads share them."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn((8, 16, 32, 32), generator=generator)
    weights = torch.randn((32, 16, 3, 3), generator=generator, requires_grad=True)
    torch.nn.functional.conv2d(images, weights).square().sum().backward()
    return weights.grad


@pytest.fixture(params=["1", "2"], ids="{} core".format)
def cores(request, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", request.param)
    return int(request.param)


def test_results_come_in_order_from_processes_of_one_thread(cores):
    found = workers.each(described, [(number,) for number in range(6)], device="cpu")
    assert [row[:2] for row in found] == [(number, 1) for number in range(6)]
    assert (os.getpid() in {row[2] for row in found}) == (min(cores, len(os.sched_getaffinity(0))) == 1)


def test_another_device_is_not_shared_between_processes():
    assert {row[2] for row in workers.each(described, [(1,), (2,)], device="meta")} == {os.getpid()}


def test_the_callers_threads_are_left_as_they_were(cores):
    before = torch.get_num_threads()
    workers.each(described, [(1,), (2,)], device="cpu")
    assert torch.get_num_threads() == before


def test_the_number_of_cores_does_not_touch_the_bits(cores):
    assert all(torch.equal(a, gradient_alone(seed)) for seed, a in enumerate(workers.each(gradient, [(0,), (1,), (2,)], device="cpu")))


def gradient_alone(seed):
    return pieces.attempt(gradient, (seed,), device="cpu", threaded=False)[0]


def test_the_first_error_ends_the_work(cores):
    with pytest.raises(ZeroDivisionError):
        workers.each(reciprocal, [(1,), (0,), (2,)], device="cpu")


def test_no_pieces_give_no_results(cores):
    assert workers.each(described, [], device="cpu") == []


def lasting(folder):
    """Notes its process, then works for longer than any test waits."""
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def alive(process):
    """Whether a process runs: it has a command line, which one that has ended and waits to be collected lacks."""
    try:
        return bool((Path("/proc") / process / "cmdline").read_bytes())
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
def test_the_processes_end_when_their_parent_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    call = f"workers.each(test_workers.lasting, [(Path({str(tmp_path)!r}),)] * 2, device='cpu')"
    script = f"from pathlib import Path; from cnslib.core import workers; import test_workers; {call}"
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent)
    until(lambda: any(tmp_path.iterdir()))
    parent.kill()
    parent.wait()
    until(lambda: not any(alive(path.name) for path in tmp_path.iterdir()))
    assert not any(alive(path.name) for path in tmp_path.iterdir())


def until(condition, seconds=60):
    """Waits for a condition; the bound only keeps a broken test from hanging."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)
