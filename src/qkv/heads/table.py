"""The table of heads: one row for each head of a model, measured on a text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from qkv.core.display import Card, Displayable, lower_bound
from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.heads.ablation import REPLACEMENTS, MeanOutputs, Removal, checked_removal, head_effects
from qkv.heads.firmness import Firmness, FirmnessParts
from qkv.heads.key_grid import Per, checked_bits, checked_per
from qkv.heads.output_circuit import output_circuits, vocabulary_matrix, writing_measures
from qkv.heads.patterns import (
    CLEAR,
    ON_REPEATED,
    ON_TEXT,
    SKIPPED,
    Patterns,
    PatternSums,
    checked_seed,
    kind,
    repeated_tokens,
    score_text,
)
from qkv.heads.readable_keys import KeyShareParts, KeyShares
from qkv.heads.rounding import (
    Rounding,
    RoundingParts,
    percent_rounded_down,
    rounding_columns,
    share_text,
    with_rounding,
)

if TYPE_CHECKING:
    from qkv.heads.adapter import AttentionCall
    from qkv.heads.attention_model import AttentionModel, Progress

UNKNOWN: dict[str, float | None] = {"copying": None, "rank": None, "subspace": None}
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
        effect_repeated: The same on random tokens that come a second time, with the mean over those tokens; None for a
            model that predicts no tokens.
        effective: How many tokens it effectively averages.
        previous: Mean weight on the token before.
        induction: Mean weight on what followed earlier copies of the token, on repeated random tokens; on the
            text if tokens see what comes after them, and None if nothing in it is repeated.
        duplicate: Mean weight on earlier copies of the token, in the same way.
        first: Mean weight on the first token.
        itself: Mean weight on the token itself.
        margin: Median margin of the first item's score over the second's.
        radius: Median distance that every key may move without another item on top, as a share of a key's length; a
            lower bound that holds with rounding errors.
        reads: Share of queries that put at least 90 % of their weight on one item.
        keys_readable: Share of keys that some query no longer than the head's longest could read at 90 % when they are
            written, each shown by such a query; None for a head with a soft cap.
        keys_readable_at_most: The same with the keys of which neither this nor the contrary was shown.
        keys_read: Share of the same keys that one of the head's own queries reads at 90 %.
        copying: Whether looking at a token makes it likelier: from -1 to 1.
        rank: Effective rank of what it writes.
        subspace: How nearly it keeps a subspace as it is: from 0 to 1. These three are None where the matrices that a
            head writes with cannot be found, and copying where tokens are not embedded as hidden states.
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
    keys_readable: float | None
    keys_readable_at_most: float | None
    keys_read: float | None
    copying: float | None
    rank: float | None
    subspace: float | None


@dataclass(frozen=True)
class HeadTable(Displayable):
    """The heads of a model, measured on a text.

    Attributes:
        model: The model's name.
        tokens: Tokens of the text that were read.
        windows: In how many windows.
        effect_tokens: Tokens on which the effect of removal was measured.
        effect_unit: The unit of `effect`.
        removal: What takes the place of the output of a head that is removed: its "mean" over the text, or "zero".
        keys_asked: Keys of the text that were asked about for `keys_readable`, at even distances.
        repeated: Whether induction and duplicates were judged on repeated random tokens.
        told_apart: Whether some window has more than four tokens. If none has, all kinds are judged on repeated random
            tokens where there are any, and the other figures are of the last token of each window.
        rows: One for each head.
        rounding: The heads with their keys rounded; None if no bits were asked for.
    """

    model: str
    tokens: int
    windows: int
    effect_tokens: int
    effect_unit: str
    removal: Removal
    keys_asked: int
    repeated: bool
    told_apart: bool
    rows: tuple[HeadRow, ...]
    rounding: Rounding | None = None

    def __iter__(self) -> Iterator[HeadRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts: `pandas.DataFrame(table.records())`; with columns such as `measured_4` for 4 bits."""
        records = [asdict(row) for row in self.rows]
        if self.rounding is not None:
            for record in records:
                record |= rounding_columns(self.rounding, record["layer"], record["head"])
        return records

    def to_csv(self) -> str:
        """The rows as comma-separated values with a header."""
        out = io.StringIO()
        records = self.records()
        writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in records)
        return out.getvalue()

    def card(self) -> Card:
        kinds: dict[str, int] = {}
        for row in self.rows:
            kinds[row.kind] = kinds.get(row.kind, 0) + 1
        counted = ", ".join(f"{count} {name}" for name, count in sorted(kinds.items(), key=lambda k: -k[1]))
        replaced = REPLACEMENTS[self.removal]
        facts = (
            ("read", f"{self.tokens} tokens in {self.windows} window{'s' if self.windows > 1 else ''}"),
            ("heads", counted),
            ("effect", f"{self.effect_unit} on {self.effect_tokens} tokens, with the head's output {replaced}"),
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
            "readable",
            "read",
            "copying",
            "rank",
            "subspace",
        )
        rows = tuple(
            (
                f"{r.layer}.{r.head}", r.kind, score_text(r.kind, r.score), signed(r.effect), f"{r.effective:.1f}",
                f"{r.margin:.2f}", lower_bound(r.radius, 3), share_text(r.reads), _proved(r.keys_readable),
                _share(r.keys_read), _shown(r.copying, "+.2f"), _shown(r.rank, ".1f"), _shown(r.subspace, ".2f"),
            )
            for r in self.rows
        )  # fmt: skip
        judged = ON_REPEATED if self.repeated else f"{ON_TEXT}, in which other tokens may stand out as well"
        which = "induction and duplicate are" if self.told_apart or not self.repeated else "all kinds are"
        note = (
            f"A kind is a mean weight of at least {CLEAR}; {which} judged on {judged}. {self._short_text()}"
            "score: that weight. averages: exp(entropy). radius: how far every key may move, as a share of a key's "
            "length, before another item can be on top, for half of the queries (the median). reads: queries with at "
            "least 90 % of their weight on one item. "
            f"readable: keys, of {self.keys_asked} at even distances, that some query no longer than the head's "
            "longest could read at 90 % when they are written. read: those that one of the head's own queries reads so."
        )
        if any(r.copying is None and r.rank is not None for r in self.rows):
            note += " copying is empty: the model's tokens and logits are projections of its hidden states."
        if any(r.rank is None for r in self.rows):
            note += " copying, rank and subspace are empty: the matrices that the heads write with could not be found."
        found = Card(f"Heads of {self.model}", facts, columns, rows, note)
        return found if self.rounding is None else with_rounding(found, self.rounding)

    def _short_text(self) -> str:
        """What a reader must know of a text without a window of five tokens."""
        what = "the other figures" if self.repeated else "all figures, the kinds among them,"
        said = f"No window has {SKIPPED + 1} tokens, too few to tell patterns apart: {what} are of its last token. "
        return "" if self.told_apart else said


