"""Circuit: one or two layers of attention with which the tokens of texts read by a rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import torch

from qkv.core.attention import read_self
from qkv.core.display import Card, Displayable, lower_bound, number, upper_bound
from qkv.core.masks import causal
from qkv.core.types import ArrayLike
from qkv.core.validation import tensor
from qkv.design.certificates.certificate import Certificate
from qkv.design.sequences.rules import ListedReads, ReadRule
from qkv.design.sequences.texts import Vocabulary
from qkv.errors import QkvError

Scope = Literal["every text", "given texts"]
Status = Literal["found", "found for some tokens", "out of reach", "not found"]
MAX_NAMED = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """One layer: y_i = x_i + O Σ_j α_ij V x_j, with α_i the softmax of (Q x_i)·(K x_j) over j = 0..i.

    Attributes:
        Q: Query matrix, (head_size, d).
        K: Key matrix, (head_size, d).
        V: Value matrix, (dv, d): it reads the token vector out of a token at a position.
        O: Output matrix, (d, dv): it writes to entries that were zero before.
    """

    Q: torch.Tensor
    K: torch.Tensor
    V: torch.Tensor
    O: torch.Tensor  # noqa: E741 - the field's name of this matrix

    def weights(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights on a text's vectors, and the vectors after the layer."""
        alpha, read = read_self(x, self.Q, self.K, self.V, mask=causal(len(x)))
        return alpha, x + read @ self.O.T


@dataclasses.dataclass(frozen=True, eq=False)
class Circuit(Displayable):
    """Layers of attention with which tokens read by a rule, with a certificate that says for which texts.

    Attributes:
        status: "found"; "found for some tokens" (what the excluded tokens read is not covered); "out of reach" (a proof
            that no head does it for the given texts, up to a very large norm of W); or "not found".
        scope: "every text" over the vocabulary up to its length, or "given texts".
        rule: The rule.
        layers: The layers; for `induction` over every text, two.
        vocabulary: Vectors of tokens and positions that enter the first layer: those given, with zeros at their end for
            what each layer writes.
        tol: Largest total-variation distance that was allowed.
        distance: Certified bound on the distance of the weights from the wanted ones, for every rule in the scope; 1,
            which bounds every distance, if no layers were found.
        rules: For given texts, how many rules they hold.
        norm: Frobenius norm of W = QᵀK of the last layer; None if no layers were found.
        least_norm: Certified bound from below on the norm of W of every head that does it; None if there is none.
        excluded: Tokens that cannot be told from others, so that what they read is not covered.
        reasons: Why tokens are excluded, or no head does it, in words.
        certificate: The certificate; None if nothing is certified.
    """

    status: Status
    scope: Scope
    rule: ReadRule | ListedReads
    layers: tuple[Layer, ...] = dataclasses.field(repr=False)
    vocabulary: Vocabulary = dataclasses.field(repr=False)
    tol: float
    distance: float
    rules: int | None
    norm: float | None
    least_norm: float | None
    excluded: tuple[int, ...]
    reasons: tuple[str, ...]
    certificate: Certificate | None = dataclasses.field(repr=False)

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result."""
        return [] if self.certificate is None else [self.certificate]

    @property
    def possible(self) -> bool:
        """Whether layers were found."""
        return bool(self.layers)

    def weights(self, ids: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """The attention weights of every layer on a text.

        Args:
            ids: The numbers of its tokens.

        Returns:
            One (n, n) tensor per layer, in float64: row i holds the weights of position i.

        Raises:
            QkvError: If a number is no token, or if there are more of them than positions.
        """
        x, out = self.vocabulary.vectors(ids), []
        for layer in self.layers:
            alpha, x = layer.weights(x)
            out.append(alpha)
        return tuple(out)

    def distances(self, ids: Sequence[int], weights: ArrayLike | None = None) -> dict[int, float]:
        """The total-variation distance of every rule of a text, computed in float64.

        Args:
            ids: The numbers of its tokens.
            weights: Weights to judge instead of those of the last layer, (n, n), such as those of a model that runs it.

        Returns:
            Distances by position; positions without a rule, and those of excluded tokens, are left out.

        Raises:
            QkvError: If the text does not fit the vocabulary or the rule.
        """
        alpha = self.weights(ids)[-1] if weights is None else tensor("weights", weights, "n n")
        if alpha.shape != (len(ids), len(ids)):
            problem = f"the weights have shape {tuple(alpha.shape)}, and the text has {len(ids)} tokens"
            raise QkvError("judging weights by a rule", problem, "Give one row and one column for each token")
        out = {}
        for i, read in self.rule.targets(ids).items():
            if ids[i] not in self.excluded:
                wanted = torch.zeros(len(alpha), dtype=torch.float64)
                wanted[list(read)] = 1 / len(read)
                out[i] = 0.5 * float((alpha[i] - wanted).abs().sum())
        return out

    def card(self) -> Card:
        labels = self.vocabulary.labels
        if not self.possible:
            facts: tuple[tuple[str, str], ...] = (("rule", str(self.rule)),)
            facts += tuple(("because", reason) for reason in self.reasons)
            facts += tuple(("proof", c.statement) for c in self.certificates)
            title = "No head was found"
            if self.status == "out of reach" and self.least_norm is not None:
                title = f"No W = QᵀK of norm below {lower_bound(self.least_norm, 3)} does this for these texts"
            return Card(title, facts)
        sizes = " and ".join(str(len(layer.Q)) for layer in self.layers)
        covers = (
            f"every text of at most {self.vocabulary.length:,} tokens over {len(labels):,}"
            if self.scope == "every text"
            else f"the given texts, which hold {self.rules:,} rules"
        )
        facts = (
            ("rule", str(self.rule)),
            ("certified for", covers),
            ("distance of weights", f"≤ {upper_bound(self.distance, 6)} in total variation (tol {self.tol:g})"),
            ("layers", f"{len(self.layers)}, head size {sizes}, width {self.vocabulary.width}"),
            ("norm of W = QᵀK", number(self.norm or 0.0, 6)),
        )
        if self.least_norm is not None:
            facts += (("norm of every W", f"≥ {lower_bound(self.least_norm, 6)}, certified"),)
        if self.excluded:
            named = ", ".join(str(labels[u]) for u in self.excluded[:MAX_NAMED])
            more = f" and {len(self.excluded) - MAX_NAMED:,} more" if len(self.excluded) > MAX_NAMED else ""
            facts += (("not covered", f"what {named}{more} read"),)
        facts += tuple(("because", reason) for reason in self.reasons)
        return Card("Circuit" if self.status == "found" else "Circuit for some tokens", facts)

    def to_json(self) -> dict[str, Any]:
        says = self.certificate.worded(dict(enumerate(self.vocabulary.labels))) if self.certificate else None
        return super().to_json() | {"possible": self.possible, "says": says}
