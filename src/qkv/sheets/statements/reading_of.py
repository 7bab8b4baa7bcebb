"""Reading: one way to take the letters of a formula, as names of the language of claims."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.notation import (
    MEANS,
    OUTPUTS,
    SAFE,
    SPARE,
    Definition,
    Notation,
    is_key,
    is_mean,
    is_query,
    scale_symbols,
    vanishing,
    written,
)  # fmt: skip
from qkv.sheets.statements.worlds import World
from qkv.sheets.statements.writing import MATRIX, ROW, SCALAR, VECTOR, Term, Unwritable, Writer

ITEMS = re.compile(r"[a-z]")
SCORES = ("s", "z", "e", "l", "o")
"""Letters that people write for scores, where they do not say so."""


def _is_item_of_head(index: tuple[str, ...]) -> bool:
    """Whether an index names an item, or an item and one of two heads."""
    items = [i for i in index if ITEMS.fullmatch(i)]
    return len(items) == 1 and (len(index) == 1 or (len(index) == 2 and bool({"1", "2"} & set(index))))


@dataclass
class Reading:
    """One way to read a formula.

    Attributes:
        world: What is taken as given.
        notation: The letters of the sheet.
        definitions: What the author defined, at this place.
        head: The head that weights without one belong to, 0 for a single query.
        alpha: "weight", "score" or "exp": what α with an index stands for.
        sampled: Whether keys in the author's queries stay keys; else they are read as their means.
        letters: Scales and the names that they got.
        plain_output: Whether c is the output even where it is a scale too.
        replaced: Letters of indices that stand for an item.
        used: The definitions that were used so far.
        any_query: Whether a query that is not defined may be any one.
        free_queries: The queries that may be any.
        small: Scales by which a query is divided, which go to 0.
        fixed: Whether keys are written as their means, inside a query that was chosen before they were sampled.
        guessed: Whether a letter was taken for a score though nothing says so; what that refutes is not wrong.
    """

    world: World
    notation: Notation
    definitions: dict[T.Symbol, Definition]
    head: int = 0
    alpha: str = "weight"
    sampled: bool = False
    plain_output: bool = False
    replaced: dict[str, str] = field(default_factory=dict)
    letters: dict[T.Symbol, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    fixed: bool = False
    small: set[T.Symbol] = field(default_factory=set)
    depth: int = 0
    any_query: bool = False
    free_queries: set[str] = field(default_factory=set)
    guessed: bool = False

    def __post_init__(self) -> None:
        """Name the scales."""
        if self.world.kind == "tokens" or self.letters:
            return
        taken: set[str] = set()
        for definition in self.definitions.values():
            scales = scale_symbols(definition.value) if is_query(definition.symbol) else []
            small = vanishing(definition.value)
            self.small |= {s for s in scales if s in small}
            for s in scales:
                if s in self.letters:
                    continue
                if s != scales[0] and scales[0] in self.letters and (s in small) == (scales[0] in small):
                    self.letters[s] = self.letters[scales[0]]  # one query grows as a whole
                    continue
                own = s.base if s.base in SAFE and not s.index and s.base not in taken else ""
                self.letters[s] = own or next(x for x in (*SPARE, *SAFE) if x not in taken and x not in ("n",))
                taken.add(self.letters[s])

    @property
    def heads(self) -> bool:
        """Whether the author's queries are those of two heads."""
        names = {d.symbol.index for d in self.definitions.values() if is_query(d.symbol) and d.symbol.index}
        return bool(names)

    def writer(self, taken: frozenset[str] = frozenset()) -> Writer:
        """The writer of this reading."""
        ends = ("m", "p") if self.world.kind == "bases" else ("n",) if self.world.kind != "tokens" else ("n", "3")
        return Writer(self.resolve, self.replaced, taken, ends, named=self.named)

    @property
    def named(self) -> tuple[str, ...]:
        """The items that the author's queries name."""
        inside = [s for d in self.definitions.values() if is_query(d.symbol) for s in T.symbols(d.value)]
        return tuple(sorted({i for s in inside for i in s.index if re.fullmatch(r"[a-h]", i)}))

    def lets(self) -> tuple[str, ...]:
        """The definitions that were used, in the language of claims."""
        return tuple(f"{name} = {value}" for name, value in self.used.items())

    # Symbols.
    def resolve(self, s: T.Symbol) -> Term:
        """What a symbol stands for."""
        if self.depth > 8:
            raise Unwritable("a definition in terms of itself")
        found = {
            "bases": self._in_bases, "tokens": self._in_tokens,
        }.get(self.world.kind, self._in_keys)(s)  # fmt: skip
        if found is None:
            raise Unwritable(
                f"the letter {''.join([s.base, *(['_'] if s.index else []), *s.index])}, which is not defined"
            )
        return found

    def _in_keys(self, s: T.Symbol) -> Term | None:
        base, index = s.base, s.index
        if s in self.letters and not (self.plain_output and base in OUTPUTS and not index):
            return Term(self.letters[s], SCALAR, True)
        special = self._random(s)
        if special is not None:
            return special
        if base in ("v", "upsilon", "V") and len(index) >= 1:
            return Term(f"v_{index[-1]}", VECTOR, True)
        if is_key(s):
            return self._key(index[-1])
        if is_mean(s):
            return Term(f"{self._mean_name()}_{index[-1]}", VECTOR, True)
        if base in ("q", "g"):
            return self._query(index)
        if base in ("alpha", "a", "w") and index:
            return self._weight(index)
        if base in OUTPUTS:
            return self._output(index)
        if base in ("n", "N") and not index:
            return Term("n", SCALAR, True)
        if base == "I" or (base == "E" and not index):
            return Term("I", MATRIX, True)
        if base == "e" and not index:
            return Term("exp(1)", SCALAR, True)
        found = self._defined(s)
        if found is None and base in ("beta", "w", "p", "a") and _is_item_of_head(index):
            return self._weight(index)
        if found is None and base in SCORES and len(index) == 1 and ITEMS.fullmatch(index[0]):
            return self._guessed_score(index[0])
        return found

    def _guessed_score(self, item: str) -> Term | None:
        """s_a as the score of a, where nothing says what s stands for."""
        query = self._query(())
        if query is None:
            return None
        self.guessed = True
        return Term(f"({self._key(item).text}'*{query.text})", SCALAR, True)

    def _mean_name(self) -> str:
        return "mu" if self.world.kind in ("means", "noise") else "k"

    def _key(self, item: str) -> Term:
        return Term(f"mu_{item}" if self.fixed else f"k_{item}", VECTOR, True)

    def _random(self, s: T.Symbol) -> Term | None:
        """The length and the noise of keys, and their covariances."""
        length = self.notation.length
        if self.world.kind not in ("means", "noise"):
            return None
        if length is not None and s == length and not (self.plain_output and s.base in OUTPUTS):
            less = " - 1" if self.notation.length_less_one else ""
            name = "gamma" if self.world.kind == "means" else "mu_a'*k_a"
            return Term(f"({name}{less})" if less or name != "gamma" else name, SCALAR, True)
        if length is not None and length.index and s.base == length.base and s.index and s.index[0].isalpha():
            item = s.index[-1]
            return (
                Term("1", SCALAR, True) if self.world.kind == "means" else Term(f"(mu_{item}'*k_{item})", SCALAR, True)
            )
        size = self._noise_size(s)
        if size is not None:
            return size
        if s.base == self.notation.noise_vector and s.index:
            item = s.index[-1]
            if self.notation.noise_factor is None:
                return Term(f"(k_{item} - mu_{item})", VECTOR, True)
            factor = self.writer().write(self.notation.noise_factor)
            if self.world.kind != "noise" or factor.shape != SCALAR:
                raise Unwritable("noise of a key, as if it had not vanished")
            return Term(f"((k_{item} - mu_{item})/{factor.closed})", VECTOR, True)
        if s.base == "Sigma" and s.index:
            return Term(self.spread(s.index[-1]), MATRIX)
        return None

    def _noise_size(self, s: T.Symbol) -> Term | None:
        """The size of the noise: α, or the author's letter, of which the square may be the variance."""
        own = self.notation.noise
        deviation = s == self.notation.noise_factor and s.base != "alpha" and own is None  # σ of k_i = μ_i + σ ξ_i
        root = deviation or (isinstance(own, T.Binary) and own.left == s)
        if not root and s != own and s != T.Symbol("alpha"):
            return None
        if self.world.kind != "noise":
            return Term("0", SCALAR, True)
        return Term("sqrt(eps)" if root else "eps", SCALAR, True)

    def spread(self, item: str) -> str:
        """The covariance of a key, as it is given."""
        given = self.world.text
        own = re.search(rf"k_{item} ~ N\(mu_{item}, ((?:[^()]|\([^()]*\))*)\)", given)
        every = re.search(r"k_i ~ N\(mu_i, ((?:[^()]|\([^()]*\))*)\)", given)
        if own is None and every is None:
            raise Unwritable("a covariance that is not given")
        return (own or every)[1].replace("mu_i", f"mu_{item}")  # type: ignore[index]

    def _query(self, index: tuple[str, ...]) -> Term | None:
        if self.world.kind in ("margin", "free"):
            return Term("q", VECTOR, True)
        names = {d.symbol.index for d in self.definitions.values() if is_query(d.symbol)}
        if index == () and () not in names and names and self.head:
            return self._head(self.head)
        if index in (("a",), ("b",)):
            number = 1 if index == ("a",) else 2
            return self._head(number)
        if index in (("1",), ("2",)):
            return self._head(int(index[0]))
        if index:
            return None
        return self._use("q", self._definition(()))

    def _head(self, number: int) -> Term | None:
        for index in ((str(number),), ("ab"[number - 1],)):
            found = self._definition(index)
            if found is not None:
                return self._use(f"q_{number}", found)
        return self._use(f"q_{number}", None)

    def _definition(self, index: tuple[str, ...]) -> Definition | None:
        return next((d for s, d in self.definitions.items() if is_query(s) and s.index == index), None)

    def _use(self, name: str, definition: Definition | None) -> Term | None:
        """A query by its name, with its definition noted."""
        if definition is None and self.any_query:
            self.free_queries.add(name)
            return Term(name, VECTOR, True)
        if definition is None:
            return None
        if name not in self.used:
            self.used[name] = ""  # against circles
            self.used[name] = self._value(definition.value)
        if not self.used[name]:
            raise Unwritable("a definition in terms of itself")
        return Term(name, VECTOR, True)

    def _value(self, value: T.Node) -> str:
        fixed = self.world.kind in ("means", "noise") and not self.sampled
        inner = replace(self, fixed=fixed, plain_output=False)
        self.depth += 1
        term = Writer(inner.resolve, {}, frozenset(), ("n",)).write(value)
        self.depth -= 1
        if term.shape == ROW:
            return f"{term.closed}'"
        if term.shape != VECTOR:
            raise Unwritable(f"a query that is a {term.shape}")
        return term.text

    def told(self, because: str) -> str:
        """A reason with the author's letters in place of those of the claim."""
        names = {name: written(s) for s, name in self.letters.items() if written(s) != name and name[0].isalpha()}
        if self.notation.length is not None and not self.notation.length_less_one:
            names["gamma"] = written(self.notation.length)
        for name, own in names.items():
            because = re.sub(rf"(?<![A-Za-z_]){name}(?![A-Za-z_(])", own, because)
        return because

    def need_queries(self) -> None:
        """Note the queries that weights and outputs depend on."""
        if self.world.kind in ("margin", "free", "tokens", "bases"):
            return
        if self.heads and (self.head or self._definition(()) is None):
            if self._head(1) is None or self._head(2) is None:
                raise Unwritable("a query that is not defined")
        elif self._use("q", self._definition(())) is None:
            raise Unwritable("a query that is not defined")

    def _weight(self, index: tuple[str, ...]) -> Term | None:
        if len(index) == 2 and index[1] in ("1", "2") and index[0].isalpha():
            index = (index[1], index[0])
        item = index[-1]
        head = index[0] if len(index) == 2 and index[0] in ("1", "2") else ""
        if self.alpha != "weight":
            query = self._query((head,) if head else ())
            if query is None:
                return None
            score = f"k_{item}'*{query.text}"
            return Term(score if self.alpha == "score" else f"exp({score})", SCALAR, self.alpha == "exp")
        if head and not self.heads:
            return None
        number = head or (str(self.head) if self.heads and self.head else "")
        if number:
            self.head = self.head or int(number)
        self.need_queries()
        return Term(f"alpha_{{{number},{item}}}" if number else f"alpha_{item}", SCALAR, True)

    def _output(self, index: tuple[str, ...]) -> Term | None:
        if index in (("1",), ("2",), ("a",), ("b",)):
            if not self.heads:
                return None
            self.head = self.head or 1
            self.need_queries()
            return Term(f"c_{ {'a': '1', 'b': '2'}.get(index[0], index[0]) }", VECTOR, True)
        if index:
            return None
        if self.heads and not self.head and self._definition(()) is None:
            self.head = 1
        self.need_queries()
        return Term("c", VECTOR, True)

    def _defined(self, s: T.Symbol) -> Term | None:
        """A letter of the author's own, by what it was defined to be."""
        definition = self.definitions.get(s)
        if definition is None:
            definition = self._alike(s)
        if definition is None:
            return self._other_scale(s)
        self.depth += 1
        term = self.writer().write(definition.value)
        self.depth -= 1
        return Term(f"({term.text})", term.shape, True)

    def _alike(self, s: T.Symbol) -> Definition | None:
        """S_b by the definition of S_a, where that is about item a alone: S_a = k_a'q, but not S_a = t or k_a'k_b."""
        for other, definition in self.definitions.items():
            if other.base != s.base or len(other.index) != 1 or len(s.index) != 1:
                continue
            (theirs,), (mine,) = other.index, s.index
            items = {i for inside in T.symbols(definition.value) for i in inside.index}
            if theirs.isalpha() and mine.isalpha() and items == {theirs}:
                return replace(definition, value=T.with_index(definition.value, theirs, mine))
        return None

    def _other_scale(self, s: T.Symbol) -> Term | None:
        """A scale of another part, read as the one of this part with the same letter."""
        if s.base not in {x.base for symbols in self.notation.scales.values() for x in symbols}:
            return None
        same = [name for x, name in self.letters.items() if x.base == s.base]
        return Term(same[0], SCALAR, True) if len(same) >= 1 else None

    def _in_tokens(self, s: T.Symbol) -> Term | None:
        base, index = s.base, s.index
        if base in MEANS and index:
            return Term(f"u_{index[-1]}", VECTOR, True) if index[-1] in "abcd" else None
        if base == "x" and index:
            override = self.definitions.get(s)
            if override is not None and s.index == ("2",):
                self.used.setdefault("x_2", Writer(self.resolve).write(override.value).text)
            return Term(f"x_{index[-1]}", VECTOR, True)
        if base in ("v", "k", "q", "c", "upsilon", "C") and index and (index[-1].isdigit() or index[-1] in "ijl"):
            return Term(f"{ {'upsilon': 'v', 'C': 'c'}.get(base, base) }_{index[-1]}", VECTOR, True)
        if base == "beta" and not index:
            return Term("beta", SCALAR, True)
        if base in ("alpha", "a") and index:
            joined = "".join(index)
            if len(joined) != 2:
                return None
            if self.alpha == "score":
                return Term(f"k_{joined[1]}'*q_{joined[0]}", SCALAR)
            return Term(f"alpha_{{{joined}}}", SCALAR, True)
        if base in ("V", "K", "Q") and not index:
            return Term(base, MATRIX, True)
        if base in ("I", "E") and not index:
            return Term("I", MATRIX, True)
        if base == "e" and not index:
            return Term("exp(1)", SCALAR, True)
        return self._defined(s)

    def _in_bases(self, s: T.Symbol) -> Term | None:
        base, index = s.base, s.index
        if base in ("A", "B") and not index:
            return Term(f"{base}'" if base in self.notation.upright else base, MATRIX, True)
        if base in ("a", "b") and len(index) == 1:
            return Term(f"{base}_{index[0]}", VECTOR, True)
        if base == "v" and index in (("a",), ("b",)):
            return Term(f"v_{index[0]}", VECTOR, True)
        if base == "s" and not index:
            return Term("s", VECTOR, True)
        if base == "M" and index == ("s",):
            return Term("M*s", VECTOR, True)
        if base == "M" and not index:
            return Term("M", MATRIX, True)
        if base in ("c", "C", "x") and not index:
            return Term("x", VECTOR, True)
        if base in ("d", "c'", "y", "D") and not index:
            return Term("y", VECTOR, True)
        if base in ("c", "x") and len(index) == 1:
            return Term(f"(a_{index[0]}'*A*x)", SCALAR, True)
        if base in ("d", "y", "c'") and len(index) == 1:
            return Term(f"(b_{index[0]}'*B*y)", SCALAR, True)
        if base == "I" or (base == "E" and not index):
            return Term("I", MATRIX, True)
        return self._defined(s)

    def matrices(self) -> tuple[str, ...]:
        """The author's matrices in the language of claims, for tokens and bases."""
        out: list[str] = []
        for s, d in self.definitions.items():
            if s.base in ("V", "K", "Q", "M") and not s.index:
                wanted = "M" if self.world.kind == "bases" else s.base
                if (self.world.kind == "bases") != (s.base == "M"):
                    continue
                if self.world.kind not in ("bases", "tokens"):
                    continue
                out.append(f"{wanted} = {self.matrix(d.value)}")
        return tuple(out)

    def matrix(self, value: T.Node) -> str:
        """A matrix of the author; columns or rows of basis vectors are A and A'."""
        text = self.written_matrix(value)
        if text is None:
            raise Unwritable("a matrix")
        return text

    def written_matrix(self, value: T.Node) -> str | None:
        """The matrix, or None if it cannot be written."""
        value = with_columns(value)
        term = self.writer().write(value)
        return term.text if term.shape == MATRIX else None


