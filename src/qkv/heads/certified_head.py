"""What `qkv certify` says of the certificates that it wrote for one head."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.core.display import Card, Displayable, lower_bound


@dataclass(frozen=True)
class CertifiedHead(Displayable):
    """Certificates of one head, as written to a file.

    Attributes:
        model: The model's name.
        head: The head, such as "18.6".
        queries: How many queries the certificates speak of.
        windows: In how many windows, with one certificate each.
        radius: How far every key may move, whichever the query, before another item can be on top.
        statements: What each certificate says.
        file: Where they are.
    """

    model: str
    head: str
    queries: int
    windows: int
    radius: float
    statements: tuple[str, ...]
    file: str

    def card(self) -> Card:
        facts = (
            ("queries", f"{self.queries} in {self.windows} window{'s' if self.windows > 1 else ''}"),
            ("every key may move", f"by less than {lower_bound(self.radius, 3)}, whichever the query"),
            *(("says", statement) for statement in self.statements),
            ("recheck with", f"qkv design verify {self.file}"),
        )
        return Card(f"Head {self.head} of {self.model}: the top item is certified", facts)
