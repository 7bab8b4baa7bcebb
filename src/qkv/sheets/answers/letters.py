"""put_in: a construction in the letters of the problem, with the numbers that are made large."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from qkv.sheets.answers.construction import Construction, declared_names, is_expression, joined, names, renamed
from qkv.sheets.answers.wording import people_write
from qkv.sheets.problems.problem import SCALE, Problem, Question

FRESH = ("t", "s", "r", "w", "z")  # names for scales whose own letter means something else in claims
SIZES = ("n", "d")
"""Letters of sizes, which a construction may use but which are not made large for it."""
RESERVED = (
    "c",
    "alpha",
    "e",
    "v",
    "q",
    "k",
    "I",
    "A",
    "B",
    "M",
    "K",
    "Q",
    "V",
    "E",
    "R",
    "eps",
    "gamma",
    "m",
    "x",
    "y",
    "n",
    "d",
    "oo",
)


@dataclass(frozen=True)
class Put:
    """A construction in the letters of the problem.

    Attributes:
        values: Pairs of a hole and its expression.
        scales: The numbers that are made large.
        letters: For each letter that was changed, the author's, to say results in the author's notation.
        sizes: Sizes such as n that the expressions use.
    """

    values: tuple[tuple[str, str], ...]
    scales: tuple[str, ...]
    letters: dict[str, str]
    sizes: tuple[str, ...] = ()

    def said(self, text: str) -> str:
        """An expression as the author would write it."""
        return people_write(text.replace("eps -> 0", "noise -> 0"), self.letters)

    def written(self) -> str:
        """All values as the author would write them."""
        return ", ".join(f"{hole} = {self.said(value)}" for hole, value in self.values)


def put_in(question: Question, construction: Construction, problem: Problem | None) -> Put | None:
    """A construction in the letters of the problem, or None if it is not an expression of the language."""
    declared = declared_names(question.given, question.let)
    change = families(declared, problem)
    values: list[tuple[str, str]] = []
    letters: dict[str, str] = {}
    scales: list[str] = []
    sizes: list[str] = []
    taken = {base for _, value in construction.values for base, _ in names(value)} | declared
    fresh = [name for name in FRESH if name not in taken]
    fixed = dict(construction.fixed)
    named: dict[tuple[str, str], str] = {}

    def one(base: str, index: str) -> str | None:
        family = change(base, index)
        if family is not None:
            letters.setdefault(family, base)
            return joined(family, index)
        if index and not index.isdigit() and base in declared:
            return None
        varies = bool(question.varies) and joined(base, index) == question.varies
        family_letter = not index and base in ("k", "mu", "u", "v")  # a scale that is called like vectors
        if (
            base in declared
            and base not in ("c", "alpha")
            and not varies
            and not (base == "n" and index)
            and not family_letter
        ):
            if base in SIZES and base not in sizes:
                sizes.append(base)
            return None
        own = joined(base, index)
        if own in fixed:
            return f"({fixed[own]})"
        if base in SIZES and not index:
            if base not in sizes:
                sizes.append(base)
            return None
        if (base, index) not in named:
            free = base not in RESERVED and own not in declared
            named[base, index] = own if free or not fresh else fresh.pop(0)
            scales.append(named[base, index])
            if named[base, index] != own and base != "oo":
                letters[named[base, index]] = own
        return named[base, index]

    matrices = not any(SCALE in goal for goal in question.goal)
    for hole, value in construction.values:
        if matrices and any(base[:1].isupper() and base not in declared and base != "I" for base, _ in names(value)):
            return None  # a matrix that is not defined
        text = renamed(_norms_of_divisors(value), one)
        if not is_expression(text):
            return None
        values.append((hole, text))
    return Put(tuple(values), tuple(scales), letters, tuple(sizes))


def families(declared: set[str], problem: Problem | None) -> Callable[[str, str], str | None]:
    """Which family of the problem an author's indexed letter stands for: u_a for mu_a, K_a for k_a."""
    means = set(problem.letters_for("mean")) if problem else {"mu", "u", "m"}
    keys = set(problem.letters_for("key")) if problem else {"k", "K"}

    def change(base: str, index: str) -> str | None:
        if not index or index.isdigit() or base in declared:
            return None
        if base in keys:
            return next((family for family in ("k", "mu") if family in declared), None)
        if base in means:
            return next((family for family in ("mu", "u", "k") if family in declared), None)
        return None

    return change


def _norms_of_divisors(value: str) -> str:
    """A division by a vector, which there is none of, read as one by its length."""
    value = re.sub(r"norm\((u|mu|k)\)", r"norm(\1_a)", value)  # all of one length
    value = value.replace("(A'*A)^(-1)", "I")
    return re.sub(r"/\s*((?:k|K|mu|u)_[A-Za-z])(?![\w'])", r"/norm(\1)", value)


LARGE = 20  # a number that an author writes for a large one
NUMBER = re.compile(r"(?<![\w.^/{])(\d+(?:\.\d+)?(?:\^\d+)?)(?![\w.])")


def numbers_as_scales(put: Put) -> Put | None:
    """The construction with its large numbers as one scale each, equal numbers as the same; None if it has none."""
    taken = {base for _, value in put.values for base, _ in names(value)}
    fresh = [name for name in FRESH if name not in taken]
    found: dict[str, str] = {}

    def one(number: re.Match[str]) -> str:
        base, _, power = number[1].partition("^")
        if min(float(base), 1e6) ** min(float(power or 1), 50) < LARGE or (number[1] not in found and not fresh):
            return number[0]
        if number[1] not in found:
            found[number[1]] = fresh.pop(0)
        return found[number[1]]

    values = tuple((hole, NUMBER.sub(one, value)) for hole, value in put.values)
    return replace(put, values=values, scales=(*put.scales, *found.values())) if found else None


def logarithms_as_scales(put: Put) -> Put | None:
    """The construction with log(t) as a scale of its own, for t that grows; None if it has none."""
    pattern = re.compile(rf"log\(({'|'.join(map(re.escape, put.scales))})\)") if put.scales else None
    if pattern is None or not any(pattern.search(value) for _, value in put.values):
        return None
    return replace(put, values=tuple((hole, pattern.sub(r"\1", value)) for hole, value in put.values))
