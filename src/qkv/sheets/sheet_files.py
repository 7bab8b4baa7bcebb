"""Grade files: each is read, decoded and graded on its own, so that one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.claims.time_limit import TimedOut, time_limit
from qkv.errors import QkvError, with_full_stop
from qkv.sheets.feedback import Grade

if TYPE_CHECKING:
    from qkv.parallel import WorkerPool

MAX_SHEET_BYTES = 8_000_000
"""Largest file: a notebook with pictures is larger than its text."""
SECONDS_PER_SHEET = 180.0  # by the clock, on a machine that does much else; deciding ends earlier by itself
"""Longest time for one sheet."""


def grade_files(
    paths: Sequence[str | Path],
    problem: str | Path | None = None,
    *,
    processes: int | None = None,
    seconds: float = SECONDS_PER_SHEET,
    callback: Callable[[int, int], None] | None = None,
) -> tuple[Grade, ...]:
    """Grade many sheets; one that cannot be read or takes too long becomes a grade with a remark that says so.

    Args:
        paths: Files in LaTeX, Markdown, Typst or plain text, and notebooks.
        problem: The name of a shipped problem, or a problem file; if None, it is recognised sheet by sheet.
        processes: Number of processes; if None, several are started where much remains to be done.
        seconds: Longest time for one sheet.
        callback: Called with the numbers of finished and of all sheets.

    Returns:
        One grade for each path, in their order.

    Raises:
        QkvError: There is no such problem, no worker process can be started, or `paths` is a single path.

    Example:
        >>> from qkv.sheets import grade_files
        >>> (grade,) = grade_files(["no_such_sheet.tex"], processes=1)
        >>> grade.failed, grade.remarks
        (True, ('It cannot be read (No such file or directory). Give a file in LaTeX, Markdown, Typst or plain text.',))
    """
    from qkv.parallel import WorkerPool
    from qkv.sheets.problems import editions

    if isinstance(paths, str | Path):
        raise QkvError("grading sheets", f"paths is the one path {str(paths)!r}", "Give a list of paths")
    known = None if problem is None else str(problem)
    if known is not None:
        editions(known)  # refuses what is no problem, before any sheet is read
    with WorkerPool(processes=processes) as pool:
        return _graded(pool, (known, seconds), [str(path) for path in paths], callback)


def _graded(
    pool: WorkerPool, shared: tuple[str | None, float], paths: list[str], callback: Callable[[int, int], None] | None
) -> tuple[Grade, ...]:
    """Grades in order. If a worker process dies, halves are graded on their own, until its sheet is found."""
    from qkv.parallel import WorkerDied

    try:
        return tuple(pool.map(grade_file, shared, [(path,) for path in paths], callback))
    except WorkerDied:
        if len(paths) == 1:
            return (failed_grade(paths[0], "The process that graded it died. Grade a part of it."),)
    middle = len(paths) // 2
    done: tuple[Grade, ...] = ()
    for part in (paths[:middle], paths[middle:]):
        with _fresh(pool) as again:
            done += _graded(again, shared, part, None)
    return done


def _fresh(pool: WorkerPool) -> WorkerPool:
    """A pool of new processes, at least two, since one would be this process."""
    from qkv.parallel import WorkerPool

    return WorkerPool(processes=max(2, pool.size))


def grade_file(shared: tuple[str | None, float], path: str, callback: Callable[[Grade], None] | None = None) -> Grade:
    """The grade of one file; `shared` holds the problem and the longest time.

    Args:
        shared: The name of the problem, or None, and the longest time for the sheet.
        path: The file.
        callback: Called with what is known so far.
    """
    problem, seconds = shared
    try:
        text = sheet_text(Path(path))
    except QkvError as why:
        return failed_grade(path, f"{with_full_stop(why.problem)} {with_full_stop(why.hint)}")
    return grade_text(text, problem, path, seconds, callback)


def grade_text(
    text: str, problem: str | None, file: str, seconds: float, callback: Callable[[Grade], None] | None = None
) -> Grade:
    """The grade of a sheet that is at hand; any failure becomes a remark.

    Args:
        text: The sheet.
        problem: The name of a problem or its file; None to recognise it.
        file: The name of the sheet.
        seconds: Longest time.
        callback: Called with what is known so far.

    Raises:
        QkvError: There is no such problem.
    """
    from qkv.sheets.pipeline import grade  # here, since it imports SymPy

    known: list[Grade] = []

    def report(so_far: Grade) -> None:
        known.append(so_far)
        if callback is not None:
            callback(so_far)

    try:
        with time_limit(seconds):
            found = grade(text, problem, file, report)
    except QkvError:  # about the problem, of which all sheets would say the same
        raise
    except TimedOut:
        late = f"It took longer than {seconds:g} s"
        if known and known[-1].answers:
            remarks = (*known[-1].remarks, f"{late}, so that only the answers were decided. Grade a part of it.")
            return replace(known[-1], remarks=remarks, failed=True)
        return failed_grade(file, f"{late}. Grade a part of it.", text)
    except (Exception, RecursionError) as why:
        return failed_grade(file, f"It made qkv fail, which is a bug ({type(why).__name__}).", text)
    return found if found.text else replace(found, text=text)


def failed_grade(file: str, why: str, text: str = "") -> Grade:
    """The grade of a sheet that could not be graded."""
    return Grade(file, "", (), (), (), (why[:1].upper() + why[1:],), failed=True, text=text)


def sheet_text(path: Path) -> str:
    """The text of a file.

    Raises:
        QkvError: It cannot be read, is too large, or is not text.
    """
    request, hint = f"grading {path}", "Give a file in LaTeX, Markdown, Typst or plain text"
    try:
        if path.exists() and not path.is_file():
            raise QkvError(request, "it is a folder" if path.is_dir() else "it is not a file", hint)
        with path.open("rb") as file:
            data = file.read(MAX_SHEET_BYTES + 1)
    except (OSError, ValueError) as why:
        if isinstance(why, QkvError):
            raise
        detail = getattr(why, "strerror", None) or type(why).__name__
        raise QkvError(request, f"it cannot be read ({detail})", hint) from None
    if len(data) > MAX_SHEET_BYTES:
        raise QkvError(request, f"it has more than {MAX_SHEET_BYTES:,} bytes", "Grade a part of it")
    return decoded(request, data)


def decoded(request: str, data: bytes) -> str:
    """Bytes as text: UTF-8, UTF-16 with a byte order mark, or GB 18030, in which old Chinese files are written.

    Raises:
        QkvError: They are not text.
    """
    for encoding in _encodings(data):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
    kind = "a PDF" if data.startswith(b"%PDF") else "binary"
    raise QkvError(request, f"it is {kind}, not text", "Give the source, in LaTeX, Markdown, Typst or plain text")


def _encodings(data: bytes) -> Iterator[str]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield "utf-16"
    elif not data.startswith(b"%PDF"):
        yield "utf-8-sig"
        if _looks_like_text(data):
            yield "gb18030"


def _looks_like_text(data: bytes) -> bool:
    """Whether hardly any byte is a control character other than tabs and line ends."""
    control = sum(byte < 32 and byte not in (9, 10, 12, 13) for byte in data)
    return control * 1000 <= len(data)
