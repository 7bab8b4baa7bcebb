"""Exponentials as products of powers of a few of them, so that Coq's `field` sees one unknown for each."""

from __future__ import annotations

import sympy as sp

from qkv.claims.kernel.score_hints import Hints, NoHint, Scalar
from qkv.claims.syntax import nodes as L


def arguments(hints: Hints, scores: list[Scalar], core: L.Node) -> dict[str, Scalar]:
    """The arguments of all exponentials in a statement and of its scores, by their Coq texts."""
    found = {hints.text(score): sp.expand(score) for score in scores}
    for node in L.nodes(core):
        if isinstance(node, L.Call) and node.function == "exp":
            try:
                value = sp.expand(hints.number(node.inner))
                found[hints.translator.number(node.inner)] = value
            except NoHint:
                continue
    return found


def lines(hints: Hints, found: dict[str, Scalar]) -> list[str]:
    """Tactics that replace every exponential by a product of powers of generators, which are positive."""
    units = _units(list(found.values()))
    out: list[str] = []
    for mark, (monomial, unit) in enumerate(units.items()):
        text = hints.text(unit * monomial)
        out.append(f"pose proof (exp_pos {text}) as Positive_{mark}.")
        if isinstance(monomial, sp.log) and unit == 1:
            inner = hints.text(monomial.args[0])
            out.append(f"assert (Unlog_{mark} : exp (ln {inner}) = {inner}) by (apply exp_ln; lra).")
        elif unit * monomial == 1:
            out.append("assert (Above_one : 1 < exp 1) by (apply exp_above; lra).")
        elif sp.ask(sp.Q.positive(unit * monomial)):
            positive = "first [lra | nra | (apply Rmult_lt_0_compat; nra)]"
            out.append(f"assert (Above_{mark} : 1 < exp {text}) by (apply exp_above; {positive}).")
    for mark, (text, value) in enumerate(found.items()):
        product, flat = _product(hints, value, units)
        if f"exp {text}" == product:
            continue
        out.append(
            f"assert (Power_{mark} : exp {text} = {product}) by (replace ({text}) with ({flat}) by (field; nonzero);"
            " rewrite ?exp_plus, ?exp_Ropp, ?exp_0; field; repeat split; apply Rgt_not_eq; apply exp_pos)."
        )
        out.append(f"rewrite ?Power_{mark} in *; clear Power_{mark}.")
    for mark, (monomial, unit) in enumerate(units.items()):
        if isinstance(monomial, sp.log) and unit == 1:
            out.append(f"rewrite ?Unlog_{mark} in *.")
    return out


def _terms(value: Scalar) -> list[tuple[Scalar, Scalar]]:
    found = []
    for term in sp.Add.make_args(value):
        factor, monomial = term.as_coeff_Mul()
        if factor != 0:
            found.append((factor, monomial))
    return found


def _units(values: list[Scalar]) -> dict[Scalar, Scalar]:
    """For each monomial in the exponents the largest number of which all its factors are whole multiples."""
    units: dict[Scalar, Scalar] = {}
    for value in values:
        for factor, monomial in _terms(value):
            old = units.get(monomial)
            units[monomial] = abs(factor) if old is None else sp.gcd(old, abs(factor))
    return units


def _product(hints: Hints, value: Scalar, units: dict[Scalar, Scalar]) -> tuple[str, str]:
    """An exponential as a product of powers, and its exponent as the sum that gives it."""
    factors, flat = [], []
    for factor, monomial in _terms(value):
        unit = units[monomial]
        times = int(factor / unit)
        text = hints.text(unit * monomial)
        if times == 1:
            factors.append(f"exp {text}")
        else:
            factors.append(f"(exp {text}) ^ {times}" if times > 0 else f"/ ((exp {text}) ^ {-times})")
        flat += [text if times > 0 else f"(- {text})"] * abs(times)
    if not factors:
        return "1", "0"
    return " * ".join(f if len(factors) == 1 else f"({f})" for f in factors), " + ".join(flat)
