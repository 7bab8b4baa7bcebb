"""LaTeX between dollar signs and Unicode anywhere, to the ASCII of the grammar; characters keep their positions."""

from __future__ import annotations

import re

from qkv.claims.syntax.nodes import At, Malformed
from qkv.claims.syntax.parser import Source

# The ASCII spelling of one character; of superscripts and subscripts, those that people type.
UNICODE = {
    "α": "alpha ", "β": "beta ", "γ": "gamma ", "ε": "eps ", "μ": "mu ", "µ": "mu ", "θ": "theta ", "σ": "sigma ",
    "→": "->", "∞": "oo", "≥": ">=", "≤": "<=", "≠": "!=", "≈": "~=", "≃": "~=", "·": "*", "×": "*", "−": "-",
    "ᵀ": "'", "⊤": "'", "½": "(1/2)", "¼": "(1/4)", "²": "^2", "³": "^3", "√": "sqrt", "∼": "~", "↛": "-/->",
    "₁": "_1", "₂": "_2", "₃": "_3", "’": "'", "′": "'", "\u00a0": " ", "Σ": "Sigma", "π": "pi ", "λ": "lambda ",
    "∑": "sum", "∀": " for all ", "∈": " in ", "⊙": ".*", "∘": ".*", "ℝ": "R", "⟨": "inner(", "⟩": ")", "⇔": " iff ",
    "↔": " iff ", "∃": " exists ",
}  # fmt: skip

MACROS = {
    "alpha": "alpha", "beta": "beta", "gamma": "gamma", "epsilon": "eps", "varepsilon": "eps", "mu": "mu",
    "theta": "theta", "sigma": "sigma", "Sigma": "Sigma", "delta": "delta", "lambda": "lambda",
    "to": "->", "rightarrow": "->", "longrightarrow": "->", "nrightarrow": "-/->", "infty": "oo",
    "ge": ">=", "geq": ">=", "le": "<=", "leq": "<=", "ne": "!=", "neq": "!=", "approx": "~=", "simeq": "~=",
    "lt": "<", "gt": ">", "cdot": "*", "times": "*", "sim": "~", "top": "T", "intercal": "T", "ldots": "..",
    "dots": "..", "exp": "exp", "log": "log", "ln": "log", "Pr": "P", "Var": "Var", "Cov": "Cov", "lbrace": "{",
    "rbrace": "}", "colon": ":", "quad": " ", "qquad": " ", "left": "", "right": "", "big": "", "Big": "",
    "bigl": "", "bigr": "", "displaystyle": "", "limits": "", "notin": " not in ",
    "pi": "pi", "forall": "for all", "in": " in ", "odot": ".*", "otimes": "⊗", "circ": ".*", "langle": "inner(",
    "rangle": ")", "iff": " iff ", "Leftrightarrow": " iff ", "exists": " exists ", "max": "max", "min": "min",
    "sin": "sin", "cos": "cos", "tanh": "tanh", "arg": "arg", "mid": "|", "lvert": "|", "rvert": "|",
    "cdots": "..", "operatornamewithlimits": "", "phi": "phi", "rho": "rho", "omega": "omega",
    "tau": "tau", "eta": "eta", "Delta": "Delta", "xi": "xi",
}  # fmt: skip
WRAPPERS = (
    "mathbf",
    "mathcal",
    "mathrm",
    "operatorname",
    "text",
    "mathsf",
    "mathbb",
    "boldsymbol",
    "vec",
    "tilde",
    "textrm",
    "textnormal",
    "mathop",
)
_NAMES = {
    "alpha", "beta", "gamma", "eps", "mu", "theta", "sigma", "delta", "lambda", "oo", "Sigma", "pi", "phi", "rho",
    "omega", "tau", "eta", "Delta", "xi", "for all",
}  # fmt: skip


# What could belong to the argument of a \log without brackets: a power or another factor, but no word or sign.
_GOES_ON = re.compile(
    r"(?:\s|\\[,;!: ]|~|\\left|\\[bB]igl?)*(?!(?:as|for|when|and|with|within|of|is)\b)"
    r"([\^'!({\[*·×√²³ᵀ⊤½¼α-ωA-Za-z0-9]|\\(?:cdot|times|frac|tfrac|dfrac|sqrt|exp|log|ln|sum|alpha|beta|gamma|epsilon"
    r"|varepsilon|mu|theta|sigma|Sigma|delta|lambda|lVert|Vert|mathbf|mathrm|mathcal|boldsymbol|vec|tilde)\b|\\\|)"
)


