"""How long do verdicts take? The shipped catalogue, claim by claim, and the start of `qkv check` from the shell."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ANSWERS = Path(__file__).resolve().parents[1] / "examples" / "answers.md"


def catalogue(most: int | None) -> dict[str, float]:
    """Seconds for each claim of the catalogue, decided one after the other in one process."""
    from qkv.claims.catalogue import documents
    from qkv.claims.pipeline import decided

    seconds: list[float] = []
    start = last = time.perf_counter()
    for _, text in documents():
        for _ in decided(text):
            now = time.perf_counter()
            seconds.append(now - last)
            last = now
            if most is not None and len(seconds) >= most:
                break
    whole = time.perf_counter() - start
    return {"claims": len(seconds), "seconds": whole, "median": statistics.median(seconds), "slowest": max(seconds)}


def first_answer() -> float:
    """Seconds from starting `qkv check` on a small file until its first line of output: the median of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        with subprocess.Popen([sys.executable, "-m", "qkv", "check", str(ANSWERS)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            taken.append(time.perf_counter() - start)
            run.stdout.read()
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first claims of each document only")
    options = parser.parse_args()
    found = catalogue(5 if options.quick else None)
    found["first_answer"] = first_answer()
    print(f"{found['claims']} claims in {found['seconds']:.1f} s")
    print(f"median {found['median']:.3f} s, slowest {found['slowest']:.2f} s")
    print(f"first answer from the shell after {found['first_answer']:.2f} s")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
