"""Initialisation that all processes of the server share."""

from __future__ import annotations

import os
import signal

from qkv.parallel import exit_with_parent


def initialise_worker(import_torch: bool = True) -> None:
    """Set up a child process of the server: one thread, SIGINT ignored, exit when the server ends however it ends.

    Ctrl-C in a terminal reaches the children as well; the server ends them in order when it stops.

    Args:
        import_torch: Whether to import torch now; a process that imports it later has one thread as well.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"  # read by torch and SciPy when they are loaded
    exit_with_parent()
    if import_torch:
        import torch  # after the variable is set

        torch.set_num_threads(1)
