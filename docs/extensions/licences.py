"""Licences of what the built site contains of others, Sphinx's scripts and the theme, copied beside them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PARTS = ("furo", "pygments", "sphinx", "sphinx-basic-ng")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _copy(app: Sphinx, problem: Exception | None) -> None:
    if problem is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "licences"
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            (folder / f"{part}.txt").write_text(licence(part), encoding="utf-8")


def licence(part: str) -> str:
    """The licence of an installed package; a package without one stops the build."""
    named = [f for f in metadata.files(part) or [] if f.name.upper().startswith("LICEN") and ".dist-info" in str(f)]
    if not named:
        raise ExtensionError(f"the installed package {part} has no licence file")
    return "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(named, key=str))
