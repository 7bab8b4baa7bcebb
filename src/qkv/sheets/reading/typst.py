"""Typst math as LaTeX math: names become commands, fractions \\frac, calls braces."""

from __future__ import annotations

import re

MAX_DEPTH = 40

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|#[A-Za-z]+\[[^\]]*\]|[A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z]+)*|\d+(?:\.\d+)?'
    r"|\\\s*(?=\n|$)|\\.|>>|<<|!=|<=|>=|=>|->|:=|\.\.\.|\n|\s+|.",
    re.S,
)

NAMES = {
    "approx": r"\approx", "in": r"\in", "in.not": r"\notin", "quad": r"\quad", "dots": r"\dots", "dots.c": r"\cdots",
    "dots.h": r"\dots", "dots.v": r"\vdots", "oo": r"\infty", "infinity": r"\infty", "dot": r"\cdot", "dot.c": r"\cdot",
    "times": r"\times", "sum": r"\sum", "top": r"\top", "tack.b": r"\top", "perp": r"\perp", "RR": r"\mathbb{R}",
    "EE": r"\mathbb{E}", "arrow": r"\to", "arrow.r": r"\to", "arrow.r.double": r"\Rightarrow", "forall": r"\forall",
    "exists": r"\exists", "prop": r"\propto", "tilde": r"\sim", "odot": r"\odot", "dot.circle": r"\odot",
    "gt.double": r"\gg", "lt.double": r"\ll", "gt.eq": r"\geq", "lt.eq": r"\leq", "eq.not": r"\neq", "eq.def": "=",
    "epsilon.alt": r"\varepsilon", "phi.alt": r"\varphi", "exp": r"\exp", "log": r"\log", "ln": r"\ln", "max": r"\max",
    "min": r"\min", "sin": r"\sin", "cos": r"\cos", "tanh": r"\tanh", "lim": r"\lim", "therefore": r"\therefore",
    "because": r"\because", "minus": "-", "plus": "+", "tilde.op": r"\sim", "approx.eq": r"\approx",
    "tilde.eq": r"\simeq",
    "gt.gt": r"\gg", "gt.triple": r"\gg", "lt.triple": r"\ll", "gt": ">", "lt": "<", "eq": "=", "ell": r"\ell",
    "angle.l": r"\langle",
    "angle.r": r"\rangle", "chevron.l": r"\langle", "chevron.r": r"\rangle", "dot.op": r"\cdot", "bullet": r"\cdot",
    "without": r"\setminus", "arrow.long": r"\to", "arrow.r.long": r"\to", "arrow.r.long.double": r"\Rightarrow",
    "arrow.double": r"\Rightarrow", "arrow.r.squiggly": r"\to", "implies": r"\Rightarrow", "iff": r"\iff",
    "approx.not": r"\napprox", "prop.to": r"\propto", "eq.triple": r"\equiv", "space": r"\ ", "med": r"\ ",
    "thin": r"\ ",
    "thick": r"\ ", "wide": r"\quad", "bar.v.double": r"\|", "parallel": r"\|", "NN": "N", "compose": r"\circ",
    "and": r"\land",
    "colon.eq": "=", "approx.eq.not": r"\napprox", "TT": r"\top", "transpose": r"\top",
}  # fmt: skip
GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Phi",
    "Psi",
    "Omega",
]
SIGNS = {
    ">>": r"\gg", "<<": r"\ll", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq", "=>": r"\Rightarrow", "->": r"\to",
    "~": r"\sim", "*": r"\cdot", "...": r"\dots", ":=": "=",
}  # fmt: skip
WRAPPERS = {"bold": "mathbf", "cal": "mathcal", "upright": "mathrm", "hat": "hat", "tilde": "tilde", "overline": "bar",
            "bb": "mathbb", "italic": "mathit", "sans": "mathsf", "arrow": "vec", "text": "text",
            "op": "operatorname"}  # fmt: skip


def as_latex(math: str) -> str:
    """A Typst formula as LaTeX; what is not known is kept as it stands."""
    return _Translator(_TOKEN.findall(math)).sequence("")


