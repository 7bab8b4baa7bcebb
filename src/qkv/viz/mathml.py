"""LaTeX formulas as MathML, which browsers show without a script: the commands that qkv and most authors write."""

from __future__ import annotations

import html
import re

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "mu": "μ", "rho": "ρ", "sigma": "σ",
    "lambda": "λ", "varepsilon": "ε", "epsilon": "ε", "pi": "π", "Sigma": "Σ", "Phi": "Φ", "ell": "ℓ",
    "iota": "ι", "Xi": "Ξ", "Pi": "Π", "infty": "∞",
    "nu": "ν", "eta": "η", "Gamma": "Γ", "phi": "ϕ", "varphi": "φ", "psi": "ψ", "omega": "ω", "xi": "ξ", "zeta": "ζ",
    "kappa": "κ", "tau": "τ", "chi": "χ", "Lambda": "Λ", "Delta": "Δ", "Theta": "Θ", "Omega": "Ω", "Psi": "Ψ",
}  # fmt: skip
OPERATORS = {
    "to": "→", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈",
    "nequiv": "≢", "equiv": "≡",
    "sim": "∼", "simeq": "≃", "cdot": "⋅", "times": "×", "top": "⊤", "in": "∈", "notin": "∉", "pm": "±", "dots": "…",
    "ldots": "…", "cdots": "⋯", "mid": "∣", "perp": "⊥", "propto": "∝", "lVert": "‖", "rVert": "‖", "langle": "⟨",
    "rangle": "⟩", "{": "{", "}": "}", "|": "‖", "rightarrow": "→", "Rightarrow": "⇒", "implies": "⇒", "_": "_",
    "gg": "≫", "ll": "≪", "forall": "∀", "exists": "∃", "iff": "⇔", "Leftrightarrow": "⇔", "leftrightarrow": "↔",
    "cup": "∪", "cap": "∩", "subset": "⊂", "setminus": "∖", "odot": "⊙", "otimes": "⊗", "circ": "∘", "star": "⋆",
    "colon": ":", "leftarrow": "←", "longrightarrow": "⟶", "lt": "<", "gt": ">", "prime": "′", "vert": "|", "Vert": "‖",
    "lbrace": "{", "rbrace": "}", "%": "%", "&": "&", "#": "#", "lesssim": "≲", "gtrsim": "≳", "therefore": "∴",
}  # fmt: skip
LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
SPACES = {"quad": "1em", "qquad": "2em", ";": "0.28em", ":": "0.22em", ",": "0.17em", " ": "0.25em", "!": "0em"}
WORDS = ("log", "exp", "max", "min", "arg", "lim", "ln", "cos", "sin", "tan", "det", "dim", "ker", "argmax", "softmax")
SIZES = ("big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr")
_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[{}_^]|\d+(?:\.\d+)?|\s+|.", re.DOTALL)


def mathml(latex: str, display: bool = False) -> str:
    """The formula as a `math` element; empty where it has a command that is not known here."""
    try:
        body = _Converter(latex).all()
    except (ValueError, LookupError):
        return ""
    block = ' display="block"' if display else ""
    return f"<math{block}><mrow>{body}</mrow></math>"


