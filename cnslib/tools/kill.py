"""Kills a chain again and again and compares what it leaves with an undisturbed run: `cns kill --overlay smoke.yaml STEP ...`.

Every kill is a SIGKILL of the step and all that it started, at a moment within the time that the step took undisturbed; the step is
then run once more. Kills are dealt to the steps in turn. Both runs write below build/kill; equal are artifacts, metrics and figures.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import psutil
from ruamel.yaml import YAML
from tqdm import tqdm  # of the terminal: `auto` takes a program that has loaded ipykernel for a notebook

from cnslib.core import paths, units
from cnslib.core.names import demand
from cnslib.core.settings import read

COMPARED = ("artifacts", "metrics", "figures")
SPAN = (0.05, 0.95)  # of a step's undisturbed time, within which it is killed


def timed(command: list[str]) -> float:
    """Runs a command to its end; returns the seconds. RuntimeError shows one that fails."""
    start = time.monotonic()
    code = psutil.Popen(command, cwd=paths.ROOT).wait()
    if code != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {code}; accepted: 0, as of a step that resumes")
    return time.monotonic() - start


def killed(command: list[str], after: float) -> bool:
    """Starts a command and kills it with all of its descendants after so many seconds; whether it was still running then."""
    process = psutil.Popen(command, cwd=paths.ROOT)
    try:
        process.wait(after)
        return False
    except psutil.TimeoutExpired:
        family = [*process.children(recursive=True), process]
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        process.wait()
        while any(alive(member) for member in family):
            time.sleep(0.01)
        return True


def alive(process: psutil.Process) -> bool:
    """Whether a process still runs; one that has ended may stay in the list until its new parent asks for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def contents(folder: Path) -> dict[str, str]:
    """The digest of every file that is compared, by its path."""
    files = [path for part in COMPARED for path in sorted((folder / part).rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): units.file_digest(path) for path in files}


def differing(first: Path, second: Path) -> list[str]:
    """The files that are not equal in two folders, or in one of them alone."""
    before, after = contents(first), contents(second)
    demand(bool(before), "folder", str(first), f"one with {', '.join(COMPARED)} in it")
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def overlay(wish: dict[str, dict], name: str) -> Path:
    """The overlay with another output folder, build/kill/<name>; returns its file."""
    path = paths.resolve(f"build/kill/{name}.yaml")
    with units.atomic(path) as partial:
        YAML().dump(wish | {"base": wish.get("base", {}) | {"out": f"build/kill/{name}"}}, partial)
    return path


def chain(steps: list[str], overlays: dict[str, Path], *, kills: int, seed: int) -> int:
    """Runs the steps undisturbed and killed; returns how many kills met a running step. ValueError for fewer kills than steps."""
    run = [sys.executable, "-m", "cnslib.tools.cli", "run"]
    commands = {name: [[*run, "--overlay", str(path), step] for step in steps] for name, path in overlays.items()}
    took = [timed(command) for command in tqdm(commands["undisturbed"], desc="undisturbed")]
    demand(kills >= len(steps), "--kills", kills, f"{len(steps)} or more: each step is killed at least once")
    generator, met = np.random.default_rng(seed), 0
    for place, command in enumerate(tqdm(commands["killed"], desc="killed")):
        for _ in range(kills // len(steps) + (place < kills % len(steps))):
            met += killed(command, took[place] * generator.uniform(*SPAN))
        timed(command)
    return met


def main(arguments: list[str]) -> int:
    """Command line: 0 if both runs leave the same bytes."""
    parser = argparse.ArgumentParser(prog="cns kill", description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="+", metavar="STEP", help="a notebook's name without its number, in order")
    parser.add_argument("--overlay", default="smoke.yaml", help="file whose keys replace some of params.yaml (default smoke.yaml)")
    parser.add_argument("--kills", type=int, help="how many (default one for each step)")
    parser.add_argument("--seed", type=int, default=1, help="of their moments (default 1)")
    options = parser.parse_args(arguments)
    wish = read.read(paths.resolve(options.overlay))
    try:
        met = chain(
            options.steps,
            {name: overlay(wish, name) for name in ("undisturbed", "killed")},
            kills=options.kills or len(options.steps),
            seed=options.seed,
        )
        wrong = differing(paths.resolve("build/kill/undisturbed"), paths.resolve("build/kill/killed"))
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name in wrong:
        print(f"differs: {name}")
    print(f"{options.kills} kills, {met} of them before the step's end: {len(wrong)} files differ from the undisturbed run")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
