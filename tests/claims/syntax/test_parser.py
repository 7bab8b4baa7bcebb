"""The language: ASCII and LaTeX say the same, mistakes are located, and nothing is run as code."""

import re

import pytest

import qkv
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed
from qkv.claims.syntax.parser import Source, parse


def one(statement, given="k_1..k_n orthonormal, n >= 3, t > 0", let="q = t*(k_a + k_b)"):
    text = f"```claim x\ngiven {given}\nlet {let}\nthen {statement}\n```"
    return qkv.check(text)[0]


def source(text):
    """A text with its positions in a document of one line."""
    return Source(text, [(1, column + 1) for column in range(len(text))])


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
        "tan(t) = t",
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


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("1/2t = 1", ("(1/2)*t", "1/(2*t)")),
        ("1/2 t = 1", ("(1/2)*t", "1/(2*t)")),
        ("-1/2t^2 = 1", ("(-1/2)*t^2", "-1/(2*t^2)")),
        ("t/2 (t + 1) = 1", ("(t/2)*(t + 1)", "t/(2*(t + 1))")),
        ("(t + 1)/(t + 2)(t + 3) = 1", ("((t + 1)/(t + 2))*(t + 3)", "(t + 1)/((t + 2)*(t + 3))")),
        ("exp(t)/2exp(t) = 1", ("(exp(t)/2)*exp(t)", "exp(t)/(2*exp(t))")),
        ("1/k_a'q = 1", ("(1/k_a')*q", "1/(k_a'*q)")),
        ("1/2k_a'q = 1", ("(1/2)*k_a'q", "1/(2*k_a'q)")),
        ("1/2 sum_i alpha_i = 1", ("(1/2)*sum_i alpha_i", "1/(2*sum_i alpha_i)")),
    ],
)
def test_a_product_without_a_sign_after_a_quotient_is_asked_about(text, both):
    with pytest.raises(Malformed) as caught:
        parse(source(text), "then")
    assert all(reading in str(caught.value) for reading in both)


@pytest.mark.parametrize(
    "text", ["1/(2t)", "(1/2)t", "1/2*t", "(1/2)(t + 1)(t + 2)", "t(t + 1)", "2t/3", "t t/2", "2k_a'q"]
)
def test_products_without_a_sign_are_read_where_they_have_one_meaning(text):
    assert isinstance(parse(source(f"{text} = 1"), "then"), L.Statement)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ln(t) = 1", "log(x)"),
        ("largest(t, 1) = 1", "exp(, log("),
        ("t + tan (t) = 1", "tan*("),
        ("P(t > 0) = 1", "P["),
    ],
)
def test_a_function_that_is_not_there_is_named_with_what_to_write(text, hint):
    with pytest.raises(Malformed) as caught:
        parse(source(text), "then")
    assert hint in str(caught.value) and "real" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["beta(t + 1) = 1", "c within 0.05 of (v_a + v_b)/2 with probability >= (1/2)", "norm (t) = 1"]
)
def test_greek_letters_and_words_may_stand_before_a_bracket(text):
    assert isinstance(parse(source(text), "then"), L.Statement)


def test_digits_right_after_a_letter_are_asked_about():
    with pytest.raises(Malformed, match="_2 for an index"):
        parse(source("t2 = 1"), "then")


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("e^2t = 1", ("e^(2*t)", "e^(2)*t")),
        ("3e^-2t > 0", ("e^(-2*t)", "e^(-2)*t")),
        ("e^2(t + 1) = 1", ("e^(2*(t + 1))", "e^(2)*(t + 1)")),
    ],
)
def test_a_product_right_after_a_power_of_e_is_asked_about(text, both):
    with pytest.raises(Malformed) as caught:
        parse(source(text), "then")
    assert all(reading in str(caught.value) for reading in both)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("e^-t = 1", "e^(-t) = 1"),
        ("e^sin(t) = 1", "e^(sin(t)) = 1"),
        ("2^max(t, 1) = 1", "2^(max(t, 1)) = 1"),
        ("t^2s = 1", "t^2*s = 1"),
        ("e^2 t = 1", "e^2*t = 1"),
    ],
)
def test_exponents_without_brackets(short, long):
    def plain(node):
        return re.sub(r"at=\([0-9, ]*\)", "", repr(node))

    assert plain(parse(source(short), "then").core) == plain(parse(source(long), "then").core)
