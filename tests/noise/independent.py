"""Independent solvers for laws and probabilities: mpmath, Gauss rules in other variables, and plain draws.

They share no code with qkv.noise. Each returns a value with a bound on its own error, or None where it cannot tell.
"""

from __future__ import annotations

import mpmath
import numpy as np
from scipy.special import log_softmax, logsumexp, ndtr
from scipy.stats import beta

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def panels(knots):
    """Nodes and weights of a Gauss rule on each of some panels."""
    knots = np.unique(knots)
    middle, half = (knots[1:] + knots[:-1]) / 2, (knots[1:] - knots[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def ball_with_one_noisy_score(m, sd, item, values, target, radius):
    """P(‖softmax(s) V − target‖ ≤ radius) with 50 digits, where only the score of one item varies."""
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(float(x)) for x in row] for row in values]
        goal = [mpmath.mpf(float(x)) for x in target]
        fixed = [j for j in range(len(m)) if j != item]
        top = max(m[j] for j in fixed)
        parts = [mpmath.exp(mpmath.mpf(m[j]) - mpmath.mpf(top)) for j in fixed]
        total = mpmath.fsum(parts)
        start = [
            mpmath.fsum(w * rows[j][c] for w, j in zip(parts, fixed, strict=True)) / total - goal[c]
            for c in range(len(goal))
        ]
        move = [rows[item][c] - goal[c] - start[c] for c in range(len(goal))]
        a, b = mpmath.fsum(x * x for x in move), mpmath.fsum(x * y for x, y in zip(start, move, strict=True))
        c = mpmath.fsum(x * x for x in start) - mpmath.mpf(radius) ** 2
        if a == 0:
            return float(c <= 0)
        disc = b * b - a * c
        if disc < 0:
            return 0.0
        low, high = max(mpmath.mpf(0), (-b - mpmath.sqrt(disc)) / a), min(mpmath.mpf(1), (-b + mpmath.sqrt(disc)) / a)
        if low >= high:
            return 0.0
        rest = mpmath.mpf(top) + mpmath.log(total)

        def place(p):
            logit = mpmath.log(p) - mpmath.log(1 - p) if 0 < p < 1 else (mpmath.inf if p >= 1 else -mpmath.inf)
            return (logit + rest - mpmath.mpf(m[item])) / mpmath.mpf(sd)

        ends = place(low), place(high)
        if ends[0] > 0:
            return float((mpmath.erfc(ends[0] / mpmath.sqrt(2)) - mpmath.erfc(ends[1] / mpmath.sqrt(2))) / 2)
        return float((mpmath.erfc(-ends[1] / mpmath.sqrt(2)) - mpmath.erfc(-ends[0] / mpmath.sqrt(2))) / 2)


def ball_on_a_disc(m, sds, values, target, radius):
    """The same for two noisy scores (the first two items), in polar coordinates of the output around the target.

    None unless the disc lies well inside the triangle of outputs, and the scores vary over more than the disc.
    """
    m, sds = np.asarray(m, float), np.asarray(sds, float)
    rest = logsumexp(m[2:])
    share = np.exp(m[2:] - rest)
    v0 = share @ values[2:]
    E = np.stack([values[0] - v0, values[1] - v0], 1)  # (d, 2)
    if np.linalg.matrix_rank(E, tol=1e-6) < 2:
        return None
    centre, *_ = np.linalg.lstsq(E, target - v0, rcond=None)
    off = np.linalg.norm(E @ centre - (target - v0))
    if off >= radius:
        return 0.0, 0.0
    r = np.sqrt(radius**2 - off**2)
    _, R = np.linalg.qr(E)
    inverse = np.linalg.inv(R)  # p = centre + inverse @ (ρ cos, ρ sin)
    reach = np.linalg.norm(inverse, axis=1) * r
    reach = np.array([*reach, np.linalg.norm(inverse.sum(0)) * r])
    p = np.array([*centre, 1 - centre.sum()])
    if (p < 1.5 * reach).any() or (reach / p / sds.min() > 0.5).any() or sds.min() < 0.05:
        return None

    def estimate(count):
        x, w = np.polynomial.legendre.leggauss(count)
        rho, wr = r * (x + 1) / 2, w * r / 2
        theta = 2 * np.pi * np.arange(2 * count) / (2 * count)
        xy = np.stack([np.cos(theta), np.sin(theta)])
        P = centre[:, None, None] + np.einsum("ij,jt,r->itr", inverse, xy, rho)
        p0 = 1 - P.sum(0)
        z = [(np.log(P[i] / p0) + rest - m[i]) / sds[i] for i in (0, 1)]
        density = np.exp(-0.5 * (z[0] ** 2 + z[1] ** 2)) / (2 * np.pi * sds.prod() * P.prod(0) * p0)
        return float((density @ (wr * rho)).sum() * (2 * np.pi / len(theta)) * abs(np.linalg.det(inverse)))

    fine, coarse = estimate(120), estimate(80)
    return fine, abs(fine - coarse) + 1e-13


