"""More claims with a known truth: heads, noise, LaTeX, sums, conditions, rotations; closed forms on integers again."""

from __future__ import annotations

import random

from generate import Made, block

Random = random.Random


def coin(rng: Random) -> bool:
    return rng.random() < 0.5


def latex_weights(rng: Random) -> Made:
    """q = log(t) Σ w_i k_i: alpha_x = t^w_x / (Σ t^w + n - m), in LaTeX."""
    items = rng.choice(["a", "ab", "abc"])
    w = {i: rng.randint(1, 3) for i in items}
    x, true = rng.choice(items), coin(rng)
    total = " + ".join(f"t^{{{w[i]}}}" for i in items) + f" + n - {len(items)}"
    top = f"t^{{{w[x]}}}"
    if not true:
        top = rng.choice([f"t^{{{w[x] + 1}}}", f"-t^{{{w[x]}}}", f"2 t^{{{w[x]}}}", "1" if w[x] else "t"])
    query = " + ".join(f"{w[i]} k_{i}" for i in items)
    given = f"$k_1..k_n$ orthonormal, $n \\geq {len(items) + 1}$, $t > 0$"
    then = f"$\\alpha_{x} = \\frac{{{top}}}{{{total}}}$"
    return Made(block(given, f"$q = \\log(t)({query})$", then), true, True, "latex weights")


def latex_limits(rng: Random) -> Made:
    w = {i: rng.randint(1, 3) for i in "ab"}
    best = max(w.values())
    tops = [i for i in "ab" if w[i] == best]
    true = coin(rng)
    goal = rf"\frac{{1}}{{{len(tops)}}}({' + '.join(f'v_{i}' for i in tops)})"
    if not true:
        loser = next((i for i in "ab" if i not in tops), "d")
        goal = rng.choice([f"-{goal}", f"v_{loser}", r"\frac{1}{3}(v_a + v_b)", f"{goal} + v_d"])
    approx = rng.choice([r"\approx", r"\simeq", r"\to", r"\rightarrow"])
    given = r"$\mu_1..\mu_n$ orthonormal, $k_i \sim \mathcal{N}(\mu_i, \varepsilon I)$, $n \ge 4$"
    then = rf"$c {approx} {goal}$ as $\varepsilon \to 0$, $t \to \infty$"
    return Made(block(given, rf"$q = t({w['a']}\mu_a + {w['b']}\mu_b)$", then), true, True, "latex limits")


def sums(rng: Random) -> Made:
    """Weights sum to 1, named and unnamed."""
    w = rng.randint(1, 3)
    good = [
        "sum_{i != a} alpha_i = 1 - alpha_a",
        "sum_{i != a, b} alpha_i = (n - 2)*alpha_d",
        "sum_i k_i'q = TOTAL*t",
        "sum_i alpha_i v_i = c",
        f"sum_i exp(k_i'q) = exp({w}*t) + exp(t) + n - 2",
        "sum_{i != a} k_i'q = t",
    ]
    bad = [
        "sum_{i != a} alpha_i = 1",
        "sum_{i != a, b} alpha_i = (n - 3)*alpha_d",
        "sum_i k_i'q = -TOTAL*t",
        "sum_{i != a} alpha_i v_i = c",
        f"sum_i exp(k_i'q) = exp({w + 1}*t) + exp(t) + n - 2",
        "sum_{i != b} k_i'q = -t",
    ]
    true = coin(rng)
    then = rng.choice(good if true else bad).replace("TOTAL", str(w + 1))
    given = "k_1..k_n orthonormal, n >= 4, t > 0"
    return Made(block(given, f"q = t*({w}*k_a + k_b)", then), true, True, "sums")


