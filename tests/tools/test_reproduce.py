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


def parquet(**columns) -> bytes:
    return pd.DataFrame(columns).to_parquet(index=False)


def picture(grey: float, *, rounded: int = 0) -> bytes:
    pixels = np.full((8, 8, 3), grey, np.uint8)
    pixels[0, 0, 0] += rounded
    return parquet(image=[tables.encode(pixels)])


JSON = json.dumps(METRIC).encode()
KEPT = [parquet(keep=[*[False] * turned, *[True] * (200 - turned)]) for turned in (0, 1, 20)]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("a.csv", CSV, CSV, "identical"),
        ("a.csv", CSV, CSV.replace(b"0.50", b"0.60"), "differs in estimate"),
        ("a.csv", CSV, CSV + b"heavy fog,0.1\n", "differs: (1, 2) rows and columns are committed, (2, 2) were made"),
        ("m.json", JSON, JSON + b"\n", "within tolerance"),
        ("a.parquet", KEPT[0], KEPT[1], "within tolerance"),
        ("a.parquet", KEPT[0], KEPT[2], "differs in keep"),
        ("a.parquet", picture(128), picture(128, rounded=1), "within tolerance"),
        ("a.parquet", picture(128), picture(64), "differs in image"),
    ],
)
def test_results_may_differ_in_last_digits_a_pixel_or_one_label_of_a_hundred(name, old, new, said):
    assert reproduce.verdict(name, old, new) == said


def test_a_row_is_compared_with_its_own_wherever_it_stands():
    rows = ["a,0.5,0.100001", "a,1.0,0.100002", "b,0.5,0.3", "b,1.0,0.2"]
    other = ["b,1.0,0.2", "a,1.0,0.100001", "b,0.5,0.300001", "a,0.5,0.100002"]
    old, new = ("\n".join(["model,scale,estimate", *lines, ""]).encode() for lines in (rows, other))
    assert reproduce.verdict("a.csv", old, new) == "within tolerance"
    swapped = new.replace(b"b,1.0,0.2", b"b,1.0,0.300001").replace(b"b,0.5,0.300001", b"b,0.5,0.2")
    assert reproduce.verdict("a.csv", old, swapped).startswith("differs")


@pytest.mark.parametrize(("value", "kept"), [(0.501, 0.5), (0.7, 0.7)], ids=["a rounded digit", "another result"])
def test_what_follows_rests_on_the_stored_table_if_the_new_one_agrees_and_on_the_new_one_if_not(tmp_path, value, kept):
    name = "artifacts/filtering/scores.parquet"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(parquet(score=[value]))
    record = tmp_path / f"{name}.digest"
    record.write_text("new")
    stored = {name: parquet(score=[0.5]), f"{name}.digest": b"old", "artifacts/world/catalog.parquet": b"of another step"}
    assert reproduce.settled(tmp_path, "filtering", stored) == {name: parquet(score=[value])}
    assert pd.read_parquet(tmp_path / name)["score"].tolist() == [kept]
    assert record.read_text() == ("old" if kept == 0.5 else "new")


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
