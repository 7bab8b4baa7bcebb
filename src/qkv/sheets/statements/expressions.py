"""Expressions of a formula, by recursive descent: sums, products, powers, calls, matrices, cases."""

from __future__ import annotations

import re
from dataclasses import replace

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.conditions import ConditionParser, Unreadable
from qkv.sheets.statements.tokens import Token

MAX_DEPTH = 40
VECTORS = ("k", "K", "q", "g", "mu", "u", "v", "x")  # letters that stand for vectors
OTHERWISE = ("otherwise", "else", "rest", "others", "sonst", "sinon", "否则", "其他", "其它", "其余")
_OTHER_ITEMS = re.compile(r"\b(?:otherwise|else|others?|rest|remaining)\b|其他|其它|其余|否则", re.I)
OTHERS = ("others", "other", "rest", "else", "remaining", "其他", "其余")  # as the index of a sum
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa", "lambda",
    "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega", "Phi", "Delta", "Lambda", "Omega",
    "Gamma", "Theta",
    "Sigma", "Psi", "upsilon", "ell", "vartheta",
}  # fmt: skip
FUNCTIONS = {"exp": "exp", "log": "log", "ln": "log", "softmax": "softmax", "Softmax": "softmax", "Var": "Var",
             "var": "Var",
             "Cov": "Cov", "cov": "Cov", "max": "max", "min": "min", "E": "E", "N": "N", "P": "P", "sqrt": "sqrt",
             "ReLU": "relu", "Pr": "P", "diag": "diag", "tanh": "tanh", "sin": "sin", "cos": "cos"}  # fmt: skip


