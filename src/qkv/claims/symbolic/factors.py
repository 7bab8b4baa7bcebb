"""Factors of matrix products: vectors, members of families, bases, rotations, and sums over the unnamed items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from qkv.claims.semantics.context import REST

Scalar = Any  # a SymPy expression; SymPy's own stubs are too loose to be of use


@dataclass(frozen=True)
class Factor:
    """A vector (d x 1), a basis (d x m) or a rotation R(angle), perhaps transposed.

    `kind` is "vector", "basis" or "turn"; `rows` and `cols` are the shape before transposing. The name tells factors
    apart and orders them; what a factor is shows in its type and fields.
    """

    name: str
    kind: str
    rows: str = "d"
    cols: str = "1"
    flipped: bool = False  # transposed
    angle: Scalar = None  # of a rotation

    @property
    def shape(self) -> tuple[str, str]:
        """Rows and columns, after transposing."""
        return (self.cols, self.rows) if self.flipped else (self.rows, self.cols)

    @property
    def family_name(self) -> str:
        """The family that the factor is a member of, or a plain sum of members of; "" for any other factor."""
        return ""

    @property
    def of_unnamed_item(self) -> bool:
        """Whether it stands for each unnamed item in turn."""
        return False

    @property
    def is_noise(self) -> bool:
        """Whether it is the standard normal vector of a key, or a sum of those."""
        return False

    def turned(self) -> Factor:
        """The transpose."""
        if self.kind == "turn":  # R(m)ᵀ = R(-m)
            return turn(-self.angle)
        return replace(self, flipped=not self.flipped)

    def upright(self) -> Factor:
        """The factor before transposing."""
        return replace(self, flipped=False) if self.flipped else self

    def __str__(self) -> str:
        return self.name + ("'" if self.flipped else "")


@dataclass(frozen=True)
class Member(Factor):
    """A member of a family of vectors, such as k_a, or a column a_1 of the basis A; of REST, any unnamed one."""

    family: str = ""
    item: str = ""

    @property
    def family_name(self) -> str:
        return self.family

    @property
    def of_unnamed_item(self) -> bool:
        return self.item == REST


@dataclass(frozen=True)
class NoiseVector(Factor):
    """The standard normal vector z of the key of one item: k = mean + sqrt(eps) z."""

    item: str = ""

    @property
    def of_unnamed_item(self) -> bool:
        return self.item == REST

    @property
    def is_noise(self) -> bool:
        return True


@dataclass(frozen=True)
class UnnamedSum(Factor):
    """The sum of one vector over all unnamed items."""

    of: Factor | None = None

    @property
    def family_name(self) -> str:
        return self.of.family_name if self.of is not None else ""

    @property
    def is_noise(self) -> bool:
        return self.of is not None and self.of.is_noise


@dataclass(frozen=True)
class UnnamedMean(Factor):
    """The mean of one vector over the unnamed items, weighted by their attention weights."""

    of: Factor | None = None
    weight: Scalar = None  # the RestWeight that it is weighted by


def member(family: str, item: str) -> Member:
    """A member of a family."""
    return Member(f"{family}_{item}", "vector", family=family, item=item)


def noise_vector(item: str) -> NoiseVector:
    """The standard normal vector of a key."""
    return NoiseVector(f"~_{item}", "vector", item=item)


def unnamed_sum(one: Factor) -> UnnamedSum:
    """The sum over all unnamed items of a factor that stands for one of them, transposed if that is."""
    of = one.upright()
    name = f"{one.family_name or '~'}_+"
    return UnnamedSum(name, one.kind, one.rows, one.cols, one.flipped, of=of)


def unnamed_mean(one: Factor, weight: Scalar) -> UnnamedMean:
    """The weighted mean over all unnamed items of a factor that stands for one of them, transposed if that is."""
    of = one.upright()
    return UnnamedMean(
        f"mean({of.name},{weight.name})", one.kind, one.rows, one.cols, one.flipped, of=of, weight=weight
    )


def turn(angle: Scalar) -> Factor:
    """The rotation R(angle)."""
    angle = sp.expand(angle)
    return Factor(f"R({angle})", "turn", "d", "d", angle=angle)
