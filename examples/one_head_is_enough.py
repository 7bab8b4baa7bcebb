"""Keys that vary along themselves, read by one head, by two heads, and by one head orthogonal to the noise."""

from __future__ import annotations

import math

from scipy.special import ndtr

import qkv
from qkv.core.display import lower_bound, upper_bound

WANTED = {"a": 0.5, "b": 0.5}
TOL = 0.01


def main() -> None:
    memory = qkv.Memory.orthonormal(10, 16, labels=["a", "b", *"cdefghij"])
    mu = memory.keys
    along = qkv.noise.Gaussian(along={"a": 0.5})
    noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
    say("Ten orthonormal keys in 16 dimensions. The key of a is random: its mean is mu_a, and it varies")
    say("along itself with variance 1/2: it may be long, short, or reversed. All keys have a little other noise.")
    say("We want half of a's value and half of b's, with 1% leaking elsewhere when there is no noise.\n")

    t = math.log(8 / 2 * (1 - TOL) / TOL)
    one = t * (mu[0] + mu[1])
    coin = qkv.noise.reading_moments(memory, 50 * (mu[0] + mu[1]), along).weights_var[0]
    swings = float(qkv.noise.reading_moments(memory, one, noise).weights_var[0])
    say(f"1. One head, q = t(mu_a + mu_b) with t = {t:.3f}. A longer k_a scores above k_b, a shorter one")
    say("   below, and softmax reads mostly one of them:")
    say(f"   the weight of a has variance {swings:.4f}; a fair coin between 0 and 1 would have 0.25.")
    say(f"   At t = 50, without the other noise, it is {coin:.9f}: as t grows it tends to the coin's.\n")

    t = math.log(9 * (1 - TOL) / TOL)
    two = [t * mu[0], t * mu[1]]
    holds = float(qkv.noise.reading_moments(memory, two, noise).weights_var[0])
    say(f"2. Two heads, t mu_a and t mu_b with t = {t:.3f}, averaged. Each needs its own key only to beat")
    say(f"   the others, so the length of k_a matters less: variance {holds:.4f},")
    say(f"   {swings / holds:.1f} times less than one head's.")
    p = float(ndtr(-math.sqrt(2)))
    near, far = (
        float(qkv.noise.reading_moments(memory, [x * mu[0], x * mu[1]], along).weights_var[0]) for x in (400.0, 800.0)
    )
    say("   But where k_a is reversed, head one reads everything but a. That happens with probability")
    say(f"   P(1 + z/√2 < 0) = Phi(-√2) = {p:.4f}, so as t grows the variance tends to")
    say(f"   p(1 - p)/4 = {p * (1 - p) / 4:.5f} (extrapolated from t = 400 and 800: {2 * far - near:.5f}).\n")

    hardened = qkv.noise.harden(memory, WANTED, noise, tol=TOL)
    q, ours = hardened.query, float(hardened.moments.weights_var[0])
    say("3. One head again, hardened: the query that keeps the blend and is orthogonal to the noise.")
    on_a, on_b, on_others = float(q @ mu[0]), float(q @ mu[1]), float((mu[2:] @ q).mean())
    say(f"   Its score on mu_a is {on_a:.4f}, on mu_b {on_b:.4f}, on the eight others {on_others:.3f}:")
    say("   it repels them. For any length of k_a, its score stays near 0.")
    say(f"   Variance {ours:.2e}: {swings / ours:.0f} times less than one plain head,")
    say(f"   {holds / ours:.0f} times less than two.")
    say(f"   Without noise {100 * hardened.distance:.2f}% leaks elsewhere, within the 1% of the others.\n")

    say("How often is the output within 0.25 of the wanted one?")
    for name, layout in {"one plain head": one, "two plain heads": two, "hardened": hardened}.items():
        found = qkv.noise.success_probability(memory, layout, noise, WANTED, 0.25, n_draws=100_000)
        say(f"   {name:<16} {found.probability:.4f}  (95% sure: {lower_bound(found.low)} to {upper_bound(found.high)})")

    both = qkv.noise.harden(memory, WANTED, noise, tol=TOL, heads=2)
    say("\nSo one head is enough to be robust. It is not the best layout: two hardened heads, one for each")
    say(f"item, bring the squared error from {hardened.squared_error:.2e} to {both.squared_error:.2e}.")


def say(line: str) -> None:
    """Print one line."""
    print(line)


if __name__ == "__main__":
    main()
