"""Remove the files of a run: of one that has taken no step, and of one that is not needed any more."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from qkv.train import checkpoint, creation
from qkv.train.creation import Creation
from qkv.train.metrics_log import LOG_FILE, TENSORBOARD_FOLDER, is_own_log
from qkv.train.run_files import CONFIG_FILE, WEIGHTS_FILE
from qkv.train.tokenizers import TOKENIZER_FILE


def remove_new_run(created: Creation) -> None:
    """Remove the files of a run that has taken no step; whatever else is in its folder stays."""
    created.remove()
    if is_own_log(created.folder):
        (created.folder / LOG_FILE).unlink()
    board = created.folder / TENSORBOARD_FOLDER
    for path in board.glob(f"events.out.tfevents.*.{socket.gethostname()}.{os.getpid()}.*"):
        path.unlink()
    with suppress(OSError):  # it is not there, or not empty
        board.rmdir()


def remove_run(folder: Path) -> None:
    """Remove the files of a run that was trained, and its folder, unless it holds others."""
    creation.remove_leftovers(folder)
    checkpoint.remove_other_states(folder, -1)
    if is_own_log(folder):
        (folder / LOG_FILE).unlink()
    for name in (WEIGHTS_FILE, TOKENIZER_FILE, CONFIG_FILE):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # it holds other files
        folder.rmdir()
