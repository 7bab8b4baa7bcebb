"""Context: the numbers, vectors, noise and definitions that one claim declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

REST = "*"  # the index of an item that the claim does not name; it stands for each of them
MAX_ITEMS = 6  # named items of one claim


@dataclass(frozen=True)
class VectorFamily:
    """A family of vectors: its kind, its norm, and its items (None: 1..n)."""

    kind: str
    norm: L.Expr | None
    items: tuple[str, ...] | None


@dataclass
class Context:
    """Everything that a claim declares, as the symbolic and the numerical evaluator read it.

    It is built once per claim (declarations.build_context) and not changed afterwards.
    """

    claim: L.Claim
    numbers: dict[str, Range] = field(default_factory=dict)
    families: dict[str, VectorFamily] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)  # single vectors and their space: d, m or p
    bases: dict[str, str] = field(default_factory=dict)  # A and B, and the number of their columns: m, p
    right_angles: bool = False  # whether A'B = 0
    noise: dict[str, L.Gaussian] = field(default_factory=dict)  # distributions of keys, by item; "i" is the template
    random: dict[str, L.Gaussian] = field(default_factory=dict)  # random numbers
    number_conditions: list[L.Relation] = field(default_factory=list)  # such as x > y
    score_conditions: list[L.Fact] = field(default_factory=list)  # such as k_j'q > k_i'q for i != j
    lets: dict[str, L.Let] = field(default_factory=dict)
    limits: tuple[L.Approach, ...] = ()  # those given for every statement of the block
    items: tuple[str, ...] = ()  # the named ones
    tokens: tuple[str, ...] = ()
    causal: bool = False  # whether a token sees only itself and those before it
    masked: tuple[str, ...] = ()  # items that no query sees

    def hidden(self, head: str, item: str) -> bool:
        """Whether a mask takes an item out of the softmax of a query."""
        return item in self.masked or (self.causal and head.isdigit() and item.isdigit() and int(item) > int(head))

    @property
    def all_items_named(self) -> bool:
        """Whether there are no items but the named ones, as with tokens."""
        return bool(self.tokens) or (
            "k" in self.families and self.families["k"].items is not None and "k" not in self.template_names
        )

    @property
    def template_names(self) -> set[str]:
        """Names that are defined for every item at once, such as k in `k_i = ...`."""
        defined = {let.name.base for let in self.lets.values() if let.name.subs == ("i",)}
        return defined | ({"k"} if "i" in self.noise else set())

    @cached_property
    def orthogonal_families(self) -> set[frozenset[str]]:
        """Pairs of families that one declaration makes orthogonal: all its vectors are at right angles."""
        found: set[frozenset[str]] = set()
        for given in self.claim.given:
            if isinstance(given, L.Family) and given.kind in ("orthonormal", "orthogonal"):
                bases = {name.base for name in given.names}
                found |= {frozenset({one, other}) for one in bases for other in bases}
        return found

    @cached_property
    def limit_variables(self) -> set[str]:
        """Numbers of which a limit is taken."""
        every = [*self.limits, *(n for n in L.nodes(self.claim.statement) if isinstance(n, L.Approach))]
        return {a.name for a in every}

    @cached_property
    def inside_logarithms(self) -> set[str]:
        """Numbers that occur inside a logarithm: a limit is seen only when the logarithm is large."""
        logs = [n for n in L.nodes(self.claim) if isinstance(n, L.Call) and n.function == "log"]
        return {str(n) for call in logs for n in L.nodes(call) if isinstance(n, L.Name)}

    @cached_property
    def noise_sizes(self) -> set[str]:
        """Numbers in the covariances of keys."""
        found = {str(n) for g in self.noise.values() for n in L.nodes(g.spread) if isinstance(n, L.Name) and not n.subs}
        return found - {"I"}

    def heads(self) -> tuple[str, ...]:
        """The indices of the queries: "" for q, "1" for q_1; with tokens one for each."""
        if self.tokens:
            return self.tokens
        if "q" in self.lets or "q" in self.vectors:
            return ("",)
        defined = [let.name.subs[0] for let in self.lets.values() if let.name.base == "q" and len(let.name.subs) == 1]
        return tuple(sorted(set(defined)))

    def definition(self, name: L.Name) -> L.Expr | None:
        """The definition of a name: its own, or the template's with the item put in."""
        own = self.lets.get(str(name))
        if own is not None:
            return own.value
        template = self.lets.get(f"{name.base}_i")
        if template is not None and len(name.subs) == 1:
            return L.renamed(template.value, "i", name.subs[0])
        return None


def names_used(context: Context, *parts: L.Node) -> list[L.Name]:
    """Every name in some parts of a claim, and in the definitions that they use."""
    todo: list[L.Node] = list(parts)
    seen: dict[str, L.Name] = {}
    while todo:
        for node in L.nodes(todo.pop()):
            if isinstance(node, L.Name) and str(node) not in seen:
                seen[str(node)] = node
                value = context.definition(node)
                todo += [value] if value is not None else []
    return list(seen.values())


def bases_indexed_by(context: Context, index: str, *parts: L.Node) -> set[str]:
    """The bases whose columns an index runs over in some parts."""
    names = names_used(context, *parts)
    return {b for b in context.bases if any(n.base == b.lower() and index in n.subs for n in names)}
