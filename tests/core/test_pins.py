import os

import pytest
import torch
from numpy._core._multiarray_umath import __cpu_features__ as FEATURES

from cnslib.core import pins

PLAIN = os.environ.get("ATEN_CPU_CAPABILITY") == "avx2"


@pytest.mark.skipif(not PLAIN, reason="this run chooses otherwise")
def test_no_library_of_this_process_goes_beyond_avx2():
    assert torch.backends.cpu.get_cpu_capability() == "AVX2"
    assert not any(FEATURES[name] for name in ("X86_V4", "AVX512_ICL", "AVX512_SPR"))


def test_a_variable_that_is_set_is_left_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    pins.apply()
    assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("4", "1")
