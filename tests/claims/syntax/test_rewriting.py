"""Rewriting of parsed clauses: functions, e, sums of sums, quantifiers over declared names."""

import pytest

import qkv
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import read


def statement(given, then, let=""):
    lets = f"let {let}\n" if let else ""
    (claim,) = read(f"```claim x\ngiven {given}\n{lets}then {then}\n```")
    return claim


def test_e_is_a_number_unless_it_is_declared():
    claim = statement("t real", "e^t = 1")
    assert any(isinstance(n, L.Call) and n.function == "exp" for n in L.nodes(claim.statement))
    claim = statement("t real, e real", "e^t = 1")
    assert not any(isinstance(n, L.Call) for n in L.nodes(claim.statement))


def test_a_sum_of_sums_becomes_a_product():
    claim = statement("k_1..k_n free, q free", "sum_i sum_j alpha_i*alpha_j = 1")
    left = claim.statement.core.sides[0]
    assert isinstance(left, L.Op) and isinstance(left.left, L.Sum | L.Op | L.Name)
    assert not any(
        isinstance(inner, L.Sum) and inner is not outer
        for outer in L.nodes(left)
        if isinstance(outer, L.Sum)
        for inner in L.nodes(outer.inner)
    )


@pytest.mark.parametrize(
    ("then", "kinds"),
    [
        ("sum_i sum_j alpha_i*alpha_j = 1", {"proved"}),
        ("sum_i sum_j alpha_i*alpha_j = n", {"refuted"}),
        ("sum_i sum_{j != i} alpha_i*alpha_j = 1", {"refuted"}),
        ("sum_i sum_{j != i} alpha_j = n - 1", {"proved"}),
        ("sum_i sum_{j != i} alpha_j = n", {"refuted"}),
        ("sum_i sum_{j != a} alpha_i*alpha_j = 1 - alpha_a", {"proved"}),
    ],
)
@pytest.mark.parametrize("keys", ["orthonormal", "free"])
def test_double_sums_are_decided(keys, then, kinds):
    given = f"k_1..k_n {keys}, n >= 3, t > 0" + (", q free" if keys == "free" else "")
    let = "let q = t*k_a\n" if keys == "orthonormal" else ""
    (found,) = qkv.check(f"```claim x\ngiven {given}\n{let}then {then}\n```")
    assert found.verdict in kinds, found.because


def test_a_function_may_not_be_defined_twice_nor_called_with_too_many_arguments():
    for let, then in (("H(X) = X, H(X) = 2*X", "H(X) = X"), ("H(X) = X", "H(X, X) = X")):
        (found,) = qkv.check(f"```claim x\ngiven X in R^{{n x d}}\nlet {let}\nthen {then}\n```")
        assert found.verdict == "malformed"


def test_for_all_of_declared_names_says_nothing_more():
    assert statement("x, y in R^n", "norm(x + y) <= norm(x) + norm(y) for all x, y").statement.quantifier is None
    assert statement("z in R^n", "z_i <= max(z) for all i").statement.quantifier.index == "i"


def _shown(expr):
    """An expression in short, with every product and sum in brackets."""
    if isinstance(expr, L.Op):
        return f"({_shown(expr.left)}{expr.sign}{_shown(expr.right)})"
    if isinstance(expr, L.Sum):
        return f"sum_{expr.index}[{_shown(expr.inner)}]"
    return str(expr.value) if isinstance(expr, L.Num) else str(expr)


@pytest.mark.parametrize(
    ("let", "call", "meant"),
    [
        ("f(z) = z_a*2", "f(y)", "(y_a*2)"),
        ("f(a) = z_a*2", "f(b)", "(z_b*2)"),
        ("f(x) = sum_i x*z_i", "f(z_i)", "sum_j[(z_i*z_j)]"),
        ("f(x) = sum_i x*z_i", "f(x)", "sum_i[(x*z_i)]"),
        ("g(x) = x*t, h(t) = g(t)", "h(x)", "(x*t)"),
        ("g(x) = x*t, h(x) = g(t)*x", "h(2)", "((t*t)*2)"),
        ("g(x, t) = x - t", "g(t, x)", "(t-x)"),
    ],
)
def test_functions_have_their_own_names(let, call, meant):
    claim = statement("z, y in R^n, x, t real", f"{call} = 0", let)
    assert _shown(claim.statement.core.sides[0]) == meant


@pytest.mark.parametrize(
    ("let", "then"),
    [
        ("f(z) = z_a", "f(2*z) = 0"),
        ("f(a) = z_a", "f(2*t) = 0"),
        ("f(i) = sum_i i*z_i", "f(2) = 0"),
        ("f(a) = a*z_a", "f(2) = 0"),
        ("f(x) = x*z_i", "sum_i f(2) = 0"),
        ("f(x) = x*z_i", "f(2) = 0 for all i"),
        ("f(w) = diff(x^2*w, x)", "f(x) = 0"),
        ("f(x) = diff(x*t, x)", "f(t) = 0"),
        ("f(x) = t", "f(2) = t"),
    ],
)
def test_functions_that_can_be_read_in_two_ways_are_malformed(let, then):
    (found,) = qkv.check(f"```claim x\ngiven z, y in R^n, x, t real\nlet {let}\nthen {then}\n```")
    assert found.verdict == "malformed"


def test_a_function_in_a_given_is_malformed():
    (found,) = qkv.check("```claim x\ngiven x real, f(x) > 1\nlet f(x) = 2*x\nthen x > 0\n```")
    assert found.verdict == "malformed"


def test_two_letters_are_the_indices_of_an_entry():
    claim = statement("A in R^{n x n}", "A_{ab} = A_{a,b}")
    assert [side.subs for side in claim.statement.core.sides] == [("a", "b"), ("a", "b")]
    assert statement("k_{ab}, k_{ba} orthonormal", "k_{ab}'k_{ba} = 0").statement.core.sides[0].right.subs == ("ba",)


def test_a_function_of_a_matrix_is_no_number():
    claim = statement("A, B in R^{n x n}, z in R^n", "sum_i sum_j A*exp(B)*z_i*z_j = 0")
    assert isinstance(claim.statement.core.sides[0], L.Sum)
