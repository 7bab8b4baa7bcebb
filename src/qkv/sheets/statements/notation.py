"""What the letters of a sheet stand for, inferred from how its author defines and uses them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from qkv.sheets.reading.scale_words import ScaleInWords, scale_in_words
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T

KEYS = ("k", "K", "key")
MEANS = ("mu", "u")
QUERIES = ("q", "g", "Q")
VALUES = ("v", "upsilon", "V")
OUTPUTS = ("c", "C")
_PLAIN = ("n", "e", "pi", "I", "i", "j", "l", "oo")
SAFE = ("t", "lambda", "beta", "tau", "rho", "eta", "kappa", "omega", "theta", "delta", "sigma", "zeta")
SPARE = ("t", "r", "w", "z", "f", "g", "h")
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "xi": "ξ", "rho": "ρ", "sigma": "σ", "tau": "τ", "omega": "ω", "zeta": "ζ", "ℊ": "g",
}  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """A definition of the author: which letter, what it stands for, and where.

    Attributes:
        order: The order of its formula in the sheet.
        part: The part in which it stands.
        line: The line of the sheet.
        symbol: The letter.
        value: What it stands for.
        local: Whether it holds in its part only.
        scale: What words beside a query without a factor say of a large one, as in scale_in_words.
    """

    order: int
    part: str
    line: int
    symbol: T.Symbol
    value: T.Node
    local: bool = False
    scale: ScaleInWords = ""

    def scaled(self) -> Definition:
        """The same query with a factor before it."""
        return replace(self, value=T.Binary("*", T.Symbol("t"), self.value))


@dataclass
class Notation:
    """The letters of a sheet.

    Attributes:
        definitions: In reading order.
        scales: Letters that multiply vectors in the author's queries, by the letter of the part.
        length: The letter for the length of one random key, such as γ in k_a ≈ γ μ_a, or None.
        length_at: Where it is named: the order of the formula, and its part.
        length_less_one: Whether the letter is the length less one, as δ in k_a ≈ (1 + δ) μ_a.
        noise_vector: The letter of the noise in k_i = μ_i + ε_i, or empty.
        means: The letter of the means.
        keys: The letter of the keys.
        noise: The author's number for the size of the noise, as σ² in Σ_i = σ² I, or None.
        noise_factor: What the letter of the noise is multiplied with in k_i = μ_i + √α z_i, or None.
        upright: Letters of matrices whose rows are the basis vectors, A or B.
        items: The number of items if the sheet states one, as in n = 1000.
        asides: Definitions in remarks between brackets, which replace none.
    """

    definitions: list[Definition] = field(default_factory=list)
    scales: dict[str, list[T.Symbol]] = field(default_factory=dict)
    length: T.Symbol | None = None
    length_at: tuple[int, str] = (0, "")
    length_less_one: bool = False
    noise_vector: str = ""
    means: str = "mu"
    keys: str = "k"
    noise: T.Node | None = None
    noise_factor: T.Node | None = None
    upright: set[str] = field(default_factory=set)
    items: str = ""
    asides: list[Definition] = field(default_factory=list)

    def in_part(self, part: str, order: int) -> dict[T.Symbol, Definition]:
        """The definitions that hold at a place: the last before it, or else the first after it."""
        letter = part.split(".")[0]
        mine = [d for d in self.definitions if d.part.split(".")[0] == letter]
        found: dict[T.Symbol, Definition] = {}
        begun = any(is_query(d.symbol) and d.order < order for d in mine)
        for d in reversed(mine):
            if d.order >= order and not d.local and d.part == part and not (begun and is_query(d.symbol)):
                found[d.symbol] = d
        for d in mine:
            if d.order < order and (not d.local or d.part == part):
                found[d.symbol] = d
        return found

    def other_queries(self, part: str, order: int) -> list[Definition]:
        """Queries that the author named before this place and that do not hold there, the last first."""
        letter = part.split(".")[0]
        holding = list(self.in_part(part, order).values())
        named = [d for d in (*self.definitions, *self.asides) if d.part.split(".")[0] == letter and d.order < order]
        return [d for d in reversed(named) if is_query(d.symbol) and d not in holding]

    def said(self) -> tuple[tuple[str, str], ...]:
        """How letters were read, for the report."""
        out: list[tuple[str, str]] = []
        for symbols in self.scales.values():
            out += [(written(s), "the scale") for s in symbols]
        if self.length is not None:
            out.append((written(self.length), "the length of a key"))
        if self.noise_vector:
            out.append((GREEK.get(self.noise_vector, self.noise_vector), "the noise of a key"))
        if self.means == "u":
            out.append(("u", "the means"))
        if self.keys == "K":
            out.append(("K", "the keys"))
        return tuple(dict.fromkeys(out))


def written(symbol: T.Symbol) -> str:
    """A symbol as people write it."""
    base = GREEK.get(symbol.base, symbol.base)
    return f"{base}_{''.join(symbol.index)}" if symbol.index else base


def is_key(s: T.Symbol) -> bool:
    """Whether a symbol is a key."""
    return s.base in KEYS and bool(s.index)


def is_mean(s: T.Symbol) -> bool:
    """Whether a symbol is a mean, or one of the orthogonal vectors."""
    return s.base in MEANS and bool(s.index)


def is_query(s: T.Symbol) -> bool:
    """Whether a symbol is a query."""
    return s.base in ("q", "g") and s.index in ((), ("1",), ("2",), ("a",), ("b",))


def names_scores(clause: T.Clause) -> bool:
    """Whether a clause writes α for a score or for its exponential, as in α_i = k_i'q."""
    head, second = clause.sides[:2] if len(clause.sides) > 1 else (T.Missing(), T.Missing())
    if not (isinstance(head, T.Symbol) and head.base == "alpha" and head.index) or clause.signs[0] != "=":
        return False
    if isinstance(second, T.Call) and second.name == "exp":
        return True
    product = isinstance(second, T.Binary) and second.sign in "*."
    inside = T.symbols(second)
    plain = not any(isinstance(node, (T.Call, T.Total)) for node in T.nodes(second))
    return product and plain and any(is_key(s) for s in inside) and any(s.base in QUERIES for s in inside)


