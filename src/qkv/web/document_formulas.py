"""Formulas of a Markdown text, between dollar signs: read before Markdown changes them, and shown as MathML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from qkv.viz.mathml import mathml

_INLINE = re.compile(r"\$\$(?P<block>[^$`]+)\$\$|\$(?P<line>[^\s$`](?:[^$`]*[^\s$`\\])?)\$(?!\d)")
_FENCE = "$$"


def with_formulas(parser: MarkdownIt) -> MarkdownIt:
    """The parser with rules for `$…$` and for `$$` on lines of their own.

    Args:
        parser: A parser; it is changed.

    Returns:
        The same parser.

    Example:
        >>> with_formulas(MarkdownIt("commonmark")).render(r"Now $n_1$ and `$x$`.")
        '<p>Now <math><mrow><msub><mi>n</mi><mn>1</mn></msub></mrow></math> and <code>$x$</code>.</p>\\n'
    """
    parser.inline.ruler.before("escape", "formula", _inline_rule)
    parser.block.ruler.before(
        "fence", "formula", _block_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.add_render_rule("formula", _render)
    parser.add_render_rule("formula_block", _render)
    return parser


def formula(token: Token) -> str:
    """A formula as MathML, or as code where it has a command that cannot be converted."""
    display = token.markup == _FENCE
    found = mathml(token.content, display)
    if found:
        return found
    code = f"<code>{html.escape(token.content)}</code>"
    return f'<pre tabindex="0">{code}</pre>' if token.type == "formula_block" else code


def _render(_self: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    token = tokens[at]
    return f"{formula(token)}\n" if token.type == "formula_block" else formula(token)


def _inline_rule(state: StateInline, silent: bool) -> bool:
    found = _INLINE.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "$" else None
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.markup = _FENCE if found["block"] else "$"
        token.content = (found["block"] or found["line"]).strip()
    state.pos = found.end()
    return True


def _block_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start) or _line(state, start) != _FENCE:
        return False
    last = next((n for n in range(start + 1, end) if _line(state, n) == _FENCE), None)
    if last is None:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.block, token.markup, token.map = True, _FENCE, [start, last + 1]
        token.content = "\n".join(_line(state, n) for n in range(start + 1, last))
        state.line = last + 1
    return True


def _line(state: StateBlock, n: int) -> str:
    return state.src[state.bMarks[n] + state.tShift[n] : state.eMarks[n]].strip()
