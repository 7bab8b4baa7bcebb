"""qkv certify and qkv name-heads: evidence about heads beyond their table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import JSON, check_outputs, progress, show, working
from qkv.cli.heads import _content, _opened, head_of
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.heads.name_lookup import NamedQuestion


def certify(
    model: Annotated[str, typer.Argument(help="Model folder, run folder or hub name.")],
    head: Annotated[str, typer.Option(help="The head, LAYER.HEAD such as 18.6.")],
    text: Annotated[Path, typer.Option(help="File with the text to read.")],
    save: Annotated[Path, typer.Option(help="File for the certificates, .json or .safetensors.")],
    window: Annotated[int | None, typer.Option(help="Tokens of a window; 512 or the model's context.")] = None,
    online: Annotated[bool, typer.Option("--online", help="Ask the hub for what is not on this machine.")] = False,
    as_json: JSON = False,
) -> None:
    """Certify how far the keys of a head may move on a text before another item is on top."""
    from qkv.design.certificates.certificate import save as save_certificates
    from qkv.heads.certified_head import CertifiedHead

    layer, number = head_of(head)
    check_outputs(save)
    content = _content(text)
    with working(f"certifying head {head}"):
        opened = _opened(model, offline=not online)
        made = opened.head(layer, number).radius_certificates(content, window)
    save_certificates(made, save)
    radii = [float(r) for one in made for r in one.claims["radius"]]
    statements = tuple(one.statement for one in made)
    show(CertifiedHead(model, head, len(radii), len(made), min(radii), statements, str(save)), as_json)


def name_heads(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that was trained on questions.")],
    questions: Annotated[Path, typer.Option(help="File of lines question<TAB>answer.")],
    count: Annotated[int, typer.Option(help="How many heads to remove together.")] = 2,
    removal: Annotated[
        str, typer.Option(help="What takes the place of a removed head's output: its mean over the questions, or zero.")
    ] = "mean",
    limit: Annotated[int, typer.Option(help="Questions to ask at most, from the first on.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the random choices of other heads.")] = 0,
    as_json: JSON = False,
) -> None:
    """Find the heads that look up the name in questions, and what the model answers without them."""
    from qkv.heads.ablation import checked_removal
    from qkv.heads.name_lookup import name_heads as find

    by = checked_removal("finding the heads that look up the name", removal)
    asked = _encoded(run, questions, limit)
    model = _opened(str(run), offline=True)
    with progress("removing heads") as step:
        found = find(model, asked, count=count, removal=by, seed=seed, progress=step)
    show(found, as_json)


def _encoded(run: Path, questions: Path, limit: int) -> list[NamedQuestion]:
    """Questions with answers, as the run was trained to read them: question ⁇ answer ⁇."""
    from qkv.core.validation import whole
    from qkv.heads.name_lookup import NamedQuestion
    from qkv.knowledge.answering.answer_model import encode_question, load_answer_model
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.train.tokenizers import MASK_ID

    limit = whole("asking questions", "limit", limit, 1)
    pairs = load_questions(questions).pairs[:limit]
    model = load_answer_model(run)
    out = []
    for question, answer in pairs:
        encoded = encode_question(model, question)
        if not encoded.named:
            raise QkvError(f"asking {question[:40]!r}", "no name was found in it", "Ask about somebody or something")
        out.append(NamedQuestion(encoded.ids, [*model.tokenizer.encode(answer), MASK_ID], encoded.name))
    return out
