"""check: Markdown to verdicts, by parsing, building the context, proving, trying instances, and adjudication."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real
from pathlib import Path

import numpy as np

from qkv.claims.adjudicate import adjudicate
from qkv.claims.arrays.context import is_about_arrays
from qkv.claims.arrays.decide import decide as arrays_decide
from qkv.claims.equivalence import equivalence
from qkv.claims.numeric import evidence
from qkv.claims.numeric.evaluator import NotLoaded
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import instances
from qkv.claims.semantics.shorthands import without_shorthands
from qkv.claims.symbolic import prover
from qkv.claims.symbolic.proof import REFUTED, UNKNOWN
from qkv.claims.syntax.markdown import UnparsedClaim, read
from qkv.claims.syntax.nodes import Claim, Iff, Malformed
from qkv.claims.time_limit import TimedOut, time_limit
from qkv.claims.verdict import Verdict, Verdicts
from qkv.errors import QkvError, kind_of

SECONDS_PER_CLAIM = 10.0
MAX_SOURCE_LENGTH = 200  # characters of a statement that could not be parsed
MAX_REASON_LENGTH = 300  # characters of the reason when the checker failed


def check(
    text: str,
    seconds: float = SECONDS_PER_CLAIM,
    *,
    kernel: str | None = None,
    save_proofs: str | Path | None = None,
    processes: int | None = None,
) -> Verdicts:
    """Decide every claim in a Markdown text.

    A claim is a fenced block that begins with ```` ```claim ````; docs/claims.md describes the language. Every `then`
    of a block gets its own verdict. Nothing in the text is run as code.

    Args:
        text: A Markdown document.
        seconds: The longest time for one claim; a claim that takes longer is undecided.
        kernel: "coq" has Coq check a theorem of each proved claim, and `Verdict.kernel` says what it found
            (docs/kernel.md).
        save_proofs: A folder in which the accepted theorems are written; needs `kernel`.
        processes: Number of processes; if None, several are started where many claims remain. With a kernel, claims
            are checked one after another in this process.

    Returns:
        The verdicts in the order of the document; `len` is 0 if the text has no claim.

    Raises:
        QkvError: The text is not a string, seconds is no positive number, or Coq is asked for and not installed.
            Whatever is wrong with a claim becomes its verdict.

    Example:
        >>> from qkv.claims import check
        >>> found = check('''
        ... ```claim average
        ... given k_1..k_n orthonormal, n >= 3
        ... let   q = t*(k_a + k_b)
        ... then  alpha_a -> 1/2 as t -> oo
        ... then  alpha_a -> 1 as t -> oo
        ... ```
        ... ''')
        >>> [(v.id, v.verdict) for v in found]
        [('average #1', 'proved'), ('average #2', 'refuted')]
        >>> found["average #2"].because
        'the limit is 1/2 as t -> oo'
    """
    if not isinstance(text, str):
        raise QkvError("checking claims", f"the text is {kind_of(text)}", "Give a Markdown document as a string")
    if not isinstance(seconds, Real) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        problem = f"seconds is {seconds!r:.60}"
        raise QkvError("checking claims", problem, "Give a positive, finite number of seconds, such as 10")
    if kernel is None and save_proofs is not None:
        raise QkvError("checking claims", "save_proofs without a kernel", 'Give kernel="coq" too')
    if kernel is not None and not isinstance(kernel, str):
        raise QkvError("checking claims", f"the kernel is {kind_of(kernel)}", 'Give kernel="coq", or none')
    if kernel is not None:
        folder = None if save_proofs is None else Path(save_proofs)
        return Verdicts(tuple(checked_by_kernel(text, kernel, seconds, folder)))
    return Verdicts(tuple(verdict for _, verdict in decided_documents([text], seconds, processes)))


def checked_by_kernel(
    text: str, kernel: str, seconds: float = SECONDS_PER_CLAIM, save_proofs: Path | None = None, name: str = "claims"
) -> list[Verdict]:
    """The verdicts of a Markdown text, with what a proof assistant says of those that are proved."""
    if kernel != "coq":
        raise QkvError("checking claims", f"there is no kernel {kernel!r}", 'Give kernel="coq", or none')
    from qkv.claims.kernel import coq
    from qkv.claims.kernel.certify import certified

    coq.library()  # what is missing is said before the claims are decided
    claims = list(read(text))
    found = [malformed(c) if isinstance(c, UnparsedClaim) else verdict(c, seconds) for c in claims]
    pairs = [(None if isinstance(c, UnparsedClaim) else c, v) for c, v in zip(claims, found, strict=True)]
    return certified(pairs, save_proofs, name)


def decided(text: str, seconds: float = SECONDS_PER_CLAIM) -> Iterator[Verdict]:
    """The verdicts of a Markdown text one by one, as they are reached."""
    for claim in read(text):
        yield _verdict_of(seconds, claim)


def decided_documents(
    texts: Sequence[str], seconds: float = SECONDS_PER_CLAIM, processes: int | None = None
) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of Markdown texts one by one, each with the number of its text, in their order.

    Args:
        texts: Markdown documents.
        seconds: The longest time for one claim.
        processes: Number of processes; if None, several are started where many claims remain.

    Raises:
        QkvError: The number of processes is not a whole number above 0.
    """
    from qkv.parallel import WorkerPool

    claims = [(number, claim) for number, text in enumerate(texts) for claim in read(text)]
    with WorkerPool(processes=processes) as pool:
        found = pool.stream(_verdict_of, seconds, [(claim,) for _, claim in claims])
        for (number, _), verdict in zip(claims, found, strict=True):
            yield number, verdict


def _verdict_of(seconds: float, claim: Claim | UnparsedClaim) -> Verdict:
    return malformed(claim) if isinstance(claim, UnparsedClaim) else verdict(claim, seconds)


def malformed(claim: UnparsedClaim) -> Verdict:
    """The verdict on a claim that could not be parsed."""
    first = next((line.strip() for line in claim.source.split("\n") if line.strip()), "")
    return Verdict(claim.id, "malformed", first[:MAX_SOURCE_LENGTH], str(claim.why))


def verdict(claim: Claim, seconds: float = SECONDS_PER_CLAIM) -> Verdict:
    """The verdict on one claim; whatever goes wrong is a verdict too."""
    try:
        # Overflow is expected here; results are checked for infinities, so NumPy's warnings are off.
        with time_limit(seconds), np.errstate(all="ignore"):
            return _decide(claim)
    except Malformed as why:
        return Verdict(claim.id, "malformed", claim.says, str(why))
    except NotLoaded:
        _import_noise()
        return verdict(claim, seconds)
    except TimedOut:
        return Verdict(claim.id, "undecided", claim.says, f"timed out after {seconds:g} s")
    except (RecursionError, MemoryError):
        return Verdict(claim.id, "undecided", claim.says, "the formula is too large")
    except Exception as why:  # a defect of the checker must not end the check of the document
        because = f"the checker failed on it, which is a bug ({type(why).__name__}: {why})"
        return Verdict(claim.id, "undecided", claim.says, because[:MAX_REASON_LENGTH])


def _decide(claim: Claim) -> Verdict:
    """The stages in order; each takes the context of the claim, built once."""
    if isinstance(claim.statement.core, Iff):
        return equivalence(claim, _decide)
    if is_about_arrays(claim):
        return arrays_decide(claim)
    claim = without_shorthands(claim)
    context = build_context(claim)
    cases = instances(context)
    proof = prover.decide(cases)
    hint = None if proof.witness is None else proof.witness.number
    tried = evidence.gather(cases, hint=hint, thorough=proof.kind in (UNKNOWN, REFUTED))
    return adjudicate(context, cases, proof, tried)


def _import_noise() -> None:
    """Import qkv.noise, and with it torch, outside the time limit: an import that is interrupted cannot be repeated.

    Most claims need neither, so they are not imported at the top.
    """
    from qkv.noise import reading_moments, success_probability  # noqa: F401