class _Converter:
    def __init__(self, latex: str) -> None:
        latex = latex.replace("\\not\\equiv", "\\nequiv")
        self._tokens = [t for t in _TOKEN.findall(latex) if not t.isspace()]
        self._text = latex
        self._raw = _TOKEN.findall(latex)
        self._at = 0

    def all(self) -> str:
        body = self._until(())
        if self._at < len(self._tokens):
            raise ValueError("unbalanced")
        return body

    def _until(self, ends: tuple[str, ...]) -> str:
        parts: list[str] = []
        while self._at < len(self._tokens) and self._tokens[self._at] not in ends:
            if self._tokens[self._at] in ("_", "^"):
                parts.append(self._scripts(parts.pop() if parts else "<mrow></mrow>"))
            elif self._tokens[self._at] == "}":
                raise ValueError("unbalanced")
            else:
                part = self._atom()
                is_first = not parts or parts[-1] == '<mo stretchy="false">(</mo>'
                # Inside brackets a browser takes a sign for one between two terms, with spaces around it.
                parts.append('<mo form="prefix">−</mo>' if part == "<mo>−</mo>" and is_first else part)
        return "".join(parts)

    def _scripts(self, base: str) -> str:
        low = high = ""
        while self._at < len(self._tokens) and self._tokens[self._at] in ("_", "^"):
            sign = self._tokens[self._at]
            self._at += 1
            script = self._argument()
            if sign == "_":
                low = script
            else:
                high = script
        kind = "munder mover munderover" if "∑" in base or "∏" in base else "msub msup msubsup"
        under, over, both = kind.split()
        if low and high:
            return f"<{both}>{base}{low}{high}</{both}>"
        return f"<{under}>{base}{low}</{under}>" if low else f"<{over}>{base}{high}</{over}>"

    def _argument(self) -> str:
        token = self._tokens[self._at]
        if token == "{":
            return f"<mrow>{self._group()}</mrow>"
        if token[0].isdigit() and len(token) > 1:  # without braces, an argument is one digit: \\frac12 is a half
            self._split_number()
        return self._atom()

    def _split_number(self) -> None:
        """Make the first digit of the next token a token of its own."""
        for tokens, at in ((self._raw, self._raw_index()), (self._tokens, self._at)):
            token = tokens[at]
            tokens[at : at + 1] = [token[0], token[1:]]

    def _raw_index(self) -> int:
        """Where the next token stands among the tokens with blanks."""
        return [place for place, token in enumerate(self._raw) if not token.isspace()][self._at]

    def _group(self) -> str:
        self._at += 1
        body = self._until(("}",))
        if self._at >= len(self._tokens):
            raise ValueError("unbalanced")
        self._at += 1
        return body

    def _atom(self) -> str:
        token = self._tokens[self._at]
        if token == "{":
            return f"<mrow>{self._group()}</mrow>"
        self._at += 1
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{html.escape(token)}</mi>"
        if token in "()[]|":  # of their own size, as in LaTeX; \\left and \\right stretch
            return f'<mo stretchy="false">{token}</mo>'
        return f"<mo>{html.escape(token.replace('-', '−').replace(chr(39), '′'))}</mo>"

    def _command(self, name: str) -> str:
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self._argument()}{self._argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._argument()}</msqrt>"
        if name == "left":
            return self._fenced()
        if name in ("text", "mathrm", "operatorname"):
            return self._words(name)
        if name in ("bar", "hat", "tilde"):
            mark = {"bar": "¯", "hat": "^", "tilde": "~"}[name]
            return f'<mover accent="true">{self._argument()}<mo>{mark}</mo></mover>'
        if name in ("mathcal", "mathbb"):
            letter = {"E": "𝔼", "P": "ℙ", "R": "ℝ", "N": "𝒩"}[self._plain()]
            return f"<mi>{letter}</mi>"
        if name in ("mathbf", "boldsymbol", "bm", "mathit", "vec", "overline", "underline"):
            return self._styled(name)
        if name in ("displaystyle", "textstyle", "limits", "nolimits", *SIZES):
            return ""
        if name == "not":
            following = self._tokens[self._at]
            self._at += 1
            return f"<mo>{ {'=': '≠', chr(92) + 'to': '↛', chr(92) + 'in': '∉'}[following] }</mo>"
        if name in LARGE:
            return f"<mo>{LARGE[name]}</mo>"
        if name in SYMBOLS:
            return f"<mi>{SYMBOLS[name]}</mi>"
        if name in WORDS:
            return f"<mi>{name}</mi>"
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        if name in OPERATORS:
            return f"<mo>{html.escape(OPERATORS[name])}</mo>"
        raise ValueError(name)

    def _styled(self, name: str) -> str:
        """An argument in bold type, or with an arrow or a line."""
        inner = self._argument()
        if name in ("mathbf", "boldsymbol", "bm"):
            return f'<mrow style="font-weight: bold">{inner}</mrow>'
        if name == "mathit":
            return inner
        if name == "underline":
            return f"<munder>{inner}<mo>_</mo></munder>"
        return f'<mover accent="true">{inner}<mo>{"→" if name == "vec" else "¯"}</mo></mover>'

    def _fenced(self) -> str:
        opening = self._delimiter()
        body = self._until((r"\right",))
        self._at += 1
        closing = self._delimiter()
        return f"<mrow>{opening}{body}{closing}</mrow>"

    def _delimiter(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token == ".":
            return ""
        sign = OPERATORS.get(token[1:], "") if token.startswith("\\") else token
        if not sign:
            raise ValueError(token)
        return f'<mo stretchy="true">{html.escape(sign)}</mo>'

    def _plain(self) -> str:
        """The letters of an argument in braces, or of the next token."""
        if self._tokens[self._at] != "{":
            self._at += 1
            return self._tokens[self._at - 1]
        end = self._tokens.index("}", self._at)
        letters = "".join(self._tokens[self._at + 1 : end])
        self._at = end + 1
        return letters

    def _words(self, name: str) -> str:
        """Upright text; blanks count, which the tokens do not have."""
        raw = self._raw_index()
        if self._raw[raw] != "{":
            raise ValueError(name)
        end = raw + 1
        while self._raw[end] != "}":
            if self._raw[end] == "{":
                raise ValueError("nested text")
            end += 1
        inner = self._raw[raw + 1 : end]
        self._at += 2 + sum(not token.isspace() for token in inner)
        text = html.escape("".join(token[1:] if token.startswith("\\") else token for token in inner))
        return f"<mtext>{text.replace(' ', '&#160;')}</mtext>" if name == "text" else f"<mi>{text}</mi>"
