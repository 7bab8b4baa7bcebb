"""Run coqc: find it, compile Attention.v once per user, and check files of theorems within a time limit."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from qkv.errors import QkvError

HEADER = """From Coq Require Import Reals Lra Lia List Psatz.
From Coquelicot Require Import Coquelicot.
From qkv Require Import Attention.
Import ListNotations.
Open Scope R_scope.
"""
SECONDS_FOR_LIBRARY = 300
OPTIONS = ("-q", "-w", "none")
WHAT_TO_INSTALL = "Install Coq 8.16 and Coquelicot, on Debian and Ubuntu with `apt install coq libcoq-coquelicot`"


@dataclass(frozen=True)
class Outcome:
    """What coqc said of a file: accepted, or the line of the first error (0 if there is none) and its message."""

    accepted: bool
    line: int = 0
    message: str = ""


@cache
def version() -> str:
    """The version of Coq, such as 8.16.1.

    Raises:
        QkvError: coqc is not installed.
    """
    if shutil.which("coqc") is None:
        raise QkvError("checking proofs with Coq", "there is no coqc on this machine", WHAT_TO_INSTALL)
    said = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=False).stdout
    return said.split()[0] if said.split() else "of an unknown version"


def short_version() -> str:
    """The version without its last part, such as 8.16."""
    return ".".join(version().split(".")[:2])


def library_text() -> str:
    """The text of Attention.v."""
    return resources.files("qkv.claims.kernel").joinpath("Attention.v").read_text(encoding="utf-8")


def library() -> Path:
    """The folder with the compiled Attention.v, which is compiled if it is not there yet.

    The folder is renamed into place when it is complete, so that two processes do not see half of it.
    """
    mark = hashlib.sha256((version() + library_text()).encode()).hexdigest()[:16]
    place = _cache_folder() / f"coq-{mark}"
    if not (place / "Attention.vo").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            inside = Path(folder) / "library"
            inside.mkdir()
            (inside / "Attention.v").write_text(library_text(), encoding="utf-8")
            outcome = _run(inside, "Attention.v", inside, SECONDS_FOR_LIBRARY)
            if not outcome.accepted:
                raise QkvError("compiling Attention.v", outcome.message[:200] or "coqc failed", WHAT_TO_INSTALL)
            with contextlib.suppress(OSError):  # another process was faster
                inside.rename(place)
        if not (place / "Attention.vo").exists():
            raise QkvError(
                "compiling Attention.v", f"{place} cannot be written", "Set XDG_CACHE_HOME to another folder"
            )
    return place


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "qkv"


_OUTCOMES: dict[str, Outcome] = {}  # by the hash of a file's text, within a run


def checked(text: str, seconds: float) -> Outcome:
    """Whether coqc accepts a file; a text that was checked before in this run is not checked again."""
    mark = hashlib.sha256(text.encode()).hexdigest()
    if mark not in _OUTCOMES:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "claims.v").write_text(text, encoding="ascii")
            _OUTCOMES[mark] = _run(Path(folder), "claims.v", library(), seconds)
    return _OUTCOMES[mark]


def _run(folder: Path, name: str, library_folder: Path, seconds: float) -> Outcome:
    """Run coqc in a folder, with its process group ended when the time is over."""
    command = ["coqc", *OPTIONS, "-R", str(library_folder), "qkv", name]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Outcome(False, 0, f"coqc took longer than {seconds:g} s")
    if process.returncode == 0:
        return Outcome(True)
    at = re.search(r"line (\d+), characters", said)
    message = said.partition("Error:")[2] or said
    return Outcome(False, int(at.group(1)) if at else 0, " ".join(message.split()))