class _Translator:
    """A recursive descent over the tokens of one formula."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.index] if self.index < len(self.tokens) else ""

    def sequence(self, ends: str) -> str:
        """Atoms up to one of the closing signs, which is not taken."""
        out: list[str] = []
        self.depth += 1
        while self.index < len(self.tokens) and self.depth < MAX_DEPTH:
            token = self.peek()
            if ends and token in ends:
                break
            if token.isspace():
                self.index += 1
                if out and out[-1] != " ":
                    out.append(" ")
            elif token == "/":
                self.index += 1
                self._skip()
                top = self._last(out)
                out.append(rf"\frac{{{_bare(top)}}}{{{_bare(self.attached())}}}")
            elif token.startswith("\\") and (token[1:].strip() == "" or token == "\\"):
                self.index += 1
                out.append(r" \\ ")
            else:
                out.append(self.attached())
        self.depth -= 1
        return "".join(out)

    def _skip(self) -> None:
        while self.peek().isspace():
            self.index += 1

    @staticmethod
    def _last(out: list[str]) -> str:
        while out and out[-1].isspace():
            out.pop()
        return out.pop() if out else ""

    def attached(self) -> str:
        """An atom with its subscripts, superscripts and primes."""
        self._skip()
        out = self.atom()
        while self._script():
            sign = self.peek()
            self.index += 1
            self._skip()
            if sign == "'":
                out += "'"
                continue
            out += f"{sign}{{{_bare(self.atom())}}}"
        return out

    def _script(self) -> bool:
        """Whether a subscript, a superscript or a prime follows; spaces before it are passed over."""
        start = self.index
        self._skip()
        if self.peek() in ("_", "^") or (self.peek() == "'" and self.index == start):
            return True
        self.index = start
        return False

    def atom(self) -> str:
        token = self.peek()
        self.index += 1
        if token == "":
            return ""
        if token[0] == '"':
            return rf"\text{{{token[1:-1]}}}"
        if token[0] == "#" and "[" in token:
            return rf"\text{{{token[token.index('[') + 1 : -1]}}}"
        if token in SIGNS:
            return SIGNS[token]
        if token == "(" or token == "[":
            close = ")" if token == "(" else "]"
            inner = self.sequence(close)
            self.index += 1
            return f"{token}{inner}{close}"
        if token == "{":
            inner = self.sequence("}")
            self.index += 1
            return rf"\{{{inner}\}}"
        if token.startswith("\\"):
            return token[1:]
        if token[0].isalpha():
            return self.word(token)
        return token

    def word(self, token: str) -> str:
        if self.peek() == "(":
            if token in WRAPPERS:
                return rf"\{WRAPPERS[token]}{{{self._argument()}}}"
            if token in ("norm", "abs", "sqrt"):
                inner = self._argument()
                return {"norm": rf"\|{inner}\|", "abs": f"|{inner}|", "sqrt": rf"\sqrt{{{inner}}}"}[token]
            if token == "frac":
                top, _, bottom = self._argument().partition(",")
                return rf"\frac{{{top}}}{{{bottom}}}"
            if token in ("mat", "vec", "cases"):
                return self._rows(token)
            if token == "lr":
                return self._argument()
        if token in GREEK:
            return f"\\{token}" + (" " if self.peek()[:1].isalpha() else "")
        if token in NAMES:
            gap = " " if self.peek()[:1].isalpha() else ""
            call = f"({self._argument()})" if token in ("exp", "log", "ln") and self.peek() == "(" else ""
            return NAMES[token] + call + gap
        if len(token) > 1:
            called = f"({self._argument()})" if self.peek() == "(" else ""
            return rf"\operatorname{{{token}}}{called}"
        if self.peek() == "(" and token in "EP":
            return token
        return token

    def _argument(self) -> str:
        self.index += 1
        inner = self.sequence(")")
        self.index += 1
        return inner

    def _rows(self, token: str) -> str:
        inner = self._argument()
        env = {"mat": "pmatrix", "vec": "pmatrix", "cases": "cases"}[token]
        rows = inner.split(";") if token == "mat" else inner.split(",")
        cells = [r.replace(",", "&") if token == "mat" else r for r in rows]
        return rf"\begin{{{env}}}" + r" \\ ".join(cells) + rf"\end{{{env}}}"


def _bare(text: str) -> str:
    """The text without one pair of round brackets around all of it."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and index < len(text) - 1:
            return text
    return text[1:-1]
