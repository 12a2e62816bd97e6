"""The smoke chain over SLURM: a node of it on this machine (tests/tiny/slurm_node.sh), Parsl's SlurmProvider, the bytes of `make smoke`."""

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from cnslib.core import paths, sites
from cnslib.core.settings import read

SCRIPT = paths.ROOT / "tests" / "tiny" / "slurm_node.sh"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
SMOKE = paths.Layout("build/smoke")
STEPS = ("sliders", "generation", "evaluation")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"SLURM is not installed: no {', '.join(MISSING)} (Debian: slurm-wlm, munge)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd wants root"),
    pytest.mark.skipif(not (SMOKE.root / "metrics" / "evaluation.json").exists(), reason="run `make smoke` first"),
]


def yaml(content: dict) -> str:
    stream = io.StringIO()
    YAML().dump(content, stream)  # in the order of its keys
    return stream.getvalue()


@pytest.fixture
def node(tmp_path):
    """The environment of a process that knows the node."""
    pytest.importorskip("parsl")
    folder = tmp_path / "slurm"
    subprocess.run(["bash", SCRIPT, "start", folder], check=True)
    yield os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    subprocess.run(["bash", SCRIPT, "stop", folder], check=True)


def overlay(folder: Path) -> Path:
    """The values of the smoke run in another folder, on two workers that SLURM grants: clusters/slurm.yaml for a node without a card."""
    cluster = read.read(paths.ROOT / "clusters" / "slurm.yaml")["cluster"]
    without = {key: value for key, value in cluster["options"].items() if key != "gpus_per_node"}
    cluster |= {"options": without | {"walltime": "00:30:00", "max_blocks": 1}, "workers": 2, "card_each": False, "address": "127.0.0.1"}
    (folder / "slurm.yaml").write_text(yaml({"cluster": cluster}))
    changes = read.read(paths.ROOT / "smoke.yaml")
    changes["base"] |= {"out": str(folder / "run"), "workers": str(folder / "slurm.yaml")}
    (folder / "overlay.yaml").write_text(yaml(changes))
    return folder / "overlay.yaml"


def files(layout: paths.Layout, step: str) -> dict[str, bytes]:
    folder = layout.artifacts(step)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def nodes(environment: dict[str, str]) -> str:
    """What is running or waits on the cluster, after at most half a minute in which cancelled jobs may end."""
    asked = ["squeue", "--noheader", "--states=RUNNING,PENDING"]
    for _ in range(30):
        if not (found := subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout):
            break
        time.sleep(1)
    return found


def test_the_smoke_chain_over_slurm_makes_the_bytes_of_the_one_without(node, tmp_path):
    run = paths.Layout(str(tmp_path / "run"))
    for step in ("world", "inversion"):
        shutil.copytree(SMOKE.artifacts(step), run.artifacts(step), dirs_exist_ok=True)
    command = [sys.executable, "-m", "cnslib.tools.cli", "run", "--overlay", str(overlay(tmp_path)), *STEPS]
    subprocess.run(command, check=True, env=node, cwd=paths.ROOT)
    for step in STEPS:
        assert files(run, step) == files(SMOKE, step)
        assert (run.workers / step / sites.COSTS).exists() and any((run.workers / step / "logs").iterdir())
    assert nodes(node) == ""  # none is kept after its step
    submitted = [path for step in STEPS for path in (run.workers / step / "parsl").rglob("submit_scripts/*")]
    assert any("#SBATCH --partition=gpu" in path.read_text() for path in submitted)
