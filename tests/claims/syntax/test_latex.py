"""LaTeX and Unicode to ASCII: the same statements, and every character keeps its place in the document."""

import re

import pytest

import qkv
from qkv.claims.syntax.latex import MACROS, UNICODE, ascii_of
from qkv.claims.syntax.markdown import read
from qkv.claims.syntax.nodes import Claim, Malformed
from qkv.claims.syntax.parser import Source


def statement(text):
    (claim,) = read(f"```claim x\nthen {text}\n```")
    assert isinstance(claim, Claim), claim
    return repr(claim.statement.core)


def without_places(text):
    return re.sub(r"at=\(\d+, \d+\)", "", text)


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"$\alpha_a \approx \frac{1}{2}$ as $t \to \infty$", "alpha_a ~= ((1)/(2)) as t -> oo"),
        (r"$k_a^\top q = \log t$", "k_a' q = log(t)"),
        (r"$k_a^T q = \log(t)$", "k_a' q = log(t)"),
        (r"$\mu_a^{\top} \mu_b = 0$", "mu_a' mu_b = 0"),
        (r"$\exp(\beta^2) \geq 1$", "exp(beta^(2)) >= 1"),
        (r"$\sum_{i=1}^n \alpha_i = 1$", "sum_{i=1}^n alpha_i = 1"),
        (r"$\sum_{i \neq a} \alpha_i < 1$", "sum_{i != a} alpha_i < 1"),
        (r"$\|u_b\|_2^2 = \beta^2$", "norm(u_b)^(2) = beta^(2)"),
        (r"$\mathrm{Var}[k_a^\top q] = C^2(2\varepsilon + \frac{1}{2})$", "Var[k_a' q] = C^(2) (2 eps + ((1)/(2)))"),
        (r"$\alpha_{21} = 1$", "alpha_{2,1} = 1"),
        ("α_a → ½ as t → ∞", "alpha_a -> (1/2) as t -> oo"),
        ("k_aᵀq = t²", "k_a'q = t^2"),
    ],
)
def test_latex_and_ascii_are_one_language(latex, plain):
    assert without_places(statement(latex)) == without_places(statement(plain))


def verdict(given, let, then):
    return qkv.check(f"```claim x\ngiven {given}\nthen {then}\n```")[0].verdict


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        (r"$\log t^2 = 2 \log(t)$", "malformed"),
        (r"$\log 2t = \log(2) + \log(t)$", "malformed"),
        (r"$\log 10 > 2$", "malformed"),
        (r"$\log t \cdot s > 0$", "malformed"),
        (r"$\log \beta s > 0$", "malformed"),
        (r"$\log(t^2) = 2 \log t$", "proved"),
        (r"$\log{t} + 1 > 1$", "proved"),
        (r"$\log t \ge 0$", "proved"),
        (r"$(\log t)/t > 0$", "proved"),
    ],
)
def test_a_logarithm_without_brackets_takes_one_symbol_or_is_malformed(then, kind):
    assert verdict("t > 1, s > 1, beta > 1", "", then) == kind


def source(text):
    return Source(text, [(1, j + 1) for j in range(len(text))])


def squeezed(text):
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("sign", UNICODE)
def test_every_unicode_sign_is_written_out_with_its_place(sign):
    found = ascii_of(source(f"a{sign}b"))
    assert found.text.isascii() and len(found.text) == len(found.at)
    assert found.text.replace(" ", "") == f"a{UNICODE[sign]}b".replace(" ", "")
    assert set(found.at) <= {(1, 1), (1, 2), (1, 3)} and list(found.at) == sorted(found.at)


@pytest.mark.parametrize(
    "name", [m for m in MACROS if m not in ("exp", "log", "ln", "sin", "cos", "tanh", "mid", "lvert", "rvert")]
)
def test_every_macro_is_written_out_with_its_place(name):
    found = ascii_of(source(f"$\\{name} x$"))
    assert squeezed(found.text) == squeezed(MACROS[name] + "x")
    assert len(found.text) == len(found.at) and list(found.at) == sorted(found.at)


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"$\frac{a}{b}$", "((a)/(b))"),
        (r"$\frac{\frac12}{b + 1}$", "((((1)/(2)))/(b+1))"),
        (r"$\sqrt{a + b}$", "sqrt(a+b)"),
        (r"$\|u + v\|$", "norm(u+v)"),
        (r"$\lVert u \rVert$", "norm(u)"),
        (r"$\mathbf{k}_a$", "k_a"),
        (r"$\alpha_{2,1}$", "alpha_{2,1}"),
        (r"$x^{2}y^T$", "x^(2)y'"),
        (r"$\sum_{i=1}^{n} k_i$", "sum_{i=1}^nk_i"),
        (r"$\sum_{i \notin \{a, b\}} k_i$", "sum_{inotina,b}k_i"),
        (r"x$_a$ and $y$", "x_aandy"),
    ],
)
def test_structures(latex, plain):
    assert squeezed(ascii_of(source(latex)).text) == plain


@pytest.mark.parametrize(
    ("latex", "column"),
    [(r"$\foo$", 2), ("a $b", 3), (r"$\frac{a}$", 2), (r"$\sqrt{a$", 7), (r"$\|a$", 3), (r"$\sum k$", 2),
     (r"$x_$", 3), (r"$\sum_{i=1}^3 k$", 13)],
)  # fmt: skip
def test_what_cannot_be_read_is_located(latex, column):
    with pytest.raises(Malformed) as refused:
        ascii_of(source(latex))
    assert refused.value.at == (1, column)
