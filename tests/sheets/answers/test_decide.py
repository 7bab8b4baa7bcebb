"""Constructions in the language of claims, put to the goals of the shipped problems."""

import math

import numpy as np
import pytest
from marks import spread

from qkv.sheets.answers import Construction, Outcome, decide_answer
from qkv.sheets.problems import load_problem

P21, P22 = load_problem("attention-2021"), load_problem("attention-2022")


def decided(part, values, problem=P21, place=0, **more):
    question = problem.part(part).questions[place]
    return decide_answer(question, Construction(tuple(values.items()), **more), problem=problem)


@pytest.mark.parametrize(
    ("part", "values", "verdict"),
    [
        ("b", {"q": "lambda*(k_a + k_b)"}, "limit"),
        ("b", {"q": "c*(K_a + K_b)"}, "limit"),
        ("b", {"q": "log(t)*(k_a + k_b)"}, "limit"),
        ("b", {"q": "(k_a + k_b)/tau"}, "limit"),
        ("b", {"q": "oo*(k_a + k_b)"}, "limit"),
        ("b", {"q": "50*(k_a + k_b)"}, "limit"),
        ("b", {"q": "k_a + k_b"}, "misses"),
        ("b", {"q": "2*k_a/norm(k_a) + 2*k_b/norm(k_b)"}, "misses"),
        ("b", {"q": "t*k_a"}, "misses"),
        ("b", {"q": "t*k_a + s*k_b"}, "not_read"),
        ("b", {"q": "n*(k_a + k_b)"}, "not_read"),
        ("b", {"q": "t*(k_a +"}, "not_read"),
        ("c.i", {"q": "t*(u_a + u_b)"}, "limit"),
        ("c.i", {"q": "t*(k_a + k_b)"}, "limit"),
        ("c.i", {"q": "k_a/mu_a + k_b/mu_b"}, "misses"),
        ("d.i", {"q_1": "s*mu_b", "q_2": "t*mu_a"}, "limit"),
        ("d.i", {"q_1": "log(s)*mu_a", "q_2": "log(t)*mu_b"}, "limit"),
        ("d.i", {"q_1": "mu_a", "q_2": "mu_b"}, "misses"),
        ("d.i", {"q_1": "t*mu_a", "q_2": "t*mu_a"}, "misses"),
    ],
)
def test_queries(part, values, verdict):
    assert decided(part, values).answer.verdict == verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [("A*A'", "meets"), ("sum_{i=1}^m a_i*a_i'", "meets"), ("A'", "misses"), ("B*B'", "misses"), ("U*U'", "not_read")],
)
def test_projections(value, verdict):
    assert decided("b.i", {"M": value}, P22).answer.verdict == verdict


def test_wiring_of_tokens():
    value = "(u_b*u_b' - u_c*u_c')/beta^2"
    assert decided("e.ii", {"V": value}).answer.verdict == "meets"
    good = {"V": value, "K": "I", "Q": "(u_d*u_a' + u_c*u_d')/beta^2"}
    assert decided("e.ii", good, place=1).answer.verdict == "limit"
    bad = decided("e.ii", {**good, "Q": "(u_d*u_a' - u_c*u_d')/beta^2"}, place=1).answer
    assert bad.verdict == "misses" and "½u_b" in bad.because
    assert decided("e.ii", {"V": "u_b*u_b' - u_c*u_c'"}).answer.verdict == "misses"


def test_the_number_that_is_shown_is_the_weight_that_a_softmax_gives():
    answer = decided("b", {"q": "(k_a + k_b)/2"}, line=4, written="q = (k_a+k_b)/2").answer
    scores = np.array([0.5, 0.5] + [0.0] * 8)
    weight = np.exp(scores)[0] / np.exp(scores).sum()
    assert f"{weight:.3f} at n = 10" in answer.because
    assert "e^{1/2}/(n − 2 + 2e^{1/2})" in answer.because and "multiply by t ≫ 0" in answer.because
    assert (answer.line, answer.given) == (4, "q = (k_a+k_b)/2")
    assert "let q = (k_a + k_b)/2" in answer.claim


def test_what_is_said_uses_the_authors_letters():
    answer = decided("c.i", {"q": "C*(u_a + u_b)"}).answer
    assert "q = C(u_a + u_b)" in answer.because and "C → ∞" in answer.because


def test_a_weight_of_a_large_number_is_near_the_goal_only_if_it_is():
    for factor, verdict in ((2, "misses"), (3, "misses"), (4, "limit"), (7, "limit")):
        weight = math.exp(factor) / (2 * math.exp(factor) + 8)
        assert (abs(weight - 0.5) < 0.05) == (verdict == "limit")
        assert decided("b", {"q": f"{factor}*(k_a + k_b)"}).answer.verdict == verdict


