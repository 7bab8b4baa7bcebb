"""Augmented Lagrangians with Newton's method for the smallest W under score constraints."""

# The program. Rule r of a token x reads the items a of a set A with weights w_a (their sum is 1) and no others:
#     s_a - s_b = log(w_a / w_b) for a, b in A,  and  f_r(W) = logsumexp_{j not in A}(s_j) - s_b - edge_r <= 0,
# with b the first item of A and edge_r = log(tol/(1-tol)) - log w_b. This is "the exact ratios, and a leak of at most
# tol"; for a rule that reads one token it is the same as "within tol in total variation". The method minimises
#     L(W) = ½|W|² + Σ_r (max(0, λ_r + ρ_r f_r)² - λ_r²) / 2ρ_r + Σ_e (ν_e c_e + ½ρ_e c_e²)
# over W by Newton's method, sets λ_r to max(0, λ_r + ρ_r f_r) and ν_e to ν_e + ρ_e c_e, and repeats. With p the softmax
# of the scores of the rivals and h_r = Σ p_j k_j - k_b, the gradient of f_r is x h_rᵀ and its second derivative
# x xᵀ ⊗ Cov_p(k). Conjugate gradients solve the Newton equations with the preconditioner I + Jᵀ ρ J, where J is the
# matrix of all gradients; its inverse needs J Jᵀ only, which is (X Xᵀ)∘(H Hᵀ). A product with the second derivatives
# costs O(n² r + n r²).
# The bound. lse(s) >= p·s + H(p), so <G, W> >= b for every W that follows the rules, with
#     G = -Σ λ_r x h_rᵀ - Σ ν_e x d_eᵀ   and   b = Σ λ_r (H(p_r) - edge_r) - Σ ν_e log-ratio_e,
# hence |W| >= b/|G|. At the solution W = G, and the bound is |W| itself.

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import linalg

from qkv.core.types import BoolArray, FloatArray
from qkv.design.solvers.score_constraints import ScoreConstraints

