"""Typed symbols: inner products, gaps, sums over unnamed items, random lengths, statistics.

SymPy knows them as symbols with assumptions; every other module asks for their type and their fields. Names only tell
symbols apart and order them, so that printed expressions keep their order; no module reads a meaning out of a name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.factors import Factor, Scalar


class Unknown(sp.Symbol):  # type: ignore[misc]
    """A symbol with a meaning: two are equal if their types and fields are."""

    fields: tuple[Any, ...]

    def __new__(cls, *fields: Any) -> Unknown:
        return _made(cls, *fields)

    @classmethod
    def _name(cls, *fields: Any) -> str:
        raise NotImplementedError

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"real": True}

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.fields, {}

    @classmethod
    def class_key(cls) -> Any:
        """As of a plain symbol: terms are printed in the order of the symbols' names."""
        return sp.Symbol.class_key()

    @property
    def of_unnamed_item(self) -> bool:
        """Whether it differs from one unnamed item to the next."""
        return False


def _made(cls: Any, *fields: Any) -> Unknown:
    """The one symbol of a type and fields."""
    return _interned(cls, *fields)


@lru_cache(maxsize=4096)
def _interned(cls: Any, *fields: Any) -> Unknown:
    found = sp.Symbol.__xnew__(cls, cls._name(*fields), **cls._assumptions_of(*fields))
    found.fields = fields
    return found


class Score(Unknown):
    """A product of vectors (and matrices) that is an unknown number."""


class InnerProduct(Score):
    """x'y of two vectors: `left`, `right`."""

    def __new__(cls, left: Factor, right: Factor) -> Unknown:
        one, two = sorted((left.upright(), right.upright()), key=lambda f: f.name)
        return _made(cls, one, two)

    left = property(lambda self: self.fields[0])
    right = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"<{fields[0].name},{fields[1].name}>"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"nonnegative": True} if fields[0] == fields[1] else {"real": True}

    @property
    def of_unnamed_item(self) -> bool:
        return self.left.of_unnamed_item or self.right.of_unnamed_item


class NoiseScore(Score):
    """z'u with the standard normal vector z of a key: `noise`, `direction`."""

    def __new__(cls, noise: Factor, direction: Factor) -> Unknown:
        return _made(cls, noise.upright(), direction.upright())

    noise = property(lambda self: self.fields[0])
    direction = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"<{fields[0].name},{fields[1].name}>"

    @property
    def of_unnamed_item(self) -> bool:
        return self.noise.of_unnamed_item or self.direction.of_unnamed_item


class UnreducedProduct(Score):
    """A 1 x 1 product of several factors that no rule reduces: `factors`. Its transpose is the same number."""

    def __new__(cls, factors: tuple[Factor, ...]) -> Unknown:
        mirrored = tuple(f.turned() for f in reversed(factors))
        return _made(cls, min(factors, mirrored, key=_product_name))

    factors = property(lambda self: self.fields[0])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"<{_product_name(fields[0])}>"

    @property
    def of_unnamed_item(self) -> bool:
        return any(f.of_unnamed_item for f in self.factors)


def _product_name(factors: tuple[Factor, ...]) -> str:
    return "*".join(str(f) for f in factors)


class Gap(Unknown):
    """By how much a score or number `of` lies beyond its bound; positive if the condition is strict, else >= 0."""

    def __new__(cls, of: Scalar, strict: bool) -> Unknown:
        return _made(cls, of, strict)

    of = property(lambda self: self.fields[0])
    strict = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"gap({fields[0].name})"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"positive": True} if fields[1] else {"nonnegative": True}

    @property
    def of_unnamed_item(self) -> bool:
        return is_of_unnamed_item(self.of)


class _OfHead(Unknown):
    """An unknown of one query: `head`."""

    head = property(lambda self: self.fields[0])


class RestSum(_OfHead):
    """The sum of the exponentials of all unnamed items: `head`, and `positive` if there is an unnamed item for sure."""

    def __new__(cls, head: str, positive: bool) -> Unknown:
        return _made(cls, head, positive)

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"rest({fields[0]})"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"positive": True} if fields[1] else {"nonnegative": True}


class Theta(_OfHead):
    """The factor in (0, 1] between a sum of exponentials and their number times the largest one allowed."""

    def __new__(cls, head: str) -> Unknown:
        return _made(cls, head)

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"theta({fields[0]})"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"positive": True}


class RestWeight(_OfHead):
    """The weight of one unnamed item whose score is not known."""

    def __new__(cls, head: str) -> Unknown:
        return _made(cls, head)

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"w({REST},{fields[0]})"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"positive": True}

    @property
    def of_unnamed_item(self) -> bool:
        return True


class Remainder(Unknown):
    """A bounded number that moves: what a series leaves out, divided by the next power; `number` tells them apart."""

    def __new__(cls, number: int) -> Unknown:
        return _made(cls, number)

    number = property(lambda self: self.fields[0])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"remainder({fields[0]})"


class KeyLength(Unknown):
    """The random length of a key along its own mean: `item`, and the `letter` that it is printed with."""

    def __new__(cls, item: str, letter: str) -> Unknown:
        return _made(cls, item, letter)

    item = property(lambda self: self.fields[0])
    letter = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"{fields[1]}_{fields[0]}"

    @property
    def of_unnamed_item(self) -> bool:
        return bool(self.item == REST)


class KeyShift(Unknown):
    """The random shift of a key along a direction: `item`, `direction`."""

    def __new__(cls, item: str, direction: Factor) -> Unknown:
        return _made(cls, item, direction.upright())

    item = property(lambda self: self.fields[0])
    direction = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"g_{fields[0]},{fields[1].name}"

    @property
    def of_unnamed_item(self) -> bool:
        return bool(self.item == REST) or self.direction.of_unnamed_item


class Statistic(Unknown):
    """Var, Cov, E or P of expressions without a closed form: `function`, `inner`; P is that of inner[0] > 0."""

    def __new__(cls, function: str, inner: tuple[Scalar, ...]) -> Unknown:
        return _made(cls, function, inner)

    function = property(lambda self: self.fields[0])
    inner = property(lambda self: self.fields[1])

    @classmethod
    def _name(cls, *fields: Any) -> str:
        return f"{fields[0]}[{', '.join(str(e) for e in fields[1])}]"

    @classmethod
    def _assumptions_of(cls, *fields: Any) -> dict[str, bool]:
        return {"real": True} if fields[0] in ("Cov", "E") else {"nonnegative": True}

    @property
    def of_unnamed_item(self) -> bool:
        return any(is_of_unnamed_item(s) for e in self.inner for s in e.free_symbols)


def is_of_unnamed_item(symbol: Scalar) -> bool:
    """Whether a symbol differs from one unnamed item to the next."""
    return isinstance(symbol, Unknown) and symbol.of_unnamed_item


def varies_over_unnamed_items(expr: Scalar) -> bool:
    """Whether an expression differs from one unnamed item to the next."""
    return any(is_of_unnamed_item(s) for s in expr.free_symbols)


def factors_in(symbol: Scalar) -> tuple[Factor, ...]:
    """The vectors and matrices of which a score, or a gap of a score, is a product; sums stand for their members."""
    if isinstance(symbol, Gap):
        return factors_in(symbol.of)
    found: tuple[Factor, ...] = ()
    if isinstance(symbol, InnerProduct):
        found = (symbol.left, symbol.right)
    elif isinstance(symbol, NoiseScore):
        found = (symbol.noise, symbol.direction)
    elif isinstance(symbol, UnreducedProduct):
        found = symbol.factors
    return tuple(getattr(factor, "of", None) or factor for factor in found)
