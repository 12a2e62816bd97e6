"""`dvc repro` with nothing to do, and the check of one stage by itself. `python benchmarks/repro.py`."""

import os
import subprocess
import sys
import time

import numpy as np

from cnslib import paths

ROUNDS, SECONDS = 5, 5  # and what it may take


def main() -> int:
    """The median of some rounds; 1 where a stage would run, or beyond the limit."""
    state = subprocess.run(["dvc", "status", "--quiet"], cwd=paths.ROOT)
    if state.returncode:
        print("a stage is out of date: run `dvc repro` first, then there is nothing to do")
        return 1
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(["dvc", "repro", "--quiet"], cwd=paths.ROOT, check=True)
        taken.append(time.perf_counter() - start)
    print(f"dvc repro with nothing to do: {ROUNDS} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"wall s: median {np.median(taken):.1f}, from {min(taken):.1f} to {max(taken):.1f}; {SECONDS} allowed")
    return int(np.median(taken) > SECONDS)


if __name__ == "__main__":
    sys.exit(main())