def infer(parsed: list[tuple[int, Formula, tuple[T.Clause, ...]]]) -> Notation:
    """The notation of a sheet, from its formulas with their clauses."""
    found = Notation()
    counts: dict[str, int] = {}
    for order, formula, clauses in parsed:
        for clause in clauses:
            for s in T.symbols(clause):
                if s.index and s.base in ("mu", "u", "k", "K"):
                    counts[s.base] = counts.get(s.base, 0) + 1
            _length(found, clause, order, formula)
            _length_in_words(found, clause, order, formula)
            _noise(found, clause)
            _upright(found, clause)
            if (
                clause.sides[:1] == (T.Symbol("n"),)
                and clause.signs == ("=",)
                and isinstance(clause.sides[1], T.Number)
            ):
                found.items = clause.sides[1].text
            _define(found, clause, order, formula)
    found.means = "u" if counts.get("u", 0) > counts.get("mu", 0) else "mu"
    found.keys = "K" if counts.get("K", 0) > counts.get("k", 0) else "k"
    for d in found.definitions:
        if is_query(d.symbol):
            scales = found.scales.setdefault(d.part.split(".")[0], [])
            scales += [s for s in scale_symbols(d.value) if s not in scales]
    return found


def scale_symbols(value: T.Node) -> list[T.Symbol]:
    """The letters of a query's definition that are numbers."""
    return [
        s for s in T.symbols(value)
        if not is_key(s) and not is_mean(s) and not is_query(s) and s.base not in _PLAIN and s.base not in ("v",)
    ]  # fmt: skip


def vanishing(value: T.Node) -> set[T.Symbol]:
    """The letters of a query's definition by which it is divided: they go to 0 where others grow."""
    divisors = [n.right for n in T.nodes(value) if isinstance(n, T.Binary) and n.sign == "/"]
    return {s for d in divisors for s in scale_symbols(d)}


