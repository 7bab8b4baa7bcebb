"""qkv check: decide the claims of documents, or of the shipped catalogue."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.cli.common import JSON, check_page_path, say
from qkv.cli.exit_codes import BAD_INPUT, exit_if_negative
from qkv.cli.json_documents import document_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.claims.verdict import Verdict, Verdicts

Files = Annotated[list[Path] | None, typer.Argument(help="Markdown files with ```claim blocks.")]


def check(
    files: Files = None,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Decide the shipped catalogue of write-ups.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with every derivation and counterexample.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is proved.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print derivations and counterexamples too.")] = False,
    seconds: Annotated[float, typer.Option(help="Longest time for one claim.")] = 10.0,
    kernel: Annotated[bool, typer.Option("--kernel", help="Have Coq check a theorem of each proved claim.")] = False,
    save_proofs: Annotated[Path | None, typer.Option(help="With --kernel: a folder for the accepted theorems.")] = None,
    as_json: JSON = False,
) -> None:
    """Decide written claims about attention: exit 0, 1 if any is refuted, 2 if any is malformed or there is none."""
    _use_one_thread()
    from qkv.claims.verdict import Verdicts

    if not files and not catalogue:
        raise QkvError("checking claims", "no file was given", "Give a Markdown file, or --catalogue")
    if not (math.isfinite(seconds) and seconds > 0):
        raise QkvError(
            f"--seconds {seconds}", "it is not a positive, finite number", "Give a number of seconds, such as 10"
        )
    if save_proofs is not None and not kernel:
        raise QkvError(f"--save-proofs {save_proofs}", "there are no proofs without --kernel", "Give --kernel too")
    check_page_path(html)
    texts = [(str(path), _read(path)) for path in files or ()]
    if catalogue:
        from qkv.claims.catalogue import documents

        texts += documents()
    by_text: list[list[Verdict]] = [[] for _ in texts]
    for number, verdict in _checked(texts, seconds, save_proofs) if kernel else _decided(texts, seconds):
        by_text[number].append(verdict)
        if not as_json:
            _print(verdict, show)
    chapters = [(name, Verdicts(tuple(found))) for (name, _), found in zip(texts, by_text, strict=True)]
    every = Verdicts(tuple(v for _, part in chapters for v in part))
    if html is not None:  # before the document of --json, so that a refusal is the only one
        from qkv.core.files import write_text
        from qkv.viz.html_report import claims_page

        write_text(html, claims_page(chapters))
    if as_json:
        say(document_text(_report(chapters)))
    else:
        counts = ", ".join(f"{count} {kind}" for kind, count in every.counts().items())
        say(f"\n{len(every)} claim{'s' * (len(every) != 1)}{f': {counts}' if counts else ''}\n")
    kinds = every.counts()
    empty = [name for name, part in chapters if not part]
    for name in empty:
        hint = f"; if it is an answer sheet, grade it as it stands: qkv grade {shlex.quote(name)}"
        typer.echo(f"{name}: there is no claim in it, as no block begins with ```claim{hint}", err=True)
    if empty or kinds.get("malformed"):
        raise typer.Exit(BAD_INPUT)
    exit_if_negative(not (kinds.get("refuted") or (strict and set(kinds) - {"proved"})))


def _use_one_thread() -> None:
    """Give NumPy, which is not imported yet, one thread: small products gain nothing by more."""
    from qkv.parallel import ONE_THREAD

    for name, threads in ONE_THREAD.items():
        os.environ.setdefault(name, threads)


def _report(chapters: list[tuple[str, Verdicts]]) -> dict[str, Any]:
    """The verdicts of all documents, each with the name of its document, and how many there are of each kind."""
    from qkv.claims.verdict import KINDS

    verdicts = [{"document": name, **verdict.to_json()} for name, part in chapters for verdict in part]
    counts = {kind: sum(verdict["verdict"] == kind for verdict in verdicts) for kind in KINDS}
    return {"documents": [name for name, _ in chapters], "counts": counts, "verdicts": verdicts}


def _decided(texts: list[tuple[str, str]], seconds: float) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of named texts; imported here, since `qkv --help` must not import SymPy."""
    from qkv.claims.pipeline import decided_documents

    return decided_documents([text for _, text in texts], seconds)


def _checked(texts: list[tuple[str, str]], seconds: float, save_proofs: Path | None) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of named texts, with what Coq says of those that are proved."""
    from qkv.claims.kernel.certify import file_stem
    from qkv.claims.pipeline import checked_by_kernel

    used: set[str] = set()
    for number, (name, text) in enumerate(texts):
        stem = file_stem(name)
        if stem in used:  # so that the theorems of two documents of one name do not replace each other
            stem = next(each for each in (f"{stem}_of_{k}" for k in range(2, len(texts) + 2)) if each not in used)
        used.add(stem)
        for verdict in checked_by_kernel(text, "coq", seconds, save_proofs, stem):
            yield number, verdict


def _read(path: Path) -> str:
    from qkv.core.files import read_bounded

    try:
        return read_bounded(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        reason = "it is not UTF-8 text"
        if isinstance(why, OSError):
            reason = (
                "it is a folder" if path.is_dir() else "it cannot be read" if path.exists() else "there is no such file"
            )
        raise QkvError(f"checking {path}", reason, "Give a Markdown file") from None


def _print(verdict: Verdict, show: bool) -> None:
    """Print a verdict in two lines; with `show`, its derivation and counterexample too."""
    from qkv.claims.verdict import SIGNS

    say(f"{SIGNS[verdict.verdict]} {verdict.words:<11} {verdict.id}: {verdict.says}\n  {verdict.because}\n")
    if verdict.kernel is not None:
        say(f"  {verdict.kernel.text}\n")
    if show:
        for statement in verdict.kernel.theorem.splitlines() if verdict.kernel is not None else ():
            say(f"    | {statement}\n")
        for line in verdict.derivation:
            say(f"    . {line.text}\n")
        for text in (verdict.counterexample or "").splitlines():
            say(f"    > {text}\n")
