"""Derivatives of expressions as expressions: diff by a number, grad of a number by a vector, jac of a vector by one."""

from __future__ import annotations

from fractions import Fraction

from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.errors import Unsupported
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.rewriting import substituted


def derivative(context: ArrayContext, expr: L.Apply) -> L.Expr:
    """The derivative that grad(f, x), jac(f, x) or diff(f, t) stands for."""
    inner, by = expr.args
    if not isinstance(by, L.Name):
        raise Unsupported("a derivative by an expression")
    inner = _inlined(context, inner, str(by))
    name = str(by)
    if expr.function == "diff":
        if name not in context.numbers:
            raise Unsupported(f"a derivative by {name}, which is no number")
        return _diff(inner, name)
    if name not in context.arrays or context.arrays[name].cols != "1":
        raise Unsupported(f"a derivative by {name}, which is no vector")
    size = context.arrays[name]
    return _grad(inner, name) if expr.function == "grad" else _jac(inner, name, size.rows)


def _inlined(context: ArrayContext, expr: L.Expr, name: str) -> L.Expr:
    """The expression with the definitions put in that use the variable."""
    for _ in range(len(context.lets) + 1):
        names = [n for n in L.nodes(expr) if isinstance(n, L.Name)]
        if any(n.subs and str(n) not in context.lets and n.base in context.lets for n in names):
            raise Unsupported("the derivative of an entry of a definition")
        lets = {k: v for k, v in context.lets.items() if k in set(map(str, names))}
        if not lets:
            return expr
        try:
            expr = substituted(expr, lets, expr.at)
        except L.Malformed:
            raise Unsupported("a derivative within a derivative") from None
    raise Unsupported("circular definitions")


def _uses(expr: L.Node, name: str) -> bool:
    return any(isinstance(n, L.Name) and (str(n) == name or (n.base == name and n.subs)) for n in L.nodes(expr))


def _num(value: int, at: L.At) -> L.Num:
    return L.Num(Fraction(value), at)


def _times(left: L.Expr, right: L.Expr) -> L.Expr:
    return L.Op("*", left, right, left.at)


def _diff(expr: L.Expr, name: str) -> L.Expr:
    """The derivative by a number."""
    at = expr.at
    if not _uses(expr, name):
        return _times(_num(0, at), expr)
    if isinstance(expr, L.Name):
        return _num(1, at)
    if isinstance(expr, L.Neg | L.Transpose):
        return type(expr)(_diff(expr.inner, name), at)
    if isinstance(expr, L.Op):
        left, right = expr.left, expr.right
        if expr.sign in "+-":
            return L.Op(expr.sign, _diff(left, name), _diff(right, name), at)
        if expr.sign == "*":
            return L.Op("+", _times(_diff(left, name), right), _times(left, _diff(right, name)), at)
        if expr.sign == "/":
            quotient = L.Op("/", _times(left, _diff(right, name)), L.Op("^", right, _num(2, at), at), at)
            return L.Op("-", L.Op("/", _diff(left, name), right, at), quotient, at)
        if not _uses(right, name):
            lower = L.Op("^", left, L.Op("-", right, _num(1, at), at), at)
            return _times(_times(right, lower), _diff(left, name))
        raise Unsupported("the derivative of a power by its exponent")
    if isinstance(expr, L.Call | L.Apply):
        return _chain(expr, name)
    raise Unsupported("the derivative of this expression")


def _chain(expr: L.Call | L.Apply, name: str) -> L.Expr:
    at = expr.at
    inner = expr.inner if isinstance(expr, L.Call) else expr.args[0]
    one = _num(1, at)
    outer: L.Expr
    if expr.function == "exp":
        outer = expr
    elif expr.function == "log":
        outer = L.Op("/", one, inner, at)
    elif expr.function == "sqrt":
        outer = L.Op("/", one, _times(_num(2, at), expr), at)
    elif expr.function == "sin":
        outer = L.Apply("cos", (inner,), at)
    elif expr.function == "cos":
        outer = L.Neg(L.Apply("sin", (inner,), at), at)
    elif expr.function == "sigmoid":
        outer = _times(expr, L.Op("-", one, expr, at))
    elif expr.function == "tanh":
        outer = L.Op("-", one, L.Op("^", expr, _num(2, at), at), at)
    elif expr.function == "lse":
        return _times(L.Transpose(L.Apply("softmax", (inner,), at), at), _diff(inner, name))
    elif expr.function == "softmax":
        return _times(_softmax_jacobian(inner), _diff(inner, name))
    else:
        raise Unsupported(f"the derivative of {expr.function}")
    return _times(outer, _diff(inner, name))


def _softmax_jacobian(inner: L.Expr) -> L.Expr:
    p = L.Apply("softmax", (inner,), inner.at)
    return L.Op("-", L.Apply("diag", (p,), inner.at), _times(p, L.Transpose(p, inner.at)), inner.at)


