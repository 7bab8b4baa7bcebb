"""What a certificate promises: it comes back bit for bit, speaks plainly, and survives whoever tampers with it."""

import json
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import ctx
from safetensors.numpy import save_file

import qkv
from qkv.design.certificates import files
from qkv.design.certificates.certificate import Certificate, load, save
from qkv.design.certificates.statements import KINDS, weights
from qkv.errors import QkvError

sys.path.insert(0, str(Path(__file__).parent))
import oracle

SUFFIXES = (".json", ".safetensors")


@pytest.fixture(scope="module")
def copied():
    return qkv.design.copy(qkv.Memory.orthonormal(n=5, d=6, seed=0), 2, tol=1e-3).certificate


@pytest.fixture(scope="module")
def wired():
    X = np.random.default_rng(0).normal(size=(3, 3))
    return qkv.design.wire(X, {0: 2, 1: {0: 0.5, 2: 0.5}}, {0: X[1], 1: X[0]}, tol=1e-2).certificate


@pytest.fixture(scope="module")
def counted():
    return qkv.design.copyable(np.random.default_rng(0).normal(size=(12, 2))).certificate


def changed(certificate, data=None, claims=None):
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


# Files


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("which", ["copied", "wired", "counted"])
def test_a_certificate_comes_back_from_its_file_bit_for_bit(which, suffix, request, tmp_path):
    made = request.getfixturevalue(which)
    made.save(tmp_path / f"c{suffix}")
    found = Certificate.load(tmp_path / f"c{suffix}")
    assert found.kind == made.kind and found.statement == made.statement
    for before, after in ((made.data, found.data), (made.claims, found.claims)):
        assert set(before) == set(after)
        for name, value in before.items():
            x, y = (np.asarray(v, dtype=np.float64) for v in (value, after[name]))
            assert x.shape == y.shape and x.tobytes() == y.tobytes(), name
    assert found.verify()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_may_hold_several_certificates(suffix, copied, wired, tmp_path):
    save([copied, wired], tmp_path / f"c{suffix}", {"scale": 1.0})
    assert [c.kind for c in load(tmp_path / f"c{suffix}")] == ["weights", "wiring"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_infinite_margin_survives_the_file(suffix, tmp_path):
    alone = qkv.design.copyable([[1.0, 2.0]]).certificate
    alone.save(tmp_path / f"c{suffix}")
    assert Certificate.load(tmp_path / f"c{suffix}").verify()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_another_process_confirms_a_saved_certificate_and_refuses_a_changed_one(suffix, copied, tmp_path):
    tighter = changed(copied, claims={"distance": 0.999 * copied.claims["distance"]})
    save([copied, tighter], tmp_path / f"c{suffix}")
    code = "import sys; from qkv.design.certificates.certificate import load\n"
    code += "print([bool(c.verify()) for c in load(sys.argv[1])])"
    source = str(Path(qkv.__file__).parents[1])
    command = [sys.executable, "-c", code, str(tmp_path / f"c{suffix}")]
    run = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": source})
    assert run.stdout.strip() == "[True, False]", run.stderr


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_anywhere_is_refused_with_one_plain_error(suffix, tmp_path):
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    qkv.design.copyable([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[1].certificate.save(whole)
    content = whole.read_bytes()
    for length in range(len(content) - (suffix == ".json")):  # without its last newline JSON is still whole
        cut.write_bytes(content[:length])
        with pytest.raises(QkvError) as refusal:
            load(cut)
        assert "damaged" in refusal.value.problem and refusal.value.request and refusal.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe\x00", b"null", b"[]", b"3", b'"text"', b"{}", b'{"certificates": []}', b'{"certificates": 3}',
        b'{"certificates": [[]]}', b'{"kind": "weights"}', b'{"kind": "weights", "data": [1]}',
        b'{"kind": "weights", "data": {}, "claims": 4}', b"[" * 100_000, b'{"a":' * 100_000,
        b'{"kind": "weights", "data": {"keys": [[1], [1, 2]]}, "claims": {}}',
        b'{"kind": "weights", "data": {"keys": ' + b"9" * 5000 + b'}, "claims": {}}',
        b'{"format": "qkv-certificate/2", "kind": "weights", "data": {}, "claims": {}}',
        b'{"kind": "selects", "data": {}, "claims": {"margin": 1, "margin": 2}}',
        pickle.dumps({"kind": "weights"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npz", ".pkl", ""])
def test_a_foreign_file_is_refused_with_one_plain_error(content, suffix, tmp_path):
    path = tmp_path / f"foreign{suffix}"
    path.write_bytes(content)
    with pytest.raises(QkvError, match="reading certificates from"):
        load(path)


def test_what_was_pickled_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    for name in ("t.json", "t.safetensors", "t.npz", "t.npy"):
        np.savez(tmp_path / "t.npz", keys=np.array([Trap()], dtype=object))
        (tmp_path / name).write_bytes((tmp_path / "t.npz").read_bytes())
        with pytest.raises(QkvError):
            load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_json_of_an_absurd_size_is_refused_before_it_is_read(copied, tmp_path, monkeypatch):
    copied.save(tmp_path / "c.json")
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 100)
    with pytest.raises(QkvError, match=r"too many for JSON.*safetensors"):
        load(tmp_path / "c.json")


def test_metadata_of_a_tensor_file_that_names_no_such_certificate_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    for name in ("3.data.keys", "keys", "0.sums.keys", "x.data.keys"):
        save_file(
            {name: np.ones(2)}, path, metadata={"certificates": '[{"kind": "weights", "data": {}, "claims": {}}]'}
        )
        with pytest.raises(QkvError, match="damaged"):
            load(path)


def test_only_json_and_safetensors_are_written(copied, tmp_path):
    with pytest.raises(QkvError, match=r"Use \.json or \.safetensors"):
        copied.save(tmp_path / "c.npz")
    assert list(tmp_path.iterdir()) == []


# Words


def test_a_verification_is_true_where_all_holds_and_says_why_where_not(copied):
    good = copied.verify()
    assert good and good.why == "every claim holds" and len(good.findings) == 3
    bad = changed(copied, claims={"output": 1e-9}).verify()
    assert not bad and bad.why.startswith("distance of the output ≤ 1.00000e-09: ≤ 0.0")
    assert [f.holds for f in bad.findings].count(False) == 1
    assert "REFUSED" in bad.card().title and bad.to_json()["holds"] is False


def test_an_unknown_kind_is_refused_and_the_known_ones_are_named():
    found = Certificate("spell", {}, {}).verify()
    assert not found and all(kind in found.why for kind in KINDS)


def test_missing_and_foreign_claims_and_data_are_named(copied):
    assert "claims missing: ['distance']" in Certificate("weights", copied.data, {"output": 1.0}).verify().why
    assert "unknown here: ['certainty']" in changed(copied, claims={"certainty": 1.0}).verify().why
    assert "not checked here: ['mask']" in changed(copied, data={"mask": "causal"}).verify().why
    without = {name: value for name, value in copied.data.items() if name != "query"}
    assert "it lacks 'query'" in Certificate("weights", without, copied.claims).verify().why


def test_statements_say_what_was_checked(copied, wired, counted):
    assert copied.statement.startswith("this query reads 1 of item 2 to within 0.001 in total variation and 0.00")
    assert "; no query of norm below" in copied.statement and copied.statement.endswith("does it to 0.001")
    assert wired.statement.startswith("each rule's token reads as wanted to within 0.00999")
    assert counted.statement.startswith("of 12 keys, ") and "cannot by more than" in counted.statement


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


def test_a_count_of_exceptions_other_than_0_is_no_proof_of_exactness():
    data = {"keys": [[0.0, 0.0], [4.0, 0.0], [5.0, 1.0]], "item": 2, "indices": [0, 1], "weights": [0.5, 0.5]}
    claims = {"margin_at_most": 10.0, "exact": 1.0}
    assert Certificate("inside", data, {"margin_at_most": 10.0}).verify()
    assert not Certificate("inside", data, claims).verify()
    spans = {"A": [[1.0], [0.0]], "B": [[0.0], [1.0]], "x": [1.0], "y": [1.0]}
    assert Certificate("intersection", spans, {"gap": 2.0}).verify()
    assert not Certificate("intersection", spans, {"gap": 2.0, "exact": 1.0}).verify()


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


# A file that a person wrote


def textbook(beta=4.0):
    """x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b, and the textbook's matrices for c_1 ≈ u_b − u_c, c_2 ≈ u_b."""
    a, b, c, d = beta * np.eye(4)
    data = {
        "X": [d + b, a, c + b],
        "Q": (np.outer(d, a) + np.outer(c, d)) / beta**2,
        "K": np.eye(4),
        "V": (np.outer(b, b) - np.outer(c, c)) / beta**2,
        "reads": {"0": 2, "1": {"0": 1.0}},
        "writes": {"1": b, "0": b - c},
    }
    return json.loads(json.dumps(data, default=lambda array: array.tolist()))


def test_a_person_can_write_a_wiring_by_hand(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"kind": "wiring", "data": textbook(), "claims": {"distance": 1e-6, "output": 1e-5}}))
    found = Certificate.load(path)
    assert found.verify(), found.verify().why
    path.write_text(json.dumps({"kind": "wiring", "data": textbook(1.0), "claims": {"distance": 1e-6}}))
    assert "distance of each rule's weights" in Certificate.load(path).verify().why


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("reads", {"0": 2.5, "1": 0}, "no whole number"),
        ("reads", {"0": 2.0000001, "1": 0}, "no whole number"),
        ("reads", {"0": 7, "1": 0}, "reads token 7"),
        ("reads", {"0": -1, "1": 0}, "no whole number"),
        ("reads", {"0": True, "1": 0}, "no whole number"),
        ("reads", {"0": 2, "00": 2, "1": 0}, "twice"),
        ("reads", {"0": {"2": 0.5, "02": 0.5}, "1": 0}, "twice"),
        ("reads", {"0": {"2": 0.7}, "1": 0}, "sum to 1"),
        ("reads", {"0": {"2": "1"}, "1": 0}, "no real number"),
        ("reads", [[0, 2], [1, 0]], "either reads"),
        ("writes", {"0": [1.0] * 4}, "not those that read"),
        ("writes", {"0": [1.0] * 4, "1": [1.0] * 3}, ""),
        ("rules", [0.0, 1.0], "either reads"),
    ],
)
def test_rules_that_make_no_sense_are_refused_with_the_reason(part, value, why):
    found = Certificate("wiring", {**textbook(), part: value}, {"distance": 1e-6}).verify()
    assert not found and why in found.why