def ball_by_rows(m, sds, values, target, radius):
    """The same for two noisy scores (the first two items): tanh-sinh rules over the score that varies less, between the
    places where its integrand is singular, which are found with 50 digits; the other score by the quadratic formula.

    Returns:
        The probability, and an estimate of its error from half as many nodes.
    """
    a, b = (0, 1) if sds[0] <= sds[1] else (1, 0)
    fixed = [j for j in range(len(m)) if j > 1]
    if not fixed:
        return ball_with_one_noisy_score([m[0], m[1]], np.hypot(*sds), 0, values, target, radius), 1e-13
    rest = logsumexp(m[fixed])
    v0 = np.exp(m[fixed] - rest) @ values[fixed] - target
    v1, v2 = values[a] - target, values[b] - target
    events = [m[a] + sds[a] * z for z in np.arange(-8.6, 8.7, 0.86)] + [rest + x for x in range(-45, 46, 3)]
    events = np.array([*events, *(rest + x for x in singular_logits(v0, v1, v2, radius))])
    z = np.unique(np.clip((events - m[a]) / sds[a], -8.6, 8.6))

    def inner(z):
        s = m[a] + sds[a] * z
        t, u = 1 / (1 + np.exp(np.minimum(rest - s, 700))), 1 / (1 + np.exp(np.minimum(s - rest, 700)))
        A = u[:, None] * v0 + t[:, None] * v1
        W = v2 - A
        size = (W**2).sum(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = -(A * W).sum(1) / size
            off2 = ((A + best[:, None] * W) ** 2).sum(1)
            half = np.sqrt(np.maximum(radius**2 - off2, 0) / size)
            low, high = best - half, best + half
            logits = [np.log(np.clip(p, 0, 1)) - np.log(np.clip(1 - p, 0, 1)) for p in (low, high)]
        inside = np.where(size == 0, (A**2).sum(1) <= radius**2, (off2 < radius**2) & (high > 0) & (low < 1))
        logits = [np.where(size == 0, side * np.inf, x) for side, x in zip((-1, 1), logits, strict=True)]
        ends = [(x + np.logaddexp(s, rest) - m[b]) / sds[b] for x in logits]
        upper = ends[0] > 0
        mass = np.where(upper, ndtr(-ends[0]) - ndtr(-ends[1]), ndtr(ends[1]) - ndtr(ends[0]))
        return np.where(inside, mass, 0.0) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

    def estimate(step):
        k = step * np.arange(-int(3.2 / step), int(3.2 / step) + 1)
        x, w = np.tanh(np.pi / 2 * np.sinh(k)), step * np.pi / 2 * np.cosh(k) / np.cosh(np.pi / 2 * np.sinh(k)) ** 2
        middle, half = (z[1:] + z[:-1]) / 2, (z[1:] - z[:-1]) / 2
        return float(
            (half[:, None] * w * inner((middle[:, None] + half[:, None] * x).ravel()).reshape(-1, len(x))).sum()
        )

    fine, coarse = estimate(0.04), estimate(0.08)
    # Rounding of the outputs, relative to the radius, moves the ends of the interval.
    size = np.abs([v0, v1, v2]).max() / radius
    return fine, abs(fine - coarse) + 1e-13 + 1e-14 * size * (fine + 1e-3)


def singular_logits(v0, v1, v2, radius):
    """logit t where x = v0 + t(v1 − v0) enters the ball, or the line from x to v2 touches it; with 50 digits."""
    with mpmath.workdps(50):
        v0, v1, v2 = ([mpmath.mpf(float(x)) for x in v] for v in (v0, v1, v2))
        r2 = mpmath.mpf(float(radius)) ** 2

        def dot(x, y):
            return mpmath.fsum(p * q for p, q in zip(x, y, strict=True))

        def at(t):
            x = [p + t * (q - p) for p, q in zip(v0, v1, strict=True)]
            W = [p - q for p, q in zip(v2, x, strict=True)]
            return r2 * dot(W, W) - (dot(x, x) * dot(W, W) - dot(x, W) ** 2), dot(x, x) - r2

        out = []
        for which in (0, 1):
            y = [at(t)[which] for t in (mpmath.mpf(0), mpmath.mpf(1) / 2, mpmath.mpf(1))]
            # In both cases a polynomial of degree two: the first is a product of areas and widths that are linear in t.
            a, b, c = 2 * y[2] - 4 * y[1] + 2 * y[0], -y[2] + 4 * y[1] - 3 * y[0], y[0]
            if abs(a) < mpmath.mpf(10) ** -40 * (abs(b) + abs(c)):
                roots = [-c / b] if b else []
            else:
                root = mpmath.sqrt(mpmath.mpc(b * b - 4 * a * c))
                roots = [(-b + side * root) / (2 * a) for side in (1, -1)]
            for t in (mpmath.re(root) for root in roots):
                if 0 < t < 1:
                    out.append(float(mpmath.log(t) - mpmath.log(1 - t)))
        return out


def ball_by_draws(m, sds, mix, values, target, radius, draws, seed, doubt=1e-7):
    """An interval that fails with probability `doubt`, for scores (h, n) that are all independent."""
    random = np.random.default_rng(seed)
    m, sds = np.atleast_2d(m), np.atleast_2d(sds)
    hits = 0
    for _ in range(10):
        alpha = np.zeros((draws // 10, m.shape[1]))
        for h in range(len(m)):
            scores = m[h] + sds[h] * random.standard_normal((draws // 10, m.shape[1]))
            alpha += mix[h] * np.exp(log_softmax(scores, axis=1))
        hits += int((np.linalg.norm(alpha @ values - target, axis=1) <= radius).sum())
    n = 10 * (draws // 10)
    low = 0.0 if hits == 0 else float(beta.ppf(doubt / 2, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(1 - doubt / 2, hits + 1, n - hits))
    return low, high


def law_with_one_noisy_rival(x, m, sds, others):
    """P(s₀ − log(e^(s₁) + e^rest) ≤ x) for s₀ and s₁ normal, and rest the logsumexp of the other scores."""
    rest = logsumexp(others) if len(others) else -np.inf
    if sds[1] == 0:
        return ndtr((x + np.logaddexp(m[1], rest) - m[0]) / sds[0])
    if not len(others):
        return ndtr((x + m[1] - m[0]) / np.hypot(*sds))
    if sds[0] < sds[1]:
        # Given s₁ = r: Φ((x + logaddexp(r, rest) − m₀)/σ₀), which changes where r is near rest and near the crossing.
        y = m[0] - x
        knots = [m[1] + sds[1] * np.arange(-9, 9.5, 0.5), rest + np.arange(-45, 46.0)]
        spread = sds[0] * np.concatenate([-np.geomspace(9, 1e-3, 60), [0], np.geomspace(1e-3, 9, 60)])
        high = y + spread
        above = high > rest
        with np.errstate(divide="ignore", invalid="ignore"):
            knots.append(high[above] + np.log(-np.expm1(rest - high[above])))
        knots.append(y + spread)
        knots = np.concatenate(knots)
        knots = knots[np.isfinite(knots) & (np.abs(knots - m[1]) <= 9 * sds[1])]
        r, w = panels(np.concatenate([knots, m[1] + sds[1] * np.array([-9, 9])]))
        z = (r - m[1]) / sds[1]
        inner = ndtr((x + np.logaddexp(r, rest) - m[0]) / sds[0])
        return float((w * np.exp(-0.5 * z * z) * inner).sum() / sds[1] / np.sqrt(2 * np.pi))
    # Given s₀ = t: P(s₁ ≥ log(e^(t−x) − e^rest)), 1 where t − x ≤ rest. It changes where t − x is what s₁ makes it.
    steps = np.arange(-9, 9.5, 0.5)
    levels = np.concatenate([np.logaddexp(m[1] + sds[1] * steps, rest), m[1] + sds[1] * steps])
    near = rest + np.concatenate([[0], 50 * 0.5 ** np.arange(60)])
    places = (x - m[0] + np.concatenate([levels, near])) / sds[0]
    z, w = panels(np.concatenate([steps, np.clip(places, -9, 9)]))
    y = m[0] + sds[0] * z - x
    with np.errstate(divide="ignore", invalid="ignore"):
        need = np.where(y > rest, y + np.log(-np.expm1(np.minimum(rest - y, 0))), -np.inf)
    return float((w * np.exp(-0.5 * z * z) * ndtr((m[1] - need) / sds[1])).sum() / np.sqrt(2 * np.pi))


class DrawnLaw:
    """P(s₀ − logsumexp(others) ≤ x) from draws of the others, where s₀ is integrated; with 6 standard errors and a
    little for what no draw shows."""

    def __init__(self, m, sds, draws, seed):
        scores = m[1:] + sds[1:] * np.random.default_rng(seed).standard_normal((draws, len(m) - 1))
        self.rest, self.own, self.sd = logsumexp(scores, axis=1), m[0], sds[0]

    def __call__(self, x):
        y = np.asarray(x)[:, None] + self.rest - self.own
        each = ndtr(y / self.sd) if self.sd > 0 else (y >= 0).astype(float)
        return each.mean(1), 6 * each.std(1) / np.sqrt(len(self.rest)) + 30 / len(self.rest)


def law_of_first_item(m, sds, seed, draws=20_000):
    """A function from logits x to P(logit of the first item's weight ≤ x) and a bound on its error."""
    if (sds[2:] != 0).any():
        return DrawnLaw(m, sds, draws, seed)

    def found(x):
        x = np.asarray(x, float)
        if sds[0] == 0 and sds[1] == 0:
            return (x >= m[0] - logsumexp(m[1:])).astype(float), np.zeros(len(x))
        if sds[0] == 0:
            rest, y = logsumexp(m[2:]) if len(m) > 2 else -np.inf, m[0] - x
            with np.errstate(all="ignore"):
                need = np.where(y > rest, y + np.log(-np.expm1(np.minimum(rest - y, 0))), -np.inf)
            return ndtr((m[1] - need) / sds[1]), np.full(len(x), 1e-12)
        return np.array([float(law_with_one_noisy_rival(t, m[:2], sds[:2], m[2:])) for t in x]), np.full(len(x), 1e-11)

    return found
