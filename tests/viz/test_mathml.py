"""LaTeX as MathML: well-formed, escaped, and empty where a command is not known."""

import xml.etree.ElementTree as ElementTree

import pytest

from qkv.claims import check
from qkv.viz.mathml import mathml
from qkv.web.claim_examples import EXAMPLES


@pytest.mark.parametrize(
    ("latex", "inside"),
    [
        (r"\frac{1}{2}", "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>"),
        (r"\frac12 x^10", "<mfrac><mn>1</mn><mn>2</mn></mfrac><msup><mi>x</mi><mn>1</mn></msup><mn>0</mn>"),
        (r"\frac1{12}\text{ of}", "<mfrac><mn>1</mn><mrow><mn>12</mn></mrow></mfrac><mtext>&#160;of</mtext>"),
        (r"\mathbf k_a \gg 0", '<msub><mrow style="font-weight: bold"><mi>k</mi></mrow><mi>a</mi></msub><mo>≫</mo>'),
        (r"\alpha_{a}^\top", "<msubsup><mi>α</mi><mrow><mi>a</mi></mrow><mo>⊤</mo></msubsup>"),
        (r"a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (r"\sum_{i} v_i", "<munder><mo>∑</mo><mrow><mi>i</mi></mrow></munder>"),
        (r"\text{two  words}", "<mtext>two&#160;&#160;words</mtext>"),
        (r"\left(x\right)", '<mrow><mo stretchy="true">(</mo><mi>x</mi><mo stretchy="true">)</mo></mrow>'),
    ],
)
def test_commands(latex, inside):
    assert inside in mathml(latex)
    ElementTree.fromstring(mathml(latex).replace("&#160;", " "))


@pytest.mark.parametrize("latex", [r"\wp", r"\frac{1", r"}", r"\left(x", r"\mathbb{Q}", r"\text{a{b}}", "^"])
def test_what_is_not_known_gives_nothing(latex):
    assert mathml(latex) == ""


@pytest.mark.slow
def test_every_step_of_the_examples_is_converted():
    steps = [step for example in EXAMPLES for verdict in check(example.text) for step in verdict.derivation]
    without = [step.latex for step in steps if not mathml(step.latex)]
    assert len(steps) > 40 and without == []
    for step in steps:
        ElementTree.fromstring(mathml(step.latex).replace("&#160;", " "))


def test_infinity_is_no_operator_and_a_sign_after_a_bracket_is_a_prefix():
    assert mathml(r"t \to \infty") == "<math><mrow><mi>t</mi><mo>→</mo><mi>∞</mi></mrow></math>"
    for bracket in (r"t\left(-x\right)", "t(-x)", "-x"):
        assert '<mo form="prefix">−</mo><mi>x</mi>' in mathml(bracket)
    assert "<mi>t</mi><mo>−</mo><mi>x</mi>" in mathml("t-x")
