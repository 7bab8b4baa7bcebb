# ruff: noqa: E501
"""Claims with a known truth whose falsehood shows only at an edge: ties, ends of ranges, special vectors, far scales.

Truth comes from whole numbers and well-known identities, never from the checker.
"""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb, exp, isqrt

from generate import Made, block

FREE = "k_1..k_n free, q free"


def edge_claims(count: int, seed: int = 0) -> list[Made]:
    """So many claims, each maker in turn."""
    rng = random.Random(seed)
    return [MAKERS[j % len(MAKERS)](rng) for j in range(count)]


def made(given: str, let: str, then: str, true: bool, kind: str) -> Made:
    text = block(given, let, then) if given else f"```claim made\n{f'let {let}' if let else ''}\nthen {then}\n```\n"
    return Made(text, true, False, kind)


def fraction(rng: random.Random) -> Fraction:
    return Fraction(rng.randint(1, 9), rng.choice([1, 2, 3, 4, 5, 7, 8]))


def isolated(rng: random.Random) -> Made:
    """A square that vanishes at one number, times something positive."""
    at, other = fraction(rng), rng.choice(["1", "exp(t)", "exp(-t)", "(1 + t^2)", "(2 + t^4)"])
    given, inside = rng.choice([("t real", True), ("t > 0", True), (f"t > {at}", False), (f"t >= {at}", True)])
    op = rng.choice([">", ">="])
    return made(given, "", f"{other}*(t - {at})^2 {op} 0", op == ">=" or not inside, "isolated")


def apart(rng: random.Random) -> Made:
    """A polynomial with two double roots, moved up or down by a little."""
    one, two, by = rng.randint(-4, 4), rng.randint(-4, 4), rng.choice([-1, 0, 1])
    op = rng.choice([">", ">="])
    shift = f" {'+' if by >= 0 else '-'} {abs(by)}/1000"
    return made(
        "t real", "", f"(t - ({one}))^2*(t - ({two}))^2{shift} {op} 0", by > 0 or (by == 0 and op == ">="), "apart"
    )


def irrational(rng: random.Random) -> Made:
    """A square that vanishes at a root."""
    p = rng.randint(2, 12)
    op = rng.choice([">", ">=", "!="])
    value = f"(t^2 - {p})^2" if op != "!=" else f"t^2 - {p}"
    return made("t > 0", "", f"{value} {op} 0", op == ">=", "irrational")


def ends(rng: random.Random) -> Made:
    """A monotone function at the end of its range."""
    low, high = sorted(rng.sample(range(-3, 6), 2))
    closed, op = rng.random() < 0.5, rng.choice(["<", "<="])
    f = rng.choice(["t", "exp(t)", "t^3", "exp(2*t) + t", "Phi(t)"])
    given = f"{low} <= t {'<=' if closed else '<'} {high}"
    return made(given, "", f"{f} {op} {f.replace('t', f'({high})').replace(f'({high})^3', f'({high})^3')}"
                if f != "exp(t)" else f"exp(t) {op} exp({high})", op == "<=" or not closed, "ends")  # fmt: skip


def when(rng: random.Random) -> Made:
    """The same under `when`."""
    at, op, strict = rng.randint(1, 5), rng.choice([">", ">="]), rng.random() < 0.5
    return made("t real", "", f"exp(t)*t {op} {at}*exp({at}) when t {'>' if strict else '>='} {at}",
                op == ">=" or strict, "when")  # fmt: skip


def equal_numbers(rng: random.Random) -> Made:
    condition, op = rng.choice([">=", ">"]), rng.choice([">", ">="])
    f = rng.choice(["exp({})", "{}^3", "{} + exp({})", "exp({}) - exp(-{})"])
    return made(f"s {condition} t, t real", "", f"{f.replace('{}', 's')} {op} {f.replace('{}', 't')}",
                op == ">=" or condition == ">", "equal numbers")  # fmt: skip


def parallel(rng: random.Random) -> Made:
    """Cauchy and Schwarz, with a factor below, at or above 1."""
    factor, op = rng.choice([Fraction(9, 10), Fraction(1), Fraction(11, 10)]), rng.choice(["<", "<="])
    sign = rng.choice(["", "-"])
    return made(f"{FREE}, n >= 2", "", f"{sign}k_a'q {op} {factor}*norm(k_a)*norm(q)",
                factor >= 1 and op == "<=", "parallel")  # fmt: skip


