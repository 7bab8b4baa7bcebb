"""Formulas in sentences: finds the parts of a text that are written in the notation of claims, as LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass

GREEK = {
    "alpha": "alpha", "beta": "beta", "gamma": "gamma", "delta": "delta", "theta": "theta", "sigma": "sigma",
    "lambda": "lambda", "mu": "mu", "rho": "rho", "eps": "varepsilon", "Sigma": "Sigma", "oo": "infty",
}  # fmt: skip
FUNCTIONS = {"exp": "", "log": r"\log", "sqrt": "", "norm": "", "Phi": r"\Phi", "erf": r"\operatorname{erf}"}
STATISTICS = {
    "Var": r"\operatorname{Var}", "Cov": r"\operatorname{Cov}", "Corr": r"\operatorname{Corr}", "E": r"\mathbb{E}",
    "P": r"\mathbb{P}",
}  # fmt: skip
RELATIONS = {
    ">>": r"\gg", "<<": r"\ll",
    "->": r"\to", "-/->": r"\not\to", "~=": r"\approx", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "=": "=", "<": "<",
    ">": ">", "~": r"\sim",
}  # fmt: skip
UNICODE_OPS = {
    "→": "->", "≈": "~=", "≤": "<=", "≥": ">=", "≠": "!=", "≫": ">>", "≪": "<<", "−": "-", "·": "*", "ᵀ": "'",
}  # fmt: skip
UNICODE_NAMES = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "φ": "varphi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta",
    "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "∞": "infty",
}  # fmt: skip
UNICODE_NUMBERS = {"½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "¼": r"\frac{1}{4}"}
SINGLE_WORDS = ("a", "A", "I")
"""Letters that are words of a sentence where no operator stands beside them."""
MAX_FORMULA_LENGTH = 400
"""Characters of a formula; a longer one stays text."""

_TOKEN = re.compile(
    r"(?P<others>\((?P<kind>sum|weighted mean) of the other (?P<letter>[A-Za-z]+)_i\))"
    r"|(?P<sum>sum(?:_\{(?P<range>[^{}]*)\}|_(?P<index>[A-Za-z]))(?:\s*\^\s*\(?\{?(?P<upto>[nmp])\}?\)?)?)"
    r"|(?P<possessive>(?<=[A-Za-z])'s(?![A-Za-z0-9_]))"
    r"|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?|[½⅓¼])"
    r"|(?P<name>(?:[A-Za-z]+|[α-ξπ-ρσ-τφ-ωΓΔΘΛΞΠΣΦΨΩ∞])(?:_(?:[0-9]+(?=[A-Za-z])|[A-Za-z0-9]+|\{[A-Za-z0-9]+(?:\s*,\s*[A-Za-z0-9]+)*\}))?)"
    r"|(?P<op>-/->|->|~=|<=|>=|!=|>>|<<|[-+*/^=<>~'()\[\],{}→≈≤≥≠≫≪−·ᵀ])"
    r"|(?P<space>[ \t]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Piece:
    """A part of a sentence.

    Attributes:
        text: The part as it was written.
        latex: The same as LaTeX, if it is a formula; otherwise empty.
    """

    text: str
    latex: str = ""


def pieces(text: str) -> list[Piece]:
    """A sentence as words and formulas, in order; the texts of all pieces together are the sentence.

    Formulas are parts in the notation of claims (`alpha_a -> 1/2`), also with Greek letters and signs (`α_a → ½`), or
    between dollar signs; what cannot be parsed is text.
    """
    found: list[Piece] = []
    for index, part in enumerate(text.split("$") if text.count("$") % 2 == 0 else [text]):
        if index % 2:
            found.append(Piece(f"${part}$", part.strip()))
        else:
            found += _sentence(part)
    return _with_bars(_joined(found))


def _with_bars(found: list[Piece]) -> list[Piece]:
    """The bars of an absolute value or a norm belong to its formula."""
    out = list(found)
    for i in range(1, len(out) - 1):
        before, inner, after = out[i - 1 : i + 2]
        if inner.latex and not (before.latex or after.latex) and before.text.endswith("|") and after.text[:1] == "|":
            out[i - 1], out[i + 1] = Piece(before.text[:-1]), Piece(after.text[1:])
            out[i] = Piece(f"|{inner.text}|", f"|{inner.latex}|")
    return [piece for piece in out if piece.text]


def _sentence(text: str) -> list[Piece]:
    found: list[Piece] = []
    run: list[re.Match[str]] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        symbol = _op_of(token)
        ends = not _is_mathematical(token) or (symbol == "," and depth == 0)
        if ends:
            found += _formula(run)
            found.append(Piece(token[0]))
            run, depth = [], 0
        else:
            depth = max(0, depth + (symbol in ("(", "[", "{")) - (symbol in (")", "]", "}")))
            run.append(token)
    return found + _formula(run)


def _op_of(token: re.Match[str]) -> str:
    """The operator of a token in the notation of claims; empty where it is none."""
    sign = token["op"] or ""
    return UNICODE_OPS.get(sign, sign)


def _is_mathematical(token: re.Match[str]) -> bool:
    if token["name"]:
        base = token["name"].split("_")[0]
        return len(base) == 1 or base in GREEK or base in FUNCTIONS or base in STATISTICS
    return token["other"] is None and token["possessive"] is None


def _formula(run: list[re.Match[str]]) -> list[Piece]:
    """The pieces of a run of tokens: blanks and loose signs at its ends are text, the rest a formula if it parses."""
    before: list[Piece] = []
    after: list[Piece] = []
    while run and (run[0]["space"] or _op_of(run[0]) in (")", "]", ",", "*", "/", "'", "}") or _is_article(run)):
        before.append(Piece(run.pop(0)[0]))
    while run and (run[-1]["space"] or _op_of(run[-1]) in ("(", "[", ",", "-", "{")):
        after.insert(0, Piece(run.pop()[0]))
    while run and run[-1]["op"] in (")", "]") and _count(run, ")", "]") > _count(run, "(", "["):
        after.insert(0, Piece(run.pop()[0]))
    text = "".join(token[0] for token in run)
    solid = [token for token in run if not token["space"]]
    telling = any(token["op"] or token["sum"] or token["others"] for token in solid)
    names = [token["name"] for token in solid if token["name"]]
    if not (telling or names) or text in SINGLE_WORDS or len(text) > MAX_FORMULA_LENGTH or (telling and len(solid) < 2):
        return [*before, Piece(text), *after]
    try:
        latex = _Parser(solid).formula()
    except ValueError:
        latex = ""
    return [*before, Piece(text, latex), *after]


def _is_article(run: list[re.Match[str]]) -> bool:
    """Whether a run begins with the word a: one that is followed by another name, and not by an operator."""
    after = next((token for token in run[1:] if not token["space"]), None)
    return run[0]["name"] == "a" and (after is None or after["name"] is not None)


def _count(run: list[re.Match[str]], *signs: str) -> int:
    return sum(token["op"] in signs for token in run)


def _joined(found: list[Piece]) -> list[Piece]:
    """Neighbouring texts as one piece; empty ones are left out."""
    out: list[Piece] = []
    for piece in found:
        if not piece.text:
            continue
        if out and not piece.latex and not out[-1].latex:
            out[-1] = Piece(out[-1].text + piece.text)
        else:
            out.append(piece)
    return out


class _Parser:
    """Precedence climbing over tokens; methods return LaTeX, and raise ValueError where the text is no formula."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def formula(self) -> str:
        latex = self._relation()
        if self._at < len(self._tokens):
            raise ValueError("text after the formula")
        return latex

    def _op(self) -> str:
        return _op_of(self._tokens[self._at]) if self._at < len(self._tokens) else ""

    def _take(self, op: str) -> None:
        if self._op() != op:
            raise ValueError(f"expected {op}")
        self._at += 1

    def _relation(self) -> str:
        latex = self._sum()
        while self._op() in RELATIONS:
            sign = RELATIONS[self._op()]
            self._at += 1
            latex = f"{latex} {sign} {self._sum()}"
        return latex

    def _sum(self) -> str:
        latex = self._product()
        while self._op() in ("+", "-"):
            sign = self._op()
            self._at += 1
            latex = f"{latex} {sign} {self._product()}"
        return latex

    def _product(self) -> str:
        latex = self._signed()
        while self._at < len(self._tokens):
            op = self._op()
            if op == "/":
                self._at += 1
                sign, above = ("-", latex[1:]) if latex.startswith("-") else ("", latex)
                latex = rf"{sign}\frac{{{_bare(above)}}}{{{_bare(self._signed())}}}"
            elif op in ("*", "(", ""):
                self._at += op == "*"
                latex = _beside(latex, self._signed())
            else:
                break
        return latex

    def _signed(self) -> str:
        if self._op() == "-":
            self._at += 1
            return f"-{self._signed()}"
        return self._power()

    def _power(self) -> str:
        latex = self._primed()
        if self._op() == "^":
            self._at += 1
            if self._op() == "{":
                self._at += 1
                latex = f"{latex}^{{{self._sum()}}}"
                self._take("}")
                return latex
            sign = ""
            if self._op() == "-":
                self._at += 1
                sign = "-"
            latex = f"{latex}^{{{sign}{_bare(self._primed())}}}"
        return latex

    def _primed(self) -> str:
        latex = self._atom()
        while self._op() == "'":
            self._at += 1
            latex = rf"{latex}^\top"
        return latex

    def _atom(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueError("the formula ends")
        token = self._tokens[self._at]
        self._at += 1
        if token["others"]:
            letter = _letter(token["letter"])
            return rf"\bar {letter}" if token["kind"] != "sum" else rf"\sum_{{\text{{other }} i}} {letter}_i"
        if token["sum"]:
            below = _range(token["range"] or token["index"])
            upto = f"^{{{token['upto']}}}" if token["upto"] else ""
            return rf"\sum_{{{below}}}{upto} {self._product()}"
        if token["number"]:
            return _number(token["number"])
        if token["name"]:
            return self._named(token["name"])
        if token["op"] == "(":
            latex = self._list()
            self._take(")")
            return rf"\left({latex}\right)"
        raise ValueError(f"unexpected {token[0]}")

    def _list(self) -> str:
        latex = self._relation()
        while self._op() == ",":
            self._at += 1
            latex = f"{latex}, {self._relation()}"
        return latex

    def _named(self, name: str) -> str:
        if name in STATISTICS and self._op() == "[":
            self._at += 1
            inner = self._list()
            self._take("]")
            return rf"{STATISTICS[name]}\left[{inner}\right]"
        if name in FUNCTIONS:
            self._take("(")
            inner = self._list()
            self._take(")")
            if name == "exp":
                return f"e^{{{inner}}}"
            if name == "sqrt":
                return rf"\sqrt{{{inner}}}"
            if name == "norm":
                return rf"\lVert {inner} \rVert"
            return rf"{FUNCTIONS[name]}\left({inner}\right)"
        return name_latex(name)


def name_latex(name: str) -> str:
    """A name with its indices as LaTeX: `alpha_{1,a}` is \\alpha_{1,a}."""
    base, _, subs = name.partition("_")
    subs = subs.strip("{}")
    return _letter(base) + (f"_{{{subs}}}" if subs else "")


def _letter(base: str) -> str:
    if base in GREEK or base in UNICODE_NAMES:
        return rf"\{GREEK.get(base) or UNICODE_NAMES[base]}"
    return base if len(base) == 1 else rf"\mathrm{{{base}}}"


def _range(text: str) -> str:
    for plain, latex in ((" not in ", r" \notin "), ("!=", r" \ne "), (">=", r" \ge "), ("<=", r" \le ")):
        text = text.replace(plain, latex)
    return text


def _number(text: str) -> str:
    if text in UNICODE_NUMBERS:
        return UNICODE_NUMBERS[text]
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return mantissa
    return rf"10^{{{int(exponent)}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def _bare(latex: str) -> str:
    """Without the brackets around the whole."""
    opening, closing = r"\left(", r"\right)"
    if not (latex.startswith(opening) and latex.endswith(closing)):
        return latex
    depth = 0
    for found in re.finditer(r"\\left\(|\\right\)", latex):
        depth += 1 if found[0] == opening else -1
        if depth == 0 and found.end() < len(latex):
            return latex
    return latex[len(opening) : -len(closing)]


def _beside(left: str, right: str) -> str:
    """A product: a dot only where two numbers would run together."""
    return rf"{left} \cdot {right}" if right[:1].isdigit() or right.startswith("-") else f"{left} {right}"
