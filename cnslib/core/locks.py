"""One process at a time in a folder of units: what one writes another would take for the leftovers of a killed run, and delete.

The lock is the operating system's, on the folder itself: no file is left behind, and it ends with the process, however that ends.
"""

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

held_here: dict[Path, list[int]] = {}  # handle and number of holders in this process, by folder
guard = threading.RLock()  # reentrant: a holder may vanish, and let go, while another takes hold


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a folder, which is created. RuntimeError names the process that is in it."""
    take(folder)
    try:
        yield
    finally:
        release(folder)


def hold(folder: Path, owner: object) -> None:
    """The same for as long as `owner` exists."""
    take(folder)
    weakref.finalize(owner, release, folder)


def take(folder: Path) -> None:
    """Locks a folder for this process, once more if it has it already."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    with guard:
        if place in held_here:
            held_here[place][1] += 1
            return
        handle = os.open(place, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            who = holder(place.stat().st_ino)
            raise RuntimeError(f"{folder} is in the hands of {who}; accepted: one process at a time; wait for its end, or end it") from None
        held_here[place] = [handle, 1]


def release(folder: Path) -> None:
    """Undoes one `take`."""
    with guard:
        entry = held_here.get(place := folder.resolve())
        if entry is None:
            return
        entry[1] -= 1
        if entry[1] == 0:
            os.close(held_here.pop(place)[0])


def holder(inode: int) -> str:
    """The process that has locked a folder, with the command of it and of the process that started it, as far as Linux tells."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, _, process, where, *_ = line.split()
            if kind == "FLOCK" and where.rpartition(":")[2] == str(inode) and int(process) > 0:
                return f"process {process} ({command(int(process))})"
    return "another process"


def command(process: int) -> str:
    """The command lines of a process and of its parent."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        own = said(process)
        parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        return f"{own}; started by process {parent}: {said(parent)}"
    return "unknown command"


def said(process: int) -> str:
    """The command line of a process, shortened."""
    return " ".join(Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").split())[:100]
