"""Short documents of claims by topic, for the claims page to start from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClaimExample:
    """A document to start from.

    Attributes:
        name: Its name in requests.
        topic: Its title in the list of examples.
        text: Markdown with ```claim blocks.
    """

    name: str
    topic: str
    text: str


EXAMPLES = (
    ClaimExample(
        "average",
        "The average of two values",
        """```claim average
given k_1..k_n orthonormal, n >= 3, t > 0
let   q = t*(k_a + k_b)
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
then  c -> (v_a + v_b)/2 as t -> oo
then  alpha_a > 0.49
then  c -> v_a as t -> oo
```
""",
    ),
    ClaimExample(
        "copy",
        "Copying one value",
        """A query along one key copies its value when it is long enough: always in the limit, never exactly.

```claim copy
given k_1..k_n orthonormal, n >= 2, t > 0
let   q = t*k_a
then  c -> v_a as t -> oo
then  alpha_a > 1/2
then  alpha_a = 1
```

```claim a gap in the scores
given k_1..k_n free, q free, n >= 2, k_j'q - k_i'q >= m for i != j
then  alpha_j >= 1/(1 + (n - 1)*exp(-m))
```
""",
    ),
    ClaimExample(
        "softmax",
        "What a softmax always does",
        """These hold for all keys and all queries, or for none.

```claim softmax
given k_1..k_n free, q free, n >= 2
then  alpha is a probability distribution
then  c = sum_i alpha_i v_i
then  alpha_i > 0
then  alpha_i < 1/2
```
""",
    ),
    ClaimExample(
        "scale",
        "How large the scale must be",
        """Some statements are true from a certain scale on: the verdict says from which.

```claim scale
given k_1..k_n orthonormal, n >= 3, t > 0
let   q = t*(k_a + k_b)
then  alpha_a > 0.4
then  alpha_a + alpha_b >= 0.99
then  alpha_a < 1/2
```
""",
    ),
    ClaimExample(
        "noise",
        "Keys with noise",
        """The key of a varies along its own direction: a longer one takes the weight, a shorter one loses it.

```claim length
given mu_1..mu_n orthonormal, gamma ~ N(1, 1/2), n >= 3, t > 0
let   k_i = mu_i, k_a = gamma*mu_a, q = t*(mu_a + mu_b)
then  alpha_a > alpha_b when gamma > 1
then  c -> v_a as t -> oo when gamma > 1
then  c -> (v_a + v_b)/2 as t -> oo
```

```claim score
given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3, t > 0
let   q = t*(mu_a + mu_b)
then  E[k_a'q] = t
then  Var[k_a'q] = 2*t^2*eps
then  Var[k_a'q] = t^2*eps
```
""",
    ),
    ClaimExample(
        "heads",
        "Several heads",
        """Each head copies one value; the average of their outputs is the average of the values.

```claim heads
given k_1..k_n orthonormal, n >= 3
let   q_1 = t*k_a, q_2 = t*k_b
then  alpha_{1,a} -> 1 as t -> oo
then  c_1 -> v_a as t -> oo
then  c -> (v_a + v_b)/2 as t -> oo
then  c_2 -> v_a as t -> oo
```
""",
    ),
    ClaimExample(
        "subspaces",
        "Reading one part of a sum",
        """Two values were added. If they come from spans at right angles, one matrix gives the first of them back.

```claim subspaces
given A, B orthonormal bases at right angles, x in R^m, y in R^p
let   v_a = A*x, v_b = B*y, s = v_a + v_b, M = A*A'
then  M*s = v_a
then  M*M = M
then  M*s = v_b
```
""",
    ),
    ClaimExample(
        "tokens",
        "Order and rotation of tokens",
        """Without positions, attention does not see the order of its inputs; rotated queries and keys see distances.

```claim order
given u_a, u_b, u_c, u_d orthogonal of norm beta
let   x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b
then  c is permutation equivariant
```

```claim rotation
given q free, k free, x real, y real
then  (R(x)*q)'*(R(y)*k) = q'*R(y - x)*k
then  norm(R(x)*q) = norm(q)
```
""",
    ),
)
FIRST_EXAMPLE = EXAMPLES[0].text
"""The text with which the claims page opens; claims.js has the same."""
