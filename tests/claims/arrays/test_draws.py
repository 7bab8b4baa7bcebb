"""Draws that contradict a proof about means."""

import pytest

from qkv.claims.arrays import decide as decide_module
from qkv.claims.arrays.context import build_array_context
from qkv.claims.arrays.decide import decide
from qkv.claims.arrays.draws import contradicted_by_draws
from qkv.claims.syntax.markdown import read

GIVEN = "x, y in R^d, w ~ N(0, I), u ~ N(0, I), A, B in R^{n x n}"


def parsed(then):
    (claim,) = read(f"```claim x\ngiven {GIVEN}\nthen {then}\n```")
    return claim


@pytest.mark.parametrize(
    "then",
    [
        "E[(w'*x)^2] = 3*norm(x)^2",
        "E[norm(w)^2] = d + 3",
        "Var(w'*x + u'*y) = 3*norm(x)^2 + 2*norm(y)^2",
        "E[norm(w)^2]*trace(concat(concat(A, B), 0*A)*stack(0*A, stack(B, A))) = 0",
        "E[exp(w'*x)] > 4",
    ],
)
def test_draws_contradict_what_is_false(then):
    claim = parsed(then)
    assert contradicted_by_draws(build_array_context(claim), claim.statement.core)


@pytest.mark.parametrize(
    "then",
    [
        "E[(w'*x)^2] = norm(x)^2",
        "E[(w'*x)^4] = 3*norm(x)^4",
        "E[exp(w'*x - norm(x)^2/2)*exp(w'*y - norm(y)^2/2)] = exp(x'*y)",
        "Var(exp(w'*x - norm(x)^2/2)) = exp(norm(x)^2) - 1",
        "Cov(w'*x, w'*y) = x'*y",
        "E[cos(w'*x)] = exp(-norm(x)^2/2)",
    ],
)
def test_draws_do_not_contradict_what_is_true(then):
    claim = parsed(then)
    assert not contradicted_by_draws(build_array_context(claim), claim.statement.core)


def test_a_proof_that_draws_contradict_is_a_bug(monkeypatch):
    monkeypatch.setattr(decide_module, "is_zero", lambda evaluator, value: True)
    found = decide(parsed("E[(w'*x)^2] = 3*norm(x)^2"))
    assert found.verdict == "undecided" and "bug" in found.because
