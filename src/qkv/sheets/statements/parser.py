"""parse: the LaTeX of one formula to clauses, by recursive descent; what cannot be read raises Unreadable."""

from __future__ import annotations

import re
from dataclasses import replace

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.tokens import Token, tokens

MAX_DEPTH = 40

SIGNS = {
    "approx": "~", "simeq": "~", "cong": "~", "thickapprox": "~", "approxeq": "~", "doteq": "~", "to": "->",
    "rightarrow": "->", "longrightarrow": "->", "xrightarrow": "->", "gg": ">>", "ll": "<<", "gggtr": ">>", "ggg": ">>",
    "geq": ">=", "ge": ">=", "leq": "<=", "le": "<=", "neq": "!=", "ne": "!=", "lt": "<", "gt": ">", "equiv": "=",
    "eq": "=", "triangleq": "=", "coloneqq": "=", "sim": ":", "perp": "perp", "in": "in", "notin": "notin",
    "gtrsim": ">>", "geqslant": ">=", "leqslant": "<=", "propto": "prop",
}  # fmt: skip
BREAKS = {"quad", "qquad", "Rightarrow", "implies", "therefore", "because", "iff", "land", "wedge", "Longrightarrow",
          "Leftrightarrow", "forall", "leftrightarrow", "lor"}  # fmt: skip
IMPLY = {"Rightarrow", "implies", "therefore", "Longrightarrow"}
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega", "Phi", "Delta", "Lambda", "Omega", "Gamma", "Theta",
    "Sigma", "Psi", "upsilon", "ell", "vartheta",
}  # fmt: skip
FUNCTIONS = {"exp": "exp", "log": "log", "ln": "log", "softmax": "softmax", "Softmax": "softmax", "Var": "Var", "var": "Var",
             "Cov": "Cov", "cov": "Cov", "max": "max", "min": "min", "E": "E", "N": "N", "P": "P", "sqrt": "sqrt",
             "ReLU": "relu", "Pr": "P", "diag": "diag", "tanh": "tanh", "sin": "sin", "cos": "cos"}  # fmt: skip


class Unreadable(Exception):
    """A formula that the parser does not know, with what it stopped at."""


def parse(math: str) -> tuple[T.Clause, ...]:
    """The clauses of a formula; conditions beside them are attached to those that they speak of.

    Raises:
        Unreadable: The formula is not one that can be read.
    """
    found = tokens(re.sub(r"(?<!\\)&", " ", math) if r"\begin" not in math else _outer_ampersands(math))
    try:
        return _Parser(found).formula()
    except (IndexError, RecursionError) as why:
        raise Unreadable("the formula ends too early") from why


def expression(math: str) -> T.Node:
    """One expression without a relation."""
    parser = _Parser(tokens(math))
    try:
        found = parser.sum()
    except (IndexError, RecursionError) as why:
        raise Unreadable("the formula ends too early") from why
    if parser.index < len(parser.tokens):
        raise Unreadable(f"'{parser.tokens[parser.index].text}'")
    return found


