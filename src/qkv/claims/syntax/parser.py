"""Parser: ASCII text to nodes, or an error with line, column and what was expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from qkv.claims.syntax import nodes as L

MAX_CLAUSE_LENGTH = 600  # characters of one given, let or then
MAX_DIGITS = 9  # of a numeral
MAX_BRACKET_DEPTH = 40  # nested brackets

# The terminals of the grammar as error messages call them.
TERMINAL_DESCRIPTIONS = {
    "NAME": "a name such as k_a",
    "NUMBER": "a number",
    "RELOP": "a comparison such as >=",
    "EQUAL": "=",
    "TENDS": "->",
    "NOTTENDS": "-/->",
    "KIND": "orthonormal, orthogonal, free, real or orthonormal bases",
    "FUNCTION": "exp( log( sqrt( norm( Phi( R( max( softmax( ...",
    "STAT": "Var[ Cov[ Corr[ E[",
    "SUM": "sum_i",
    "CHANCE": "P[",
    "PRIME": "'",
    "$END": "the end of the line",
    "WHAT": "real or query",
    "SPACE": "R^n, R^{n x d} or simplex^n",
    "MATRIX_KIND": "permutation matrix, orthogonal matrix, symmetric, invertible or masked",
    "CASES": "cases(",
    "LIM": "lim_{t -> oo}",
    "TENDS_AS": "->{t -> oo}",
}
FUNCTIONS = ("exp", "log", "sqrt", "norm", "Phi", "R")  # those of one argument that are Call nodes
APPLIED = (
    "sigmoid", "tanh", "relu", "abs", "sign", "sin", "cos", "max", "min", "argmax", "argmin", "softmax",
    "causal_softmax", "lse", "entropy", "cross_entropy", "KL", "trace", "rank", "diag", "inv", "inner", "concat",
    "stack", "grad", "jac", "diff", "O", "col", "row",
)  # fmt: skip
"""Functions that are Apply nodes."""
ARITY = {"max": (1, 2), "min": (1, 2), "cross_entropy": (2,), "KL": (2,), "inner": (2,), "concat": (2,), "stack": (2,),
         "grad": (2,), "jac": (2,), "diff": (2,), "col": tuple(range(1, 7)), "row": tuple(range(1, 7))}  # fmt: skip
STATISTICS = ("Var", "Cov", "Corr", "E", "P")
_ROUND_STATISTICS = ("Var", "Cov", "Corr", "E")  # may stand before round brackets too
# What to write instead of functions that people expect.
_SUBSTITUTES = {
    "ln": "log(x)",
    "tan": "sin(x)/cos(x)",
    "logsumexp": "lse(z)",
    "det": "trace or rank",
}
# Words of the grammar, and Greek letters, which a bracket may follow: a letter before a bracket is a factor.
_BEFORE_BRACKET = frozenset({
    "as", "of", "for", "all", "when", "and", "makes", "within", "in", "not", "is", "a", "no", "real", "query",
    "probability", "with", "given", "let", "then", "norm", "oo", "alpha", "beta", "gamma", "delta", "eps", "theta",
    "sigma", "lambda", "mu", "Sigma", "pi", "iff", "if", "exists", "otherwise", "size",
})  # fmt: skip
_CALLED = re.compile(r"(?<![A-Za-z_])([A-Za-z]+(?:_\w+)?)\s*\(")
_VALUE_TERMINALS = {"NAME", "NUMBER", "LPAR", "FUNCTION", "STAT", "SUM", "CHANCE"}


class Source:
    """ASCII text with the position of every character in the document."""

    def __init__(self, text: str, at: Sequence[L.At]) -> None:
        self.text = text
        self.at = tuple(at)

    def __getitem__(self, part: slice) -> Source:
        return Source(self.text[part], self.at[part])

    def where(self, index: int) -> L.At:
        """The position of a character; of the end, the position after the last."""
        if 0 <= index < len(self.at):
            return self.at[index]
        line, column = self.at[-1] if self.at else (1, 0)
        return line, column + 1

    def strip(self) -> Source:
        """Without blanks at both ends."""
        left = len(self.text) - len(self.text.lstrip())
        return self[left : len(self.text.rstrip())]

    def split(self) -> list[Source]:
        """Split at commas outside brackets."""
        parts, depth, start = [], 0, 0
        for index, char in enumerate(self.text):
            depth += (char in "([{") - (char in ")]}")
            if char == "," and depth == 0:
                parts.append(self[start:index])
                start = index + 1
        return [*parts, self[start : len(self.text)]]


@cache
def parser() -> Lark:
    """The parser of the grammar, built once."""
    text = resources.files("qkv.claims.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=["given", "let", "then"], maybe_placeholders=True, propagate_positions=True)


def parse(source: Source, start: str) -> Any:
    """Parse one clause; `start` is "given", "let" or "then". Returns a Given, a Let or a Statement."""
    source = source.strip()
    if len(source.text) > MAX_CLAUSE_LENGTH:
        raise L.Malformed(
            source.where(0), f"{len(source.text)} characters", f"at most {MAX_CLAUSE_LENGTH} in one {start}"
        )
    depth = 0
    for index, char in enumerate(source.text):
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_BRACKET_DEPTH:
            raise L.Malformed(
                source.where(index), "a very deep nest of brackets", f"at most {MAX_BRACKET_DEPTH} levels"
            )
    _require_known_functions(source)
    try:
        tree = parser().parse(source.text, start=start)
    except UnexpectedInput as why:
        raise _explained(why, source) from None
    return Builder(source).build(tree)


def _require_known_functions(source: Source) -> None:
    """Refuse a word before a bracket that is no function of the language: it would be read as a factor."""
    for found in _CALLED.finditer(source.text):
        word = found[1]
        if word in (*FUNCTIONS, *APPLIED, *_ROUND_STATISTICS, "cases") or word.startswith("def_"):
            continue
        if word in _BEFORE_BRACKET or "_" in word or (len(word) == 1 and word not in STATISTICS):
            continue
        at = source.where(found.start(1))
        if word in STATISTICS:
            raise L.Malformed(
                at, f"{word} with round brackets", f"{word}[ with square brackets, or {word}*( for a product"
            )
        known = ", ".join(f"{name}(" for name in (*FUNCTIONS, *APPLIED))
        instead = f"; instead of {word}, {_SUBSTITUTES[word]}" if word in _SUBSTITUTES else ""
        raise L.Malformed(
            at, f"{word}(, which is no function here", f"one of {known} or {word}*( for a product{instead}"
        )


def _explained(why: UnexpectedInput, source: Source) -> L.Malformed:
    index = why.pos_in_stream if why.pos_in_stream is not None and why.pos_in_stream >= 0 else len(source.text)
    accepted: set[str] = set()
    if isinstance(why, UnexpectedToken):
        came = "the end of the line" if why.token.type == "$END" else f"'{why.token}'"
        index = len(source.text) if why.token.type == "$END" else index
        accepted = set(why.accepts or why.expected)
    elif isinstance(why, UnexpectedCharacters):
        came = f"'{source.text[index]}'" if index < len(source.text) else "the end of the line"
        accepted = set(why.allowed or ())
    else:
        assert isinstance(why, UnexpectedEOF)
        came, accepted = "the end of the line", set(why.expected)
    return L.Malformed(source.where(index), came, _expected(accepted))


def _expected(accepted: set[str]) -> str:
    words: list[str] = []
    if accepted >= _VALUE_TERMINALS - {"SUM"}:
        words.append("a number, name or bracket")
        accepted = accepted - _VALUE_TERMINALS
    known = {t.name: t.pattern.value for t in parser().terminals}
    literal = [TERMINAL_DESCRIPTIONS.get(name) or known.get(name, name.lower()) for name in sorted(accepted)]
    words += literal
    return "one of: " + ", ".join(words[:14]) if len(words) > 1 else (words or ["something else"])[0]


class Builder:
    """From the parse tree of Lark to the nodes of nodes.py: one method for each rule of the grammar."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def build(self, tree: Tree[Token]) -> Any:
        """The node of a parse tree."""
        return getattr(self, f"_{tree.data}")(tree.children, self._at(tree))

    def _at(self, part: Any) -> L.At:
        while isinstance(part, Tree):
            found = [c for c in part.children if c is not None]
            if not found:
                return self.source.where(0)
            part = found[0]
        return self.source.where(part.start_pos or 0) if isinstance(part, Token) else self.source.where(0)

    def _expr(self, part: Any) -> L.Expr:
        return cast(L.Expr, self.build(part))

    # Names and numbers.
    def _named(self, token: Token) -> L.Name:
        base, _, subs = token.partition("_")
        parts = tuple(s.strip() for s in subs[1:-1].split(",")) if subs.startswith("{") else (subs,) if subs else ()
        # alpha_21 has two indices when both are single digits, as people write it for tokens and heads.
        if len(parts) == 1 and re.fullmatch(r"\d\d", parts[0]):
            parts = (parts[0][0], parts[0][1])
        if len(parts) == 1 and re.fullmatch(r"\d[a-z]", parts[0]):
            parts = (parts[0][0], parts[0][1])
        return L.Name(str(base), parts, self.source.where(token.start_pos or 0))

    def _number(self, children: list[Any], at: L.At) -> L.Num:
        text = str(children[0])
        if len(text.replace(".", "")) > MAX_DIGITS:
            raise L.Malformed(at, f"the number {text[:20]}", f"at most {MAX_DIGITS} digits")
        return L.Num(Fraction(text), at)

    def _name(self, children: list[Any], at: L.At) -> L.Name:
        return self._named(children[0])

    # Expressions.
    def _binary(self, sign: str, children: list[Any], at: L.At) -> L.Op:
        return L.Op(sign, self._expr(children[0]), self._expr(children[1]), at)

    def _plus(self, children: list[Any], at: L.At) -> L.Op:
        return self._binary("+", children, at)

    def _minus(self, children: list[Any], at: L.At) -> L.Op:
        return self._binary("-", children, at)

    def _times(self, children: list[Any], at: L.At) -> L.Op:
        return self._binary("*", children, at)

    def _beside(self, children: list[Any], at: L.At) -> L.Op:
        """A product without a sign; after a quotient, it is not clear what is divided by."""
        self._require_no_quotient(*children)
        self._require_no_short_exponent(*children)
        self._require_no_digits_after_a_letter(children[1])
        return self._binary("*", children, at)

    def _require_no_quotient(self, left: Tree[Token], right: Tree[Token] | Token) -> None:
        """Refuse 1/2t and 1/k_a'q, which people mean in two ways; `right` ends what stands beside the quotient."""
        quotient = left
        while quotient.data == "beside":
            quotient = cast(Tree[Token], quotient.children[0])
        if quotient.data != "over":
            return
        divisor = cast(Tree[Token], quotient.children[1]).meta.start_pos
        start, middle = quotient.meta.start_pos, quotient.meta.end_pos
        end = right.end_pos if isinstance(right, Token) else right.meta.end_pos
        ends = ((start, divisor), (divisor, middle), (middle, end))
        top, bottom, after = (" ".join(self.source.text[one:two].split()) for one, two in ends)
        meant = f"({top}{bottom})*{after} or {top}({bottom}*{after})"
        raise L.Malformed(self.source.where(start), f"{top}{bottom} {after}, which can be read in two ways", meant)

    def _require_no_short_exponent(self, left: Tree[Token], right: Tree[Token]) -> None:
        """Refuse e^2x without a space, which people mean as e^(2*x)."""
        power = cast(Tree[Token], left.children[-1]) if left.data in ("beside", "times", "over") else left
        start, middle, text = power.meta.start_pos, right.meta.start_pos, self.source.text
        if power.data == "power" and power.meta.end_pos == middle and text[start:middle].startswith("e^"):
            exponent, after = text[start + 2 : middle], text[middle : right.meta.end_pos]
            if exponent.lstrip("- ").replace(".", "").isdigit():
                came = f"e^{exponent}{after}, which can be read in two ways"
                raise L.Malformed(self.source.where(start), came, f"e^({exponent}*{after}) or e^({exponent})*{after}")

    def _require_no_digits_after_a_letter(self, right: Tree[Token]) -> None:
        """Refuse t2, which may be meant as an index."""
        start, text = right.meta.start_pos, self.source.text
        if start and text[start].isdigit() and text[start - 1].isalpha():
            number = text[start : right.meta.end_pos]
            came, expected = f"{number} right after a letter", f"_{number} for an index, or *{number} for a product"
            raise L.Malformed(self.source.where(start), came, expected)

    def _over(self, children: list[Any], at: L.At) -> L.Op:
        return self._binary("/", children, at)

    def _neg(self, children: list[Any], at: L.At) -> L.Neg:
        return L.Neg(self._expr(children[0]), at)

    def _power(self, children: list[Any], at: L.At) -> L.Expr:
        base, exponent = children
        raised = [c for c in exponent.children if c is not None]
        if len(raised) == 1 and isinstance(raised[0], Token) and raised[0] == "T" and not self._has_minus(raised[0]):
            return L.Transpose(self._expr(base), at)
        part = raised[-1]
        if isinstance(part, Token):
            value: L.Expr = self._number([part], at) if part.type == "NUMBER" else self._named(part)
        else:
            value = self._expr(part)
        # The bare minus of x^-1 and e^-x is an anonymous token, so it shows in the text and not among the children.
        if isinstance(part, Token) and self._has_minus(part):
            value = L.Neg(value, at)
        return L.Op("^", self._expr(base), value, at)

    def _has_minus(self, token: Token) -> bool:
        return self.source.text[: token.start_pos or 0].rstrip().endswith("-")

    def _base(self, children: list[Any], at: L.At) -> L.Expr:
        value = self._expr(children[0])
        for _ in children[1:]:
            value = L.Transpose(value, at)
        return value

    def _call(self, children: list[Any], at: L.At) -> L.Expr:
        function, args = str(children[0]), tuple(self._expr(c) for c in children[1:])
        if not function.startswith("def_") and len(args) not in ARITY.get(function, (1,)):
            many = " or ".join(str(n) for n in ARITY.get(function, (1,)))
            raise L.Malformed(at, f"{function} of {len(args)} arguments", f"{many} in brackets")
        if function in FUNCTIONS:
            return L.Call(function, args[0], at)
        return L.Apply(function, args, at)

    def _cases(self, children: list[Any], at: L.At) -> L.Cases:
        return L.Cases(tuple(self._piece(c.children) for c in children[1:]), at)

    def _piece(self, children: list[Any]) -> tuple[L.Expr, L.Relation | None]:
        return self._expr(children[0]), self.build(children[1]) if len(children) > 1 else None

    def _odot(self, children: list[Any], at: L.At) -> L.Apply:
        return L.Apply("odot", (self._expr(children[0]), self._expr(children[2])), at)

    def _otimes(self, children: list[Any], at: L.At) -> L.Apply:
        return L.Apply("otimes", (self._expr(children[0]), self._expr(children[2])), at)

    def _neg_sum(self, children: list[Any], at: L.At) -> L.Neg:
        return L.Neg(self._sum(children, at), at)

    def _sum(self, children: list[Any], at: L.At) -> L.Sum:
        head, inner = children
        start, _, end = str(head).partition("^")
        text = start.removeprefix("sum_").strip("{} ")
        found = re.fullmatch(r"([A-Za-z])\s*(=\s*1)?(?:(?:!=|not\s+in)\s*([A-Za-z0-9, ]+))?", text)
        if found is None:
            raise L.Malformed(at, f"'{head}'", "sum_i, sum_{i=1}^n or sum_{i != a, b}")
        but = tuple(s.strip() for s in (found[3] or "").split(",") if s.strip())
        return L.Sum(found[1], but, self._expr(inner), at, end.strip("{}() "))

    def _beside_sum(self, children: list[Any], at: L.At) -> L.Op:
        self._require_no_quotient(children[0], children[-1])
        return self._times_sum(children, at)

    def _times_sum(self, children: list[Any], at: L.At) -> L.Op:
        return L.Op("*", self._expr(children[0]), self._sum(children[1:], at), at)

    def _over_sum(self, children: list[Any], at: L.At) -> L.Op:
        return L.Op("/", self._expr(children[0]), self._sum(children[1:], at), at)

    def _stat(self, children: list[Any], at: L.At) -> L.Stat:
        inner = tuple(self._expr(c) for c in children[1:] if c is not None)
        function = str(children[0])
        if len(inner) == 2 and function in ("Var", "E"):
            raise L.Malformed(at, f"{function} of two things", "Cov[x, y]")
        if len(inner) == 1 and function == "Corr":
            raise L.Malformed(at, "Corr of one thing", "Corr[x, y]")
        return L.Stat(function, inner, at)

    def _chance(self, children: list[Any], at: L.At) -> L.Chance:
        return L.Chance(self.build(children[-1]), at)

    # Statements.
    def _relation(self, children: list[Any], at: L.At) -> L.Relation:
        sides = tuple(self._expr(c) for c in children[::2])
        return L.Relation(sides, tuple(str(c.children[0]) for c in children[1::2]), at)

    def _approach(self, children: list[Any], at: L.At) -> L.Approach:
        return L.Approach(str(self._named(children[0])), self._expr(children[2]), at)

    _given_limit = _approach

    def _approaches(self, children: list[Any], at: L.At) -> tuple[L.Approach, ...]:
        return tuple(self.build(c) for c in children)

    def _limit(self, children: list[Any], at: L.At) -> L.Limit:
        left, arrow, right, approach = children
        towards = () if approach is None else self.build(approach)
        return L.Limit(self._expr(left), self._expr(right), towards, arrow.type == "TENDS", at)

    def _distribution(self, children: list[Any], at: L.At) -> L.Distribution:
        return L.Distribution(self._named(children[0]), at)

    def _never(self, children: list[Any], at: L.At) -> L.Never:
        kind, name, inner = children
        return L.Never(str(kind), self._named(name), self.build(inner), at)

    def _within(self, children: list[Any], at: L.At) -> L.Within:
        left, radius, target, op, probability, approach = children
        towards = () if approach is None else self.build(approach)
        parts = (self._expr(left), self._expr(radius), self._expr(target))
        return L.Within(*parts, str(op), self._expr(probability), towards, at)

    def _equivariant(self, children: list[Any], at: L.At) -> L.Equivariant:
        return L.Equivariant(self._named(children[0]), at)

    def _iff(self, children: list[Any], at: L.At) -> L.Iff:
        return L.Iff(self.build(children[0]), self.build(children[1]), at)

    def _exists(self, children: list[Any], at: L.At) -> L.Exists:
        *names, relation = children
        return L.Exists(tuple(self._named(name) for name in names), self.build(relation), at)

    def _growth(self, children: list[Any], at: L.At) -> L.Growth:
        relation, approaches = self.build(children[0]), self.build(children[1])
        right = relation.sides[-1]
        if relation.ops != ("=",) or not (isinstance(right, L.Apply) and right.function == "O"):
            raise L.Malformed(at, "a comparison with a limit", "-> for a limit, or = O(...)")
        return L.Growth(relation.sides[0], right.args[0], approaches, at)

    def _lim(self, children: list[Any], at: L.At) -> L.Limit:
        head, left, right = children
        return L.Limit(self._expr(left), self._expr(right), self._path(head, str(head)[5:-1]), True, at)

    def _tends_as(self, children: list[Any], at: L.At) -> L.Limit:
        left, head, right = children
        return L.Limit(self._expr(left), self._expr(right), self._path(head, str(head)[3:-1]), True, at)

    def _path(self, token: Token, text: str) -> tuple[L.Approach, ...]:
        """The limits that are written below an arrow or a lim."""
        start = (token.start_pos or 0) + str(token).index("{") + 1
        inner = Source(text, [self.source.where(start + j) for j in range(len(text))])
        out = []
        for part in inner.split():
            found = parse(part, "given")
            if not isinstance(found, L.Approach):
                raise L.Malformed(part.where(0), f"'{part.text.strip()}'", "a limit such as t -> oo")
            out.append(found)
        return tuple(out)

    def _for_all(self, children: list[Any], at: L.At) -> L.Quantifier:
        names = [c for c in children[:-1] if c is not None]
        if len(names) > 1 or children[-1] is not None:  # for all x, y in R^n: said of what is declared
            return L.Quantifier(",".join(str(self._named(c)) for c in names), (), at)
        return L.Quantifier(str(self._named(names[0])), (), at)

    def _for_but(self, children: list[Any], at: L.At) -> L.Quantifier:
        return L.Quantifier(self._index(children[0]), tuple(str(c.children[0]) for c in children[1:]), at)

    def _index(self, token: Token) -> str:
        if not re.fullmatch(r"[a-zA-Z]", token):
            raise L.Malformed(self.source.where(token.start_pos or 0), f"'{token}'", "an index of one letter")
        return str(token)

    def _then(self, children: list[Any], at: L.At) -> L.Statement:
        core, quantifier, when = children
        relations = () if when is None else tuple(self.build(c) for c in when.children)
        stands = None if quantifier is None else self.build(quantifier)
        return L.Statement(self.build(core), stands, relations, self.source.text, at)

    # Declarations.
    def _family(self, children: list[Any], at: L.At) -> L.Family:
        *items, kind, norm = children
        names, upto = self._items(items)
        word = " ".join(str(kind).split())
        if "bas" in word:
            word = "basis at right angles" if "angles" in word else "basis"
        return L.Family(names, upto, word, None if norm is None else self._expr(norm), at)

    def _space(self, children: list[Any], at: L.At) -> L.Family | L.Space:
        *items, space = children
        names, upto = self._items(items)
        text = str(space)
        if any(end is not None for end in upto):
            raise L.Malformed(at, f"a family in {text}", "names without ..")
        if text == "R":
            return L.Family(names, upto, "real", None, at)
        if text in ("R^m", "R^p"):
            return L.Family(names, upto, text, None, at)
        base, _, size = text.partition("^")
        sizes = [s.strip() for s in re.split(r"\s+x\s+|\*", size.strip("{}() "))]
        if len(sizes) > 2 or not all(re.fullmatch(r"[A-Za-z](_[A-Za-z0-9])?|[1-9]", s) for s in sizes):
            raise L.Malformed(at, f"the space {text}", "R^n or R^{n x d}")
        if base == "simplex" and len(sizes) > 1:
            raise L.Malformed(at, f"the space {text}", "simplex^n")
        if len(sizes) > 1 and sizes[1] == "1":
            raise L.Malformed(at, f"the space {text}", f"R^{sizes[0]} for a vector, or a matrix of another width")
        kind = "simplex" if base == "simplex" else ""
        return L.Space(names, sizes[0], sizes[1] if len(sizes) > 1 else "1", kind, at)

    def _matrices(self, children: list[Any], at: L.At) -> L.Space | L.Mask:
        *items, kind, size = children
        names, _ = self._items(items)
        word = str(kind).split()[0]
        if word == "masked":
            if size is not None or any(name.subs for name in names):
                raise L.Malformed(at, "masked items", "items such as: b, c masked")
            return L.Mask("items", tuple(name.base for name in names), at)
        own = "n" if word == "permutation" else "d"
        side = own if size is None else str(size)
        return L.Space(names, side, side, word, at)

    def _causal(self, children: list[Any], at: L.At) -> L.Mask:
        return L.Mask("causal", (), at)

    def _items(self, items: list[Any]) -> tuple[tuple[L.Name, ...], tuple[L.Name | None, ...]]:
        names = tuple(self._named(i.children[0]) for i in items)
        upto = tuple(None if i.children[1] is None else self._named(i.children[1]) for i in items)
        return names, upto

    def _gaussian(self, children: list[Any], at: L.At) -> L.Gaussian:
        name, mean, spread = children
        return L.Gaussian(self._named(name), self._expr(mean), self._expr(spread), at)

    def _fact(self, children: list[Any], at: L.At) -> L.Fact:
        relation, quantifier = children
        return L.Fact(self.build(relation), None if quantifier is None else self.build(quantifier), at)

    def _function_let(self, children: list[Any], at: L.At) -> L.FunctionLet:
        name, *parameters, value = children
        if str(name) in (*FUNCTIONS, *APPLIED, *STATISTICS):
            raise L.Malformed(at, f"a definition of {name}(", "another name: this one is built in")
        return L.FunctionLet(str(name), tuple(self._named(p) for p in parameters), self._expr(value), at)

    def _let(self, children: list[Any], at: L.At) -> L.Let:
        return L.Let(self._named(children[0]), self._expr(children[1]), at)
