"""The arithmetic of every process: which instructions its libraries may use, and one thread each.

Libraries choose their loops by the processor, and sums by the number of threads; either moves the last digits. Importing this
module makes one choice for all, which must come before anything numerical is imported: `cns` does so for itself and every process that
it starts, pytest for the tests (pyproject.toml). A variable that is set already stays, so that `cns matrix` and users can choose otherwise.
"""

import os
from pathlib import Path

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


def apply() -> None:
    """Sets every variable that is not set: the level avx2, one thread."""
    for name, value in (LEVELS["avx2"] | threads(1)).items():
        os.environ.setdefault(name, value)


def available(flags: set[str]) -> list[str]:
    """The levels that a processor with these flags can run: a library told to use what is not there ends its process."""
    return [level for level in LEVELS if FLAGS.get(level, set()) <= flags]


def flags() -> set[str]:
    """What this processor says that it can do; nothing where there is no /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":", 1)[1].split()}


apply()
