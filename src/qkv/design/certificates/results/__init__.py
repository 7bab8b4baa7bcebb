"""Results beside certificates in a file: which fields are saved, and whether each is what the certificates show.

Reading order: base (comparisons), query, copyable, projection, wiring, reachability and circuit (one kind of result
each), fields (all of them).
"""

from __future__ import annotations

from qkv.design.certificates.results.fields import EVIDENCE as EVIDENCE
from qkv.design.certificates.results.fields import Difference as Difference
from qkv.design.certificates.results.fields import differences as differences
from qkv.design.certificates.results.fields import kept as kept
