"""This process: its end with its parent's, the most memory that it held, and the processor that it runs on."""

import contextlib
import functools
import os
import platform
import threading
import time
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@functools.cache
def follow(owner: int) -> None:
    """Ends this process soon after its parent `owner` has gone: a killed parent cannot tell, and a piece may take minutes."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def forget_peak() -> None:
    """Begins to count anew the most memory that is held, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        RESET.write_text("5")


def peak() -> int:
    """The most bytes that were held since `forget_peak`; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


@functools.cache
def processor() -> str:
    """The processor's model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
