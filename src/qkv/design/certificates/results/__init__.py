"""Results beside certificates in a file: which fields are saved, and whether each is what the certificates show.

Reading order: base (comparisons), one module for each kind of result (query, copyable, projection, wiring, reachability,
circuit), fields (all of them).
"""

from __future__ import annotations

from qkv.design.certificates.results.fields import EVIDENCE as EVIDENCE
from qkv.design.certificates.results.fields import Difference as Difference
from qkv.design.certificates.results.fields import differences as differences
from qkv.design.certificates.results.fields import kept as kept
