"""The program `qkv`, also as `python -m qkv`: Ctrl-C ends it with one line, even while its modules are imported.

It imports nothing but `sys` before it is ready for that.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def main() -> None:
    """Import the command line and run it."""
    try:
        import atexit
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in background jobs of some shells
            signal.signal(signal.SIGINT, _interrupted)
            sys.unraisablehook = _unraisable
            # Python ends by giving up its handlers: then Ctrl-C would kill a process that has done its work
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        from qkv.cli import main as run
    except KeyboardInterrupt:
        _leave()
    run()


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt in a command that is at work; leave at once before, after, and while it imports modules.

    Libraries in C++ abort the process when an import inside them raises KeyboardInterrupt, and NumPy is left half
    imported.
    """
    at_work = False
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            _leave()
        at_work = at_work or (frame.f_code.co_name == "run" and frame.f_globals.get("__name__") == "qkv.cli")
        frame = frame.f_back
    if not at_work:
        _leave()
    raise KeyboardInterrupt


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C once more in a moment if it was raised where Python forgets an exception: in a destructor, a weak
    reference that ends, a callback of the garbage collector."""
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)
        return
    import os
    import signal
    import threading

    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


def _leave() -> None:
    """End this process without running anything else of it; only temporary files of unfinished saves are removed."""
    import os

    remove_unfinished = getattr(sys.modules.get("qkv.core.files"), "remove_unfinished", None)
    if remove_unfinished is not None:  # not while the module itself is imported
        remove_unfinished()
    try:  # noqa: SIM105 (contextlib may be half imported)
        os.write(2, b"qkv: stopped; no partial file was left\n")
    except OSError:
        pass  # standard error is closed or full; the exit code says it
    os._exit(130)  # as qkv.cli.exit_codes.INTERRUPTED, which may not be imported yet


if __name__ == "__main__":
    main()
