"""`python -m qkv` is `qkv`."""

from qkv.cli import main

main()
