"""How much the whole model's output depends on each channel of the keys: Fisher information, from backward passes.

With y drawn from the model's own probabilities, E[(d log p(y) / d key entry)²] is the Fisher information of that entry,
and rounding errors e move the probabilities by a KL divergence of ½ Σ information · e² to second order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.heads.key_grid import MAX_BITS, inexact, key_grid

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel, Progress

RIDGE = 1e-6
"""Added to the covariance of keys before it is inverted, relative to its mean variance."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """What rounding each channel of the keys costs the whole model.

    Attributes:
        cost: KL divergence in nats per token for 1 to 8 bits, (8, layers, key heads, size), to second order.
        basis: Matrices that take a key to the coordinates that are rounded, (layers, key heads, size, size); None if
            keys are rounded as they are.
        tokens: Tokens that it was found on.
        samples: Backward passes of each window.
    """

    cost: Tensor
    basis: Tensor | None
    tokens: int
    samples: int

    def kl(self, bits: Tensor) -> Tensor:
        """The KL divergence that each channel causes, for bits (layers, key heads, size); their sum is the model's."""
        return self.cost.gather(0, bits[None].long() - 1)[0]


@dataclass(frozen=True, eq=False)
class KeyGradients:
    """Keys of windows of text, and how the log-probability of drawn tokens depends on them.

    Attributes:
        keys: For each window, (layers, key heads, tokens, size).
        gradients: For each window, (samples, layers, key heads, tokens, size).
    """

    keys: list[Tensor]
    gradients: list[Tensor]

    def halves(self) -> tuple[KeyGradients, KeyGradients] | None:
        """Two parts with different windows, or with different drawn tokens of one window; None if there is one pass."""
        count = len(self.keys)
        if count > 1:
            return tuple(KeyGradients(self.keys[i::2], self.gradients[i::2]) for i in (0, 1))  # type: ignore[return-value]
        if len(self.gradients[0]) > 1:
            return tuple(KeyGradients(self.keys, [self.gradients[0][i::2]]) for i in (0, 1))  # type: ignore[return-value]
        return None


def key_gradients(
    model: AttentionModel,
    windows: Sequence[Tensor],
    samples: int = 2,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> KeyGradients:
    """Gradients of the log-probability of tokens that are drawn from the model's own probabilities.

    Args:
        model: A model that predicts the next token.
        windows: Token ids.
        samples: Backward passes of each window.
        seed: Of the drawn tokens.
        progress: Called with windows done and in all.

    Raises:
        QkvError: The model predicts no tokens.
    """
    if not model.predicts:
        problem = f"{model.name} predicts no tokens, so that there is no KL divergence"
        raise QkvError("the Fisher information of keys", problem, "Open a model that predicts the next token")
    generator = torch.Generator().manual_seed(seed)
    found = KeyGradients([], [])
    for number, ids in enumerate(windows):
        progress(number, len(windows))
        keys: dict[int, Tensor] = {}

        def watch(layer: int, key: Tensor, value: Tensor, keys: dict[int, Tensor] = keys) -> tuple[Tensor, Tensor]:
            key = key if key.requires_grad else key.detach().requires_grad_(True)
            key.retain_grad()
            keys[layer] = key
            return key, value

        with torch.enable_grad(), _without_weights(model), model.adapter.attached(keys=watch):
            logits = model.model(input_ids=ids[None], use_cache=False).logits[0].float()
            chances = logits.log_softmax(-1)
            drawn = torch.multinomial(chances.detach().exp(), samples, replacement=True, generator=generator)
            passes = []
            for sample in range(samples):
                total = chances.gather(1, drawn[:, sample : sample + 1]).sum()
                ordered = [keys[layer] for layer in range(len(keys))]
                passes.append(torch.stack(torch.autograd.grad(total, ordered, retain_graph=sample + 1 < samples))[:, 0])
        found.keys.append(torch.stack([key.detach()[0] for key in ordered]).double())
        found.gradients.append(torch.stack(passes).double())
    progress(len(windows), len(windows))
    return found


def sensitivity(found: KeyGradients, basis: Tensor | None = None) -> Sensitivity:
    """The cost of rounding each channel, or each coordinate of a basis.

    The least and the largest entry of a channel do not move, and are left out.

    Args:
        found: From `key_gradients`.
        basis: Matrices that take a key to the coordinates that are rounded, such as those of `own_basis`.
    """
    tokens = sum(keys.shape[2] for keys in found.keys)
    samples = found.gradients[0].shape[0]
    information: Tensor | float = 0.0
    squares: Tensor | float = 0.0
    count: Tensor | float = 0.0
    for keys, gradients in zip(found.keys, found.gradients, strict=True):
        if basis is not None:
            keys, gradients = keys @ basis.mT, gradients @ torch.linalg.inv(basis)
        free = inexact(keys)
        information = information + (gradients.square().mean(0) * free).sum(2) / tokens
        errors = [key_grid(keys, bits).rounded(keys) - keys for bits in range(1, MAX_BITS + 1)]
        squares = squares + torch.stack([(error.square() * free).sum(2) for error in errors])
        count = count + free.sum(2)
    cost = 0.5 * information * squares / torch.as_tensor(count).clamp(min=1)
    return Sensitivity(torch.as_tensor(cost), basis, tokens, samples)


def own_basis(found: KeyGradients) -> Tensor:
    """The basis in which a head's keys are uncorrelated and the Fisher information is diagonal.

    With covariance C = L Lᵀ of the keys and Fisher information F it is Uᵀ L⁻¹, where Lᵀ F L = U diag Uᵀ.

    Args:
        found: From `key_gradients`.

    Returns:
        (layers, key heads, size, size); its rows are the directions.
    """
    keys = torch.cat(found.keys, 2)
    gradients = torch.cat([part.transpose(0, 1).transpose(1, 2).flatten(2, 3) for part in found.gradients], 2)
    away = keys - keys.mean(2, keepdim=True)
    covariance = away.mT @ away / keys.shape[2]
    size = covariance.shape[-1]
    mean = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None].clamp(min=1e-30)
    factor = torch.linalg.cholesky(covariance + RIDGE * mean * torch.eye(size, dtype=covariance.dtype))
    fisher = gradients.mT @ gradients
    directions = torch.linalg.eigh(factor.mT @ fisher @ factor).eigenvectors
    return directions.mT @ torch.linalg.inv(factor)


@contextmanager
def _without_weights(model: AttentionModel) -> Iterator[None]:
    """No gradients of the weights, which nobody asks for."""
    before = [(weights, weights.requires_grad) for weights in model.model.parameters()]
    try:
        for weights, _ in before:
            weights.requires_grad_(False)
        yield
    finally:
        for weights, needed in before:
            weights.requires_grad_(needed)
