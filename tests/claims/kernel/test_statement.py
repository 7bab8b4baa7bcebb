"""The theorem of a claim, as text: it is the claim itself, over vectors and n items."""

import pytest

from qkv.claims.kernel.export import FOR_ALL_LAWS, FOR_ALL_NOISE, OVER_NUMBERS, OVER_VECTORS, exported
from qkv.claims.kernel.statement import stated
from qkv.claims.kernel.terms import NotExported
from qkv.claims.semantics.declarations import build_context
from qkv.claims.syntax.markdown import read

AVERAGE = "given k_1..k_n orthonormal, n >= 3, t real\nlet q = t*(k_a + k_b)\n"
NOISY = "given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3\n"
TOKENS = "given u_a, u_b, u_c, u_d orthogonal of norm beta\nlet x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b\n"


def claim_of(body):
    (found,) = read(f"```claim x\n{body}\n```")
    return found


def text_of(body):
    return stated(build_context(claim_of(body))).text("claim")


def test_a_limit_over_vectors_and_n_items():
    assert text_of(AVERAGE + "then c -> (v_a + v_b)/2 as t -> oo") == (
        "Theorem claim :\n"
        "  forall (E : InnerSpace) (n : nat) (item_a item_b : nat) (vec_k : nat -> E) (vec_v : nat -> E),\n"
        "  (3 <= n)%nat ->\n"
        "  (item_a < n)%nat ->\n"
        "  (item_b < n)%nat ->\n"
        "  item_a <> item_b ->\n"
        "  orthonormal n vec_k ->\n"
        "  let let_q (num_t : R) := (num_t *v ((vec_k item_a) +v (vec_k item_b))) in\n"
        "  vtends at_infinity (fun (num_t : R) => (attend n vec_k vec_v (let_q num_t)))"
        " (fun (num_t : R) => ((/ 2) *v ((vec_v item_a) +v (vec_v item_b))))."
    )


def test_an_index_leaves_items_out():
    text = text_of(AVERAGE + "then k_i'q = 0 for i != a, b")
    assert "forall item_i : nat, (item_i < n)%nat -> item_i <> item_a -> item_i <> item_b ->" in text


def test_vectors_move_with_the_number_that_bounds_their_scores():
    given = "given k_1..k_n free, q free, n >= 2, k_j'q - k_i'q >= m for i != j\n"
    text = text_of(given + "then alpha_j -> 1 as m -> oo")
    assert "(vec_q : R -> E) (vec_k : R -> nat -> E)" in text and "(forall num_m : R, (forall at_other" in text
    assert "(vec_q : E)" in text_of(given + "then alpha_j >= 1/(1 + (n - 1)*exp(-m))")


def test_orthogonal_vectors_move_with_their_norm_and_matrices_are_outer_products():
    text = text_of(TOKENS.replace("\nlet", "\nlet V = u_b*u_b'/beta^2,") + "then c_2 -> u_a as beta -> oo")
    assert "(forall num_beta : R, 0 < num_beta -> orthogonal_of_norm 4%nat num_beta (vec_u num_beta))" in text
    assert "outer" in text and "attend 3%nat" in text


def test_noise_is_arbitrary_and_statistics_are_those_of_every_law():
    assert "(noise : nat -> E)" in text_of(NOISY + "let q = t*mu_b\nthen c -> v_b as eps -> 0, t -> oo")
    text = text_of(NOISY + "then Var[mu_a'k_a] = eps + 1/2")
    assert "variance law" in text and "moments law (fun outcome => keys outcome item_a)" in text


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (AVERAGE + "then alpha_a -> 1/2 as t -> oo", OVER_VECTORS),
        (NOISY + "then k_b -> mu_b as eps -> 0", FOR_ALL_NOISE),
        (NOISY + "then Var[mu_a'k_a] = eps + 1/2", FOR_ALL_LAWS),
        ("given t > 0\nthen 2*t > t", OVER_NUMBERS),
    ],
)
def test_the_form_says_what_the_theorem_speaks_of(body, form):
    assert exported(claim_of(body)).form == form


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (TOKENS + "then c is permutation equivariant", "permutations"),
        ("given q free, x real\nthen norm(R(x)*q) = norm(q)", "the function R"),
        (NOISY + "let q = t*mu_a\nthen Var[alpha_a] -> 1/4 as eps -> 0, t -> oo", "statistics of weights"),
        ("given gamma ~ N(0, 1)\nthen E[gamma^4] = 3", "statistics of random numbers"),
        ("given gamma ~ N(0, 1)\n" + NOISY + "then Var[gamma + mu_b'k_b] = eps", "statistics of random numbers"),
        (NOISY + "then P[mu_a'k_a > 0] -> Phi(sqrt(2)) as eps -> 0", "probabilities"),
        ("given k_1..k_n orthonormal\nlet q = k_a\nthen alpha_a -> 0 as n -> oo", "number of items"),
        ("given k_1..k_n orthonormal, n >= 3, t < 5\nlet q = t*k_a\nthen alpha_a -> 1 as t -> oo", "this place"),
    ],
)
def test_what_has_no_form_says_so(body, reason):
    with pytest.raises(NotExported, match=reason):
        exported(claim_of(body))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("given k_1..k_n orthonormal, n >= 3, t > 0, b masked\nlet q = t*k_a\nthen alpha_b = 0", "masks"),
        ("given z in R^n\nthen sum_i z_i = ones'*z", "arrays"),
    ],
)
def test_masks_and_arrays_have_no_theorem(body, what):
    with pytest.raises(NotExported, match=what):
        exported(claim_of(body))
