"""qkv design: copy, blend, project, wire, reach, copyable, and verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from qkv.cli.common import (
    JSON,
    STDIN,
    MemoryFile,
    Orthonormal,
    Plot,
    Save,
    Seed,
    Tol,
    array_from,
    arrays_of,
    check_outputs,
    deliver,
    item_of,
    memory_from,
    progress,
    rules_of,
    say,
    show,
    weights_of,
    working,
)
from qkv.cli.exit_codes import exit_if_negative
from qkv.cli.help_format import CommandGroup, Commands, one_of
from qkv.cli.json_documents import document_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.types import ArrayLike
    from qkv.design.certificates.certificate import Certificate

app = Commands(
    cls=CommandGroup,
    help="Say what a head should look up; get the query or matrices with a certificate, or a proof that none exists.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Form = Annotated[
    str,
    typer.Option(
        help="'smallest' norm, or 'textbook' t(k_a + k_b) for orthogonal keys.",
        autocompletion=one_of(("smallest", "textbook")),
    ),
]
Tokens = Annotated[Path, typer.Argument(help="File with the tokens X as rows; it may hold the other arrays too.")]


@app.command()
def copy(
    memory: MemoryFile = None,
    item: Annotated[str, typer.Option(help="Label or index of the item.")] = "0",
    tol: Tol = 1e-3,
    form: Form = "smallest",
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
    save: Save = None,
    plot: Plot = None,
) -> None:
    """Find the query that reads one item; exit 1 if none is within tol."""
    check_outputs(save, plot)
    from qkv.design.query import copy as design
    from qkv.viz.plots import design as plots

    found = memory_from(memory, orthonormal, seed)
    with working("finding the query"):
        result = design(found, found.labels[item_of(found, item)], tol, cast(Any, form))
    deliver(result, as_json, save, plot, lambda: plots.reading(found, result), memory=found)


@app.command()
def blend(
    memory: MemoryFile = None,
    weights: Annotated[
        str, typer.Option(help="Wanted weights, such as 0=0.5,1=0.5 or a=1/3,b=2/3; or a file that has some.")
    ] = "",
    tol: Tol = 1e-3,
    form: Form = "smallest",
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
    save: Save = None,
    plot: Plot = None,
) -> None:
    """Find the query that reads a weighted average of items; exit 1 if none is within tol."""
    check_outputs(save, plot)
    from qkv.design.query import blend as design
    from qkv.viz.plots import design as plots

    found = memory_from(memory, orthonormal, seed)
    wanted = weights_of(found, weights)
    with working("finding the query"):
        result = design(found, wanted, tol, cast(Any, form))
    deliver(result, as_json, save, plot, lambda: plots.reading(found, result), memory=found)


@app.command()
def project(
    a: Annotated[Path, typer.Argument(metavar="A", help="File with the basis A as columns.")],
    b: Annotated[str, typer.Argument(metavar="B", help="File with the basis B, or its name in the first file.")],
    as_json: JSON = False,
    save: Save = None,
) -> None:
    """Find the matrix that reads span A out of a sum of vectors from span A and span B; exit 1 if there is none."""
    check_outputs(save)
    from qkv.core.files import pick
    from qkv.design.projection import project as design

    arrays = arrays_of(a)
    deliver(design(pick(arrays, "A", a), array_from(b, "B", arrays)), as_json, save)


@app.command()
def wire(
    tokens: Tokens,
    reads: Annotated[str, typer.Option(help="Rules token:token, such as 0:2,1:0; blends as 0:1=0.5+2=0.5.")],
    writes: Annotated[str, typer.Option(help="What each rule writes, one row per rule: a file, or a name in TOKENS.")],
    tol: Tol = 1e-3,
    head_size: Annotated[int | None, typer.Option(help="Rows of Q and K; the rank of W if not given.")] = None,
    prefer: Annotated[
        str, typer.Option(help="A W = QᵀK of small 'norm' or of low 'rank'.", autocompletion=one_of(("norm", "rank")))
    ] = "norm",
    mask: Annotated[
        str | None,
        typer.Option(help="'causal': a token sees itself and those before it.", autocompletion=one_of(("causal",))),
    ] = None,
    as_json: JSON = False,
    save: Save = None,
    plot: Plot = None,
) -> None:
    """Find Q, K and V with which tokens read and write by rules; exit 1 if there are none."""
    check_outputs(save, plot)
    from qkv.core.files import pick
    from qkv.design.wiring import wire as design
    from qkv.viz.plots import design as plots

    arrays = arrays_of(tokens)
    X = pick(arrays, "X", tokens)
    rules = rules_of(reads)
    written = _writes_by_rule(rules, array_from(writes, "writes", arrays))
    if mask not in (None, "causal"):
        raise QkvError(f"wiring with --mask {mask}", "there is no such mask", "Use causal, or leave it out")
    with progress("percent of finding Q, K and V") as step:
        result = design(X, rules, written, tol, head_size, cast(Any, prefer), mask=cast(Any, mask), progress=step)
    if plot is not None and not result.possible:
        typer.echo("nothing to draw: there are no such matrices", err=True)
        plot = None
    deliver(result, as_json, save, plot, lambda: plots.wiring(X, result.Q, result.K, result.V), X=X)


@app.command()
def reach(
    tokens: Tokens,
    token: Annotated[int, typer.Option(help="The token that is changed.")],
    along: Annotated[str, typer.Option(help="The direction that is added: a file, or a name in TOKENS.")],
    target: Annotated[str, typer.Option(help="What its output should be: a file, or a name in TOKENS.")],
    tol: Annotated[float, typer.Option(help="How near counts as reached, relative to the target's length.")] = 1e-2,
    as_json: JSON = False,
    save: Save = None,
    plot: Plot = None,
) -> None:
    """Ask whether adding a multiple of a direction to a token can make its output a target; exit 1 if none can.

    Q, K and V are the identity.
    """
    check_outputs(save, plot)
    from qkv.core.files import pick
    from qkv.design.reachability import reach as design
    from qkv.viz.plots import design as plots

    arrays = arrays_of(tokens)
    X = pick(arrays, "X", tokens)
    u, y = array_from(along, "along", arrays), array_from(target, "target", arrays)
    with working("searching for a multiple and for a proof"):
        result = design(X, token, u, y, tol)
    deliver(result, as_json, save, plot, lambda: plots.reach(X, token, {along: (u, result)}, y))


@app.command()
def copyable(
    memory: MemoryFile = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask cluster, tcp://…")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Local processes; as many as there are cores if not given.")
    ] = None,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
    save: Save = None,
    plot: Plot = None,
) -> None:
    """Decide for every key whether some query can select it; exit 1 if one cannot be selected."""
    check_outputs(save, plot)
    from qkv.design.hull.selectable import copyable as design
    from qkv.viz.plots import design as plots

    found = memory_from(memory, orthonormal, seed)
    with progress("keys") as step:
        result = design(found, cluster=cluster, processes=processes, callback=step)
    draw = (lambda: plots.hull(found, result)) if found.d == 2 else (lambda: plots.margins(result))
    deliver(result, as_json, save, plot, draw, memory=found)
    exit_if_negative(bool(result.possible.all()))


@app.command()
def verify(
    file: Annotated[
        Path, typer.Argument(help="A saved certificate; or a file with X, Q, K, V, with --reads and --writes.")
    ],
    reads: Annotated[
        str | None, typer.Option(help="Rules that the matrices in FILE should follow, such as 0:2,1:0.")
    ] = None,
    writes: Annotated[str | None, typer.Option(help="What each rule should write: a file, or a name in FILE.")] = None,
    tol: Annotated[
        float | None, typer.Option(help="With --reads: how near the weights must be; 1e-3 if not given.")
    ] = None,
    output_tol: Annotated[float | None, typer.Option(help="With --reads: how near what is written must be.")] = None,
    as_json: JSON = False,
) -> None:
    """Verify certificates from their raw inputs, with no solver; exit 1 if one is refused."""
    from qkv.design.certificates.certificate import verify_file

    if reads is None and (writes, tol, output_tol) != (None, None, None):
        problem = "--writes, --tol or --output-tol was given without --reads"
        raise QkvError(
            f"verifying {file}", problem, "Give --reads too, to check matrices; a certificate holds its own rules"
        )
    if str(file) == STDIN and reads is None:
        problem = "certificates are read from files, which --save writes"
        raise QkvError("verifying certificates from standard input", problem, "Name the file")
    with working("verifying"):
        if reads is None:
            checked = verify_file(file)
        else:
            nearness = 1e-3 if tol is None else tol
            checked = [_wiring_certificate(file, reads, writes, nearness, output_tol).verify()]
    if as_json:
        report = {"holds": all(checked), "certificates": [verification.to_json() for verification in checked]}
        say(document_text(report))
    else:
        for verification in checked:
            show(verification, as_json=False)
    exit_if_negative(all(checked))


def _wiring_certificate(
    file: Path, reads: str, writes: str | None, tol: float, output_tol: float | None
) -> Certificate:
    """The statement that the matrices in a file follow the rules."""
    from qkv.design.wiring import check_wiring

    arrays = arrays_of(file)
    missing = [name for name in "XQKV" if name not in arrays]
    if missing or writes is None:
        problem = f"{file} lacks {', '.join(missing)}" if missing else "there is no --writes"
        raise QkvError(
            f"checking matrices from {file}", problem, "Give a file with X, Q, K and V, and --reads and --writes"
        )
    rules = rules_of(reads)
    written = _writes_by_rule(rules, array_from(writes, "writes", arrays))
    return check_wiring(arrays["X"], arrays["Q"], arrays["K"], arrays["V"], rules, written, tol, output_tol)


def _writes_by_rule(rules: dict[int, dict[int, float]], rows: ArrayLike) -> dict[int, ArrayLike]:
    """The rows to write, by the token of their rule."""
    from qkv.core.validation import tensor

    y = tensor("writes", rows, "rules d")
    if len(y) != len(rules):
        raise QkvError("wiring", f"rules: {len(rules)}, rows to write: {len(y)}", "Give one row for each rule")
    return dict(zip(rules, y, strict=True))