def table(
    model: AttentionModel,
    text: str | Sequence[str],
    *,
    window: int | None = None,
    effect_tokens: int = 128,
    removal: Removal = "mean",
    bits: Sequence[int] = (),
    per: Per = "channel",
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> HeadTable:
    """Measure every head of a model on a text.

    Args:
        model: From `qkv.heads.open`.
        text: One text or several; longer ones are cut into windows.
        window: Tokens of a window; 512 or the model's context if None.
        effect_tokens: Tokens of the first window on which the effect of removing each head is measured.
        removal: What takes the place of a removed head's output: its "mean" over the text, or "zero".
        bits: Numbers of bits, from 1 to 8, to which keys are rounded as well.
        per: Whether each "channel" or each "token" has a grid of its own.
        seed: Of the repeated random tokens, and of the queries that are predicted by exact moments.
        progress: Called with steps done and in all.

    Returns:
        One row for each head.

    Raises:
        QkvError: The text has less than two tokens, the window does not fit, or bits are not from 1 to 8.
    """
    request = "measuring the heads"
    effect_tokens = whole(request, "effect_tokens", effect_tokens, 2)
    chosen, per = checked_bits(request, bits, empty=True), checked_per(request, per)
    removal, outputs, seed = checked_removal(request, removal), MeanOutputs(), checked_seed(request, seed)
    windows, shape = model.windows(text, window), model.shape
    steps = len(windows) + 2 * shape.layers + 1
    sums, parts = PatternSums(shape.layers, shape.heads), FirmnessParts(shape.layers, shape.heads)
    shares = KeyShareParts(shape.layers, shape.heads, [len(w) for w in windows])
    rounded = RoundingParts(shape.layers, shape.heads, chosen, per, seed=seed)

    def tap(number: int, call: AttentionCall) -> None:
        scores = call.scores_and_plain()[1][0]
        visible = torch.isfinite(scores[0])
        sums.add(call.layer, call.weights[0], windows[number], visible, call.layer == 0)
        parts.add(call, scores)
        shares.add(number, call, visible)
        rounded.add(call)

    def after(number: int, out: Any) -> None:
        rounded.compare(model, windows[number], out)

    model.stream(windows, tap, lambda done, _: progress(done, steps), output=outputs, after=after if chosen else None)
    patterns, firmness = sums.result(), parts.result()

    ids = windows[0][:effect_tokens]
    effects = head_effects(
        model, [ids], lambda done, _: progress(len(windows) + done, steps), by=removal, means=outputs.result()
    )
    before = len(windows) + shape.layers
    repeated, repeated_effects = _on_repeated_tokens(
        model, seed, removal, lambda done, _: progress(before + done, steps)
    )
    rows = _rows(model, patterns, repeated, firmness, shares.result(), effects, repeated_effects)
    tokens = sum(map(len, windows))
    rounding = rounded.result(model, windows) if chosen else None
    progress(steps, steps)
    unit = "nats per token" if model.predicts else "relative change of the last hidden states"
    judged = (repeated is not None, patterns.told > 0)
    told = (model.name, tokens, len(windows), len(ids), unit, removal, shares.total, *judged)
    return HeadTable(*told, tuple(rows), rounding)


def _on_repeated_tokens(
    model: AttentionModel, seed: int, removal: Removal, progress: Progress
) -> tuple[Patterns | None, torch.Tensor | None]:
    """Patterns and effects of removal on random tokens that come twice; None where a model has no such thing."""
    twice = repeated_ids(model, seed)
    patterns = repeated_patterns(model, twice)
    if patterns is None or not model.predicts:
        return patterns, None
    half = twice.shape[1] // 2  # the second time, when they can be looked up
    return patterns, head_effects(model, [twice[0]], progress, last=half, by=removal)


def _rows(
    model: AttentionModel,
    patterns: Patterns,
    repeated: Patterns | None,
    firmness: Firmness,
    shares: KeyShares,
    effects: torch.Tensor,
    repeated_effects: torch.Tensor | None,
) -> list[HeadRow]:
    try:
        circuits = output_circuits(model)
    except QkvError:  # what heads look at can be measured all the same
        circuits = []
    try:
        vocabulary, unknown = vocabulary_matrix(model), {}
    except QkvError:  # and how heads write without the logits
        vocabulary, unknown = None, {"copying": None}
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
                    keys_readable=_known(shares.readable[at]),
                    keys_readable_at_most=_known(shares.at_most[at]),
                    keys_read=_known(shares.read[at]),
                    **(asdict(writing_measures(circuits[layer], head, vocabulary)) | unknown if circuits else UNKNOWN),
                )
            )
    return rows


