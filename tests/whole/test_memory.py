"""A shift of the paper's scale has gigabytes of pictures: who goes through all of them holds a few batches at a time."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow
import pytest
from tiny_alignment import LABELS

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.data import official
from cnslib.method import evaluation

SEEDS, SHIFT = 2000, "heavy snow"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables of one class, thousands of pictures of noise each: 10 and 20 MB."""
    where, noise = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for shift, scales in ((UNSHIFTED, [0.0]), (SHIFT, [1.0, 2.0])):
        rows = [(shift, LABELS[0], seed, scale) for seed in range(1, SEEDS + 1) for scale in scales]
        pictures = [tables.encode(noise.integers(0, 256, (40, 40, 3), dtype=np.uint8)) for _ in rows]
        table = pd.DataFrame(rows, columns=tables.KEY).assign(image=pictures)
        tables.write(table, where / f"{shift.replace(' ', '_')}.parquet", tables.images)
    return where


def held(work):
    """The most bytes that Python, NumPy and Arrow held at once."""
    before, pool = pyarrow.default_memory_pool(), pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)


def asked(folder):
    keys = [(SHIFT, LABELS[0], seed, scale) for seed in range(1, SEEDS + 1) for scale in (1.0, 2.0)]
    for _, pictures in evaluation.shard_batches({folder / "heavy_snow.parquet": keys}, size=32):
        assert pictures[0]().shape == (40, 40, 3)


def exported(folder):
    kept = pd.DataFrame({"shift": SHIFT, "class": LABELS[0], "seed": range(1, SEEDS + 1)})
    names = [name for name, _ in official.exported(folder, kept, LABELS, {})]
    assert names[:3] == [f"heavy_snow/000_{LABELS[0]}/seed_0001_scale_{scale}.png" for scale in ("0000", "1000", "2000")]
    assert len(names) == 3 * SEEDS + 1


@pytest.mark.parametrize(("work", "pattern"), [(asked, "heavy_snow.parquet"), (exported, "*.parquet")])
def test_whoever_goes_through_tables_holds_less_than_they_have(folder, work, pattern):
    size = sum(path.stat().st_size for path in folder.glob(pattern))
    assert held(lambda: work(folder)) < size < held(lambda: [tables.load(path).to_pandas() for path in folder.glob(pattern)]) / 2
