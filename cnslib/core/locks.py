"""One process at a time in a folder of units: what one writes another would take for the leftovers of a killed run, and delete.

The lock is the operating system's, on the folder itself: no file is left behind in what DVC hashes, and it ends with the process,
however that ends.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path


class Lock:
    """Exclusive access to a folder for this process as long as the object exists. RuntimeError names the process that has it."""

    def __init__(self, folder: Path):
        handle = os.open(folder, os.O_RDONLY)
        weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = holder(folder.stat().st_ino)
            raise RuntimeError(f"{folder} is in the hands of {who}; accepted: one process at a time; wait for its end, or end it") from None


present: weakref.WeakValueDictionary[Path, Lock] = weakref.WeakValueDictionary()  # by folder: in a process many may work in one


def hold(folder: Path, owner: object) -> None:
    """Keeps other processes out of a folder, which is created, for as long as `owner` exists."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    lock = present.get(place) or Lock(place)
    present[place] = lock
    weakref.finalize(owner, lambda kept: None, lock)


def holder(inode: int) -> str:
    """The process that has locked a folder, with its command, as far as Linux tells."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, _, process, where, *_ = line.split()
            if kind == "FLOCK" and where.rpartition(":")[2] == str(inode):
                command = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                return f"process {process} ({command[:100].strip()})"
    return "another process"
