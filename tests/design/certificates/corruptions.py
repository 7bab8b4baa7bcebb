"""Small genuine certificates of every kind, and random corruptions of them; some leave the statement true."""

import contextlib
import dataclasses
import functools
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

import qkv
from qkv.design.certificates.certificate import Certificate, load
from qkv.design.certificates.statements import KINDS

SOURCES = {}
"""Makers of small genuine certificates, by what they are about; each takes a seed."""


def source(make):
    SOURCES[make.__name__.replace("_", " ")] = make
    return make


def gaussian(seed, n=6, d=4):
    rng = np.random.default_rng(seed)
    return qkv.Memory(rng.normal(size=(n, d)), values=rng.normal(size=(n, 3)))


@source
def copying(seed):
    memory = gaussian(seed)
    item = int(qkv.design.copyable(memory.keys).vertices[0])
    return qkv.design.copy(memory, item, tol=1e-3).certificate


@source
def blending(seed):
    return qkv.design.blend(gaussian(seed, d=6), {1: 0.5, 4: 0.5}, tol=1e-2).certificate


@source
def weighted_blending(seed):
    return qkv.design.blend(gaussian(seed, d=6), {0: 0.2, 3: 0.7, 5: 0.1}, tol=1e-3).certificate


@source
def blending_everything(seed):
    return qkv.design.blend(gaussian(seed, n=3, d=4), {0: 0.2, 1: 0.3, 2: 0.5}, tol=1e-3).certificate


@source
def nearest_blend(seed):
    return qkv.design.blend(gaussian(seed, n=8, d=2), {0: 0.5, 1: 0.3, 2: 0.2}, tol=1e-3).certificate


@source
def textbook(seed):
    memory = qkv.Memory.orthonormal(n=6, d=7, seed=seed)
    return qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=1e-2, form="textbook").certificate


@source
def smallest_orthonormal(seed):
    return qkv.design.copy(qkv.Memory.orthonormal(n=5, d=5, seed=seed), 2, tol=1e-3).certificate


@source
def clash_of_ratios(seed):
    """Keys on a line at 0, 1, 2: the ratios of three of them cannot be 1 : 2 : 1."""
    rng = np.random.default_rng(seed)
    keys = np.vstack([np.outer([0, 1, 2], rng.integers(1, 5, size=3)), rng.integers(-9, 9, size=(2, 3))])
    made = qkv.design.blend(qkv.Memory(keys.astype(float)), {0: 0.25, 1: 0.5, 2: 0.25}, tol=1e-2).obstacle
    assert made.kind == "no query"
    return made


@source
def any_query_within_tol(seed):
    return qkv.design.blend(gaussian(seed, d=6), {0: 0.2, 3: 0.7, 5: 0.1}, tol=1e-2).within_bound


@source
def no_query_nearer(seed):
    return qkv.design.blend(gaussian(seed, n=8, d=2), {0: 0.5, 1: 0.3, 2: 0.2}, tol=1e-3).distance_bound or (
        any_query_within_tol(seed)
    )


@source
def twins_read_apart(seed):
    """Tokens 1 and 2 are one vector, so nobody reads one of them alone."""
    X = np.random.default_rng(seed).integers(-3, 4, size=(4, 2))[[0, 1, 1, 2]].astype(float)
    evidence = {"multipliers": [[0.0, 1, 0, 0], [0.0, 0, 0, 0]], "mix": [[0.0, 1, 1, 0], [1.0, 0, 0, 1]]}
    wanted = [[0.0, 1, 0, 0], [0.5, 0, 0, 0.5]]
    return Certificate.issue("no wiring within tol", {"X": X, "rules": [0, 3], "wanted": wanted, "tol": 0.1} | evidence)