def _outer_ampersands(math: str) -> str:
    """The formula without the alignment signs that stand in no environment."""
    out, depth = [], 0
    for found in re.finditer(r"\\begin\{|\\end\{|\\&|&|.", math, re.S):
        depth += (found[0] == r"\begin{") - (found[0] == r"\end{")
        if found[0] != "&" or depth:
            out.append(found[0])
    return "".join(out)


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.index = 0
        self.depth = 0
        self.doubtful = False  # a slash before several factors
        self.limit = False  # a lim stands before a side
        self.bars = 0  # norms and absolute values that are open

    # Tokens.
    def peek(self, ahead: int = 0) -> Token:
        place = self.index + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "")

    def take(self) -> Token:
        token = self.peek()
        self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        return self.peek().text in texts and self.peek().kind != "text"

    def expect(self, text: str) -> None:
        if not self.at(text):
            raise Unreadable(f"'{self.peek().text or 'the end'}' where {text} was expected")
        self.index += 1

    # Clauses.
    def formula(self) -> tuple[T.Clause, ...]:
        out: list[T.Clause] = []
        loose: list[T.Condition] = []
        lead = ""
        self._label()
        self._unwrap()
        while self.index < len(self.tokens):
            token = self.peek()
            if token.text in (",", ";", ".", ":", "space", "\\\\", "!", "?", "%") and token.kind in ("sign", "command"):
                self.index += 1
                continue
            if token.kind == "text" or (token.kind == "word" and token.text not in FUNCTIONS):
                self.index += 1
                continue
            if token.kind == "command" and token.text in BREAKS:
                self.index += 1
                lead = "implied" if token.text in IMPLY else lead
                if token.text == "forall":
                    self._forall(out, loose)
                continue
            conditions = self._index_condition()
            if conditions is not None:
                if out:
                    out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *conditions))
                else:
                    loose += conditions
                continue
            bracket = self._bracketed_condition()
            if bracket is not None:
                if out:
                    out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *bracket))
                continue
            for clause in self._chain(lead):
                out.append(replace(clause, conditions=(*loose, *clause.conditions)))
            self._require_end()
            loose = [] if any(c.sides for c in out) else loose
            lead = ""
        if not out and loose:
            return (T.Clause((), (), tuple(loose)),)
        return tuple(out)

    def _require_end(self) -> None:
        """Refuse a formula that goes on where its chain has ended: a part of it would be lost."""
        token = self.peek()
        if token.kind in ("end", "text") or (token.kind == "word" and token.text not in FUNCTIONS):
            return
        if token.kind == "sign" and token.text in (",", ";", ".", ":", "\\\\", "!", "?", "(", "[", "%"):
            return
        if token.kind == "command" and (token.text in BREAKS or token.text in ("space", "&", "}", "{", "to", "rightarrow")):
            return
        raise Unreadable(f"'{token.text}'")

    def _label(self) -> None:
        """Skip a label such as `ii` or `(b)` with which a display begins."""
        words = [t.text for t in self.tokens[:5]]
        for size in (5, 4, 3, 2, 1):
            head = words[:size]
            plain = "".join(h for h in head if h not in "()).")
            after = words[size] if size < len(words) else ""
            if re.fullmatch(r"i{1,3}|iv|v|[a-h]", plain) and after in ("quad", "qquad") and size < len(self.tokens):
                self.index = size
                return

    def _unwrap(self) -> None:
        """Drop round brackets around a whole formula that holds a relation."""
        if not self.at("(") or self.tokens[-1].text not in (")", "."):
            return
        depth = 0
        last = len(self.tokens) - (2 if self.tokens[-1].text == "." else 1)
        for place in range(self.index, last + 1):
            depth += (self.tokens[place].text == "(") - (self.tokens[place].text == ")")
            if depth == 0:
                if place == last:
                    self.tokens = self.tokens[self.index + 1 : last]
                    self.index = 0
                return

    def _forall(self, out: list[T.Clause], loose: list[T.Condition]) -> None:
        conditions = self._index_condition()
        if conditions is None:
            letters = []
            while self.peek().kind == "letter" or self.at(","):
                letters.append(self.take().text)
            conditions = [T.Condition("all", letter) for letter in letters if letter != ","]
        if out:
            out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *conditions))
        else:
            loose += conditions

    def _bracketed_condition(self) -> list[T.Condition] | None:
        """(i ≠ a, b) after a clause."""
        if not self.at("("):
            return None
        start = self.index
        self.index += 1
        found = self._index_condition()
        if found is not None and self.at(")"):
            self.index += 1
            return found
        self.index = start
        return None

    def _index_condition(self) -> list[T.Condition] | None:
        """A condition on an index: i ≠ a, b; i ∉ {a, b}; i = a; i, j with i ≠ j."""
        start = self.index
        if self.peek().kind != "letter" or self.peek().text not in "ijkl":
            return None
        index = self.take().text
        sign = self.take()
        name = SIGNS.get(sign.text, sign.text) if sign.kind in ("command", "sign") else ""
        if sign.text == "not" and self.at("=", "in"):
            name = "!=" if self.take().text == "=" else "notin"
        if name in ("in", "notin"):
            members = self._members()
            if members is not None:
                everything = any(m in ("..", "n") for m in members) and name == "in"
                self._setminus(members)
                kind = "all" if everything else "index"
                found = [T.Condition(kind, index, tuple(m for m in members if m != ".."), name == "in")]
                return self._more(found)
        elif name in ("!=", "="):
            members = self._list()
            if members and not (name == "=" and self._goes_on()):
                return self._more([T.Condition("index", index, tuple(members), name == "=")])
        self.index = start
        return None

    def _goes_on(self) -> bool:
        return self.peek().kind in ("letter", "number") or self.at("+", "-", "(", "_", "^", "=", "/", "cdot")

    def _more(self, found: list[T.Condition]) -> list[T.Condition]:
        """Further conditions on the same index: i ∈ {1..n}, i ≠ a, i ≠ b."""
        start = self.index
        while self.at(",", "land", "wedge", "and", "space", "or", "lor", "vee"):
            self.index += 1
        more = self._index_condition()
        if more is None:
            self.index = start
            return found
        if found[-1].index == more[0].index and found[-1].inside and more[0].inside and found[-1].kind == more[0].kind:
            return [*found[:-1], replace(found[-1], members=(*found[-1].members, *more[0].members)), *more[1:]]
        same = found[-1].index == more[0].index and found[-1].kind == more[0].kind == "index"
        if same and not found[-1].inside and not more[0].inside:
            joined = replace(found[-1], members=(*found[-1].members, *more[0].members))
            return [*found[:-1], joined, *more[1:]]
        return [*found, *more]

    def _members(self) -> list[str] | None:
        if self.at("{"):
            close = "}"
            self.index += 1
        else:
            return None
        out: list[str] = []
        while not self.at(close) and self.index < len(self.tokens):
            token = self.take()
            if token.text in ("dots", "ldots", "cdots"):
                out.append("..")
            elif token.kind in ("letter", "number"):
                out.append(token.text)
        self.index += 1
        return out

    def _setminus(self, members: list[str]) -> None:
        if self.at("setminus"):
            self.index += 1
            self._members()

    def _list(self) -> list[str]:
        out = []
        while self.peek().kind in ("letter", "number"):
            out.append(self.take().text)
            if self.at(",", "or", "and") and self.peek(1).kind in ("letter", "number"):
                after = self.peek(2)
                if after.kind == "end" or after.text in (",", ")", ".", "}", "quad", "space", ";", "or", "and", "\\\\"):
                    self.index += 1
                    continue
            break
        return out

    def _chain(self, lead: str) -> list[T.Clause]:
        """Sides and relations up to a comma or a wide space; several when one side is a list, as in k_a, k_b ~ N."""
        sides: list[T.Node] = []
        signs: list[str] = []
        heads: list[T.Node] = []
        if self._relation() is None:
            sides.append(self.sum())
        else:
            sides.append(T.Missing())
        while True:
            if not signs and self.at(",") and self._lists_a_side():
                self.index += 1
                heads.append(sides.pop())
                sides.append(self.sum())
                continue
            sign = self._relation()
            if sign is None:
                break
            if sign == "->" and signs and signs[-1] in ("~", "->") and self._relation_ahead():
                self._take_relation()
                break
            self._take_relation()
            while self.at("space", "quad"):
                self.index += 1
            if sign == ":" and self.peek().kind == "letter" and self.at("N") and self.peek(1).text == "(":
                self.tokens[self.index] = Token("word", "N")
            signs.append(sign)
            if sign in ("in", "notin") and self.at("{"):
                self._members()
                sides.append(T.Missing())
                continue
            if self._relation() is not None or self.index >= len(self.tokens):
                raise Unreadable("a relation without a right side")
            sides.append(self.sum())
        if not signs:
            return []
        if self.limit:
            signs = ["->" if sign == "=" else sign for sign in signs]
            self.limit = False
        return [T.Clause((head, *sides[1:]), tuple(signs), (), lead, self.doubtful) for head in (*heads, sides[0])]

    def _lists_a_side(self) -> bool:
        """Whether after a comma another left side follows, as in s, t ≫ n."""
        depth = 0
        for token in self.tokens[self.index + 1 : self.index + 12]:
            if token.text in ("(", "{", "["):
                depth += 1
            elif token.text in (")", "}", "]"):
                depth -= 1
            elif depth == 0 and (token.text == "=" or (token.kind == "command" and token.text in SIGNS)):
                return token.text in ("gg", "sim", "in", "to", "ll") or token.text in (">", "<")
            elif depth == 0 and (token.text == "," or token.text in BREAKS):
                continue
        return False

    def _relation_ahead(self) -> bool:
        depth = 0
        for token in self.tokens[self.index + 1 :]:
            depth += (token.text in "({[") - (token.text in ")}]") if token.text else 0
            if depth == 0 and (token.text in "=<>" or SIGNS.get(token.text) in ("~", ">>", ">=", "<=")):
                return True
        return False

    def _relation(self) -> str | None:
        token = self.peek()
        if token.kind == "sign" and token.text in ("=", "<", ">", "~"):
            return ":" if token.text == "~" else token.text
        if token.kind == "command" and token.text == "not" and self.peek(1).text in ("=", "in", "to", "approx"):
            return "!="
        if token.kind == "command" and token.text in SIGNS:
            return SIGNS[token.text]
        return None

    def _take_relation(self) -> None:
        token = self.take()
        if token.text == "not":
            self.index += 1
        if token.text == ">" and self.at(">"):
            self.index += 1
        if token.text == "xrightarrow":
            self._group_or_one()
        while self.at(":", "="):
            if self.at("=") and token.text in (":", "=", "<", ">"):
                self.index += 1
            else:
                break

    # Expressions.
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
        return found is not None

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
                or token.text in ("frac", "dfrac", "tfrac", "cfrac", "sqrt", "sum", "lVert", "Vert", "lvert", "langle", "infty",
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
                head = self._head() if isinstance(base, T.Symbol) else ""
                if head:
                    heads.append(head)
                else:
                    powers.append(self._superscript())
            elif self.at("'", "prime"):
                self.index += 1
                if isinstance(base, T.Symbol):
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
            if power is None:
                base = T.Transposed(base)
            elif isinstance(base, T.Symbol) and base.base == "e" and not base.index:
                base = T.Call("exp", (power,))
            else:
                base = T.Binary("^", base, power)
        return base

    def _head(self) -> str:
        """A number in round brackets as a superscript, which names a head: c^{(1)}."""
        words = [self.peek(ahead).text for ahead in range(5)]
        if words[0] == "{" and words[1] == "(" and words[2].isdigit() and words[3] == ")" and words[4] == "}":
            self.index += 5
            return words[2]
        if words[0] == "(" and words[1].isdigit() and words[2] == ")":
            self.index += 3
            return words[1]
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

    def _superscript(self) -> T.Node | None:
        if self.at("top", "intercal", "T", "prime"):
            self.index += 1
            return None
        if self.at("{"):
            self.index += 1
            if self.at("{") and self.peek(1).text in ("top", "T", "intercal") and self.peek(2).text == self.peek(3).text == "}":
                self.index += 4
                return None
            if self.at("top", "intercal", "T") and self.peek(1).text == "}":
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
        return T.Symbol({"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "ell": "l", "upsilon": "v"}.get(name, name))

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
                self._subscript()
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
        if name in ("E", "N", "P"):
            return T.Symbol(name)
        return T.Call(name, (self._argument(),))

    def _argument(self) -> T.Node:
        """What follows a function without brackets: factors up to a sign."""
        out = self.factor()
        while self.peek().kind in ("letter",) or (self.peek().kind == "command" and self.peek().text in GREEK):
            out = T.Binary("*", out, self.factor())
        return out

    def _total(self) -> T.Node:
        index, but, last = "", (), ""
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
            elif self.at("&", "hline", "space", ",", "|", "mid", "vert"):
                self.index += 1
            elif self.at("-") and self.peek(1).text in ("&", "\\\\", "-", f"end:{name}"):
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
            while not self.at("\\\\", f"end:{name}") and self.index < len(self.tokens):
                found = self._index_condition()
                if found is not None:
                    conditions += found
                    continue
                token = self.take()
                if token.text in ("otherwise", "else", "rest"):
                    conditions.append(T.Condition("otherwise"))
            pieces.append(T.Piece(value, tuple(conditions)))
        self.index += 1
        return T.Cases(tuple(pieces))


def _sum_index(names: list[str]) -> tuple[str, tuple[str, ...]]:
    """The index of a sum and what it leaves out."""
    if not names:
        return "", ()
    letter = names[0] if re.fullmatch(r"[a-z]", names[0]) else ""
    but: list[str] = []
    if "!=" in names:
        but = [n for n in names[names.index("!=") + 1 :] if n not in ("!=", "=", letter, "in") and len(n) == 1]
    return letter, tuple(but)
