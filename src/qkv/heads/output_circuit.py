"""What a head writes when it looks something up: its value and output projections as one matrix.

The matrices are found without knowing the family: in one run, the value projection is the affine map whose outputs are
the head's values, and the output projection is the affine map whose input is the heads' output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from qkv.errors import QkvError
from qkv.heads.adapter import AttentionCall

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel


Applied = tuple[nn.Module, Tensor, Tensor]
"""An affine map that was applied, with what went in and what came out."""
PIECE = 4096
"""Tokens of the vocabulary that are multiplied at once."""


@dataclass(frozen=True)
class OutputCircuit:
    """The matrices of one layer.

    Attributes:
        value: (key heads, size, width): a head's value of a hidden state.
        output: (heads, width, size): what a head's output adds to the hidden state.
    """

    value: Tensor
    output: Tensor

    def head(self, number: int) -> tuple[Tensor, Tensor]:
        """The two matrices of one head."""
        groups = self.output.shape[0] // self.value.shape[0]
        return self.output[number], self.value[number // groups]


@dataclass(frozen=True)
class WritingMeasures:
    """How a head writes.

    Attributes:
        copying: Sum of the eigenvalues of the head's matrix, token to logits, over the sum of their sizes: 1 if looking
            at a token makes that token likelier in every direction, -1 if less likely. Without a vocabulary, of the
            matrix from hidden state to hidden state.
        rank: Effective rank, exp of the entropy of the singular values' shares.
        subspace: Largest cosine between the matrix and an orthogonal projection: 1 if it keeps a subspace as it is.
    """

    copying: float
    rank: float
    subspace: float


def output_circuits(model: AttentionModel) -> list[OutputCircuit]:
    """The value and output projections of every layer.

    Raises:
        QkvError: In some layer they are not affine maps of the hidden state.
    """
    calls: list[AttentionCall] = []
    outputs: list[Tensor] = []
    seen: list[Applied] = []
    marks: list[int] = []  # how many maps were applied before each layer's attention

    def note(module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
        seen.append((module, inputs[0], result))

    def keep(layer: int, output: Tensor) -> Tensor:
        outputs.append(output)
        marks.append(len(seen))
        return output

    ids = torch.arange(min(8, model.context))[None] % max(2, model.model.config.vocab_size)
    affine = [m for m in model.model.modules() if _is_affine(m)]
    handles = [m.register_forward_hook(note) for m in affine]
    try:
        model.run(ids, calls.append, output=keep)
    finally:
        for handle in handles:
            handle.remove()
    ends = [0, *marks[1:], len(seen)]
    return [
        _circuit(model, call, output, seen[marks[i - 1] if i else 0 : marks[i]], seen[marks[i] : ends[i + 1]])
        for i, (call, output) in enumerate(zip(calls, outputs, strict=True))
    ]


def _is_affine(module: nn.Module) -> bool:
    """Linear layers, and layers that are linear under another name; embeddings and norms are not."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)


