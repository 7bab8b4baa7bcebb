"""One head of a model, as a memory and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable
from qkv.core.memory import Memory
from qkv.core.validation import whole
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.design.certificates.certificate import Certificate
    from qkv.heads.adapter import AttentionCall
    from qkv.heads.attention_model import AttentionModel
    from qkv.heads.token_view import HeadView


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
        position = whole(f"taking the query of token {position!r:.40}", "its place", position, -len(self.tokens))
        if position >= len(self.tokens):
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

    def view(self, text: str, *, token: int = -1, bits: int = 4, harden: bool = True) -> HeadView:
        """The head on one text, seen from one token; see `qkv.heads.token_view.head_view`."""
        from qkv.heads.token_view import head_view

        return head_view(self.model, self.layer, self.head, text, token=token, bits=bits, harden=harden)

    def radius_certificates(self, text: str | Sequence[str], window: int | None = None) -> list[Certificate]:
        """Certificates of how far the head's keys may move before another item is on top, one for each window.

        Args:
            text: One text or several; longer ones are cut into windows.
            window: Tokens of a window; 512 or the model's context if None.

        Returns:
            Certificates of the kind "top item" about the captured keys and queries; `qkv design verify` checks them.

        Raises:
            QkvError: The text has less than two tokens, or no query has an item that is alone on top.
        """
        from qkv.heads.firmness import radius_certificate

        found: list[Certificate | None] = []

        def keep(call: AttentionCall) -> None:
            if call.layer == self.layer:
                found.append(radius_certificate(call, self.head))

        for ids in self.model.windows(text, window):
            self.model.run(ids[None], keep)
        made = [one for one in found if one is not None]
        if not made:
            problem = "no query has one item that is certainly on top"
            raise QkvError(f"certifying head {self.layer}.{self.head}", problem, "Give a longer text or another head")
        return made
