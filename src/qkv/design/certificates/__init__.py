"""Certificates: statements with their raw inputs, issued, saved, loaded, and verified without any solver.

Reading order: certificate (issue and verify), statements (one module per kind), ball_arithmetic (interval arithmetic on
arrays), files (formats), results (the result beside them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.design.certificates.certificate import Certificate as Certificate
    from qkv.design.certificates.certificate import Verification as Verification
    from qkv.design.certificates.certificate import load as load
    from qkv.design.certificates.certificate import save as save
else:
    _HOME = dict.fromkeys(("Certificate", "Verification", "load", "save"), "certificate")
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
