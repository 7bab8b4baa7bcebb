"""`python -m benchmarks [NAME…]`: run benchmarks, store their figures, and write docs/benchmarks.md from all of them.

The list under "Performance" in README.md is written from the same figures.

rows.toml says what each row of the page asks and how each script is run; results/ holds the last JSON line of each
script with date and versions. A figure that was copied by hand before is kept, with its date, until its script runs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS, ROWS, PAGE = HERE / "results", HERE / "rows.toml", HERE.parent / "docs" / "benchmarks.md"
PICTURE = HERE.parent / "docs" / "pictures" / "scale.svg"
README = HERE.parent / "README.md"
PACKAGES = ("qkv", "torch", "numpy", "scipy", "clarabel", "sympy", "transformers")
MAX_SHOWN = 8
"""Figures of a row without a template."""
PANELS, LEAST_SHOWN = 6, 1e-3
"""Curves in a row of the picture, and the seconds or gigabytes below which none is drawn."""
HEAD = """# Benchmarks

Each row comes from a script in `benchmarks/`, which measures qkv and its peer on the same work in one run and prints
its figures as JSON on its last line. `make bench` runs the scripts and writes this page from those lines, which
`benchmarks/results` holds with date and versions; `make bench ONLY=blend` runs one. Figures were taken on two shared
cores. Every design in them carries its certificate.
"""
BY_HAND = "\nA date with * stands at figures that were copied by hand from such a line before `make bench` existed.\n"


def main() -> int:
    """Run what the command line names, or all scripts that need no arguments, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="Names of scripts; all that need no arguments if none is given.")
    parser.add_argument("--page", action="store_true", help="Only write the page from stored results.")
    parser.add_argument("--arguments", default="", help="Arguments of the one script that is named.")
    given = parser.parse_args()
    scripts = {script["name"]: script for script in tomllib.loads(ROWS.read_text("utf-8"))["script"]}
    unknown = [name for name in given.names if name not in scripts]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(scripts)}")
    failed = []
    if not given.page:
        free = [name for name, script in scripts.items() if not script.get("needs_arguments")]
        failed = [name for name in given.names or free if not run(name, given.arguments)]
    PAGE.write_text(page(), "utf-8")
    README.write_text(with_performance(README.read_text("utf-8")), "utf-8")
    draw_scale(json.loads((RESULTS / "scale.json").read_text("utf-8"))["figures"]["curves"])
    if failed:
        sys.stdout.write(f"failed, and their last figures are kept: {', '.join(failed)}\n")
    return 1 if failed else 0


