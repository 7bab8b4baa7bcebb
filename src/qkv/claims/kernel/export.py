"""From a claim to a theorem with its proof script."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.claims.arrays.context import is_about_arrays
from qkv.claims.kernel.identifiers import comment
from qkv.claims.kernel.limit_proofs import LimitProof
from qkv.claims.kernel.relation_proofs import RelationProof
from qkv.claims.kernel.statement import Statement, stated
from qkv.claims.kernel.terms import NotExported
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.shorthands import without_shorthands
from qkv.claims.syntax import nodes as L

OVER_VECTORS = "over vectors and n items"
FOR_ALL_NOISE = "over vectors and n items, for every value of the noise"
FOR_ALL_LAWS = "over vectors and n items, for every law with the given means and covariances"
OVER_NUMBERS = "over numbers, as the claim is"


@dataclass(frozen=True)
class Export:
    """A theorem for Coq.

    Attributes:
        statement: The theorem without its proof, as Coq text; its name is `claim`.
        script: The tactics that prove it.
        form: What the theorem speaks of.
        says: The claim in words, as a Coq comment.
    """

    statement: str
    script: str
    form: str
    says: str

    def text(self, name: str) -> str:
        """The theorem with its proof, under a name."""
        statement = self.statement.replace("Theorem claim :", f"Theorem {name} :", 1)
        return f"{self.says}\n{statement}\nProof.\n{self.script}\nQed.\n"


def exported(claim: L.Claim) -> Export:
    """The theorem of a claim, with a script that should prove it if the claim is true.

    Raises:
        NotExported: The claim has no form in Attention.v.
    """
    if any(isinstance(given, L.Mask) for given in claim.given):
        raise NotExported("masks")
    if is_about_arrays(claim):
        raise NotExported("arrays and functions of them")
    context = build_context(without_shorthands(claim))
    statement = stated(context)
    return Export(statement.text("claim"), _script(context, statement), _form(context, statement), comment(claim.says))


def _script(context: Context, statement: Statement) -> str:
    core = context.claim.statement.core
    inner = core.inner if isinstance(core, L.Never) else core
    statistics = any(isinstance(n, L.Stat) for n in L.nodes(context.claim.statement))
    if isinstance(inner, L.Limit):
        tends = inner.tends and not isinstance(core, L.Never)
        if statistics:
            from qkv.claims.kernel.moment_limits import moment_limit

            return moment_limit(context, statement, inner)
        return LimitProof(context, statement, inner, tends).script()
    if isinstance(inner, L.Relation | L.Distribution) and not isinstance(core, L.Never):
        return RelationProof(context, statement, inner).script()
    raise NotExported("this form")


def _form(context: Context, statement: Statement) -> str:
    text = statement.text("claim")
    if "noise : nat" in text:
        return FOR_ALL_NOISE
    if "law : Expectation" in text:
        return FOR_ALL_LAWS
    vectors = any("nat -> " in b or ": E)" in b for b in statement.binders)
    return OVER_VECTORS if vectors else OVER_NUMBERS
