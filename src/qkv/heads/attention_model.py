"""A Hugging Face model, opened to look at its heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from qkv.core.display import Card, Displayable
from qkv.core.validation import whole
from qkv.errors import MissingExtra, QkvError
from qkv.heads.adapter import Adapter, AttentionCall, OutputChange, Tap

if TYPE_CHECKING:
    from qkv.heads.capture import Capture
    from qkv.heads.head import Head
    from qkv.heads.table import HeadTable

MAX_WINDOW = 512
"""Longer texts are cut into windows of at most this many tokens, or of the model's context if that is shorter."""

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
            raise QkvError("reading a text", f"it is a {type(text).__name__}", "Give one text or a list of texts")
        texts = [text] if isinstance(text, str) else list(text)
        size = min(MAX_WINDOW, self.context) if window is None else window
        request = f"cutting a text into windows of {size} tokens"
        if not 2 <= size <= self.context:
            raise QkvError(request, f"{self.name} takes 2 to {self.context} tokens", "Choose a window in that range")
        found = []
        for one in texts:
            found += [part for part in self.token_ids(one).split(size) if len(part) >= 2]
        if not found:
            raise QkvError(request, "the text has less than two tokens", "Give a longer text")
        return found

    def token_ids(self, text: str) -> Tensor:
        """All token ids of a text, those included that the tokenizer puts around it."""
        return self.tokenizer(text, return_tensors="pt", truncation=False, verbose=False)["input_ids"][0].long()

    def token_texts(self, ids: Tensor) -> tuple[str, ...]:
        """Each token as a reader sees it."""
        return tuple(self.tokenizer.decode([int(i)]) for i in ids)

    def run(self, ids: Tensor, tap: Tap | None = None, *, output: OutputChange | None = None, keys: Any = None) -> Any:
        """Run the model on token ids, (batch, tokens), and hand every layer's attention to `tap`."""
        with torch.no_grad(), self.adapter.attached(tap, keys=keys, output=output):
            return self.model(input_ids=ids, use_cache=False) if self.predicts else self.model(input_ids=ids)

    def stream(self, windows: Sequence[Tensor], tap: Callable[[int, AttentionCall], None], progress: Progress) -> None:
        """Run window after window; each layer's attention is handed on and then forgotten.

        Args:
            windows: Token ids, from `windows`.
            tap: Called with the number of the window and the AttentionCall.
            progress: Called with windows done and in all.
        """
        for number, ids in enumerate(windows):
            progress(number, len(windows))
            self.run(ids[None], lambda call, number=number: tap(number, call))  # type: ignore[misc]
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

    def table(
        self,
        text: str | Sequence[str],
        *,
        window: int | None = None,
        effect_tokens: int = 128,
        seed: int = 0,
        progress: Progress = lambda done, total: None,
    ) -> HeadTable:
        """Measure every head on a text; see `qkv.heads.table.table`."""
        from qkv.heads.table import table

        return table(self, text, window=window, effect_tokens=effect_tokens, seed=seed, progress=progress)

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


def open(source: str | Path, *, offline: bool = True) -> AttentionModel:
    """Open a Hugging Face model to look at its heads.

    Args:
        source: A folder with `config.json`, safetensors and a tokenizer, or a hub name.
        offline: Look only at folders and at what was downloaded before.

    Returns:
        The model, on the CPU, in float32.

    Raises:
        QkvError: Nothing is there, the weights are no safetensors, it needs code of its own, or its family computes
            attention in a way that cannot be watched.
        MissingExtra: transformers is not installed.
    """
    try:
        from transformers import AutoConfig, AutoTokenizer
    except ImportError:
        raise MissingExtra("opening a Hugging Face model", "hf") from None
    request, name = f"opening the model {source}", str(source)
    is_folder = Path(source).is_dir()
    if is_folder and not (Path(source) / "config.json").is_file():
        raise QkvError(request, "the folder has no config.json", "Name the folder of a Hugging Face model")
    if is_folder and not any(Path(source).glob("*.safetensors")):
        raise QkvError(request, "the folder has no weights in safetensors", "Save the model again with save_pretrained")
    with _quietly(offline):
        try:
            settings = {"trust_remote_code": False, "local_files_only": offline or is_folder}
            config = AutoConfig.from_pretrained(name, **settings)
            maker, predicts = _maker(config)
            model = maker.from_pretrained(
                name, **settings, use_safetensors=True, dtype=torch.float32, attn_implementation="eager"
            ).eval()
            tokenizer = AutoTokenizer.from_pretrained(name, **settings)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
            if offline and not is_folder:
                problem = "there is no such folder, and no model of this name was downloaded before"
                hint = "Name a model folder, or allow downloads: offline=False (--online)"
                raise QkvError(request, problem, hint) from error
            first = str(error).strip().split("\n")[0].rstrip(".")
            raise QkvError(request, first or type(error).__name__, "Name another model") from error
    return from_transformers(model, tokenizer, name=name, predicts=predicts)


def from_transformers(
    model: Any, tokenizer: Any, *, name: str = "a model", predicts: bool | None = None
) -> AttentionModel:
    """Look at the heads of a transformers model that is already in memory; it is left in evaluation mode.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        name: What to call it.
        predicts: Whether it gives next-token probabilities; found out from its class if None.

    Raises:
        QkvError: Its family computes attention in a way that cannot be watched.
    """
    model.eval()
    adapter, config = Adapter(model), model.config
    calls: list[AttentionCall] = []
    ids = torch.tensor([[0, 1, 0]]) + 5
    with torch.no_grad(), adapter.attached(calls.append):
        out = model(input_ids=ids)
    if not calls:
        problem = "its attention does not go through the attention interface of transformers, so nothing was seen"
        raise QkvError(f"opening the model {name}", problem, "Open a model of another family")
    first = calls[0]
    if len({(c.query.shape, c.key.shape) for c in calls}) > 1:
        raise QkvError(f"opening the model {name}", "its layers have heads of different sizes", "Open another model")
    shape = HeadShape(len(calls), first.query.shape[1], first.key.shape[1], first.query.shape[-1])
    causal = float(first.weights[0, :, 0, 1:].abs().max()) == 0.0
    context = int(getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", 0) or 1 << 20)
    known = causal and hasattr(out, "logits") and out.logits.shape[1] == 3
    return AttentionModel(
        name, type(model).__name__, shape, causal, known if predicts is None else predicts and known, context, model,
        tokenizer, adapter,
    )  # fmt: skip


def _maker(config: Any) -> tuple[Any, bool]:
    from transformers import AutoModel, AutoModelForCausalLM

    names = getattr(config, "architectures", None) or [""]
    predicts = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names)
    return (AutoModelForCausalLM if predicts else AutoModel), predicts


@contextmanager
def _quietly(offline: bool) -> Iterator[None]:
    """Keep the hub library from the network, whose setting is read from the environment once, and from its own bars."""
    import huggingface_hub.constants as constants
    from transformers.utils import logging

    before, shown = constants.HF_HUB_OFFLINE, logging.is_progress_bar_enabled()
    try:
        constants.HF_HUB_OFFLINE = offline or before
        logging.disable_progress_bar()
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        if shown:
            logging.enable_progress_bar()
