"""Claims with a known truth, made from closed forms on integers: the algebra under test takes no part in it."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Made:
    text: str
    true: bool
    core: bool  # families, linear queries, limits: what the grammar's core must prove
    kind: str


def claims(count: int, seed: int = 0) -> list[Made]:
    rng = random.Random(seed)
    from generate_more import MAKERS

    makers = (weights, limits, outputs, scores, tokens, projections, variances, orders, gaps, lengths, *MAKERS)
    return [rng.choice(makers)(rng) for _ in range(count)]


def block(given: str, lets: str, then: str) -> str:
    let = f"let {lets}\n" if lets else ""
    return f"```claim made\ngiven {given}\n{let}then {then}\n```\n"


def family(rng: random.Random) -> tuple[str, str, str]:
    """What is given, the square of the norm as text, and the condition on it."""
    kind = rng.choice(["orthonormal", "orthogonal of norm beta", "orthogonal of norm 2"])
    square = {"orthonormal": "", "orthogonal of norm beta": "beta^2*", "orthogonal of norm 2": "4*"}[kind]
    return kind, square, ""


def query(rng: random.Random, items: str, distinct: bool = False) -> tuple[dict[str, int], str]:
    """Integer weights of named keys, and the query t*(...)."""
    factors = (
        rng.sample([-2, -1, 1, 2, 3, 4], len(items)) if distinct else [rng.choice([-1, 1, 1, 2, 3]) for _ in items]
    )
    weights = dict(zip(items, factors, strict=True))
    return weights, "t*(" + " + ".join(f"{w}*k_{i}" for i, w in weights.items()) + ")"


def exponent(square: str, weight: int) -> str:
    return f"exp({weight}*{square}t)"


def weights(rng: random.Random) -> Made:
    """alpha_x = e^(w_x β² t) / (Σ e^(w β² t) + n - m)."""
    items = rng.choice(["a", "ab", "abc"])
    kind, square, _ = family(rng)
    w, q = query(rng, items)
    x = rng.choice(items)
    total = " + ".join(exponent(square, w[i]) for i in items) + f" + n - {len(items)}"
    true = rng.random() < 0.5
    top, bottom = exponent(square, w[x]), total
    if not true:
        change = rng.choice(["sign", "factor", "count", "scale"])
        if change == "sign":
            top = exponent(square, -w[x])
        elif change == "factor":
            top = f"2*{top}"
        elif change == "count":
            bottom = total[: -len(str(len(items)))] + str(len(items) + 1)
        else:
            top = exponent(square, w[x] + 1)
    given = f"k_1..k_n {kind}, n >= {len(items) + rng.choice([1, 2])}, t real"
    return Made(block(given, f"q = {q}", f"alpha_{x} = {top}/({bottom})"), true, True, "weights")


def shares(w: dict[str, int]) -> tuple[dict[str, str], str]:
    """The limit of each named weight and of one other weight as t grows: the largest scores share equally."""
    best = max(*w.values(), 0)
    tops = [i for i, v in w.items() if v == best]
    m = len(w)
    if best == 0:
        count = f"(n - {m} + {len(tops)})"
        return {i: f"1/{count}" if i in tops else "0" for i in w}, f"1/{count}"
    return {i: f"1/{len(tops)}" if i in tops else "0" for i in w}, "0"


def limits(rng: random.Random) -> Made:
    items = rng.choice(["a", "ab", "abc"])
    kind, _, _ = family(rng)
    w, q = query(rng, items)
    named, other = shares(w)
    x = rng.choice([*items, "i"])
    to = other if x == "i" else named[x]
    where = f" for i != {', '.join(items)}" if x == "i" else ""
    if rng.random() < 0.2:
        q, where_t, scale = q.replace("t*(", "log(t)*(", 1), "t > 0", "t -> oo"
    else:
        where_t, scale = "t real", "t -> oo"
    true = rng.random() < 0.5
    if not true:
        change = rng.choice(["factor", "limit", "scale"])
        if change == "scale" and where_t == "t real":
            flipped, rest = shares({i: -v for i, v in w.items()})
            if (rest if x == "i" else flipped[x]) != to:
                scale = "t -> -oo"
            else:
                to = f"{to} + 1/7"
        elif change == "factor" and to != "0":
            to = f"2*{to}"
        else:
            to = f"{to} + 1/3" if to != "0" else "1/2"
    given = f"k_1..k_n {kind}, n >= {len(items) + 1}, {where_t}"
    return Made(block(given, f"q = {q}", f"alpha_{x} -> {to} as {scale}{where}"), true, True, "limits")


def outputs(rng: random.Random) -> Made:
    items = rng.choice(["a", "ab", "abc"])
    w, q = query(rng, items)
    w = {i: abs(v) for i, v in w.items()}
    q = "t*(" + " + ".join(f"{v}*k_{i}" for i, v in w.items()) + ")"
    best = max(w.values())
    tops = [i for i in items if w[i] == best]
    true = rng.random() < 0.5
    sides = [f"v_{i}" for i in tops]
    divisor = len(tops)
    if not true:
        change = rng.choice(["index", "factor", "sign"])
        if change == "index":
            sides[0] = "v_d"
        elif change == "factor":
            divisor += 1
        else:
            sides[0] = f"(-1)*{sides[0]}"
    given = f"k_1..k_n {family(rng)[0]}, n >= {len(items) + 2}"
    return Made(block(given, f"q = {q}", f"c -> ({' + '.join(sides)})/{divisor} as t -> oo"), true, True, "outputs")


def scores(rng: random.Random) -> Made:
    items = rng.choice(["ab", "abc"])
    kind, square, _ = family(rng)
    w, q = query(rng, items)
    x = rng.choice(items)
    true = rng.random() < 0.5
    value = w[x] if true else rng.choice([-w[x], 2 * w[x], w[x] + 1])
    given = f"k_1..k_n {kind}, n >= {len(items)}, t real"
    return Made(block(given, f"q = {q}", f"k_{x}'q = {value}*{square}t"), true, True, "scores")


def tokens(rng: random.Random) -> Made:
    """Three tokens over u_a..u_d with Q = K = V = I: integer scores times β²; the largest wins."""
    xs = [[rng.choice([0, 0, 1, 1, 2]) for _ in range(4)] for _ in range(3)]
    for x in xs:
        if not any(x):
            x[rng.randrange(4)] = 1
    lets = ", ".join(
        f"x_{i + 1} = " + " + ".join(f"{c}*u_{name}" for c, name in zip(x, "abcd", strict=True) if c)
        for i, x in enumerate(xs)
    )
    i, j = rng.randrange(3), rng.randrange(3)
    row = [sum(a * b for a, b in zip(xs[i], x, strict=True)) for x in xs]
    given = "u_a, u_b, u_c, u_d orthogonal of norm beta"
    true = rng.random() < 0.5
    if rng.random() < 0.5:
        value = row[j] if true else row[j] + rng.choice([-1, 1])
        total = " + ".join(f"exp({s}*beta^2)" for s in row)
        return Made(
            block(given, lets, f"alpha_{{{i + 1},{j + 1}}} = exp({value}*beta^2)/({total})"), true, True, "tokens"
        )
    best = [k for k in range(3) if row[k] == max(row)]
    wanted = [sum(xs[k][c] for k in best) for c in range(4)]
    divisor = len(best)
    if not true:
        wanted[rng.randrange(4)] += rng.choice([-1, 1])
    target = " + ".join(f"{c}*u_{name}" for c, name in zip(wanted, "abcd", strict=True) if c) or "0"
    return Made(block(given, lets, f"c_{i + 1} -> ({target})/{divisor} as beta -> oo"), true, True, "tokens")


def projections(rng: random.Random) -> Made:
    """(αAAᵀ + βBBᵀ)(Ax + By) = αAx + βBy."""
    a, b = rng.randint(-3, 3), rng.randint(-3, 3)
    true = rng.random() < 0.5
    c, e = (a, b) if true else rng.choice([(a + 1, b), (a, -b - 1), (b + 1, a - 1)])
    if not true and (c, e) == (a, b):
        c += 1
    given = "A, B orthonormal bases at right angles, x in R^m, y in R^p"
    lets = f"M = {a}*A*A' + {b}*B*B', s = A*x + B*y"
    return Made(block(given, lets, f"M*s = {c}*A*x + {e}*B*y"), true, True, "projections")


def variances(rng: random.Random) -> Made:
    """Var[k_x'q] = ε|q|² + w (μ_x'q)² for the widened key, ε|q|² for the others."""
    wa, wb = rng.randint(-2, 3), rng.randint(1, 3)
    wide = rng.choice(["1/2", "1/4", "2"])
    x = rng.choice("ab")
    square = wa * wa + wb * wb
    own = f" + {wide}*{wa * wa}" if x == "a" else ""
    true = rng.random() < 0.5
    if not true:
        square += rng.choice([1, 2])
    given = f"mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + {wide}*mu_a*mu_a'), n >= 3, t > 0"
    lets = f"q = t*({wa}*mu_a + {wb}*mu_b)"
    return Made(block(given, lets, f"Var[k_{x}'q] = t^2*({square}*eps{own})"), true, True, "variances")


def orders(rng: random.Random) -> Made:
    items = rng.choice(["ab", "abc"])
    w, q = query(rng, items, distinct=True)
    x, y = rng.sample(items, 2)
    op = ">" if w[x] > w[y] else "<"
    true = rng.random() < 0.5
    if not true:
        op = {">": "<", "<": ">"}[op]
    given = f"k_1..k_n {family(rng)[0]}, n >= {len(items)}, t > 0"
    return Made(block(given, f"q = {q}", f"alpha_{x} {op} alpha_{y}"), true, False, "orders")


def gaps(rng: random.Random) -> Made:
    """Scores that lie m below one: its weight is at least 1/(1 + (n-1)e^-m)."""
    given = "k_1..k_n free, q free, n >= 2, k_j'q - k_i'q >= m for i != j"
    true = rng.random() < 0.5
    good = [
        "alpha_j -> 1 as m -> oo",
        "c -> v_j as m -> oo",
        "alpha_j >= 1/(1 + (n - 1)*exp(-m))",
        "sum_i alpha_i = 1",
        "alpha_i -> 0 as m -> oo for i != j",
    ]
    bad = [
        "alpha_j -> 1/2 as m -> oo",
        "c -> -v_j as m -> oo",
        "alpha_j <= 1/(1 + (n - 1)*exp(-m))",
        "sum_i alpha_i = 2",
        "alpha_i -> 1 as m -> oo for i != j",
        "alpha_j >= 1/(1 + (n - 2)*exp(-m))",
        "alpha_j -> 1 as m -> -oo",
        "alpha_j > 1/2",
    ]
    return Made(block(given, "", rng.choice(good if true else bad)), true, False, "gaps")


def lengths(rng: random.Random) -> Made:
    """A key of length γ against one of length 1: the longer one wins."""
    given = "mu_1..mu_n orthonormal, gamma real, n >= 3"
    lets = "k_i = mu_i, k_a = gamma*mu_a, q = t*(mu_a + mu_b)"
    true = rng.random() < 0.5
    good = [
        "c -> v_a as t -> oo when gamma > 1",
        "c -> v_b as t -> oo when gamma < 1",
        "alpha_b -> 1 as t -> oo when gamma < 1/2",
        "alpha_a ~= 1/(1 + exp(t*(1 - gamma))) as t -> oo",
    ]
    bad = [
        "c -> v_a as t -> oo when gamma < 1",
        "c -> v_b as t -> oo when gamma > 1",
        "alpha_b -> 1 as t -> oo when gamma > 3/2",
        "alpha_a ~= 1/(1 + exp(t*(gamma - 1))) as t -> oo",
        "c -> v_a as t -> oo",
    ]
    return Made(block(given, lets, rng.choice(good if true else bad)), true, False, "lengths")
