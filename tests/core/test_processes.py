"""What a process knows of itself. That it ends with its parent is shown in test_workers.py and test_clusters.py."""

import pytest

from cnslib.core import processes


@pytest.mark.skipif(not processes.RESET.exists(), reason="the system does not reset the peak of a process")
def test_the_peak_is_that_of_the_work_since_it_was_forgotten():
    size = 200 * 2**20
    held = bytearray(size)
    before = processes.peak()
    del held
    processes.forget_peak()
    without = processes.peak()
    again = bytearray(size)
    assert before - without > 0.9 * size and processes.peak() - without > 0.9 * len(again)


def test_the_processor_has_a_name():
    assert processes.processor().strip()
