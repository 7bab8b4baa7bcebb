"""What a symbolic argument came to: its kind, its reason, and the steps a person can follow."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.evaluator import Algebra
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, Scalar

PROVED, REFUTED, CONDITIONAL, UNKNOWN = "proved", "refuted", "conditional", "unknown"


@dataclass(frozen=True)
class Step:
    """One line of a derivation, for the terminal and for paper."""

    text: str
    latex: str


@dataclass(frozen=True)
class Proof:
    """`probability` is set when a limit holds only for some of the random keys; `sure` marks a refutation that is
    a proof of the contrary for all values, and so needs no counterexample to stand."""

    kind: str
    because: str
    steps: tuple[Step, ...] = ()
    probability: float | None = None
    notes: dict[str, str] = field(default_factory=dict)
    sure: bool = False


# What the internal unknowns are called in print: scores, gaps, the sum of unnamed exponentials, one unnamed weight.
_PRINTED = (
    (r"\*\*", "^"),
    (r"_\*", "_i"),
    (r"~_", "z_"),
    (r"<([^<>,]+),([^<>]+)>", r"\1'\2"),
    (r"<([^<>]+)>", r"(\1)"),
    (r"\b(theta|rest)\((\w*)\)", r"\1\2"),
    (r"\bw\(\*,(\w*)\)", "alpha_i"),
    (r"\bE\b(?!\[)", "e"),
)


def shown(expr: Scalar) -> str:
    """A scalar as people type it."""
    text = str(expr)
    for raw, plain in _PRINTED:
        text = re.sub(raw, plain, text)
    return text


def element(value: MatrixPolynomial) -> str:
    if value.anything or not value.terms:
        return "0"
    parts = []
    for word, coefficient in value.terms.items():
        name = "*".join(_atom(str(a)) for a in word) or ("1" if value.scalar else "I")
        if name == "1":
            parts.append(shown(coefficient))
        elif coefficient == 1:
            parts.append(name)
        else:
            parts.append(f"({shown(coefficient)})*{name}" if coefficient.is_Add else f"{shown(coefficient)}*{name}")
    return " + ".join(parts).replace("+ -", "- ")


def _atom(name: str) -> str:
    if name.endswith(("_+", "_+'")):
        base = name.split("_")[0]
        return f"(sum of the other {base}_i){name[len(base) + 2 :]}"
    if name.startswith("mean("):
        return f"(weighted mean of the other {name[5:].split('_')[0]}_i)"
    return name.replace("_*", "_i").replace("~_", "z_")


def element_latex(value: MatrixPolynomial) -> str:
    if value.scalar:
        return latex(value.number())
    parts = []
    for word, coefficient in value.terms.items():
        name = " ".join(_atom_latex(a.name) + (r"^\top" if a.flipped else "") for a in word) or "I"
        parts.append(name if coefficient == 1 else rf"\left({latex(coefficient)}\right) {name}")
    return " + ".join(parts) or "0"


def _atom_latex(name: str) -> str:
    if name.startswith("mean("):
        return rf"\bar {name[5:].split('_')[0]}"
    base, _, item = name.replace("~", "z").partition("_")
    base = rf"\{base}" if base in ("mu", "gamma", "alpha", "beta") else base
    if item == "+":
        return rf"\sum_i {base}_i"
    return f"{base}_{{{item.replace(REST, 'i')}}}" if item else base


def latex(expr: Scalar) -> str:
    names = {s: _symbol_latex(s.name) for s in expr.free_symbols if not re.fullmatch(r"[A-Za-z]+(_\w+)?", s.name)}
    return str(sp.latex(expr, symbol_names=names))


def _symbol_latex(name: str) -> str:
    """An internal unknown on paper."""
    product = re.fullmatch(r"<([^<>,]+),([^<>]+)>", name)
    if product:
        return rf"{_atom_latex(product[1])}^\top {_atom_latex(product[2])}"
    if name.startswith("gap("):
        return rf"g_{{{_symbol_latex(name[4:-1]) if '<' in name else name[4:-1]}}}"
    if name.startswith(("theta(", "rest(")):
        return rf"\{'theta' if name.startswith('theta') else 'rho'}_{{{name.split('(')[1][:-1]}}}"
    if name.startswith("w("):
        return r"\alpha_{i}"
    return r"\texttt{" + shown(sp.Symbol(name)).replace("_", r"\_").replace("^", r"\^{}") + "}"


def step(text: str, formula: str = "") -> Step:
    escaped = re.sub(r"([_^{}])", r"\\\1", text)
    return Step(text, formula or rf"\text{{{escaped}}}")


@lru_cache(maxsize=256)
def _simplified(expr: Scalar) -> Scalar:
    """The statements of one block share their sums of exponentials."""
    return sp.simplify(expr) if expr.count_ops() < 40 else expr


def reading_steps(algebra: Algebra) -> list[Step]:
    """The scores and weights that the argument used."""
    out: list[Step] = []
    for symbol, (mean, variance) in algebra.random.items():
        text = f"{shown(symbol)} is normal with mean {shown(mean)} and variance {shown(variance)}"
        out.append(Step(text, rf"{latex(symbol)} \sim \mathcal{{N}}({latex(mean)}, {latex(variance)})"))
    for head, reading in algebra.readings.items():
        q = f"q_{head}" if head else "q"
        scores = [
            (f"k_{item.replace(REST, 'i')}'{q}", _key(item, head), value) for item, value in reading.scores.items()
        ]
        if scores and not reading.uneven:
            text = "scores: " + ", ".join(f"{name} = {shown(value)}" for name, _, value in scores)
            tex = r",\quad ".join(f"{name} = {latex(value)}" for _, name, value in scores)
            others = (
                f" for the other {shown(algebra.size - len(reading.powers))} items" if REST in reading.scores else ""
            )
            out.append(Step(text + others, tex))
        total = _simplified(reading.total)
        where = f" of {q}" if head else ""
        if reading.uneven and algebra.bounded:
            text = "the other scores lie at least the given gap below: their exponentials sum to theta times"
            out.append(step(f"{text} their number times the largest one allowed, with 0 < theta <= 1"))
        elif reading.uneven:
            out.append(step("the exponentials of the other items sum to a number that is not negative, called rest"))
        out.append(Step(f"sum of exponentials{where}: Z = {shown(total)}", f"Z = {latex(total)}"))
    return out


def _key(item: str, head: str) -> str:
    return rf"k_{{{item.replace(REST, 'i')}}}^\top q" + (f"_{{{head}}}" if head else "")
