"""`dvc repro` with nothing to do, and of the analyses alone. `python benchmarks/repro.py`."""

import os
import subprocess
import sys
import time

import numpy as np

from cnslib.core import paths

ROUNDS, SECONDS = 5, 5  # with nothing to do, and what it may take
ANALYSES, MINUTES = ("accuracy", "ranking", "axes", "failure", "line"), 3  # notebooks on stored answers, and what they may take


def taken(*arguments: str) -> float:
    """Wall seconds of `dvc repro` with some arguments."""
    start = time.perf_counter()
    subprocess.run(["dvc", "repro", "--quiet", *arguments], cwd=paths.ROOT, check=True)
    return time.perf_counter() - start


def main() -> int:
    """The median of some rounds with nothing to do, and one run of the analyses; 1 where a stage is out of date or a limit passed."""
    state = subprocess.run(["dvc", "status", "--quiet"], cwd=paths.ROOT)
    if state.returncode:
        print("a stage is out of date: run `dvc repro` first, then there is nothing to do")
        return 1
    idle = [taken() for _ in range(ROUNDS)]
    print(f"dvc repro with nothing to do: {ROUNDS} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"wall s: median {np.median(idle):.1f}, from {min(idle):.1f} to {max(idle):.1f}; {SECONDS} allowed")
    busy = taken("--force", "--single-item", *ANALYSES) / 60
    print(f"dvc repro of {', '.join(ANALYSES)} anew: {busy:.1f} minutes; {MINUTES} allowed")
    return int(np.median(idle) > SECONDS or busy > MINUTES)


if __name__ == "__main__":
    sys.exit(main())
