"""qkv noise: moments, probability, sample, compare, harden, sweep."""

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
    arrays_of,
    heads_of,
    memory_from,
    progress,
    say,
    show,
    weights_of,
    working,
)
from qkv.cli.exit_codes import exit_if_negative
from qkv.cli.help_format import CommandGroup, Commands, one_of
from qkv.cli.noise_options import NO_NOISE, NoiseOptions, noise_options
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.noise.key_noise import Noise
    from qkv.noise.robust.robust_query import RobustQuery

app = Commands(
    cls=CommandGroup,
    help="Random keys: exact moments, probabilities and robust queries of attention under noise.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Query = Annotated[
    Path | None,
    typer.Option(
        help="File with the query, or the result of design or harden; several rows are heads, mixed by its 'mix' or "
        "averaged."
    ),
]
Weights = Annotated[
    str, typer.Option(help="Wanted weights, such as 0=1/2,1=1/2; or the result of another command that has some.")
]
Radius = Annotated[
    float, typer.Option(help="Largest distance of the output from the wanted one that counts as success.")
]
Tol = Annotated[float, typer.Option(help="Largest distance of the weights from the wanted ones, without noise.")]
PICTURES = ("weights", "variance", "success")
DrawSeed = Annotated[int, typer.Option("--seed", help="Seed of the draws, and of a generated memory.")]


@app.command()
@noise_options
def moments(
    memory: MemoryFile = None,
    query: Query = None,
    noise: NoiseOptions = NO_NOISE,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """Exact mean and variance of the weights and the output of a query, or of several heads."""
    from qkv.noise.moments.mixture import reading_moments

    found = memory_from(memory, orthonormal, seed)
    given = noise.read(found)
    with progress("heads and pairs of heads") as step:
        result = reading_moments(found, _queries(query), given.model(found), callback=step)
    show(result, as_json, noise=given.to_json())


@app.command()
@noise_options
def probability(
    memory: MemoryFile = None,
    query: Query = None,
    weights: Weights = "",
    radius: Radius = 0.1,
    noise: NoiseOptions = NO_NOISE,
    orthonormal: Orthonormal = None,
    seed: DrawSeed = 0,
    as_json: JSON = False,
) -> None:
    """The probability that the output is near the wanted blend."""
    from qkv.noise.probability.output_within import success_probability

    found = memory_from(memory, orthonormal, seed)
    given, wanted = noise.read(found), weights_of(found, weights)
    with working("integrating or drawing"):
        result = success_probability(found, _queries(query), given.model(found), wanted, radius, seed=seed)
    show(result, as_json, noise=given.to_json(), wanted=wanted)


@app.command()
@noise_options
def sample(
    memory: MemoryFile = None,
    query: Query = None,
    n_draws: Annotated[int, typer.Option(help="How many readings to draw.")] = 1_000_000,
    noise: NoiseOptions = NO_NOISE,
    orthonormal: Orthonormal = None,
    seed: DrawSeed = 0,
    as_json: JSON = False,
) -> None:
    """Monte Carlo: the same figures from drawn scores, with standard errors; true rounding with --bits."""
    from qkv.noise.monte_carlo import sample as draw

    found = memory_from(memory, orthonormal, seed)
    given = noise.read(found)
    with progress("draws") as step:
        result = draw(found, _queries(query), given.model(found), n_draws, seed, callback=step)
    show(result, as_json, noise=given.to_json())


@app.command()
@noise_options
def compare(
    memory: MemoryFile = None,
    weights: Weights = "",
    tol: Tol = 1e-2,
    noise: NoiseOptions = NO_NOISE,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    radius: Radius = 0.25,
    as_json: JSON = False,
    plot: Plot = None,
    picture: Annotated[
        str | None,
        typer.Option(
            help="With --plot: weights (the default), or variance or success against scale.",
            autocompletion=one_of(PICTURES),
        ),
    ] = None,
) -> None:
    """One plain head, one head per item, and a hardened one for the same blend, side by side."""
    from qkv.viz.theme import check_plot_path

    check_plot_path(plot)
    if picture is not None and plot is None:
        raise QkvError(f"--picture {picture}", "there is no file to draw it to", "Give --plot FILE.png too")
    picture = picture or PICTURES[0]
    if picture not in PICTURES:
        raise QkvError(f"--picture {picture}", "there is no such picture", f"Use one of {', '.join(PICTURES)}")
    found = memory_from(memory, orthonormal, seed)
    given, wanted = noise.read(found), weights_of(found, weights)
    model = given.model(found)
    result = _hardened(found, wanted, model, tol, 1)
    if plot is not None:
        _draw(picture, plot, found, result.layouts, model, wanted, radius)
    show(result.comparison, as_json, noise=given.to_json(), wanted=wanted)
    if plot is not None and not as_json:
        say(f"drawn: {plot}\n")


@app.command()
@noise_options
def harden(
    memory: MemoryFile = None,
    weights: Weights = "",
    tol: Tol = 1e-2,
    heads: Annotated[int, typer.Option(help="How many heads to use.")] = 1,
    noise: NoiseOptions = NO_NOISE,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """The query, or the heads, that keep a blend in spite of the noise; exit 1 if none is within tol without it."""
    found = memory_from(memory, orthonormal, seed)
    given, wanted = noise.read(found), weights_of(found, weights)
    result = _hardened(found, wanted, given.model(found), tol, heads)
    show(result, as_json, possible=result.possible, noise=given.to_json())
    exit_if_negative(result.possible)


@app.command()
@noise_options
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            help="File with keys (h, n, d) or (n, d), queries (h, d) and perhaps values of h heads; - for JSON on "
            "standard input."
        ),
    ],
    weights: Annotated[str, typer.Option(help="Harden this blend in every head, such as 0=1/2,1=1/2.")] = "",
    tol: Tol = 1e-2,
    noise: NoiseOptions = NO_NOISE,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask cluster, tcp://…")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Local processes; as many as there are cores if not given.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Moments of many heads, or a robust query for each, over processes or a cluster; exit 1 if a head has none."""
    from qkv.noise.sweep import HardenSweep, MomentsSweep, harden_sweep, moments_sweep

    memories, queries = _heads_of(file, need_queries=not weights)
    given = noise.read(memories[0])
    model = given.model(memories[0])
    result: MomentsSweep | HardenSweep
    with progress("heads") as step:
        if weights:
            wanted = [weights_of(memory, weights) for memory in memories]
            result = harden_sweep(memories, wanted, model, tol, cluster=cluster, processes=processes, callback=step)
        else:
            result = moments_sweep(memories, queries, model, cluster=cluster, processes=processes, callback=step)
    possible = all(head.possible for head in result.heads) if isinstance(result, HardenSweep) else None
    show(result, as_json, possible=possible, noise=given.to_json())
    exit_if_negative(possible)


