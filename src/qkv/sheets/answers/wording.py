"""Expressions of the language of claims as people write them."""

from __future__ import annotations

import re

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "varepsilon": "ε", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "xi": "ξ", "rho": "ρ", "sigma": "σ", "tau": "τ", "omega": "ω",
    "zeta": "ζ", "phi": "φ", "psi": "ψ", "nu": "ν", "pi": "π",
}  # fmt: skip
NAME = re.compile(r"(?<![A-Za-z])([A-Za-z]+)(?![A-Za-z])")


def people_write(expression: str, letters: dict[str, str] | None = None) -> str:
    """An expression with Greek letters, e^x, ½ and dots for products; `letters` puts the author's letters back."""
    text = _powers_of_e(expression)
    text = re.sub(r"\((\w+ \+ \w+|\([^()]*\))\)/2", r"½(\1)", text)
    text = re.sub(r"(?<![\w/^])1/2\*(?=[(\w])|\(1/2\)\*", "½", text)
    text = (
        text.replace("*'", "*")
        .replace("->", "→")
        .replace("oo", "∞")
        .replace("!=", "≠")
        .replace(">=", "≥")
        .replace("<=", "≤")
    )
    text = text.replace("'", "ᵀ")

    def letter(found: re.Match[str]) -> str:
        own = (letters or {}).get(found[1], found[1])
        return GREEK.get(own, own)

    text = NAME.sub(letter, text.replace("_", "\x00")).replace("\x00", "_")
    text = re.sub(r"(\d)\*(?=\d)", r"\1·", text)
    text = text.replace("*", " " if re.search(r"[A-Za-zα-ω_]\*[A-Za-zα-ω]", text) else "")
    return text.replace(" - ", " − ")


def _powers_of_e(text: str) -> str:
    """exp(x) as e^{x}."""
    out = ""
    index = 0
    while index < len(text):
        if text.startswith("exp(", index) and (index == 0 or not text[index - 1].isalnum()):
            depth, end = 1, index + 4
            while end < len(text) and depth:
                depth += (text[end] == "(") - (text[end] == ")")
                end += 1
            inner = _powers_of_e(text[index + 4 : end - 1])
            out += f"e^{inner}" if re.fullmatch(r"\w", inner) else f"e^{{{inner}}}"
            index = end
        else:
            out += text[index]
            index += 1
    return out


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}"