def triangle(rng: random.Random) -> Made:
    sign, op, more = rng.choice("+-"), rng.choice(["<", "<="]), rng.choice(["", " + 1"])
    return made(f"{FREE}, n >= 2", "", f"norm(k_a {sign} k_b) {op} norm(k_a) + norm(k_b){more}",
                op == "<=" or bool(more), "triangle")  # fmt: skip


def opposite(rng: random.Random) -> Made:
    then, true = rng.choice([
        ("norm(q + k_a) >= norm(q)", False), ("norm(q + k_a)^2 >= norm(q)^2 + 2*k_a'q", True),
        ("norm(k_a + k_b)^2 + norm(k_a - k_b)^2 = 2*norm(k_a)^2 + 2*norm(k_b)^2", True),
        ("norm(k_a + k_b)^2 >= norm(k_a)^2", False), ("norm(k_a - k_b) != 0", False), ("norm(k_a) > 0", False),
        ("norm(k_a)^2 + norm(k_b)^2 >= 2*k_a'k_b", True), ("norm(k_a)^2 + norm(k_b)^2 > 2*k_a'k_b", False),
        ("norm(k_a)^2 + norm(k_b)^2 + k_a'k_b > 0", False), ("norm(c) <= norm(v_a) + norm(v_b)", False),
    ])  # fmt: skip
    return made(f"{FREE}, n >= 2", "", then, true, "opposite")


def free_weights(rng: random.Random) -> Made:
    least = rng.choice([1, 2])
    then, true = rng.choice([
        ("alpha_a < 1", least == 2), ("alpha_a <= 1", True), ("alpha_a > 0", True), ("alpha_a >= 1/1000", False),
        ("alpha_a <= 999/1000", False), ("sum_{i != a} alpha_i > 0", least == 2), ("sum_{i != a} alpha_i >= 0", True),
        ("alpha_a*(1 - alpha_a) <= 1/4", True), ("alpha_a*(1 - alpha_a) < 1/4", False),
        ("alpha_a*(1 - alpha_a) <= 249/1000", False), ("alpha_a^2 <= alpha_a", True), ("alpha_a^2 < alpha_a", least == 2),
    ])  # fmt: skip
    return made(f"{FREE}, n >= {least}", "", then, true, "free weights")


def compared(rng: random.Random) -> Made:
    """Weights under a condition on scores."""
    condition, op = rng.choice([">=", ">", "="]), rng.choice([">", ">=", "="])
    true = {">": condition == ">", ">=": True, "=": condition == "="}[op]
    return made(f"{FREE}, n >= 2, k_a'q {condition} k_b'q", "", f"alpha_a {op} alpha_b", true, "compared")


def margin(rng: random.Random) -> Made:
    """All other scores lie below by at least log(p): the weight is at least p/(p + n - 1)."""
    p, less = rng.randint(2, 6), rng.choice([0, 0, 1])
    op = rng.choice([">", ">="])
    return made(f"{FREE}, n >= 3, k_j'q - k_i'q >= log({p}) for i != j", "",
                f"alpha_j {op} {p + 1 - less}/({p + 1 - less} + n - 1)" if less == 0 else f"alpha_j {op} {p}/({p} + n - 1)",
                less == 1 and op == ">=", "margin")  # fmt: skip


def far(rng: random.Random) -> Made:
    then, true = rng.choice([
        ("sqrt(t) < 900", False), ("exp(-t) > 1/100000", False), ("t/(1 + t) < 1", True), ("t/(1 + t) < 9999/10000", False),
        ("log(t) > -9", False), ("log(1 + t) < t", True), ("log(1 + t) < t - t^2/10", False), ("exp(t) > 1 + t + t^2/2", True),
        ("exp(t) > 1 + t + t^2", False), ("exp(t) >= 3*t", False), ("exp(t) >= 2*t", True), ("exp(-1/t) < 1", True),
        ("t^3 - 1000*t^2 < 0", False), ("t + 1/t >= 2", True), ("t + 1/t > 2", False), ("1/t < 100000", False),
    ])  # fmt: skip
    return made("t > 0", "", then, true, "far")


