"""qkv facts: texts and questions from a table of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from qkv.cli.common import JSON, show
from qkv.cli.given_options import refuse_idle
from qkv.cli.help_format import one_of
from qkv.errors import QkvError

EXAMPLES = ("occupation", "country", "minerals")
FORMS = ("auto", "triples", "table")
OF_A_TABLE = ("relation", "wording", "statement", "held_out", "outside", "versions", "people", "form")
OF_AN_EXAMPLE = ("subjects",)


def facts(
    context: typer.Context,
    table: Annotated[
        Path | None,
        typer.Argument(
            help="Rows subject, relation, object; or a table with a header, such as title,author,year. Commas, "
            "semicolons or tabs between the cells, quoted or not; or .jsonl."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for texts.txt, train.tsv, dev.tsv and outside.tsv.")] = Path(
        "facts"
    ),
    example: Annotated[
        str | None,
        typer.Option(
            help=f"A shipped example instead of a table: {', '.join(EXAMPLES)}.", autocompletion=one_of(EXAMPLES)
        ),
    ] = None,
    relation: Annotated[
        list[str] | None, typer.Option(help="Ask for this relation; may be repeated. [default: all]")
    ] = None,
    wording: Annotated[
        list[str] | None,
        typer.Option(help='A question, such as author="Who wrote {subject}?"; may be repeated.'),
    ] = None,
    statement: Annotated[
        list[str] | None,
        typer.Option(help='A sentence of the texts, such as author="{subject} is by {object}."; may be repeated.'),
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the subjects whose questions are in dev.tsv only; all are in the texts.")
    ] = 0.25,
    outside: Annotated[
        float, typer.Option(help="Share of the subjects left out of the texts for outside.tsv; 0 invents names.")
    ] = 0.0,
    versions: Annotated[int, typer.Option(help="Texts about each subject, in different words, 1 to 5.")] = 1,
    people: Annotated[
        bool | None,
        typer.Option(
            "--people/--things",
            help="What the subjects are; --people makes city, country and year facts of their birth, too. [default: "
            "people if the relations say so]",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option(help=f"Of the table: {', '.join(FORMS)}.", autocompletion=one_of(FORMS))
    ] = "auto",
    subjects: Annotated[int, typer.Option(help="Subjects of an example; 0 for its own number.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of split, wordings and invented names.")] = 0,
    as_json: JSON = False,
) -> None:
    """Write texts and questions about a table of facts of your own, for training and for scoring."""
    # long: most of it are the options, one after another
    from qkv.knowledge.datasets.examples import write_example
    from qkv.knowledge.datasets.fact_files import write_facts
    from qkv.knowledge.datasets.fact_tables import load_facts

    if (table is None) == (example is None):
        problem = "both a table and --example were given" if table else "there is neither a table nor --example"
        raise QkvError("writing facts", problem, "Give one of them")
    if example is None:
        refuse_idle(context, "writing facts of a table", OF_AN_EXAMPLE, "--example")
    else:
        refuse_idle(context, f"writing the example {example}", OF_A_TABLE, "a table of your own")
        show(write_example(example, out, subjects, seed), as_json)
        return
    loaded = load_facts(cast(Path, table), people, form=cast(Any, form))
    sentences = {"wordings": _by_relation("wording", wording), "statements": _by_relation("statement", statement)}
    shares = {"held_out": held_out, "outside": outside, "versions": versions, "seed": seed}
    show(write_facts(loaded, out, relation, **cast(Any, sentences | shares)), as_json)


def _by_relation(option: str, given: list[str] | None) -> dict[str, list[str]]:
    """Options relation=template by relation."""
    out: dict[str, list[str]] = {}
    for each in given or ():
        relation, equals, template = each.partition("=")
        if not (equals and relation.strip() and template.strip()):
            raise QkvError(f"--{option} {each}", "it is not of the form relation=sentence", "Write it like author=…")
        out.setdefault(relation.strip(), []).append(template.strip())
    return out


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(facts)
