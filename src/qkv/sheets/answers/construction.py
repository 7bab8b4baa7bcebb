"""Construction, Outcome: what an author answers, in the language of claims; names in such expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import UnparsedClaim, read

NAME = re.compile(r"(?<![A-Za-z_0-9])([A-Za-z]+)(_(?:\{[^{}]*\}|[A-Za-z0-9]+))?")
FUNCTIONS = frozenset({
    "exp", "log", "sqrt", "norm", "Phi", "sum", "softmax", "sigmoid", "max", "min", "sin", "cos", "tanh", "abs",
    "inner", "diag", "trace", "inv", "E", "Var", "Cov", "cases", "if", "otherwise", "I", "e", "pi", "ones",
})  # fmt: skip


OTHER_GAMMA = "gammascale"
"""An author's scale called gamma, which in the language of problems is the number that varies."""


@dataclass(frozen=True)
class Length:
    """The author's letter for the length of a key: the length is the letter plus `offset`, as in k_a = (1 + x) mu_a."""

    letter: str
    offset: int = 0


@dataclass(frozen=True)
class Construction:
    """The author's values for the holes of a question.

    Attributes:
        values: Pairs of a hole and an expression in the language of claims, such as ("q", "t*(k_a + k_b)").
        line: The line of the sheet on which it stands.
        written: The construction as the author wrote it.
        large: Letters that the sheet says to be large.
        small: Letters that the sheet says to be small.
        fixed: Pairs of a letter and the number that the sheet puts for it.
        same: Whether several scales are said to be equal.
        supposed: What was put for numbers that may be any, such as "c_j = 2"; such a construction can only fail.
    """

    values: tuple[tuple[str, str], ...]
    line: int = 0
    written: str = ""
    large: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    fixed: tuple[tuple[str, str], ...] = ()
    same: bool = False
    supposed: str = ""

    def value(self, hole: str) -> str | None:
        """The author's expression for a hole, or None."""
        return dict(self.values).get(hole)


@dataclass(frozen=True)
class Outcome:
    """What the author says that an output does.

    Attributes:
        output: The output that it speaks of: "c", "c_1" or "c_2", or a weight such as "alpha_a".
        value: What it is said to approach, in the language of claims.
        condition: Under which condition, in the language of claims; empty if none was said.
        line: The line of the sheet.
        written: As the author wrote it.
        moves: Whether it is said that the output varies, and not that it approaches the value.
        in_words: Whether the condition was read from words, so that it does not fail an outcome by itself.
        loose: Whether the words name no output, so that they can agree with a goal but not fail it.
        queries: Queries that the same sentence puts in the place of those of the earlier part.
        compares: Whether it says that the output is nearer to the value than to the other one, not that it is there.
        rest: The words after it in its sentence.
    """

    output: str
    value: str
    condition: str = ""
    line: int = 0
    written: str = ""
    moves: bool = False
    in_words: bool = False
    loose: bool = False
    queries: tuple[tuple[str, str], ...] = ()
    compares: bool = False
    rest: str = ""


def renamed(expression: str, change: Callable[[str, str], str | None]) -> str:
    """An expression with names changed: `change(base, index)` gives the new text, or None to leave it."""

    def one(found: re.Match[str]) -> str:
        base, index = found[1], (found[2] or "")[1:].strip("{}")
        if base == "sum" or (base in FUNCTIONS and not index):
            return found[0]
        new = change(base, index)
        return found[0] if new is None else new

    return NAME.sub(one, expression)


def names(expression: str) -> list[tuple[str, str]]:
    """Every name of an expression with its index, in order, each once."""
    found: list[tuple[str, str]] = []

    def note(base: str, index: str) -> None:
        if (base, index) not in found:
            found.append((base, index))

    renamed(expression, note)
    return found


def joined(base: str, index: str) -> str:
    """A name as the language of claims writes it."""
    if not index:
        return base
    return (
        f"{base}_{index}"
        if re.fullmatch(r"[A-Za-z0-9]", index) or re.fullmatch(r"[A-Za-z]+|\d+", index)
        else (f"{base}_{{{index}}}")
    )


def is_expression(text: str) -> bool:
    """Whether a text is one expression of the language of claims."""
    plain = re.sub(r"sum_\{[^{}]*\}", "", text)
    if not text.strip() or len(text) > 500 or any(sign in plain for sign in ("\n", "`", "~~~", "->", "=", "<", ">")):
        return False
    found = read(f"~~~claim e\nlet w = {text}\nthen 0 = 0\n~~~")
    return len(found) == 1 and not isinstance(found[0], UnparsedClaim)


def declared_names(given: tuple[str, ...], let: tuple[str, ...]) -> set[str]:
    """The letters that givens and definitions speak of, without their indices."""
    block = [f"given {one}" for one in given] + [f"let {one}" for one in let] + ["then 0 = 0"]
    found = {"n", "v", "I"}
    if any("orthonormal bas" in one for one in given):
        found |= {"a", "b", "m", "p"}  # columns of A and B, and how many there are
    for claim in read("\n".join(["~~~claim d", *block, "~~~"])):
        if isinstance(claim, L.Claim):
            found |= {node.base for node in L.nodes((*claim.given, *claim.lets)) if isinstance(node, L.Name)}
    return found
