"""A thousand statements with known truth, written from the language reference alone, run through `qkv.check`.

statements/README.md explains the tags, statements/oracle.py checks them without qkv. All statements are marked slow; the default suite
runs every twelfth.
"""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

import qkv

STATEMENTS = Path(__file__).parent / "statements"
SAMPLE_STEP = 12
VERDICTS = ("proved", "conditional", "holds", "undecided", "refuted", "malformed")


@dataclasses.dataclass(frozen=True)
class Statement:
    """One claim with its known truth.

    Attributes:
        ident: Section and place in it, as `limits-one.3`.
        head: The `given` and `let` lines.
        tag: `T` (true, core), `T?` (conditional is right too), `t` (true, beyond the core), `F` (false), `M` (malformed).
        claim: What follows `then`.
        why: The derivation in short.
    """

    ident: str
    head: tuple[str, ...]
    tag: str
    claim: str
    why: str

    @property
    def topic(self) -> str:
        """The class, which is the first word of the section."""
        return self.ident.partition("-")[0]

    def block(self) -> str:
        """The claim as a fenced block."""
        return "\n".join(["```claim " + self.ident, *self.head, "then " + self.claim, "```"])


def read_statements(path: Path) -> Iterable[Statement]:
    """Read the statements of one file, in order."""
    section, head, count, fenced, closed = "", list[str](), 0, False, False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section, head, count, closed = line[3:].strip(), [], 0, False
        elif line.startswith("```"):
            fenced = not fenced
        elif fenced and line.strip():
            word, _, rest = line.strip().partition(" ")
            if word in ("given", "let"):
                if closed:
                    head, closed = [], False
                head.append(f"{word} {rest.strip()}")
            else:
                closed, count = True, count + 1
                claim, _, why = rest.partition(" # ")
                yield Statement(f"{section}.{count}", tuple(head), word, claim.strip(), why.strip())


def all_statements() -> list[Statement]:
    """Every statement of every class."""
    return [s for path in sorted(STATEMENTS.glob("*.md")) if path.name != "README.md" for s in read_statements(path)]


def run(statements: list[Statement]) -> tuple[list[str], str]:
    """Check statements.

    Args:
        statements: What to check.

    Returns:
        What is not as demanded, and a table of verdicts by class and tag with the statements behind it.
    """
    table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    found: list[tuple[Statement, str, float]] = []
    for s in statements:
        start = time.perf_counter()
        (verdict,) = qkv.check(s.block())
        found.append((s, verdict.verdict, time.perf_counter() - start))
        table[s.topic, s.tag.rstrip("?")][verdict.verdict] += 1
    lines = [f"{'class':12} tag " + " ".join(f"{v:>11}" for v in VERDICTS)]
    for (topic, tag), row in sorted(table.items()):
        lines.append(f"{topic:12} {tag:3} " + " ".join(f"{row[v]:11}" for v in VERDICTS))
    problems = []
    core = [(s, v) for s, v, _ in found if s.tag.startswith("T")]
    decided = [s for s, v in core if v == "proved" or (v == "conditional" and s.tag == "T?")]
    false = [(s, v) for s, v, _ in found if s.tag == "F"]
    true = [(s, v) for s, v, _ in found if s.tag[0] in "Tt"]
    wrong = [("false, proved", s) for s, v in false if v == "proved"] + [
        ("true, refuted", s) for s, v in true if v == "refuted"
    ]
    wrong += [("accepted though malformed", s) for s, v, _ in found if s.tag == "M" and v != "malformed"]
    problems += [f"{what}: {s.ident} {s.claim} [{'; '.join(s.head)}]" for what, s in wrong]
    if len(decided) < 0.9 * len(core):
        problems.append(f"only {len(decided)} of {len(core)} true core statements are proved")
    held = [s for s, v in false if v == "holds"]
    if len(held) > 0.03 * len(false):
        problems.append(f"{len(held)} of {len(false)} false statements hold")
    lines += [f"false, holds: {s.ident} {s.claim} [{'; '.join(s.head)}]" for s in held]
    lines += [
        f"true core, {v}: {s.ident} {s.claim} [{'; '.join(s.head)}]"
        for s, v in core
        if s not in decided and v != "refuted"
    ]
    slowest = sorted(found, key=lambda f: -f[2])[:10]
    lines += [f"{seconds:.2f} s: {s.ident} {s.claim}" for s, _, seconds in slowest]
    return problems, "\n".join(lines)


def test_statement_files_are_readable() -> None:
    statements = all_statements()
    assert len(statements) >= 1000
    assert len({s.ident for s in statements}) == len(statements)
    assert {s.tag for s in statements} <= {"T", "T?", "t", "F", "M"}
    assert all(s.why for s in statements)
    tags = collections.Counter(s.tag[0] for s in statements)
    assert tags["F"] >= 0.4 * len(statements)


def test_sample_of_statements() -> None:
    problems, table = run(all_statements()[::SAMPLE_STEP])
    assert not problems, "\n".join([*problems, table])


@pytest.mark.slow
def test_all_statements() -> None:
    problems, table = run(all_statements())
    assert not problems, "\n".join([*problems, table])
