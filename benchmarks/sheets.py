"""How long does a class take? The example sheets with changes, graded in two processes; and sheets that were garbled.

The sheets are those of examples/, repeated with other letters, scales and constructions, so that no two are equal. With
--mutated N, N sheets are cut, shuffled and filled with noise: each must come back as a grade, in time, and no process
may take more than 1 GB. The last line is JSON.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "answer_sheet.tex"
SCALES = (r"\lambda", r"\beta", "t", r"\kappa", "C", r"\tau", "s", r"\eta")
QUERIES = (r"\tfrac{1}{2}(k_a + k_b)", "k_a + k_b", "SCALE(k_a + k_b)", "SCALE k_a + SCALE k_b", "SCALE(k_a - k_b)")
NOISE = (
    "$", "$$", "\\", "{", "}", "\\begin{align}", "\\end{align}", "\\frac", "_", "^", "&", "\\\\", "\\left(", "#", "```",
    "\x0c", "\u202e", "\U0001f600", "注意", "\\sum_{i", "=" * 40, "(" * 200, "\\def\\x{\\x\\x}", "\n" * 50,
)  # fmt: skip


def changed(text: str, seed: int) -> str:
    """The example with another scale, another query in part (b), other numbers and other words."""
    draw = random.Random(seed)
    scale = draw.choice(SCALES)
    query = draw.choice(QUERIES).replace("SCALE", scale)
    text = text.replace(r"\[ q = k_a + k_b. \]", rf"\[ q = {query}. \]").replace(r"\lambda", scale)
    if draw.random() < 0.5:
        text = text.replace(r"\approx \frac{1}{2}", rf"\approx \frac{{1}}{{{draw.randint(2, 4)}}}")
    if draw.random() < 0.3:
        text = text.replace(
            r"\mathrm{Var}(k_a^\top q) \approx",
            rf"\mathrm{{Var}}(k_a^\top q) \approx \frac{{1}}{{{draw.randint(2, 3)}}}",
        )
    words = ("clearly", "hence", "so", "therefore", "then")
    return text.replace("Hence", draw.choice(words).capitalize()) + f"\n% sheet {seed}\n"


def mutated(text: str, seed: int) -> str:
    """A garbled sheet: parts cut out, doubled, exchanged, or replaced by signs."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 12)):
        i, j = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        j = min(j, i + draw.choice((3, 30, 300)))
        kind = draw.randrange(5)
        if kind == 0:
            text = text[:i] + text[j:]
        elif kind == 1:
            text = text[:j] + text[i:j] * draw.randint(1, 6) + text[j:]
        elif kind == 2:
            text = text[:i] + text[i:j][::-1] + text[j:]
        elif kind == 3:
            text = text[:i] + draw.choice(NOISE) * draw.randint(1, 3) + text[j:]
        else:
            text = (
                text[:i]
                + "".join(
                    chr(draw.choice((draw.randrange(32, 127), draw.randrange(0x370, 0x500)))) for _ in range(j - i)
                )
                + text[j:]
            )
    return text[:200_000]


def write(folder: Path, count: int, make, first: int = 0) -> list[Path]:
    """So many sheets as files, from a seed on."""
    text = EXAMPLE.read_text(encoding="utf-8")
    paths = [folder / f"sheet_{i:05}.tex" for i in range(first, first + count)]
    for i, path in enumerate(paths, first):
        path.write_text(make(text, i), encoding="utf-8", errors="replace")
    return paths


def one_sheet() -> dict[str, float]:
    """Seconds of `qkv grade` on one sheet from the shell, and until its first line: medians of three."""
    first, whole = [], []
    for _ in range(3):
        start = time.perf_counter()
        with subprocess.Popen([sys.executable, "-m", "qkv", "grade", str(EXAMPLE)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            first.append(time.perf_counter() - start)
            run.stdout.read()
        whole.append(time.perf_counter() - start)
    return {"first_line": statistics.median(first), "one_sheet": statistics.median(whole)}


def a_class(count: int, processes: int) -> dict[str, float]:
    """Seconds for a class, with its page and table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), count, changed)
        outputs = ["--html", f"{folder}/class.html", "--csv", f"{folder}/class.csv", "--processes", str(processes)]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "qkv", "grade", *map(str, paths), *outputs], capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-2000:]
        rows = Path(folder, "class.csv").read_text(encoding="utf-8").splitlines()
        page = Path(folder, "class.html").stat().st_size
    return {"sheets": count, "class_seconds": seconds, "rows": len(rows) - 1, "page_bytes": page}


def garbled(count: int, processes: int, first: int = 0) -> dict[str, float]:
    """How many garbled sheets failed, and the largest memory of a process."""
    from qkv.sheets.sheet_files import grade_files

    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), count, mutated, first)
        start = time.perf_counter()
        grades = grade_files(paths, processes=processes)
        seconds = time.perf_counter() - start
    why = [remark for grade in grades if grade.failed for remark in grade.remarks]
    for text in sorted(set(why)):
        print(f"{why.count(text)} sheets: {text}")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
    return {"mutated": count, "mutated_seconds": seconds, "mutated_failed": len(why), "peak_mb": peak / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=int, default=200, help="0: only garbled ones")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mutated", type=int, default=0, help="grade so many garbled sheets too, such as 10000")
    parser.add_argument("--first", type=int, default=0, help="the first seed of the garbled ones, to run them in parts")
    parser.add_argument("--quick", action="store_true", help="ten sheets, and as many garbled ones")
    options = parser.parse_args()
    found: dict[str, float] = {}
    if options.sheets:
        found |= one_sheet()
        print(f"one sheet in {found['one_sheet']:.1f} s, its first line after {found['first_line']:.1f} s")
        found |= a_class(10 if options.quick else options.sheets, options.processes)
        print(
            f"{found['sheets']} sheets in {found['class_seconds']:.0f} s; "
            f"the page has {found['page_bytes'] / 1e6:.1f} MB"
        )
    if count := 10 if options.quick else options.mutated:
        found |= garbled(count, options.processes, options.first)
        print(f"{count} garbled sheets in {found['mutated_seconds']:.0f} s, {found['mutated_failed']} failed")
        print(f"largest process: {found['peak_mb']:.0f} MB")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