def heads(rng: Random) -> Made:
    """Two heads: their limits, and that of their average."""
    one, two = rng.sample("abd", 2)
    noisy = coin(rng)
    base = "mu" if noisy else "k"
    limit = "eps -> 0, t -> oo" if noisy else "t -> oo"
    given = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I)" if noisy else "k_1..k_n orthonormal"
    good = [
        f"c -> (v_{one} + v_{two})/2 as {limit}",
        f"alpha_{{1,{one}}} -> 1 as {limit}",
        f"alpha_{{2,{one}}} -> 0 as {limit}",
        f"(c_1 + 3*c_2)/4 -> (v_{one} + 3*v_{two})/4 as {limit}",
        f"c_2 - c_1 -> v_{two} - v_{one} as {limit}",
    ]
    bad = [
        f"c -> (v_{one} - v_{two})/2 as {limit}",
        f"alpha_{{1,{two}}} -> 1 as {limit}",
        f"alpha_{{2,{two}}} -> 0 as {limit}",
        f"(c_1 + 3*c_2)/4 -> (3*v_{one} + v_{two})/4 as {limit}",
        f"c_2 - c_1 -> v_{one} - v_{two} as {limit}",
    ]
    true = coin(rng)
    lets = f"q_1 = {rng.randint(1, 3)}*t*{base}_{one}, q_2 = {rng.randint(1, 3)}*t*{base}_{two}"
    return Made(block(f"{given}, n >= 4", lets, rng.choice(good if true else bad)), true, True, "heads")


def covariances(rng: Random) -> Made:
    """Cov[k_x'q_1, k_x'q_2] = ε q_1'q_2 + w (μ_x'q_1)(μ_x'q_2) for the widened key, and 0 between two keys."""
    p, q = ([rng.randint(-2, 3), rng.randint(1, 3)] for _ in range(2))
    wide, x, y = rng.choice(["1/2", "2"]), rng.choice("ab"), rng.choice("ab")
    small = p[0] * q[0] + p[1] * q[1] if x == y else 0
    own = p[0] * q[0] if x == y == "a" else 0
    true = coin(rng)
    if not true:
        small += rng.choice([-1, 1, 2])
    given = f"mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + {wide}*mu_a*mu_a'), n >= 3, t > 0"
    lets = f"q_1 = t*({p[0]}*mu_a + {p[1]}*mu_b), q_2 = t*({q[0]}*mu_a + {q[1]}*mu_b)"
    then = f"Cov[k_{x}'q_1, k_{y}'q_2] = t^2*({small}*eps + {wide}*{own})"
    return Made(block(given, lets, then), true, False, "covariances")


def lengths_in_the_limit(rng: Random) -> Made:
    """A key of length γ ~ N(1, w), q = t(x μ_a + y μ_b): a wins when xγ > y, so E[alpha_a] -> Φ((1-y/x)/√w)."""
    x, y = rng.randint(1, 3), rng.randint(1, 3)
    w = rng.choice([1, 2, 4])
    p = f"Phi((1 - {y}/{x})/sqrt({w}))"
    true = coin(rng)
    good = [
        f"E[alpha_a] -> {p}",
        f"Var[alpha_a] -> {p}*(1 - {p})",
        f"P[alpha_a > 1/2] -> {p}",
        f"E[alpha_b] -> 1 - {p}",
    ]
    other = f"Phi((1 - {y + 1}/{x})/sqrt({w}))"
    bad = [
        f"E[alpha_a] -> {other}",
        f"Var[alpha_a] -> {p}/2 + 1/3",
        f"P[alpha_a > 1/2] -> {other}",
        f"E[alpha_b] -> {p}/3",
    ]
    given = f"mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + {w}*mu_a*mu_a'), n >= 3"
    then = rng.choice(good if true else bad) + " as eps -> 0, t -> oo"
    return Made(block(given, f"q = t*({x}*mu_a + {y}*mu_b)", then), true, False, "random lengths")