@source
def no_query_by_hand(seed):
    """The wanted key is nearly between two others, so that only a long query reads it."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(5, 3))
    keys[0] = 0.25 * keys[1] + 0.75 * keys[2] + 1e-3 * rng.normal(size=3)
    data = {"keys": keys, "items": [0], "wanted": [1.0], "multipliers": [0.0], "tol": 0.01}
    return Certificate.issue("no query", data | {"others": [1, 2, 4], "mix": [0.25, 0.75, 1e-6]})


@source
def selecting(seed):
    answers = qkv.design.copyable(np.random.default_rng(seed).normal(size=(6, 3)))
    return answers[int(answers.vertices[0])].certificate


@source
def top_items(seed):
    """A causal head: each query reads the keys up to its own."""
    rng = np.random.default_rng(seed)
    keys, queries = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    items = [int(np.argmax(keys[: r + 2] @ q)) for r, q in enumerate(queries)]
    data = {"keys": keys, "queries": queries, "items": items, "first": [0] * 5, "last": [1, 2, 3, 4, 5]}
    return Certificate.issue("top item", data)


@source
def inside(seed):
    answers = qkv.design.copyable(np.random.default_rng(seed).normal(size=(12, 2)))
    return answers[int(answers.interior[0])].certificate


@source
def exactly_inside(seed):
    rng = np.random.default_rng(seed)
    keys = np.vstack([[[0, 0], [4, 0], [0, 4], [1, 1]], rng.integers(5, 9, size=(2, 2))]).astype(float)
    made = qkv.design.copy(qkv.Memory(keys), 3, tol=1e-3).obstacle
    assert "exact" in made.claims
    return made


@source
def copyable(seed):
    return qkv.design.copyable(np.random.default_rng(seed).normal(size=(8, 2))).certificate


@source
def projecting(seed):
    rng = np.random.default_rng(seed)
    return qkv.design.project(rng.normal(size=(4, 2)), rng.normal(size=(4, 1))).certificate


@source
def meeting(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 2))
    b = np.column_stack([a @ rng.normal(size=2), rng.normal(size=4)])
    made = qkv.design.project(a, b).certificate
    assert made.kind == "intersection" and "exact" not in made.claims
    return made


@source
def meeting_exactly(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, size=(4, 2)) + np.eye(4, 2) * 9.0
    b = np.column_stack([a @ [1.0, 2.0], rng.integers(-4, 5, size=4) + 20.0 * np.eye(4)[3]])
    made = qkv.design.project(a, b).certificate
    assert "exact" in made.claims
    return made


@source
def wiring(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 3))
    return qkv.design.wire(X, {0: 2, 1: {0: 0.5, 2: 0.5}}, {0: X[1], 1: X[0]}, tol=1e-2).certificate


@source
def no_wiring(seed):
    X = np.random.default_rng(seed).normal(size=(4, 2))
    X[3] = 0.5 * (X[1] + X[2])
    evidence = {"mix": [[0.0, 0.5, 0.5, 0.0]], "multipliers": np.zeros((1, 4))}
    return Certificate.issue("no wiring", {"X": X, "rules": [0], "wanted": [[0.0, 0, 0, 1]], "tol": 1e-2} | evidence)


@source
def unreachable(seed):
    a, b, c, d = 3 * np.eye(4)
    X = np.stack([d + b, a, c + b]) + np.random.default_rng(seed).normal(size=(3, 4)) * 0.1 * [1, 1, 0, 1]
    return qkv.design.reach(X, 1, along=(c if seed % 2 else d), target=b).certificate


# Statements about texts: the checker may refuse true ones, which it cannot show

TEXT_SOURCES = {}
"""Like SOURCES; oracle_texts judges these."""


def text_source(make):
    TEXT_SOURCES[make.__name__.replace("_", " ")] = make
    return make


def vocabulary(seed, length=4):
    rng = np.random.default_rng(seed)
    return qkv.design.Vocabulary.side_by_side(rng.integers(-2, 3, size=(3, 3)) + 4.0 * np.eye(3), length=length)


@text_source
def every_previous(seed):
    return qkv.design.wire_texts(vocabulary(seed), qkv.design.previous(), tol=1e-2).certificate


@text_source
def every_duplicate(seed):
    return qkv.design.wire_texts(vocabulary(seed), qkv.design.duplicate(), tol=1e-2).certificate


@text_source
def every_duplicate_with_a_sink(seed):
    return qkv.design.wire_texts(vocabulary(seed), qkv.design.duplicate(sink=0), tol=1e-2).certificate


@text_source
def every_induction(seed):
    return qkv.design.wire_texts(vocabulary(seed, 3), qkv.design.induction(), tol=1e-2).certificate


def sequences(seed):
    rng = np.random.default_rng(seed)
    tokens, positions = rng.normal(size=(3, 2)), rng.normal(size=(4, 6))
    return qkv.design.Sequences(qkv.design.Vocabulary(tokens, positions), [[0, 1, 1, 2], [1, 1, 0]])


@text_source
def given_duplicate(seed):
    return qkv.design.wire_texts(sequences(seed), qkv.design.duplicate(), tol=1e-2).certificate


@text_source
def given_reads(seed):
    return qkv.design.wire_texts(sequences(seed), [{2: 1, 3: [0, 2]}, {1: 0}], tol=1e-2).certificate


@text_source
def no_head(seed):
    return Certificate.issue("no head for given texts", given_reads(seed).data)


# The saved file as plain lists, and back


def unpack(path):
    if path.suffix == ".json":
        return json.loads(path.read_text())["certificates"][0]
    with safe_open(path, framework="np") as handle:
        (entry,) = json.loads(handle.metadata()["certificates"])
        for key in handle.keys():  # noqa: SIM118 - not a mapping
            _, part, name = key.split(".", 2)
            entry[part][name] = handle.get_tensor(key).tolist()
    return entry


def canonical(value):
    """Numbers as a file may hold them: infinities as strings, and no true or false beside numbers."""
    if isinstance(value, list):
        return [canonical(v) for v in value]
    if isinstance(value, dict):
        return {name: canonical(v) for name, v in value.items()}
    if isinstance(value, bool):
        return float(value)
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def pack(entry, path):
    entry = canonical(entry)
    if path.suffix == ".json":
        path.write_text(json.dumps({"format": "qkv-certificate/1", "certificates": [entry]}))
        return
    arrays, rest = {}, {"kind": entry["kind"], "data": {}, "claims": {}}
    for part in ("data", "claims"):
        for name, value in entry[part].items():
            if isinstance(value, list):
                arrays[f"0.{part}.{name}"] = np.array(
                    [float(v) if isinstance(v, str) else v for v in value], dtype=float
                )
            else:
                rest[part][name] = value
    metadata = {"format": "qkv-certificate/1", "certificates": json.dumps([rest])}
    save_file(arrays, path, metadata=metadata)


@functools.cache
def saved(name, seed, suffix):
    """A genuine certificate as it stands in its file; as text, so that no test can change another's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"c{suffix}"
        {**SOURCES, **TEXT_SOURCES}[name](seed).save(path)
        assert load(path)[0].verify(), load(path)[0].verify().why
        return json.dumps(unpack(path))