def _define(found: Notation, clause: T.Clause, order: int, formula: Formula) -> None:
    """Note what a clause defines: queries, matrices, tokens."""
    if len(clause.sides) < 2 or clause.signs[0] != "=":
        return
    heads = [s for s in clause.sides if isinstance(s, T.Symbol) and _definable(s)]
    if not heads or clause.sides[0] not in heads:
        return
    value = next((s for s in clause.sides[1:] if not (isinstance(s, T.Symbol) and _definable(s))), None)
    if value is None or any(h in T.symbols(value) for h in heads):
        return
    inside = T.symbols(value)
    for head in heads:
        if is_query(head) and not any(is_key(s) or is_mean(s) for s in inside):
            continue
        if is_query(head) and any(
            is_query(s) or (s.base in ("x", "Q", "c", "C") and s.index not in ((), ("0",))) for s in inside
        ):
            continue
        scale = scale_in_words(formula.nearby) if is_query(head) and not scale_symbols(value) else ""
        defined = Definition(order, formula.part, formula.line, head, value, head.base == "x", scale)
        if formula.aside and any(d.symbol == head and d.part == formula.part for d in found.definitions):
            found.asides.append(defined)
            continue  # another choice that a remark between brackets names
        found.definitions.append(defined)


def _definable(s: T.Symbol) -> bool:
    return is_query(s) or (s.base in ("M", "V", "K", "Q") and not s.index) or (s.base == "x" and s.index == ("2",))


def _length(found: Notation, clause: T.Clause, order: int, formula: Formula) -> None:
    """k_a ≈ γ μ_a names the length, k_a = μ_a + ε_a the noise."""
    if len(clause.sides) < 2 or not isinstance(clause.sides[0], T.Symbol) or not is_key(clause.sides[0]):
        return
    item = clause.sides[0].index[-1]
    right = clause.sides[1]
    if isinstance(right, T.Binary) and right.sign == "+" and _is_product(right.left):  # k_a = γ μ_a + noise
        _length(found, T.Clause((clause.sides[0], right.left), clause.signs[:1]), order, formula)
    if isinstance(right, T.Binary) and right.sign in "*.":
        pair = (right.left, right.right)
        for one, other in (pair, pair[::-1]):
            if isinstance(one, T.Symbol) and isinstance(other, T.Symbol) and is_mean(other) and not is_mean(one):
                if item == "a" and found.length is None and not is_key(one):
                    found.length, found.length_at = one, (order, formula.part)
            elif item == "a" and found.length is None and isinstance(other, T.Symbol) and is_mean(other):
                less = _one_plus(one)
                if less is not None:
                    found.length, found.length_at, found.length_less_one = less, (order, formula.part), True
    if isinstance(right, T.Binary) and right.sign == "+":
        pair = (right.left, right.right)
        for one, other in (pair, pair[::-1]):
            if not (isinstance(one, T.Symbol) and isinstance(other, T.Symbol)):
                continue
            if is_mean(one) and not is_mean(other) and not is_key(other):
                found.noise_vector = other.base
        for one, other in (pair, pair[::-1]):  # μ_a + ε μ_a
            stretched = isinstance(other, T.Binary) and other.sign in "*." and one in (other.left, other.right)
            if item == "a" and found.length is None and isinstance(one, T.Symbol) and is_mean(one) and stretched:
                factor = other.left if other.right == one else other.right  # type: ignore[attr-defined]
                if isinstance(factor, T.Symbol):
                    found.length, found.length_at, found.length_less_one = factor, (order, formula.part), True


_NAMED_LENGTH = re.compile(
    r"(?:\b(?:length|norm|magnitude)\b[^.;。]{0,25}\$k_\{?a\}?\$|\$k_\{?a\}?\$[^.;。]{0,6}(?:的)?(?:长度|模长|模))[^.;。=]{0,40}$"
)


