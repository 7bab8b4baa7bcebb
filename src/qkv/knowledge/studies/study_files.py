"""Table and figure of a study: written with a checksum, and replaced only where they are as this study wrote them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields
from pathlib import Path

from qkv.core.files import creating, replacing, write_text
from qkv.core.json_files import CHECKSUM, EDITED, content_checksum, read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.studies.experiment import Study

STUDY_FILE, STUDY_FORMAT = "study.json", "qkv-study-1"
_MARK = re.compile(r"<!-- qkv study (\w+) ([0-9a-f]{16}) -->\n")


def check_files_of_study(folder: str | Path, name: str) -> None:
    """Refuse a folder whose study.json or figure would be replaced, though this study did not write it."""
    table, figure = Path(folder) / STUDY_FILE, Path(folder) / f"{name}.svg"
    _check(table, name, _study_of_table(table))
    _check(figure, name, _study_of_figure(figure))


def save_study(folder: str | Path, study: Study) -> Study:
    """Write the table of a study to study.json in its folder, and return the study."""
    path = Path(folder) / STUDY_FILE
    _check(path, study.name, _study_of_table(path))
    _write(path, json.dumps(with_checksum({"format": STUDY_FORMAT, **study.to_json()}), indent=1) + "\n")
    return study


def save_figure(folder: str | Path, name: str, svg: str) -> Path:
    """Write the figure of a study, with a comment that holds its checksum, and return its path."""
    path = Path(folder) / f"{name}.svg"
    _check(path, name, _study_of_figure(path))
    text = svg.rstrip("\n") + "\n"
    _write(path, f"{text}<!-- qkv study {name} {content_checksum(text.encode())} -->\n")
    return path


def _write(path: Path, text: str) -> None:
    write_text(path, text, replacing if path.is_file() else creating)


def _check(path: Path, name: str, found: str | None) -> None:
    """Refuse a file that is there and does not belong to this study; `found` is the study that it belongs to."""
    if not os.path.lexists(path) or found == name:
        return
    problem = "qkv did not write it, or it was changed since" if found is None else f"belongs to the study {found!r}"
    hint = "Give another --out, or move that file away"
    raise QkvError(f"running the study {name!r} in {path.parent}", f"{path} is there already, and {problem}", hint)


def _study_of_table(path: Path) -> str | None:
    """The study that a study.json belongs to; None if qkv did not write it, or if it was changed since."""
    try:
        stored = read_json(path) if path.is_file() and not path.is_symlink() else None
        if not isinstance(stored, dict) or stored.get(CHECKSUM) == EDITED:
            return None
        if set(stored) != {field.name for field in fields(Study)}:  # as versions without a checksum wrote it
            stored = verified(stored)
            if stored.get("format") != STUDY_FORMAT:
                return None
        return str(stored["name"])
    except (OSError, ValueError, KeyError):
        return None


def _study_of_figure(path: Path) -> str | None:
    """The study that drew a figure; None if qkv did not write it, or if it was changed since."""
    try:
        text = path.read_text("utf-8") if path.is_file() and not path.is_symlink() else ""
    except (OSError, ValueError):
        return None
    drawn, _, last = text.rpartition("\n<!--")
    mark = _MARK.fullmatch(f"<!--{last}")
    return mark[1] if mark and mark[2] == content_checksum(f"{drawn}\n".encode()) else None
