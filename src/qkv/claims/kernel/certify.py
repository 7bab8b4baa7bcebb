"""Have Coq check the theorems of proved claims: several to a file, without those that it refuses."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from qkv.claims.kernel import coq
from qkv.claims.kernel.export import Export, exported
from qkv.claims.kernel.terms import NotExported
from qkv.claims.syntax.nodes import Claim
from qkv.claims.verdict import KernelCheck, Verdict
from qkv.core.files import creating, replacing, write_text
from qkv.core.json_files import content_checksum
from qkv.errors import QkvError

THEOREMS_PER_FILE = 8
SECONDS_PER_SENTENCE = 20  # of one tactic, by Coq's own limit
SECONDS_PER_THEOREM = 45
SECONDS_TO_START = 60
WORKERS = 2
MAX_REASON_LENGTH = 160
MARK = "(* written by qkv, checksum {} *)\n"
"""Last line of a saved file, with the checksum of what stands before it."""


def certified(
    pairs: Sequence[tuple[Claim | None, Verdict]], save_proofs: Path | None = None, name: str = "claims"
) -> list[Verdict]:
    """The verdicts, with Coq's word on each that is proved.

    Args:
        pairs: Each claim with its verdict; None for a claim that could not be parsed.
        save_proofs: A folder for the accepted theorems as .v files, and Attention.v.
        name: How the saved files are called.

    Raises:
        QkvError: Coq or Coquelicot is not installed, or the folder cannot be written.
    """
    coq.library()
    exports: dict[int, Export] = {}
    reasons: dict[int, str] = {}
    for place, (claim, verdict) in enumerate(pairs):
        if verdict.verdict != "proved" or claim is None:
            continue
        try:
            exports[place] = exported(claim)
        except NotExported as why:
            reasons[place] = f"Attention.v has no form for {why}"
        except Exception as why:  # a defect of the export must not end the check
            reasons[place] = f"the export failed on it, which is a bug ({type(why).__name__}: {why})"[
                :MAX_REASON_LENGTH
            ]
    files = _files(exports)
    with ThreadPoolExecutor(WORKERS) as pool:
        outcomes = list(pool.map(_accepted, files))
    accepted = {place for good, _ in outcomes for place in good}
    for _, refused in outcomes:
        reasons |= {place: f"Coq did not accept the exported proof ({why})" for place, why in refused.items()}
    if save_proofs is not None:
        _save(save_proofs, name, [{p: e for p, e in one.items() if p in accepted} for one in files])
    return [
        replace(verdict, kernel=_word(exports.get(place), place in accepted, reasons.get(place, "")))
        if verdict.verdict == "proved"
        else verdict
        for place, (_, verdict) in enumerate(pairs)
    ]


def _word(export: Export | None, accepted: bool, reason: str) -> KernelCheck:
    checker = f"Coq {coq.short_version()}"
    if export is None or not accepted:
        return KernelCheck(checker, False, because=reason)
    return KernelCheck(checker, True, export.form, export.statement)


def _files(exports: dict[int, Export]) -> list[dict[int, Export]]:
    places = list(exports)
    return [
        {place: exports[place] for place in places[start : start + THEOREMS_PER_FILE]}
        for start in range(0, len(places), THEOREMS_PER_FILE)
    ]


def file_text(theorems: dict[int, Export]) -> tuple[str, dict[int, int]]:
    """A file of theorems, and the line at which each begins."""
    text = f"{coq.HEADER}Set Default Timeout {SECONDS_PER_SENTENCE}.\n"
    lines: dict[int, int] = {}
    for place, export in theorems.items():
        lines[place] = text.count("\n") + 1
        text += "\n" + export.text(f"claim_{place + 1}")
    return text, lines


def _accepted(theorems: dict[int, Export]) -> tuple[list[int], dict[int, str]]:
    """The theorems that coqc accepts in one file, and for the others why not."""
    left = dict(theorems)
    refused: dict[int, str] = {}
    while left:
        text, lines = file_text(left)
        outcome = coq.checked(text, SECONDS_TO_START + SECONDS_PER_THEOREM * len(left))
        if outcome.accepted:
            return list(left), refused
        at = [place for place, line in lines.items() if outcome.line >= line]
        if outcome.line == 0 and len(left) > 1:  # no theorem is named: take them one by one
            alone = [_accepted({place: export}) for place, export in left.items()]
            return [p for good, _ in alone for p in good], {
                **refused,
                **{p: w for _, bad in alone for p, w in bad.items()},
            }
        failed = at[-1] if at else next(iter(left))
        refused[failed] = outcome.message[:MAX_REASON_LENGTH]
        del left[failed]
    return [], refused


def file_stem(name: str) -> str:
    """How the theorems of a document are called: letters and digits of its name."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", Path(name).stem).strip("_") or "claims"
    return plain if plain[0].isalpha() else f"claims_{plain}"


def _save(folder: Path, name: str, files: list[dict[int, Export]]) -> None:
    """Write the accepted theorems and Attention.v, each with its checksum; only files that qkv wrote are replaced."""
    plain, library = file_stem(name), coq.library_text()
    saved = [file_text(theorems)[0] for theorems in files if theorems]
    texts = {"Attention.v": library} | {f"{plain}_{count}.v": text for count, text in enumerate(saved, 1)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [file for file in texts if os.path.lexists(folder / file)]
        for file in there:
            if not _is_own(folder / file, texts[file]):
                problem = f"{file} is there already, and qkv did not write it, or it was changed since"
                raise QkvError(f"--save-proofs {folder}", problem, "Give another folder, or move that file away")
        for file, text in texts.items():
            mark = MARK.format(content_checksum(text.encode()))
            write_text(folder / file, text + mark, replacing if file in there else creating)
    except OSError as why:
        raise QkvError(f"--save-proofs {folder}", f"it cannot be written ({why})", "Give another folder") from None


def _is_own(path: Path, text: str) -> bool:
    """Whether a file is as some version of qkv wrote it: it ends with its checksum, or is this text without one."""
    found = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    written = found[: -len(MARK.format("0" * 16))]
    return found in (written + MARK.format(content_checksum(written)).encode(), text.encode())
