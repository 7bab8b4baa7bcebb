"""The program `qkv`, also as `python -m qkv`: Ctrl-C ends it with one line, even while its modules are imported.

It imports nothing but `sys` before it is ready for that.
"""

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from qkv.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("qkv: stopped; no partial file was left\n")
        sys.exit(130)  # as qkv.cli.EXIT_INTERRUPTED, which is not imported yet
    run()


if __name__ == "__main__":
    main()