def ascii_of(source: Source) -> Source:
    """A clause in ASCII: LaTeX and Unicode are translated, and each character keeps its position in the document."""
    text: list[str] = []
    at: list[At] = []
    inside = -1
    for index, char in enumerate(source.text):
        if char == "$":
            if inside >= 0:
                _append(text, at, *_Latex(source[inside + 1 : index]).run())
                inside = -1
            else:
                inside = index
        elif inside < 0:
            _append(text, at, *_plain(char, source.where(index)))
    if inside >= 0:
        raise Malformed(source.where(inside), "a dollar sign that is never closed", "a second $ on this line")
    return _bars(_worded(_tidied("".join(text), at)))


_WORDS = (
    (re.compile(r"\b(?:is\s+)?at\s+most\b"), "<="),
    (re.compile(r"\b(?:is\s+)?at\s+least\b"), ">="),
    (re.compile(r"\bif\s+and\s+only\s+if\b"), "iff"),
    (re.compile(r"\bexists?\s+(.*?)\s*(?:such\s+that\b|:)"), r"exists \1 with"),
    (re.compile(r"\bthere\s+(?:is|are)\s+(.*?)\s+(?:such\s+that|with)\b"), r"exists \1 with"),
    (re.compile(r"(?<![A-Za-z_])arg\s+max(?![A-Za-z_])"), "argmax"),
    (re.compile(r"\binner\(\s*\("), "inner(("),
    (re.compile(r"(?<![A-Za-z_])lim_([A-Za-z])\s*->"), r"lim_{\1->"),
    (re.compile(r"(?<![A-Za-z_])sum\s+(?=_)"), "sum"),
)


def _worded(source: Source) -> Source:
    """Words that stand for a sign: `at most` is <=, `such that` is with."""
    for pattern, sign in _WORDS:
        found = pattern.search(source.text)
        while found is not None:
            new = found.expand(sign)
            if new == found[0]:
                break
            places = [source.where(found.start())] * len(new)
            text = source.text[: found.start()] + new + source.text[found.end() :]
            source = Source(text, [*source.at[: found.start()], *places, *source.at[found.end() :]])
            found = pattern.search(source.text, found.start() + len(new))
    return source


def _bars(source: Source) -> Source:
    """|x| is abs(x) and ‖x‖ is norm(x): the first bar opens, the next of its kind closes."""
    text: list[str] = []
    at: list[At] = []
    open_at: dict[str, int] = {}
    for index, char in enumerate(source.text):
        if char not in "|‖":
            _append(text, at, char, [source.where(index)])
        elif char in open_at:
            del open_at[char]
            _append(text, at, ")", [source.where(index)])
        else:
            open_at[char] = index
            word = "abs(" if char == "|" else "norm("
            _append(text, at, word, [source.where(index)] * len(word))
    for char, index in open_at.items():
        raise Malformed(source.where(index), f"an open {char}", f"a second {char}")
    return Source("".join(text), at)


def _append(text: list[str], at: list[At], more: str, places: list[At]) -> None:
    text.append(more)
    at.extend(places)


def _plain(char: str, place: At) -> tuple[str, list[At]]:
    out = UNICODE.get(char, char)
    return out, [place] * len(out)


def _tidied(text: str, at: list[At]) -> Source:
    """Join a Greek letter with the index after it: `mu _a` is mu_a."""
    keep = [True] * len(text)
    for found in re.finditer(r" +(?=_)", text):
        keep[found.start() : found.end()] = [False] * (found.end() - found.start())
    chosen = [i for i, kept in enumerate(keep) if kept]
    return Source("".join(text[i] for i in chosen), [at[i] for i in chosen])


