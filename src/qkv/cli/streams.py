"""Standard output and standard error: a closed pipe ends the program quietly, a missing stream is the null device.

Standard error that takes no more, as on a full disk, is the null device from then on, as there is nowhere left to tell
it.

Typer turns a broken pipe into exit code 1, which means a negative verdict here. These streams raise `ReaderClosed`
instead, which no library catches.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ReaderClosed(BaseException):
    """The reader of standard output or standard error has closed the pipe."""


class PipeAwareText(io.TextIOWrapper):
    """A text stream that raises ReaderClosed where others raise BrokenPipeError."""

    raises = True
    """Whether other errors are raised; if not, what cannot be written is dropped."""

    def write(self, text: str) -> int:
        """Write a text."""
        with self._failures():
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._failures():
            super().flush()

    def finish(self) -> None:
        """Write what is buffered, or drop it: Python would fail on it again at exit, and change the exit code."""
        try:
            self.flush()
        except OSError:
            self._discard()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._discard()
            raise ReaderClosed from None
        except OSError:
            if self.raises:
                raise
            self._discard()

    def _discard(self) -> None:
        """Redirect the stream to the null device: Python flushes it again at exit."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def prepare_streams() -> None:
    """Replace the standard streams of this process by streams that handle failures; call it once, at the start."""
    if sys.stdin is None:  # the shell closed it: qkv … <&-
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:  # the shell closed it: qkv … >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper) and not isinstance(stream, PipeAwareText):
            how = (stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through)
            aware = PipeAwareText(stream.detach(), *how)
            aware.raises = name == "stdout"
            setattr(sys, name, aware)
