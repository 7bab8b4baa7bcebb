"""The largest memory of a process of a benchmark."""

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most memory that this process has held so far.

    On Linux as /proc tells it: ru_maxrss begins there with what the process that started this one held.
    """
    if STATUS.exists():
        return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) * 1024
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024