def counts(rng: random.Random) -> Made:
    """Comparisons of whole numbers, decided by trying."""
    p, q = rng.randint(2, 5), rng.randint(2, 40)
    form, f = rng.choice([
        (f"2^n > n^{p}", lambda n: 2**n > n**p), (f"{p}^n >= n^2", lambda n: p**n >= n * n),
        (f"n^2 + {q} > {p + 4}*n", lambda n: n * n + q > (p + 4) * n), (f"n^2 - n + {q} != {p * p + q}*1", lambda n: n * n - n != p * p),
        (f"{q}*n >= n", lambda n: q * n >= n),
    ])  # fmt: skip
    return made("n >= 1", "", form, all(f(n) for n in range(1, 400)), "counts")


def slow_limits(rng: random.Random) -> Made:
    p, true = rng.randint(1, 6), rng.random() < 0.5
    off = "" if true else rng.choice([" + 1/1000", " - 1/50", " + 1"])
    keys = "k_1..k_n orthonormal, n >= 3"
    given, let, then = rng.choice([
        ("t > 0", "", f"log(exp({p}*t) + {p})/t -> {p}{off} as t -> oo"),
        ("t > 0", "", f"t*log(1 + {p}/t) -> {p}{off} as t -> oo"),
        ("t > 0", "", f"(exp({p}*t) - 1)/t -> {p}{off} as t -> 0"),
        ("t > 0", "", f"sqrt(t^2 + {2 * p}*t) - t -> {p}{off} as t -> oo"),
        ("t > 0", "", f"t^{p}*exp(-t) -> 0{off} as t -> oo"),
        ("t > 1", "", f"log(t)^{p}/t -> 0{off} as t -> oo"),
        (keys, f"q = {p}*t*k_a", f"exp({p}*t)*(0 - log(alpha_a)) -> n - 1{off} as t -> oo"),
        (keys, f"q = {p}*t*k_a", f"log(sum_i exp(k_i'q))/t -> {p}{off} as t -> oo"),
        ("0 < s < 1/100", "", f"log(1 + exp(s*t))/t -> s{off} as t -> oo"),
        ("t > 0", "", f"(1 + 1/t)^({p}*t)*exp(-{p}) -> 1{off} as t -> oo"),
    ])  # fmt: skip
    return made(given, let, then, true, "slow limits")


def moments(rng: random.Random) -> Made:
    true = rng.random() < 0.5
    more = "" if true else rng.choice(["*101/100", "*2"])
    p = rng.choice([2, 4, 6, 8])
    double = {2: 1, 4: 3, 6: 15, 8: 105}[p]
    given, then = rng.choice([
        ("gamma ~ N(0, 1)", f"E[gamma^{p}] = {double}{more}"),
        ("gamma ~ N(0, 4)", f"E[gamma^{p}] = {double * 2**p}{more}"),
        ("gamma_a ~ N(0, 1), gamma_b ~ N(0, 1)", "E[gamma_a*gamma_b] = 0" + ("" if true else " + 1/100")),
        ("gamma ~ N(0, 1)", f"Var[gamma^2] = 2{more}"),
        ("gamma ~ N(0, 1)", f"Cov[gamma, gamma^3] = 3{more}"),
        ("gamma ~ N(1, 1)", f"E[gamma^3] = 4{more}"),
        ("gamma ~ N(0, 1)", f"E[exp(2*gamma)] = exp(2){more}"),
        ("gamma ~ N(0, 1), s real", f"E[exp(s*gamma)] = exp(s^2/2){more}"),
        ("gamma ~ N(0, 1)", f"P[gamma > 0] = 1/2{more}"),
        ("gamma ~ N(0, 1)", f"E[gamma^4]/Var[gamma^2] = 3/2{more}"),
    ])  # fmt: skip
    return made(given, "", then, true, "moments")


def never(rng: random.Random) -> Made:
    p, q = rng.randint(1, 6), rng.randint(1, 9)
    then, true = rng.choice([
        (f"exp(r) + {p}*r = {q}", False), (f"exp(r) + {p} = 0", True), (f"r^2 + {p}*r + {q} = 0", p * p < 4 * q),
        (f"r^3 = {p}", False), (f"r^2 = -{p}", True), (f"exp(-r^2) = {p}", p > 1), (f"exp(r)*r = {p}", False),
        (f"{p}*r = {q}*r + 1", p == q), (f"r^2 = {p}", False), (f"r^2 < 1 - {p}", True),
    ])  # fmt: skip
    return made("r real", "", f"no real r makes {then}", true, "never")


