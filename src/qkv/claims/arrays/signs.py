"""Whether a scalar is zero, positive or never negative, for all values that a claim admits."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import sympy as sp

from qkv.claims.arrays.combination import combined
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.facts import Fact, Library
from qkv.claims.arrays.polynomial_signs import polynomial_sign
from qkv.claims.arrays.terms import Scalar

MAX_SPLITS = 4
MAX_OPERATIONS = 400
SCALED = ("the case", "a condition that is given")
CONSTANT_ERROR = sp.Rational(1, 10**6)


@dataclass(frozen=True)
class Argument:
    """Why a sign holds, as lines of text."""

    lines: tuple[str, ...]


def is_zero(evaluator: ArrayEvaluator, value: Scalar) -> bool:
    """Whether an expression is 0 for all values; False also where no rule shows it."""
    value = evaluator.tidied(value)
    if value == 0:
        return True
    if value.count_ops() > MAX_OPERATIONS:
        return False
    if value.has(sp.sin) or value.has(sp.cos):
        value = sp.expand(sp.expand_trig(value))
        if value == 0 or _pythagoras(value) == 0:
            return True
    if _is_one(value):
        return True
    top = sp.expand(sp.numer(sp.together(value)))
    top = sp.expand(sp.powsimp(top, deep=True))
    if top == 0 or sp.expand(sp.expand_log(top)) == 0:
        return True
    return bool(evaluator.tidied(sp.expand(sp.powsimp(top))) == 0)


def _is_one(value: Scalar) -> bool:
    """Whether the exponential of a sum with logarithms of sums is 1: log(1 + e^x) - log(1 + e^-x) - x."""
    logs = [(c, m) for m, c in value.as_coefficients_dict().items() if isinstance(m, sp.log) and m.args[0].is_Add]
    if not logs or not all(c.is_Integer and abs(c) < 4 and m.args[0].is_positive for c, m in logs):
        return False
    rest = sp.expand(value - sum(c * m for c, m in logs))
    if rest.has(sp.log):
        return False
    top, bottom = sp.fraction(sp.together(sp.Mul(*(m.args[0] ** c for c, m in logs)) * sp.exp(rest)))
    return bool(sp.expand(sp.powsimp(sp.expand(top - bottom))) == 0)


def _pythagoras(value: Scalar) -> Scalar:
    """sin^2 is 1 - cos^2, for every angle."""
    for angle in {s.args[0] for s in value.atoms(sp.sin)}:
        value = sp.expand(value).replace(
            lambda e, a=angle: e.is_Pow and e.base == sp.sin(a) and e.exp.is_Integer and e.exp >= 2,
            lambda e, a=angle: (1 - sp.cos(a) ** 2) ** (e.exp // 2) * sp.sin(a) ** (e.exp % 2),
        )
    return sp.expand(value)


def proved_sign(evaluator: ArrayEvaluator, value: Scalar, strict: bool) -> Argument | None:
    """An argument that an expression is >= 0 (> 0 if `strict`) for all values; None if none was found."""
    library = Library(evaluator)
    return _by_cases(library, value, (), strict, 0)


def proved_zero_by_cases(evaluator: ArrayEvaluator, value: Scalar) -> Argument | None:
    """An argument that an expression with maxima, signs or cases is 0: both signs, in every case."""
    if not _splits(value):
        return None
    library = Library(evaluator)
    up = _by_cases(library, value, (), False, 0)
    down = _by_cases(library, -value, (), False, 0) if up is not None else None
    return None if up is None or down is None else Argument((*up.lines, *down.lines))


def proved_zero_by_conditions(evaluator: ArrayEvaluator, value: Scalar) -> Argument | None:
    """An argument that an expression is 0 under conditions that are equalities: it has neither sign."""
    up, down = (proved_sign(evaluator, sign * value, False) for sign in (1, -1))
    return None if up is None or down is None else Argument((*up.lines, *down.lines))


def _splits(value: Scalar) -> list[Scalar]:
    """What the sign decides which case of an expression applies, innermost first."""
    found: list[Scalar] = []
    for node in sp.postorder_traversal(value):
        if isinstance(node, sp.Abs | sp.sign):
            found.append(node.args[0])
        elif isinstance(node, sp.Max) and len(node.args) >= 2:
            found.append(node.args[0] - node.args[1])
        elif isinstance(node, sp.Piecewise):
            found += [c.lhs - c.rhs for _, c in node.args if isinstance(c, sp.core.relational.Relational)]
    return [sp.expand(x) for x in found if not x.is_number]


def _by_cases(library: Library, value: Scalar, extra: tuple[Fact, ...], strict: bool, depth: int) -> Argument | None:
    splits = _splits(value) or [x for f in library.given for x in _splits(f.value)]
    if not splits:
        return _direct(library, value, extra, strict)
    if depth >= MAX_SPLITS:
        return None
    at = splits[0]
    lines: list[str] = []
    for how, facts in (("> 0", (Fact(at, "the case", True),)), ("= 0", (Fact(at, "the case"), Fact(-at, "the case"))),
                       ("< 0", (Fact(-at, "the case", True),))):  # fmt: skip
        inner = _in_case(value, at, how)
        narrowed = copy(library)  # the conditions that are given, as they read in this case
        narrowed.given = [replace(f, value=_in_case(f.value, at, how)) for f in library.given]
        found = _by_cases(narrowed, inner, (*extra, *facts), strict, depth + 1)
        if found is None:
            return None
        lines += [f"if {at} {how}: {line}" for line in found.lines]
    return Argument(tuple(lines))


def _in_case(value: Scalar, at: Scalar, how: str) -> Scalar:
    """An expression where the sign of `at` is known."""

    def known(expr: Scalar) -> str | None:
        expr = sp.expand(expr)
        if sp.expand(expr - at) == 0:
            return how or None
        if sp.expand(expr + at) == 0:
            return {"> 0": "< 0", "= 0": "= 0", "< 0": "> 0"}.get(how)
        return None

    def change(node: Scalar) -> Scalar:
        if isinstance(node, sp.Abs | sp.sign):
            sign = known(node.args[0])
            if sign is None:
                return node
            factor = {"> 0": 1, "= 0": 0, "< 0": -1}[sign]
            return factor * node.args[0] if isinstance(node, sp.Abs) else sp.Integer(factor)
        if isinstance(node, sp.Max):
            sign = known(node.args[0] - node.args[1])
            if sign is None:
                return node
            kept = node.args[0] if sign != "< 0" else node.args[1]
            return sp.Max(kept, *node.args[2:])
        return _pieces(node, known)

    return _rebuilt(value, change)


def _pieces(node: Scalar, known: object) -> Scalar:
    kept = []
    for inner, condition in node.args:
        if isinstance(condition, sp.core.relational.Relational):
            sign = known(condition.lhs - condition.rhs)  # type: ignore[operator]
            if sign is not None:
                true = {">": ("> 0",), ">=": ("> 0", "= 0"), "<": ("< 0",), "<=": ("< 0", "= 0"), "==": ("= 0",),
                        "!=": ("> 0", "< 0")}[condition.rel_op]  # fmt: skip
                if sign in true:
                    kept.append((inner, True))
                    break
                continue
        kept.append((inner, condition))
    return sp.Piecewise(*kept) if kept else sp.nan


def _rebuilt(value: Scalar, change: object) -> Scalar:
    if not value.args:
        return value
    args = value.args
    if isinstance(value, sp.Piecewise):
        new = value.func(*[(_rebuilt(e, change), _rebuilt(c, change)) for e, c in args])
    else:
        new = value.func(*[_rebuilt(a, change) for a in args])
    if isinstance(new, sp.Abs | sp.sign | sp.Max | sp.Piecewise):
        return change(new)  # type: ignore[operator]
    return new


def _direct(library: Library, value: Scalar, extra: tuple[Fact, ...], strict: bool) -> Argument | None:
    if value.has(sp.nan):
        return None
    for form in _forms(library, value):
        facts = [*extra, *library.about(form)]
        for more in extra:
            facts += [f for f in library.about(more.value) if f not in facts]
        facts += _products(facts, form)
        facts = [replace(f, value=library.evaluator.at_given_sizes(_known(f.value, extra))) for f in facts]
        facts += [c for c in _constants(form, facts) if c not in facts]
        found = combined(form, facts, strict)
        if found is not None:
            used = [f"{x if x != 1 else ''}{'*' if x != 1 else ''}({f.value})  [{f.why}]" for x, f in found]
            return Argument(tuple(used) or ("it is 0",))
        why = polynomial_sign(form, [*extra, *library.given], strict)
        if why is not None:
            return Argument((f"{form}  [{why}]",))
    if extra and combined(sp.Integer(0), [*extra, *library.given], True) is not None:
        return Argument(("this case cannot occur",))
    return None


def _known(value: Scalar, extra: tuple[Fact, ...]) -> Scalar:
    """A fact as it reads in the case that is looked at: absolute values whose sign is known are written out."""
    if value.has(sp.Abs):
        opposite = {-f.value for f in extra}
        for case in extra:
            value = _in_case(value, case.value, "> 0" if case.strict else "= 0" if case.value in opposite else "")
    return value


def _forms(library: Library, value: Scalar) -> Iterator[Scalar]:
    """Expressions of the same sign: without positive denominators, and differences of exponentials by exponents."""
    value = library.evaluator.tidied(value)
    yield value
    if value.has(sp.sin) or value.has(sp.cos):
        trig = _pythagoras(sp.expand(sp.expand_trig(value)))
        if trig != value:
            yield trig
    top, bottom = sp.fraction(sp.together(value))
    if bottom != 1 and _is_positive(bottom):
        top = sp.expand(sp.powsimp(sp.expand(top)))
        yield top
    else:
        top = value
    difference = _exponents(sp.factor_terms(top) if top.count_ops() < MAX_OPERATIONS else top)
    if difference is not None:
        yield difference


def _is_positive(expr: Scalar) -> bool:
    return all(f.is_positive or (f.is_Pow and f.base.is_positive) for f in sp.Mul.make_args(sp.factor_terms(expr)))


def _exponents(value: Scalar) -> Scalar | None:
    """The difference of the logarithms of a difference of two positive terms, such as e^x - n; its sign is the same."""
    found = None
    for factor in sp.Mul.make_args(value):
        if factor.is_positive:
            continue
        if found is not None or not factor.is_Add or len(factor.args) != 2:
            return None
        found = factor
    if found is None:
        return None
    signs = []
    for term in found.args:
        c, rest = term.as_coeff_Mul()
        exponent: Scalar = sp.log(abs(c))
        for part in sp.Mul.make_args(rest):
            if isinstance(part, sp.exp):
                exponent += part.args[0]
            elif part.is_positive:
                exponent += sp.log(part)
            else:
                return None
        signs.append((c, exponent))
    (a, x), (b, y) = signs
    if a * b < 0:
        return sp.expand((x - y) if a > 0 else (y - x))
    return None


def _constants(form: Scalar, facts: list[Fact]) -> list[Fact]:
    """Enclosures of the irrational constants that occur as terms, such as log(2)."""
    terms = {m for e in (form, *(f.value for f in facts)) for m in e.as_coefficients_dict()}
    out = []
    for constant in sorted((m for m in terms if m.is_number and not m.is_Rational and m.is_real), key=str)[:6]:
        middle = sp.Rational(str(constant.evalf(20))).limit_denominator(10**8)
        out += [Fact(constant - middle + CONSTANT_ERROR, f"the value of {constant}", True)]
        out += [Fact(middle + CONSTANT_ERROR - constant, f"the value of {constant}", True)]
    return out


def _products(facts: list[Fact], form: Scalar) -> list[Fact]:
    """Products of facts with the positive symbols that occur in the goal, so that conditions can be scaled."""
    positive = [s for s in form.free_symbols if s.is_positive or s.is_nonnegative][:4]
    small = [f.value for f in facts if f.value.count_ops() < 12][:60]
    powers = [p for e in (form, *small) for p in sp.preorder_traversal(e) if p.is_Pow and p.base.is_positive]
    powers = [p for p in dict.fromkeys(powers) if p.base.is_Symbol][:4]
    base = [f for f in facts if f.value.count_ops() < 12][:40]
    out: list[Fact] = []
    for by in dict.fromkeys([*positive, *powers]):
        out += [replace(f, value=sp.expand(f.value * by), strict=f.strict and bool(by.is_positive)) for f in base]
    out = out[:160]
    known = [f for f in facts if f.why in SCALED][:6]
    for one, two in combinations_with_replacement(known, 2):
        both = sp.expand(one.value * two.value)
        out.append(Fact(both, "a product of conditions", one.strict and two.strict))
    return out[:200]
