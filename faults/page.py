"""docs/reliability.md, written from the stored results of all kinds, and the prose around them."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from faults.count import HARMFUL, FaultCount
from faults.kinds import SECTIONS
from qkv.core.display import lower_percent

HEAD = """# Reliability

What was done to qkv on purpose, how often, and what became of it. `make faults` does all of it again and writes this
page; a short part of each kind is in `make test`. The kinds of faults are modules of `faults/`.

Each fault is counted once, by the worst that it did:

- **refused**: it ended in a sentence, in the exit code of a stopped command, or in a status of HTTP that says why;
- **unchanged**: the result is the one without the fault: the same bits, the same meaning, the same answer;
- **another input**: where nothing can tell the two apart: another digit in a user's own table, a log that ends a line
  earlier, a changed certificate that is true;
- **lost**: something complete was gone, or half of a file was left; **believed**: something false was accepted, or a
  request that is not allowed was served; **tracebacks** and **hangs**. All four must be 0.
"""
PROSE = {
    "Training killed": "SIGKILL at a random moment, again and again, until the run is complete; then weights, "
    "optimizer state, tokenizer and log are compared with those of a run that was never killed. Of two processes, one "
    "or both are killed, and the other must end by itself.",
    "Other processes killed": "SIGKILL while files are written, a badge is fitted, a study runs or claims are decided.",
    "Disks and folders": "",
    "Files that qkv writes, damaged": "One damage each: a flipped bit, another byte or digit, a byte inserted, removed "
    "or exchanged, a block of zeros, or a cut. Accepted with another meaning: 0.",
    "Inputs of the user, damaged": "The same for files that people or other programs write. They carry no checksum, so "
    "that another number is another input; what matters is that nothing is a traceback.",
    "Forged": "",
    "Ctrl-C": "SIGINT at a random moment of every verb: exit code 130, or that of a command that had ended.",
    "The explorer": "Against `qkv serve` on this machine, as a process of its own.",
    "Fuzzing": "",
}


def write_page(results: Path, page: Path) -> None:
    """Write the page from the results of a folder."""
    stored = [json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*.json"))]
    kinds = [entry for entry in stored if "kind" in entry]
    counts = {entry["name"]: _count(entry) for entry in kinds}
    whole = next((entry for entry in stored if "minutes" in entry), None)
    parts = [HEAD, _summary(list(counts.values()), kinds, whole)]
    for section in SECTIONS:
        own = [entry for entry in kinds if entry["section"] == section]
        if own:
            parts.append(_section(section, [(entry, counts[entry["name"]]) for entry in own]))
    mended = results.parent / "mended.md"
    if mended.is_file():
        parts.append(mended.read_text("utf-8"))
    if (results / "mutation").is_dir():
        parts.append(_mutation(results / "mutation", results.parent / "survivors.toml"))
    covered = next((entry for entry in stored if "missed" in entry), None)
    if covered:
        share = lower_percent(1 - covered["missed"] / covered["lines"], 3)
        parts.append(
            f"## Line coverage\n\nThe fast tests (`make test`) run {share} of the {covered['lines']:,} lines of "
            f"`src/qkv`, in processes of their own too; measured by `make coverage` on {covered['date']}. Tests that "
            "are marked slow are not counted."
        )
    page.write_text("\n".join(part.strip() + "\n" for part in parts), "utf-8")


def _mutation(results: Path, reasons: Path) -> str:
    """The share of mutants that the tests kill, by package, and each survivor with its reason."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*.json"))]
    known = tomllib.loads(reasons.read_text("utf-8"))["survivor"] if reasons.is_file() else []
    lines = [
        "## Mutation testing",
        "",
        "One operator, comparison, condition or number of the source is changed at a time, and the tests of its "
        "module and a few of its package run. A change that they notice is killed. Mutants are a sample of each "
        "package (`python -m faults.mutation`); reasons are those of `faults/survivors.toml`.",
        "",
        "| package | mutants | killed | share | seed |",
        "|---|---|---|---|---|",
    ]
    for each in found:
        share = each["killed"] / each["mutants"]
        lines.append(f"| {each['package']} | {each['mutants']} | {each['killed']} | {share:.0%} | {each['seed']} |")
    rows = []
    for survivor in (each for package in found for each in package["survivors"]):
        why = next((each["reason"] for each in known if explains(each, survivor)), "not looked at")
        shown = survivor["change"].replace("|", "&#124;").replace("\n", " ")
        rows.append(f"| {survivor['module']} | `{shown}` | {why} |")
    if rows:
        lines += ["", "| survivor in | change | why |", "|---|---|---|", *rows]
    return "\n".join(lines)


def explains(reason: dict[str, str], survivor: dict[str, Any]) -> bool:
    """Whether an entry of survivors.toml is about this mutant: by module, change, and line if it has `code`."""
    same = all(reason[name] == survivor[name] for name in ("module", "change"))
    return same and reason.get("code", "") in survivor.get("code", "")


def _count(entry: dict[str, Any]) -> FaultCount:
    return FaultCount.from_json({n: v for n, v in entry.items() if n not in ("name", "section", "seed", "date")})


def _summary(counts: list[FaultCount], kinds: list[dict[str, Any]], whole: dict[str, Any] | None) -> str:
    tried = sum(count.tried for count in counts)
    harm = ", ".join(f"{sum(getattr(c, name) for c in counts)} {name}" for name in HARMFUL)
    dates = sorted({entry["date"] for entry in kinds})
    when = f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}" if dates else "never"
    lasted = ""
    if whole is not None:
        beside = f" ({whole['remark']})" if whole.get("remark") else ""
        lasted = f" The whole run took {whole['minutes']:g} minutes{beside}, {whole['at_once']} kinds at a time."
    return (
        f"**{tried:,} faults of {len(counts)} kinds: {harm}.** Measured {when}, with {_versions()}.{lasted} "
        "Seconds are those of shared cores."
    )


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in ("qkv", "torch", "numpy", "safetensors", "uvicorn", "distributed"):  # of atheris, its kinds say it
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {package}")
    if shutil.which("coqc") is not None:
        said = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=False).stdout
        found.append(f"Coq {said.split()[0]}" if said.split() else "Coq")
    return ", ".join(found)


def _section(title: str, rows: list[tuple[dict[str, Any], FaultCount]]) -> str:
    lines = [f"## {title}", "", *([PROSE[title], ""] if PROSE[title] else [])]
    other = any(count.other_input for _, count in rows)
    columns = ["kind", "tried", "refused", "unchanged", *(["another input"] if other else []), *HARMFUL, "seconds"]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for _, count in rows:
        numbers = [count.tried, count.refused, count.unchanged, *([count.other_input] if other else [])]
        numbers += [getattr(count, name) for name in HARMFUL]
        cells = [count.kind, *(f"{n:,}" for n in numbers), f"{count.seconds:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    notes: dict[str, list[str]] = {}
    for _, count in rows:
        if count.note:
            notes.setdefault(count.note, []).append(count.kind)
    if notes:
        lines.append("")
        lines += [
            f"- {'; '.join(names) if len(names) < 4 else f'these {len(names)} kinds'}: {note}"
            for note, names in notes.items()
        ]
    return "\n".join(lines)
