"""What a model is: its sizes and its kind of attention, with presets; each field says once what it means."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from typing import Any

from qkv.errors import QkvError

ATTENTIONS = ("causal", "rope", "synthesizer", "perceiver")
ACTIVATIONS = ("gelu", "gelu_tanh")


def told(default: Any, help: str) -> Any:
    """A field with its explanation, which is also the help of the command-line option."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model. `rope` is built as Llama is, the others as GPT-2 is."""

    attention: str = told("causal", f"Kind of attention: {', '.join(ATTENTIONS)}.")
    n_layer: int = told(2, "Blocks.")
    n_head: int = told(4, "Heads of attention in each block.")
    n_kv_head: int = told(0, "Heads of keys and values that rope's heads share in groups; 0 for as many as heads.")
    d_model: int = told(128, "Size of a token's vector.")
    d_ff: int = told(0, "Size of the layer inside each block's MLP; 0 for 4 times the width (8/3 with rope).")
    context_length: int = told(64, "Longest sequence, in tokens.")
    vocab_size: int = told(0, "Tokens; 0 for the tokenizer's default (all characters, or 3000 byte pairs).")
    latents: int = told(16, "Latents of the perceiver; each owns block/latents positions.")
    dropout: float = told(0.0, "Share of each block's output (and of embeddings) dropped while training.")
    bias: bool = told(True, "Biases in linear layers and norms; rope has none.")
    activation: str = told("gelu", f"Inside the MLP: {' or '.join(ACTIVATIONS)}; rope has SwiGLU.")
    tie_embeddings: bool = told(True, "Whether the output layer is the embedding.")
    norm_eps: float = told(1e-5, "What norms add to the variance.")
    rope_theta: float = told(10_000.0, "Rope turns its slowest pair of coordinates about this many times slower.")

    def __post_init__(self) -> None:
        wrong = [text for bad, text in self._refusals() if bad]
        if wrong:
            raise QkvError("making a model", "; ".join(wrong), "Change these fields of its configuration")

    def _refusals(self) -> list[tuple[bool, str]]:
        sizes = ("n_layer", "n_head", "d_model", "context_length", "latents")
        names = ", ".join(ATTENTIONS)
        return [
            (self.attention not in ATTENTIONS, f"attention is {self.attention!r}{_hint(self.attention)}, not {names}"),
            *((getattr(self, name) < 1, f"{name} is {getattr(self, name)}") for name in sizes),
            *((getattr(self, name) < 0, f"{name} is {getattr(self, name)}") for name in ("vocab_size", "d_ff")),
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
                self.attention == "rope" and self.d_model // max(self.n_head, 1) % 2 == 1,
                f"heads of size {self.d_model // max(self.n_head, 1)} cannot be turned by pairs",
            ),
            (
                self.attention == "perceiver" and (self.n_layer < 2 or self.context_length % max(self.latents, 1) != 0),
                f"a perceiver of {self.n_layer} layers with {self.latents} latents for {self.context_length} positions "
                "(it takes 2 layers or more, and an equal share of positions for each latent)",
            ),
            (not 0 <= self.dropout < 1, f"dropout is {self.dropout}"),
            (not 0 < self.norm_eps < 1, f"norm_eps is {self.norm_eps}"),
            (not self.rope_theta > 1, f"rope_theta is {self.rope_theta}"),
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
        """Size of the layer inside the MLP; SwiGLU has three matrices, so 8/3 (in 8s) costs what 4 costs with two."""
        return self.d_ff or (4 * self.d_model if self.attention != "rope" else 8 * -(-self.d_model // 3))

    @property
    def stride(self) -> int:
        """Positions that each latent of a perceiver owns."""
        return self.context_length // self.latents

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ModelConfig:
        """A configuration from its fields; unknown ones are refused."""
        return from_fields(cls, data, "reading a model's configuration")


def from_fields(cls: type, data: Any, asked: str) -> Any:
    """A dataclass from a mapping that may leave out fields, but may not invent any."""
    if not isinstance(data, dict):
        raise QkvError(asked, f"a {type(data).__name__} came", "Give fields by name")
    kinds: dict[str, Any] = {f.name: type(f.default) for f in dataclasses.fields(cls)}
    unknown = [name for name in data if name not in kinds]
    if unknown:
        raise QkvError(
            asked, f"there is no field {', '.join(map(repr, unknown))}{_hint(unknown[0], tuple(kinds))}",
            f"Use {', '.join(kinds)}",
        )  # fmt: skip
    for name, value in data.items():
        fits = isinstance(value, kinds[name]) or (kinds[name] is float and isinstance(value, int))
        if not fits or (kinds[name] is not bool and isinstance(value, bool)):
            raise QkvError(asked, f"{name} is {value!r}", f"Give a value like {getattr(cls, name)!r}")
    return cls(**{name: kinds[name](value) for name, value in data.items()})


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"n_layer": 2, "n_head": 4, "d_model": 128, "context_length": 64, "latents": 16},
    "small": {"n_layer": 4, "n_head": 4, "d_model": 192, "context_length": 128, "latents": 32},
    "course": {"n_layer": 4, "n_head": 8, "d_model": 256, "context_length": 128, "latents": 32, "dropout": 0.1},
}


def preset(name: str, **changes: Any) -> ModelConfig:
    """A preset by name, with some fields changed."""
    if name not in PRESETS:
        raise QkvError(
            "choosing a preset",
            f"there is none called {name!r}{_hint(name, tuple(PRESETS))}",
            f"Choose from {', '.join(PRESETS)}",
        )
    return ModelConfig.from_json({**PRESETS[name], **changes})


def _hint(name: Any, known: tuple[str, ...] = ATTENTIONS) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]}?)" if close and close[0] != name else ""