def run(name: str, arguments: str) -> bool:
    """Run a script and store its last line; whether it worked."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments.split()]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    try:
        figures = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        figures = None
    if done.returncode != 0 or not isinstance(figures, dict):
        return False
    stored = {
        "script": name,
        "arguments": arguments,
        "date": str(datetime.date.today()),
        "seconds": round(time.monotonic() - began, 1),
        "versions": versions(),
        "cores": os.cpu_count(),
        "figures": figures,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return True


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the figures depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def page() -> str:
    """The page, from the rows and all stored results."""
    described = tomllib.loads(ROWS.read_text("utf-8"))
    stored = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    by_hand = any(found.get("copied_by_hand") for found in stored.values())
    lines = [HEAD + BY_HAND * by_hand, "| question | against | measured | date |", "|---|---|---|---|"]
    used: set[str] = set()
    for row in described["row"]:
        script = f" (`benchmarks/{row['script']}.py`)" if row["script"] not in used else ""
        cell = measured(row, stored.get(row["script"]))
        if cell is not None:
            used.add(row["script"])
            lines.append(f"| {row['question']}{script} | {row['against']} | {cell[0]} | {cell[1]} |")
    if "scale" in stored:
        lines += ["", scale_table(stored["scale"])]
    taken = sorted({json.dumps(found["versions"]) for found in stored.values() if found.get("versions")})
    if taken:
        words = ["; ".join(f"{name} {version}" for name, version in json.loads(each).items()) for each in taken]
        lines += ["", f"Versions of the figures with a plain date: {' / '.join(words)}."]
    lines += ["", "To measure again, from the folder of the source:", "", "```sh"]
    for script in described["script"]:
        command = f"python benchmarks/{script['name']}.py {script['arguments']}".strip()
        lines.append(f"{command:<40} # {script['comment']}" if script["comment"] else command)
    return "\n".join([*lines, "```"]) + "\n"


def with_performance(readme: str) -> str:
    """The README with its list of performance, the items below that heading, as the stored results say."""
    items = []
    for row in tomllib.loads(ROWS.read_text("utf-8"))["readme"]:
        stored = json.loads((RESULTS / f"{row['script']}.json").read_text("utf-8"))
        items.append(f"- {filled(row['measured'], stored['figures'])}\n")
    before, heading, after = readme.partition("\n## Performance\n")
    own, following, rest = after.partition("\n## ")
    kept = [line for line in own.splitlines(keepends=True) if not line.startswith("- ")]
    return "".join((before, heading, *kept, *items, following, rest))


def measured(row: dict[str, Any], stored: dict[str, Any] | None) -> tuple[str, str] | None:
    """What was measured and when: a template with figures, the figures alone, or what was copied by hand."""
    if stored is None:
        return None
    if stored.get("figures") is None:
        for copied in stored.get("copied_by_hand", ()):
            if copied["question"] == row["question"]:
                return copied["measured"], f"{copied['date']}*"
        return None
    try:
        words = filled(row["measured"], stored["figures"])
    except (KeyError, ValueError, TypeError):
        scalars = {name: value for name, value in stored["figures"].items() if isinstance(value, int | float | str)}
        words = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in [*scalars.items()][:MAX_SHOWN])
        if not words:
            words = f"see `benchmarks/results/{row['script']}.json`"
    return words, stored["date"]


def filled(template: str, figures: dict[str, Any]) -> str:
    """A template such as "{peer[seconds]:.2f} s" with figures of a JSON object; keys may hold any characters but ]."""

    return template.format_map(_Figures(figures))


class _Figures(dict[Any, Any]):
    """A JSON object whose names may look like numbers, which str.format takes for indices."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(str(key))
        return _Figures(found) if isinstance(found, dict) else found


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def scale_table(stored: dict[str, Any]) -> str:
    """Time and memory of every verb against its size, with exponents, and what the limit says."""
    lines = [
        "## Time and memory against size",
        "",
        f"Seconds of one core, fitted to the larger sizes ({stored['date']}, `benchmarks/scale.py`): time and memory "
        "grow as a power of the size. Memory is the most that the process held, less what it held before.",
        "",
        "![Time and memory of each verb against its size, both axes logarithmic](pictures/scale.svg)",
        "",
        "| verb | size | from | to | time at the largest | time grows as | memory at the largest | memory grows as |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for curve in stored["figures"]["curves"]:
        last, name = curve["points"][-1], curve["size"]
        grows = [
            f"{name}^{power_of(curve, key)}" if curve[key] is not None else "–"
            for key in ("time_power", "memory_power")
        ]
        lines.append(
            f"| {curve['verb']} | {curve['what']} | {name} = {curve['points'][0]['size']:,} | {last['size']:,} | "
            f"{last['seconds']:.2f} s | {grows[0]} | {last['megabytes']:,.0f} MB | {grows[1]} |"
        )
    lines += ["", "What is said beyond a limit:", "", "| request | answer |", "|---|---|"]
    lines += [f"| {limit['request']} | {limit['answer']} |" for limit in stored["figures"]["limits"]]
    return "\n".join(lines)


def power_of(curve: dict[str, Any], key: str) -> str:
    """A fitted power with one decimal, without the minus sign of a rounded zero."""
    return f"{round(curve[key], 1) + 0.0:.1f}"


def draw_scale(curves: list[dict[str, Any]]) -> None:
    """Draw the curves, a panel for each verb, all with the same vertical axis."""
    from qkv.viz.theme import rc_context, save, tokens

    with rc_context():
        save(scale_figure(curves, tokens()), PICTURE)


def scale_figure(curves: list[dict[str, Any]], colours: dict[str, str]) -> Any:
    """Panels of seconds and gigabytes against size on logarithmic axes, with the powers in the titles' place."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    rows = -(-len(curves) // PANELS)
    drawn = Figure(figsize=(10.5, 1.45 * rows + 0.5), layout="constrained")
    panels = drawn.subplots(rows, PANELS, sharey=True, squeeze=False).ravel()
    series = (("seconds", 1.0, "time_power", "item-a"), ("megabytes", 1e-3, "memory_power", "item-b"))
    for panel, curve in zip(panels, curves, strict=False):
        panel.set_xscale("log")
        panel.set_yscale("log")
        sizes = [point["size"] for point in curve["points"]]
        for row, (unit, scale, power, colour) in enumerate(series):
            shown = [(n, scale * point[unit]) for n, point in zip(sizes, curve["points"], strict=True)]
            shown = [(n, value) for n, value in shown if value >= LEAST_SHOWN]
            panel.plot(*zip(*shown, strict=True), "o-", color=colours[colour], markersize=3, linewidth=1.4)
            if curve[power] is not None:
                panel.text(
                    0.04, 0.97 - 0.17 * row, f"n^{power_of(curve, power)}", transform=panel.transAxes, va="top",
                    fontsize=8, color=colours[colour],
                )  # fmt: skip
        panel.set_title(curve["verb"], fontsize=9, pad=4)
        panel.set_xticks([sizes[0], sizes[-1]], [f"{sizes[0]:,}", f"{sizes[-1]:,}"], fontsize=7.5)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.get_ticklabels()[0].set_horizontalalignment("left")
        panel.xaxis.get_ticklabels()[-1].set_horizontalalignment("right")
        panel.set_ylim(LEAST_SHOWN, 1000)
        panel.set_yticks([0.01, 1, 100], ["0.01", "1", "100"], fontsize=7.5)
        panel.yaxis.set_minor_locator(NullLocator())
    for panel in panels[len(curves) :]:
        panel.set_axis_off()
    drawn.suptitle(" ", fontsize=9)
    for row, (name, colour) in enumerate((("seconds of one core", "item-a"), ("memory in GB", "item-b"))):
        drawn.text(0.02 + 0.2 * row, 0.998, name, color=colours[colour], va="top", fontweight="bold")
    return drawn


if __name__ == "__main__":
    sys.exit(main())
