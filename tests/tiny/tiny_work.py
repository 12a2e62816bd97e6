"""Pieces of work that write a small file each; some wait, fail or kill their process. As a program it is a driver that can be killed:

python tiny_work.py FOLDER CLUSTER makes all units of a folder on the workers of a cluster's file.
"""

import os
import signal
import sys
import time
from pathlib import Path

from cnslib.core import sites, units, workers
from cnslib.core.settings import read

COUNT, WAITING, DEADLY, POISON = 6, 2, 3, 4  # how many numbers there are; those with a fate of their own
RECIPE = units.Recipe("tiny-work", 1, ("tiny_work",))


def shelf(folder: Path, count: int = COUNT) -> units.Shelf[int]:
    return units.Shelf(folder / "made", {number: (f"{number}.txt", RECIPE.stamp(number)) for number in range(count)}, "*.txt")


def square(folder: Path, number: int, unit: units.Unit) -> None:
    """Writes the square of a number, and nothing else; everything goes smoothly."""
    units.write_bytes(unit.path, f"{number**2}\n".encode())
    unit.finish()


def eventful(folder: Path, number: int, unit: units.Unit) -> None:
    """The same, but two numbers wait until the file `go` is there, of which one then kills the first process that works on it."""
    notes = folder / "notes"
    earlier = list(notes.glob(f"{number}.*"))
    (notes / f"{number}.{len(earlier)}.{os.getpid()}").touch()
    while number in (WAITING, DEADLY) and not (folder / "go").exists():
        time.sleep(0.1)
    if number == DEADLY and not (notes / "killed").exists():
        (notes / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == POISON:
        raise ValueError(f"{number} is poison, tried {len(earlier)} times before")
    print(f"{number} squared")
    square(folder, number, unit)


def drive(folder: Path, cluster: str) -> None:
    """Makes what is missing; an error is written to the file `error`."""
    found = read.load(Path(cluster))["cluster"]
    sites.use(sites.Site(folder / "work", "conditions", found))
    own = shelf(folder)
    try:
        workers.each(eventful, [(folder, number, own[number]) for number in own.waiting()], device="cpu", desc="squares")
    except Exception as error:
        (folder / "error").write_text(str(error))


if __name__ == "__main__":
    drive(Path(sys.argv[1]), sys.argv[2])
