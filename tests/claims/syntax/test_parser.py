"""The language: ASCII and LaTeX say the same, mistakes are located, and nothing is run as code."""

import pytest

import qkv
from qkv.claims.syntax.markdown import UnparsedClaim, read
from qkv.claims.syntax.nodes import Claim


def one(statement, given="k_1..k_n orthonormal, n >= 3, t > 0", let="q = t*(k_a + k_b)"):
    text = f"```claim x\ngiven {given}\nlet {let}\nthen {statement}\n```"
    return qkv.check(text)[0]


def statement(text):
    (claim,) = read(f"```claim x\nthen {text}\n```")
    assert isinstance(claim, Claim), claim
    return repr(claim.statement.core)


def without_places(text):
    import re

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


@pytest.mark.parametrize(
    ("bad", "column", "expected"),
    [
        ("alpha_a = = 1/2", 16, "a number, name or bracket"),
        ("alpha_a -> 1/2 as t", 25, "->"),
        ("alpha_a >", 15, "a number, name or bracket"),
        (r"$\foo = 1$", 7, "a LaTeX command"),
        ("$alpha_a = 1", 6, "a second $"),
        ("foo = 1", 6, "given foo real"),
        ("alpha_a ~= 1/2", 6, "as t -> oo"),
        ("c = alpha_a", 6, "sides of one shape"),
        ("k_a*k_b = 1", 6, "x'*y or x*y'"),
        ("alpha_{3,a} = 1", 6, "a query with that index"),
        ("12345678901 = 1", 6, "at most 9 digits"),
    ],
)
def test_mistakes_are_located_and_say_what_was_expected(bad, column, expected):
    verdict = one(bad)
    assert verdict.verdict == "malformed"
    assert verdict.because.startswith(f"line 4, column {column}:"), verdict.because
    assert expected in verdict.because


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('true') = 1",
        "eval(1) = 1",
        "t.real = t",
        "t.__class__ = t",
        "lambda = 1",
        "exec(t) = 1",
        "open(t) = 1",
        "k_a[0] = 1",
        "getattr(t, n) = 1",
        "Symbol(t) = t",
        "sin(t) = t",
        "[t for t in t] = 1",
    ],
)
def test_names_calls_and_attributes_outside_the_grammar_are_malformed(code):
    assert one(code).verdict == "malformed"


def test_no_user_text_reaches_sympify_or_eval():
    """Only grammar.py sees text; sympy gets numbers, and symbols by name."""
    from pathlib import Path

    import qkv.claims.syntax.parser

    for path in Path(qkv.claims.syntax.parser.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("eval(", "exec(", "parse_expr", "lambdify", "__import__", "pickle"):
            assert word not in text.replace("p.eval(", "").replace("retrieval(", ""), f"{word} in {path.name}"


def test_a_broken_then_leaves_the_others_of_its_block_alone():
    verdicts = qkv.check(
        "```claim x\ngiven k_1..k_n free, q free\nthen sum_i alpha_i = = 1\nthen sum_i alpha_i = 1\n```"
    )
    assert [v.verdict for v in verdicts] == ["malformed", "proved"]


def test_a_block_that_is_never_closed_is_malformed():
    (broken,) = read("text\n```claim x\nthen 1 = 1\n")
    assert isinstance(broken, UnparsedClaim) and broken.why.at == (2, 1)


def test_a_document_without_claims_has_no_verdicts():
    assert len(qkv.check("# Nothing\n\n```python\nprint(1)\n```\n")) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("k_1..k_n orthonormal, t > 1, t < 0", "holds no number"),
        ("k_1..k_n orthonormal, k_1..k_n free, t > 0", "second declaration"),
        ("k_1..k_9 orthonormal, t > 0", "1 to 6"),
        ("k_1..v_n orthonormal, t > 0", "k_1..k_n"),
        ("k_1..k_n orthonormal of norm 2, t > 0", "orthogonal of norm"),
        ("C orthonormal basis, t > 0", "A (d x m) or B"),
    ],
)
def test_declarations_that_make_no_sense_are_refused(given, message):
    verdict = one("alpha_a = 1", given=given)
    assert verdict.verdict in ("malformed", "refuted") and message in verdict.because
