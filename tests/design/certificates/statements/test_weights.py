"""Statements about readings: exact bounds, norm bounds, tightness, against 80-digit arithmetic."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest

import qkv
from qkv.design.certificates import Certificate


def test_no_query_at_all_is_said_only_where_it_is_proved():
    """Key 0 is a third of the way from key 1 to key 2, so every query leaks at least as much as it reads."""
    data = {"keys": [[1.0, 2.0], [0.0, 0.0], [3.0, 6.0]], "items": [0], "wanted": [1.0], "tol": 0.1}
    data |= {"multipliers": [0.0], "others": [1, 2], "mix": [2.0, 1.0]}
    proved = Certificate("no query", data, {"norm_at_least": math.inf})
    assert proved.verify(), proved.verify().why
    assert proved.statement.startswith("no query at all reads")
    nearly = Certificate("no query", data | {"mix": [2.0, 1.0 + 1e-15]}, {"norm_at_least": math.inf})
    assert not nearly.verify()
    empty = Certificate("no query", data, {"norm_at_least": "-inf"})
    assert not empty.verify() and "at all" not in empty.statement


def test_three_quarters_is_three_quarters():
    """Each of 12 keys gets 1/12, three were to get everything: the distance is 3/4, though no ball is 1/12."""
    data = {"keys": np.eye(12), "values": np.eye(12), "query": np.zeros(12)}
    data |= {"items": [0, 1, 2], "wanted": [0.5, 0.25, 0.25]}
    assert Certificate("weights", data, {"distance": 0.75}).verify()
    assert not Certificate("weights", data, {"distance": math.nextafter(0.75, 0)}).verify()


def test_weights_that_sum_to_1_only_nearly_do_not_make_the_norm_bound_too_large():
    """Scaling the wanted weights changes no ratio, so it must not change the bound."""
    keys = np.random.default_rng(3).normal(size=(4, 3))
    data = {"keys": keys, "items": [0, 1], "multipliers": [0.0, 0.1], "tol": 0.01, "others": [2, 3], "mix": [0.5, 0.5]}
    found = [
        Certificate.issue("no query", data | {"wanted": [0.5 * s, 0.5 * s]}).claims["norm_at_least"]
        for s in (1.0, 1 + 2.0**-31, 1 - 2.0**-31)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-15) == pytest.approx(found[2], rel=1e-15)


def test_scores_of_a_thousand_digits_do_not_hide_who_wins():
    data = {"keys": [[1e200], [-1e200]], "values": [[1.0], [0.0]], "query": [1e200], "items": [0], "wanted": [1.0]}
    assert Certificate("weights", data, {"distance": 1e-300, "output": 1e-300}).verify()
    assert not Certificate("weights", data | {"items": [1]}, {"distance": 0.999}).verify()


@pytest.mark.parametrize("form", ["smallest", "textbook"])
@pytest.mark.parametrize(("n", "wanted"), [(5, {0: 1.0}), (8, {1: 0.5, 3: 0.5}), (6, {0: 0.2, 2: 0.5, 4: 0.3})])
@pytest.mark.parametrize("tol", [0.3, 1e-3, 1e-9])
def test_on_orthonormal_keys_certified_bounds_are_within_a_hundredth_of_the_true_errors(form, n, wanted, tol):
    memory = qkv.Memory.orthonormal(n=n, d=n + 2, seed=n)
    design = qkv.design.blend(memory, wanted, tol=tol, form=form)
    keys, values, query = (oracle.table(m.tolist()) for m in (memory.keys, memory.values, design.query[None]))
    reading = oracle.Softmax(oracle.apply(keys, query[0]))
    share = dict(zip(design.certificate.data["items"], design.certificate.data["wanted"], strict=True))
    wish = [Fraction(float(share.get(i, 0.0))) for i in range(n)]
    target = [oracle.dot(wish, column) for column in oracle.columns(values)]
    assert reading.distance(wish) <= design.distance <= 1.01 * reading.distance(wish)
    assert reading.output_distance(values, target) <= design.output_distance
    assert design.output_distance <= 1.01 * reading.output_distance(values, target)
    if form == "smallest":  # no query is shorter, and the certificate knows it
        assert design.certificate.claims["norm_at_least"] == pytest.approx(float(design.query.norm()), rel=0.01)


@pytest.mark.parametrize("seed", range(12))
def test_issued_bounds_are_confirmed_by_an_independent_judge_and_smaller_ones_are_not(seed):
    rng = np.random.default_rng(seed)
    keys, query, w = rng.normal(size=(5, 3)), rng.normal(size=3), rng.random(2) + 0.1
    data = {"keys": keys, "values": rng.normal(size=(5, 2)), "query": query, "items": [1, 3], "wanted": w / w.sum()}
    made = Certificate.issue("weights", data)
    plain = {name: np.asarray(value).tolist() for name, value in made.data.items()}
    assert oracle.truth("weights", plain, dict(made.claims))
    for name in ("distance", "output"):
        tighter = {**made.claims, name: made.claims[name] * (1 - 1e-12)}
        assert not oracle.truth("weights", plain, tighter)
        assert not Certificate("weights", made.data, tighter).verify()


def test_no_query_shorter_than_the_bound_has_the_exact_ratio_and_a_small_leak():
    """Sampled queries on the plane of the ratio k_0·q = k_1·q, against the certified bound."""
    rng = np.random.default_rng(5)
    memory = qkv.Memory(rng.normal(size=(8, 3)))
    design = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=0.3)
    if design.status != "exact":
        pytest.skip("this memory has no such query")
    bound, keys = design.least_norm, memory.keys.numpy()
    normal = keys[0] - keys[1]
    for _ in range(3000):
        q = rng.normal(size=3)
        q -= normal * (q @ normal) / (normal @ normal)
        q *= rng.random() * bound / np.linalg.norm(q)
        scores = np.exp(keys @ q)
        assert scores[2:].sum() / scores.sum() > 0.3 * (1 - 1e-9)
