"""LaTeX math as tokens: letters, numbers, commands, words; Unicode signs become what they stand for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from qkv.sheets.reading.relations import CHARACTERS

MAX_TOKENS = 1500
MAX_BRACES = 40

UNICODE = {
    "ᵀ": r"^{\top}", "⊤": r"\top ", "⊺": r"\top ", "½": r"\frac{1}{2}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅓": r"\frac{1}{3}", "∞": r"\infty ", "∑": r"\sum ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ",
    "×": r"\times ", "−": "-", "–": "-", "∈": r"\in ", "∉": r"\notin ", "∀": r"\forall ", "⇒": r"\Rightarrow ",
    "⟹": r"\Rightarrow ", "∴": r"\therefore ", "∵": r"\because ", "′": "'", "’": "'", "‖": r"\|", "∥": r"\|",
    "√": r"\sqrt ", "⊙": r"\odot ", "…": r"\dots ", "⋯": r"\dots ", "（": "(", "）": ")", "，": ",", "；": ";",
    "：": ":",
    "、": ",", "。": ".", "｜": "|", "\u00a0": " ", "µ": r"\mu ", "∖": r"\setminus ", "〈": r"\langle ",
    "〉": r"\rangle ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "Σ": r"\Sigma ", "ℝ": r"\mathbb{R}", "𝔼": r"\mathbb{E}", "∧": r"\land ",
    "⇔": r"\iff ", "∕": "/", "⁄": "/", "∗": "*", "ℓ": r"\ell ", "¬": r"\not ", "∣": "|", "\u2009": " ", "\u202f": " ",
    "\u200b": "", "\ufeff": "",
    **{sign: rf"\{command} " for sign, command in CHARACTERS.items()},
}  # fmt: skip
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ϵ": "epsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "φ": "phi", "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Φ": "Phi", "Δ": "Delta", "Λ": "Lambda",
    "Ω": "Omega", "Γ": "Gamma", "Θ": "Theta",
}  # fmt: skip
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ,", "0123456789+-aehijklmnoprstuvx,", strict=True))
SUPERSCRIPTS = dict(
    zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", "0123456789+-()abcdefghijklmnoprstuvwxyz", strict=True)
) | {"ᵝ": r"\beta ", "ᵞ": r"\gamma ", "ᵟ": r"\delta ", "ᵅ": r"\alpha "}
_SUBSCRIPTED = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ](?:,?[₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ])*")
_DOTTED = re.compile(r"(_(?:\w|\{\w+\}))\.(?=[A-Za-z])")  # k_a.q is a dot product
_SUPERSCRIPTED = re.compile(f"[{''.join(SUPERSCRIPTS)}]+")
WORDS = {
    "exp", "log", "ln", "softmax", "Softmax", "Var", "var", "Cov", "cov", "max", "min", "when", "where",
    "for", "if", "and",
    "or", "otherwise", "else", "with", "as", "all", "any", "since", "because", "then", "so", "let", "Let",
    "thus", "ReLU",
    "sqrt", "diag", "Attention", "attention", "iff", "is", "large", "argmax", "tanh", "sin", "cos", "rest",
}  # fmt: skip
_DROPPED = {
    "left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bigg", "Bigg", "biggl", "biggr", "displaystyle",
    "textstyle", "limits", "nolimits", "nonumber", "notag", "mathstrut", "hfill", "bm", "boldsymbol",
    "mathbf", "mathit",
    "mathsf", "vec", "tilde", "widetilde", "hat", "widehat", "bar", "overline", "mathcal", "bf", "rm", "it", "mathrm",
    "mathnormal", "textbf", "underline", "boxed", "ensuremath", "color", "scriptstyle", "dot", "mathbb", "colon",
    "cancel", "bcancel", "mathbin", "mathrel",
    "middle", "mathop", "operatornamewithlimits", "pmb", "strut", "symbf", "bold", "textit", "fbox", "cal",
}  # fmt: skip
_TEXT = ("text", "textrm", "textnormal", "mbox", "operatorname", "textsf", "texttt", "hbox", "mathrm", "rm", "textup")
_TOKEN = re.compile(
    r"\\([A-Za-z]+\*?)|\\(.)|(\d+(?:\.\d+)?|\.\d+)|([A-Za-z]+)|(>>|<<|!=|<=|>=|->|=>|:=)|(\s+)|(.)", re.S
)


@dataclass(frozen=True)
class Token:
    """One token: kind "letter", "number", "command", "word", "text" or "sign"."""

    kind: str
    text: str


def tokens(math: str) -> list[Token]:
    """The tokens of a formula, at most a fixed number of them."""
    out: list[Token] = []
    text = _unbraced(_plain(math))
    index = 0
    while index < len(text) and len(out) < MAX_TOKENS:
        found = _TOKEN.match(text, index)
        if found is None:
            break
        index = found.end()
        command, escaped, number, letters, sign, space, other = found.groups()
        if command:
            index = _command(command.rstrip("*"), text, index, out)
        elif escaped:
            if escaped in "{}|%&#_":
                out.append(Token("command", escaped))
            elif escaped == "\\":
                out.append(Token("sign", "\\\\"))
            elif escaped in ",;: ! ":
                out.append(Token("command", "space"))
        elif number:
            out.append(Token("number", number))
        elif letters == "mu" and text[index : index + 1] == "_":  # a mean without its backslash
            out.append(Token("command", "mu"))
        elif letters:
            _letters(letters, out)
        elif sign:
            out.append(Token("command", {">>": "gg", "<<": "ll", "!=": "neq", "<=": "leq", ">=": "geq", "->": "to",
                                         "=>": "Rightarrow"}.get(sign, "eq")))  # fmt: skip
        elif space:
            continue
        elif other:
            out.append(Token("sign", other))
    return _with_expectations(out)


def _with_expectations(found: list[Token]) -> list[Token]:
    """The letter E before a square bracket is the expectation."""
    out = list(found)
    for i, token in enumerate(found[:-1]):
        following = found[i + 2] if found[i + 1] == Token("command", "left") and i + 2 < len(found) else found[i + 1]
        if token == Token("letter", "E") and following == Token("sign", "["):
            out[i] = Token("word", "E")
    return out


def _plain(math: str) -> str:
    """The formula in ASCII: Greek letters and signs as commands, raised and lowered characters as scripts."""
    out = []
    math = _SUBSCRIPTED.sub(lambda run: f"_{{{''.join(SUBSCRIPTS[c] for c in run[0])}}}", math[:20_000])
    math = _DOTTED.sub(r"\1\\cdot ", math)
    math = _SUPERSCRIPTED.sub(lambda run: f"^{{{''.join(SUPERSCRIPTS[c] for c in run[0])}}}", math)
    for char in math:
        if char in UNICODE:
            out.append(UNICODE[char])
        elif char in GREEK:
            out.append(f"\\{GREEK[char]} ")
        elif ord(char) > 0x1D3FF:
            plain = unicodedata.normalize("NFKC", char)
            out.append(f"\\{GREEK[plain]} " if plain in GREEK else plain)
        else:
            out.append(char)
    return "".join(out)


_BRACE = re.compile(r"\\(?:underbrace|overbrace)(?![A-Za-z])")
_SIDES = re.compile(r"[=<>]|\\(?:approx|simeq|geq?|leq?|gg|ll|to|rightarrow|neq?)(?![A-Za-z])")


def _unbraced(text: str) -> str:
    """The formula without braces under or over its parts, and without what is written at them."""
    index = 0
    for _ in range(MAX_BRACES):
        found = _BRACE.search(text, index)
        if found is None:
            break
        index = found.end()
        inner, after = _group(text, index)
        if inner is None:
            continue
        script = re.match(r"\s*[_^]\s*", text[after:])
        if script is not None:
            start = after + script.end()
            note, end = _group(text, start)
            after = end if note is not None else start + 1
        kept = f" {inner} " if _SIDES.search(inner) else f"{{{inner}}}"
        text = text[: found.start()] + kept + text[after:]
        index = found.start()
    return text


def _letters(run: str, out: list[Token]) -> None:
    """A run of letters: a known word, or single letters."""
    if run in WORDS:
        out.append(Token("word", run))
        return
    for word in ("softmax", "exp", "log", "Var", "Cov"):
        if len(run) > len(word) and run.endswith(word) and len(run) <= len(word) + 2:
            out += [Token("letter", c) for c in run[: -len(word)]]
            out.append(Token("word", word))
            return
    if len(run) >= 4 and run in GREEK.values():  # a Greek letter without its backslash
        out.append(Token("command", run))
        return
    if len(run) >= 5:  # a word of the sentence
        out.append(Token("text", run))
        return
    out += [Token("letter", c) for c in run]


def _command(name: str, text: str, index: int, out: list[Token]) -> int:
    """Append what a command stands for; returns where to go on."""
    if name in ("begin", "end"):
        close = text.find("}", index)
        if close < 0:
            return index
        out.append(Token("command", f"{name}:{text[index + 1 : close].strip('*{ ')}"))
        return close + 1
    if name in _TEXT:
        inner, after = _group(text, index)
        if inner is not None:
            bare = inner.strip()
            if bare in ("T", r"\top"):
                out.append(Token("command", "top"))
            elif bare == "E" and re.match(r"\s*(?:\\left\s*)?[\[(]", text[after:]):
                out.append(Token("word", "E"))
            elif re.fullmatch(r"[A-Za-z]", bare):
                out.append(Token("letter", bare))
            elif bare in WORDS or (name == "operatorname" and bare.isalpha()):
                out.append(Token("word", bare))
            elif bare and not re.fullmatch(r"[A-Za-z\s.,;:'()=≈-]*", bare) and ("\\" in bare or "$" in bare):
                out += tokens(bare.replace("$", " "))
            else:
                out.append(Token("text", bare))
            return after
    if name in ("mathbb", "mathcal"):
        inner, after = _group(text, index)
        if inner is not None and inner.strip() in ("E", "R", "N", "P"):
            out.append(Token("word", {"E": "E", "R": "Reals", "N": "N", "P": "P"}[inner.strip()]))
            return after
        return index
    if name in ("overset", "underset", "stackrel", "cancelto"):  # what is written above or below says nothing
        inner, after = _group(text, index)
        return after if inner is not None else index
    if name in ("xrightarrow", "xlongrightarrow"):  # what is written at the arrow says nothing
        out.append(Token("command", "to"))
        below = re.match(r"\s*\[[^\]]*\]", text[index:])
        inner, after = _group(text, index + (below.end() if below else 0))
        return after if inner is not None else index
    if name in ("label", "tag", "hspace", "vspace", "phantom", "hphantom", "vphantom", "textcolor", "color"):
        inner, after = _group(text, index)
        return after if inner is not None else index
    if name not in _DROPPED:
        out.append(Token("command", name))
    elif name in ("left", "right", "middle") and text[index : index + 1] == ".":
        return index + 1
    return index


def _group(text: str, index: int) -> tuple[str | None, int]:
    """The argument in braces that follows, or None."""
    while index < len(text) and text[index].isspace():
        index += 1
    if index >= len(text) or text[index] != "{":
        return None, index
    depth = 0
    for place in range(index, min(len(text), index + 2000)):
        if text[place] == "{" and text[place - 1] != "\\":
            depth += 1
        elif text[place] == "}" and text[place - 1] != "\\":
            depth -= 1
            if depth == 0:
                return text[index + 1 : place], place + 1
    return None, index
