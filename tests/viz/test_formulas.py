"""Formulas in sentences: what is notation becomes LaTeX, and what is language stays text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.claims.catalogue import documents
from qkv.viz.formulas import pieces
from qkv.viz.mathml import mathml


def formulas(text):
    return [piece.latex for piece in pieces(text) if piece.latex]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("alpha_a = exp(t)/(2*exp(t) + n - 2)", [r"\alpha_{a} = \frac{e^{t}}{2 e^{t} + n - 2}"]),
        ("c -> (v_a + v_b)/2 as t -> oo", [r"c \to \frac{v_{a} + v_{b}}{2}", r"t \to \infty"]),
        ("true exactly when t > log(49*n/2 - 49)", [r"t > \log\left(\frac{49 n}{2} - 49\right)"]),
        ("left minus right is -1/2 + e/(n - 2)", [r"-\frac{1}{2} + \frac{e}{n - 2}"]),
        ("k_a'q = 0 for i != a, b", [r"k_{a}^\top q = 0", r"i \ne a", "b"]),
        ("(a + b)*(c + d)/(e + n)", [r"\frac{\left(a + b\right) \left(c + d\right)}{e + n}"]),
        ("Var[alpha_{1,a}] <= 1/4", [r"\operatorname{Var}\left[\alpha_{1,a}\right] \le \frac{1}{4}"]),
        ("sum_{i != a} alpha_i = 1 - alpha_a", [r"\sum_{i  \ne  a} \alpha_{i} = 1 - \alpha_{a}"]),
        ("1/(n + t)*(sum of the other v_i)", [r"\frac{1}{n + t} \sum_{\text{other } i} v_i"]),
        ("t^-2 and 2^(n - 1)", ["t^{-2}", "2^{n - 1}"]),
        (r"$\alpha_a \approx \frac{1}{2}$ as t -> oo", [r"\alpha_a \approx \frac{1}{2}", r"t \to \infty"]),
        (
            "α_a = e^{1/2}/(n − 2 + 2e^{1/2}), which is",
            [r"\alpha_{a} = \frac{e^{\frac{1}{2}}}{n - 2 + 2 e^{\frac{1}{2}}}"],
        ),
        ("q = λ(μ_a + μ_b) as λ → ∞", [r"q = \lambda \left(\mu_{a} + \mu_{b}\right)", r"\lambda \to \infty"]),
        ("c ≈ ½(v_a+v_b) for t ≫ 0", [r"c \approx \frac{1}{2} \left(v_{a} + v_{b}\right)", r"t \gg 0"]),
        ("k_aᵀq ≤ 1", [r"k_{a}^\top q \le 1"]),
        ("(as eps -> 0, t -> oo), false", [r"\varepsilon \to 0", r"t \to \infty"]),
    ],
)
def test_notation_becomes_latex(text, latex):
    assert formulas(text) == latex


@pytest.mark.parametrize(
    "text",
    [
        "16 of 16 numerical instances agree, none disagrees",
        "a number beside a vector",
        "qkv's `harden` designs such queries",
        "false for the numbers shown, as exact arithmetic confirms",
        "Expected one of: exp( log( sqrt(, a number, -, '.",
        "well-known - or not",
    ],
)
def test_language_stays_text(text):
    assert formulas(text) == []


@given(st.text(alphabet="abtkn_123+-*/^=<>()[]{}',.$ expsumoo\\αλ∞→≈−½ᵀ", max_size=60))
@settings(max_examples=3 * settings.default.max_examples)
def test_the_pieces_together_are_the_sentence(text):
    assert "".join(piece.text for piece in pieces(text)) == text
    for piece in pieces(text):
        if piece.latex and "$" not in piece.text:
            assert mathml(piece.latex)


def test_every_statement_of_the_catalogue_has_a_formula():
    lines = [line[4:].strip() for _, text in documents() for line in text.splitlines() if line.startswith("then")]
    without = [line for line in lines if not formulas(line)]
    assert len(lines) > 300 and len(without) < 10, without


def test_the_bars_of_an_absolute_value_belong_to_its_formula():
    found = pieces("samples when |k_a| varies, and |x|")
    assert [piece.text for piece in found if piece.latex] == ["|k_a|", "|x|"]
    assert "".join(piece.text for piece in found) == "samples when |k_a| varies, and |x|"
    assert mathml(found[1].latex).count('<mo stretchy="false">|</mo>') == 2