def samples(part, queries, *outcomes, line=7):
    question = P21.part(part).questions[0]
    context = {}
    if queries:
        context[question.uses] = decided(question.uses, queries, line=line)
    return decide_answer(question, None, context, P21, [Outcome(*o) for o in outcomes]).answer


HALF = "(v_a + v_b)/2"
ONE, TWO = {"q": "lambda*(mu_a + mu_b)"}, {"q_1": "t*mu_a", "q_2": "t*mu_b"}


@pytest.mark.parametrize(
    ("part", "queries", "outcomes", "verdict"),
    spread(
        [
            ("c.ii", ONE, [("c", "v_a"), ("c", "v_b")], "limit"),
            ("c.ii", ONE, [("c", "v_a", "gamma > 1")], "limit"),
            ("c.ii", ONE, [("c", "v_a", "gamma < 1")], "misses"),
            ("c.ii", ONE, [("c", HALF)], "misses"),
            ("c.ii", ONE, [("c", HALF, "gamma = 1")], "limit"),
            ("c.ii", ONE, [("c", "v_a/(1 + exp((1 - gamma)*lambda)) + v_b/(1 + exp((gamma - 1)*lambda))")], "limit"),
            ("c.ii", None, [("c", "v_b", "gamma = 1/2")], "limit"),
            ("c.ii", ONE, [], "none"),
            ("d.ii", TWO, [("c", HALF), ("c_1", "v_a"), ("c_2", "v_b")], "limit"),
            ("d.ii", TWO, [("c", "v_b/2", "gamma < 1")], "misses"),
            ("d.ii", {"q_1": "t*(mu_a + mu_b)", "q_2": "t*(mu_a + mu_b)"}, [("c", HALF)], "misses"),
        ],
        3,
    ),
)
def test_outcomes_over_samples(part, queries, outcomes, verdict):
    assert samples(part, queries, *outcomes).verdict == verdict


def test_what_follows_from_an_unscaled_query_names_its_line():
    answer = samples("d.ii", {"q_1": "mu_a", "q_2": "mu_b"}, ("c", HALF), line=31)
    assert (answer.verdict, answer.follows_from) == ("misses", 31)
    assert "line 31" in answer.because and "no large scale" in answer.because
    assert samples("d.ii", TWO, ("c", "v_b/2", "gamma < 1")).follows_from is None


def test_a_head_that_is_said_to_vary_is_wrong_where_it_has_a_limit():
    question = P21.part("d.ii").questions[0]
    varies = Outcome("c_1", "v_a", moves=True)
    scaled = {"d.i": decided("d.i", TWO)}
    assert decide_answer(question, None, scaled, P21, [varies]).answer.verdict == "misses"
    unscaled = {"d.i": decided("d.i", {"q_1": "mu_a", "q_2": "mu_b"})}
    assert decide_answer(question, None, unscaled, P21, [varies]).answer.verdict == "meets"


def test_words_that_name_no_output_never_accuse():
    question = P21.part("d.ii").questions[0]
    context = {"d.i": decided("d.i", TWO)}
    assert decide_answer(question, None, context, P21, [Outcome("c", "v_a", loose=True)]).answer.verdict == "none"


def test_outputs():
    question = P21.part("e.i").questions[0]
    for value, verdict in (
        ("u_a", "limit"),
        ("mu_a", "limit"),
        ("x_2", "limit"),
        ("u_b", "misses"),
        ("u_7", "not_read"),
    ):
        assert decide_answer(question, None, {}, P21, [Outcome("c_2", value)]).answer.verdict == verdict
    copied = P22.part("a.iii").questions[0]
    assert decide_answer(copied, None, {}, P22, [Outcome("c", "v_j")]).answer.verdict == "limit"
    assert decide_answer(copied, None, {}, P22, [Outcome("c", "sum_i alpha_i")]).answer.verdict == "misses"
    assert decide_answer(copied, None, {}, P22, []).answer.verdict == "none"


def test_equal_goals_in_other_letters_are_decided_once():
    from qkv.sheets.answers import goal_check

    first = decided("b", {"q": "lambda*(k_a + k_b)"}).answer
    size = goal_check._verdicts.cache_info().currsize
    second = decided("b", {"q": "rho*(k_a + k_b)"}).answer
    assert goal_check._verdicts.cache_info().currsize == size
    assert "λ → ∞" in first.because and "ρ → ∞" in second.because
    missed = decided("b", {"q": "rho*k_a"}).answer
    assert missed.verdict == "misses" and "ρ → ∞" in missed.because
