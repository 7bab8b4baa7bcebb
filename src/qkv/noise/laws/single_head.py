"""Distribution of one item's weight under one head: its moments, and its distribution function by inversion."""

# The weight is 1/(1 + e^(R − s)), with s the item's own score and R the logsumexp of the others, independent of s. So
# its law is that of D = s − R, and P(weight ≤ p) = P(D ≤ logit p). There are three methods, by how the scores vary:
#
# - No other key is noisy: R is a number and D is normal.
# - The item's own score varies widely. With g = −Λ', Λ(u) = E exp(−e^u Z) the product of the others' L (see
#   moments/smoothed_gumbel.py) and Z = e^R, the Mellin transform is  ∫ e^(iωu) g(u) du = Γ(1 + iω) E Z^(−iω):  the
#   characteristic function of −R comes from the same nodes as the moments. Dividing by Γ makes errors grow like
#   e^(πω/2), but D has the factor e^(−vω²/2) of its own score, which vanishes first if v is not small. Its inversion at
#   midpoints ω = (k + ½)δ errs by no more than the probability that D lies further than 2π/δ from the point of
#   evaluation.
# - All scores vary little: then Z is a sum of narrow lognormals, see lognormal_sum.py.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import ZoomFFT
from scipy.special import loggamma, ndtr
from torch import Tensor

from qkv.noise.laws.lognormal_sum import MAX_NARROW_VARIANCE, lognormal_sum_law
from qkv.noise.method import Method
from qkv.noise.moments.outer_rule import outer_error
from qkv.noise.moments.single_head import outer_interval
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, distinct_scores, logs_and_ratios

Array = NDArray[np.float64]

MIN_WIDE_VARIANCE = 0.1
"""Variance of the own score from which rounding that the division by Γ amplifies stays small."""
DECAY = 21.0
"""e^−21 = 8e-10: where the characteristic function counts as 0; what is cut off is 6e-12."""
NORMAL_TAIL, TAIL_MASS = 7.0, 3e-12
"""P(|N(0,1)| > 7) = 3e-12."""
STEP, FINE_STEP = 0.25, 0.125
"""Steps of the outer integral."""
MAX_FREQUENCY_OF_STEP = 4.0
"""Highest frequency for which STEP is fine enough: aliases, 2π/step away, must be small."""
MAX_ENTRIES = 2**24
"""Entries (keys × nodes) beyond which a law is not integrated."""
MAX_WAVES = 2**21
"""Frequencies × knots up to which the inversion is a matrix product; beyond, it is a fast Fourier transform."""
KNOTS_PER_DEVIATION = 64
"""Knots of an interpolated distribution function, in a standard deviation of the own score."""
MAX_KNOTS, SHOWN_LOGITS = 2**14, 42.0
"""Knots beyond which only logits of at most 42 are tabulated: others are weights of 0 or 1, up to rounding."""
FIRST_KNOTS, MAX_REFINED_KNOTS, MAX_INTERPOLATION_ERROR = 257, 2**14, 2e-8
"""Knots of a function of unknown scale, doubled until half of them give the others to within this."""
MIN_RELATIVE_RANGE = 1e-9
"""Range of a logit, relative to its size, below which its knots would not be distinct; nothing is interpolated then."""
MAX_LAW_ERROR = 1e-3
"""Error beyond which a law is not integrated."""
INTEGRATED_ERROR, CLOSED_FORM_ERROR = 1e-8, 1e-15
"""Error of a distribution function apart from interpolation, rounding and tails, integrated or in closed form."""


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """A weight's mean and second moment, each to within `error`, and its distribution function, to within `law_error`.

    `logit` is P(D ≤ x) of D = logit(weight), which lies between `low` and `high` with probability 1 − 1e-11. It is
    "exact" where no other score varies, else by "quadrature".
    """

    mean: float
    square: float
    error: float
    low: float
    high: float
    law_error: float
    logit: Callable[[Array], Array]
    method: Method

    @property
    def variance(self) -> float:
        """E α² − (E α)²."""
        return max(0.0, self.square - self.mean**2)

    def below(self, weights: Array) -> Array:
        """P(weight ≤ w)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.log(weights) - np.log1p(-weights)
        inside = (weights > 0) & (weights < 1)
        return np.where(inside, self.logit(np.where(inside, x, 0.0)), (weights >= 1).astype(float))


def weight_law(m: Tensor, v: Tensor, item: int) -> WeightLaw | None:
    """The law of an item's weight, for score means m and variances v, (n,); None where it cannot be integrated."""
    others = torch.arange(len(m)) != item
    if len(m) < 2:
        return None
    top = float(m.max())
    own, own_variance = float(m[item]) - top, float(v[item])
    mean, variance, where = distinct_scores(m[others] - top, v[others])
    count = torch.bincount(where, minlength=len(mean)).to(torch.float64)
    no_other_noise = float(variance.max()) == 0
    wide = own_variance >= MIN_WIDE_VARIANCE and not no_other_noise
    top_frequency = math.sqrt(2 * DECAY / own_variance) if wide else 0.0
    step = FINE_STEP if top_frequency > MAX_FREQUENCY_OF_STEP else STEP
    kinds = torch.cat([mean, mean.new_tensor([own])]), torch.cat([variance, mean.new_tensor([own_variance])])
    u = _nodes(kinds, count, step)
    if len(u) * len(kinds[0]) > MAX_ENTRIES:
        return None
    logs, r, q = logs_and_ratios(*kinds, u)
    log_rest = count @ logs[:-1]
    weight = step * torch.exp(log_rest + logs[-1])
    first, second = float(weight @ r[-1]), float(weight @ q[-1])
    error = 1e-15 + outer_error(step, 2) + FUNCTION_ERROR * (len(m) + float(u[-1] - u[0]))

    sd, rest = variance.sqrt(), mean + count.log()
    low_rest, high_rest = (float(torch.logsumexp(rest + side * NORMAL_TAIL * sd, 0)) for side in (-1, 1))
    reach = NORMAL_TAIL * math.sqrt(own_variance)
    law_error = INTEGRATED_ERROR + TAIL_MASS * len(m)
    logit: Callable[[Array], Array]
    if no_other_noise:
        logit, law_error = _normal_law(own - high_rest, math.sqrt(own_variance)), CLOSED_FORM_ERROR
    elif wide:
        flow = step * torch.exp(log_rest) * (count @ r[:-1])
        ends = own - reach - high_rest, own + reach - low_rest
        flow_error = FUNCTION_ERROR * (len(m) + float(u[-1] - u[0]))
        inverted = _inverted(u.numpy(), flow.numpy(), flow_error, own, own_variance, top_frequency, *ends)
        logit, law_error = inverted[0], law_error + inverted[1]
    elif float(variance.max()) > MAX_NARROW_VARIANCE:
        return None
    else:
        kinds_of_others = mean.numpy(), variance.numpy(), count.numpy()
        function, low_rest, high_rest = lognormal_sum_law(*kinds_of_others, own, own_variance)
        found: tuple[Callable[[Array], Array], float] = function, 0.0
        ends = own - reach - high_rest, own + reach - low_rest
        if low_rest < high_rest and ends[1] - ends[0] > MIN_RELATIVE_RANGE * max(map(abs, ends)):
            found = _interpolated(function, *ends)
        logit, law_error = found[0], law_error + found[1]
    if law_error > MAX_LAW_ERROR:
        return None
    low, high = own - reach - high_rest, own + reach - low_rest
    return WeightLaw(first, second, error, low, high, law_error, logit, "exact" if no_other_noise else "quadrature")


