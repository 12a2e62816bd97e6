import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from cnslib.core import clusters, paths, units, workers
from cnslib.core.settings import read

PLACES = [str(Path(__file__).parent), str(paths.ROOT)]  # where other processes find this file and the library

COUNT, WAITING, DEADLY, POISON = 6, 2, 3, 4  # how many numbers there are; those with a fate of their own
RECIPE = units.Recipe("tiny-work", 1)


def shelf(folder: Path, count: int = COUNT) -> units.Shelf[int]:
    return units.Shelf(folder / "made", {number: (f"{number}.txt", RECIPE.stamp(number)) for number in range(count)}, "*.txt")


def square(folder: Path, number: int, unit: units.Unit) -> None:
    units.write_bytes(unit.path, f"{number**2}\n".encode())
    unit.finish()


def begun(folder: Path, number: int) -> int:
    """Notes that this process works on a number, and waits with two of them until the file `go` is there; how often it was tried before."""
    notes = folder / "notes"
    earlier = len(list(notes.glob(f"{number}.*")))
    (notes / f"{number}.{earlier}.{os.getpid()}").touch()
    while number in (WAITING, DEADLY) and not (folder / "go").exists():
        time.sleep(0.1)
    return earlier


def lasting(folder: Path, number: int, unit: units.Unit) -> None:
    begun(folder, number)
    square(folder, number, unit)


def eventful(folder: Path, number: int, unit: units.Unit) -> None:
    """The same, but one of the two that wait then kills the first process that works on it, and another fails always."""
    notes = folder / "notes"
    earlier = begun(folder, number)
    if number == DEADLY and not (notes / "killed").exists():
        (notes / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == POISON:
        raise ValueError(f"{number} is poison, tried {earlier} times before")
    print(f"{number} squared")
    square(folder, number, unit)


def drive(folder: Path, cluster: str, function: Callable = eventful) -> None:
    clusters.use(read.load(Path(cluster))["cluster"], folder / "work")
    own = shelf(folder)
    try:
        workers.each(function, [(folder, number, own[number]) for number in own.waiting()], device="cpu", desc="squares")
    except Exception as error:
        (folder / "error").write_text(str(error))


def until(condition, seconds=900):
    """Waits for a condition; the bound only keeps a broken test from hanging."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def alive(process: int | str) -> bool:
    """Whether a process runs: it has a command line, which one that has ended and waits to be collected lacks."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
