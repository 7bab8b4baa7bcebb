"""Claims about arrays from their text to the verdict."""

import pytest

import qkv


def verdict(given, then, let=""):
    lets = f"let {let}\n" if let else ""
    return qkv.check(f"```claim x\ngiven {given}\n{lets}then {then}\n```")[0]


def test_a_refutation_shows_an_instance_and_no_equality():
    found = verdict("z in R^n", "softmax(2*z) = softmax(z)")
    assert found.verdict == "refuted" and "z = [" in found.counterexample
    assert not any("=" in step.latex for step in found.derivation)


def test_a_proof_lists_the_facts_that_it_uses():
    found = verdict("z in R^n", "lse(z) <= max(z) + log(n)")
    assert found.verdict == "proved"
    assert any("lse(z) <= max(z) + log(n)" in step.text for step in found.derivation)


@pytest.mark.parametrize(
    ("given", "then", "message"),
    [
        ("z in R^n", "softmax(y) = softmax(z)", "neither declared"),
        ("z in R^n, z in R^d", "z = z", "second declaration"),
        ("z in R^n", "exists y with y = y", "neither declared"),
        ("z in R^n, x real", "exists x with x*max(z) > 0", "not said to exist"),
        ("z in R^n", "max(z, z, z) > 0", "arguments"),
        ("w ~ N(1, I)", "E[w'*w] = d", "such as w ~ N"),
        ("z in R^n, t > 2, t < 1", "max(z) > t", "no number"),
    ],
)
def test_what_is_malformed_says_why(given, then, message):
    found = verdict(given, then)
    assert found.verdict == "malformed" and message in found.because


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("z in R^n", "max(z) -> 0 as n -> oo"),
        ("A in R^{n x n}", "rank(softmax(A)) <= n"),
        ("k_1..k_n free, q free, x real", "alpha_a < 1 + max(x, 0)"),
    ],
)
def test_what_cannot_be_decided_is_no_proof(given, then):
    assert verdict(given, then).verdict in ("proved", "holds", "undecided", "malformed")


def test_conditions_that_cannot_be_met_prove_nothing():
    assert verdict("z in R^n, max(z) < 0, max(z) > 1", "max(z) = 7").verdict == "undecided"


def test_functions_are_put_in_where_they_are_used():
    given = "P permutation matrix, X in R^{n x d}, W in R^{d x d}"
    let = "H(X) = X + softmax(X*W*X')*X"
    assert verdict(given, "2*H(P*X) = 2*P*H(X)", let).verdict == "proved"
    assert verdict(given, "H(P*X) = H(X)", let).verdict == "refuted"


@pytest.mark.parametrize(
    ("latex", "kind"),
    [
        (r"$\langle x, y \rangle = x^\top y$", "proved"),
        (r"$\|x + y\| \le \|x\| + \|y\|$", "proved"),
        (r"$|x^\top y| \le \|x\| \|y\|$", "proved"),
        (r"$\operatorname{softmax}(x) \odot y = y \odot \operatorname{softmax}(x)$", "proved"),
        (r"$x \otimes y = x y^\top$", "proved"),
        (r"$x \otimes y = y \otimes x$", "refuted"),
        (r"$\max(x) \geq \min(x)$", "proved"),
    ],
)
def test_latex_of_arrays(latex, kind):
    assert verdict(r"$x, y \in \mathbb{R}^n$", latex).verdict == kind


def test_cases_in_latex():
    then = r"$\begin{cases} x & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases} = \frac{x + |x|}{2}$"
    assert verdict("x real", then).verdict == "proved"


@pytest.mark.parametrize(
    ("given", "then", "let"),
    [
        ("A in R^{n x n}, n >= 2", "C_{ii} = 1", "C = causal_softmax(A)"),
        ("z in R^n", "z_i = z_a", ""),
        ("X in R^{n x d}", "sum_i X_{ai} = 0", ""),
        ("w ~ N(0, I), x in R^d, w'*x > 0", "E[w'*x] > 1", ""),
        ("H in R^{n x m}, G in R^{n x p}, F in R^{n x d}", "rank(concat(concat(H, G), F)) <= m", ""),
    ],
)
def test_false_statements_are_not_proved(given, then, let):
    assert verdict(given, then, let).verdict in ("refuted", "undecided")


def test_a_mean_under_a_condition_on_the_random_vector_is_not_decided():
    assert verdict("w ~ N(0, I), x in R^d, w'*x > 0", "E[w'*x] = 0").verdict == "undecided"
    assert verdict("w ~ N(0, I), x in R^d", "E[w'*x] = 0").verdict == "proved"


@pytest.mark.parametrize(
    ("then", "wanted"),
    [
        ("entropy(r) > 0", "refuted"),  # a vertex
        ("entropy(softmax(z)) > 0", "proved"),
        ("KL(r, s) >= 0", "proved"),
        ("norm(r - s)^2 < 2", "refuted"),  # two vertices
    ],
)
def test_entropy_at_a_vertex_is_zero(then, wanted):
    assert verdict("z in R^n, r, s in simplex^n, n >= 2", then).verdict == wanted


def test_instances_hold_only_what_is_used():
    found = verdict("z in R^n, M in R^{n x n}", "max(z) > 0")
    assert found.verdict == "refuted" and "M" not in found.counterexample


def test_many_entries_are_tried_whatever_else_is_declared():
    assert verdict("z in R^n, M in R^{n x n}", "exp(norm(z)) + max(abs(z)) + 1 >= lse(z)").verdict == "refuted"


@pytest.mark.parametrize(
    "then", ["r_a*r_b > n when n = 1", "r_a < 0 when n = 2 and r_b > r_c", "r_a + r_b < 0 when n < 2"]
)
def test_more_different_entries_than_there_are_prove_nothing(then):
    """Conditions that nothing meets would prove every statement."""
    found = verdict("r in simplex^n", then)
    assert found.verdict == "undecided" and "different entries are named" in found.because


def test_all_entries_may_be_named():
    assert verdict("r in simplex^n", "r_a + r_b = 1 when n = 2").verdict == "proved"
