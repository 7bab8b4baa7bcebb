"""Formulas as MathML, converted when the site is built: no script, no font and no other host is needed to read them."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(tex: str, block: bool) -> str:
    """One formula as MathML; what the converter does not know stops the build."""
    try:
        return str(tex2mathml(tex, as_block=block))
    except MathError as why:
        raise ExtensionError(f"the formula {tex!r} is not understood: {why}") from why


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{mathml(node.astext(), block=False)}</span>')
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode
