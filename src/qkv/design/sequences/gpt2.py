"""A circuit as a stock GPT-2 of transformers: weights are set, no code is changed."""

# What is set, so that the model computes the circuit and nothing else:
# - Token and position embeddings are the vocabulary's, on an orthonormal basis of the vectors with mean 0 (one entry
#   more than the vocabulary is wide): LayerNorm subtracts a mean of 0.
# - LayerNorm stays in place. It divides by the root of |x|²/n + eps, so its gain is set to that root for vectors of the
#   length that the circuit has before the layer; it then multiplies by 1. Before the first layer, that needs token
#   vectors of one length and position vectors of one length, at right angles; before the second, that each token has
#   read one vector of that length, as `previous` does to within its leak.
# - Head 0 has the layer's Q (times √head_dim, by which GPT-2 divides), K, V and O; the other heads and all biases
#   are 0.
# - The matrices of each MLP are 0, so that it adds nothing.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from qkv.core.validation import whole
from qkv.design.sequences.circuit import Circuit
from qkv.errors import MissingExtra, QkvError, kind_of

if TYPE_CHECKING:
    from transformers import GPT2Model

MAX_LENGTH_SPREAD = 1e-9
"""Relative spread of the lengths of vectors up to which LayerNorm multiplies all by the same number."""


def to_gpt2(circuit: Circuit, heads: int | None = None, dtype: torch.dtype = torch.float64) -> GPT2Model:
    """The circuit as a GPT2Model of transformers, whose attentions are the circuit's weights in head 0.

    LayerNorm is in place and multiplies by 1: its gain is set for the length of the vectors before each layer. The MLPs
    and all other heads write nothing. `model(input_ids, output_attentions=True).attentions[-1][:, 0]` are the weights.

    Args:
        circuit: A circuit over a vocabulary with token vectors of one length and positions of one length, such as
            `Vocabulary.side_by_side` makes.
        heads: Heads of the model; as many as the size of the largest head allows if None.
        dtype: Type of the weights; float64 keeps the weights to about 12 digits.

    Returns:
        The model, in evaluation mode, with eager attention, which can return its weights.

    Raises:
        QkvError: If transformers is not installed, the circuit has no layers, the vectors are not of one length, or its
            heads do not fit.

    Example:
        >>> import torch
        >>> import qkv
        >>> words = qkv.design.Vocabulary.side_by_side([[1, 0], [0, 1], [1, 1]], length=6)
        >>> model = qkv.design.to_gpt2(qkv.design.wire_texts(words, qkv.design.previous()))
        >>> weights = model(torch.tensor([[2, 0, 1, 1]]), output_attentions=True).attentions[0][0, 0]
        >>> weights.argmax(dim=1).tolist()
        [0, 0, 1, 2]
    """
    request = "putting a circuit into GPT-2"
    try:
        from transformers import GPT2Config, GPT2Model
    except ImportError:
        raise MissingExtra(request, "hf") from None
    if not isinstance(circuit, Circuit):
        problem = f"{kind_of(circuit)} is no circuit"
        raise QkvError(request, problem, "Give a result of wire_texts")
    if not circuit.layers:
        raise QkvError(request, "the circuit has no layers", "Give a circuit that was found")
    token, place = (_length(request, name, v) for name, v in _tables(request, circuit).items())
    largest = max(max(len(layer.Q), len(layer.V)) for layer in circuit.layers)
    width, heads = _width(request, circuit.vocabulary.width + 1, largest, heads)
    settings: dict[str, Any] = {
        "vocab_size": len(circuit.vocabulary.tokens), "n_positions": circuit.vocabulary.length, "n_embd": width,
        "n_layer": len(circuit.layers), "n_head": heads, "n_inner": 1, "attn_implementation": "eager",
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
    }  # fmt: skip
    config = GPT2Config(**settings)
    model = GPT2Model(config).eval()
    model.to(dtype=dtype)
    basis = _mean_zero_basis(width, circuit.vocabulary.width)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.wte.weight.copy_(circuit.vocabulary.tokens @ basis[: circuit.vocabulary.tokens.shape[1]])
        model.wpe.weight.copy_(circuit.vocabulary.positions @ basis)
        square = token**2 + place**2
        for block, layer in zip(model.h, circuit.layers, strict=True):
            block.ln_1.weight.fill_(math.sqrt(square / width + config.layer_norm_epsilon))
            block.ln_2.weight.fill_(1.0)
            _set_head(block.attn, layer, basis, width, width // heads)
            square += token**2
        model.ln_f.weight.fill_(1.0)
    return model


def _tables(request: str, circuit: Circuit) -> dict[str, torch.Tensor]:
    """Token vectors and position vectors, which must be at right angles."""
    t, p = circuit.vocabulary.tokens, circuit.vocabulary.positions
    overlap = float((t @ p[:, : t.shape[1]].T).abs().max())
    if overlap > MAX_LENGTH_SPREAD * float(torch.linalg.vector_norm(t, dim=1).max()):
        problem = "tokens and positions are not at right angles, so that LayerNorm would change their sums"
        raise QkvError(request, problem, "Use Vocabulary.side_by_side")
    return {"token": t, "position": p}


def _length(request: str, name: str, vectors: torch.Tensor) -> float:
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    low, high = float(lengths.min()), float(lengths.max())
    if not high - low <= MAX_LENGTH_SPREAD * high:
        problem = f"the {name} vectors have lengths from {low:.6g} to {high:.6g}, and LayerNorm would change them"
        raise QkvError(request, problem, "Use Vocabulary.side_by_side with normalise=True")
    return float(lengths.mean())


def _width(request: str, least: int, head: int, heads: int | None) -> tuple[int, int]:
    """The width of the model, a multiple of the number of heads, with heads that hold the circuit's."""
    count = max(1, least // head) if heads is None else whole(request, "heads", heads)
    return max(math.ceil(least / count), head) * count, count


def _mean_zero_basis(width: int, rows: int) -> torch.Tensor:
    """Orthonormal rows with mean 0: the reflection that takes (1, …, 1)/√width to the last axis, without that axis."""
    v = torch.full((width,), 1 / math.sqrt(width), dtype=torch.float64)
    v[-1] -= 1
    if width > 1:
        v /= torch.linalg.vector_norm(v)
    return torch.eye(width, dtype=torch.float64)[:rows] - 2 * torch.outer(v[:rows], v)


def _set_head(attention: Any, layer: Any, basis: torch.Tensor, width: int, size: int) -> None:
    """Head 0 of a GPT-2 attention; its matrices multiply row vectors from the right."""
    joint = torch.zeros(width, 3 * width, dtype=torch.float64)
    for start, matrix in ((0, layer.Q * math.sqrt(size)), (width, layer.K), (2 * width, layer.V)):
        joint[:, start : start + len(matrix)] = basis.T @ matrix.T
    out = torch.zeros(width, width, dtype=torch.float64)
    out[: len(layer.V)] = layer.O.T @ basis
    attention.c_attn.weight.copy_(joint)
    attention.c_proj.weight.copy_(out)
