"""qkv design wire-texts: heads for the rules of texts over a vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qkv.cli.common import JSON, Save, Tol, check_outputs, deliver, progress
from qkv.cli.exit_codes import exit_if_negative
from qkv.errors import QkvError

Tokens = Annotated[Path, typer.Argument(help="File with token vectors as rows, such as a model's .safetensors.")]


def wire_texts(
    tokens: Tokens,
    reads: Annotated[str, typer.Option(help="The rule: previous, duplicate or induction.")],
    array: Annotated[str, typer.Option(help="Name of the token vectors in TOKENS, if it holds more.")] = "tokens",
    length: Annotated[int, typer.Option(help="Longest text; its positions get orthonormal vectors.")] = 128,
    texts: Annotated[
        Path | None, typer.Option(help="JSON with texts as lists of token numbers: a head for those alone.")
    ] = None,
    sink: Annotated[
        int | None, typer.Option(help="Token at the start of each text that is read where there is nothing to read.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Do not divide token vectors by their lengths.")] = False,
    least_gap: Annotated[float, typer.Option(help="Tokens nearer to another than this are named as excluded.")] = 1e-3,
    tol: Tol = 1e-3,
    as_json: JSON = False,
    save: Save = None,
) -> None:
    """Find attention with which the tokens of every text read by a rule; exit 1 if none is found."""
    check_outputs(save)
    from qkv.core.files import pick, read_arrays
    from qkv.design.sequences.rules import duplicate, induction, previous
    from qkv.design.sequences.text_wiring import wire_texts as design
    from qkv.design.sequences.texts import Sequences, Vocabulary

    if reads not in ("previous", "duplicate", "induction"):
        raise QkvError(f"--reads {reads}", "there is no such rule", "Use previous, duplicate or induction")
    if reads == "previous" and sink is not None:
        raise QkvError("--reads previous --sink", "every token but the first has one before it", "Leave --sink out")
    rule = previous() if reads == "previous" else {"duplicate": duplicate, "induction": induction}[reads](sink)
    arrays = read_arrays(tokens)
    vectors, labels = pick(arrays, array, tokens), arrays.get("labels")
    words = Vocabulary.side_by_side(vectors, length=length, normalise=not raw, labels=labels)
    what = words if texts is None else Sequences(words, _texts_from(texts))
    with progress("tokens compared" if texts is None else "percent") as step:
        result = design(what, rule, tol, least_gap, callback=step)
    deliver(result, as_json, save)
    exit_if_negative(result.possible)


def _texts_from(path: Path) -> list[list[int]]:
    """Texts from a JSON file."""
    from qkv.core.json_files import read_json

    request = f"reading texts from {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    try:
        found = read_json(path)
    except ValueError as why:
        raise QkvError(request, f"it cannot be read ({why})", "Write [[5, 3, 5], [1, 2]]") from None
    if not isinstance(found, list) or not all(isinstance(text, list) for text in found):
        raise QkvError(request, "it holds no list of lists", "Write [[5, 3, 5], [1, 2]]")
    return found
