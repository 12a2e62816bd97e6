"""Work over SLURM: a node of it on this machine (tests/tiny/slurm_node.sh), Parsl's SlurmProvider, the bytes of a run without.

A block of the smoke chain is cancelled in the middle of a step; the walltime of another ends too early.
"""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_work
from ruamel.yaml import YAML
from tiny_work import contents, until

from cnslib.core import paths, workers
from cnslib.core.settings import read

SCRIPT = paths.ROOT / "tests" / "tiny" / "slurm_node.sh"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
SMOKE = paths.Layout("build/smoke")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"SLURM is not installed: no {', '.join(MISSING)} (Debian: slurm-wlm, munge)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd wants root"),
    pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="run `make slurm`: `make test` makes the smoke chain anew meanwhile"),
    pytest.mark.skipif(not (SMOKE.root / "metrics" / "evaluation.json").exists(), reason="run `make chain profile=smoke` first"),
]


def yaml(content: dict) -> str:
    stream = io.StringIO()
    YAML().dump(content, stream)  # in the order of its keys
    return stream.getvalue()


@pytest.fixture
def node(tmp_path, worker_id):
    pytest.importorskip("parsl")
    folder = tmp_path / "slurm"
    port = 16817 + 2 * int(worker_id.strip("gw") if worker_id.startswith("gw") else 0)  # tests side by side have nodes of their own
    subprocess.run(["bash", SCRIPT, "start", folder], check=True, env=os.environ | {"SLURM_PORT": str(port)})
    yield os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    subprocess.run(["bash", SCRIPT, "stop", folder], check=True)


@pytest.fixture
def start(node):
    programs = []

    def started(command: list[str], **more: str) -> subprocess.Popen:
        programs.append(subprocess.Popen(command, env=node | more, cwd=paths.ROOT))
        return programs[-1]

    yield started
    for program in programs:
        program.kill()
        program.wait()


def cluster(folder: Path, walltime: str) -> Path:
    found = read.read(paths.ROOT / "clusters" / "slurm.yaml")["cluster"]
    without = {key: value for key, value in found["options"].items() if key != "gpus_per_node"}
    found |= {"options": without | {"walltime": walltime, "max_blocks": 1}, "workers": 2, "card_each": False, "address": "127.0.0.1"}
    (folder / "slurm.yaml").write_text(yaml({"cluster": found}))
    return folder / "slurm.yaml"


def chain(folder: Path, *steps: str) -> list[str]:
    for step in ("world", "inversion"):
        shutil.copytree(SMOKE.artifacts(step), paths.Layout(str(folder / "run")).artifacts(step), dirs_exist_ok=True)
    changes = read.read(paths.ROOT / "smoke.yaml")
    changes["base"] |= {"out": str(folder / "run"), "workers": str(cluster(folder, "00:30:00"))}
    (folder / "overlay.yaml").write_text(yaml(changes))
    return [sys.executable, "-m", "cnslib.tools.cli", "run", "--overlay", str(folder / "overlay.yaml"), *steps]


def jobs(environment: dict[str, str]) -> dict[str, str]:
    asked = ["squeue", "--noheader", "--states=all", "--sort=i", "--format=%i %T"]
    found = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in found.splitlines())


def ended(environment: dict[str, str]) -> dict[str, str]:
    until(lambda: not {"RUNNING", "PENDING", "COMPLETING"} & set(jobs(environment).values()), seconds=30)
    return jobs(environment)


def trained(layout: paths.Layout) -> dict[Path, int]:
    found = layout.artifacts("sliders").glob("*/*.safetensors")
    return {path: path.stat().st_mtime_ns for path in found if path.with_name(f"{path.name}.digest").exists()}


def test_a_block_that_is_cancelled_in_the_middle_of_a_step_costs_no_more_than_the_units_it_was_at(node, start, tmp_path):
    run = paths.Layout(str(tmp_path / "run"))
    program = start(chain(tmp_path, "sliders"))
    before = until(lambda: trained(run))
    subprocess.run(["scancel", "1"], env=node, check=True)
    assert program.wait(900) == 0
    assert before.items() <= trained(run).items() and len(before) < len(trained(run))  # what was done is not done again
    logs = [path.read_text() for path in (run.root / "workers" / "sliders" / "logs").iterdir()]
    assert sum(log.count(" process ") - log.count("\ndone") for log in logs) > 0  # and something was lost
    assert contents(run.artifacts("sliders")) == contents(SMOKE.artifacts("sliders"))
    assert ended(node) == {"1": "CANCELLED", "2": "CANCELLED"}


def test_work_that_the_walltime_of_a_block_cuts_off_ends_complete_in_the_next(node, start, tmp_path):
    folder, expected = tmp_path / "spread", tmp_path / "here"
    (folder / "notes").mkdir(parents=True)
    call = f"tiny_work.drive(Path({str(folder)!r}), {str(cluster(tmp_path, '00:01:00'))!r}, tiny_work.lasting)"
    places = os.pathsep.join([str(Path(tiny_work.__file__).parent), str(paths.ROOT)])
    program = start([sys.executable, "-c", f"from pathlib import Path; import tiny_work; {call}"], PYTHONPATH=places)
    until(lambda: jobs(node).get("1") == "TIMEOUT")
    (folder / "go").touch()
    assert program.wait(900) == 0 and not (folder / "error").exists()
    tries = {number: len(list((folder / "notes").glob(f"{number}.*"))) for number in range(tiny_work.COUNT)}
    assert tries == dict.fromkeys(range(tiny_work.COUNT), 1) | {tiny_work.WAITING: 2, tiny_work.DEADLY: 2}
    own = tiny_work.shelf(expected)
    workers.each(tiny_work.square, [(expected, number, own[number]) for number in own.waiting()], device="cpu")
    assert contents(folder / "made") == contents(expected / "made")
    assert ended(node) == {"1": "TIMEOUT", "2": "CANCELLED"}
