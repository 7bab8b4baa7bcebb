"""Standard output and standard error: a closed pipe ends the program quietly, a missing stream is the null device.

Typer turns a broken pipe into exit code 1, which means a negative verdict here. These streams raise `ReaderClosed`
instead, which no library catches.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class ReaderClosed(BaseException):
    """The reader of standard output or standard error has closed the pipe."""


class PipeAwareText(io.TextIOWrapper):
    """A text stream that raises ReaderClosed where others raise BrokenPipeError."""

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return super().write(text)
        except BrokenPipeError:
            self._discard()
            raise ReaderClosed from None

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            super().flush()
        except BrokenPipeError:
            self._discard()
            raise ReaderClosed from None

    def _discard(self) -> None:
        """Redirect the stream to the null device: Python flushes it again at exit."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def prepare_streams() -> None:
    """Replace the standard streams of this process by streams that handle closed pipes; call it once, at the start."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:  # the shell closed it: qkv … >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper) and not isinstance(stream, PipeAwareText):
            how = (stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through)
            setattr(sys, name, PipeAwareText(stream.detach(), *how))