def _nodes(kinds: tuple[Tensor, Tensor], count: Tensor, step: float) -> Tensor:
    """Nodes from the lower end of the moments' integrals to the upper end of those without the last key."""
    mean, variance = kinds[0] + torch.cat([count, count.new_ones(1)]).log(), kinds[1]
    low, _ = outer_interval(mean, variance)
    _, high = outer_interval(mean[:-1], variance[:-1])
    return low + step * torch.arange(int((high - low) / step) + 2, dtype=torch.float64)


def _normal_law(centre: float, deviation: float) -> Callable[[Array], Array]:
    """P(N(centre, deviation²) ≤ x); a step where the deviation is 0."""
    if deviation == 0:
        return lambda x: (x >= centre).astype(float)
    return lambda x: ndtr((x - centre) / deviation)


def _inverted(
    u: Array, flow: Array, flow_error: float, own: float, own_variance: float, top: float, low: float, high: float
) -> tuple[Cubics, float]:
    """P(D ≤ x) as a cubic interpolant, from the characteristic function of D at midpoints, and its error.

    Args:
        u: The equidistant nodes of the transform.
        flow: The function that is transformed, at the nodes, times their step.
        flow_error: Bound on the error of the transform.
        own: Mean of the item's own score.
        own_variance: Its variance.
        top: The frequency at which the characteristic function vanishes.
        low: A number below D.
        high: A number above D.
    """
    step = float(u[1] - u[0])
    period = math.ceil((high - low) / step) + 1
    delta = 2 * math.pi / (period * step)
    omega = delta * (np.arange(int(top / delta) + 1) + 0.5)
    transform = _transform_at_midpoints(flow, period, len(omega)) * np.exp(1j * omega * float(u[0]))
    factor = np.exp(1j * omega * own - 0.5 * own_variance * omega**2 - loggamma(1 + 1j * omega))
    phi = transform * factor
    spacing = math.sqrt(own_variance) / KNOTS_PER_DEVIATION
    if (high - low) / spacing > MAX_KNOTS:
        if high <= -SHOWN_LOGITS or low >= SHOWN_LOGITS:  # the weight is 0 or 1, up to rounding
            ends, constant = np.array([-SHOWN_LOGITS, SHOWN_LOGITS]), float(high <= -SHOWN_LOGITS)
            return Cubics(ends, np.full(2, constant), np.zeros(2)), 0.0
        low, high = max(low, -SHOWN_LOGITS), min(high, SHOWN_LOGITS)
    half = max(16, math.ceil((high - low) / spacing / 2))
    x = np.linspace(low, high, 2 * half + 1)
    sums = _wave_sums(np.stack([phi / omega, phi]), delta, x)
    value = 0.5 - sums[0].imag * delta / math.pi
    slope = sums[1].real * delta / math.pi
    rounding = float((np.abs(factor) / omega).sum()) * delta / math.pi * flow_error
    return _measured(x, value, slope, rounding)


