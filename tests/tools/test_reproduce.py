"""The comparison behind `make repro`."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from cnslib.core import paths, tables
from cnslib.tools import reproduce

CSV = b"shift,estimate\nheavy snow,0.50\n"
METRIC = {"accuracy": {"n": 10, "estimate": 0.5, "low": 0.4, "high": 0.6}}


def test_equal_bytes_are_identical_and_last_digits_are_within_tolerance():
    assert reproduce.verdict("a.csv", CSV, CSV) == "identical"
    assert reproduce.verdict("a.csv", CSV, CSV.replace(b"0.50", b"0.501")) == "within tolerance"


def test_other_numbers_rows_or_labels_differ():
    for other in (CSV.replace(b"0.50", b"0.60"), CSV + b"heavy fog,0.1\n", CSV.replace(b"snow", b"rain")):
        assert reproduce.verdict("a.csv", CSV, other).startswith("differs")


def test_a_row_is_compared_with_its_own_wherever_it_stands():
    rows = ["a,0.5,0.100001", "a,1.0,0.100002", "b,0.5,0.3", "b,1.0,0.2"]
    other = ["b,1.0,0.2", "a,1.0,0.100001", "b,0.5,0.300001", "a,0.5,0.100002"]
    old, new = ("\n".join(["model,scale,estimate", *lines, ""]).encode() for lines in (rows, other))
    assert reproduce.verdict("a.csv", old, new) == "within tolerance"
    swapped = new.replace(b"b,1.0,0.2", b"b,1.0,0.300001").replace(b"b,0.5,0.300001", b"b,0.5,0.2")
    assert reproduce.verdict("a.csv", old, swapped).startswith("differs")


def test_metrics_are_compared_number_by_number():
    old = json.dumps(METRIC).encode()
    new = json.dumps({"accuracy": METRIC["accuracy"] | {"estimate": 0.9}}).encode()
    assert reproduce.verdict("m.json", old, old + b"\n") == "within tolerance"
    assert reproduce.verdict("m.json", old, new).startswith("differs")


def parquet(**columns) -> bytes:
    return pd.DataFrame(columns).to_parquet(index=False)


def test_one_verdict_in_a_hundred_may_turn_and_no_more():
    keep = np.ones(200, dtype=bool)
    one, many = keep.copy(), keep.copy()
    one[:1], many[:20] = False, False
    assert reproduce.verdict("a.parquet", parquet(keep=keep), parquet(keep=one)) == "within tolerance"
    assert reproduce.verdict("a.parquet", parquet(keep=keep), parquet(keep=many)) == "differs in keep"


def test_pictures_may_differ_by_a_rounded_pixel_and_not_by_content():
    grey = np.full((8, 8, 3), 128, dtype=np.uint8)
    rounded = grey.copy()
    rounded[0, 0, 0] += 1
    old, near, far = (parquet(image=[tables.encode(picture)]) for picture in (grey, rounded, grey // 2))
    assert reproduce.verdict("a.parquet", old, near) == "within tolerance"
    assert reproduce.verdict("a.parquet", old, far) == "differs in image"


@pytest.mark.parametrize(("value", "kept"), [(0.501, 0.5), (0.7, 0.7)], ids=["a rounded digit", "another result"])
def test_what_follows_rests_on_the_stored_table_if_the_new_one_agrees_and_on_the_new_one_if_not(tmp_path, value, kept):
    """Else a rounded pixel on an older processor would outdate the tokens, and with them every slider and picture."""
    name = "artifacts/filtering/scores.parquet"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(parquet(score=[value]))
    record = tmp_path / f"{name}.digest"
    record.write_text("new")
    stored = {name: parquet(score=[0.5]), f"{name}.digest": b"old", "artifacts/world/catalog.parquet": b"of another step"}
    assert reproduce.settled(tmp_path, "filtering", stored) == {name: parquet(score=[value])}
    assert pd.read_parquet(tmp_path / name)["score"].tolist() == [kept]
    assert record.read_text() == ("old" if kept == 0.5 else "new")


def test_missing_and_new_results_are_reported():
    verdicts = reproduce.compare({"figures/a.csv": CSV, "figures/b.csv": CSV}, {"figures/a.csv": CSV, "metrics/c.json": b"{}"})
    assert verdicts == {"figures/a.csv": "identical", "figures/b.csv": "was not made", "metrics/c.json": "is not committed"}


@pytest.mark.slow
def test_committed_results_are_those_of_the_commit_whatever_lies_in_the_workspace():
    found = reproduce.committed(paths.ROOT)
    lines = subprocess.run(["git", "show", "HEAD:metrics/accuracy.json"], cwd=paths.ROOT, capture_output=True, check=True).stdout
    assert found["metrics/accuracy.json"] == lines and sum(name.startswith("figures/") for name in found) > 50
    assert {name.split("/")[1] for name in found if name.endswith(".parquet")} == {*reproduce.ANALYSES}


def test_every_stage_is_launched_without_its_old_results_and_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as the runner does
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    figures = {"figures": {"cache": False}}
    stages = {
        "draw": {"cmd": "true", "outs": [{"images": {"persist": True}}]},
        "show": {"cmd": "true", "deps": ["images"], "outs": [figures]},
    }
    YAML().dump({"stages": stages}, tmp_path / "dvc.yaml")
    for name in ("images", "figures"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("1")
    seen = {}

    def launch(name):
        folder = tmp_path / {"draw": "images", "show": "figures"}[name]
        seen[name] = folder.exists()
        folder.mkdir(exist_ok=True)
        (folder / "new").write_text("2")

    assert reproduce.execute(tmp_path, launch, {}) == {}
    assert list(seen.items()) == [("draw", True), ("show", False)]
    assert sorted(path.name for path in tmp_path.glob("*/*") if path.parent.name in ("images", "figures")) == ["new", "new", "old"]
    assert set(YAML(typ="safe").load((tmp_path / "dvc.lock").read_text())["stages"]) == {"draw", "show"}
    status = subprocess.run([sys.executable, "-m", "dvc", "status"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "up to date" in status.stdout
