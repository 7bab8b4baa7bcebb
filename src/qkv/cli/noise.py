"""qkv noise: moments, probability, sample, compare, harden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.cli.common import (
    JSON,
    MemoryFile,
    Orthonormal,
    Plot,
    Seed,
    array_from,
    item_of,
    memory_from,
    number_of,
    say,
    show,
    weights_of,
    working,
)
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.noise.key_noise import Noise

app = typer.Typer(
    help="Keys are random: say how, and get the exact spread of what attention returns.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Query = Annotated[Path | None, typer.Option(help="File with the query; several rows are heads, averaged.")]
Weights = Annotated[str, typer.Option(help="Wanted weights, such as 0=1/2,1=1/2.")]
Isotropic = Annotated[float, typer.Option(help="Variance of every key in every direction.")]
Along = Annotated[str, typer.Option(help="Variance of keys along themselves, such as 0=0.5: 0.5 μ₀μ₀ᵀ.")]
Bits = Annotated[int | None, typer.Option(help="Instead: keys rounded channel by channel to so many bits.")]
Covariance = Annotated[str | None, typer.Option(help="File with a covariance (d, d) for all keys, or (n, d, d).")]
Radius = Annotated[float, typer.Option(help="How near the output must be to the wanted one, to count as success.")]
Tol = Annotated[float, typer.Option(help="Largest distance of the weights from the wanted ones, without noise.")]
PICTURES = ("weights", "variance", "success")


@app.command()
def moments(
    memory: MemoryFile = None,
    query: Query = None,
    isotropic: Isotropic = 0.0,
    along: Along = "",
    bits: Bits = None,
    covariance: Covariance = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """Exact mean and variance of the weights and the output of a query, or of several heads."""
    from qkv.noise.moments.mixture import reading_moments as exact

    found = memory_from(memory, orthonormal, seed)
    show(exact(found, _queries(query), _noise(found, isotropic, along, bits, covariance)), as_json)


@app.command()
def probability(
    memory: MemoryFile = None,
    query: Query = None,
    weights: Weights = "",
    radius: Radius = 0.1,
    isotropic: Isotropic = 0.0,
    along: Along = "",
    bits: Bits = None,
    covariance: Covariance = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """The probability that the output is near the wanted blend."""
    from qkv.noise.probability.output_within import success_probability as chance

    found = memory_from(memory, orthonormal, seed)
    noise = _noise(found, isotropic, along, bits, covariance)
    show(chance(found, _queries(query), noise, weights_of(found, weights), radius, seed=seed), as_json)


@app.command()
def sample(
    memory: MemoryFile = None,
    query: Query = None,
    n_draws: Annotated[int, typer.Option(help="How many readings to draw.")] = 1_000_000,
    isotropic: Isotropic = 0.0,
    along: Along = "",
    bits: Bits = None,
    covariance: Covariance = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """Monte Carlo: the same figures from drawn scores, with standard errors; true rounding with --bits."""
    from qkv.noise.monte_carlo import sample as drawn

    found = memory_from(memory, orthonormal, seed)
    show(drawn(found, _queries(query), _noise(found, isotropic, along, bits, covariance), n_draws, seed), as_json)


@app.command()
def compare(
    memory: MemoryFile = None,
    weights: Weights = "",
    tol: Tol = 1e-2,
    isotropic: Isotropic = 0.0,
    along: Along = "",
    bits: Bits = None,
    covariance: Covariance = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    radius: Radius = 0.25,
    as_json: JSON = False,
    plot: Plot = None,
    picture: Annotated[
        str, typer.Option(help="What to plot: weights, or variance or success against scale.")
    ] = "weights",
) -> None:
    """One plain head, one an item, and a hardened one for the same blend, side by side."""
    from qkv.viz.theme import check_plot

    check_plot(plot)
    if picture not in PICTURES:
        raise QkvError(f"--picture {picture}", "there is no such picture", f"Use one of {', '.join(PICTURES)}")
    from qkv.noise.robust.robust_query import harden as hardened

    found = memory_from(memory, orthonormal, seed)
    noise = _noise(found, isotropic, along, bits, covariance)
    wanted = weights_of(found, weights)
    with working("hardening"):
        result = hardened(found, wanted, noise, tol)
    if plot is not None:
        _draw(picture, plot, found, result.layouts, noise, wanted, radius)
    show(result.comparison, as_json)
    if plot is not None and not as_json:
        say(f"drawn: {plot}\n")


@app.command()
def harden(
    memory: MemoryFile = None,
    weights: Weights = "",
    tol: Tol = 1e-2,
    heads: Annotated[int, typer.Option(help="How many heads to use.")] = 1,
    isotropic: Isotropic = 0.0,
    along: Along = "",
    bits: Bits = None,
    covariance: Covariance = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """The query, or the heads, that keep a blend in spite of the noise."""
    from qkv.noise.robust.robust_query import harden as hardened

    found = memory_from(memory, orthonormal, seed)
    noise = _noise(found, isotropic, along, bits, covariance)
    wanted = weights_of(found, weights)
    with working("hardening"):
        result = hardened(found, wanted, noise, tol, heads)
    show(result, as_json)


def _noise(memory: Memory, isotropic: float, along: str, bits: int | None, covariance: str | None) -> Noise:
    from qkv.noise.key_noise import Gaussian, Quantised

    if bits is not None:
        if isotropic or along or covariance:
            raise QkvError("noise from --bits", "another kind of noise was given too", "Give one kind of noise")
        return Quantised(bits)
    lengths = {}
    for part in along.split(",") if along else ():
        name, equals, value = part.rpartition("=")
        if not equals:
            raise QkvError(f"--along {along}", f"'{part}' is not of the form item=variance", "Write it like 0=0.5")
        lengths[memory.labels[item_of(memory, name.strip())]] = number_of(f"--along {along}", value)
    full: Any = None
    if covariance is not None:
        from qkv.design.specs import covariances

        each = covariances(array_from(covariance, "covariance", {}), memory.n, memory.d)
        full = dict(zip(memory.labels, each, strict=True))
    if not (isotropic or lengths or full):
        raise QkvError("reading under noise", "no noise was given", "Give --isotropic, --along, --covariance or --bits")
    return Gaussian(isotropic=isotropic, along=lengths or None, full=full)


def _queries(path: Path | None) -> Any:
    from qkv.core.files import pick, read_arrays
    from qkv.core.validation import tensor

    if path is None:
        raise QkvError("reading under noise", "there is no query", "Give --query FILE, or use compare or harden")
    found = tensor("the query", pick(read_arrays(path), "query", path))
    return found[0] if found.dim() == 2 and len(found) == 1 else found


def _draw(picture: str, path: Path, memory: Memory, layouts: Any, noise: Noise, wanted: Any, radius: float) -> None:
    from qkv.viz.plots import noise as plots
    from qkv.viz.theme import save

    if picture == "weights":
        drawn = plots.weights(memory, layouts, noise, next(iter(wanted)))
    elif picture == "variance":
        drawn = plots.variance(memory, layouts, noise)
    else:
        drawn = plots.success(memory, layouts, noise, wanted, radius)
    save(drawn, path)
