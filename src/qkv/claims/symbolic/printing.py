"""Symbolic values as text, in the language of claims, and as LaTeX."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp
from sympy.printing.str import StrPrinter

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.factors import Factor, Member, NoiseVector, Scalar, UnnamedMean, UnnamedSum
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.unknowns import (
    Gap,
    InnerProduct,
    KeyLength,
    KeyShift,
    NoiseScore,
    RestSum,
    RestWeight,
    Statistic,
    Theta,
    Unknown,
    UnreducedProduct,
)
from qkv.claims.verdict import Step

GREEK = ("mu", "gamma", "alpha", "beta")


class _ClaimPrinter(StrPrinter):  # type: ignore[misc]
    """SymPy's printer, with unknowns in the language of claims; it finds a method by the type of what it prints."""

    def _print_Exp1(self, expr: Any) -> str:
        return "e"

    def _print_Abs(self, expr: Any) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _print_erf(self, expr: Any) -> str:
        return f"(2*Phi({self._print(sp.sqrt(2) * expr.args[0])}) - 1)"

    def _print_InnerProduct(self, expr: InnerProduct) -> str:
        return f"{factor_text(expr.left)}'{factor_text(expr.right)}"

    def _print_NoiseScore(self, expr: NoiseScore) -> str:
        return f"{factor_text(expr.noise)}'{factor_text(expr.direction)}"

    def _print_UnreducedProduct(self, expr: UnreducedProduct) -> str:
        return f"({'*'.join(factor_text(f) for f in expr.factors)})"

    def _print_Gap(self, expr: Gap) -> str:
        return f"gap({self._print(expr.of)})"

    def _print_RestSum(self, expr: RestSum) -> str:
        return f"rest{expr.head}"

    def _print_Theta(self, expr: Theta) -> str:
        return f"theta{expr.head}"

    def _print_RestWeight(self, expr: RestWeight) -> str:
        return "alpha_i"

    def _print_KeyLength(self, expr: KeyLength) -> str:
        return f"{expr.letter}_{_item(expr.item)}"

    def _print_KeyShift(self, expr: KeyShift) -> str:
        return f"g_{_item(expr.item)},{factor_text(expr.direction)}"

    def _print_Statistic(self, expr: Statistic) -> str:
        inner = ", ".join(self._print(e) for e in expr.inner)
        return f"{expr.function}[{inner}{' > 0' * (expr.function == 'P')}]"


_PRINTER = _ClaimPrinter()


def scalar_text(expr: Scalar) -> str:
    """A scalar as people type it."""
    return str(_PRINTER.doprint(expr)).replace("**", "^")


def polynomial_text(value: MatrixPolynomial) -> str:
    """A vector, matrix or scalar as people type it."""
    if value.anything or not value.terms:
        return "0"
    parts = []
    for word, coefficient in value.terms.items():
        name = "*".join(factor_text(a) for a in word) or ("1" if value.scalar else "I")
        number = scalar_text(coefficient)
        if name == "1":
            parts.append(number)
        elif coefficient == 1:
            parts.append(name)
        else:
            parts.append(f"({number})*{name}" if coefficient.is_Add else f"{number}*{name}")
    return " + ".join(parts).replace("+ -", "- ")


def factor_text(factor: Factor) -> str:
    """One factor of a product as people type it."""
    prime = "'" if factor.flipped else ""
    if isinstance(factor, Member):
        return f"{factor.family}_{_item(factor.item)}{prime}"
    if isinstance(factor, NoiseVector):
        return f"z_{_item(factor.item)}{prime}"
    if isinstance(factor, UnnamedSum):
        return f"(sum of the other {factor.family_name or 'z'}_i){prime}"
    if isinstance(factor, UnnamedMean):
        return f"(weighted mean of the other {_mean_letter(factor)}_i){prime}"
    return str(factor)


def _item(item: str) -> str:
    """An unnamed item is printed as i."""
    return item.replace(REST, "i")


