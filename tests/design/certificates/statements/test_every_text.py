"""Statements about every text, against all texts one by one; false and malformed ones are refused."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from qkv.design.certificates import Certificate
from qkv.design.certificates.statements.every_text import _matching_rows
from qkv.design.certificates.statements.text_rules import targets


def weights(x, q, k):
    scores = (x @ q.T) @ (x @ k.T).T
    scores[~np.tri(len(x), dtype=bool)] = -np.inf
    return softmax(scores, axis=1)


def worst_of_all_texts(data):
    """The largest distance over every text that the statement covers, by running each of them."""
    e, p = np.asarray(data["tokens"]), np.asarray(data["positions"])
    sink = data.get("sink")
    silent = {*np.atleast_1d(data.get("excluded", [])).astype(int).tolist()}
    worst = 0.0
    for ids in itertools.product(range(len(e)), repeat=len(p)):
        if sink is not None and (ids[0] != sink or sink in ids[1:]):
            continue
        x = p.copy()
        x[:, : e.shape[1]] += e[list(ids)]
        if data["rule"] == "induction":
            x = x + weights(x, data["Q1"], data["K1"]) @ x @ data["V1"].T @ data["O1"].T
        alpha = weights(x, data["Q"], data["K"])
        for i, read in targets(data["rule"], ids, sink is not None).items():
            if ids[i] in silent:
                continue
            wanted = np.zeros(len(ids))
            wanted[list(read)] = 1 / len(read)
            worst = max(worst, 0.5 * np.abs(alpha[i] - wanted).sum())
    return worst


def random_case(seed):
    """A vocabulary of a few tokens and random matrices; some are near to what a design would choose."""
    rng = np.random.default_rng(seed)
    rule = ("previous", "duplicate", "induction")[seed % 3]
    n, length, t = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    slot = t if rule == "induction" else 0
    d = t + length + slot
    e = rng.normal(size=(n, t))
    if rng.random() < 0.7:
        e /= np.linalg.norm(e, axis=1, keepdims=True)
    p = np.zeros((length, d))
    p[:, t : t + length] = np.eye(length)
    size = float(rng.choice([0.0, 0.01, 1.0]))
    scale = float(rng.choice([1.0, 10.0, 60.0]))

    def noisy(matrix, by=1.0):
        return matrix + by * size * rng.normal(size=matrix.shape)

    token, place = np.eye(t, d), np.eye(length, d, t)
    shift = np.zeros((length, length))
    shift[np.arange(1, length), np.arange(length - 1)] = 1
    data = {"tokens": e, "positions": noisy(p, 0.1), "rule": rule}
    if rule == "previous":
        data |= {"Q": noisy(scale * shift.T @ place), "K": noisy(place)}
    elif rule == "duplicate":
        data |= {
            "Q": noisy(np.vstack([scale * token, -scale * place])),
            "K": noisy(np.vstack([token, place])),
        }
    else:
        read = np.eye(t, d, t + length)
        data |= {"Q1": noisy(40 * shift.T @ place), "K1": noisy(place), "V1": noisy(token), "O1": noisy(read.T, 0.1)}
        data |= {
            "Q": noisy(np.vstack([scale * token, -scale * place.sum(axis=0, keepdims=True)])),
            "K": noisy(np.vstack([read, place[:1]])),
        }
    if rule != "previous":
        if rng.random() < 0.3:
            data["sink"] = int(rng.integers(n))
        elif rng.random() < 0.3 and n > 2:
            data["excluded"] = np.array([int(rng.integers(n))])
    return data


@pytest.mark.parametrize("seed", range(120))
def test_the_bound_is_never_below_the_worst_of_all_texts(seed):
    data = random_case(seed)
    certificate = Certificate.issue("every text", data)
    bound, worst = certificate.claims["distance"], worst_of_all_texts(data)
    assert worst <= bound
    assert certificate.verify()
    if bound < 1:
        assert not Certificate("every text", certificate.data, {"distance": 0.5 * worst}).verify()


def exact(rule="duplicate", **changes):
    """A head for three orthogonal tokens, whose bound is the worst of all texts."""
    t, length = 3, 4
    d = t + length
    token, place = np.eye(t, d), np.eye(length, d, t)
    data = {"tokens": np.eye(t), "positions": place, "rule": rule}
    if rule == "duplicate":
        data |= {"Q": np.vstack([9 * token, -9 * place]), "K": np.vstack([token, place])}
    else:
        data |= {"Q": 9 * np.eye(length, k=1) @ place, "K": place}
    return data | changes


@pytest.mark.parametrize("rule", ["previous", "duplicate"])
def test_where_no_term_depends_on_the_tokens_the_bound_is_nearly_the_worst_text(rule):
    data = exact(rule)
    bound = Certificate.issue("every text", data).claims["distance"]
    worst = worst_of_all_texts(data)
    assert worst <= bound <= 1.01 * worst + 1e-9


def test_the_statement_says_which_texts_it_covers():
    said = Certificate.issue("every text", exact(sink=1, excluded=[2])).worded({1: "[CLS]", 2: "an"})
    assert "in every text of at most 4 tokens over this vocabulary of 3" in said
    assert "begins with token [CLS] and holds it nowhere else" in said
    assert "what the tokens an read is not covered" in said


MALFORMED = {
    "a rule that there is not": {"rule": "next"},
    "tokens wider than positions": {"tokens": np.ones((3, 9))},
    "matrices of another width": {"Q": np.ones((7, 5))},
    "Q and K of different heights": {"Q": np.ones((2, 7))},
    "a sink that is no token": {"sink": 3},
    "a sink that is a list": {"sink": np.array([1.0])},
    "an excluded token that there is not": {"excluded": np.array([-1.0])},
    "a token excluded twice": {"excluded": np.array([1.0, 1.0])},
    "all tokens excluded": {"excluded": np.array([0.0, 1.0, 2.0])},
    "a first layer of a rule with one": {"Q1": np.ones((1, 7))},
    "NaN": {"K": np.full((7, 7), np.nan)},
    "data that nothing checks": {"note": 1.0},
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED)
def test_malformed_data_is_refused(changes):
    certificate = Certificate.issue("every text", exact())
    assert certificate.verify()
    assert not Certificate("every text", {**certificate.data, **changes}, certificate.claims).verify()


@pytest.mark.parametrize("factor", [1e200, 1e160, 1e-200, 0.0])
def test_numbers_at_the_edge_of_float64_prove_nothing_false(factor):
    data = exact()
    data["Q"], data["K"] = data["Q"] * factor, data["K"] * factor
    verification = Certificate("every text", data, {"distance": 0.1}).verify()
    assert not verification


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_certificate_is_accepted_only_if_it_is_true(seed):
    rng = np.random.default_rng(seed)
    certificate = Certificate.issue("every text", exact(("previous", "duplicate")[seed % 2]))
    data = {k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in certificate.data.items()}
    name = str(rng.choice(["tokens", "positions", "Q", "K"]))
    data[name].flat[rng.integers(data[name].size)] += float(rng.choice([-20, -2, -0.5, 0.5, 2, 20]))
    if Certificate("every text", data, certificate.claims).verify():
        assert worst_of_all_texts(data) <= certificate.claims["distance"]


@pytest.mark.parametrize("own_key", [False, True])
def test_a_larger_score_of_a_place_never_lowers_the_bound_where_nothing_is_looked_for(own_key):
    """Without a target the sink must win over every key, whatever the score of the places adds to it."""
    none = np.zeros(3)

    def bounds(place_scores):
        tables = SimpleNamespace(
            place=(none, none), error=0.0, disturbance=0.0, C=np.array(place_scores), margin=5.0, key_spread=0.0,
            over_sink=5.0, over_first=5.0, sink_place=none, sink_over_rival=5.0, sink_over_own=5.0,
        )  # fmt: skip
        return [
            float(bound.upper() if hasattr(bound, "upper") else bound)
            for bound in _matching_rows(tables, own_key, True)
        ]

    level, raised = bounds(np.zeros((3, 3))), bounds([[0, 0, 0], [0, 1, 0], [0, 1, 1]])
    assert len(level) == len(raised) and raised[-1] > 1.5 * level[-1] > 0