def with_columns(node: T.Node) -> T.Node:
    """The node with matrices of basis vectors as A, B and their transposes."""
    if isinstance(node, T.Matrix):
        found = _columns(node)
        return found if found is not None else node
    if isinstance(node, T.Binary):
        return T.Binary(node.sign, with_columns(node.left), with_columns(node.right))
    if isinstance(node, T.Transposed):
        inner = with_columns(node.inner)
        listed = isinstance(node.inner, T.Matrix) and len(node.inner.rows) == 1 and isinstance(inner, T.Symbol)
        return inner if listed else T.Transposed(inner)  # (c_1, …, c_m)^T is the column that (c_1, …, c_m) is
    if isinstance(node, T.Minus):
        return T.Minus(with_columns(node.inner))
    return node


def _columns(node: T.Matrix) -> T.Node | None:
    cells = [c for row in node.rows for c in row if not isinstance(c, T.Dots)]
    bare = [c.inner if isinstance(c, T.Transposed) else c for c in cells]
    names = {c.base for c in bare if isinstance(c, T.Symbol) and c.index}
    if not cells or len(names) != 1 or not all(isinstance(c, T.Symbol) and c.index for c in bare):
        return None
    name = names.pop()
    if name in ("c", "d", "x", "y"):
        return T.Symbol({"x": "c", "y": "d"}.get(name, name))
    if name not in ("a", "b"):
        return None
    matrix = T.Symbol(name.upper())
    upright = len(node.rows) > 1
    return T.Transposed(matrix) if upright or any(isinstance(c, T.Transposed) for c in cells) else matrix