# Whoever tampers

ODD = [
    None, True, "", "1", "nan", "0x1", [], [[]], [[[1.0]]], {}, {"0": 1.0}, [1.0, "2"], ["inf"], [None], [[1.0], 2.0],
    float("nan"), float("inf"), [float("nan")], [[float("inf")]], 10**400, [10**400], -1, 1.5, 2.0000001, 1e300,
    [1e300], 5e-324, 1j, [1j], np.array([1 + 2j]), np.array(["a"]), np.array([object()]), [0, 0], [3, 3], [[0.0, 0.0]],
    b"bytes",
]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_whatever_stands_in_data_or_claims_is_answered_and_nothing_odd_is_believed(kind, genuine):
    made = genuine[kind]
    assert made.verify(), made.verify().why
    for value in ODD:
        for name in made.data:
            verification = changed(made, data={name: value}).verify()
            assert verification.why
            assert not (verification and isinstance(value, str | bytes | dict | complex | None)), (name, value)
            assert not (verification and isinstance(value, float) and not math.isfinite(value)), (name, value)
        for name in made.claims:
            verification = changed(made, claims={name: value}).verify()
            listed = value if isinstance(value, list) else [value]
            real = listed and all(isinstance(v, int | float) or v == "inf" for v in listed) and value is not True
            says_something = real and (listed[0] == "inf" or listed[0] > 0 or kind == "unreachable")
            assert says_something or not verification, (name, value)


