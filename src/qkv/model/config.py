"""ModelConfig: sizes and attention of a model, with presets.

It imports no torch: its fields are the command line's options, and `qkv --help` must be fast.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

from qkv.errors import QkvError, kind_of

ATTENTIONS = ("causal", "rope", "synthesizer", "perceiver")
ACTIVATIONS = ("gelu", "gelu_tanh")
MAX_SIZES = {
    "n_layer": 1000,
    "n_head": 2**12,
    "d_model": 2**17,
    "d_ff": 2**20,
    "context_length": 2**20,
    "vocab_size": 2**24,
    "latents": 2**20,
}
"""Largest value of each size: a configuration beyond them is damaged or a mistake, and building it could take hours."""
MAX_INTEGER = 2**63
MAX_PARAMETERS = 10**11
"""Most numbers in a model, weights and rotary tables together."""


def option(default: Any, help: str) -> Any:
    """A dataclass field with a default and a help text, which is also the help of its command-line option."""
    return field(default=default, metadata={"help": help})


class ModelChanges(TypedDict, total=False):
    """Fields of ModelConfig, each optional: the types of `preset(name, **changes)`."""

    attention: str
    n_layer: int
    n_head: int
    n_kv_head: int
    d_model: int
    d_ff: int
    context_length: int
    vocab_size: int
    latents: int
    dropout: float
    bias: bool
    activation: str
    tie_embeddings: bool
    norm_eps: float
    rope_theta: float


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and attention of a GPT. `rope` is built as Llama, the other kinds of attention as GPT-2.

    Attributes:
        attention: "causal", "rope", "synthesizer" or "perceiver".
        n_layer: Transformer blocks.
        n_head: attention heads of each block.
        n_kv_head: heads of keys and values, shared in groups (`rope` only); 0 for as many as `n_head`.
        d_model: size of a token's vector.
        d_ff: size of the MLP's hidden layer; 0 for 4 · d_model (8/3 · d_model with `rope`).
        context_length: longest sequence, in tokens.
        vocab_size: tokens in the vocabulary; 0 to take the tokenizer's.
        latents: latents of a perceiver; each owns context_length/latents positions.
        dropout: dropout rate of embeddings and of each block's two outputs.
        bias: whether linear layers and norms have biases (`rope` has none).
        activation: "gelu" or "gelu_tanh" in the MLP (`rope` has SwiGLU).
        tie_embeddings: whether the output layer is the embedding's matrix.
        norm_eps: what norms add to the variance.
        rope_theta: base θ of the rotary frequencies.

    Raises:
        QkvError: if the fields contradict each other or are out of range; the message names all of them.

    Example:
        >>> from qkv.model import ModelConfig
        >>> config = ModelConfig(attention="rope", n_head=4, n_kv_head=2, d_model=64)
        >>> config.head_dim, config.n_kv_head_effective, config.d_ff_effective
        (16, 2, 176)
        >>> ModelConfig.from_json(config.to_json()) == config
        True
    """

    attention: str = option("causal", f"Kind of attention: {', '.join(ATTENTIONS)}.")
    n_layer: int = option(2, "Transformer blocks.")
    n_head: int = option(4, "Attention heads in each block.")
    n_kv_head: int = option(
        0, "Heads of keys and values, shared by groups of heads (rope only); 0 for as many as heads."
    )
    d_model: int = option(128, "Size of a token's vector.")
    d_ff: int = option(0, "Size of the hidden layer of each MLP; 0 for 4 times the size of a vector (8/3 with rope).")
    context_length: int = option(64, "Longest sequence, in tokens.")
    vocab_size: int = option(0, "Tokens; 0 for the tokenizer's default (all characters, or 3000 byte pairs).")
    latents: int = option(16, "Latents of the perceiver; each owns an equal share of the positions.")
    dropout: float = option(0.0, "Dropout rate of embeddings and of each block's outputs, while training.")
    bias: bool = option(True, "Biases in linear layers and norms; rope has none.")
    activation: str = option("gelu", f"Activation of the MLP: {' or '.join(ACTIVATIONS)}; rope has SwiGLU.")
    tie_embeddings: bool = option(True, "Whether the output layer is the embedding's matrix.")
    norm_eps: float = option(1e-5, "What norms add to the variance.")
    rope_theta: float = option(10_000.0, "Base of the rotary frequencies (rope only).")

    def __post_init__(self) -> None:
        wrong = [text for bad, text in self._problems() if bad]
        if not wrong and (count := self.n_parameters + self._n_rotary) > MAX_PARAMETERS:
            wrong = [f"it would have {count:,} numbers, and {MAX_PARAMETERS:,} is the limit"]
        if wrong:
            raise QkvError("making a model", "; ".join(wrong), "Change these fields of its configuration")

    def _problems(self) -> list[tuple[bool, str]]:
        """Every rule with whether this configuration breaks it, and what to say then."""
        sizes = ("n_layer", "n_head", "d_model", "context_length", "latents")
        names = ", ".join(ATTENTIONS)
        head_dim = self.d_model // max(self.n_head, 1)
        return [
            (self.attention not in ATTENTIONS, f"attention is {self.attention!r}{_hint(self.attention)}, not {names}"),
            *((getattr(self, name) < 1, f"{name} is {getattr(self, name)}") for name in sizes),
            *((getattr(self, name) < 0, f"{name} is {getattr(self, name)}") for name in ("vocab_size", "d_ff")),
            *(
                (getattr(self, name) > most, f"{name} is {shortened(getattr(self, name))}, and {most} is the limit")
                for name, most in MAX_SIZES.items()
            ),
            (
                self.d_model % max(self.n_head, 1) != 0,
                f"d_model {self.d_model} is not a multiple of {self.n_head} heads",
            ),
            (
                self.n_kv_head < 0 or self.n_head % (self.n_kv_head or 1) != 0,
                f"{self.n_head} heads cannot share {self.n_kv_head} heads of keys and values evenly",
            ),
            (
                self.attention != "rope" and self.n_kv_head not in (0, self.n_head),
                f"n_kv_head is {self.n_kv_head}, which only rope takes",
            ),
            (
                self.attention == "rope" and head_dim % 2 == 1,
                f"heads have {head_dim} coordinates, and rope rotates pairs",
            ),
            (
                self.attention == "perceiver" and (self.n_layer < 2 or self.context_length % max(self.latents, 1) != 0),
                f"a perceiver of {self.n_layer} layers with {self.latents} latents for {self.context_length} positions "
                "(it needs at least 2 layers, and an equal share of positions for each latent)",
            ),
            (not 0 <= self.dropout < 1, f"dropout is {self.dropout}"),
            (not 0 < self.norm_eps < 1, f"norm_eps is {self.norm_eps}"),
            (not 1 < self.rope_theta < math.inf, f"rope_theta is {self.rope_theta}"),
            (self.activation not in ACTIVATIONS, f"activation is {self.activation!r}, not {' or '.join(ACTIVATIONS)}"),
        ]

    @property
    def head_dim(self) -> int:
        """Coordinates of one head."""
        return self.d_model // self.n_head

    @property
    def n_kv_head_effective(self) -> int:
        """Heads of keys and values."""
        return self.n_kv_head or self.n_head

    @property
    def d_ff_effective(self) -> int:
        """Size of the MLP's hidden layer.

        SwiGLU has three matrices where GELU's MLP has two, so 8/3 · d_model (rounded up to a multiple of 8) costs
        what 4 · d_model costs there.
        """
        return self.d_ff or (4 * self.d_model if self.attention != "rope" else 8 * -(-self.d_model // 3))

    @property
    def stride(self) -> int:
        """Positions that each latent of a perceiver owns."""
        return self.context_length // self.latents

    @property
    def n_parameters(self) -> int:
        """Number of parameters of the model, tied ones once."""
        d, ff, rope = self.d_model, self.d_ff_effective, self.attention == "rope"
        bias = self.bias and not rope
        norm = d + (d if bias else 0)

        def linear(n_in: int, n_out: int) -> int:
            return n_in * n_out + (n_out if bias else 0)

        attention = linear(d, (self.n_head + 2 * self.n_kv_head_effective) * self.head_dim) + linear(d, d)
        if self.attention == "synthesizer":
            keys = self.context_length * self.n_head * (self.head_dim + 1)
            attention = linear(d, 2 * d) + keys + linear(d, d)
        block = 2 * norm + attention + linear(d, 2 * ff if rope else ff) + linear(ff, d)
        vectors = self.vocab_size * (1 if self.tie_embeddings else 2)
        vectors += 0 if rope else self.context_length
        vectors += self.latents if self.attention == "perceiver" else 0
        # The first and the last block of a perceiver have a norm of what they attend.
        more_norms = 2 * norm if self.attention == "perceiver" else 0
        return vectors * d + self.n_layer * block + more_norms + norm

    @property
    def _n_rotary(self) -> int:
        """Numbers in the rotary tables of all layers."""
        return self.n_layer * self.context_length * self.head_dim if self.attention == "rope" else 0

    def check_memory(self) -> None:
        """Refuse to build a model whose weights, in float32, do not fit into the memory of this machine."""
        needed, memory = 4 * (self.n_parameters + self._n_rotary), _memory_bytes()
        if memory is not None and needed > memory:
            raise QkvError(
                "making a model",
                f"its {self.n_parameters:,} parameters take {needed / 1e9:.3g} GB, and this machine has "
                f"{memory / 1e9:.3g} GB of memory",
                "Give a smaller configuration",
            )

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ModelConfig:
        """A configuration from its fields; unknown fields are refused."""
        return dataclass_from_fields(cls, data, "reading a model's configuration")


def dataclass_from_fields(cls: type, data: Any, request: str) -> Any:
    """A dataclass from a mapping: fields may be missing, but unknown fields and wrong types are refused."""
    if not isinstance(data, dict):
        raise QkvError(request, f"it is {kind_of(data)}", "Give a mapping of field names to values")
    types: dict[str, Any] = {f.name: type(f.default) for f in dataclasses.fields(cls)}
    unknown = [name for name in data if name not in types]
    if unknown:
        raise QkvError(
            request, f"there is no field {', '.join(map(repr, unknown))}{_hint(unknown[0], tuple(types))}",
            f"Use {', '.join(types)}",
        )  # fmt: skip
    for name, value in data.items():
        fits = isinstance(value, types[name]) or (types[name] is float and isinstance(value, int))
        too_large = isinstance(value, int) and abs(value) >= MAX_INTEGER
        if not fits or too_large or (types[name] is not bool and isinstance(value, bool)):
            raise QkvError(request, f"{name} is {shortened(value)}", f"Give a value like {getattr(cls, name)!r}")
    return cls(**{name: types[name](value) for name, value in data.items()})


def shortened(value: Any) -> str:
    """The repr of a value, cut if it is long."""
    if isinstance(value, int) and abs(value) >= MAX_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:  # an integer inside it has too many digits to be written
        text = kind_of(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"n_layer": 2, "n_head": 4, "d_model": 128, "context_length": 64, "latents": 16},
    "small": {"n_layer": 4, "n_head": 4, "d_model": 192, "context_length": 128, "latents": 32},
    "course": {"n_layer": 4, "n_head": 8, "d_model": 256, "context_length": 128, "latents": 32, "dropout": 0.1},
}


def preset(name: str, **changes: Unpack[ModelChanges]) -> ModelConfig:
    """A named configuration, with some fields changed.

    Args:
        name: "tiny", "small" or "course".
        **changes: fields of `ModelConfig` that replace the preset's.

    Returns:
        The configuration.

    Raises:
        QkvError: if there is no such preset or field, or if the result is not a valid configuration.

    Example:
        >>> from qkv.model import preset
        >>> config = preset("tiny", attention="rope", vocab_size=100)
        >>> config.n_layer, config.d_model, config.attention
        (2, 128, 'rope')
    """
    if name not in PRESETS:
        raise QkvError(
            "choosing a preset",
            f"there is none called {name!r}{_hint(name, tuple(PRESETS))}",
            f"Choose from {', '.join(PRESETS)}",
        )
    return ModelConfig.from_json({**PRESETS[name], **changes})


def _memory_bytes() -> int | None:
    """Bytes of this machine's memory, if the system says."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _hint(name: Any, known: tuple[str, ...] = ATTENTIONS) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]}?)" if close and close[0] != name else ""
