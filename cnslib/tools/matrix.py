"""`cns matrix`: reproduces and tests under several instruction sets and numbers of threads, and prints one table.

The variables of `pins` hold a processor down to a level that it has; a level that it lacks is left out, and named.
"""

import argparse
import itertools
import os
import subprocess
import sys

import pandas as pd

from cnslib.core import paths, pins

THREADS = (2, 4, 1)
TARGETS = ("repro", "test")


def cells(levels: list[str], *, everything: bool) -> list[tuple[str, int]]:
    """Pairs of a level and a number of threads, the pinned ones last: all, or so many that each level and number comes once."""
    if everything:
        return list(itertools.product(sorted(levels, key="avx2".__eq__), THREADS))
    others = [level for level in levels if level != "avx2"]
    return [*zip(itertools.cycle(others), THREADS[:2], strict=False), *(("avx2", 1) for level in levels if level == "avx2")]


def attempt(command: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """The exit status and the last line of a command; of one that fails, what it says failed before that."""
    given = os.environ | variables
    done = subprocess.run(command, cwd=paths.ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.strip().splitlines() or [""]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR", "error:"))] if done.returncode else []
    return done.returncode, "; ".join([*failed, lines[-1]])


def main(arguments: list[str]) -> int:
    """Command line: 0 if every command succeeds in every cell, else 1."""
    parser = argparse.ArgumentParser(prog="cns matrix", description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every level with every number of threads, in hours")
    options = parser.parse_args(arguments)
    levels = pins.available(pins.flags())
    rows = []
    for (level, threads), name in itertools.product(cells(levels, everything=options.all), TARGETS):
        status, last = attempt(["make", "--no-print-directory", name], pins.LEVELS[level] | pins.threads(threads))
        rows.append({"level": level, "threads": threads, "command": f"make {name}", "exit": status, "last line": last})
        print(f"{level}, {threads} threads, make {name}: exit {status}, {last}", flush=True)
    print(pd.DataFrame(rows).to_string(index=False, justify="left", max_colwidth=None))
    if lacking := [level for level in pins.LEVELS if level not in levels]:
        print(f"left out, since this processor lacks them: {', '.join(lacking)}")
    return int(any(row["exit"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