@pytest.fixture(scope="module")
def genuine(copied, wired, counted):
    rng = np.random.default_rng(0)
    answers = qkv.design.copyable(rng.normal(size=(12, 2)))
    a, _, _, d = 3 * np.eye(4)
    clash = qkv.Memory(np.array([[0.0, 0], [1, 1], [2, 2], [5, 1]]))
    twins = rng.normal(size=(4, 2))[[0, 1, 1, 2]]
    made = [
        copied, wired, counted,
        qkv.design.blend(clash, {0: 0.25, 1: 0.5, 2: 0.25}, tol=1e-2).obstacle,
        answers[int(answers.vertices[0])].certificate,
        answers[int(answers.interior[0])].certificate,
        qkv.design.project(rng.normal(size=(4, 2)), rng.normal(size=(4, 1))).certificate,
        qkv.design.project([[1.0, 0], [0, 1], [0, 0]], [[1.0, 0], [1, 0], [0, 1]]).certificate,
        qkv.design.wire(twins, {0: 1}, {0: [1.0, 0.0]}, tol=1e-2).certificate,
        qkv.design.reach(np.stack([d, a, d + a]), 1, along=d, target=3 * np.eye(4)[1]).certificate,
    ]  # fmt: skip
    return {c.kind: c for c in made}


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_numbers_of_any_size_are_answered(kind, size, genuine):
    made = genuine[kind]
    for name, value in made.data.items():
        if np.ndim(value):
            assert changed(made, data={name: size * np.asarray(value)}).verify().why


