"""Verdicts: what is proved is true, what is conditional names its condition, and the numbers agree with the proofs."""

import threading
import time

import numpy as np
import pytest
from marks import spread

import qkv
from qkv.claims.pipeline import decided_documents
from qkv.errors import QkvError


def one(given, let, then):
    lets = f"let {let}\n" if let else ""
    return qkv.check(f"```claim x\ngiven {given}\n{lets}then {then}\n```")[0]


KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"
LENGTH = "k_i = mu_i, k_a = gamma*mu_a, q = t*(mu_a + mu_b)"
NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ("alpha_a < 1/2", "proved"),
        ("alpha_a <= 1/2", "proved"),
        ("alpha_a > 1/n", "proved"),
        ("alpha_a >= 1/2", "refuted"),
        ("alpha_a > 0.4", "conditional"),
        ("alpha_a != alpha_b", "refuted"),
        ("alpha_a != alpha_i for i != a, b", "proved"),
        ("sum_{i != a, b} alpha_i < 1", "proved"),
        ("sum_{i != a, b} alpha_i = (n - 2)/(2*exp(t) + n - 2)", "proved"),
        ("norm(q) = sqrt(2)*t", "proved"),
        ("norm(q)^2 = 2*t^2", "proved"),
        ("k_a'q -> oo as t -> oo", "proved"),
        ("k_i'q -> oo as t -> oo for i != a, b", "refuted"),
        ("alpha_a -> 0 as n -> oo", "proved"),
        ("alpha_a -> 1/n as t -> 0", "proved"),
        ("alpha_a -/-> 1/3 as t -> oo", "proved"),
        ("t*alpha_a -> oo as t -> oo", "proved"),
        ("no real t makes alpha_a = 1/2", "proved"),
    ],
)
def test_orthonormal_keys(then, verdict):
    found = one(KEYS, "q = t*(k_a + k_b)", then)
    assert found.verdict == verdict, found


def test_the_scale_that_a_condition_names_is_the_right_one():
    found = one(KEYS, "q = t*(k_a + k_b)", "alpha_a > 0.49")
    assert "t > log(49*n/2 - 49)" in found.because
    for n in (3, 10):
        edge = np.log(49 * n / 2 - 49)
        for t, true in ((edge - 1e-6, False), (edge + 1e-6, True)):
            assert (np.exp(t) / (2 * np.exp(t) + n - 2) > 0.49) == true


@pytest.mark.parametrize(
    ("then", "verdict"),
    spread(
        [
            ("Var[k_a'q] = 2*eps*t^2 + t^2/2", "proved"),
            ("Var[k_a'q] = 2*eps*t^2", "refuted"),
            ("Cov[k_a'q, k_b'q] = 0", "proved"),
            ("E[k_a'q] = t", "proved"),
            ("E[alpha_a] -> 1/2 as eps -> 0, t -> oo", "proved"),
            ("Var[alpha_a] -> 1/4 as eps -> 0, t -> oo", "proved"),
            ("Var[alpha_a] -> 1/5 as eps -> 0, t -> oo", "refuted"),
            ("Cov[alpha_a, alpha_b] -> -1/4 as eps -> 0, t -> oo", "proved"),
            ("P[alpha_a > 1/2] -> 1/2 as eps -> 0, t -> oo", "proved"),
            ("P[k_a'mu_a > 1] -> 1/2 as eps -> 0", "proved"),
            ("c within 0.05 of (v_a + v_b)/2 with probability >= 0.1 as eps -> 0, t -> oo", "refuted"),
        ],
        4,
    ),
)
def test_random_keys(then, verdict):
    found = one(f"{NOISE}, t > 0", "q = t*(mu_a + mu_b)", then)
    assert found.verdict == verdict, found


def test_probabilities_agree_with_monte_carlo():
    """Two heads of scale 60 on ten keys, a million lengths: k_a points backwards with probability Φ(-√2)."""
    found = one(NOISE, "q_1 = t*mu_a, q_2 = t*mu_b", "c -> (v_a + v_b)/2 as eps -> 0, t -> oo")
    length = 1 + np.sqrt(0.5) * np.random.default_rng(0).standard_normal(1_000_000)
    assert found.verdict == "conditional" and "0.9214" in found.because
    assert abs(np.mean(length > 0) - 0.9214) < 0.001


def test_a_wrong_proof_would_be_reported_as_a_bug(monkeypatch):
    from qkv.claims.symbolic import prover
    from qkv.claims.symbolic.proof import PROVED, Proof

    monkeypatch.setattr(prover, "decide", lambda cases: Proof(PROVED, "trust me"))
    found = one(KEYS, "q = t*(k_a + k_b)", "alpha_a = 1")
    assert found.verdict == "undecided" and "a bug" in found.because and found.counterexample


def test_a_claim_that_takes_too_long_is_undecided(monkeypatch):
    from qkv.claims.symbolic import prover

    def forever(cases):
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    monkeypatch.setattr(prover, "decide", forever)
    start = time.monotonic()
    text = "```claim x\ngiven t > 0\nthen t > 0\n```"
    assert qkv.check(text, seconds=0.3)[0].because == "timed out after 0.3 s"
    found = []
    thread = threading.Thread(target=lambda: found.append(qkv.check(text, seconds=0.3)[0].because))
    thread.start()
    thread.join(10)
    assert found == ["timed out after 0.3 s"]
    assert time.monotonic() - start < 5