# Corruptions: each changes an entry in place

INDICES = {
    "items", "item", "indices", "rules", "token", "others", "offsets", "possible", "first", "last", "ids", "lengths",
    "reads", "sink",
}  # fmt: skip
WORDS = {"rule"}
SMALL = (1e-15, 1e-12, 1e-9, 1e-6)
FACTORS = (-1.0, 0.0, 0.5, 2.0, 0.1, 10.0, 100.0, 1 - 1e-3, 1 + 1e-3)


def nudged(rng, x):
    """Another number: off by a hair or grossly, up or down."""
    if rng.random() < 0.5:
        return x * (1 + float(rng.choice(SMALL)) * float(rng.choice([-1, 1])))
    return x * float(rng.choice(FACTORS)) if x else float(rng.choice([1e-300, -1e-9, 1.0]))


def corners(value, path=()):
    """Where the numbers are, in lists of lists."""
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in corners(v, (*path, i))]
    return [path]


def change(rng, holder, name, how):
    paths = corners(holder[name])
    if not paths:
        return
    path = paths[rng.integers(len(paths))]
    place, key = holder, name
    for step in path:
        place, key = place[key], step
    place[key] = how(float(place[key]))


def a_bound(rng, entry):
    names = sorted(entry["claims"])
    name = names[rng.integers(len(names))]
    steps = [lambda x: nudged(rng, x)] * 6 + [lambda x: math.nextafter(x, 9e9), lambda x: math.nextafter(x, -9e9)]
    change(rng, entry["claims"], name, steps[rng.integers(len(steps))])


def an_entry(rng, entry):
    names = sorted(set(entry["data"]) - INDICES - WORDS)
    change(rng, entry["data"], names[rng.integers(len(names))], lambda x: nudged(rng, x))


def an_index(rng, entry):
    names = sorted(set(entry["data"]) & INDICES)
    step = float(rng.choice([1, 1, -1, -1, 2, 0.5, 1e-7, 100]))
    if names:
        change(rng, entry["data"], names[rng.integers(len(names))], lambda x: x + step)


def two_rows(rng, entry):
    names = sorted(n for n, v in entry["data"].items() if isinstance(v, list) and len(v) > 1)
    rows = entry["data"][names[rng.integers(len(names))]]
    i, j = rng.choice(len(rows), size=2, replace=False)
    rows[i], rows[j] = rows[j], rows[i]


def exchanged_claims(rng, entry):
    names = sorted(entry["claims"])
    a, b = names[0], names[-1]
    entry["claims"][a], entry["claims"][b] = entry["claims"][b], entry["claims"][a]


