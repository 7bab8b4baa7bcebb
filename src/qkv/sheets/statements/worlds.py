"""World: what a part of a problem takes as given, in the forms in which its statements can be decided."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qkv.sheets.problems.problem import Part, Problem

NOISE = re.compile(r"k_(\w) ~ N\(\s*mu_(\w)\s*,\s*(.*?)\s*\)(?=\s*(?:,|$))")


@dataclass(frozen=True)
class World:
    """One way to take what is given.

    Attributes:
        kind: "free": any keys and query; "margin": one score is larger than the others by m; "keys": keys of known
            inner products; "noise": random keys; "means": keys equal to their means, as noise has vanished; "tokens":
            tokens with matrices; "bases": two subspaces; "other".
        given: The givens in the language of claims.
        let: Definitions of the part.
        limits: Limits that are meant with an ≈ in it, before those of the author's scales.
        remark: What was taken for granted, for the author.
    """

    kind: str
    given: tuple[str, ...]
    let: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    remark: str = ""

    @property
    def text(self) -> str:
        """Givens and definitions in one string."""
        return ", ".join((*self.given, *self.let))

    @property
    def vectors(self) -> str:
        """The name of the orthonormal vectors: k, mu or u."""
        found = re.search(r"\b(k|mu|u)_\w+(?:\.\.\w+)?(?:, *\w+)* (?:orthonormal|orthogonal|free)", self.text)
        return found[1] if found else "k"


def worlds_of(problem: Problem, part: str) -> tuple[World, ...]:
    """The worlds of a part, the one that is tried first at the front; empty for an unknown part."""
    found = problem.part(part) or problem.part(part.split(".")[0])
    if found is None:
        return ()
    if found.id == part.split(".")[0] and not found.given:
        inner = [p for p in problem.parts if p.id.startswith(found.id + ".") and p.given]
        found = inner[0] if inner else found
    family = [p for p in problem.parts if p.id.split(".")[0] == part.split(".")[0]]
    return _worlds(found, family)


def _worlds(part: Part, family: list[Part]) -> tuple[World, ...]:
    given = tuple(_split(", ".join(part.given)))
    let = tuple(_split(", ".join(part.let)))
    text = ", ".join(given)
    if "bases" in text:
        lets = let or tuple(x for q in part.questions for x in q.let if "?" not in x)
        return (World("bases", given, lets),)
    if re.search(r"k_i ~ N", text):
        return tuple(_noisy(given, let))
    if re.search(r"\bu_a\b", text) and any("x_1" in one for one in let):
        norm = re.search(r"of norm (\w+)", text)
        return (World("tokens", given, let, (f"{norm[1]} -> oo",) if norm else ()),)
    if re.search(r"k_1\.\.k_n orthonormal", text):
        return (World("keys", given, let),)
    if re.search(r"k_1\.\.k_n free", text):
        item = next((q.item for p in family for q in p.questions if q.item), "j")
        base = tuple(g for g in given if "m " not in g and "'q -" not in g)
        margin = (*base, "m > 0", f"k_{item}'q - k_i'q >= m for i != {item}")
        return (
            World("margin", margin, let, ("m -> oo",), f"one score exceeds the others by m, as m -> oo: item {item}"),
            World("free", base, let),
        )
    return (World("other", given, let),)


def _split(text: str) -> list[str]:
    """Givens at commas that stand outside brackets and outside lists of names."""
    out, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            out.append(text[start:place].strip())
            start = place + 1
    out.append(text[start:].strip())
    joined: list[str] = []
    for one in out:  # "u_a, u_b orthogonal" is one given
        if joined and re.fullmatch(r"[A-Za-z]\w*", joined[-1]):
            joined[-1] += ", " + one
        else:
            joined.append(one)
    return [one for one in joined if one]


def _noisy(given: tuple[str, ...], let: tuple[str, ...]) -> list[World]:
    """Random keys: as their means once noise has vanished, with a length where one is left, and as such."""
    plain = tuple(g for g in given if "~" not in g)
    stretched = [m for g in given if (m := re.match(r"k_(\w) ~ N\(.*eps\*I \+ .*mu_\1\*mu_\1'", g)) and m[1] != "i"]
    noise = World("noise", given, let, ("eps -> 0",), "noise -> 0")
    if not stretched:
        means = World("means", plain, (*let, "k_i = mu_i"), (), "noise -> 0")
        return [means, noise]
    item = stretched[0][1]
    lets = (*let, "k_i = mu_i", f"k_{item} = gamma*mu_{item}")
    length = World("means", (*plain, "gamma > 0"), lets, (), f"noise -> 0; k_{item} = gamma mu_{item}, gamma > 0")
    return [length, noise]
