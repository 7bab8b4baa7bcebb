"""Markdown to verdicts: syntax, semantics, symbolic proof and numerical evidence, adjudication.

Reading order: syntax (Markdown and LaTeX to nodes), semantics (declared names, ranges, cases of an index), symbolic
(the prover) and numeric (instances), which know nothing of each other, adjudicate (proof and evidence to a verdict),
equivalence (iff, as two claims), arrays (claims about arrays of any size, with a decision of their own), kernel
(theorems for Coq), time_limit (of one claim), pipeline (check: all of them in order), verdict (the results). catalogue
holds six documents with known verdicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.claims.pipeline import check as check
    from qkv.claims.verdict import KernelCheck as KernelCheck
    from qkv.claims.verdict import Step as Step
    from qkv.claims.verdict import Verdict as Verdict
    from qkv.claims.verdict import Verdicts as Verdicts
else:
    _HOME = {
        "check": "pipeline",
        "Verdict": "verdict",
        "Verdicts": "verdict",
        "Step": "verdict",
        "KernelCheck": "verdict",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