class _Latex:
    """The translation of one segment between dollar signs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.index = 0
        self.out: list[str] = []
        self.at: list[At] = []

    def run(self) -> tuple[str, list[At]]:
        while self.index < len(self.source.text):
            self._step()
        return "".join(self.out), self.at

    def _emit(self, text: str, index: int) -> None:
        self.out.append(text)
        self.at.extend([self.source.where(index)] * len(text))

    def _step(self) -> None:
        text, start = self.source.text, self.index
        char = text[start]
        if text.startswith("\\|", start):
            self._norm()
        elif char == "\\":
            self._macro()
        elif char == "_":
            self._subscript()
        elif char == "^":
            self._superscript()
        elif char in "{}":
            self._emit("(" if char == "{" else ")", start)
            self.index += 1
        elif char == "~":
            self._emit(" ", start)
            self.index += 1
        else:
            out, places = _plain(char, self.source.where(start))
            self.out.append(out)
            self.at.extend(places)
            self.index += 1

    def _macro(self) -> None:
        start = self.index
        found = re.compile(r"\\([A-Za-z]+|.)").match(self.source.text, start)
        if found is None:
            raise Malformed(self.source.where(start), "a lone backslash", "a LaTeX command")
        name = found[1]
        self.index = found.end()
        if name in ("frac", "tfrac", "dfrac"):
            self._frac(start)
        elif name == "sqrt":
            self._emit("sqrt(", start)
            self._argument(start)
            self._emit(")", start)
        elif name in ("exp", "log", "ln", "sin", "cos", "tanh"):
            self._function("log" if name == "ln" else name, start)
        elif name == "sum":
            self._sum(start)
        elif name == "lim":
            self._lim(start)
        elif name == "xrightarrow":
            self._emit("->{", start)
            self._argument(start)
            self._emit("}", start)
        elif name == "begin":
            self._cases(start)
        elif name in WRAPPERS:
            self._argument(start)
        elif name in (",", ";", "!", " ", ":"):
            self._emit(" ", start)
        elif name in "{}":
            self._emit(name, start)
        elif name in ("lVert", "Vert"):
            self._norm(name)
        elif name in MACROS:
            word = MACROS[name]
            self._emit(f" {word} " if word in _NAMES or word[:1] in "-<>!~" else word, start)
        else:
            raise Malformed(self.source.where(start), f"\\{name}", "a LaTeX command of the reference in docs/claims.md")

    def _function(self, name: str, start: int) -> None:
        """\\log(x) as it stands; \\log x takes the one symbol that follows, with its index."""
        found = re.compile(r"\s*(?:\\left\s*)?\(").match(self.source.text, self.index)
        if found is not None:
            self._emit(name, start)
            return
        self._emit(f"{name}(", start)
        self._argument(start)
        while self.index < len(self.source.text) and self.source.text[self.index] in "_":
            self._step()
        self._emit(")", start)
        after = _GOES_ON.match(self.source.text, self.index)
        if after is not None:
            came = f"\\{name} without brackets before {after[1]}"
            raise Malformed(self.source.where(after.start(1)), came, f"brackets, as in \\{name}(2t)")

    def _argument(self, start: int) -> None:
        """Translate the argument of a command: a group in braces, or one character."""
        text = self.source.text
        while self.index < len(text) and text[self.index] == " ":
            self.index += 1
        if self.index >= len(text):
            raise Malformed(self.source.where(start), "the end of the formula", "an argument in braces")
        if text[self.index] != "{":
            self._step()
            return
        depth, end = 0, self.index
        while end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            if depth == 0:
                break
            end += 1
        if depth:
            raise Malformed(self.source.where(self.index), "an open brace", "a closing brace")
        inner = _Latex(self.source[self.index + 1 : end])
        self.index = end + 1
        self.out.append("")
        got, places = inner.run()
        self.out.append(got)
        self.at.extend(places)

    def _frac(self, start: int) -> None:
        self._emit("((", start)
        self._argument(start)
        self._emit(")/(", start)
        self._argument(start)
        self._emit("))", start)

    def _norm(self, name: str = "") -> None:
        """\\| x \\| is norm(x)."""
        start = self.index
        mark = "\\|" if not name else {"lVert": "\\rVert", "Vert": "\\Vert"}[name]
        start = start + 2 if not name else start
        end = self.source.text.find(mark, start)
        if end < 0:
            raise Malformed(self.source.where(start - 1), "an open norm", f"a closing {mark}")
        got, places = _Latex(self.source[start:end]).run()
        self._emit("norm(", start)
        self.out.append(got)
        self.at.extend(places)
        self._emit(")", end)
        self.index = end + len(mark)
        after = re.compile(r"_\{?2\}?").match(self.source.text, self.index)  # the 2 of the Euclidean norm
        self.index = after.end() if after else self.index

    def _subscript(self) -> None:
        start = self.index
        found = re.compile(r"_\s*(?:\{([^{}]*)\}|([A-Za-z0-9]))").match(self.source.text, start)
        if found is None:
            raise Malformed(self.source.where(start), "an index that cannot be read", "an index such as _a or _{2,1}")
        inner = found[1] if found[1] is not None else found[2]
        self._trim()
        self._emit("_" + (inner if len(inner) == 1 else "{" + inner + "}"), start)
        self._emit(" ", start)
        self.index = found.end()

    def _superscript(self) -> None:
        start = self.index
        found = re.compile(r"\^\s*(?:\\top|T(?![A-Za-z])|\{\s*(?:\\top|T|\\mathsf\{T\})\s*\})").match(
            self.source.text, start
        )
        if found is not None:
            self._trim()
            self._emit("'", start)
            self.index = found.end()
            return
        self.index += 1
        self._emit("^(", start)
        self._argument(start)
        self._emit(")", start)

    def _sum(self, start: int) -> None:
        found = re.compile(r"\s*_\s*(?:\{((?:\\[{}]|[^{}])*)\}|([A-Za-z]))\s*(?:\^\s*(\{[^{}]*\}|.))?").match(
            self.source.text, self.index
        )
        if found is None:
            raise Malformed(self.source.where(start), "a sum without an index", "\\sum_{i=1}^n or \\sum_{i \\neq a}")
        upto = (found[3] or "").strip("{} ")
        if found[3] is not None and upto not in ("n", "m", "p", "d"):
            raise Malformed(self.source.where(found.start(3)), f"a sum up to {found[3]}", "n: sums run over all items")
        inner = (found[1] or found[2] or "").replace("\\neq", "!=").replace("\\ne", "!=").replace("\\notin", "not in")
        inner = re.sub(r"\\[{}]", "", inner)
        self._emit("sum_{" + inner.strip() + "}" + (f"^{upto} " if upto else " "), start)
        self.index = found.end()

    def _lim(self, start: int) -> None:
        """\\lim_{t \\to \\infty} is lim_{t -> oo}."""
        found = re.compile(r"\s*(?:\\limits\s*)?_\s*(?=\{)").match(self.source.text, self.index)
        if found is None:
            raise Malformed(self.source.where(start), "a limit of nothing", "\\lim_{t \\to \\infty}")
        self.index = found.end()
        self._emit("lim_{", start)
        self._argument(start)
        self._emit("} ", start)

    def _cases(self, start: int) -> None:
        """\\begin{cases} x & x > 0 \\\\ 0 & otherwise \\end{cases} is cases(x if x > 0, 0 otherwise)."""
        text = self.source.text
        found = re.compile(r"\{cases\}").match(text, self.index)
        end = text.find("\\end{cases}", self.index)
        if found is None or end < 0:
            raise Malformed(self.source.where(start), "an environment", "\\begin{cases} ... \\end{cases}")
        self._emit("cases(", start)
        place = found.end()
        rows = re.split(r"\\\\", text[place:end])
        for number, row in enumerate(rows):
            if not row.strip():
                continue
            value, mark, condition = row.partition("&")
            if not mark:
                raise Malformed(self.source.where(place), "a case without &", "x & x > 0")
            self._emit(", " * bool(number), start)
            self._segment(place, place + len(value))
            bare = re.sub(r"\\(?:text|mathrm|textrm)\s*\{([^{}]*)\}", r"\1", condition).strip().rstrip(".,")
            if re.fullmatch(r"(?:otherwise|else)", bare):
                self._emit(" otherwise", start)
            else:
                shift = re.match(r"\s*(?:\\(?:text|mathrm)\s*\{\s*(?:if|for)\s*\}|if\b|for\b)?", condition)
                self._emit(" if ", start)
                first = place + len(value) + 1 + (shift.end() if shift else 0)
                self._segment(first, place + len(row))
            place += len(row) + 2
        self._emit(")", start)
        self.index = end + len("\\end{cases}")

    def _segment(self, start: int, end: int) -> None:
        """Translate a part of the formula."""
        got, places = _Latex(self.source[start:end]).run()
        self.out.append(got)
        self.at.extend(places)

    def _trim(self) -> None:
        """Drop the blanks after a Greek letter or an index, since what follows belongs to it."""
        while self.out and self.out[-1].endswith(" "):
            self.out[-1] = self.out[-1][:-1]
            self.at.pop()
            if not self.out[-1]:
                self.out.pop()