def _circuit(
    model: AttentionModel, call: AttentionCall, output: Tensor, before: list[Applied], after: list[Applied]
) -> OutputCircuit:
    """The matrices of a layer, from the maps applied before its attention and those after it, up to the next layer's.

    A map is told by the numbers that go in or come out. Where several maps fit and differ, none is taken.
    """
    heads, size = call.query.shape[1], call.value.shape[-1]
    flat = output.reshape(*output.shape[:2], -1)
    values = call.value[0].transpose(1, 2).reshape(-1, call.value.shape[2])  # channel by channel over the tokens
    into = []
    for module, x, result in before:
        if x.dim() != 3 or result.shape[:2] != x.shape[:2]:
            continue
        index = {tuple(channel.tolist()): i for i, channel in enumerate(result[0].T)}
        rows = [index.get(tuple(channel.tolist())) for channel in values]
        if None not in rows:
            matrix = _matrix(module, x.shape[-1])
            names = [tuple(channel.tolist()) for channel in result[0].T]
            into.append(matrix[rows])
            # Channels with the same numbers can be told apart only if it makes no difference.
            twins = [i for i, name in enumerate(names) if index[name] in set(rows)]
            if not torch.equal(matrix[twins], matrix[[index[names[i]] for i in twins]]):
                into.append(torch.empty(0))
    onto = [_matrix(m, flat.shape[-1]) for m, x, _ in after if x.shape == flat.shape and torch.equal(x, flat)]
    request, instead = f"the output matrices of {model.name}", "Measure what its heads look at instead"
    if not into or not onto:
        what = "the values are no affine function of the hidden state" if not into else "no map takes the heads' output"
        raise QkvError(request, f"in layer {call.layer} {what}", instead)
    for found in (into, onto):
        if any(not torch.equal(found[0], other) for other in found[1:]):
            raise QkvError(request, f"in layer {call.layer} several maps fit and cannot be told apart", instead)
    if onto[0].shape[0] != into[0].shape[1]:
        raise QkvError(request, f"in layer {call.layer} heads read and write states of different sizes", instead)
    return OutputCircuit(
        into[0].reshape(call.value.shape[1], size, -1), onto[0].reshape(-1, heads, size).transpose(0, 1)
    )


def _matrix(module: nn.Module, width: int) -> Tensor:
    """The matrix of an affine map, whichever way its weights are laid out."""
    with torch.no_grad():
        kind = next(module.parameters()).dtype
        return (module(torch.eye(width, dtype=kind)) - module(torch.zeros(1, width, dtype=kind))).T


def writing_measures(circuit: OutputCircuit, head: int, vocabulary: Tensor | None) -> WritingMeasures:
    """How one head writes.

    Args:
        circuit: Its layer's matrices.
        head: Its number.
        vocabulary: Embedding times unembedding, (width, width), from `vocabulary_matrix`; None without.
    """
    output, value = (m.double() for m in circuit.head(head))
    small = value @ output if vocabulary is None else value @ vocabulary @ output
    eigenvalues = torch.linalg.eigvals(small)
    total = float(eigenvalues.abs().sum())
    copying = float(eigenvalues.real.sum()) / total if total else 0.0
    # The singular values of output @ value are those of the product of two small triangular factors.
    left, right = torch.linalg.qr(output)[1], torch.linalg.qr(value.T)[1]
    singular = torch.linalg.svdvals(left @ right.T)
    share = singular / singular.sum().clamp_min(1e-300)
    rank = float((-(share * share.clamp_min(1e-300).log()).sum()).exp()) if float(singular.sum()) else 0.0
    basis = torch.linalg.qr(torch.cat([output, value.T], 1))[0]
    inner = (basis.T @ output) @ (value @ basis)
    levels = torch.linalg.eigvalsh((inner + inner.T) / 2).flip(0).cumsum(0)
    ranks = torch.arange(1, len(levels) + 1, dtype=torch.float64).sqrt()
    norm = float(singular.norm())
    subspace = float((levels / ranks).max()) / norm if norm else 0.0
    return WritingMeasures(copying, rank, max(0.0, subspace))


def vocabulary_matrix(model: AttentionModel) -> Tensor | None:
    """Embedding times unembedding, so that a head's matrix can be taken from token to logits; None without logits.

    Raises:
        QkvError: Tokens are not embedded as hidden states, or hidden states are projected before the logits.
    """
    if not model.predicts:
        return None
    embedding, head = model.model.get_input_embeddings(), model.model.get_output_embeddings()
    width = model.model.config.hidden_size
    if embedding is None or head is None or {embedding.weight.shape[1], head.weight.shape[1]} != {width}:
        problem = "tokens and logits are not those of the hidden states"
        raise QkvError(f"the vocabulary of {model.name}", problem, "Measure what its heads look at instead")
    total = torch.zeros(embedding.weight.shape[1], embedding.weight.shape[1], dtype=torch.float64)
    with torch.no_grad():  # in pieces, since a large vocabulary in float64 takes more memory than the model
        for one, two in zip(embedding.weight.split(PIECE), head.weight.split(PIECE), strict=True):
            total += one.T.double() @ two.double()
    return total