Progress = Callable[[int, int], None]
"""Called with the work done so far and all of it, here in percent of the digits that are wanted."""
Status = Literal["solved", "infeasible", "unsolved"]
GAP = 1e-9
"""Relative distance of the norm of W from its lower bound at which the solution counts as found."""
VIOLATION = 1e-9
"""Largest excess of a rule over its bound, in the logarithm of the odds of its leak, that is left."""
INFEASIBLE_NORM = 1e10
"""Lower bound on the norm of every W at which rules count as contradictory, where the shortest token that reads and the
longest key have norm 1."""
MAX_OUTER, MAX_NEWTON, MAX_CG, MAX_STALLED = 60, 60, 250, 4
FIRST_PENALTY = 100.0
"""Penalty of a rule, times the squared norm of its gradient, at first."""
FALL, LATE_FALL, LATE_VIOLATION = 0.1, 1e-2, 1e-2
"""Fall of a constraint's excess that leaves its penalty as it is, and a sharper one for dense Newton steps, which
conditioning does not slow, once every excess is below the last number."""
ROUNDING = 1e-11
"""Relative changes of L below this are near its rounding errors."""
MAX_DENSE_WORK = 2e7
"""Entries of the second derivatives, times rules, up to which they are computed as a matrix."""
MAX_FACTOR = 8192
"""Rules and ratios up to which the preconditioner is factored."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Point:
    """The augmented Lagrangian at one W, with all that its derivatives need."""

    scores: list[FloatArray]
    ratios: FloatArray  # c_e, the excess of each ratio
    f: FloatArray
    weights: list[FloatArray]
    entropy: FloatArray
    leak_push: FloatArray  # max(0, λ + ρ f)
    ratio_push: FloatArray  # ν + ρ c
    value: float


class AugmentedLagrangian:
    """Augmented Lagrangians with Newton's method; see the comment at the top of the module."""

    def __init__(
        self, program: ScoreConstraints, progress: Progress | None, max_products: int, shortest_reader: float
    ) -> None:
        self.program = program
        self.progress = progress
        self.max_products = max_products
        self.shortest_reader = shortest_reader
        self.W = np.zeros(program.shape)
        self.lam = np.zeros(len(program.x))
        self.nu = np.zeros(len(program.ratio_x))
        self.bound, self.violation, self.products, self._percent = 0.0, np.inf, 0, -1
        size = program.shape[0] * program.shape[1]
        self.dense = size**2 * max(1, len(program.x)) <= MAX_DENSE_WORK
        self.x_all = np.vstack([program.x, program.ratio_x])
        self.squares = [(_outer(b.x, b.x), _outer(b.keys, b.keys)) for b in program.blocks] if self.dense else []
        self.penalties(FIRST_PENALTY)

    def penalties(self, factor: float) -> None:
        """Penalties for which ρ |gradient|² is `factor`, rule by rule, at W = 0."""
        p = self.program
        _, weights, _ = p.leaks(p.scores(np.zeros(p.shape)))
        slopes = p.slopes(weights)
        leak = np.einsum("ij,ij->i", p.x, p.x) * np.einsum("ij,ij->i", slopes, slopes)
        ratio = np.einsum("ij,ij->i", p.ratio_x, p.ratio_x) * np.einsum("ij,ij->i", p.ratio_d, p.ratio_d)
        top = max(float(leak.max(initial=0.0)), float(ratio.max(initial=0.0))) or 1.0
        self.rho = factor / np.maximum(leak, 1e-12 * top)
        self.rho_ratio = factor / np.maximum(ratio, 1e-12 * top)

    def run(self) -> Status:
        """Solve; the last iterate and its multipliers are then in W, lam and nu."""
        last, best_violation, best_bound, stalled = np.inf, np.inf, 0.0, 0
        excesses = np.full(len(self.x_all), np.inf)
        point = self._at(self.W, self.program.scores(self.W), self._ratios(self.W))
        for _ in range(MAX_OUTER):
            point, gradient = self._minimise(self._valued(self.W, point), max(1e-2 * GAP, min(1e-3, 1e-2 * last)))
            self.lam, self.nu = point.leak_push, point.ratio_push
            self.violation = self._violation(point)
            size = float(np.linalg.norm(self.W))
            self.bound = self._bound(point, float(np.linalg.norm(self.W - gradient)))
            gap = abs(size - self.bound) / max(size, 1e-300)
            self._report(max(self.violation / VIOLATION, gap / GAP))
            if self.violation <= VIOLATION and (gap <= GAP or size == 0):
                return "solved"
            if self.bound * self.shortest_reader > INFEASIBLE_NORM:
                return "infeasible"
            stalled = 0 if self.violation < 0.7 * best_violation or self.bound > 1.5 * best_bound else stalled + 1
            if stalled > MAX_STALLED or self.products > self.max_products or not np.isfinite(size):
                break
            best_violation, best_bound = min(best_violation, self.violation), max(best_bound, self.bound)
            excess = np.concatenate([np.maximum(point.f, 0.0), np.abs(point.ratios)])
            self._raise_penalties(excess, excesses)
            excesses = excess
            last = self.violation
        return "unsolved"

    def _raise_penalties(self, excess: FloatArray, last: FloatArray) -> None:
        """Raise the penalties of the constraints whose excess has not fallen enough, and of no others."""
        fall = LATE_FALL if self.dense and self.violation < LATE_VIOLATION else FALL
        slow = (excess > fall * last) & (excess > 0.1 * VIOLATION)
        factor = np.where(slow, np.where(excess < 0.7 * last, 10.0, 100.0), 1.0)
        self.rho = self.rho * factor[: len(self.rho)]
        self.rho_ratio = self.rho_ratio * factor[len(self.rho) :]

    def _violation(self, point: _Point) -> float:
        return max(float(point.f.max(initial=0.0)), float(np.abs(point.ratios).max(initial=0.0)))

    def _report(self, excess: float) -> None:
        if self.progress is not None:
            share = (
                1 - float(np.log10(min(max(excess, 1.0), 1e12))) / 12
            )  # a gap may be infinite: no bound is known yet
            self._percent = max(self._percent, int(100 * share))
            self.progress(self._percent, 100)

    def _bound(self, point: _Point, size: float) -> float:
        """b/|G| with the pushes as multipliers."""
        p = self.program
        b = point.leak_push @ (point.entropy - p.edge) - point.ratio_push @ p.ratio_value
        return float(b) / max(size, 1e-300) if b > 0 else 0.0

    def _at(self, W: FloatArray, scores: list[FloatArray], ratios: FloatArray) -> _Point:
        f, weights, entropy = self.program.leaks(scores)
        return self._valued(W, _Point(scores, ratios, f, weights, entropy, f, ratios, 0.0))

    def _valued(self, W: FloatArray, at: _Point) -> _Point:
        """The point with the present multipliers and penalties."""
        f, ratios = at.f, at.ratios
        push = np.maximum(0.0, self.lam + self.rho * f)
        ratio_push = self.nu + self.rho_ratio * ratios
        value = 0.5 * float(np.vdot(W, W))
        value += float(((push - self.lam) * (push + self.lam) / (2 * self.rho)).sum())
        if len(ratios):
            value += float((self.nu * ratios + 0.5 * self.rho_ratio * ratios**2).sum())
        return _Point(at.scores, ratios, f, at.weights, at.entropy, push, ratio_push, value)

    def _ratios(self, W: FloatArray) -> FloatArray:
        p = self.program
        return np.einsum("ij,ij->i", p.ratio_x @ W, p.ratio_d) - p.ratio_value

    def _gradient(self, W: FloatArray, point: _Point) -> tuple[FloatArray, FloatArray]:
        """The gradient of L, and the slopes h of all constraints."""
        p = self.program
        slopes = np.vstack([p.slopes(point.weights), p.ratio_d])
        push = np.concatenate([point.leak_push, point.ratio_push])
        return W + self.x_all.T @ (push[:, None] * slopes), slopes

    def _minimise(self, point: _Point, relative: float) -> tuple[_Point, FloatArray]:
        """Newton's method on L from the present W, until the gradient is `relative` to |W|; the last point and it."""
        before, tiny = np.inf, False
        gradient, slopes = self._gradient(self.W, point)
        for _ in range(MAX_NEWTON):
            size = float(np.linalg.norm(gradient))
            done = size <= relative * max(float(np.linalg.norm(self.W)), 1e-300) or not np.isfinite(size)
            if done or (tiny and size > 0.5 * before) or self.products > self.max_products:
                break
            step = self._newton_step(point, gradient, slopes, min(0.1, size / before if before < np.inf else 0.1))
            before = size
            towards = float(np.vdot(gradient, step))
            tiny = -towards <= ROUNDING * abs(point.value)
            moved = self._line_search(self.W, point, step, towards) if towards < 0 else None
            if moved is None:
                break
            self.W, point = moved
            gradient, slopes = self._gradient(self.W, point)
        return point, gradient

    def _line_search(
        self, W: FloatArray, point: _Point, step: FloatArray, towards: float
    ) -> tuple[FloatArray, _Point] | None:
        """Backtrack from the whole step; scores are linear in W, so a trial costs no product of matrices."""
        p = self.program
        change = p.scores(step)
        ratio_change = np.einsum("ij,ij->i", p.ratio_x @ step, p.ratio_d)
        length = 1.0
        if -towards <= ROUNDING * abs(point.value):  # L cannot tell such steps apart, but Newton's are whole here
            scores = [s + t for s, t in zip(point.scores, change, strict=True)]
            return W + step, self._at(W + step, scores, point.ratios + ratio_change)
        for _ in range(40):
            trial = W + length * step
            scores = [s + length * t for s, t in zip(point.scores, change, strict=True)]
            found = self._at(trial, scores, point.ratios + length * ratio_change)
            if found.value <= point.value + 1e-4 * length * towards + 1e-14 * abs(point.value):
                return trial, found
            length *= 0.5 if length > 0.1 else 0.2
        return None

    def _newton_step(self, point: _Point, gradient: FloatArray, slopes: FloatArray, forcing: float) -> FloatArray:
        active = np.concatenate([point.leak_push > 0, np.ones(len(point.ratios), dtype=bool)])
        rho = np.concatenate([self.rho, self.rho_ratio])
        if self.dense:
            return self._dense_step(point, gradient, slopes, active, rho)
        return self._conjugate_gradients(point, gradient, slopes, active, rho, forcing)

    def _dense_step(
        self, point: _Point, gradient: FloatArray, slopes: FloatArray, active: BoolArray, rho: FloatArray
    ) -> FloatArray:
        """Solve the Newton equations with the matrix of second derivatives."""
        p = self.program
        size = gradient.size
        matrix = np.eye(size)
        for b, w, (x_squares, key_squares) in zip(p.blocks, point.weights, self.squares, strict=True):
            mean = w @ b.keys
            spread = w @ key_squares - _outer(mean, mean)
            second = (x_squares * point.leak_push[b.rows][:, None]).T @ spread
            second = second.reshape(p.shape[0], p.shape[0], p.shape[1], p.shape[1])
            matrix += second.transpose(0, 2, 1, 3).reshape(size, size)
        rows = _outer(self.x_all[active], slopes[active])
        matrix += (rows.T * rho[active]) @ rows
        self.products += 1
        _, out, failed = linalg.lapack.dposv(matrix, -gradient.ravel())
        if failed or not np.isfinite(out).all():
            out = -gradient.ravel() / max(1.0, float(np.trace(matrix)) / size)
        return np.asarray(out).reshape(p.shape)

    def _conjugate_gradients(
        self,
        point: _Point,
        gradient: FloatArray,
        slopes: FloatArray,
        active: BoolArray,
        rho: FloatArray,
        forcing: float,
    ) -> FloatArray:
        p = self.program
        penalties = np.where(active, rho, 0.0)
        inverse = _Preconditioner(self.x_all[active], slopes[active], rho[active])

        def product(v: FloatArray) -> FloatArray:
            self.products += 1
            xv = self.x_all @ v
            pull = (np.einsum("ij,ij->i", xv, slopes) * penalties)[:, None] * slopes
            for b, w in zip(p.blocks, point.weights, strict=True):
                t = xv[b.rows] @ b.keys.T
                t -= np.einsum("ij,ij->i", w, t)[:, None]
                t *= w
                t *= point.leak_push[b.rows][:, None]
                pull[b.rows] += t @ b.keys
            return np.asarray(v + self.x_all.T @ pull)

        step = np.zeros(p.shape)
        left = -gradient
        goal = forcing * float(np.linalg.norm(left))
        z = inverse(left)
        direction, rz = z, float(np.vdot(left, z))
        for _ in range(MAX_CG):
            image = product(direction)
            alpha = rz / float(np.vdot(direction, image))
            step = step + alpha * direction
            left = left - alpha * image
            if float(np.linalg.norm(left)) <= goal or self.products > self.max_products:
                break
            z = inverse(left)
            rz, old = float(np.vdot(left, z)), rz
            direction = z + (rz / old) * direction
        return step


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    """Row by row, the outer product as one row."""
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), a.shape[1] * b.shape[1]))


class _Preconditioner:
    """The inverse of I + Jᵀ ρ J, by the factor of J Jᵀ + 1/ρ; the identity where there are too many constraints."""

    def __init__(self, x: FloatArray, h: FloatArray, rho: FloatArray) -> None:
        self.x, self.h, self.factor = x, h, None
        if 0 < len(x) <= MAX_FACTOR:
            kernel = (x @ x.T) * (h @ h.T)
            kernel[np.diag_indices(len(x))] += 1 / rho
            try:
                self.factor = linalg.cho_factor(kernel, overwrite_a=True)
            except (linalg.LinAlgError, ValueError):
                self.factor = None

    def __call__(self, v: FloatArray) -> FloatArray:
        if self.factor is None:
            return v
        along = np.einsum("ij,ij->i", self.x @ v, self.h)
        return v - self.x.T @ (linalg.cho_solve(self.factor, along)[:, None] * self.h)
