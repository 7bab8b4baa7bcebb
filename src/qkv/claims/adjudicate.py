"""Decision table: a symbolic proof and numerical evidence to a verdict.

Rows are read from top to bottom; the first that applies decides. A proof stands only if no instance disagrees with it,
a refutation only with an instance, a witness, or a proof of the contrary, a condition only if instances on both sides
of it agree. Samples alone never refute: without a symbolic argument, a refutation needs an instance that is confirmed
in exact arithmetic, or by integrals with an error bound. What contradicts a symbolic result is reported as a bug, and
the claim stays undecided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qkv.claims.numeric import evidence as numeric_evidence
from qkv.claims.numeric.evidence import Evidence
from qkv.claims.numeric.item_limit_checks import formulas_agree
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import QuantifierCase, instances
from qkv.claims.symbolic.limit_statements import item_limit_formula
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Proof
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP
from qkv.claims.verdict import Verdict

_UNKNOWN_NAMES = r"gap\(|<k_|k_\*|\brest\d*\b|theta\d*\b|remainder|~"  # unknowns of the prover as they are printed
_INTERNAL = re.compile(_UNKNOWN_NAMES)
_INTERNAL_PART = re.compile(rf"(?:the sign of |the growth of )?[^;(]*(?:{_UNKNOWN_NAMES})[^;]*")
MAX_PROBABILITY_ERROR = 0.05  # between a derived probability and the share of the draws
MIN_AGREEING = 4  # instances that must agree for a claim without a proof to hold
MAX_UNCLEAR_SHARE = 0.1  # of the instances that agree, for a claim to hold


@dataclass(frozen=True)
class Traits:
    """Properties of the statement that the decision table reads.

    Attributes:
        query_impossibility: Whether it says that no query does something; no instance is tried of such a claim.
        impossibility: Whether it says that no number or query does something.
        limit_count: How many limits of numbers other than noise sizes it takes, one after the other.
        any_limit: Whether it takes any limit.
        item_limit: Whether n goes to infinity.
        strict: Whether it holds <, > or !=.
        vacuous: Whether no item meets the quantifier.
        computed: Whether it holds a limit or a statistic, which no instance shows exactly.
        too_slow: Whether a limit goes through a logarithm of a logarithm, which no place on its way shows.
        unsearched: Whether no search looks for equal sides, which violate it: of != under conditions on scores, and of
            != and strict orders between random numbers.
    """

    query_impossibility: bool = False
    impossibility: bool = False
    limit_count: int = 0
    any_limit: bool = False
    item_limit: bool = False
    strict: bool = False
    vacuous: bool = False
    computed: bool = False
    too_slow: bool = False
    unsearched: bool = False

    @classmethod
    def of(cls, context: Context, cases: Sequence[QuantifierCase]) -> Traits:
        """The traits of a claim."""
        claim, core = context.claim, context.claim.statement.core
        limits = [n.name for n in L.nodes((claim.given, claim.statement)) if isinstance(n, L.Approach)]
        return cls(
            query_impossibility=isinstance(core, L.Never) and core.kind == "query",
            impossibility=isinstance(core, L.Never),
            limit_count=len([name for name in limits if name not in context.noise_sizes]),
            any_limit=bool(limits),
            item_limit=any(isinstance(n, L.Approach) and n.name == "n" for n in L.nodes(claim)),
            strict=isinstance(core, L.Relation) and bool({"<", ">", "!="} & set(core.ops)),
            vacuous=not cases,
            computed=bool(limits)
            or any(isinstance(n, L.Stat | L.Chance | L.Within) for n in L.nodes((claim.lets, claim.statement))),
            too_slow=bool(limits) and any(_is_nested_logarithm(n) for n in L.nodes((claim.lets, claim.statement))),
            unsearched=isinstance(core, L.Relation) and _without_search(context, core),
        )


def _without_search(context: Context, core: L.Relation) -> bool:
    counted = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes((context.claim.lets, core)))
    if "!=" in core.ops and context.score_conditions:
        return True
    return bool({"<", ">", "!="} & set(core.ops)) and bool(context.random or context.noise) and not counted


def _is_nested_logarithm(node: L.Node) -> bool:
    return _is_logarithm(node) and any(_is_logarithm(inner) and inner is not node for inner in L.nodes(node))


def _is_logarithm(node: L.Node) -> bool:
    return isinstance(node, L.Call) and node.function == "log"


@dataclass(frozen=True)
class Findings:
    """A proof, evidence, traits of the claim, and further checks that some rows ask for (see `Checks`)."""

    proof: Proof
    evidence: Evidence
    traits: Traits
    checks: Checks

    @property
    def shown_false(self) -> bool:
        """Whether an instance backs an argument against the claim: a confirmed one, or any of a limit or statistic.

        Of those the argument computes the value, and instances show only where it differs.
        """
        return bool(
            self.evidence.confirmed or (self.traits.computed and (self.evidence.disagree or self.evidence.drawn))
        )

    @property
    def wrong_probability(self) -> bool:
        """Whether the share of the draws contradicts a derived probability."""
        claimed, share = self.proof.probability, self.evidence.share
        return claimed is not None and share is not None and abs(share - claimed) > MAX_PROBABILITY_ERROR

    @property
    def few_unclear(self) -> bool:
        """Whether few enough instances are unclear; for a strict order, one tie is enough to doubt it."""
        most = 0 if self.traits.strict else self.evidence.agree * MAX_UNCLEAR_SHARE
        return self.evidence.unclear <= most

    @property
    def why_not_certain(self) -> str:
        """Why instances that disagree do not refute."""
        return (
            "no place on the way to a limit refutes it"
            if self.traits.any_limit
            else "draws and rounding refute nothing"
        )

    @property
    def how_confirmed(self) -> str:
        """How the counterexample was confirmed."""
        return "by exact moments of the noise" if self.evidence.exact else "as exact arithmetic confirms"

    @property
    def by_exact_moments(self) -> str:
        """How the instances were evaluated, if by integration."""
        return ", by exact moments of the noise" if self.evidence.exact else ""


class Checks:
    """Checks that only some rows need: they run when a row asks for them, once."""

    def __init__(self, context: Context, cases: Sequence[QuantifierCase], proof: Proof) -> None:
        self._context = context
        self._cases = cases
        self._proof = proof

    @cached_property
    def item_limit(self) -> tuple[bool, str]:
        """Whether the formulas converge as n grows, and how that was tried."""
        found = [item_limit_formula(c.context, c.core) if isinstance(c.core, L.Limit) else None for c in self._cases]
        return formulas_agree(found)

    @cached_property
    def condition_counterexample(self) -> str | None:
        """Numbers that contradict a condition: where it holds and the statement does not, or the other way round.

        A condition that is not one comparison, or is that of one case among several, is not tried.
        """
        condition = self._proof.condition
        if condition is None or condition.relation is None or len(self._cases) != 1:
            return None
        (op,) = condition.relation.ops
        try:
            for side, claimed in ((op, True), (NEGATED_OP[op], False)):
                cases = self._narrowed(replace(condition.relation, ops=(side,)))
                tried = numeric_evidence.gather(cases, count=numeric_evidence.N_INSTANCES // 2)
                if tried.disagree if claimed else (tried.agree and not tried.disagree):
                    return tried.counterexample or numeric_evidence.smallest(cases) or "none"
        except L.Malformed:  # no number is left on one side
            return None
        return None

    @cached_property
    def smallest_instance(self) -> str | None:
        """The smallest instance, as Python assignments."""
        return numeric_evidence.smallest(self._cases)

    @cached_property
    def place_instance(self) -> str | None:
        """An instance at the place where the proof says that an order fails, if it fails there for certain."""
        if not self._proof.place:
            return None
        try:
            return numeric_evidence.certain_violation(self._narrowed(*self._proof.place))
        except L.Malformed:  # the place contradicts what is given
            return None

    def _narrowed(self, *relations: L.Relation) -> list[QuantifierCase]:
        """The cases of the same claim under more conditions."""
        claim = self._context.claim
        statement = replace(claim.statement, when=(*claim.statement.when, *relations))
        return instances(build_context(replace(claim, statement=statement)))


@dataclass(frozen=True)
class Row:
    """One row of the table: for which kind of proof and which findings it applies, and what it decides."""

    name: str
    kinds: tuple[str, ...]
    applies: Callable[[Findings], object]
    verdict: str
    because: Callable[[Findings], str]
    counterexample: Callable[[Findings], str | None] = lambda f: None


ARGUED = (PROVED, REFUTED, CONDITIONAL)

TABLE = (
    Row(
        "no instance",
        ARGUED,
        lambda f: not f.evidence.total and not f.traits.query_impossibility and not f.traits.vacuous,
        "undecided",
        lambda f: "no instance was found that meets what is given: conditions that cannot be met, or too many items?",
    ),
    # A proof.
    Row(
        "proof, but instances of repeated limits disagree",
        (PROVED,),
        lambda f: f.evidence.disagree and f.traits.limit_count > 1,
        "undecided",
        lambda f: f"a proof was found ({f.proof.because}), but instances far along the limits do not show it",
    ),
    Row(
        "proof, but instances disagree in floating point only",
        (PROVED,),
        lambda f: f.evidence.disagree and not f.evidence.confirmed and not f.traits.computed,
        "undecided",
        lambda f: (
            f"a proof was found ({f.proof.because}); {f.evidence.disagree} of {f.evidence.total} instances disagree in "
            "floating point, and exact arithmetic confirms none of them"
        ),
    ),
    Row(
        "proof, but instances disagree",
        (PROVED,),
        lambda f: f.evidence.disagree,
        "undecided",
        lambda f: (
            f"{'a bug' if f.evidence.confirmed else 'a bug, or an error of draws or of places on the way to a limit'}: "
            f"the proof ({f.proof.because}) and {f.evidence.disagree} of {f.evidence.total} instances disagree"
        ),
        lambda f: f.evidence.counterexample,
    ),
    Row(
        "proof, but draws contradict it beyond their error",
        (PROVED,),
        lambda f: f.evidence.contradicted,
        "undecided",
        lambda f: (
            f"a bug: the proof ({f.proof.because}) and the draws of {f.evidence.contradicted} of {f.evidence.total} "
            "instances disagree by many times their error"
        ),
        lambda f: f.evidence.counterexample,
    ),
    Row(
        "proof of a limit in n, and the formulas agree",
        (PROVED,),
        lambda f: f.traits.item_limit and f.checks.item_limit[0],
        "proved",
        lambda f: f"{f.proof.because}; {f.checks.item_limit[1]}",
    ),
    Row(
        "proof of a limit in n, and the formulas disagree",
        (PROVED,),
        lambda f: f.traits.item_limit,
        "undecided",
        lambda f: f"{f.proof.because}; {f.checks.item_limit[1]}",
    ),
    Row(
        "proof of a statistic that draws do not settle",
        (PROVED,),
        lambda f: not f.evidence.agree and f.evidence.drawn,
        "proved",
        lambda f: f"{f.proof.because}; the draws of the numerical instances are too few to tell",
    ),
    Row(
        "proof, but no instance could be evaluated",
        (PROVED,),
        lambda f: not f.evidence.agree and not f.traits.vacuous,
        "undecided",
        lambda f: f"a proof was found ({f.proof.because}), but no instance could be evaluated to check it",
    ),
    Row(
        "proof of a statement about no item",
        (PROVED,),
        lambda f: not f.evidence.total,
        "proved",
        lambda f: f"{f.proof.because}; not tried numerically",
    ),
    Row(
        "proof, and instances agree",
        (PROVED,),
        lambda f: True,
        "proved",
        lambda f: (
            f"{f.proof.because}; {f.evidence.agree} of {f.evidence.total} numerical instances agree, none disagrees"
        ),
    ),
    # An argument against the claim.
    Row(
        "refutation, and instances disagree",
        (REFUTED,),
        lambda f: f.shown_false,
        "refuted",
        lambda f: f.proof.because,
        lambda f: f.evidence.counterexample,
    ),
    Row(
        "proof of the contrary, and instances agree at most within the error of a sample",
        (REFUTED,),
        lambda f: f.proof.sure and f.evidence.agree <= f.evidence.rough,
        "refuted",
        lambda f: f.proof.because,
        lambda f: f.checks.smallest_instance,
    ),
    Row(
        "refutation at a place",
        (REFUTED,),
        lambda f: f.proof.place and f.checks.place_instance is not None,
        "refuted",
        lambda f: f.proof.because,
        lambda f: f.checks.place_instance,
    ),
    Row(
        "refutation by a witness",
        (REFUTED,),
        lambda f: f.proof.witness is not None,
        "refuted",
        lambda f: f.proof.because,
        lambda f: f.proof.witness.assignment() if f.proof.witness is not None else None,
    ),
    Row(
        "refutation of a limit in n, whose formulas do not go there",
        (REFUTED,),
        lambda f: f.traits.item_limit and not f.checks.item_limit[0],
        "refuted",
        lambda f: f"{f.proof.because}; the formulas at large n do not go there",
    ),
    Row(
        "refutation that no instance confirms",
        (REFUTED,),
        lambda f: True,
        "undecided",
        lambda f: (
            f"the argument against it ({f.proof.because}) was not confirmed by any of {f.evidence.total} instances"
        ),
    ),
    # A condition, or a probability.
    Row(
        "derived probability, but the draws show another",
        (CONDITIONAL,),
        lambda f: f.wrong_probability,
        "undecided",
        lambda f: (
            f"a bug: the probability {f.proof.probability:.4f} was derived; {f.evidence.share:.3f} of the draws agree"
        ),
        lambda f: f.evidence.counterexample,
    ),
    Row(
        "derived condition, but instances contradict it",
        (CONDITIONAL,),
        lambda f: f.proof.probability is None and f.checks.condition_counterexample is not None,
        "undecided",
        lambda f: f"a bug: {f.proof.because} was derived, but not so for these numbers",
        lambda f: f.checks.condition_counterexample,
    ),
    Row(
        "condition or probability",
        (CONDITIONAL,),
        lambda f: True,
        "conditional",
        lambda f: f.proof.because,
        lambda f: f.evidence.counterexample,
    ),
    # No symbolic result.
    Row(
        "an instance disagrees for certain",
        (UNKNOWN,),
        lambda f: f.evidence.confirmed,
        "refuted",
        lambda f: f"false for the numbers shown, {f.how_confirmed}",
        lambda f: f.evidence.counterexample,
    ),
    Row(
        "impossibility without a proof",
        (UNKNOWN,),
        lambda f: f.traits.impossibility,
        "undecided",
        lambda f: f"{f.proof.because}; trying some numbers does not show that there is none",
    ),
    Row(
        "repeated limits without a proof",
        (UNKNOWN,),
        lambda f: f.traits.limit_count > 1,
        "undecided",
        lambda f: f"{f.proof.because}; limits one after the other cannot be checked numerically",
    ),
    Row(
        "instances disagree, but not for certain",
        (UNKNOWN,),
        lambda f: f.evidence.disagree or f.evidence.drawn,
        "undecided",
        lambda f: (
            f"{f.proof.because}; {f.evidence.disagree + f.evidence.drawn} of {f.evidence.total} numerical instances "
            f"speak against it, but {f.why_not_certain}"
        ),
    ),
    Row(
        "instances agree within the error of a sample",
        (UNKNOWN,),
        lambda f: f.evidence.rough and not f.evidence.disagree,
        "undecided",
        lambda f: f"{f.proof.because}; instances agree, but only within the error of a sample",
    ),
    Row(
        "instances that cannot show it",
        (UNKNOWN,),
        lambda f: f.traits.too_slow or f.traits.unsearched,
        "undecided",
        lambda f: (
            f"{f.proof.because}; {f.evidence.agree} of {f.evidence.total} instances agree, but "
            + ("log(log(...)) moves too slowly to be seen" if f.traits.too_slow else "none was sought with equal sides")
        ),
    ),
    Row(
        "instances agree",
        (UNKNOWN,),
        lambda f: not f.evidence.disagree and f.evidence.agree >= MIN_AGREEING and f.few_unclear,
        "holds",
        lambda f: (
            f"no proof found ({f.proof.because}); "
            f"all of {f.evidence.agree} random and adversarial instances agree{f.by_exact_moments}"
        ),
    ),
    Row(
        "instances are not clear",
        (UNKNOWN,),
        lambda f: True,
        "undecided",
        lambda f: f"{f.proof.because}; the numerical instances are not clear either",
    ),
)


def plain_reason(text: str) -> str:
    """A reason without names of exceptions and of unknowns that only the prover knows."""
    text = re.sub(r" \((?:[A-Za-z]*(?:Error|Failed|Exception)|NotImplemented)\)", "", text)
    if not _INTERNAL.search(text):
        return text
    if "left minus right is " in text:
        start = text.index("left minus right is ")
        never = ", never 0" in text
        return f"{text[:start]}left minus right is {'never 0' if never else 'not 0 everywhere'}"
    return _INTERNAL_PART.sub(_unsettled, text)


def _unsettled(part: re.Match[str]) -> str:
    """What is said in place of a part with unknowns; a bracket that was opened before it is closed."""
    opened = part[0].count(")") > part[0].count("(")
    return "the symbolic part does not settle it" + ")" * opened


def row_for(findings: Findings) -> Row:
    """The first row of the table that applies; the last row of each kind of proof always does."""
    return next(row for row in TABLE if findings.proof.kind in row.kinds and row.applies(findings))


def adjudicate(context: Context, cases: Sequence[QuantifierCase], proof: Proof, evidence: Evidence) -> Verdict:
    """The verdict on a claim, by the table."""
    findings = Findings(proof, evidence, Traits.of(context, cases), Checks(context, cases, proof))
    row = row_for(findings)
    claim = context.claim
    because, counterexample = plain_reason(row.because(findings)), row.counterexample(findings)
    return Verdict(claim.id, row.verdict, claim.says, because, proof.steps, counterexample)