def _heads_of(path: Path, need_queries: bool) -> tuple[list[Memory], Any]:
    """The memory of each head in a file, and the queries (h, d), or None."""
    from qkv.core.files import pick
    from qkv.core.memory import Memory
    from qkv.core.validation import tensor

    arrays = arrays_of(path)
    request = f"the heads in {path}"
    queries = tensor("queries", arrays["queries"], "h d") if "queries" in arrays else None
    if need_queries and queries is None:
        raise QkvError(request, "the file holds no queries", "Name an array (h, d) 'queries', or give --weights")
    keys = tensor("keys", pick(arrays, "keys", path))
    values = tensor("values", arrays["values"]) if "values" in arrays else None
    if keys.dim() == 2:
        return [Memory(keys, values, arrays.get("labels"))] * (1 if queries is None else len(queries)), queries
    if keys.dim() != 3 or (values is not None and (values.dim() != 3 or len(values) != len(keys))):
        problem = f"keys have the shape {tuple(keys.shape)}"
        if values is not None:
            problem += f" and values {tuple(values.shape)}"
        raise QkvError(request, problem, "Give keys (h, n, d) and values (h, n, dv), or keys (n, d)")
    if queries is not None and len(queries) != len(keys):
        raise QkvError(request, f"there are {len(keys)} memories for {len(queries)} queries", "Give one for each")
    labels = arrays.get("labels")
    return [Memory(k, None if values is None else values[i], labels) for i, k in enumerate(keys)], queries


def _hardened(memory: Memory, wanted: Any, noise: Noise, tol: float, heads: int) -> RobustQuery:
    from qkv.noise.robust.robust_query import harden as search

    with progress("hardening") as step:
        return search(memory, wanted, noise, tol, heads, callback=step)


def _queries(path: Path | None) -> Any:
    if path is None:
        raise QkvError("reading under noise", "there is no query", "Give --query FILE, or use compare or harden")
    queries, mix = heads_of(path)
    return queries if mix is None else (queries, mix)


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