def test_scores_of_a_thousand_digits_do_not_hide_who_wins():
    data = {"keys": [[1e200], [-1e200]], "values": [[1.0], [0.0]], "query": [1e200], "items": [0], "wanted": [1.0]}
    assert Certificate("weights", data, {"distance": 1e-300, "output": 1e-300}).verify()
    assert not Certificate("weights", data | {"items": [1]}, {"distance": 0.999}).verify()


def test_a_combination_of_thousands_of_keys_is_not_solved_in_fractions():
    keys = np.random.default_rng(0).normal(size=(3000, 8))
    data = {"keys": keys, "item": 0, "indices": np.arange(1, 3000), "weights": np.ones(2999)}
    assert not Certificate("inside", data, {"margin_at_most": 100.0, "exact": 0.0}).verify()


def test_indices_of_a_combination_are_not_cut_to_whole_numbers(counted):
    for name in ("indices", "offsets", "possible"):
        shifted = np.array(counted.data[name], dtype=float)
        shifted[-1] += 1e-7
        assert not changed(counted, data={name: shifted}).verify()


# Tightness


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


# Float64 with rounding bounds, against balls


def problem(rng, n, d, keys=1.0, scores=10.0, values=1.0):
    k = rng.normal(size=(n, d)) * keys
    q = rng.normal(size=d)
    with np.errstate(over="ignore"):
        q = np.clip(q * (scores / (np.abs(k / keys @ q).max() or 1.0) / keys), -1e308, 1e308)
    items = rng.choice(n, size=min(n, 3), replace=False)
    w = rng.random(len(items)) + 0.1
    data = {"keys": k, "values": rng.normal(size=(n, 2)) * values, "query": q, "items": items, "wanted": w / w.sum()}
    return data | {
        "multipliers": rng.normal(size=len(items)),
        "tol": float(rng.choice([1e-300, 1e-3, 0.5, 0.5 - 2**-54, 0.999])),
    }


