"""Claim blocks of a goal with a construction put in, and what qkv.claims says of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from qkv.claims import check
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import instances
from qkv.claims.semantics.shorthands import without_shorthands
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.limit_statements import path_of
from qkv.claims.symbolic.printing import scalar_text
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import read
from qkv.claims.time_limit import TimedOut, time_limit
from qkv.sheets.problems.problem import SCALE

SECONDS = 10.0  # for one statement
SHOWN_ITEMS = 10  # the number of items for which numbers are shown
LIMITS = re.compile(r"\s+as\s+(.*?)(?=\s+(?:when|for)\s|$)")


@dataclass(frozen=True)
class Found:
    """What was found on the statements of one block.

    Attributes:
        kind: "proved", "refuted", "conditional" or "unknown".
        because: The reason, of the first statement that decides.
        block: The block of claims that was checked.
        says: The statement that `because` speaks of.
    """

    kind: str
    because: str
    block: str
    says: str = ""


def block_of(given: tuple[str, ...], let: tuple[str, ...], then: tuple[str, ...]) -> str:
    """A claim block as text."""
    lines = [f"given {one}" for one in given] + [f"let {one}" for one in let] + [f"then {one}" for one in then]
    return "\n".join(lines)


def decided(given: tuple[str, ...], let: tuple[str, ...], then: tuple[str, ...]) -> Found:
    """All statements of a block together: refuted if one is, proved if all are."""
    block = block_of(given, let, then)
    verdicts = _verdicts(block)
    for kinds, kind in (
        (("refuted",), "refuted"),
        (("undecided", "malformed"), "unknown"),
        (("conditional",), "conditional"),
    ):
        for verdict, because, says in verdicts:
            if verdict in kinds:
                return Found(kind, because, block, says)
    if not verdicts:
        return Found("unknown", "it could not be read as a claim", block)
    return Found("proved", verdicts[0][1], block, verdicts[0][2])


@lru_cache(maxsize=4096)
def _verdicts(block: str) -> tuple[tuple[str, str, str], ...]:
    """The verdicts on a block; sheets of a class share most blocks."""
    found = check(f"~~~claim answer\n{block}\n~~~", SECONDS)
    return tuple((v.verdict, v.because, v.says) for v in found)


def in_limit(goal: str, scales: tuple[str, ...], to: str = "oo") -> str:
    """A goal with its scales named in the limit; without a scale that limit is left out."""
    found = LIMITS.search(goal)
    if found is None:
        return goal
    limits = [one.strip() for one in found[1].split(",") if one.strip()]
    kept: list[str] = []
    for one in limits:
        if one.replace(" ", "") == f"{SCALE}->oo":
            kept += [f"{scale} -> {to}" for scale in scales]
        else:
            kept.append(one)
    if kept:
        return goal[: found.start()] + " as " + ", ".join(kept) + goal[found.end() :]
    return goal[: found.start()].replace("->", "=", 1) + goal[found.end() :]


@dataclass(frozen=True)
class Shown:
    """A number under a construction: as a formula, and its value at a few items."""

    formula: str
    value: float


def shown(given: tuple[str, ...], let: tuple[str, ...], quantity: str, vanishing: tuple[str, ...]) -> Shown | None:
    """The formula of a weight after the noise has vanished, and its value for SHOWN_ITEMS items; None without one."""
    return _shown(block_of(given, let, ()), quantity, vanishing)


@lru_cache(maxsize=1024)
def _shown(block: str, quantity: str, vanishing: tuple[str, ...]) -> Shown | None:
    limits = " as " + ", ".join(f"{size} -> 0" for size in vanishing) if vanishing else ""
    statement = f"{quantity} -> 0{limits}" if limits else f"{quantity} = 0"
    try:
        with time_limit(SECONDS):
            (claim,) = read(f"~~~claim shown\n{block}\nthen {statement}\n~~~")
            if not isinstance(claim, L.Claim):
                return None
            case = instances(build_context(without_shorthands(claim)))[0].context
            core = case.claim.statement.core
            if isinstance(core, L.Limit):
                expression = Evaluator(case, path_of(case, core.approach, core.at).vanished).value(core.left).number()
            elif isinstance(core, L.Relation):
                expression = Evaluator(case).value(core.sides[0]).number()
            else:
                return None
            number = expression.subs({s: SHOWN_ITEMS for s in expression.free_symbols if str(s) == "n"})
            value = float(sp.N(number))
    except (TimedOut, Exception):  # it is only for the message: without a number the message says less
        return None
    return Shown(scalar_text(expression), value)
