"""A Hugging Face model, opened to look at its heads."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable
from qkv.core.hugging_face import is_hugging_face_folder, load_pretrained
from qkv.core.validation import whole
from qkv.errors import QkvError, kind_of
from qkv.heads.adapter import Adapter, AttentionCall, OutputChange, Tap

if TYPE_CHECKING:
    from qkv.heads.ablation import Removal
    from qkv.heads.capture import Capture
    from qkv.heads.head import Head
    from qkv.heads.key_grid import Per
    from qkv.heads.rounding import Rounding
    from qkv.heads.table import HeadTable
    from qkv.heads.text_survey import Survey

MAX_WINDOW = 512
"""Longer texts are cut into windows of at most this many tokens, or of the model's context if that is shorter."""

EXPLAINED = 0.01
"""How far weights may be from those of the captured queries and keys, beside what the model's own type rounds off."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class HeadShape:
    """How many heads a model has, and of which size.

    Attributes:
        layers: Number of attention layers.
        heads: Query heads of each layer.
        key_heads: Key heads of each layer; less than `heads` where heads share keys.
        size: Length of a query and a key.
    """

    layers: int
    heads: int
    key_heads: int
    size: int


@dataclass(frozen=True, eq=False)
class AttentionModel(Displayable):
    """A model whose heads can be watched; `qkv.heads.open` makes one.

    Attributes:
        name: Its folder or hub name.
        family: Its class in transformers.
        shape: Its heads.
        causal: Whether a token sees only those before it.
        predicts: Whether it gives next-token probabilities, so that a loss can be computed.
        context: The longest text in tokens.
        model: The transformers model.
        tokenizer: Its tokenizer.
    """

    name: str
    family: str
    shape: HeadShape
    causal: bool
    predicts: bool
    context: int
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    adapter: Adapter = field(repr=False)

    def card(self) -> Card:
        shape = self.shape
        keys = "" if shape.key_heads == shape.heads else f", {shape.key_heads} key heads"
        facts = (
            ("heads", f"{shape.layers} layers × {shape.heads} heads of size {shape.size}{keys}"),
            ("context", f"{self.context} tokens, {'each sees those before it' if self.causal else 'each sees all'}"),
        )
        return Card(f"{self.family} in {self.name}", facts)

    def windows(self, text: str | Sequence[str], window: int | None = None) -> list[Tensor]:
        """Token ids of a text, or of several, cut into windows that the model takes.

        Args:
            text: One text or several.
            window: Tokens of a window, at most the model's context; 512 or the context if None.

        Returns:
            One row of token ids for each window. What remains at the end of a text is a window if it has 2 tokens.

        Raises:
            QkvError: There is no text, or the window does not fit.
        """
        if not isinstance(text, str | Sequence) or any(not isinstance(one, str) for one in text):
            raise QkvError("reading a text", f"it is {kind_of(text)}", "Give one text or a list of texts")
        texts = [text] if isinstance(text, str) else list(text)
        size = min(MAX_WINDOW, self.context) if window is None else window
        request = f"cutting a text into windows of {size} tokens"
        if isinstance(size, bool) or not hasattr(size, "__index__") or not 2 <= size <= self.context:
            hint = "Choose a whole number in that range"
            raise QkvError(request, f"{self.name} takes 2 to {self.context} tokens", hint)
        found = []
        for one in texts:
            found += [part for part in self.token_ids(one).split(int(size)) if len(part) >= 2]
        if not found:
            raise QkvError(request, "the text has less than two tokens", "Give a longer text")
        return found

    def token_ids(self, text: str) -> Tensor:
        """All token ids of a text, those included that the tokenizer puts around it."""
        request, known = "reading a text", self.model.get_input_embeddings().weight.shape[0]
        text = checked_text(text)
        if not callable(self.tokenizer):
            problem = f"{self.name} was opened without a tokenizer (it is {kind_of(self.tokenizer)})"
            raise QkvError(request, problem, "Give one: qkv.heads.from_transformers(model, tokenizer)")
        try:
            found = self.tokenizer(text, return_tensors="pt", truncation=False, verbose=False)
        except TypeError:  # the tokenizers of transformers take no halves of surrogate pairs
            raise QkvError(request, "it holds characters that are no Unicode text", "Give a text in UTF-8") from None
        ids: Tensor = found["input_ids"][0].long()
        if len(ids) and int(ids.max()) >= known:
            problem = f"the tokenizer gives token {int(ids.max())}, and the model knows {known}"
            raise QkvError(request, problem, "Give the tokenizer that belongs to the model")
        return ids

    def token_texts(self, ids: Tensor) -> tuple[str, ...]:
        """Each token as a reader sees it."""
        return tuple(self.tokenizer.decode([int(i)]) for i in ids)

    def run(
        self,
        ids: Tensor,
        tap: Tap | None = None,
        *,
        output: OutputChange | None = None,
        keys: Any = None,
        logits: int | None = None,
    ) -> Any:
        """Run the model on token ids, and hand every layer's attention to `tap`.

        Args:
            ids: (batch, tokens).
            tap: Called with each layer's AttentionCall.
            output: Changes the outputs of a layer's heads; see `Adapter.attached`.
            keys: Changes the keys and values of a layer.
            logits: Compute logits of the last so many tokens only, where the family can; of all if None.

        Returns:
            What the model returns.
        """
        options: dict[str, Any] = {"use_cache": False} if self.predicts else {}
        if logits is not None and "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            options["logits_to_keep"] = logits
        with torch.no_grad(), self.adapter.attached(tap, keys=keys, output=output):
            return self.model(input_ids=ids, **options)

    def stream(
        self,
        windows: Sequence[Tensor],
        tap: Callable[[int, AttentionCall], None],
        progress: Progress,
        *,
        output: OutputChange | None = None,
        after: Callable[[int, Any], None] | None = None,
    ) -> None:
        """Run window after window; each layer's attention is handed on and then forgotten.

        Args:
            windows: Token ids, from `windows`.
            tap: Called with the number of the window and the AttentionCall.
            progress: Called with windows done and in all.
            output: Changes the outputs of a layer's heads, or only looks at them.
            after: Called with the number of a window and what the model returned for it.
        """
        for number, ids in enumerate(windows):
            progress(number, len(windows))
            out = self.run(ids[None], partial(tap, number), output=output, logits=None if after else 1)
            if after:
                after(number, out)
        progress(len(windows), len(windows))

    def capture(self, text: str) -> Capture:
        """Queries, keys, values and weights of every head on one text.

        Args:
            text: At most as many tokens as the model's context.

        Raises:
            QkvError: The text is too long.
        """
        from qkv.heads.capture import capture

        return capture(self, text)

    def survey(self, text: str) -> Survey:
        """Kinds, firmness and weights of every head on one text, in one pass; see `qkv.heads.text_survey.survey`."""
        from qkv.heads.text_survey import survey

        return survey(self, text)

    def table(
        self,
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
        """Measure every head on a text; see `qkv.heads.table.table`."""
        from qkv.heads.table import table

        return table(
            self,
            text,
            window=window,
            effect_tokens=effect_tokens,
            removal=removal,
            bits=bits,
            per=per,
            seed=seed,
            progress=progress,
        )

    def rounding(
        self,
        text: str | Sequence[str],
        bits: int | Sequence[int] = (4, 3),
        *,
        per: Per = "channel",
        window: int | None = None,
        exact_queries: int = 4,
        seed: int = 0,
        progress: Progress = lambda done, total: None,
    ) -> Rounding:
        """Round the keys of every head to few bits; see `qkv.heads.rounding.rounding`."""
        from qkv.heads.rounding import rounding

        return rounding(
            self, text, bits, per=per, window=window, exact_queries=exact_queries, seed=seed, progress=progress
        )

    def head(self, layer: int, head: int) -> Head:
        """One head.

        Args:
            layer: Its layer, from 0.
            head: Its number in the layer, from 0.

        Raises:
            QkvError: There is no such head.
        """
        from qkv.heads.head import Head

        shape, request = self.shape, f"taking head {layer}.{head}"
        layer, head = whole(request, "layer", layer, 0), whole(request, "head", head, 0)
        if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
            problem = f"{self.name} has layers 0 to {shape.layers - 1} and heads 0 to {shape.heads - 1}"
            raise QkvError(request, problem, "Choose a head that is there")
        return Head(self, layer, head)


def checked_model(request: str, model: Any, *, predicts: bool = False) -> AttentionModel:
    """A model of `qkv.heads.open`; one that predicts tokens, if that is needed."""
    if not isinstance(model, AttentionModel):
        hint = "Open it with qkv.heads.open(folder), or with qkv.heads.from_transformers(model, tokenizer)"
        raise QkvError(request, f"the model is {kind_of(model)}", hint)
    if predicts and not model.predicts:
        raise QkvError(request, f"{model.name} predicts no tokens", "Open a model that predicts the next token")
    return model


def checked_text(text: Any) -> str:
    """One text."""
    if not isinstance(text, str):
        raise QkvError("reading a text", f"it is {kind_of(text)}", "Give one text")
    return text


def open(source: str | Path, *, offline: bool = True) -> AttentionModel:
    """Open a Hugging Face model, or a run of qkv's own, to look at its heads.

    Args:
        source: A folder with `config.json`, safetensors and a tokenizer; the folder of a run, which is read as
            `qkv export` writes it; or a hub name.
        offline: Look only at folders and at what was downloaded before.

    Returns:
        The model, on the CPU, in float32.

    Raises:
        QkvError: Nothing is there, the weights are no safetensors, it needs code of its own, or its family computes
            attention in a way that cannot be watched.
        MissingExtra: transformers is not installed.
    """
    if not isinstance(source, str | os.PathLike) or isinstance(os.fspath(source), bytes):
        problem = f"it is {kind_of(source)}"
        raise QkvError(f"opening the model {source!r:.40}", problem, "Name a folder, or a model of the hub")
    if is_own_run(source):
        return _open_run(Path(source))
    predicts = False

    def choose(config: Any) -> Any:
        nonlocal predicts
        maker, predicts = _maker(config)
        return maker

    model, tokenizer = load_pretrained(
        source, choose=choose, offline=offline, dtype=torch.float32, attn_implementation="eager"
    )
    return from_transformers(model, tokenizer, name=str(source), predicts=predicts)


def from_transformers(
    model: Any, tokenizer: Any, *, name: str = "a model", predicts: bool | None = None
) -> AttentionModel:
    """Look at the heads of a transformers model that is already in memory; it is left in evaluation mode.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        name: What to call it.
        predicts: Whether it gives next-token probabilities; found out from its class if None.

    Returns:
        The model. One with another head than that of next-token probabilities, such as a classifier, is opened without
        that head, as the part of it that gives hidden states.

    Raises:
        QkvError: Its family computes attention in a way that cannot be watched, its layers share their weights, its
            scores are more than inner products of queries and keys, it reads one text and writes another, or weights
            are not finite.
    """
    request = f"opening the model {name}"
    known = isinstance(model, torch.nn.Module) and hasattr(model, "set_attn_implementation")
    if not known:
        problem = f"it is {kind_of(model)}, no model of transformers"
        raise QkvError(request, problem, "Give a model that transformers loaded, or open its folder")
    model.eval()
    _check_weights(request, model)
    adapter, context = Adapter(model), _context(model)
    if context < 2:
        raise QkvError(request, "its context is one token", "Open a model that takes several tokens")
    ids = ((torch.tensor([[0, 1, 0]]) + 5) % int(model.config.vocab_size))[:, :context]
    calls, out = _tried(request, model, adapter, ids)
    first = calls[0]
    if len({(c.query.shape, c.key.shape) for c in calls}) > 1:
        raise QkvError(request, "its layers have heads of different sizes", "Open another model")
    _check_one_text(request, out)
    _check_scores(request, calls, bool(adapter.additions), torch.finfo(model.dtype).eps)
    shape = HeadShape(len(calls), first.query.shape[1], first.key.shape[1], first.query.shape[-1])
    causal = float(first.weights[0, :, 0, 1:].abs().max()) == 0.0
    likely = causal and _gives_next_tokens(model, out, ids)
    predicts = likely if predicts is None else bool(predicts) and likely
    if not predicts and not hasattr(out, "last_hidden_state"):
        return _without_its_head(request, model, tokenizer, name)
    return AttentionModel(name, type(model).__name__, shape, causal, predicts, context, model, tokenizer, adapter)


def _tried(request: str, model: Any, adapter: Adapter, ids: Tensor) -> tuple[list[AttentionCall], Any]:
    """What every layer computed on a few tokens, and what the model returned."""
    calls: list[AttentionCall] = []
    with torch.no_grad(), adapter.attached(calls.append):
        try:
            out = model(input_ids=ids)
        except (ValueError, TypeError, RuntimeError, IndexError, AttributeError, NotImplementedError) as why:
            problem = f"it does not run on the tokens of one text: {str(why).splitlines()[0] if str(why) else 'failed'}"
            raise QkvError(request, problem, "Open a model of another family, such as Llama, GPT-2 or BERT") from None
    if not calls:
        problem = "its attention does not go through the attention interface of transformers, so nothing was seen"
        raise QkvError(request, problem, "Open a model of another family")
    if len(adapter.modules) < len(calls):
        problem = f"its {len(calls)} layers share {len(adapter.modules)} attention modules and cannot be told apart"
        raise QkvError(request, problem, "Open a model whose layers have weights of their own")
    return calls, out


def _without_its_head(request: str, model: Any, tokenizer: Any, name: str) -> AttentionModel:
    """A classifier, or another model whose output is neither next-token probabilities nor hidden states."""
    inner = getattr(model, "base_model", model)
    if inner is model:
        problem = f"{type(model).__name__} gives neither next-token probabilities nor hidden states"
        raise QkvError(request, problem, "Open a model that predicts the next token, or one without a head")
    return replace(from_transformers(inner, tokenizer, name=name, predicts=False), family=type(model).__name__)


def _gives_next_tokens(model: Any, out: Any, ids: Tensor) -> bool:
    """Whether the output has a probability for each token of the vocabulary at each place, and no classes."""
    try:
        words = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return False
    size = getattr(getattr(words, "weight", None), "shape", None)
    return size is not None and tuple(getattr(out, "logits", ids).shape) == (*ids.shape, size[0])


def _check_one_text(request: str, out: Any) -> None:
    """Refuse models that read one text and write another."""
    if hasattr(out, "encoder_last_hidden_state"):
        problem = "it reads one text and writes another, so that some layers look from one text at the other"
        raise QkvError(request, problem, "Open a model of one text, such as Llama, GPT-2 or BERT")


def _check_scores(request: str, calls: Sequence[AttentionCall], added: bool, precision: float) -> None:
    """Refuse models whose weights are not what the captured queries and keys give.

    Margins, radii, certificates and rounding are computed from queries and keys alone.
    """
    for call in calls:
        if not bool(call.weights.isfinite().all()):
            problem = f"in layer {call.layer} the weights are not finite: its numbers are too large for their type"
            raise QkvError(request, problem, "Open it in float32, as qkv.heads.open does")
        scores = call.scores()
        off = float((call.softmax(scores) - call.weights).abs().max())
        largest = float(scores[scores.isfinite()].abs().max())
        if added or call.has_bias() or not off <= EXPLAINED + 4 * precision * largest:
            problem = f"in layer {call.layer} something is added to the inner products of queries and keys"
            hint = "Open a model whose scores are inner products, such as Llama, GPT-2 or BERT"
            raise QkvError(request, f"{problem}, such as a bias for each distance", hint)


def _check_weights(request: str, model: Any) -> None:
    """Refuse weights that are no numbers: whatever is measured with them would be none either."""
    for name, weights in model.named_parameters():
        if weights.is_floating_point() and not weights.is_meta and not bool(weights.detach().isfinite().all()):
            raise QkvError(request, f"its weights {name} have entries that are not finite", "Get the model again")


def _context(model: Any) -> int:
    """The longest text in tokens.

    Families such as RoBERTa count positions from behind that of the padding, which takes them from the context.
    """
    config = model.config
    positions = int(getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", 0) or 1 << 20)
    words = model.get_input_embeddings()
    for module in model.modules():
        padded = isinstance(module, torch.nn.Embedding) and module is not words and module.padding_idx is not None
        if padded and module.num_embeddings == positions:
            return positions - int(module.padding_idx) - 1
    return positions


def is_own_run(source: str | Path) -> bool:
    """Whether a folder is a run of qkv's own: a folder of transformers names its family in config.json."""
    return (Path(source) / "config.json").is_file() and not is_hugging_face_folder(source)


def _open_run(folder: Path) -> AttentionModel:
    """A run as transformers sees it; its files are needed only while they are read."""
    from qkv.train import export_model

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        export_model(folder, Path(scratch) / "model")
        found = open(Path(scratch) / "model")
    return replace(found, name=str(folder))


def _maker(config: Any) -> tuple[Any, bool]:
    from transformers import AutoModel, AutoModelForCausalLM

    names = getattr(config, "architectures", None) or [""]
    predicts = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names)
    return (AutoModelForCausalLM if predicts else AutoModel), predicts
