"""Adversarial blends and wirings, and judges of every sentence about them that share no code with the package.

A judge recomputes readings with mpmath, and looks for counterexamples with scipy: queries that are shorter, or nearer,
than what a certificate excludes.
"""

import re

import mpmath
import numpy as np
from scipy.optimize import minimize

KINDS = ("gaussian", "integers", "near-dependent", "duplicates", "huge", "tiny", "mixed", "line", "outlier", "rank")


def keys_of(kind, rng, n, d):
    """Keys of one adversarial kind."""
    plain = rng.standard_normal((n, d))
    if kind == "integers":
        return rng.integers(-3, 4, (n, d)).astype(float)
    if kind == "near-dependent":
        return rng.uniform(-1, 1, (n, 1)) @ rng.standard_normal((1, d)) + 10.0 ** rng.uniform(-12, -2) * plain
    if kind == "duplicates":
        return plain[rng.integers(0, max(1, n // 2), n)]
    if kind == "huge":
        return plain * 10.0 ** rng.uniform(3, 60)
    if kind == "tiny":
        return plain * 10.0 ** rng.uniform(-60, -3)
    if kind == "mixed":
        return plain * 10.0 ** rng.uniform(-6, 6, (n, 1))
    if kind == "line":
        return np.arange(n, dtype=float)[:, None] * rng.integers(1, 3, (1, d))
    if kind == "outlier":
        plain[rng.integers(n)] *= 10.0 ** rng.uniform(2, 12)
        return plain
    if kind == "rank":
        r = int(rng.integers(1, d + 1))
        return rng.standard_normal((n, r)) @ rng.standard_normal((r, d))
    return plain


def blend_case(seed):
    """Keys, wanted weights by item, and a tolerance between 1e-12 and 0.999."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    keys = keys_of(KINDS[seed % len(KINDS)], rng, n, d)
    m = int(rng.integers(1, min(n, 4) + 1))
    weights = np.maximum(rng.dirichlet(np.full(m, rng.choice([0.2, 1.0, 5.0]))), 1e-9)
    weights /= weights.sum()
    tol = 0.999 if rng.random() < 0.02 else float(10.0 ** rng.uniform(-12, -0.001))
    return keys, dict(zip(rng.permutation(n)[:m].tolist(), weights.tolist(), strict=True)), tol


def total_variation(keys, query, wanted):
    """By mpmath, from the float64 inputs."""
    with mpmath.workdps(60):
        scores = [
            mpmath.fsum(mpmath.mpf(float(a)) * mpmath.mpf(b) for a, b in zip(k, query, strict=True)) for k in keys
        ]
        top = max(scores)
        raw = [mpmath.exp(s - top) for s in scores]
        total = mpmath.fsum(raw)
        return mpmath.fsum(abs(e / total - wanted.get(i, 0.0)) for i, e in enumerate(raw)) / 2


def distances(keys, queries, wanted):
    """Total variation in float64, for many queries."""
    with np.errstate(all="ignore"):
        scores = queries @ keys.T
        raw = np.exp(scores - scores.max(axis=1, keepdims=True))
        out = 0.5 * np.abs(raw / raw.sum(axis=1, keepdims=True) - wanted).sum(axis=1)
    return np.where(np.isfinite(out), out, 1.0)


def resolution(keys, query):
    """Weights below this depend on how the entries of the query happen to be rounded to float64."""
    return 100 * 2.0**-52 * float((np.abs(keys - keys.mean(axis=0)) @ np.abs(query)).max())


def rival_queries(keys, wanted, rng, starts=3, draws=1500):
    """Queries near the wanted weights, found without the package: random ones, and Nelder-Mead from the best.

    The search works in axes along which the keys have equal spread.
    """
    w = np.zeros(len(keys))
    w[list(wanted)] = list(wanted.values())
    _, s, vt = np.linalg.svd(keys - keys.mean(axis=0), full_matrices=False)
    if not s[0] > 0:
        return np.zeros((1, keys.shape[1]))
    kept = s > 1e-12 * s[0]
    axes = vt[kept].T / s[kept] * np.sqrt(len(keys))
    flat = (keys - keys.mean(axis=0)) @ axes
    drawn = rng.standard_normal((draws, flat.shape[1])) * 10.0 ** rng.uniform(-2, 2, (draws, 1))
    drawn = np.vstack([np.zeros((1, flat.shape[1])), drawn])
    best = drawn[np.argsort(distances(flat, drawn, w), kind="stable")[:starts]]
    found = [
        minimize(lambda q: float(distances(flat, q[None], w)[0]), q, method="Nelder-Mead",
                 options={"maxiter": 400, "xatol": 1e-10, "fatol": 1e-12}).x
        for q in best
    ]  # fmt: skip
    return np.vstack([best, found]) @ axes.T


def printed(statement, before):
    """The number that follows some words of a statement."""
    found = re.search(re.escape(before) + r" ([0-9.e+-]+[0-9])", statement)
    return None if found is None else float(found.group(1))


def judge_blend(keys, wanted, tol, design, rng, search=True):
    """Every sentence of a design that is false, as text; an empty list where all are true."""
    wrong = []
    query = design.query.numpy()
    true = total_variation(keys, query, wanted)
    slack = mpmath.mpf(10) ** -15  # weights are normalised to sum 1 in float64
    if true > design.distance + slack:
        wrong.append(f"distance {design.distance} but {true}")
    if design.possible != (design.distance <= tol):
        wrong.append(f"status {design.status} at {design.distance} with tol {tol}")
    shown = printed(design.certificate.statement, "to within")
    if shown is not None and shown < design.distance:
        wrong.append(f"printed {shown} below {design.distance}")
    wrong += [f"not verified: {c.statement}: {c.verify().why}" for c in design.certificates if not c.verify()]
    norm = float(np.linalg.norm(query))
    if design.status == "exact":
        scores = [
            mpmath.fsum(mpmath.mpf(float(a)) * float(b) for a, b in zip(keys[i], query, strict=True)) for i in wanted
        ]
        logs = [mpmath.log(w) for w in wanted.values()]
        off = max(abs((s - scores[0]) - (x - logs[0])) for s, x in zip(scores, logs, strict=True))
        if off > 1e-7 * (1 + max(abs(x) for x in logs)):
            wrong.append(f"exact, but the logarithms of the ratios are off by {off}")
        if design.least_norm is not None and design.least_norm > norm * (1 + 1e-12):
            wrong.append(f"the query of norm {norm} is below least_norm {design.least_norm}")
    for certificate in design.certificates:
        bound = certificate.claims.get("norm_at_least")
        words = "of norm below" if "of norm below" in certificate.statement else "a norm of at least"
        text = printed(certificate.statement, words)
        if bound is not None and text is not None and text > bound:
            wrong.append(f"printed {text} above {bound}")
    rivals = np.vstack(
        [query[None], np.zeros((1, len(query)))] + ([rival_queries(keys, wanted, rng)] if search else [])
    )
    w = np.zeros(len(keys))
    w[list(wanted)] = list(wanted.values())
    near = distances(keys, rivals, w)
    sizes = np.linalg.norm(rivals, axis=1)
    for certificate in (design.within_bound, design.distance_bound):
        if certificate is None:
            continue
        least, reach = float(certificate.claims["norm_at_least"]), float(certificate.data["tol"])
        for q in rivals[(near < reach * (1 - 1e-9)) & (sizes < least * (1 - 1e-9))]:
            if total_variation(keys, q, wanted) < reach:
                wrong.append(f"{certificate.statement}, but {q.tolist()} does")
    best = rivals[near.argmin()]
    reachable = near.min() <= tol * (1 - 1e-9) and tol > resolution(keys, best)
    if not design.possible and reachable and total_variation(keys, best, wanted) <= tol:
        wrong.append(f"missed: {design.status} {design.distance}, but {best.tolist()} is within {tol}")
    return wrong


def beaten_by(keys, wanted, design, rng):
    """By how much more than rounding an independent search comes nearer than a design that is not within tol."""
    w = np.zeros(len(keys))
    w[list(wanted)] = list(wanted.values())
    rivals = rival_queries(keys, wanted, rng)
    best = rivals[distances(keys, rivals, w).argmin()]
    return max(0.0, float(design.distance - total_variation(keys, best, wanted)) - resolution(keys, best))


def wiring_case(seed):
    """Tokens, rules, what they write, and a tolerance."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    tokens = keys_of(KINDS[seed % len(KINDS)], rng, n, d)
    reads = {}
    for i in rng.permutation(n)[: int(rng.integers(1, min(n, 3) + 1))].tolist():
        m = int(rng.integers(1, min(n, 3) + 1))
        weights = np.maximum(rng.dirichlet(np.full(m, rng.choice([0.3, 3.0]))), 1e-6)
        chosen = rng.permutation(n)[:m].tolist()
        reads[i] = dict(zip(chosen, (weights / weights.sum()).tolist(), strict=True))
    writes = {i: rng.standard_normal(2) for i in reads}
    return tokens, reads, writes, float(10.0 ** rng.uniform(-9, -0.3))


def rule_distances(tokens, W, reads):
    """Total variation of each rule, in float64."""
    out = []
    for i, wanted in reads.items():
        w = np.zeros(len(tokens))
        w[list(wanted)] = list(wanted.values())
        out.append(float(distances(tokens, (tokens[i] @ W)[None], w)[0]))
    return out


def judge_wiring(tokens, reads, tol, wiring, rng, search=True):
    """Every sentence of a wiring that is false, as text."""
    wrong = [] if wiring.certificate.verify() else [f"not verified: {wiring.certificate.verify().why}"]
    for reason in wiring.reasons:
        pair = re.match(r"tokens (\d+) and (\d+) are the same vector", reason)
        if pair and not np.array_equal(tokens[int(pair[1])] + 0.0, tokens[int(pair[2])] + 0.0):
            wrong.append(reason)
    if wiring.possible:
        Q, K = wiring.Q.numpy(), wiring.K.numpy()
        for (i, wanted), bound in zip(reads.items(), wiring.distances, strict=True):
            with mpmath.workdps(60):
                query = (mpmath.matrix(Q.tolist()) * mpmath.matrix(tokens[i].tolist())).T * mpmath.matrix(K.tolist())
                true = total_variation(tokens, [query[0, j] for j in range(len(tokens[0]))], wanted)
            if true > bound + mpmath.mpf(10) ** -15 or bound > tol:
                wrong.append(f"rule {i}: {true} above {bound}, or that above {tol}")
        return wrong
    if not search or not tokens.any():
        return wrong
    unit = float(np.linalg.norm(tokens, axis=1).max())
    flat, d = tokens / unit, tokens.shape[1]

    def worst(w):
        return max(rule_distances(flat, w.reshape(d, d), reads))

    starts = rng.standard_normal((200, d * d)) * 10.0 ** rng.uniform(-1, 2.5, (200, 1))
    ranked = sorted(starts, key=worst)[:3]
    found = [minimize(worst, w, method="Nelder-Mead", options={"maxiter": 600}).x for w in ranked]
    best = min([*ranked, *found], key=worst)
    bound = float(wiring.certificate.claims["norm_at_least"])
    short = np.linalg.norm(best) / unit**2 < bound * (1 - 1e-9)
    if wiring.certificate.kind == "no wiring within tol" and short and worst(best) < tol * (1 - 1e-6):
        wrong.append(f"{wiring.certificate.statement}, but {best.tolist()} / {unit}² does")
    return wrong