def test_nothing_heavy_is_imported_before_a_claim_is_checked():
    import subprocess
    import sys

    code = "import sys, qkv, qkv.cli; sys.exit(bool({'torch', 'sympy', 'numpy', 'lark'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    code = "import sys, qkv; qkv.check('```claim x\\nthen 1 < 2\\n```'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Each of these was once a way, or would be a natural way, to prove something false.
@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        ("k_1..k_n orthonormal, n >= 2", "q = t*k_a", "c -> 0 as n -> oo"),
        ("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*k_a", "sum_i sum_j k_i'k_j = n^2"),
        ("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*k_a", "sum_i sum_j k_i'k_j = 2*n"),
        ("mu_1..mu_n orthonormal, gamma ~ N(1, 0), n >= 2", LENGTH, "c -/-> (v_a + v_b)/2 as t -> oo"),
        ("u_a, u_b orthogonal", "", "norm(u_a) = norm(u_b)"),
        ("k_1..k_n orthonormal, n = 2", "q = t*(k_a + k_b + k_d)", "alpha_a -> 1/3 as t -> oo"),
        (f"{NOISE}, t > 0", "q = t*mu_a", "Cov[k_a] = 1/2*mu_a*mu_a'"),
        (f"{NOISE}, gamma_a real, t > 0", "q = t*mu_a", "k_a'q -> gamma_a*t as eps -> 0"),
        ("z_1..z_n orthonormal, mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3", "q = mu_a", "Var[z_a'q] = 1"),
        ("k_1..k_n free, q free, n >= 2", "", "alpha_j -> 0 as n -> oo"),
        ("s > t, t > 0", "", "exp(s)/exp(2*t) -> 0 as t -> oo"),
        ("gamma real", "", "sqrt(gamma^2) = gamma"),
        ("v_1..v_n orthogonal of norm beta, k_1..k_n free, p free, k_j'p > k_i'p for i != j", "q = beta*p",
         "c -> 0 as beta -> oo"),
        ("mu_1..mu_3 orthonormal, k_i ~ N(mu_i, eps*I), n >= 5", "q = t*mu_1", "alpha_1 = exp(t)/(exp(t) + n - 1)"),
        ("mu_1..mu_n orthonormal, gamma ~ N(1, 1/2)", LENGTH, "P[alpha_a > 1/2] -> 1/2 as t -> oo when gamma > 1"),
        ("k_1..k_n free, p free, k_j'p > k_i'p for i != j, t < 0, n >= 2", "q = t*p", "alpha_j > alpha_i for i != j"),
        ("k_1..k_n orthonormal, n >= 3", "q = t*(k_other + k_b)", "alpha_i -> 1/2 as t -> oo for i != b"),
        ("k_1..k_n orthonormal, n >= 2, t > 0", "q = t*k_a", "alpha_a < 1/n"),
    ],
)  # fmt: skip
def test_what_is_false_is_never_proved(given, let, then):
    found = one(given, let, then)
    assert found.verdict not in ("proved", "holds", "conditional"), found
    assert "bug" not in found.because, found


def test_several_processes_give_the_same_verdicts_in_the_same_order():
    parts = [
        "".join(f"```claim {name}{i}\ngiven t > 0\nthen {then}\n```\n" for i, then in enumerate(statements))
        for name, statements in (
            ("first ", ["2*t > t", "t < 0", "t > ", "exp(t) > 1"]),
            ("empty ", []),
            ("third ", ["t^2 >= 0", "log(t) > 0", "1/t > 0"] * 3),
        )
    ]
    alone, together = (list(decided_documents(parts, processes=count)) for count in (1, 2))
    assert alone == together
    assert [number for number, _ in alone] == [0] * 4 + [2] * 9
    assert [v.verdict for _, v in alone[:4]] == ["proved", "refuted", "malformed", "proved"]
    with pytest.raises(qkv.QkvError, match="processes is 0"):
        qkv.check(parts[0], processes=0)


@pytest.mark.slow
def test_claims_that_cannot_be_read_can_be_sent_to_processes_when_dask_pickles_errors():
    import subprocess
    import sys

    # Dask registers a way of pickling for every class of errors that is loaded, with all that an error came from.
    code = (
        "import pickle, copyreg, qkv.claims.pipeline as p; claims = p.read('```claim x\\nthen t >\\n```'); import dask;"
        " assert type(claims[0].why) in copyreg.dispatch_table;"
        " assert str(pickle.loads(pickle.dumps(claims[0])).why) == str(claims[0].why)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("seconds", ["a", -1, 0, True, None, float("nan"), float("inf")])
def test_a_time_that_is_no_positive_number_is_refused(seconds):
    with pytest.raises(QkvError, match=r"seconds is .* Give a positive, finite number of seconds"):
        qkv.check("", seconds=seconds)