def _length_in_words(found: Notation, clause: T.Clause, order: int, formula: Formula) -> None:
    """ "Call the length of $k_a$ $m = 1 + …$" names the length."""
    head = clause.sides[0] if clause.sides else None
    plain = isinstance(head, T.Symbol) and not is_key(head) and not is_mean(head) and not is_query(head)
    if plain and found.length is None and clause.signs[0] in ("=", ":", "~") and _NAMED_LENGTH.search(formula.before):
        found.length, found.length_at = head, (order, formula.part)  # type: ignore[assignment]


def _is_product(node: T.Node) -> bool:
    return isinstance(node, T.Binary) and node.sign in "*."


def _noise(found: Notation, clause: T.Clause) -> None:
    """Σ_i = σ² I and k_i ~ N(μ_i, σ² I) name the size of the noise, k_i = μ_i + √α z_i its letter."""
    if len(clause.sides) < 2:
        return
    head, last = clause.sides[0], clause.sides[-1]
    spread = last if isinstance(head, T.Symbol) and head.base == "Sigma" else None
    if isinstance(last, T.Call) and last.name == "N" and len(last.arguments) == 2:
        spread = last.arguments[1]
    if (
        found.noise is None
        and isinstance(spread, T.Binary)
        and spread.sign in "*."
        and spread.right in (T.Symbol("I"), T.Symbol("I", ("d",)))
        and _is_size(spread.left)
    ):
        found.noise = spread.left
    if isinstance(head, T.Symbol) and is_key(head) and isinstance(last, T.Binary) and last.sign == "+":
        noise = last.right
        factor = noise.left if isinstance(noise, T.Binary) and noise.sign in "*." else None
        letter = noise.right if isinstance(noise, T.Binary) and noise.sign in "*." else None
        mean = isinstance(last.left, T.Symbol) and is_mean(last.left)
        if mean and factor is not None and isinstance(letter, T.Symbol) and letter.index and not is_mean(letter):
            found.noise_vector, found.noise_factor = letter.base, factor


def _is_size(node: T.Node) -> bool:
    """Whether a node is a letter or its square."""
    if isinstance(node, T.Binary) and node.sign == "^" and node.right == T.Number("2"):
        node = node.left
    return isinstance(node, T.Symbol) and not (node.index and node.base == "alpha") and not is_mean(node)


def _upright(found: Notation, clause: T.Clause) -> None:
    """A matrix that is written with the basis vectors as rows."""
    head = clause.sides[0] if clause.sides else None
    if not (isinstance(head, T.Symbol) and head.base in ("A", "B") and not head.index and clause.signs[0] == "="):
        return
    written_out = clause.sides[1]
    flipped = isinstance(written_out, T.Transposed)
    matrix = written_out.inner if isinstance(written_out, T.Transposed) else written_out
    if isinstance(matrix, T.Matrix):
        cells = [c for row in matrix.rows for c in row if not isinstance(c, T.Dots)]
        rows = len(matrix.rows) > 1 and all(isinstance(c, T.Transposed) for c in cells)
        if (
            rows != flipped
            and cells
            and (rows or flipped)
            and not (flipped and any(isinstance(c, T.Transposed) for c in cells))
        ):
            found.upright.add(head.base)


def _one_plus(node: T.Node) -> T.Symbol | None:
    """δ of 1 + δ."""
    if isinstance(node, T.Binary) and node.sign == "+":
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if one == T.Number("1") and isinstance(other, T.Symbol) and not is_key(other) and not is_mean(other):
                return other
    return None


def current(definitions: dict[T.Symbol, Definition], inside: list[T.Symbol]) -> dict[T.Symbol, Definition]:
    """The definitions that hold: either one query or those of two heads, whichever came last or is spoken of."""
    single = [d for s, d in definitions.items() if is_query(s) and not s.index]
    several = [d for s, d in definitions.items() if is_query(s) and s.index]
    if not single or not several:
        return definitions
    heads = any((is_query(s) or s.base in ("c", "C")) and s.index in (("1",), ("2",)) for s in inside) or any(
        s.base == "alpha" and len(s.index) == 2 for s in inside
    )
    heads = heads or max(d.order for d in several) > max(d.order for d in single)
    drop = single if heads else several
    return {s: d for s, d in definitions.items() if d not in drop}
