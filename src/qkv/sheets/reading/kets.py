r"""Vectors written as kets: \ket{q} is q, \bra{k} its transpose, \braket{k|q} their product."""

from __future__ import annotations

import re

_GROUP = r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
_BRAKET = re.compile(rf"\\[Bb]raket{_GROUP}(?:{_GROUP})?")
_KETBRA = re.compile(rf"\\(?:ketbra|dyad|op){_GROUP}(?:{_GROUP})?")
_KET = re.compile(rf"\\[Kk]et{_GROUP}")
_BRA = re.compile(rf"\\[Bb]ra{_GROUP}")
_BAR = r"(?:\||\\vert|\\mid|\\middle\|)"
_INSIDE = r"((?:(?!\\[lr]angle)[^|<>=,&])+?)"
_INNER = re.compile(rf"\\langle{_INSIDE}\s*{_BAR}\s*{_INSIDE}\s*\\rangle")
_OPEN_BRA = re.compile(rf"\\langle{_INSIDE}\s*{_BAR}")
_CLOSED_KET = re.compile(rf"{_BAR}\s*{_INSIDE}\s*\\rangle")


def without_kets(latex: str) -> str:
    r"""Math with kets and bras as vectors and their transposes.

    Example:
        >>> without_kets(r"\braket{k_a|q} = t")
        'k_a^\\top q = t'
        >>> without_kets(r"M = |a_i\rangle\langle a_i|")
        'M = a_i a_i^\\top'
    """
    if "ket" not in latex and "bra{" not in latex and "angle" not in latex and "dyad" not in latex:
        return latex
    latex = re.sub(r"\\(?:left|right|big|Big|bigl|bigr)(?=\s*(?:\\[lr]angle|\|.*\\[lr]angle))", "", latex)
    latex = _BRAKET.sub(_product, latex)
    latex = _KETBRA.sub(lambda m: f" {_closed(m[1])} {_closed(m[2] or m[1])}^\\top ", latex)
    latex = _BRA.sub(lambda m: f" {_closed(m[1])}^\\top ", _KET.sub(lambda m: f" {_closed(m[1])} ", latex))
    latex = _INNER.sub(lambda m: f" {_closed(m[1])}^\\top {_closed(m[2])} ", latex)
    latex = _OPEN_BRA.sub(lambda m: f" {_closed(m[1])}^\\top ", _CLOSED_KET.sub(lambda m: f" {_closed(m[1])} ", latex))
    return re.sub(r" {2,}", " ", latex).strip()


def _product(found: re.Match[str]) -> str:
    """<a|b>, written in one group or in two; anything else stays."""
    sides = [found[1], found[2]] if found[2] is not None else re.split(r"\||\\middle\||\\vert", found[1])
    if len(sides) != 2:
        return found[0]
    return f" {_closed(sides[0])}^\\top {_closed(sides[1])} "


def _closed(vector: str) -> str:
    vector = vector.strip()
    return f"({vector})" if re.search(r"[-+\s]", re.sub(r"\{[^{}]*\}", "", vector)) else vector
