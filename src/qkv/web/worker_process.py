"""Initialisation that all processes of the server share."""

from __future__ import annotations

import os
import signal

from qkv.parallel import exit_with_parent


def initialise_worker() -> None:
    """Set up a child process of the server: one thread, SIGINT ignored, exit when the server ends however it ends.

    Ctrl-C in a terminal reaches the children as well; the server ends them in order when it stops.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"  # read by torch and SciPy when they are loaded
    import torch  # after the variable is set

    torch.set_num_threads(1)
    exit_with_parent()
