"""Formulas in Markdown: what is one, what is not, and that no text of a document breaks out of it."""

import pytest
from markdown_it import MarkdownIt

from qkv.web.document_formulas import with_formulas


def shown(text):
    return with_formulas(MarkdownIt("commonmark", {"html": False}).enable("table")).render(text)


@pytest.mark.parametrize("text", ["$x$", "a $x_1$ b", "- $a \\cdot b$", "*so $x*y$ is*", "| a |\n|---|\n| $x$ |"])
def test_one_formula_in_a_line(text):
    assert shown(text).count("<math>") == 1 and "$" not in shown(text)


@pytest.mark.parametrize(
    "text", ["`$x$`", "```\n$x$\n```", "$5 and $6", "\\$x$", "$ x $", "$$", "$", "$$\nx", "    $$\n    x\n    $$"]
)
def test_no_formula(text):
    assert "<math" not in shown(text) and "$" in shown(text)


@pytest.mark.parametrize("text", ["$$\n- x\n= 1\n$$", "a\n$$\nx\n$$\nb", "- a\n\n  $$\n  x\n  $$", "$$x$$"])
def test_a_formula_of_its_own(text):
    assert shown(text).count('<math display="block">') == 1 and "$" not in shown(text)


def test_what_cannot_be_converted_is_code_and_nothing_is_html():
    assert shown("$\\what<b>$") == "<p><code>\\what&lt;b&gt;</code></p>\n"
    assert "<pre" in shown("$$\n\\what\n$$") and "<b>" not in shown("$$\n<b>\n$$") + shown("$\\text{<b>}$")
    assert "<b>" not in shown("$\\mathrm{<b>}$") + shown("$\\operatorname{<b>}$")
