"""A document to verdicts: read, argue, try, and compare the argument with the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from qkv.claims.numeric.evaluator import NotLoaded
from qkv.claims.semantics.context import built
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import UnparsedClaim, read
from qkv.claims.time_limit import TimedOut, time_limit
from qkv.claims.verdict import Step, Verdict, Verdicts

SECONDS = 10.0


def check(text: str, seconds: float = SECONDS) -> Verdicts:
    """Decide every claim in a Markdown text; no claim takes longer than `seconds`."""
    return Verdicts(tuple(decided(text, seconds)))


def decided(text: str, seconds: float = SECONDS) -> Iterator[Verdict]:
    """The verdicts one by one, as they are reached."""
    for claim in read(text):
        if isinstance(claim, UnparsedClaim):
            yield malformed(claim)
        else:
            yield verdict(claim, seconds)


def malformed(claim: UnparsedClaim) -> Verdict:
    """The verdict on what could not be read."""
    return Verdict(claim.id, "malformed", _first(claim.source), str(claim.why))


def verdict(claim: L.Claim, seconds: float = SECONDS) -> Verdict:
    """The verdict on one claim; whatever goes wrong is a verdict too."""
    says = claim.says
    _load()
    try:
        # Adversarial numbers overflow on purpose; what comes of it is looked at, not warned about.
        with time_limit(seconds), np.errstate(all="ignore"):
            return _weighed(claim)
    except L.Malformed as why:
        return Verdict(claim.id, "malformed", says, str(why))
    except NotLoaded:
        _load(noise=True)
        return verdict(claim, seconds)
    except TimedOut:
        return Verdict(claim.id, "undecided", says, f"timed out after {seconds:g} s")
    except (RecursionError, MemoryError):
        return Verdict(claim.id, "undecided", says, "the formula is too large")
    except Exception as why:  # a defect of the checker must not take the document down with it
        return Verdict(
            claim.id, "undecided", says, f"the checker failed on it, which is a bug ({type(why).__name__}: {why})"[:300]
        )


def _load(noise: bool = False) -> None:
    """Import what a verdict needs before its time begins: an import that is broken off cannot be made good."""
    from qkv.claims.numeric import evidence, item_limit_checks  # noqa: F401

    if noise:
        from qkv.claims.numeric import noise_moments  # noqa: F401
        from qkv.noise import reading_moments, success_probability  # noqa: F401


def _weighed(claim: L.Claim) -> Verdict:
    """The symbolic outcome and the numerical evidence must agree."""
    from qkv.claims.numeric import evidence
    from qkv.claims.symbolic import proof as found
    from qkv.claims.symbolic import prover

    argued = prover.decide(claim)
    tried = evidence.gather(claim, hint=argued.notes)
    steps = tuple(Step(s.text, s.latex) for s in argued.steps)
    says = claim.says

    def made(kind: str, because: str, counterexample: str | None = None) -> Verdict:
        return Verdict(claim.id, kind, says, because, steps, counterexample)

    query = isinstance(claim.statement.core, L.Never) and claim.statement.core.kind == "query"
    if not tried.total and not query and argued.kind != found.UNKNOWN and prover.instances(claim):
        what = "conditions that cannot be met, or too many items?"
        return made("undecided", f"no instance was found that meets what is given: {what}")
    noise = built(claim).noise_sizes  # it vanishes below rounding, whatever the others do
    moving = [n.name for n in L.nodes((claim.given, claim.statement)) if isinstance(n, L.Approach)]
    several = len([name for name in moving if name not in noise]) > 1
    if argued.kind == found.PROVED:
        if tried.disagree and several:
            return made("undecided", f"a proof was found ({argued.because}), but instances far out do not show it")
        if tried.disagree:
            return made(
                "undecided",
                f"a bug: the proof ({argued.because}) and {tried.disagree} of {tried.total} instances disagree",
                tried.counterexample,
            )
        if any(isinstance(n, L.Approach) and n.name == "n" for n in L.nodes(claim)):
            from qkv.claims.numeric.item_limit_checks import seen

            follows, how = seen(claim)
            return made("proved" if follows else "undecided", f"{argued.because}; {how}")
        if not tried.agree and prover.instances(claim):
            return made(
                "undecided", f"a proof was found ({argued.because}), but no instance could be evaluated to check it"
            )
        return made("proved", f"{argued.because}; {_agreed(tried)}")
    if argued.kind == found.REFUTED:
        if tried.disagree:
            return made("refuted", argued.because, tried.counterexample)
        if argued.sure and tried.agree <= tried.rough:  # a sample may be near what it is not
            return made("refuted", argued.because, evidence.smallest(claim))
        if "tie" in argued.notes:
            return made("refuted", argued.because, evidence.smallest(_narrowed(claim, argued.notes["tie"])))
        if argued.notes:  # the number or query that does what was said to be impossible
            return made("refuted", argued.because, "\n".join(f"{k} = {v!r}" for k, v in argued.notes.items()))
        return made(
            "undecided",
            f"the argument against it ({argued.because}) was not confirmed by any of {tried.total} instances",
        )
    if argued.kind == found.CONDITIONAL:
        if argued.probability is not None and tried.share is not None and abs(tried.share - argued.probability) > 0.05:
            return made(
                "undecided",
                f"a bug: the probability {argued.probability:.4f} was derived; {tried.share:.3f} of the draws agree",
                tried.counterexample,
            )
        wrong = _wrong_condition(claim, argued.notes.get("when", "")) if argued.probability is None else None
        if wrong is not None:
            return made("undecided", f"a bug: {argued.because} was derived, but not so for these numbers", wrong)
        return made("conditional", argued.because, tried.counterexample)
    if isinstance(claim.statement.core, L.Never):
        return made("undecided", f"{argued.because}; trying some numbers does not show that there is none")
    if several:
        return made("undecided", f"{argued.because}; limits one after the other cannot be seen from afar")
    # A limit that is only seen from afar may be slow: it takes every instance to refute it without an argument.
    slow = bool(moving) and tried.disagree < max(6, tried.total)
    if tried.disagree and not slow:
        by = ", by exact moments of the noise" if tried.exact else ""
        said = f"{tried.disagree} of {tried.total} numerical instances disagree{by}"
        return made("refuted", said, tried.counterexample)
    # One instance where both sides are equal is enough to doubt that one is less.
    core = claim.statement.core
    most = 0 if isinstance(core, L.Relation) and {"<", ">"} & set(core.ops) else tried.agree / 10
    if tried.rough and not tried.disagree:
        return made("undecided", f"{argued.because}; instances agree, but only within the error of a sample")
    if not tried.disagree and tried.agree >= 4 and tried.unclear <= most:
        by = ", by exact moments of the noise" if tried.exact else ""
        said = f"all of {tried.agree} random and adversarial instances agree{by}"
        return made("holds", f"no proof found ({argued.because}); {said}")
    return made("undecided", f"{argued.because}; the numerical instances are not clear either")


def _narrowed(claim: L.Claim, when: str) -> L.Claim:
    """The same claim under one more condition, in the words of the language."""
    from qkv.claims.syntax.parser import Source, parse

    found = parse(Source(f"0 = 0 when {when}", [(1, 1)] * (len(when) + 11)), "then").when
    return replace(claim, statement=replace(claim.statement, when=(*claim.statement.when, *found)))


def _wrong_condition(claim: L.Claim, when: str) -> str | None:
    """Numbers that speak against a condition that was found: where it holds and the statement does not, or the other
    way round. A condition that cannot be written in the claim language, or is that of one case, is not tried."""
    from qkv.claims.numeric import evidence
    from qkv.claims.symbolic import prover

    if len(prover.instances(claim)) != 1:
        return None

    turned = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    text = re.sub(r"\be\b", "exp(1)", when)
    try:
        found = _narrowed(claim, text).statement.when[len(claim.statement.when) :]
        relation = found[0]
        if len(found) != 1 or len(relation.ops) != 1 or relation.ops[0] not in turned:
            return None
        if any(isinstance(n, L.Name) and str(n) not in built(claim).numbers for n in L.nodes(relation)):
            return None  # a function that the language does not have reads as a name
        for op, good in ((relation.ops[0], True), (turned[relation.ops[0]], False)):
            narrower = replace(claim.statement, when=(*claim.statement.when, replace(relation, ops=(op,))))
            tried = evidence.gather(replace(claim, statement=narrower), count=evidence.COUNT // 2)
            if tried.disagree if good else (tried.agree and not tried.disagree):
                return tried.counterexample or evidence.smallest(replace(claim, statement=narrower)) or "none"
    except (L.Malformed, IndexError):
        return None
    return None


def _agreed(tried: object) -> str:
    from qkv.claims.numeric.evidence import Evidence

    assert isinstance(tried, Evidence)
    if not tried.total:
        return "not tried numerically"
    return f"{tried.agree} of {tried.total} numerical instances agree, none disagrees"


def _first(source: str) -> str:
    return next((line.strip() for line in source.split("\n") if line.strip()), "")[:200]