def claims_of_another(rng, entry):
    """Those of another certificate, most often one of the same kind, or that certificate's kind."""
    name = str(rng.choice(list(SOURCES)))
    other = json.loads(saved(name, int(rng.integers(2)), ".json"))
    if rng.random() < 0.3:
        entry["kind"] = other["kind"]
    elif rng.random() < 0.5:
        entry["claims"] = other["claims"]
    else:
        entry["claims"] |= other["claims"]


def fewer_claims(rng, entry):
    names = sorted(entry["claims"])
    del entry["claims"][names[rng.integers(len(names))]]


def more_claims(rng, entry):
    name = str(rng.choice(["exact", "output", "norm_at_least", "coordinates", "margin", "certain"]))
    entry["claims"][name] = float(rng.choice([0.0, 1e-9, 1.0, math.inf]))
    entry["claims"][name] = "inf" if math.isinf(entry["claims"][name]) else entry["claims"][name]


def the_tolerance(rng, entry):
    if "tol" in entry["data"]:
        entry["data"]["tol"] = float(rng.choice([1 + 1e-9, 1 - 1e-9, 1.1, 0.9, 10, 200])) * entry["data"]["tol"]


def looser(rng, entry):
    """Bounds that claim a little less, so that a small change elsewhere may leave them true."""
    smaller = ("norm_at_least", "margin", "radius")
    part = float(rng.choice([1e-9, 1e-3, 0.5]))
    for name, value in entry["claims"].items():
        down = name in smaller or entry["kind"] == "unreachable"
        ease = [float(v) - abs(float(v)) * part * (1 if down else -1) for v in np.atleast_1d(value)]
        if name != "exact":
            entry["claims"][name] = ease if isinstance(value, list) else ease[0]


# Numbers of extreme sizes: what float64 loses to underflow must prove nothing

UNITS = {
    "weights": (
        {"keys": 1, "query": -1, "norm_at_least": -1}, {"values": 1, "output": 1}, {"multipliers": 1},
    ),
    "no query": ({"keys": 1, "norm_at_least": -1}, {"mix": 1}, {"multipliers": 1}),
    "no query within tol": ({"keys": 1, "norm_at_least": -1}, {"mix": 1}, {"multipliers": 1}),
    "selects": ({"keys": 1, "margin": 1}, {"query": 1}),
    "top item": ({"keys": 1, "radius": 1}, {"queries": 1}),
    "inside": ({"keys": 1, "margin_at_most": 1}, {"weights": 1}),
    "copyable": ({"keys": 1, "margin": 1, "margin_at_most": 1}, {"queries": 1}, {"weights": 1}),
    "projection": ({"A": 1, "keeps": 1, "C": -1}, {"B": 1, "removes": 1}),
    "intersection": ({"A": 1, "x": -1}, {"B": 1, "y": -1}, {"x": 1, "y": 1}),
    "wiring": (
        {"X": 1, "Q": -1, "K": -1, "V": -1, "norm_at_least": -2}, {"Q": 1, "K": -1}, {"multipliers": 1},
        {"V": 1, "writes": 1, "output": 1, "residual": 1},
    ),
    "no wiring": ({"X": 1, "norm_at_least": -2}, {"mix": 1, "multipliers": 1}),
    "no wiring within tol": ({"X": 1, "norm_at_least": -2}, {"mix": 1}, {"multipliers": 1}),
    "unreachable": (
        {"X": 1, "along": 1, "Q": -1, "K": -1, "V": -1}, {"Q": 1, "K": -1}, {"V": 1, "target": 1, "distance": 1},
        {"along": 1, "range": -1}, {"normal": 1},
    ),
    "given texts": (
        {"tokens": 1, "positions": 1, "Q": -1, "K": -1, "norm_at_least": -2}, {"Q": 1, "K": -1}, {"multipliers": 1},
    ),
    "no head for given texts": (
        {"tokens": 1, "positions": 1, "Q": -1, "K": -1, "norm_at_least": -2}, {"Q": 1, "K": -1}, {"multipliers": 1},
    ),
    "every text": (
        {"tokens": 1, "positions": 1, "Q": -1, "K": -1, "Q1": -1, "K1": -1}, {"Q": 1, "K": -1}, {"Q1": 1, "K1": -1},
        {"V1": 1, "O1": -1},
    ),
}  # fmt: skip
"""By kind: what can be multiplied together, with the powers, and leaves the statement as true as it was."""
POWERS = (1, 10, 52, 100, 300, 400, 500, 537, 545, 600, 700, 900, 1000, 1022)


