"""The tour's chapters on noise: one head, two heads and a hardened head under noise; quantised keys."""

from __future__ import annotations

import math

from scipy.special import ndtr

from qkv.core.memory import Memory
from qkv.noise.key_noise import Gaussian, Quantised
from qkv.noise.moments.mixture import reading_moments
from qkv.noise.probability.output_within import success_probability
from qkv.noise.robust.robust_query import harden
from qkv.viz.html_report import Chapter, Picture
from qkv.viz.plots import noise as plots
from qkv.viz.theme import figure_svg

WANTED = {"a": 0.5, "b": 0.5}
COMMAND = "qkv noise compare --orthonormal 10x16 --weights 0=1/2,1=1/2 --isotropic 1e-6 --along 0=0.5"
RADIUS = 0.25
"""Distance of the output that counts as success."""


def one_head() -> Chapter:
    """Keys with noise along their own direction, and a query orthogonal to that noise."""
    memory = Memory.orthonormal(10, 16, labels=["a", "b", *"cdefghij"])
    noise = Gaussian(isotropic=1e-6, along={"a": 0.5})
    only_along = Gaussian(along={"a": 0.5})
    found = harden(memory, WANTED, noise, tol=1e-2)
    compared = found.comparison
    one, two, hard = (float(compared[name].weights_var[0]) for name in ("one head", "two heads", "hardened"))
    coin = float(reading_moments(memory, 50 * (memory.keys[0] + memory.keys[1]), only_along).weights_var[0])
    backwards = float(ndtr(-math.sqrt(2)))
    success = {
        name: success_probability(memory, layout, noise, WANTED, RADIUS) for name, layout in found.layouts.items()
    }
    q, mu = found.query, memory.keys
    return Chapter(
        "One head is enough",
        (
            "Now the keys are random, with ten orthonormal means μ. Every key has a little isotropic noise, and the key of "
            "a varies along itself with variance ½: it may be long, short, or reversed. We want half of v_a and half of v_b.",
            f"The usual single head is q = t(μ_a + μ_b): a longer k_a scores above k_b, a shorter one below. "
            f"The weight of a has variance {one:.3f}; at t = 50, without isotropic noise, {coin:.6f}, and a fair coin has ¼. "
            f"With two heads, tμ_a and tμ_b, averaged, the variance is {two:.4f}; k_a is reversed with probability "
            f"Φ(−√2) = {backwards:.4f}.",
            f"{'But one head is enough. ' if hard < min(one, two) else ''}Hardened, the query scores {float(q @ mu[0]):.3f} on "
            f"μ_a, {float(q @ mu[1]):.3f} on μ_b and {float((mu[2:] @ q).mean()):.2f} on average on the others. The variance is "
            f"{hard:.1e}: {times_less(hard, one)} one plain head, {times_less(hard, two)} two.",
            Picture(
                figure_svg(plots.weights(memory, found.layouts, noise, "a")),
                f"The weight of a under noise, for {len(found.layouts)} layouts.",
                f"{COMMAND} --plot weights.svg",
            ),
            found,
            f"How often is the output within {RADIUS:g} of the wanted one? "
            + ", ".join(f"{name}: {p.probability:.3f}" for name, p in success.items())
            + ". The picture shows it against the scale of each layout.",
            Picture(
                figure_svg(plots.success(memory, found.layouts, noise, WANTED, RADIUS)),
                "The probability against the scale of each layout, with its error.",
                f"{COMMAND} --plot success.svg --picture success",
            ),
            Picture(
                figure_svg(plots.variance(memory, found.layouts, noise)),
                "Computed by integration, without draws.",
                f"{COMMAND} --plot variance.svg --picture variance",
            ),
        ),
    )


def times_less(variance: float, other: float) -> str:
    """As in "1,200 times less than"; only "less than" below a factor of 2, and "not less than" where it is not."""
    if 0 < 2 * variance < other:
        return f"{other / variance:,.0f} times less than"
    return "less than" if variance < other else "not less than"


def quantised() -> Chapter:
    """Keys rounded to few bits."""
    memory = Memory.orthonormal(64, 64, seed=1)
    found = {bits: harden(memory, {0: 0.5, 1: 0.5}, Quantised(bits), tol=1e-2) for bits in (2, 4, 6)}
    errors = [float(f.comparison.errors[0]) for f in found.values()]
    rows = ", ".join(f"{bits} bits: {error:.2e}" for bits, error in zip(found, errors, strict=True))
    falls = "falls with the bits" if errors == sorted(errors, reverse=True) else "depends on the bits"
    return Chapter(
        "Keys of few bits",
        (
            "Rounding keys to b bits a channel is noise too: in every channel an error uniform on one step. Its effect on "
            "the scores is Gaussian to good approximation, and the same integrals give the moments of the reading.",
            f"With 64 orthonormal keys, the squared error of a plain blend of two {falls}: {rows}.",
            found[4].comparison,
        ),
    )
