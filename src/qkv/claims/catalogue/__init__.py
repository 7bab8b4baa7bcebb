"""Catalogue: six shipped documents of claims with known verdicts."""

from __future__ import annotations

from importlib import resources

NAMES = ("writeup_1", "writeup_2", "writeup_3", "writeup_4", "writeup_5", "supplement")


def documents() -> list[tuple[str, str]]:
    """The name and the text of every document."""
    folder = resources.files("qkv.claims.catalogue")
    return [(name, folder.joinpath(f"{name}.md").read_text(encoding="utf-8")) for name in NAMES]
