import os
from pathlib import Path

import pytest
import tiny_work
import torch

from cnslib.core import clusters, workers


def described(number):
    return number, torch.get_num_threads(), os.getpid()


def gradient(seed):
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
    before = torch.get_num_threads()
    found = workers.each(described, [(number,) for number in range(6)], device="cpu")
    assert [row[:2] for row in found] == [(number, 1) for number in range(6)] and torch.get_num_threads() == before
    assert (os.getpid() in {row[2] for row in found}) == (min(cores, len(os.sched_getaffinity(0))) == 1)
    assert workers.each(described, [], device="cpu") == []


def test_the_number_of_cores_does_not_touch_the_bits(cores):
    for seed, found in enumerate(workers.each(gradient, [(0,), (1,), (2,)], device="cpu")):
        assert torch.equal(found, workers.attempt(gradient, (seed,), threaded=False))


def test_a_piece_is_called_after_the_units_in_it_and_one_that_makes_none_of_them_fails(tmp_path):
    first, second = (tiny_work.shelf(tmp_path)[number] for number in (0, 1))
    assert clusters.units_of(("bag", first, [second], {"unit": first}, tmp_path)) == [first, second]
    assert clusters.name_of(("snow", first, 3), 7) == "made/0" and clusters.name_of(("snow", 3, None), 7) == "7 snow 3"
    with pytest.raises(RuntimeError, match=r"made/0\.txt was not made"):
        workers.each(lambda unit: None, [(first,)], device="cpu")


def pieces(folder: Path) -> list[tuple]:
    shelf = tiny_work.shelf(folder)
    return [(folder, number, shelf[number]) for number in shelf.waiting()]


def test_a_unit_that_fails_leaves_the_others_alone(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "killed").touch()
    (tmp_path / "go").touch()
    with pytest.raises(ValueError, match="4 is poison"):
        workers.each(tiny_work.eventful, pieces(tmp_path), device="meta")
    assert tiny_work.shelf(tmp_path).waiting() == [tiny_work.POISON]