def _jac(expr: L.Expr, name: str, size: str) -> L.Expr:
    """The matrix of the derivatives of a vector by a vector."""
    at = expr.at
    if not _uses(expr, name):
        raise Unsupported("the derivative of a vector that does not depend on the other")
    if isinstance(expr, L.Name) and str(expr) == name:
        return L.Name("I", (), at)
    if isinstance(expr, L.Neg):
        return L.Neg(_jac(expr.inner, name, size), at)
    if isinstance(expr, L.Op):
        left, right = expr.left, expr.right
        if expr.sign in "+-":
            if not _uses(right, name):
                return _jac(left, name, size)
            if not _uses(left, name):
                found = _jac(right, name, size)
                return found if expr.sign == "+" else L.Neg(found, at)
            return L.Op(expr.sign, _jac(left, name, size), _jac(right, name, size), at)
        if expr.sign == "*" and not _uses(left, name):
            return _times(left, _jac(right, name, size))
        if expr.sign == "/" and not _uses(right, name):
            return L.Op("/", _jac(left, name, size), right, at)
    if isinstance(expr, L.Apply) and expr.function == "softmax":
        return _times(_softmax_jacobian(expr.args[0]), _jac(expr.args[0], name, size))
    if isinstance(expr, L.Apply) and expr.function == "odot":
        pairs = [(one, other) for one, other in (expr.args, expr.args[::-1]) if _uses(one, name)]
        parts = [_times(L.Apply("diag", (other,), at), _jac(one, name, size)) for one, other in pairs]
        return parts[0] if len(parts) == 1 else L.Op("+", parts[0], parts[1], at)
    if isinstance(expr, L.Call | L.Apply):
        inner = expr.inner if isinstance(expr, L.Call) else expr.args[0]
        return _times(L.Apply("diag", (_slopes(expr, inner),), at), _jac(inner, name, size))
    raise Unsupported("the derivative of this vector")


def _slopes(expr: L.Call | L.Apply, inner: L.Expr) -> L.Expr:
    """The derivatives of a function of every entry, as a vector."""
    at, ones = expr.at, L.Name("ones", (), expr.at)
    if expr.function == "exp":
        return expr
    if expr.function == "sin":
        return L.Apply("cos", (inner,), at)
    if expr.function == "cos":
        return L.Neg(L.Apply("sin", (inner,), at), at)
    if expr.function == "sigmoid":
        return L.Apply("odot", (expr, L.Op("-", ones, expr, at)), at)
    if expr.function == "tanh":
        return L.Op("-", ones, L.Apply("odot", (expr, expr), at), at)
    raise Unsupported("the derivative of this vector")


def _grad(expr: L.Expr, name: str) -> L.Expr:
    """The column of the derivatives of a number by a vector."""
    at = expr.at
    if not _uses(expr, name):
        return _times(_num(0, at), L.Name(name, (), at))
    if isinstance(expr, L.Neg):
        return L.Neg(_grad(expr.inner, name), at)
    if isinstance(expr, L.Op):
        left, right = expr.left, expr.right
        if expr.sign in "+-":
            return L.Op(expr.sign, _grad(left, name), _grad(right, name), at)
        if expr.sign == "/" and not _uses(right, name):
            return L.Op("/", _grad(left, name), right, at)
        if expr.sign == "*":
            return _grad_product(left, right, name, at)
    if isinstance(expr, L.Apply) and expr.function == "lse":
        return _times(L.Transpose(_jac(expr.args[0], name, ""), at), L.Apply("softmax", expr.args, at))
    if isinstance(expr, L.Apply) and expr.function == "inner":
        return _grad_product(L.Transpose(expr.args[0], at), expr.args[1], name, at)
    if isinstance(expr, L.Op) and expr.sign == "^" and _is_square_of_norm(expr):
        assert isinstance(expr.left, L.Call)
        u = expr.left.inner
        return _times(_times(_num(2, at), L.Transpose(_jac(u, name, ""), at)), u)
    if isinstance(expr, L.Apply) and expr.function == "entropy":
        u = expr.args[0]
        slopes = L.Op("+", L.Call("log", u, at), L.Name("ones", (), at), at)
        return L.Neg(_times(L.Transpose(_jac(u, name, ""), at), slopes), at)
    if isinstance(expr, L.Apply) and expr.function == "cross_entropy":
        p, u = expr.args
        if not _uses(p, name) and isinstance(u, L.Apply) and u.function == "softmax":  # lse(v)*sum(p) - p'v
            total = _times(L.Transpose(L.Name("ones", (), at), at), p)
            return _times(L.Transpose(_jac(u.args[0], name, ""), at), L.Op("-", _times(total, u), p, at))
    if isinstance(expr, L.Sum) and not expr.but and expr.inner == L.Name(name, (expr.index,), expr.inner.at):
        return L.Name("ones", (), at)
    raise Unsupported("the gradient of this expression")


def _is_square_of_norm(expr: L.Op) -> bool:
    square = isinstance(expr.right, L.Num) and expr.right.value == 2
    return square and isinstance(expr.left, L.Call) and expr.left.function == "norm"


def _grad_product(left: L.Expr, right: L.Expr, name: str, at: L.At) -> L.Expr:
    """The gradient of u'v, or of a number that does not depend on x times another."""
    if isinstance(left, L.Op) and left.sign == "*" and isinstance(left.left, L.Transpose):
        return _grad_product(left.left, L.Op("*", left.right, right, at), name, at)  # (u'A) v = u'(A v)
    if isinstance(left, L.Transpose):
        u, parts = left.inner, list[L.Expr]()
        if _uses(u, name):
            parts.append(_times(L.Transpose(_jac(u, name, ""), at), right))
        if _uses(right, name):
            parts.append(_times(L.Transpose(_jac(right, name, ""), at), u))
        return parts[0] if len(parts) == 1 else L.Op("+", parts[0], parts[1], at)
    if isinstance(left, L.Num | L.Name) and not _uses(left, name):
        return _times(left, _grad(right, name))
    raise Unsupported("the gradient of this product")
