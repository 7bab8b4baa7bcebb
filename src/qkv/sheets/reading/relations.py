"""Signs of relations: LaTeX commands and Unicode characters, and what each of them says."""

from __future__ import annotations

COMMANDS = {
    "approx": "~", "simeq": "~", "cong": "~", "thickapprox": "~", "approxeq": "~", "doteq": "~", "asymp": "~",
    "backsimeq": "~", "fallingdotseq": "~", "risingdotseq": "~", "thicksim": "~",
    "to": "->", "rightarrow": "->", "longrightarrow": "->", "xrightarrow": "->", "leadsto": "->",
    "rightsquigarrow": "->",
    "mapsto": "->", "longmapsto": "->", "nearrow": "->", "searrow": "->", "uparrow": "->", "downarrow": "->",
    "xlongrightarrow": "->",
    "gg": ">>", "ll": "<<", "gggtr": ">>", "ggg": ">>", "lll": "<<", "gtrsim": ">>", "lesssim": "<<",
    "geq": ">=", "ge": ">=", "leq": "<=", "le": "<=", "geqslant": ">=", "leqslant": "<=", "geqq": ">=", "leqq": "<=",
    "neq": "!=", "ne": "!=", "napprox": "!~", "nsim": "!~", "nrightarrow": "!~",
    "lt": "<", "gt": ">", "succ": ">", "prec": "<",
    "equiv": "=", "eq": "=", "triangleq": "=", "coloneqq": "=", "coloneq": "=", "eqqcolon": "=",
    "sim": ":", "perp": "perp", "in": "in", "notin": "notin", "propto": "prop",
}  # fmt: skip
"""= ~ (approximately) -> >> << < > <= >= != !~ (not even approximately) : (is distributed as) perp
in notin prop (is proportional to)."""

CHARACTERS = {
    "≈": "approx", "≃": "approx", "≅": "approx", "≒": "approx", "≐": "approx", "≊": "approx", "≍": "approx",
    "≫": "gg", "⋙": "gg", "≪": "ll", "≥": "geq", "⩾": "geq", "≧": "geq", "≤": "leq", "⩽": "leq", "≦": "leq", "≠": "neq",
    "≉": "napprox", "≄": "napprox", "≇": "napprox", "↛": "napprox",
    "→": "to", "⟶": "to", "↦": "to", "⇝": "to", "↗": "to", "↘": "to", "∼": "sim", "⊥": "perp", "∝": "propto",
    "≡": "equiv", "≔": "equiv", "≜": "equiv", "≝": "equiv", "＝": "equiv", "＞": "gt", "＜": "lt",
}  # fmt: skip
"""Unicode characters and the commands that they stand for."""
