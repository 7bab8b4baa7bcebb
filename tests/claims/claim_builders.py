"""Claims, contexts and expressions from text, for tests of single stages."""

from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import instances
from qkv.claims.syntax.markdown import read
from qkv.claims.syntax.nodes import Claim


def claim_of(given="", let="", then="1 = 1"):
    """One parsed claim."""
    lines = [f"given {given}"] * bool(given) + [f"let {let}"] * bool(let) + [f"then {then}"]
    (claim,) = read("```claim x\n" + "\n".join(lines) + "\n```")
    assert isinstance(claim, Claim), claim.why
    return claim


def context_of(given="", let="", then="1 = 1"):
    """The context of a claim."""
    return build_context(claim_of(given, let, then))


def cases_of(given="", let="", then="1 = 1"):
    """The cases of a claim's index."""
    return instances(context_of(given, let, then))


def expression(text):
    """A parsed expression."""
    return claim_of(then=f"{text} = 0").statement.core.sides[0]