def times_power(value, power):
    """Numbers times a power of two; infinite where that is no float64 any more."""
    if isinstance(value, list):
        return [times_power(v, power) for v in value]
    try:
        return math.ldexp(float(value), power)
    except OverflowError:
        return math.copysign(math.inf, float(value))


def finite(value):
    return all(map(finite, value)) if isinstance(value, list) else math.isfinite(float(value))


def put(entry, name, changed):
    """The changed numbers in place of the old ones, unless one of them has become infinite."""
    if finite(changed):
        entry["data" if name in entry["data"] else "claims"][name] = changed


def other_units(rng, entry):
    """The same statement in other units; true as before, but for what the least number takes off."""
    if entry["kind"] not in UNITS:
        return
    choices = UNITS[entry["kind"]]
    together, sign = choices[rng.integers(len(choices))], int(rng.choice([-1, 1]))
    power = sign * int(rng.choice(POWERS))
    for name, share in together.items():
        old = entry["data"].get(name, entry["claims"].get(name))
        if old is not None and not isinstance(old, str):
            put(entry, name, times_power(old, share * power))


def one_size(rng, entry):
    """One array, row, column or number by itself, a few units or the whole range away."""
    names = sorted(n for n in {**entry["data"], **entry["claims"]} if n not in INDICES | WORDS | {"tol", "wanted"})
    name, power = names[rng.integers(len(names))], int(rng.choice([-1, 1])) * int(rng.choice(POWERS))
    value = entry["data"].get(name, entry["claims"].get(name))
    if isinstance(value, str):
        return
    if not isinstance(value, list) or not value or rng.random() < 0.4:
        put(entry, name, times_power(value, power))
    elif isinstance(value[0], list) and rng.random() < 0.5:
        column = int(rng.integers(len(value[0])))
        put(entry, name, [[times_power(v, power * (j == column)) for j, v in enumerate(row)] for row in value])
    else:
        row = int(rng.integers(len(value)))
        put(entry, name, [times_power(v, power * (i == row)) for i, v in enumerate(value)])


def beside_a_huge_one(rng, entry):
    """A huge number in a new place beside tiny ones, so that a common scale pushes those below the least number."""
    name = next((n for n in ("keys", "X", "tokens", "A") if n in entry["data"]), None)
    if name:
        rows = entry["data"][name]
        rows[int(rng.integers(len(rows)))][int(rng.integers(len(rows[0])))] = math.ldexp(1.0, int(rng.choice(POWERS)))


def more_from_other_multipliers(rng, entry):
    """A norm bound that is raised, with multipliers of another size, which would prove just what the old ones do."""
    if "norm_at_least" in entry["claims"] and "multipliers" in entry["data"]:
        power = int(rng.choice([-1, 1])) * int(rng.choice(POWERS))
        put(entry, "multipliers", times_power(entry["data"]["multipliers"], power))
        factor = float(rng.choice([1.01, 2.0, 1e10]))
        raised = [factor * float(v) for v in np.atleast_1d(entry["claims"]["norm_at_least"])]
        put(entry, "norm_at_least", raised if len(raised) > 1 else raised[0])


EXTREMES = (other_units, other_units, one_size, beside_a_huge_one, more_from_other_multipliers)


@contextlib.contextmanager
def float64_first():
    """Has every certificate tried in float64 first, however small it is."""
    kept = dict(KINDS)
    KINDS.update({kind: dataclasses.replace(spec, float64_first=lambda data: True) for kind, spec in kept.items()})
    try:
        yield
    finally:
        KINDS.update(kept)


def extreme(rng, entry):
    """Other sizes, and mostly another corruption before or after."""
    steps = [EXTREMES[rng.integers(len(EXTREMES))] for _ in range(1 + int(rng.random() < 0.5))]
    if rng.random() < 0.7:
        steps.insert(int(rng.integers(len(steps) + 1)), corrupt)
    for step in steps:
        step(rng, entry)


CORRUPTIONS = (
    a_bound, a_bound, an_entry, an_entry, an_index, two_rows, exchanged_claims, claims_of_another, fewer_claims,
    more_claims, the_tolerance,
)  # fmt: skip


def corrupt(rng, entry):
    if rng.random() < 0.6:
        looser(rng, entry)
    for _ in range(1 if rng.random() < 0.8 else 2):
        if entry["claims"]:
            CORRUPTIONS[rng.integers(len(CORRUPTIONS))](rng, entry)
