"""`cns matrix`: reproduces and tests under several instruction sets and numbers of threads, and prints one table.

The variables of `pins` hold a processor down to a level that it has; a level that it lacks is left out, and named.
"""

import argparse
import itertools
import os
import subprocess
import sys

import pandas as pd

from cnslib.core import paths

THREADS = (2, 4, 1)
TARGETS = ("repro", "test")

FAST = "X86_V4 AVX512_ICL AVX512_SPR"  # NumPy's loops of AVX-512; a name that a processor lacks is passed over in silence
# ATen and oneDNN cap at AVX2, which every x86-64 processor since 2013 (Intel) or 2015 (AMD) has. MKL goes by the vendor too, and only
# COMPATIBLE is the same on Intel's and AMD's: AVX2 is refused by the latter. OpenBLAS (NumPy, SciPy) takes its kernels by a core's name.
LEVELS = {
    "default": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {FAST}",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": FAST,
    },
    "avx512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_CBWR": "AVX512",
        "OPENBLAS_CORETYPE": "SkylakeX",
        "NPY_DISABLE_CPU_FEATURES": "",
    },
}
FLAGS = {"avx2": {"avx2", "fma"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}}  # as /proc/cpuinfo names them


def threads(count: int) -> dict[str, str]:
    """The variables that give every library `count` threads; those of processes that share the cores sleep while they wait."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(count)) | {"OMP_WAIT_POLICY": "passive"}


def available(flags: set[str]) -> list[str]:
    """The levels that a processor with these flags can run: a library told to use what is not there ends its process."""
    return [level for level in LEVELS if FLAGS.get(level, set()) <= flags]


def flags() -> set[str]:
    """What this processor says that it can do; nothing where there is no /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":", 1)[1].split()}


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
    levels = available(flags())
    rows = []
    for (level, threads), name in itertools.product(cells(levels, everything=options.all), TARGETS):
        status, last = attempt(["make", "--no-print-directory", name], LEVELS[level] | threads(threads))
        rows.append({"level": level, "threads": threads, "command": f"make {name}", "exit": status, "last line": last})
        print(f"{level}, {threads} threads, make {name}: exit {status}, {last}", flush=True)
    print(pd.DataFrame(rows).to_string(index=False, justify="left", max_colwidth=None))
    if lacking := [level for level in LEVELS if level not in levels]:
        print(f"left out, since this processor lacks them: {', '.join(lacking)}")
    return int(any(row["exit"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
