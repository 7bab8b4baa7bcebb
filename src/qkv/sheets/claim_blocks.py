"""How each formula of a sheet was read, as claim blocks that can be edited and given to `qkv check`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qkv.sheets.feedback import Grade, GradedAnswer, Statement, said, words

MAX_QUOTED = 300
"""Characters of a formula in the text beside its block."""


def claim_document(grades: Iterable[Grade]) -> str:
    """Markdown with one claim block for every statement and answer that was read as a claim.

    Args:
        grades: The graded sheets, in their order.

    Returns:
        A document that `qkv check` takes; definitions without a statement are text in it.

    Example:
        >>> from qkv.sheets import claim_document, grade
        >>> text = claim_document([grade("(b) Let $q = t k_a$, so $k_a^T q = t$.", "attention-2021")])
        >>> text.count("~~~claim") >= 1
        True
    """
    parts = []
    for grade in grades:
        parts.append(f"# {_plain(grade.file) or 'Sheet'}\n")
        found = [(a, "answer") for a in grade.answers if a.claim] + [
            (s, "formula") for s in grade.statements if s.claim
        ]
        if not found:
            parts.append("No formula of this sheet was read as a claim.\n")
        for one, kind in found:
            parts.append(_section(one, kind))
    return "\n".join(parts)


def _section(one: Statement | GradedAnswer, kind: str) -> str:
    """The line, what was written, the verdict, and the claim as a block."""
    written = one.formula if isinstance(one, Statement) else one.given
    place = f"Line {one.line}" + (f", part {one.part}" if one.part else "")
    name = f"{kind} {one.part} line {one.line}".replace("  ", " ")
    quoted = _plain(written)[:MAX_QUOTED]
    because = _plain(said(one))
    lines = [f"{place}: {quoted}", "", f"Verdict: {words(one.verdict)}" + (f". {because}" if because else ""), ""]
    states = any(line.lstrip().startswith("then") for line in one.claim.splitlines())
    kind = f"claim {_name(name)}" if states else "text"  # a definition alone states nothing that could be checked
    return "\n".join([*lines, f"~~~{kind}", one.claim.strip("\n"), "~~~", ""])


def _plain(text: str) -> str:
    """A text on one line that opens no fence."""
    return re.sub(r"\s+", " ", text).replace("```", "'''").replace("~~~", "---").strip()


def _name(text: str) -> str:
    return re.sub(r"[^\w .#()-]+", " ", text).strip()
