"""The chapter of the tour on claims: the verdicts on the catalogue."""

from __future__ import annotations

import time

from qkv.claims import Verdicts
from qkv.claims.catalogue import documents
from qkv.claims.pipeline import decided_documents
from qkv.viz.html_report import Chapter


def claims() -> Chapter:
    """Decide every statement of the answer sheets of the catalogue."""
    start = time.monotonic()
    parts = documents()
    every = Verdicts(tuple(verdict for _, verdict in decided_documents([text for _, text in parts])))
    seconds = time.monotonic() - start
    counts = ", ".join(f"{count} {kind}" for kind, count in every.counts().items())
    telling = [v for v in every if v.verdict in ("refuted", "conditional")]
    chosen = ("first (b) ii, scaled #1", "first (d) i, as it stands #1", "second 3.d.ii #1", "fifth (e) i, u_d")
    return Chapter(
        "Claims become verdicts",
        (
            f"{len(parts)} answer sheets on attention make {len(every)} statements about attention. Each is written in a small "
            f"language inside Markdown, examined symbolically and tried on numbers: "
            f"{counts}, in {seconds:.0f} s. `qkv check --catalogue --show` prints every derivation.",
            f"{len(chosen)} of them in full ({', '.join(every[name].verdict for name in chosen)}):",
            *(every[name] for name in chosen),
            f"And all {len(telling)} that are refuted, or hold under a condition:",
            Verdicts(tuple(telling)),
        ),
    )