def polynomial_latex(value: MatrixPolynomial) -> str:
    """A vector, matrix or scalar as LaTeX."""
    if value.scalar:
        return scalar_latex(value.number())
    parts = []
    for word, coefficient in value.terms.items():
        name = " ".join(factor_latex(a) + (r"^\top" if a.flipped else "") for a in word) or "I"
        parts.append(name if coefficient == 1 else rf"\left({scalar_latex(coefficient)}\right) {name}")
    return " + ".join(parts) or "0"


def factor_latex(factor: Factor) -> str:
    """One factor of a product as LaTeX, before transposing."""
    base = _letter_latex(factor.family_name or "z")
    if isinstance(factor, UnnamedMean):
        return rf"\bar {_mean_letter(factor)}"
    if isinstance(factor, UnnamedSum):
        return rf"\sum_i {base}_i"
    if isinstance(factor, Member | NoiseVector):
        return f"{base}_{{{_item(factor.item)}}}"
    if factor.kind == "turn":
        return rf"R\left({sp.latex(factor.angle)}\right)"
    return _letter_latex(factor.name)


def _mean_letter(factor: UnnamedMean) -> str:
    return (factor.of.family_name if factor.of is not None else "") or "z"


def _letter_latex(name: str) -> str:
    return rf"\{name}" if name in GREEK else name


def scalar_latex(expr: Scalar) -> str:
    """A scalar as LaTeX."""
    names = {s: _unknown_latex(s) for s in expr.free_symbols if isinstance(s, Unknown)}
    return str(sp.latex(expr, symbol_names=names))


def _unknown_latex(symbol: Unknown) -> str:
    if isinstance(symbol, InnerProduct):
        return rf"{factor_latex(symbol.left)}^\top {factor_latex(symbol.right)}"
    if isinstance(symbol, NoiseScore):
        return rf"{factor_latex(symbol.noise)}^\top {factor_latex(symbol.direction)}"
    if isinstance(symbol, UnreducedProduct):
        return " ".join(factor_latex(f) + (r"^\top" if f.flipped else "") for f in symbol.factors)
    if isinstance(symbol, Gap):
        return rf"g_{{{_unknown_latex(symbol.of) if isinstance(symbol.of, Unknown) else sp.latex(symbol.of)}}}"
    if isinstance(symbol, Theta | RestSum):
        return rf"\{'theta' if isinstance(symbol, Theta) else 'rho'}_{{{symbol.head}}}"
    if isinstance(symbol, RestWeight):
        return r"\alpha_{i}"
    if isinstance(symbol, KeyLength):
        letter = rf"\{symbol.letter}" if symbol.letter in GREEK else rf"\mathrm{{{symbol.letter}}}"
        return f"{letter}_{{{_item(symbol.item)}}}"
    if isinstance(symbol, KeyShift):
        return f"g_{{{_item(symbol.item)},{factor_latex(symbol.direction)}}}"
    if isinstance(symbol, Statistic):
        inner = ", ".join(scalar_latex(e) for e in symbol.inner) + " > 0" * (symbol.function == "P")
        return rf"\mathrm{{{symbol.function}}}\left[{inner}\right]"
    return str(sp.latex(sp.Symbol(symbol.name)))


AND = r" \;\text{ and }\; "
"""Between the two sides of a statement that is not known to be true: their formulas stand side by side."""


def sides_step(one: MatrixPolynomial, two: MatrixPolynomial) -> Step:
    """Both sides of a statement, without a sign between them that would say that it is true."""
    text = f"left side: {polynomial_text(one)}; right side: {polynomial_text(two)}"
    return Step(text, f"{polynomial_latex(one)}{AND}{polynomial_latex(two)}")


def with_sign(steps: tuple[Step, ...], sign: str) -> tuple[Step, ...]:
    """The steps with a sign between both sides, where that is shown to hold."""
    return tuple(Step(s.text, s.latex.replace(AND, rf" \;{sign}\; ")) if AND in s.latex else s for s in steps)


def step(text: str, formula: str = "") -> Step:
    """One line of a derivation; without a formula, the text stands for it."""
    escaped = re.sub(r"([_^{}])", r"\\\1", text)
    return Step(text, formula or rf"\text{{{escaped}}}")
