"""One head of a model, as a memory and its queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable
from qkv.core.memory import Memory
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel


@dataclass(frozen=True, eq=False)
class HeadMemory(Displayable):
    """One head on one text: what it can look up, and with which queries it does.

    Attributes:
        head: The head, such as "18.6".
        memory: The keys and values of the text's tokens, labelled by place and token.
        queries: One query for each token, scaled so that scores are the plain inner products.
        visible: Which tokens each query sees.
        tokens: The text's tokens.
    """

    head: str
    memory: Memory
    queries: Tensor = field(repr=False)
    visible: Tensor = field(repr=False)
    tokens: tuple[str, ...]

    def card(self) -> Card:
        return Card(f"head {self.head} on {len(self.tokens)} tokens", (("keys", f"{tuple(self.memory.keys.shape)}"),))

    def at(self, position: int) -> tuple[Memory, Tensor]:
        """The memory that one token's query sees, and that query; `qkv.attend` of both is what the model computed.

        Args:
            position: Which token, from 0.

        Raises:
            QkvError: There is no such token.
        """
        if isinstance(position, bool) or not isinstance(position, int):
            problem = f"{position!r:.40} is no whole number"
            raise QkvError(f"taking the query of token {position!r:.40}", problem, "Count tokens from 0")
        if not -len(self.tokens) <= position < len(self.tokens):
            problem = f"the text has {len(self.tokens)} tokens"
            raise QkvError(f"taking the query of token {position}", problem, "Choose a token that is there")
        seen = self.visible[position].nonzero()[:, 0]
        labels = [self.memory.labels[i] for i in seen.tolist()] if self.memory.labels else None
        return Memory(self.memory.keys[seen], self.memory.values[seen], labels=labels), self.queries[position]


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a model.

    Attributes:
        model: The model.
        layer: Its layer, from 0.
        head: Its number in the layer, from 0.
    """

    model: AttentionModel
    layer: int
    head: int

    def memory(self, text: str) -> HeadMemory:
        """The head on one text, so that `read`, `reading_moments`, `blend` and `harden` work on it.

        Args:
            text: At most as many tokens as the model's context.

        Returns:
            Keys, values and queries in float64.

        Raises:
            QkvError: The text is too long, or the head's scores are not inner products (soft caps, sinks).
        """
        found = self.model.capture(text)
        call = found.calls[self.layer]
        if call.softcap is not None or call.sinks is not None:
            what = "a soft cap on its scores" if call.softcap is not None else "a sink that takes weight"
            problem = f"this head has {what}, so that it is no plain lookup"
            raise QkvError(f"head {self.layer}.{self.head} as a memory", problem, "Use capture(), which keeps them")
        key_head = self.head // call.groups
        labels = [f"{i} {token.strip() or token!r}" for i, token in enumerate(found.tokens)]
        keys, values = call.key[0, key_head].double(), call.value[0, key_head].double()
        queries = call.query[0, self.head].double() * call.scaling
        visible = torch.isfinite(call.scores()[0, self.head])
        name = f"{self.layer}.{self.head}"
        return HeadMemory(name, Memory(keys, values, labels=labels), queries, visible, found.tokens)