def both(data):
    """Each quantity as float64 gives it and as balls do, 400 bits of them."""
    spec = KINDS["weights"]
    with ctx.workprec(400):
        parsed = spec.parse(data)
        rough, exact = (spec.measure(parsed, choice, {}) for choice in (True, False))
        return {name: (rough[name], exact[name]) for name in exact}


@pytest.mark.parametrize("seed", range(40))
def test_an_interval_of_float64_always_holds_what_balls_find(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 5, 40, 300]))
    data = problem(rng, n, int(rng.integers(1, 9)), scores=float(rng.choice([0, 1e-9, 1, 30, 1e4])))
    for name, (rough, exact) in both(data).items():
        assert rough.contains(exact) or (name == "norm_at_least" and not exact.is_finite()), name
        assert rough.is_finite() or name == "norm_at_least", "float64 gave up on an ordinary problem"


@pytest.mark.parametrize("seed", range(60))
def test_float64_gives_up_rather_than_lie_where_numbers_underflow_or_overflow(seed):
    rng = np.random.default_rng(seed)
    sizes = [1e-307, 1e-170, 1e-162, 1e-155, 1e-100, 1.0, 1e100, 1e154, 1e160, 1e300]
    keys, values = rng.choice(sizes, size=2)
    data = problem(rng, int(rng.integers(2, 9)), 3, float(keys), float(rng.choice([1e-3, 1e4, 1e17])), float(values))
    data["multipliers"] = data["multipliers"] * float(rng.choice([0.0, 1e-320, 1e-200, 1.0, 1e200]))
    for name, (rough, exact) in both(data).items():
        assert not rough.is_finite() or rough.contains(exact), name


def test_an_output_too_small_to_square_is_not_taken_for_zero(monkeypatch):
    """Values of 1e-170 leave an error whose square underflows: it was once certified to be 0."""
    monkeypatch.setattr(weights, "FLOAT64_FIRST_SIZE", 0)
    data = {"keys": np.eye(3), "values": 1e-170 * np.eye(3), "query": [5.0, 0, 0], "items": [0], "wanted": [1.0]}
    made = Certificate.issue("weights", data)
    assert made.claims["output"] > 1e-174 and made.verify()
    assert not changed(made, claims={"output": 0.0}).verify()


@pytest.mark.parametrize("seed", range(10))
def test_large_and_small_certificates_are_decided_alike(seed, monkeypatch):
    data = problem(np.random.default_rng(seed), 30, 4)
    verdicts = []
    for threshold in (0, 10**9):
        monkeypatch.setattr(weights, "FLOAT64_FIRST_SIZE", threshold)
        made = Certificate.issue("weights", data, "distance", "output")
        verdicts.append([bool(made.verify())])
        exact = float(oracle_distance(data))
        for factor in (1 - 1e-6, 1 - 1e-15, 1 + 1e-15, 1 + 1e-6):
            verdicts[-1].append(bool(Certificate("weights", data, {"distance": exact * factor}).verify()))
    assert verdicts[0] == verdicts[1] == [True, False, False, True, True]


def oracle_distance(data):
    keys, query = oracle.table(data["keys"].tolist()), oracle.vector(data["query"].tolist())
    share = dict(zip(data["items"].tolist(), data["wanted"].tolist(), strict=True))
    return oracle.Softmax(oracle.apply(keys, query)).distance([Fraction(share.get(i, 0.0)) for i in range(len(keys))])


def test_the_oracle_agrees_with_a_reading_that_can_be_done_by_hand():
    """Scores log 3 and 0 give 3/4 and 1/4."""
    log3 = Fraction(math.log(3))
    reading = oracle.Softmax([log3, Fraction(0)])
    assert abs(reading.distance([Fraction(1), Fraction(0)]) - mpmath.mpf(1) / 4) < 1e-16
    assert oracle.truth("selects", {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}, {"margin": 1.0})
    assert not oracle.truth("selects", {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}, {"margin": 1.1})
