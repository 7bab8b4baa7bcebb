"""The derivation of a wiring: its lines against hand-computed scores, weights and limits."""

import math
import re

import pytest
import torch

from qkv.design import wire
from qkv.web.wiring_derivation import derivation

NAMES, VECTORS = ["x_1", "x_2"], ["u", "v"]
X = [[1.0, 0.0], [0.0, 2.0]]


class Possible:
    """A wiring with a given W, so that scores can be computed by hand."""

    possible = True

    def __init__(self, W, rules):
        self.W, self.rules = torch.tensor(W, dtype=torch.float64), rules


def lines_of(W, beta=2.0, outputs=((0.5, -2.0), (1.0, 0.0))):
    scores = [[beta**2 * sum(a * w * b for a, row in zip(x, W, strict=True) for w, b in zip(row, y, strict=True))
               for y in X] for x in X]  # fmt: skip
    weights = [[math.exp(s) / sum(map(math.exp, row)) for s in row] for row in scores]
    return derivation(NAMES, VECTORS, X, Possible(W, {0: 1}), beta, weights, outputs)


def test_tokens_length_scores_weights_output_and_limit_are_stated_in_order():
    found = [line.text for line in lines_of([[0.0, 0.25], [0.0, 0.0]])]
    low = 1 / (1 + math.exp(2))
    assert found == [
        "x_1 = u",
        "x_2 = 2 v",
        "the named vectors are orthogonal, of length β = 2",
        "token i scores token j by s_ij = x_iᵀ W x_j with W = QᵀK, so all scores grow as β²",
        "x_1 gives the scores 0 for x_1, 2 for x_2",  # 2² · 1 · 0.25 · 2
        f"softmax gives x_1 the weights {low:.3g}, {1 - low:.3g}",
        "so x_1 writes 0.5 u - 2 v",
        "as β → ∞ the highest score takes all the weight: x_1 reads x_2",
    ]


def test_equal_scores_share_the_limit():
    (limit,) = [line for line in lines_of([[0.0, 0.0], [0.0, 0.0]]) if "∞" in line.text]
    assert limit.text.endswith("x_1 reads x_1 and x_2, equally")
    assert r"= 1/2\quad" in limit.latex and r"\{1, 2\}" in limit.latex


def test_latex_has_subscripts_and_signs():
    latex = [line.latex for line in lines_of([[0.0, 0.25], [0.0, 0.0]], outputs=((-1.0, 0.0), (0.0, 0.0)))]
    assert latex[0] == "x_{1} = u" and latex[1] == r"x_{2} = 2\,v"
    assert latex[6].endswith("V x_j = -u")


def test_an_impossible_wiring_ends_with_its_proof():
    tokens = [[1.0], [2.0], [3.0]]
    found = derivation(["x", "y", "z"], ["u"], tokens, wire(tokens, {0: 1}, {0: [1.0]}), 1.0, None, None)
    assert found[-1].text.startswith("no W = QᵀK satisfies the rules: ") and found[-1].latex.startswith(r"\nexists")


def test_scores_that_agree_only_up_to_rounding_have_no_limit_stated():
    found = lines_of([[1.0, 0.5 * (1 + 1e-9)], [0.0, 0.0]])
    assert not [line for line in found if "∞" in line.text or "lim" in line.latex]
    assert found[-1].text == "the highest scores of x_1 agree up to rounding: it reads x_1 and x_2 in equal parts"
    assert found[-1].latex == r"s_{1,1} \approx s_{1,2}"


@pytest.mark.parametrize(
    ("x", "latex"), [(3.2e-40, r"3.2 \cdot 10^{-40}"), (-1.5e12, r"-1.5 \cdot 10^{12}"), (0.5, "0.5")]
)
def test_powers_of_ten_are_set_as_such(x, latex):
    from qkv.core.display import number
    from qkv.web.wiring_derivation import _tex_number

    assert _tex_number(number(x, 2)) == latex


def test_no_formula_contains_a_number_in_programming_notation():
    for beta in (1e-7, 0.1, 7.0, 12.0):
        for line in lines_of([[3.0, 0.25e-7], [-2.0, 0.0]], beta=beta, outputs=((1e-9, 2.5e7), (1.0, 0.0))):
            assert not re.search(r"\de[-+]?\d", line.latex), line.latex


def test_rounded_outputs_are_marked_as_rounded():
    exact, rounded = (lines_of([[0.0, 0.0], [0.0, 0.0]], outputs=((c, 0.0), (1.0, 0.0)))[6] for c in (0.5, 0.12345))
    assert exact.text == "so x_1 writes 0.5 u" and "V x_j = 0.5" in exact.latex
    assert rounded.text == "so x_1 writes 0.123 u, to three decimals" and r"V x_j \approx 0.123" in rounded.latex


@pytest.mark.parametrize("name", [r"\href{javascript:x}", "a}b", "$x$", "%"])
def test_names_cannot_contain_latex_commands(name):
    found = derivation([name], [name], [[1.0]], wire([[1.0]], {0: 0}, {0: [1.0]}), 1.0, [[1.0]], [[1.0]])
    assert all(char not in line.latex.replace(r"\text", "") for line in found[:1] for char in "\\$%")