def signed(effect: float) -> str:
    """An effect with its sign, and no sign where it rounds to zero."""
    shown = f"{effect:+.4f}"
    return shown if float(shown) else "0.0000"


def _known(value: torch.Tensor) -> float | None:
    return None if bool(value.isnan()) else float(value)


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _proved(value: float | None) -> str:
    return "–" if value is None else percent_rounded_down(value)


def _share(value: float | None) -> str:
    return "–" if value is None else share_text(value)


def repeated_ids(model: AttentionModel, seed: int) -> torch.Tensor:
    """Random tokens of a model's vocabulary, twice over, (1, tokens); see `repeated_tokens`."""
    special = set(getattr(model.tokenizer, "all_special_ids", ()) or ())
    first = getattr(model.tokenizer, "bos_token_id", None)
    n = min(REPEATED, (model.context - 1) // 2)
    return repeated_tokens(model.model.config.vocab_size, n, 1, seed, first, special)


def repeated_patterns(model: AttentionModel, twice: torch.Tensor) -> Patterns | None:
    """Patterns of all heads on random tokens that come twice, from `repeated_ids`.

    None for a model whose tokens see what comes after them, or whose context is too short to tell patterns apart.
    """
    if not model.causal or twice.shape[1] <= SKIPPED:
        return None
    sums = PatternSums(model.shape.layers, model.shape.heads)
    model.run(
        twice, lambda c: sums.add(c.layer, c.weights[0], twice[0], torch.isfinite(c.scores()[0, 0]), c.layer == 0)
    )
    return sums.result()
