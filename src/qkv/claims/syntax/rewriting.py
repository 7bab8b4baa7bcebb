"""Rewriting of parsed clauses: calls of defined functions, the number e, numbers in sums of sums, quantifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar, cast

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.parser import Source

Part = TypeVar("Part")
MAX_NODES = 4000  # of one statement after its functions are put in
DERIVATIVES = ("grad", "jac", "diff")
FRESH_INDICES = "jlrsuvwxyzghopijkmnabcdeftqJLRSUVWXYZ"  # letters for the index of a sum that gets another


def with_calls(source: Source, functions: dict[str, L.FunctionLet], definition: bool = False) -> Source:
    """Mark the calls of defined functions, as in H(X), so that the grammar does not read them as products.

    Of a definition, what stands before the = is left as it is.
    """
    start = source.text.find("=") if definition else 0
    for name in functions:
        pattern = re.compile(rf"(?<![A-Za-z_]){re.escape(name)}(?=\s*\()")
        for found in reversed(list(pattern.finditer(source.text, start))):
            at = found.start()
            text = f"{source.text[:at]}def_{source.text[at:]}"
            source = Source(text, [*source.at[:at], *[source.where(at)] * 4, *source.at[at:]])
    return source


def add_function(functions: dict[str, L.FunctionLet], found: L.FunctionLet) -> None:
    """Add a definition; functions that it uses are put in at once, so that none can be circular.

    The parameters get names that no text can have, so that a name of a function used within is not taken for one.
    """
    if found.name in functions:
        raise L.Malformed(found.at, f"a second definition of {found.name}(", "one definition for each name")
    if any(p.subs for p in found.parameters) or len({p.base for p in found.parameters}) < len(found.parameters):
        raise L.Malformed(found.at, f"the parameters of {found.name}", "different letters without an index")
    for parameter in found.parameters:
        _require_one_role(found, parameter.base)
    renamed = tuple(L.Name(f"@{p.base}", (), p.at) for p in found.parameters)
    fresh: dict[str, L.Expr] = {p.base: new for p, new in zip(found.parameters, renamed, strict=True)}
    value = _called(substituted(found.value, fresh, found.at), functions)
    functions[found.name] = replace(found, parameters=renamed, value=value)


def _require_one_role(found: L.FunctionLet, parameter: str) -> None:
    """A parameter stands for a value or for an index, and for no index or end of a sum."""
    inside = list(L.nodes(found.value))
    names = [n for n in inside if isinstance(n, L.Name)]
    sums = [n for n in inside if isinstance(n, L.Sum)]
    if any(parameter in (n.index, n.upto) for n in sums):
        raise L.Malformed(found.at, f"{parameter} as a parameter of {found.name} and in a sum", "another letter")
    indexed = any(parameter in n.subs for n in names) or any(parameter in n.but for n in sums)
    plain = any(n.base == parameter for n in names)
    if indexed and plain:
        raise L.Malformed(found.at, f"{parameter} as a value and as an index", "two letters")
    if not indexed and not plain:
        raise L.Malformed(found.at, f"a parameter {parameter} that {found.name} does not use", "only those in use")


def rewritten(part: Part, given: Sequence[L.Given], lets: Sequence[L.Let], functions: dict[str, L.FunctionLet]) -> Part:
    """A clause with functions put in, e as a number, products out of sums, and without quantifiers over all values."""
    part = _called(part, functions)
    declared = {name.base for name in _declared(given, lets)}
    if "e" not in declared:
        part = _euler(part)
    part = _factored(part, _may_hold_arrays((part, tuple(given), tuple(lets))))
    if isinstance(part, L.Statement) and part.quantifier is not None and not part.quantifier.but:
        return replace(part, quantifier=_item_quantifier(part.quantifier, given, lets))
    return part


def with_entries(part: Part, given: Sequence[L.Given]) -> Part:
    """A clause in which X_{ab} is the entry (a, b), if the block declares arrays and nothing is called X_{ab}.

    Raises:
        Malformed: The index of an array has more than two letters.
    """
    spaces = [one for one in given if isinstance(one, L.Space)]
    if not spaces:
        return part
    labels = {str(name) for one in given if isinstance(one, L.Space | L.Family) for name in one.names}
    labels |= {str(one.name) for one in given if isinstance(one, L.Gaussian)}
    vectors = {str(name) for one in spaces if one.cols == "1" for name in one.names}
    if isinstance(part, L.Let) and len(part.name.subs) == 1 and len(part.name.subs[0]) > 1:
        raise L.Malformed(part.name.at, f"a definition of {part.name} beside arrays", "a name with one letter as index")

    def change(node: L.Node) -> L.Node:
        if not isinstance(node, L.Name) or len(node.subs) != 1 or str(node) in labels:
            return node
        index = node.subs[0]
        if len(index) == 1 or index.isdigit():
            return node
        if len(index) > 2 or node.base in vectors:
            raise L.Malformed(node.at, f"{node}", "one letter for each index, with commas between: X_{a,b}")
        return replace(node, subs=(index[0], index[1]))

    return cast(Part, mapped(part, change))


def _item_quantifier(quantifier: L.Quantifier, given: Sequence[L.Given], lets: Sequence[L.Let]) -> L.Quantifier | None:
    """A quantifier over items; one over declared names says what every statement says, and is dropped."""
    names = quantifier.index.split(",")
    declared = {str(name) for name in _declared(given, lets)}
    if all(name in declared for name in names):
        return None
    if len(names) > 1 or not re.fullmatch(r"[a-zA-Z]", quantifier.index):
        unknown = next((name for name in names if name not in declared), quantifier.index)
        raise L.Malformed(quantifier.at, f"'{unknown}'", "an index of one letter, or names that are declared")
    return quantifier


def _declared(given: Sequence[L.Given], lets: Sequence[L.Let]) -> Iterable[L.Name]:
    for one in given:
        if isinstance(one, L.Family | L.Space):
            yield from one.names
        elif isinstance(one, L.Gaussian):
            yield one.name
        elif isinstance(one, L.Fact):
            yield from (n for n in L.nodes(one.relation) if isinstance(n, L.Name) and not n.subs and n.base != "e")
        elif isinstance(one, L.Approach):
            yield L.Name.parsed(one.name, one.at)
    yield from (let.name for let in lets)


def mapped(part: Any, change: Any) -> Any:
    """The part with `change` applied to every expression, from the inside out."""
    if isinstance(part, tuple):
        return tuple(mapped(one, change) for one in part)
    if isinstance(part, L.Node):
        old = {name: getattr(part, name) for name in L.parts(type(part).__name__)}
        new = {name: mapped(value, change) for name, value in old.items()}
        kept = replace(part, **new) if any(new[name] is not old[name] for name in new) else part
        return change(kept)
    return part


def substituted(part: Any, values: dict[str, L.Expr], at: L.At) -> Any:
    """The part with names replaced by expressions, as values and as indices.

    A sum whose index occurs in one of the expressions gets another index first, so that it binds nothing of them.

    Args:
        part: An expression or a tuple of them.
        values: For each name as it is written, what stands there instead.
        at: Where the replacement is written.

    Raises:
        Malformed: A name with an index, or an index, gets an expression that is no name; or a derivative would be taken
            of something else than was written.
    """
    if isinstance(part, tuple):
        return tuple(substituted(one, values, at) for one in part)
    if isinstance(part, L.Name):
        return _replaced(part, values, at)
    if isinstance(part, L.Sum):
        inner = {k: v for k, v in values.items() if k != part.index}
        used = {index for v in inner.values() for index in free_indices(v)}
        if part.index in used:
            fresh = _fresh_index(part, used)
            part = replace(part, index=fresh, inner=_reindexed(part.inner, part.index, fresh))
        but = tuple(_index(s, values, at) for s in part.but)
        return replace(part, but=but, inner=substituted(part.inner, inner, at))
    if isinstance(part, L.Apply) and part.function in DERIVATIVES:
        _require_same_derivative(part, values, at)
    if isinstance(part, L.Node):
        old = {name: getattr(part, name) for name in L.parts(type(part).__name__)}
        new = {name: substituted(value, values, at) for name, value in old.items()}
        return replace(part, **new) if any(new[name] is not old[name] for name in new) else part
    return part


def _replaced(name: L.Name, values: dict[str, L.Expr], at: L.At) -> L.Expr:
    if str(name) in values:
        return values[str(name)]
    subs = tuple(_index(s, values, at) for s in name.subs)
    if name.base not in values:
        return name if subs == name.subs else replace(name, subs=subs)
    value = values[name.base]
    if isinstance(value, L.Name) and not value.subs:
        return L.Name(value.base, subs, name.at)
    came = f"an expression in place of {name.base.lstrip('@')}, which has an index"
    raise L.Malformed(at, came, "a name without an index, such as that of a let")


def _index(index: str, values: dict[str, L.Expr], at: L.At) -> str:
    value = values.get(index)
    if value is None:
        return index
    if isinstance(value, L.Name) and not value.subs:
        return value.base
    raise L.Malformed(at, f"an expression in place of the index {index.lstrip('@')}", "the letter of an index")


def _require_same_derivative(part: L.Apply, values: dict[str, L.Expr], at: L.At) -> None:
    """Refuse other values within a derivative: its variable is a declared name, which they could depend on."""
    for node in L.nodes(part):
        for name in (str(node), node.base, *node.subs) if isinstance(node, L.Name) else ():
            value = values.get(name)
            if value is not None and not (isinstance(value, L.Name) and value.base.lstrip("@") == name.lstrip("@")):
                came = f"another value for {name.lstrip('@')} within {part.function}("
                raise L.Malformed(at, came, f"the formula itself in place of the function, or {name.lstrip('@')}")


def free_indices(part: Any) -> set[str]:
    """The indices that occur in a part and are bound by no sum in it; a name alone may be one."""
    if isinstance(part, tuple):
        return {index for one in part for index in free_indices(one)}
    if isinstance(part, L.Name):
        return set(part.subs) or {part.base}
    if isinstance(part, L.Sum):
        return (free_indices(part.inner) - {part.index}) | set(part.but)
    if isinstance(part, L.Node):
        return {i for name in L.parts(type(part).__name__) for i in free_indices(getattr(part, name))}
    return set()


def _fresh_index(part: L.Sum, used: set[str]) -> str:
    """A letter that occurs neither in a sum nor among the indices in use."""
    for node in L.nodes(part):
        used = used | (set(node.subs) | {node.base} if isinstance(node, L.Name) else set())
        used = used | ({node.index, *node.but, node.upto} if isinstance(node, L.Sum) else set())
    for letter in FRESH_INDICES:
        if letter not in used:
            return letter
    raise L.Malformed(part.at, "more indices than there are letters", "fewer sums")


def _reindexed(part: Any, index: str, fresh: str) -> Any:
    """The part with another letter for an index, also where the index stands alone."""
    renamed = L.renamed(part, index, fresh)
    if any(isinstance(n, L.Name) and str(n) == index for n in L.nodes(renamed)):
        raise L.Malformed(part.at, f"{index} as a value and as an index", "two letters")
    return renamed


def _called(part: Any, functions: dict[str, L.FunctionLet]) -> Any:
    if not functions:
        return part
    _require_no_capture(part, functions, set())

    def change(node: L.Node) -> L.Node:
        if not isinstance(node, L.Apply) or not node.function.startswith("def_"):
            return node
        found = functions[node.function.removeprefix("def_")]
        if len(node.args) != len(found.parameters):
            raise L.Malformed(node.at, f"{found.name} of {len(node.args)} arguments", f"{len(found.parameters)}")
        values = dict(zip(map(str, found.parameters), node.args, strict=True))
        value: L.Node = substituted(found.value, values, node.at)
        if sum(1 for _ in L.nodes(value)) > MAX_NODES:
            raise L.Malformed(node.at, "a formula that grows too large", "fewer nested functions")
        return value

    return mapped(part, change)


def _require_no_capture(part: Any, functions: dict[str, L.FunctionLet], bound: set[str]) -> None:
    """Refuse a call under a sum or a quantifier whose index the definition uses as its own."""
    if isinstance(part, tuple):
        for one in part:
            _require_no_capture(one, functions, bound)
        return
    if not isinstance(part, L.Node):
        return
    if isinstance(part, L.Statement) and part.quantifier is not None:
        bound = bound | set(part.quantifier.index.split(","))
    elif isinstance(part, L.Sum):
        bound = bound | {part.index}
    elif isinstance(part, L.Apply) and part.function.startswith("def_"):
        found = functions[part.function.removeprefix("def_")]
        clash = sorted({s for s in _subs(found.value) if s in bound})
        if clash:
            came = f"{found.name}, whose definition has an index {clash[0]} of its own, under another {clash[0]}"
            raise L.Malformed(part.at, came, "another letter")
    for name in L.parts(type(part).__name__):
        _require_no_capture(getattr(part, name), functions, bound)


def _subs(part: Any) -> set[str]:
    """The free indices of a part, without names that stand alone."""
    plain = {n.base for n in L.nodes(part) if isinstance(n, L.Name) and not n.subs}
    indexed = {s for n in L.nodes(part) if isinstance(n, L.Name) for s in n.subs}
    return {i for i in free_indices(part) if i in indexed or i not in plain}


def _euler(part: Any) -> Any:
    """e^x is exp(x), and e alone exp(1)."""

    def change(node: L.Node) -> L.Node:
        if isinstance(node, L.Op) and node.sign == "^" and isinstance(node.left, L.Call) and node.left == _ONE(node):
            return L.Call("exp", node.right, node.at)
        if isinstance(node, L.Name) and node.base == "e" and not node.subs:
            return L.Call("exp", L.Num(Fraction(1), node.at), node.at)
        return node

    return mapped(part, change)


def _ONE(node: L.Op) -> L.Call:
    at = node.left.at
    return L.Call("exp", L.Num(Fraction(1), at), at)


# Sums of products.
def _factored(part: Any, arrays: bool) -> Any:
    """In sums of sums, take numbers without the index out: sum_j (a_i*b_j) is a_i*sum_j b_j."""

    def change(node: L.Node) -> L.Node:
        if isinstance(node, L.Sum) and any(isinstance(n, L.Sum) for n in L.nodes(node.inner)):
            inner = mapped(node.inner, lambda one: _without_numbers(one, arrays) if isinstance(one, L.Sum) else one)
            return _without_numbers(replace(node, inner=inner), arrays)
        return node

    return mapped(part, change)


def _without_numbers(node: L.Sum, arrays: bool) -> L.Expr:
    factors = _factors(node.inner)
    out = [f for f in factors if _is_number(f, arrays) and not _uses(f, node.index)]
    kept = [f for f in factors if f not in out]
    if not out or not kept:
        return node
    return _product([*out, replace(node, inner=_product(kept, node.at))], node.at)


def _may_hold_arrays(part: Any) -> bool:
    """Whether exp, log and sqrt may stand for functions entry by entry, of vectors or matrices."""
    return any(
        isinstance(n, L.Space | L.Apply | L.Cases)
        or (isinstance(n, L.Gaussian) and not n.name.subs)
        or (isinstance(n, L.Name) and str(n) == "pi")
        for n in L.nodes(part)
    )


def _is_number(expr: L.Expr, arrays: bool) -> bool:
    """Whether an expression is a number for sure, by its form; with arrays, exp(B) is one only if B is."""
    if isinstance(expr, L.Num):
        return True
    if isinstance(expr, L.Name):
        return expr.base == "alpha" and bool(expr.subs)
    if isinstance(expr, L.Call):
        if expr.function in ("exp", "log", "sqrt") and arrays:
            return _is_number(expr.inner, arrays)
        return expr.function != "R"
    if isinstance(expr, L.Neg | L.Sum):
        return _is_number(expr.inner, arrays)
    return isinstance(expr, L.Op) and _is_number(expr.left, arrays) and _is_number(expr.right, arrays)


def _factors(expr: L.Expr) -> list[L.Expr]:
    if isinstance(expr, L.Op) and expr.sign == "*":
        return [*_factors(expr.left), *_factors(expr.right)]
    return [expr]


def _product(factors: Sequence[L.Expr], at: L.At) -> L.Expr:
    out = factors[0]
    for factor in factors[1:]:
        out = L.Op("*", out, factor, at)
    return out


def _uses(expr: L.Expr, index: str) -> bool:
    """Whether an index occurs in an expression other than as that of a sum within."""
    if isinstance(expr, L.Sum):
        return index in expr.but or (expr.index != index and _uses(expr.inner, index))
    if isinstance(expr, L.Name):
        return index in expr.subs or str(expr) == index
    return any(_uses(child, index) for child in _children(expr))


def _children(node: L.Node) -> list[Any]:
    out: list[Any] = []
    todo = [getattr(node, name) for name in L.parts(type(node).__name__)]
    while todo:
        one = todo.pop()
        if isinstance(one, tuple):
            todo += list(one)
        elif isinstance(one, L.Node):
            out.append(one)
    return out