class ExpressionParser(ConditionParser):
    """Reads expressions."""

    def sum(self) -> T.Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("brackets that are nested too deeply")
        while self.at("space"):
            self.index += 1
        if self.at("-"):
            self.index += 1
            left: T.Node = T.Minus(self.term())
        else:
            if self.at("+"):
                self.index += 1
            left = self.term()
        while self.at("+", "-", "pm"):
            sign = self.take().text
            if sign == "pm":
                raise Unreadable("±")
            left = T.Binary(sign, left, self.term())
        self.depth -= 1
        return left

    def term(self) -> T.Node:
        left = self.factor()
        while True:
            while self.at("space") and self._starts_factor(1):
                self.index += 1
            if self.at("cdot", "times", "*", "odot", "circ", "bullet"):
                self.index += 1
                left = T.Binary(".", left, self.factor())
            elif self.at("/", "div"):
                self.index += 1
                bracketed = self.at("(", "{", "[")
                divisor = self.factor()
                plain = isinstance(divisor, T.Number) and isinstance(left, T.Number)
                self.doubtful = self.doubtful or (not bracketed and not plain and self._starts_factor(0))
                left = T.Binary("/", left, divisor)
            elif self._starts_factor(0):
                if self.at("(") and self._is_condition_ahead():
                    return left
                left = T.Binary("*", left, self.factor())
            else:
                return left

    def _is_condition_ahead(self) -> bool:
        """Whether the bracket that follows holds a relation, as in k_i'q (i ≠ a) = 0, so that it is no factor."""
        start = self.index
        found = self._bracketed_condition()
        self.index = start
        return found is not None or self._bracketed_relation() > 0

    def _starts_factor(self, ahead: int) -> bool:
        token = self.peek(ahead)
        if token.text in ("Vert", "|", "lVert") and token.kind in ("command", "sign"):
            return not self.bars
        if token.kind in ("letter", "number"):
            return True
        if token.kind == "word":
            return token.text in FUNCTIONS
        if token.kind == "command":
            return (
                token.text in GREEK or token.text in FUNCTIONS or token.text.startswith("begin:")
                or token.text in ("frac", "dfrac", "tfrac", "cfrac", "sqrt", "sum", "lVert", "Vert", "lvert", "langle",
                                  "infty",
                                  "underbrace", "overbrace", "lim", "dots", "cdots", "ldots", "left", "vdots", "ddots")
            )  # fmt: skip
        return token.kind == "sign" and token.text in ("(", "[", "{")

    def factor(self) -> T.Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("brackets that are nested too deeply")
        base = self.base()
        out = self._scripts(base)
        self.depth -= 1
        return out

    def _scripts(self, base: T.Node) -> T.Node:
        index: list[str] = []
        powers: list[T.Node | None] = []  # None is a transpose
        heads: list[str] = []  # from superscripts such as ^{(1)}
        while True:
            if self.at("_"):
                self.index += 1
                index += self._subscript()
            elif self.at("^"):
                self.index += 1
                head = self._head(replace(base, index=tuple(index))) if isinstance(base, T.Symbol) else ""
                if head:
                    heads.append(head)
                else:
                    powers.append(self._superscript(_is_number(base)))
            elif self.at("'", "prime"):
                self.index += 1
                if self._is_vector(base) and self._starts_factor(0):  # k_a' q
                    powers.append(None)
                elif isinstance(base, T.Symbol):
                    base = replace(base, base=base.base + "'")
            elif self.at("top") and powers == []:
                self.index += 1
                powers.append(None)
            else:
                break
        if index or heads:
            if isinstance(base, T.Symbol):
                base = replace(base, index=(*heads, *base.index, *index))
            elif isinstance(base, T.Call) and base.name == "norm":
                pass  # the norm's own subscript, as in ‖x‖_2
        for power in powers:
            if power is None or (power == T.Symbol("t") and self._is_vector(base)):  # no vector has a power
                base = T.Transposed(base)
            elif isinstance(base, T.Symbol) and base.base == "e" and not base.index:
                base = T.Call("exp", (power,))
            else:
                base = T.Binary("^", base, power)
        return base

    @staticmethod
    def _is_vector(base: T.Node) -> bool:
        """Whether a letter is one that stands for vectors."""
        return isinstance(base, T.Symbol) and base.base in VECTORS

    def _head(self, base: T.Symbol) -> str:
        """A superscript that is an index: a head or an item in round brackets, c^{(1)} and k^{(a)}; c^1, q^{2}, k^a."""
        words = [self.peek(ahead).text for ahead in range(5)]
        for opened, closed in ((("{", "("), (")", "}")), (("(",), (")",))):
            inner = words[len(opened)] if len(words) > len(opened) else ""
            size = len(opened) + 1 + len(closed)
            if (*opened, inner, *closed) == tuple(words[:size]) and re.fullmatch(r"\d|[a-z]", inner):
                self.index += size
                return inner
        braced = words[0] == "{" and words[2] == "}"
        inner = words[1] if braced else words[0]
        numbered = base.base == "q" and inner in ("1", "2")
        if not base.index and (numbered or (base.base in ("k", "mu", "v") and inner in ("a", "b", "i", "j"))):
            self.index += 3 if braced else 1
            return inner
        return ""

    def _subscript(self) -> list[str]:
        """The names of an index, each by itself: {1,a}, 2j, {i ≠ j}."""
        if not self.at("{"):
            token = self.take()
            if token.kind in ("letter", "number", "word", "text"):
                return [token.text]
            return [token.text] if token.text in GREEK or token.text in ("i", "infty") else []
        depth, out, tokens_inside = 0, [], []
        while self.index < len(self.tokens):
            token = self.take()
            depth += (token.text == "{") - (token.text == "}") if token.kind == "sign" else 0
            if depth == 0:
                break
            tokens_inside.append(token)
        for token in tokens_inside[1:]:
            if token.kind in ("letter", "number", "word", "text"):
                out.append(token.text)
            elif token.text in ("neq", "ne", "notin", "not"):
                out.append("!=")
            elif token.text in ("=", "in", "+", "-"):
                out.append(token.text)
        return out

    def _superscript(self, of_number: bool = False) -> T.Node | None:
        """A power, or None for a transpose; a T above a number is a letter."""
        if self.at("top", "intercal", "prime") or (self.at("T") and not of_number):
            self.index += 1
            return None
        if self.at("{"):
            self.index += 1
            if (
                not of_number
                and self.at("{")
                and self.peek(1).text in ("top", "T", "intercal")
                and self.peek(2).text == self.peek(3).text == "}"
            ):
                self.index += 4
                return None
            if self.at("top", "intercal", "T", "prime") and self.peek(1).text == "}" and not of_number:
                self.index += 2
                return None
            inner = self.sum()
            self.expect("}")
            return inner
        token = self.take()
        if token.kind == "number":
            if len(token.text) > 1:  # x^23 is x^2 times 3
                self.tokens.insert(self.index, Token("number", token.text[1:]))
            return T.Number(token.text[0])
        if token.kind == "letter":
            return T.Symbol(token.text)
        if token.kind == "command" and token.text in GREEK:
            return self._symbol_of(token.text)
        if token.kind == "sign" and token.text == "-":
            return T.Minus(self.factor())
        self.index -= 1
        return self.base()

    def _group_or_one(self) -> T.Node:
        if self.at("{"):
            self.index += 1
            inner = self.sum()
            self.expect("}")
            return inner
        token = self.peek()
        if token.kind == "number" and len(token.text) > 1 and "." not in token.text:
            self.index += 1
            self.tokens.insert(self.index, Token("number", token.text[1:]))
            return T.Number(token.text[0])
        return self.base()

    @staticmethod
    def _symbol_of(name: str) -> T.Symbol:
        return T.Symbol(
            {"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "ell": "l", "upsilon": "v"}.get(name, name)
        )

    def base(self) -> T.Node:
        token = self.take()
        kind, text = token.kind, token.text
        if kind == "number":
            return T.Number(text)
        if kind == "letter":
            return T.Symbol(text)
        if kind == "word" and text in FUNCTIONS:
            return self._call(FUNCTIONS[text])
        if kind == "sign":
            return self._sign(text)
        if kind == "command":
            return self._command(text)
        raise Unreadable(f"'{text or 'the end'}'")

    def _sign(self, text: str) -> T.Node:
        if text == "(":
            inner = self.sum()
            if self.at(","):
                cells = [inner]
                while self.at(","):
                    self.index += 1
                    cells.append(self.sum())
                self.expect(")")
                return T.Matrix((tuple(cells),))
            self.expect(")")
            return inner
        if text == "{":
            inner = self.sum()
            self.expect("}")
            return inner
        if text == "[":
            self.bars += 1
            cells = [self.sum()]
            while self.at(",", ";", "&", "|", "mid", "vert"):
                self.index += 1
                cells.append(self.sum())
            self.bars -= 1
            self.expect("]")
            return cells[0] if len(cells) == 1 else T.Matrix((tuple(cells),))
        if text == "|":
            double = self.at("|")
            self.index += double
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.expect("|")
            if double:
                self.expect("|")
            return T.Call("norm" if double else "abs", (inner,))
        if text == "-":
            return T.Minus(self.factor())
        raise Unreadable(f"'{text}'")

    def _command(self, text: str) -> T.Node:
        if text in GREEK:
            return self._symbol_of(text)
        if text in FUNCTIONS:
            return self._call(FUNCTIONS[text])
        if text in ("frac", "dfrac", "tfrac", "cfrac"):
            top = self._group_or_one()
            return T.Binary("/", top, self._group_or_one())
        if text == "sqrt":
            return T.Call("sqrt", (self._group_or_one(),))
        if text == "sum":
            return self._total()
        if text in ("|", "lVert", "Vert", "rVert"):
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            if not self.at("|", "rVert", "Vert"):
                raise Unreadable("a norm that is never closed")
            self.index += 1
            return T.Call("norm", (inner,))
        if text == "lvert":
            inner = self.sum()
            self.expect("rvert")
            return T.Call("abs", (inner,))
        if text == "langle":
            left = self.sum()
            self.expect(",")
            right = self.sum()
            self.expect("rangle")
            return T.Binary(".", left, right)
        if text == "infty":
            return T.Symbol("oo")
        if text in ("underbrace", "overbrace"):
            inner = self._group_or_one()
            if self.at("_", "^"):
                self.index += 1
                self._subscript()
            return inner
        if text in ("dots", "cdots", "ldots", "vdots", "ddots"):
            return T.Dots()
        if text.startswith("begin:"):
            return self._environment(text[6:])
        if text == "lim":
            if self.at("_"):
                self.index += 1
                self.beside += self._limit_below()
            self.limit = True
            return self.term()
        if text == "{":
            inner = self.sum()
            if self.at("}"):
                self.index += 1
            return inner
        raise Unreadable(f"\\{text}")

    def _call(self, name: str) -> T.Node:
        if self.at("^"):  # exp^{x}, log^2
            self.index += 1
            power = self._superscript()
            if name == "exp" and power is not None:
                return T.Call("exp", (power,))
            raise Unreadable(f"a power of {name}")
        if self.at("_") and name == "max":
            return self._maximum()
        if self.at("_"):
            self.index += 1
            self._subscript()
        while self.at("space"):
            self.index += 1
        if self.at("(", "[", "{"):
            close = {"(": ")", "[": "]", "{": "}"}[self.take().text]
            inner = [self.sum()]
            while self.at(","):
                self.index += 1
                inner.append(self.sum())
            if name == "P" and not self.at(close):
                raise Unreadable("a probability")
            self.expect(close)
            return T.Call(name, tuple(inner))
        if name == "E" and self._starts_factor(0):  # the expectation of all that follows
            return T.Call("E", (self.term(),))
        if name in ("E", "N", "P"):
            return T.Symbol(name)
        return T.Call(name, (self._argument(),))

    def _limit_below(self) -> list[T.Condition]:
        """What is written below a lim, such as t → ∞."""
        start = self.index
        self._subscript()
        return self.relations(self.tokens[start + 1 : self.index - 1])

    def relations(self, found: list[Token]) -> list[T.Condition]:
        """Tokens as conditions; what cannot be read is none."""
        raise NotImplementedError

    def _maximum(self) -> T.Node:
        """max over an index: what it is the largest of, with the condition on its index noted beside the formula."""
        self.index += 1
        names = self._subscript()
        index, but = _sum_index(names)
        if not index:
            raise Unreadable("a maximum")
        self.beside.append(T.Condition("index", index, but) if but else T.Condition("all", index))
        self.maxima += 1
        return self.term()

    def _argument(self) -> T.Node:
        """What follows a function without brackets: factors up to a sign."""
        out = self.factor()
        while self.peek().kind in ("letter",) or (self.peek().kind == "command" and self.peek().text in GREEK):
            out = T.Binary("*", out, self.factor())
        return out

    def _total(self) -> T.Node:
        index, last = "", ""
        but: tuple[str, ...] = ()
        while self.at("_", "^"):
            if self.take().text == "_":
                names = self._subscript()
                index, but = _sum_index(names)
            else:
                end = self._superscript()
                last = end.base if isinstance(end, T.Symbol) else ""
        if index and not last and not self._starts_factor(0):  # a covariance written with the sign of a sum
            return T.Symbol("Sigma", (index,))
        inner = self.term()
        if not index:
            found = [s.index[-1] for s in T.symbols(inner) if s.index and s.index[-1] in ("i", "j", "k", "l")]
            index = found[0] if found else "i"
        return T.Total(index, but, last, inner)

    def _environment(self, name: str) -> T.Node:
        if name == "array" and self.at("{"):
            self._subscript()
        if name in ("cases", "rcases", "dcases", "array") and name != "array":
            return self._cases(name)
        if name not in ("bmatrix", "pmatrix", "matrix", "vmatrix", "array", "smallmatrix", "Bmatrix"):
            raise Unreadable(f"\\begin{{{name}}}")
        rows: list[tuple[T.Node, ...]] = []
        cells: list[T.Node] = []
        while not self.at(f"end:{name}"):
            if self.index >= len(self.tokens):
                raise Unreadable("a matrix that is never closed")
            if self.at("\\\\"):
                self.index += 1
                rows.append(tuple(cells))
                cells = []
            elif self.at("&", "hline", "space", ",", "|", "mid", "vert") or (
                self.at("-") and self.peek(1).text in ("&", "\\\\", "-", f"end:{name}")
            ):
                self.index += 1
            else:
                cells.append(self.sum())
        self.index += 1
        rows.append(tuple(cells))
        return T.Matrix(tuple(row for row in rows if row))

    def _cases(self, name: str) -> T.Node:
        pieces: list[T.Piece] = []
        while not self.at(f"end:{name}"):
            if self.index >= len(self.tokens):
                raise Unreadable("cases that are never closed")
            if self.at("\\\\"):
                self.index += 1
                continue
            value = self.sum()
            conditions: list[T.Condition] = []
            start = self.index
            while not self.at("\\\\", f"end:{name}") and self.index < len(self.tokens):
                found = self._index_condition()
                if found is not None:
                    conditions += found
                    continue
                token = self.take()
                if token.text.strip(" .,") in OTHERWISE or (token.kind == "text" and _OTHER_ITEMS.search(token.text)):
                    conditions.append(T.Condition("otherwise"))
            conditions = conditions or self.relations(self.tokens[start : self.index])
            pieces.append(T.Piece(value, tuple(conditions)))
        self.index += 1
        return T.Cases(tuple(pieces))


def _is_number(base: T.Node) -> bool:
    """Whether a base is a number or e, so that nothing above it is a transpose."""
    return isinstance(base, T.Number) or base == T.Symbol("e")


def _sum_index(names: list[str]) -> tuple[str, tuple[str, ...]]:
    """The index of a sum and what it leaves out."""
    if not names:
        return "", ()
    if any(name in OTHERS for name in names):
        return "i", ("others",)
    letter = names[0] if re.fullmatch(r"[a-z]", names[0]) else ""
    but: list[str] = []
    if "!=" in names:
        but = [n for n in names[names.index("!=") + 1 :] if n not in ("!=", "=", letter, "in") and len(n) == 1]
    return letter, tuple(but)
