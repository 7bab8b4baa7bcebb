"""Properties of expressions that both evaluators need: multiples of the identity, bounds, degrees in the noise."""

from __future__ import annotations

from qkv.claims.semantics.context import Context
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import constant


def bare_identity(expr: L.Expr) -> bool:
    """Whether an expression is I or a multiple of it, with no other matrix or vector in it."""
    nodes = list(L.nodes(expr))
    if not any(isinstance(n, L.Name) and str(n) == "I" for n in nodes):
        return False
    return all(
        isinstance(n, L.Num | L.Op | L.Neg) or (isinstance(n, L.Name) and not n.subs) for n in nodes
    ) and not any(isinstance(n, L.Name) and n.base.isupper() and n.base != "I" for n in nodes)


def bounded(context: Context, expr: L.Expr) -> bool:
    """Whether an expression under a statistic is a polynomial in weights and constants, so that it stays bounded.

    Definitions are followed: one that holds a number may grow with it, and so may a vector whose norm is the variable
    of a limit, or whose scores have conditions.
    """
    growing = "n" in context.limit_variables
    todo: list[L.Node] = [expr]
    seen: set[str] = set()
    while todo:
        for node in L.nodes(todo.pop()):
            if isinstance(node, L.Name) and str(node) not in seen:
                seen.add(str(node))
                value = context.definition(node)
                if value is not None:
                    todo.append(value)
                elif not _constant_in_limit(context, node):
                    return False
                elif node.base == "c":  # a mean of the values, by weights
                    todo.append(L.Name("v", ("i",), node.at))
                    todo += [let.value for let in context.lets.values() if let.name.base in ("v", "x", "V")]
            if isinstance(node, L.Call | L.Stat | L.Chance | L.Transpose) or (growing and isinstance(node, L.Sum)):
                return False
            if isinstance(node, L.Op) and node.sign in "/^":
                right = constant(node.right)
                if right is None or (node.sign == "^" and right < 0):
                    return False
    return True


def _constant_in_limit(context: Context, name: L.Name) -> bool:
    """Whether a name without a definition is a weight, or a constant that no limit moves."""
    if name.base in ("alpha", "c", "I"):
        return True
    if str(name) == "n":
        return "n" not in context.limit_variables
    if str(name) in context.numbers or (name.base == "k" and (context.noise or context.score_conditions)):
        return False
    family = context.families.get(name.base)
    if family is None:
        return name.base == "v" or (bool(context.tokens) and name.base in ("x", "V"))
    return not any(str(n) in context.limit_variables for n in L.nodes(family.norm)) if family.norm is not None else True


def noise_degree(context: Context, expr: L.Expr) -> int | None:
    """The degree of an expression as a polynomial in the noise of the keys; None if it is no such polynomial."""
    if isinstance(expr, L.Num):
        return 0
    if isinstance(expr, L.Name):
        defined = context.definition(expr)
        if defined is not None:
            return noise_degree(context, defined)
        if expr.base in ("alpha", "c") or str(expr) in context.random:
            return None
        return int(expr.base == "k" and bool(context.noise))
    if isinstance(expr, L.Neg | L.Transpose):
        return noise_degree(context, expr.inner)
    if isinstance(expr, L.Op):
        return _degree_of_operation(context, expr)
    if isinstance(expr, L.Sum | L.Call):
        inner = noise_degree(context, expr.inner)
        return inner if inner == 0 or isinstance(expr, L.Sum) else None
    return 0  # a statistic is a constant


def _degree_of_operation(context: Context, expr: L.Op) -> int | None:
    left, right = noise_degree(context, expr.left), noise_degree(context, expr.right)
    if left is None or right is None:
        return None
    if expr.sign in "+-":
        return max(left, right)
    if expr.sign == "*":
        return left + right
    if right:
        return None
    if expr.sign == "/" or left == 0:
        return left
    power = constant(expr.right)
    return left * int(power) if power is not None and power.denominator == 1 and power >= 0 else None
