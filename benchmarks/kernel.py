"""How many proved claims of the catalogue Coq accepts, in which form, and how long it takes.

    python benchmarks/kernel.py [--documents 1]

Prints the counts for each document, what was not accepted and why, and JSON on the last line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter

import qkv
from qkv.claims.catalogue import documents
from qkv.claims.kernel import coq


def main() -> None:
    """Check the catalogue with Coq and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=None, help="only so many documents of the catalogue")
    options = parser.parse_args()
    coq.library()
    forms: Counter[str] = Counter()
    proved, seconds = 0, 0.0
    for name, text in documents()[: options.documents]:
        start = time.perf_counter()
        without = qkv.check(text)
        middle = time.perf_counter()
        found = qkv.check(text, kernel="coq")
        spent = time.perf_counter() - middle - (middle - start)
        seconds += spent
        mine = [v for v in found if v.kernel is not None]
        accepted = [v for v in mine if v.kernel is not None and v.kernel.accepted]
        proved += len(mine)
        forms.update(v.kernel.form for v in accepted if v.kernel is not None)
        assert [v.verdict for v in without] == [v.verdict for v in found]
        print(f"{name}: {len(accepted)} of {len(mine)} proved claims accepted by Coq, {spent:.0f} s")
        for v in mine:
            if v.kernel is not None and not v.kernel.accepted:
                print(f"  {v.id}: {v.says}\n    {v.kernel.because}")
    over_vectors = sum(count for form, count in forms.items() if form.startswith("over vectors"))
    summary = {
        "checker": f"Coq {coq.version()}",
        "proved": proved,
        "accepted": sum(forms.values()),
        "over_vectors": over_vectors,
        "forms": dict(forms),
        "share_accepted": round(sum(forms.values()) / max(proved, 1), 4),
        "share_over_vectors": round(over_vectors / max(proved, 1), 4),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
