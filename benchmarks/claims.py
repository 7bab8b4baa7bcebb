"""How long do verdicts take? The shipped catalogue, claim by claim and by `qkv check`, and the start from the shell."""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NOISY = """```claim noise at one scale
given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a')
given n = 10, t = 20, eps = 0.000001
let   q = t*(mu_a + mu_b)
then  Var[alpha_a] < 0.2225
```
"""
ANSWERS = Path(__file__).resolve().parents[1] / "examples" / "answers.md"


def catalogue(most: int | None) -> dict[str, float]:
    """Seconds for each claim of the catalogue, decided one after the other in one process."""
    from qkv.claims.catalogue import documents
    from qkv.claims.pipeline import decided

    seconds: list[float] = []
    start = last = time.perf_counter()
    cpu = time.process_time()
    for _, text in documents():
        for _ in decided(text):
            now = time.perf_counter()
            seconds.append(now - last)
            last = now
            if most is not None and len(seconds) >= most:
                break
    whole = time.perf_counter() - start
    return {
        "claims": len(seconds),
        "seconds": whole,
        "cpu_seconds": time.process_time() - cpu,
        "median": statistics.median(seconds),
        "slowest": max(seconds),
    }


def from_the_shell() -> tuple[float, float]:
    """Seconds of `qkv check --catalogue`, start and processes included, and its processor time."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "qkv", "check", "--catalogue", "--json"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # it holds refuted claims, so it exits with 1
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_answer(path: Path) -> tuple[float, float]:
    """Seconds from starting `qkv check` on a file until its first line, and processor time: medians of three."""
    taken = []
    for _ in range(3):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen([sys.executable, "-m", "qkv", "check", str(path)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            seconds = time.perf_counter() - start
            run.stdout.read()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return statistics.median(s for s, _ in taken), statistics.median(c for _, c in taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first claims of each document only")
    options = parser.parse_args()
    found = catalogue(5 if options.quick else None)
    if not options.quick:
        found["shell_seconds"], found["shell_cpu_seconds"] = from_the_shell()
        print(f"qkv check --catalogue: {found['shell_seconds']:.1f} s, {found['shell_cpu_seconds']:.1f} s of processor")
    found["first_answer"], found["first_answer_cpu"] = first_answer(ANSWERS)
    with tempfile.TemporaryDirectory() as folder:
        noisy = Path(folder) / "noisy.md"
        noisy.write_text(NOISY, encoding="utf-8")
        found["first_with_noise"], found["first_with_noise_cpu"] = first_answer(noisy)
    print(f"{found['claims']} claims in {found['seconds']:.1f} s, {found['cpu_seconds']:.1f} s of processor time")
    print(f"median {found['median']:.3f} s, slowest {found['slowest']:.2f} s")
    for name, words in (("first_answer", "first answer"), ("first_with_noise", "with noise")):
        cpu = found[f"{name}_cpu"]
        print(f"{words} from the shell after {found[name]:.2f} s (whole file: {cpu:.2f} s of processor time)")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