def roots_in_range(rng: random.Random) -> Made:
    p = rng.randint(2, 30)
    root = isqrt(p)
    inside = root < p**0.5 < root + 1 or root**2 == p
    return made(
        f"{root} < r < {root + 1}", "", f"no real r makes r^2 = {p}", not (inside and root**2 != p), "root in range"
    )


def tiny(rng: random.Random) -> Made:
    """Differences that floating point hardly sees."""
    scale = rng.choice([10**3, 10**6, 10**8])
    then, true = rng.choice([
        (f"exp(s)*exp(t) = exp(s + t) + (s - t)^2/{scale}", False), ("exp(s)*exp(t) = exp(s + t)", True),
        (f"(s + t)^3 = s^3 + 3*s^2*t + 3*s*t^2 + t^3 + s/{scale}", False), ("log(exp(s)*exp(t)) = s + t", True),
        (f"log(exp(s) + exp(-{rng.randint(60, 90)})) = s", False), ("exp(s)*exp(-s) = 1", True),
        ("sqrt(exp(2*s)) = exp(s)", True), (f"exp(s) != exp(s) + exp(-{rng.randint(40, 90)})", True),
        (f"exp(s + {scale}/{scale**2 if scale < 10**4 else scale}) > exp(s)", True),
    ])  # fmt: skip
    return made("s real, t real", "", then, true, "tiny")


def letters(rng: random.Random) -> Made:
    """Vectors of one declaration are orthogonal to each other, also with different letters."""
    norm = rng.choice([1, 2, 3])
    then, true = rng.choice([
        ("u_a'p_a = 0", True), ("u_a'p_b = 0", True), (f"norm(u_a + p_b)^2 = {2 * norm**2}", True),
        (f"norm(u_a + p_a)^2 = {4 * norm**2}", False), (f"u_a'*(u_a + p_a) = {norm**2}", True), ("p_a'*(u_a + p_a) = 0", False),
    ])  # fmt: skip
    return made(f"u_a, u_b, p_a, p_b orthogonal of norm {norm}", "", then, true, "letters")


def token_values(rng: random.Random) -> Made:
    """Values are V times the token; the counterexample must say so."""
    p, q = rng.randint(1, 4), rng.randint(1, 4)
    given, let = "u_a, u_b orthonormal", f"x_1 = {p}*u_a, x_2 = {q}*u_b, V = 2*I"
    then, true = rng.choice([
        (f"v_1 = {2 * p}*u_a", True), (f"v_1 = {p}*u_a", False), (f"k_2'q_2 = {q * q}", True),
        (f"c_1'u_a = {2 * p}", False), (f"c_1'u_a < {2 * p}", True), (f"norm(v_2) > {2 * q}", False),
    ])  # fmt: skip
    return made(given, let, then, true, "token values")


def binomials(rng: random.Random) -> Made:
    p = rng.randint(2, 6)
    total = " + ".join(f"{comb(p, j)}*s^{j}*t^{p - j}".replace("^0", "^0") for j in range(p + 1))
    more = rng.choice(["", f" + (s - t)*(s + 2*t)/{rng.choice([2, 1000])}"])
    return made("s real, t real", "", f"(s + t)^{p} = {total}{more}", not more, "binomials")


def bounds(rng: random.Random) -> Made:
    """The largest value of t*exp(-p*t) is 1/(p*e)."""
    p, digits = rng.randint(1, 5), rng.choice([2, 4, 6])
    exact = 1 / (p * exp(1))
    low = int(exact * 10**digits)
    up = rng.random() < 0.5
    return made("t > 0", "", f"t*exp(-{p}*t) < {low + up}/{10**digits}", up, "bounds")


MAKERS = (
    isolated, apart, irrational, ends, when, equal_numbers, parallel, triangle, opposite, free_weights, compared,
    margin, far, counts, slow_limits, moments, never, roots_in_range, tiny, letters, token_values, binomials, bounds,
)  # fmt: skip