def _transform_at_midpoints(flow: Array, period: int, count: int) -> NDArray[np.complex128]:
    """Σ_n flow_n e^(2πi(k + ½)n/period) for k below the count, by one fast Fourier transform."""
    folds = -(-len(flow) // period)
    rows = np.zeros(folds * period)
    rows[: len(flow)] = flow
    signs = 1.0 - 2.0 * (np.arange(folds) % 2)
    folded = signs @ rows.reshape(folds, period)  # e^(2πi(k + ½)) = −1
    spectrum: NDArray[np.complex128] = np.fft.ifft(folded * np.exp(1j * np.pi * np.arange(period) / period)) * period
    return spectrum[np.arange(count) % period]


def _wave_sums(coefficients: NDArray[np.complex128], delta: float, x: Array) -> NDArray[np.complex128]:
    """Σ_k c_k e^(−i(k + ½)δx) at equidistant x, for rows of coefficients."""
    count = coefficients.shape[1]
    if count * len(x) <= MAX_WAVES:
        return coefficients @ _waves(-delta, count, x)
    spacing = (x[-1] - x[0]) / (len(x) - 1)
    ends = delta * x[0] / math.pi, delta * (x[-1] + spacing) / math.pi
    zoom = ZoomFFT(count, ends, len(x))
    out: NDArray[np.complex128] = zoom(coefficients, axis=-1) * np.exp(-0.5j * delta * x)
    return out


def _waves(delta: float, count: int, x: Array) -> NDArray[np.complex128]:
    """e^(i(k + ½)δx) for k below the count, (count, points), by products, which are cheaper than exponentials."""
    out = np.empty((count, len(x)), dtype=np.complex128)
    out[0], out[1:] = np.exp(0.5j * delta * x), np.exp(1j * delta * x)
    return np.cumprod(out, axis=0, out=out)


def _interpolated(function: Callable[[Array], Array], low: float, high: float) -> tuple[Cubics, float]:
    """Cubic interpolant of an expensive function, with as many knots as its scale needs, and its error."""
    x = np.linspace(low, high, FIRST_KNOTS)
    value = function(x)
    while True:
        between = (x[1:] + x[:-1]) / 2
        x, value = _interleaved(x, between), _interleaved(value, function(between))
        found = _measured(x, value, CubicSpline(x, value)(x, 1), 0.0)
        if found[1] <= MAX_INTERPOLATION_ERROR or len(x) > MAX_REFINED_KNOTS:
            return found


def _interleaved(even: Array, odd: Array) -> Array:
    out = np.empty(len(even) + len(odd))
    out[::2], out[1::2] = even, odd
    return out


def _measured(x: Array, value: Array, slope: Array, error: float) -> tuple[Cubics, float]:
    """The interpolant, and an error with what every second knot gives for the others, and what clipping changes."""
    half = Cubics(x[::2], value[::2], slope[::2])
    between = float(np.abs(half(x[1::2]) - value[1::2].clip(0.0, 1.0)).max())
    rising = np.maximum.accumulate(value.clip(0.0, 1.0))
    clipped = float(np.abs(rising - value).max())
    # Beyond the knots the interpolant is constant: 0 and 1 are missed by its values at the ends.
    return Cubics(x, rising, slope), error + between + clipped


class Cubics:
    """Cubic Hermite interpolant with equidistant knots, clipped to [0, 1] and constant beyond the knots."""

    def __init__(self, x: Array, value: Array, slope: Array) -> None:
        self.low, self.step = float(x[0]), float(x[-1] - x[0]) / (len(x) - 1)
        self.value, self.slope = value, slope * self.step

    def __call__(self, x: Array) -> Array:
        at = np.clip((x - self.low) / self.step, 0.0, len(self.value) - 1.0)
        k = np.minimum(at.astype(int), len(self.value) - 2)
        t = at - k
        a, b, p, q = self.value[k], self.value[k + 1], self.slope[k], self.slope[k + 1]
        found = a + t * (p + t * (3 * (b - a) - 2 * p - q + t * (2 * (a - b) + p + q)))
        out: Array = np.clip(found, 0.0, 1.0)
        return out
