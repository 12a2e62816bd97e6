import subprocess
import sys
import time

import pytest
from tiny_work import contents

STEP = """
import sys, time
from pathlib import Path
from cnslib.core import units

recipe = units.Recipe("tests", 1)
files = {key: (f"{key}.txt", recipe.stamp(key)) for key in range(12)}
shelf = units.Shelf(Path(sys.argv[1]) / "artifacts" / "step", files, "*.txt")
for key in shelf.waiting():
    with units.atomic(shelf[key].path) as partial, open(partial, "w") as stream:
        for line in range(20):
            print(key, line, file=stream, flush=True)
            time.sleep(0.005)
    shelf[key].finish()
"""


def step(folder) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", STEP, str(folder)])


@pytest.mark.slow
def test_a_step_that_is_killed_three_times_leaves_the_bytes_of_an_undisturbed_one(tmp_path):
    begin = time.monotonic()
    assert step(tmp_path / "undisturbed").wait() == 0
    took, met = time.monotonic() - begin, 0
    for share in (0.9, 0.7, 0.5):
        process = step(tmp_path / "killed")
        time.sleep(share * took)
        met += process.poll() is None
        process.kill()
        process.wait()
    assert step(tmp_path / "killed").wait() == 0 and met >= 1
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")