def scales(rng: Random) -> Made:
    """α_a = e^(wt)/(e^(wt) + n - 1) exceeds r/(r + n - 1) exactly when wt > log r; it goes to 1/n, 1 and 0."""
    w, r = rng.randint(1, 3), rng.randint(2, 9)
    good = [
        f"alpha_a > {r}/({r} + n - 1) when t > log({r})/{w}",
        f"alpha_a < {r}/({r} + n - 1) when t < log({r})/{w}",
        "alpha_a -> 1/n as t -> 0",
        "alpha_a -> 0 as t -> -oo",
        "alpha_b -> 1/(n - 1) as t -> -oo",
        "alpha_a > alpha_b when t > 0",
        "alpha_a < alpha_b when t < 0",
    ]
    bad = [
        f"alpha_a > {r + 1}/({r + 1} + n - 1) when t > log({r})/{w}",
        f"alpha_a > {r}/({r} + n - 1) when t < log({r})/{w}",
        "alpha_a -> 1/(n - 1) as t -> 0",
        "alpha_a -> 0 as t -> oo",
        "alpha_b -> 1/n as t -> -oo",
        "alpha_a > alpha_b when t < 0",
        "alpha_a < alpha_b when t > -1",
    ]
    true = coin(rng)
    return Made(
        block("k_1..k_n orthonormal, n >= 3, t real", f"q = {w}*t*k_a", rng.choice(good if true else bad)),
        true,
        False,
        "scales",
    )


def rotations(rng: Random) -> Made:
    m, n = rng.randint(-3, 3), rng.randint(-3, 3)
    true = coin(rng)
    a, b = (n, -m) if true else rng.choice([(n, m + 7), (n + 1, -m), (n - 2, -m)])
    turn = f"{a}*y + ({b})*x"
    then = f"(R({m}*x)*q)'*(R({n}*y)*k) = q'*R({turn})*k"
    return Made(block("q free, k free, x real, y real", "", then), true, True, "rotations")


def lengths_of_queries(rng: Random) -> Made:
    w = [rng.randint(-3, 3) or 1 for _ in range(3)]
    square = sum(x * x for x in w)
    true = coin(rng)
    value = square if true else rng.choice([square + 1, -square, 2 * square])
    q = f"t*({w[0]}*k_a + {w[1]}*k_b + {w[2]}*k_d)"
    then = rng.choice([f"norm(q)^2 = {value}*beta^2*t^2", f"q'q = {value}*beta^2*t^2"])
    return Made(block("k_1..k_n orthogonal of norm beta, n >= 3, t > 0", f"q = {q}", then), true, True, "query lengths")


def matrices(rng: Random) -> Made:
    """V = Σ g u_y u_x'/β² sends u_x to g u_y."""
    pairs = [(rng.choice("abcd"), x) for x in rng.sample("abcd", 2)]
    g = [rng.choice([-2, -1, 1, 2]) for _ in pairs]
    token = {x: rng.choice([0, 1, 1, 2]) for x in "abcd"}
    made = dict.fromkeys("abcd", 0)
    for factor, (y, x) in zip(g, pairs, strict=True):
        made[y] += factor * token[x]
    true = coin(rng)
    if not true:
        made[rng.choice("abcd")] += rng.choice([-1, 1])
    matrix = " + ".join(f"({f})*u_{y}*u_{x}'" for f, (y, x) in zip(g, pairs, strict=True))
    x1 = " + ".join(f"{c}*u_{x}" for x, c in token.items())
    v1 = " + ".join(f"({c})*u_{x}" for x, c in made.items())
    name = rng.choice("VQK")
    lets = f"x_1 = {x1}, x_2 = u_a, {name} = ({matrix})/beta^2"
    return Made(
        block("u_a, u_b, u_c, u_d orthogonal of norm beta", lets, f"{name.lower()}_1 = {v1}"), true, True, "matrices"
    )


MAKERS = (
    latex_weights,
    latex_limits,
    sums,
    heads,
    covariances,
    lengths_in_the_limit,
    scales,
    rotations,
    lengths_of_queries,
    matrices,
)
