"""The arithmetic of every process: which instructions its libraries may use, and one thread each.

Libraries choose their loops by the processor, and sums by the number of threads; either moves the last digits. Importing this
module makes one choice for all, which must come before anything numerical is imported: `cns` does so for itself and every process that
it starts, pytest for the tests (pyproject.toml). A variable that is set already stays, so that users can choose otherwise.
"""

import os

# ATen and oneDNN cap at AVX2, which every x86-64 processor since 2013 (Intel) or 2015 (AMD) has. MKL goes by the vendor too, and only
# COMPATIBLE is the same on Intel's and AMD's: AVX2 is refused by the latter. OpenBLAS (NumPy, SciPy) takes its kernels by a core's name.
PINS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # a name that a processor lacks is passed over in silence
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "OMP_WAIT_POLICY": "passive",  # threads of processes that share the cores sleep while they wait
}


def apply() -> None:
    """Sets every variable that is not set."""
    for name, value in PINS.items():
        os.environ.setdefault(name, value)


apply()
