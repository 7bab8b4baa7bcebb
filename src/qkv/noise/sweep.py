"""The same question for many heads, each with a memory of its own: moments or robust queries, here or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from qkv.core.display import Card, Displayable, number, times
from qkv.core.memory import Memory
from qkv.core.types import Weights
from qkv.core.validation import ArrayLike, tensor
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import Noise, noise_on_keys
from qkv.noise.moments.mixture import ReadingMoments, reading_moments
from qkv.noise.robust.robust_query import RobustQuery, harden
from qkv.parallel import Progress, WorkerPool

MAX_HEADS_SHOWN = 20
"""Heads that are printed at most."""


@dataclass(frozen=True, eq=False)
class MomentsSweep(Displayable):
    """Moments of the readings of many heads, in the order in which the heads were given; `sweep[i]` are those of one.

    Attributes:
        heads: The moments of each head.
    """

    heads: tuple[ReadingMoments, ...]

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, index: int) -> ReadingMoments:
        return self.heads[index]

    def card(self) -> Card:
        rows = []
        for i, found in enumerate(self.heads[:MAX_HEADS_SHOWN]):
            top = int(found.weights_mean.argmax())
            mean, sd = float(found.weights_mean[top]), float(found.weights_var[top]) ** 0.5
            spread = number(float(found.total_variance))
            rows.append((str(i), str(found.labels[top]), number(mean), number(sd), spread))
        return Card(
            title=f"Moments of {_count(len(self))} under noise",
            columns=("head", "item read most", "mean weight", "standard deviation", "variance of output"),
            rows=tuple(rows),
            note=_more(len(self)),
        )


@dataclass(frozen=True, eq=False)
class HardenSweep(Displayable):
    """Robust queries for many heads, in the order in which the heads were given; `sweep[i]` is that of one.

    Attributes:
        heads: The robust query of each head.
    """

    heads: tuple[RobustQuery, ...]

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, index: int) -> RobustQuery:
        return self.heads[index]

    def card(self) -> Card:
        rows = []
        for i, found in enumerate(self.heads[:MAX_HEADS_SHOWN]):
            more = {True: "help", False: "do not help", None: "not tried"}[found.more_heads_help]
            rows.append((str(i), number(found.squared_error), times(found.gain), number(found.distance), more))
        return Card(
            title=f"Robust queries for {_count(len(self))}",
            columns=("head", "squared error", "less than plain", "distance without noise", "more heads"),
            rows=tuple(rows),
            note=_more(len(self)),
        )


def moments_sweep(
    memories: Memory | Sequence[Memory],
    queries: ArrayLike,
    noise: Noise,
    *,
    executor: Executor | None = None,
    processes: int | None = None,
    cluster: str | None = None,
    callback: Progress | None = None,
) -> MomentsSweep:
    """The moments of many heads, each by itself: `reading_moments` for every query, distributed over workers.

    Work that takes more than a few seconds is distributed over local processes unless one of `executor`, `processes`
    and `cluster` says otherwise; the result does not depend on it.

    Args:
        memories: One memory for all heads, or one for each.
        queries: The query of each head, (h, d).
        noise: The noise on the keys of every memory.
        executor: A concurrent.futures executor to run the work.
        processes: Number of local processes; 1 computes in this process.
        cluster: Address of a Dask scheduler, such as "tcp://HOST:8786"; needs the extra `cluster`.
        callback: Called with the numbers of finished and of all heads.

    Returns:
        The moments of each head.

    Raises:
        QkvError: The inputs do not fit together, the moments of a head are out of reach, or workers are not.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4)
        >>> found = qkv.noise.moments_sweep(memory, 3 * memory.keys[:2], qkv.noise.Gaussian(isotropic=0.1))
        >>> len(found), int(found[1].weights_mean.argmax())
        (2, 1)
    """
    request = "the moments of many heads"
    rows = tensor("queries", queries, "h d")
    each = _one_memory_a_head(request, memories, len(rows))
    for memory, query in zip(each, rows, strict=True):  # refuse before any work is done
        HeadMix.of(memory, query, request=request)
        noise_on_keys(request, noise, memory)
    with WorkerPool(executor, processes, cluster) as pool:
        pieces = list(zip(each, rows.numpy(), strict=True))
        return MomentsSweep(tuple(pool.map(_moments_of_one, noise, pieces, callback)))


def harden_sweep(
    memories: Memory | Sequence[Memory],
    weights: Weights | Sequence[Weights],
    noise: Noise,
    tol: float = 1e-2,
    *,
    executor: Executor | None = None,
    processes: int | None = None,
    cluster: str | None = None,
    callback: Progress | None = None,
) -> HardenSweep:
    """Robust queries for many blends or memories: `harden` for each, distributed over workers as in `moments_sweep`.

    Args:
        memories: One memory for all heads, or one for each.
        weights: The wanted weights for all heads, or those of each.
        noise: The noise on the keys of every memory.
        tol: The largest total-variation distance of the noise-free weights from the wanted ones.
        executor: A concurrent.futures executor to run the work.
        processes: Number of local processes; 1 computes in this process.
        cluster: Address of a Dask scheduler, such as "tcp://HOST:8786"; needs the extra `cluster`.
        callback: Called with the numbers of finished and of all heads.

    Returns:
        The robust query of each head.

    Raises:
        QkvError: The inputs do not fit together, or workers are out of reach.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(6, 8)
        >>> noise = qkv.noise.Gaussian(isotropic=1e-4, along={0: 0.5})
        >>> found = qkv.noise.harden_sweep(memory, [{0: 0.5, 1: 0.5}, {1: 1.0}], noise)
        >>> found[0].gain > 10
        True
    """
    request = "robust queries for many heads"
    blends = list(weights) if isinstance(weights, list | tuple) else None
    if blends is None:
        blends = [weights] * (1 if isinstance(memories, Memory) else len(memories))
    each = _one_memory_a_head(request, memories, len(blends))
    for memory in each:
        noise_on_keys(request, noise, memory)
    with WorkerPool(executor, processes, cluster) as pool:
        pieces = list(zip(each, blends, strict=True))
        return HardenSweep(tuple(pool.map(_hardened_one, (noise, tol), pieces, callback)))


def _moments_of_one(noise: Noise, memory: Memory, query: ArrayLike) -> ReadingMoments:
    return reading_moments(memory, query, noise)


def _hardened_one(shared: tuple[Noise, float], memory: Memory, weights: Weights) -> RobustQuery:
    noise, tol = shared
    return harden(memory, weights, noise, tol)


def _one_memory_a_head(request: str, memories: Memory | Sequence[Memory], count: int) -> list[Memory]:
    if isinstance(memories, Memory):
        return [memories] * count
    each = list(memories)
    if len(each) != count or not all(isinstance(memory, Memory) for memory in each):
        problem = f"there are {len(each)} memories for {count} heads"
        raise QkvError(request, problem, "Give one qkv.Memory for all heads, or one for each")
    return each


def _count(heads: int) -> str:
    return f"{heads} head{'s' * (heads != 1)}"


def _more(heads: int) -> str:
    return f"… {heads - MAX_HEADS_SHOWN} more" if heads > MAX_HEADS_SHOWN else ""
