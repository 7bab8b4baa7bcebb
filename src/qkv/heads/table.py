"""The table of heads: one row for each head of a model, measured on a text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import torch

from qkv.core.display import Card, Displayable
from qkv.core.validation import whole
from qkv.heads.ablation import head_effects
from qkv.heads.firmness import Firmness, FirmnessParts
from qkv.heads.output_circuit import output_circuits, vocabulary_matrix, writing_measures
from qkv.heads.patterns import CLEAR, Patterns, PatternSums, kind, repeated_tokens

if TYPE_CHECKING:
    from qkv.heads.adapter import AttentionCall
    from qkv.heads.attention_model import AttentionModel, Progress

REPEATED = 64
"""Random tokens that are repeated to find induction heads."""


@dataclass(frozen=True)
class HeadRow:
    """One head.

    Attributes:
        layer: Its layer, from 0.
        head: Its number in the layer, from 0.
        kind: What it looks up.
        score: The mean weight that gave the kind; for "broad" the share of tokens that it averages.
        effect: What is lost without it: nats per token, or the share by which the last hidden states move.
        effect_repeated: The same on repeated random tokens; None for a model that predicts no tokens.
        effective: How many tokens it effectively averages.
        previous: Mean weight on the token before.
        induction: Mean weight on what followed earlier copies of the token, on repeated random tokens; on the
            text if tokens see what comes after them, and None if nothing in it is repeated.
        duplicate: Mean weight on earlier copies of the token, in the same way.
        first: Mean weight on the first token.
        itself: Mean weight on the token itself.
        margin: Median margin of the first item's score over the second's.
        radius: Median distance that every key may move without another item on top, as a share of a key's length.
        reads: Share of queries that put at least 90 % of their weight on one item.
        copying: Whether looking at a token makes it likelier: from -1 to 1.
        rank: Effective rank of what it writes.
        subspace: How nearly it keeps a subspace as it is: from 0 to 1.
    """

    layer: int
    head: int
    kind: str
    score: float
    effect: float
    effect_repeated: float | None
    effective: float
    previous: float
    induction: float | None
    duplicate: float | None
    first: float
    itself: float
    margin: float
    radius: float
    reads: float
    copying: float
    rank: float
    subspace: float


@dataclass(frozen=True)
class HeadTable(Displayable):
    """The heads of a model, measured on a text.

    Attributes:
        model: The model's name.
        tokens: Tokens of the text that were read.
        windows: In how many windows.
        effect_tokens: Tokens on which the effect of removal was measured.
        effect_unit: The unit of `effect`.
        repeated: Whether induction and duplicates were judged on repeated random tokens.
        rows: One for each head.
    """

    model: str
    tokens: int
    windows: int
    effect_tokens: int
    effect_unit: str
    repeated: bool
    rows: tuple[HeadRow, ...]

    def __iter__(self) -> Iterator[HeadRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts: `pandas.DataFrame(table.records())`."""
        return [asdict(row) for row in self.rows]

    def to_csv(self) -> str:
        """The rows as comma-separated values with a header."""
        out = io.StringIO()
        writer = csv.DictWriter(out, [f.name for f in fields(HeadRow)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in self.records())
        return out.getvalue()

    def card(self) -> Card:
        kinds: dict[str, int] = {}
        for row in self.rows:
            kinds[row.kind] = kinds.get(row.kind, 0) + 1
        counted = ", ".join(f"{count} {name}" for name, count in sorted(kinds.items(), key=lambda k: -k[1]))
        facts = (
            ("read", f"{self.tokens} tokens in {self.windows} window{'s' if self.windows > 1 else ''}"),
            ("heads", counted),
            ("effect", f"{self.effect_unit}, with the head's output set to zero, on {self.effect_tokens} tokens"),
        )
        columns = (
            "head",
            "kind",
            "score",
            "effect",
            "averages",
            "margin",
            "radius",
            "reads",
            "copying",
            "rank",
            "subspace",
        )
        rows = tuple(
            (
                f"{r.layer}.{r.head}", r.kind, f"{r.score:.2f}", f"{r.effect:+.4f}", f"{r.effective:.1f}",
                f"{r.margin:.2f}", f"{r.radius:.3f}", f"{r.reads:.0%}", f"{r.copying:+.2f}", f"{r.rank:.1f}",
                f"{r.subspace:.2f}",
            )
            for r in self.rows
        )  # fmt: skip
        judged = "repeated random tokens" if self.repeated else "the text, in which other tokens may stand out as well"
        note = (
            f"A kind is a mean weight of at least {CLEAR}; induction and duplicate are judged on {judged}. "
            "score: that weight. averages: exp(entropy). radius: how far every key may move, as a share of a key's "
            "length, before another item can be on top. reads: queries with at least 90 % of their weight on one item."
        )
        return Card(f"Heads of {self.model}", facts, columns, rows, note)


def table(
    model: AttentionModel,
    text: str | Sequence[str],
    *,
    window: int | None = None,
    effect_tokens: int = 128,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> HeadTable:
    """Measure every head of a model on a text.

    Args:
        model: From `qkv.heads.open`.
        text: One text or several; longer ones are cut into windows.
        window: Tokens of a window; 512 or the model's context if None.
        effect_tokens: Tokens of the first window on which the effect of removing each head is measured.
        seed: Of the repeated random tokens.
        progress: Called with steps done and in all.

    Returns:
        One row for each head.

    Raises:
        QkvError: The text has less than two tokens, or the window does not fit.
    """
    effect_tokens = whole("measuring the heads", "effect_tokens", effect_tokens, 2)
    windows, shape = model.windows(text, window), model.shape
    steps = len(windows) + 2 * shape.layers + 1
    sums, parts = PatternSums(shape.layers, shape.heads), FirmnessParts(shape.layers, shape.heads)

    def tap(number: int, call: AttentionCall) -> None:
        scores = call.scores()[0]
        sums.add(call.layer, call.weights[0], windows[number], torch.isfinite(scores[0]), call.layer == 0)
        parts.add(call, scores)

    model.stream(windows, tap, lambda done, _: progress(done, steps))
    patterns, firmness = sums.result(), parts.result()

    ids = windows[0][:effect_tokens]
    effects = head_effects(model, [ids], lambda done, _: progress(len(windows) + done, steps))
    repeated, repeated_effects = None, None
    if model.causal:
        twice = _repeated(model, seed)
        again = PatternSums(shape.layers, shape.heads)
        model.run(
            twice, lambda c: again.add(c.layer, c.weights[0], twice[0], torch.isfinite(c.scores()[0, 0]), c.layer == 0)
        )
        repeated = again.result()
        if model.predicts:
            before = len(windows) + shape.layers
            repeated_effects = head_effects(model, [twice[0]], lambda done, _: progress(before + done, steps))
    rows = _rows(model, patterns, repeated, firmness, effects, repeated_effects)
    progress(steps, steps)
    unit = "nats per token" if model.predicts else "relative change of the last hidden states"
    return HeadTable(
        model.name, sum(map(len, windows)), len(windows), len(ids), unit, repeated is not None, tuple(rows)
    )


def _rows(
    model: AttentionModel,
    patterns: Patterns,
    repeated: Patterns | None,
    firmness: Firmness,
    effects: torch.Tensor,
    repeated_effects: torch.Tensor | None,
) -> list[HeadRow]:
    circuits, vocabulary = output_circuits(model), vocabulary_matrix(model)
    copies = patterns if repeated is None else repeated
    rows = []
    for layer in range(model.shape.layers):
        for head in range(model.shape.heads):
            at = (layer, head)
            name, score = kind(patterns, repeated, layer, head)
            rows.append(
                HeadRow(
                    layer,
                    head,
                    name,
                    score,
                    effect=float(effects[at]),
                    effect_repeated=None if repeated_effects is None else float(repeated_effects[at]),
                    effective=float(patterns.effective[at]),
                    previous=float(patterns.previous[at]),
                    induction=_known(copies.induction[at]),
                    duplicate=_known(copies.duplicate[at]),
                    first=float(patterns.first[at]),
                    itself=float(patterns.itself[at]),
                    margin=float(firmness.margin[at]),
                    radius=float(firmness.radius[at]),
                    reads=float(firmness.reads[at]),
                    **asdict(writing_measures(circuits[layer], head, vocabulary)),
                )
            )
    return rows


def _known(value: torch.Tensor) -> float | None:
    return None if bool(value.isnan()) else float(value)


def _repeated(model: AttentionModel, seed: int) -> torch.Tensor:
    special = set(getattr(model.tokenizer, "all_special_ids", ()) or ())
    first = getattr(model.tokenizer, "bos_token_id", None)
    n = min(REPEATED, (model.context - 1) // 2)
    return repeated_tokens(model.model.config.vocab_size, n, 1, seed, first, special)
