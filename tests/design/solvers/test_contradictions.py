"""Why rules cannot be followed: equal tokens, contradictory rules, and what no V writes, by the user's names."""

import numpy as np
import pytest

import qkv
from qkv.design.solvers import contradictions
from qkv.design.specs import WiringSpec

X = np.random.default_rng(0).standard_normal((3, 3))


def test_equal_tokens_that_should_be_read_apart_are_named_and_no_matrix_at_all_does_it():
    w = qkv.design.wire(X[[0, 1, 2, 1]], {"x0": "x1"}, {"x0": [1.0]}, labels=["x0", "x1", "x2", "x3"])
    assert not w.possible and w.status == "out of reach" and w.certificate.verify()
    assert w.reasons[0].startswith("tokens x1 and x3 are the same vector, so token x0 gives both the same weight")
    assert w.certificate.claims["norm_at_least"] == np.inf and w.card().title == "No wiring does this"


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_any_number_of_equal_tokens_gives_an_exact_proof(copies, share):
    tokens = X[[0, 2] + [1] * copies]
    w = qkv.design.wire(tokens, {0: {2: share, 1: 1 - share} if share < 1 else 2}, {0: [1.0]}, tol=0.01)
    assert w.certificate.claims["norm_at_least"] == np.inf and w.certificate.verify()
    assert len(w.reasons) == copies - 1 and all("are the same vector" in reason for reason in w.reasons)


def test_equal_readers_with_different_rules_are_named():
    w = qkv.design.wire(X[[0, 1, 2, 0]], {0: 1, 3: {1: 0.5, 2: 0.5}}, {0: [1.0], 3: [0.0]})
    assert w.reasons == ("tokens 0 and 3 are the same vector, so they read alike and cannot follow different rules",)
    assert w.certificate.claims["norm_at_least"] == np.inf and w.certificate.verify()


def test_equal_tokens_that_tol_allows_to_differ_are_no_reason():
    tokens = X[[0, 1, 1]]
    spec = WiringSpec.of(tokens, {0: {1: 0.51, 2: 0.49}}, {0: [1.0]}, 0.1)
    assert contradictions.equal_token_reasons(spec) == []
    w = qkv.design.wire(tokens, {0: {1: 0.51, 2: 0.49}}, {0: [1.0]}, tol=0.1)
    assert w.possible and w.status == "within" and max(w.distances) <= 0.1


def test_rules_that_contradict_each_other_are_named_and_the_others_are_not():
    """On a line, token 0 reads 0 only with W < 0 and token 1 reads 2 only with W > 0; token 2 follows either."""
    w = qkv.design.wire([[1.0], [2.0], [3.0]], {0: 0, 1: 2, 2: 2}, {i: [1.0] for i in range(3)})
    assert not w.possible and w.certificate.verify()
    assert "the rules of tokens 0 and 1 contradict each other" in w.reasons[0] or "0 and 2" in w.reasons[0]
    assert "0, 1 and 2" not in w.reasons[0]


def test_a_rule_that_cannot_be_followed_alone_is_named():
    w = qkv.design.wire([[0.0], [1], [2], [3]], {3: {0: 0.5, 3: 0.5}, 1: 3}, {1: [1.0], 3: [1.0]}, tol=0.1)
    assert w.reasons[0].startswith("the rule of token 3 cannot be followed") and w.certificate.verify()


def test_small_weights_are_dropped_where_tol_allows_it():
    w = qkv.design.wire(np.arange(6.0)[:, None] + 1, {0: {0: 0.02, 5: 0.98}, 1: 5}, {0: [1.0], 1: [1.0]}, tol=0.05)
    assert w.status == "within" and max(w.distances) <= 0.05 and w.certificate.verify()


def test_what_no_v_can_write_is_named():
    same = qkv.design.wire(np.eye(3), {0: 1, 2: 1}, {0: [1.0], 2: [2.0]})
    assert same.possible and same.reasons == ("tokens 0 and 2 read the same vector and should write different ones",)
    assert "tokens 0 and 2 read the same vector" in same.card().note
    dependent = WiringSpec.of([[1.0], [2.0]], {0: 0, 1: 1}, {0: [1.0], 1: [1.0]}, 0.1)
    assert "is linearly dependent" in contradictions.unwritable_reason(dependent)
    assert (
        contradictions.unwritable_reason(WiringSpec.of([[1.0], [2.0]], {0: 0, 1: 1}, {0: [1.0], 1: [2.0]}, 0.1)) is None
    )
    zero = WiringSpec.of([[1.0], [0.0]], {0: 1}, {0: [1.0]}, 0.1)
    assert "reads the zero vector" in contradictions.unwritable_reason(zero)
