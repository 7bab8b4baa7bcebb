"""A thousand statements with known truth, written from the language reference alone, run through `qkv.check`.

statements/README.md explains the tags. The test of all statements is marked slow; the default suite runs every 36th.
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
HELD_OUT = tuple(Path(__file__).parent / "held_out" / name for name in ("before.md", "after.md"))
HARD = Path(__file__).parent / "hard_statements" / "attack.md"
FRESH = sorted((Path(__file__).parent / "hard_statements").glob("fresh_*.md"))
SAMPLE_STEP = 36
VERDICTS = ("proved", "conditional", "holds", "undecided", "refuted", "malformed")


@dataclasses.dataclass(frozen=True)
class Statement:
    """One claim with its known truth.

    Attributes:
        ident: Section and place in it, as `limits-one.3`.
        head: The `given` and `let` lines.
        tag: `T` true, `T?` true where `conditional` is right too, `F` false, `M` malformed.
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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What `qkv.check` says of one statement, and in how many seconds."""

    statement: Statement
    verdict: str
    seconds: float

    def __str__(self) -> str:
        s = self.statement
        return f"{self.verdict}: {s.ident} [{s.tag}] {s.claim} [{'; '.join(s.head)}]"

    @property
    def is_decided(self) -> bool:
        """Whether a true statement got the verdict that it should get."""
        return self.verdict == "proved" or (self.verdict == "conditional" and self.statement.tag == "T?")


def check_all(statements: list[Statement]) -> list[Outcome]:
    """Check statements one by one."""
    outcomes = []
    for s in statements:
        start = time.perf_counter()
        (verdict,) = qkv.check(s.block())
        outcomes.append(Outcome(s, verdict.verdict, time.perf_counter() - start))
    return outcomes


def with_tag(outcomes: list[Outcome], tags: str) -> list[Outcome]:
    """The outcomes of statements whose tag begins with one of some letters."""
    return [o for o in outcomes if o.statement.tag[0] in tags]


def problems(outcomes: list[Outcome], least_proved: float = 0.9) -> list[str]:
    """What is not as demanded, with a share of the true statements that must be proved."""
    true, false = with_tag(outcomes, "T"), with_tag(outcomes, "F")
    found = [f"false, {o}" for o in false if o.verdict == "proved"]
    found += [f"true, {o}" for o in true if o.verdict == "refuted"]
    found += [f"malformed, {o}" for o in with_tag(outcomes, "M") if o.verdict != "malformed"]
    decided = sum(o.is_decided for o in true)
    if decided < least_proved * len(true):
        found.append(f"only {decided} of {len(true)} true statements are proved")
    held = sum(o.verdict == "holds" for o in false)
    if held > 0.03 * len(false):
        found.append(f"{held} of {len(false)} false statements hold")
    return found


def table(outcomes: list[Outcome]) -> str:
    """Verdicts by class and tag, then the statements that are not decided as they should be, then the slowest ones."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for o in outcomes:
        counts[o.statement.topic, o.statement.tag[0]][o.verdict] += 1
    lines = [f"{'class':12} tag " + " ".join(f"{v:>11}" for v in VERDICTS)]
    for (topic, tag), row in sorted(counts.items()):
        lines.append(f"{topic:12} {tag:3} " + " ".join(f"{row[v]:11}" for v in VERDICTS))
    lines += [f"false, {o}" for o in with_tag(outcomes, "F") if o.verdict == "holds"]
    lines += [f"true, {o}" for o in with_tag(outcomes, "T") if not o.is_decided]
    lines += [f"{o.seconds:.2f} s, {o}" for o in sorted(outcomes, key=lambda o: -o.seconds)[:10]]
    return "\n".join(lines)


def test_statement_files_are_readable() -> None:
    statements = all_statements()
    assert len(statements) >= 1000
    assert len({s.ident for s in statements}) == len(statements)
    assert {s.tag for s in statements} <= {"T", "T?", "F", "M"}
    assert all(s.why for s in statements)
    tags = collections.Counter(s.tag[0] for s in statements)
    assert tags["F"] >= 0.4 * len(statements)


@pytest.mark.slow
def test_sample_of_statements() -> None:
    outcomes = check_all(all_statements()[::SAMPLE_STEP])
    assert not problems(outcomes), "\n".join([*problems(outcomes), table(outcomes)])


@pytest.mark.slow
def test_all_statements() -> None:
    outcomes = check_all(all_statements())
    assert not problems(outcomes), "\n".join([*problems(outcomes), table(outcomes)])


def held_out_statements() -> list[Statement]:
    """Statements that the prover was not developed on."""
    return [s for path in HELD_OUT for s in read_statements(path)]


@pytest.mark.slow
def test_sample_of_held_out_statements() -> None:
    statements = held_out_statements()
    assert len(statements) >= 300
    assert {s.tag for s in statements} <= {"T", "F"}
    outcomes = check_all(statements[::34])
    assert not problems(outcomes), "\n".join([*problems(outcomes), table(outcomes)])


@pytest.mark.slow
def test_all_held_out_statements() -> None:
    outcomes = check_all(held_out_statements())
    assert not problems(outcomes), "\n".join([*problems(outcomes), table(outcomes)])


def unsound(step: int) -> list[Outcome]:
    """False hard statements that are proved, and true ones that are refuted, among every step-th."""
    outcomes = check_all(list(read_statements(HARD))[::step])
    return [o for o in outcomes if (o.statement.tag, o.verdict) in (("F", "proved"), ("T", "refuted"))]


def test_sample_of_hard_statements() -> None:
    assert len(list(read_statements(HARD))) > 1200
    assert not unsound(86)


@pytest.mark.slow
def test_all_hard_statements() -> None:
    assert not unsound(1)


def fresh_statements() -> list[Statement]:
    """Statements in the wider language, written from the reference alone."""
    return [s for path in FRESH for s in read_statements(path)]


@pytest.mark.slow
def test_sample_of_fresh_statements() -> None:
    statements = fresh_statements()
    assert len(statements) > 2400 and all(s.why for s in statements)
    assert len({s.ident for s in statements}) == len(statements)
    outcomes = check_all(statements[::114])
    assert not problems(outcomes, 0.8), "\n".join([*problems(outcomes, 0.8), table(outcomes)])


@pytest.mark.slow
def test_all_fresh_statements() -> None:
    outcomes = check_all(fresh_statements())
    assert not problems(outcomes), "\n".join([*problems(outcomes), table(outcomes)])
