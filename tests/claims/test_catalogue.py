"""The catalogue of write-ups: what the issue says must come out does, and a change in any claim changes its verdict."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest
from marks import some

import qkv
from qkv.claims.catalogue import documents
from qkv.claims.syntax.markdown import read
from qkv.claims.syntax.nodes import Claim, Limit, Relation

TEXTS = {read(text)[0].id.split()[0]: text for _, text in documents()}
"""The documents by the first word of the names of their claims."""
FAST = ("fourth", "beside")
"""Documents whose claims are decided by `make test` too."""


def by_document(names):
    """Names of claims as parameters; those in other documents than the fast ones are slow."""
    names = [name.strip() for name in names]
    return some(names, [name for name in names if name.startswith(FAST)])


@functools.cache
def verdicts_of(document):
    """The verdicts on the claims of a document by their names."""
    return {v.id: v for v in qkv.check(TEXTS[document], seconds=60)}


@pytest.fixture(scope="module")
def decided():
    """Gives the verdicts of the document in which a claim is."""
    return lambda name: verdicts_of(name.split()[0])


@pytest.mark.slow
def test_every_claim_is_decided():
    verdicts = [v.verdict for document in TEXTS for v in verdicts_of(document).values()]
    assert len(verdicts) > 300
    assert set(verdicts) == {"proved", "conditional", "refuted", "malformed"}


def named(verdicts, start, which=None):
    found = [v for name, v in verdicts(start).items() if name == start or name.startswith(f"{start} #")]
    assert found, start
    return found if which is None else [found[which - 1]]


@pytest.mark.parametrize(
    "name",
    by_document(
        """first (a) i|first (a) ii|first (a) iii, corrected|first (a) iv|first (b) i|first (b) ii, scaled
    second 3.b|first (c) ii, scores|second 3.e.i|second 3.e.i, with u_d|second 3.e.ii|fifth (e) ii
    fourth (c) ii, weights|first (c) i|fifth (e) i, u_d|fifth (e) i, u_c|beside permutations|beside rotations
    first (d) ii, comparison|third (d) ii, what it is|third (d) ii, corrected|first (d) i, corrected""".replace(
            "\n", "|"
        ).split("|")
    ),
)
def test_what_is_right_is_proved(decided, name):
    for verdict in named(decided, name):
        assert verdict.verdict == "proved", verdict
        assert verdict.derivation, verdict


@pytest.mark.parametrize(
    ("name", "which"),
    [
        ("fourth (b) i, as it stands", None),
        pytest.param("third (b) i, as it stands", None, marks=pytest.mark.slow),
        pytest.param("first (d) i, as it stands", None, marks=pytest.mark.slow),
        pytest.param("fifth (c) ii, second key", None, marks=pytest.mark.slow),
        pytest.param("third (d) ii", 2, marks=pytest.mark.slow),
        pytest.param("third (d) ii", 3, marks=pytest.mark.slow),
        pytest.param("fifth (a), as it stands", None, marks=pytest.mark.slow),
        ("fourth (a) iii, as it stands", 3),
    ],
)
def test_what_is_wrong_is_refuted_with_numbers_that_python_accepts(decided, name, which):
    for verdict in named(decided, name, which):
        assert verdict.verdict == "refuted", verdict
        values: dict[str, object] = {}
        exec(verdict.counterexample, {}, values)
        assert (
            values["left"] != values["right"]
            or "Var" in verdict.says
            or "Corr" in verdict.says
            or "k_i'q" in verdict.says
        )


@pytest.mark.slow
def test_an_unscaled_query_gives_e_over_e_plus_9(decided):
    (verdict,) = named(decided, "first (d) i, as it stands", 1)
    assert "0.232" in verdict.because


def test_coordinates_are_not_the_vector(decided):
    (verdict,) = named(decided, "fourth (b) i, as it stands", 1)
    assert "m entries (x)" in verdict.because


@pytest.mark.parametrize("name", by_document(["second 3.d.ii", "fourth (d) ii, corrected", "fifth (d) ii"]))
def test_two_heads_still_average_with_a_probability(decided, name):
    found = [v for v in named(decided, name) if "(c_1 + c_2)/2 ->" in v.says]
    assert [v.verdict for v in found] == ["conditional"]
    assert "0.9214" in found[0].because


@pytest.mark.slow
def test_single_head_attention_is_robust_with_another_query(decided):
    (verdict,) = named(decided, "first (c) ii, not robust")
    assert verdict.verdict == "conditional"
    assert "harden" in verdict.because and "sum_{i not in a, b} mu_i" in verdict.because


@pytest.mark.parametrize("document", some(TEXTS, FAST))
def test_garbled_formulas_stand_beside_their_corrections(document):
    verdicts = verdicts_of(document)
    garbled = {name.split(", as it stands")[0] for name in verdicts if "as it stands" in name}
    for name in garbled:
        bad = [v.verdict for n, v in verdicts.items() if n.startswith(f"{name}, as it stands")]
        assert {"refuted", "malformed"} & set(bad), name
        beside = [v.verdict for n, v in verdicts.items() if n.startswith(name) and "as it stands" not in n]
        assert "proved" in beside, name


def altered(claim: Claim) -> str:
    """The statement with its sense turned: another value, the opposite comparison, the opposite limit."""
    core = claim.statement.core
    text = claim.statement.text
    if isinstance(core, Limit):
        if not core.tends:
            return text.replace("-/->", "->", 1)
        arrow = re.search(r"->|~=", text)
        before, after = text[: arrow.end()], text[arrow.end() :]
        target, sep, rest = after.partition(" as ")
        zero = target.strip() == "0"
        vector = bool(re.search(r"\b(c|c_\d|k_\w|v_\w\b)", text[: arrow.start()])) and "'" not in text[: arrow.start()]
        new = (" v_a" if vector else " 1") if zero else f" -2*({target.strip()})"
        return f"{before}{new}{sep}{rest}"
    if isinstance(core, Relation):
        at = len(core.ops) - 1
        ops = list(re.finditer(r"!=|<=|>=|<|>|=", re.sub(r"\{[^}]*\}|\[[^]]*\]", lambda m: " " * len(m[0]), text)))
        op = ops[at]
        other = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[op[0]]
        return text[: op.start()] + other + text[op.end() :]
    return {
        "alpha is a probability distribution": "sum_i alpha_i = 2",
        "c is permutation equivariant": "c_1 = c_2",
    }.get(text, "")


def single(claim: Claim, statement: str) -> str:
    kept = [line for line in claim.source.split("\n") if line.strip().startswith(("given", "let"))]
    given = " ".join(line for line in kept if line.startswith("given"))
    kept = [f"given {name} real" for name in claim.moving if not re.search(rf"\b{name}\b", given)] + kept
    return "```claim altered\n" + "\n".join([*kept, f"then {statement}"]) + "\n```"


CLAIMS = [c for _, text in documents() for c in read(text) if isinstance(c, Claim)]
EVERY_THIRD = [
    pytest.param(c, id=c.id, marks=[pytest.mark.slow] if i % 3 or not c.id.startswith(FAST) else [])
    for i, c in enumerate(CLAIMS)
]


@pytest.mark.parametrize("claim", EVERY_THIRD)
def test_a_change_in_the_claim_changes_the_verdict(decided, claim):
    before = decided(claim.id)[claim.id]
    if before.verdict == "malformed":
        pytest.skip("a garbled formula; its correction is changed instead")
    statement = altered(claim)
    if "no real r" in claim.statement.text:
        statement = claim.statement.text.replace(
            "u_b", "u_a + r*u_d" if "u_d" in claim.source.split("x_3")[0].split("x_2")[1] else "u_a + r*u_c"
        )
    elif "no query" in claim.statement.text:
        statement = claim.statement.text
        claim = replace(claim, source=claim.source.replace(" + 1/2*mu_a*mu_a'", ""))
    elif "shapes do not fit" in before.because:
        statement = claim.statement.text
        claim = replace(claim, source=re.sub(r"M = A'(\*A)?", "M = A*A'", claim.source))
    elif "within" in claim.statement.text:
        statement = claim.statement.text.replace("0.9", "0.95")
    elif "alpha_j > 0.99" in claim.statement.text:  # neither this nor its opposite holds for all keys
        statement = "alpha_j > 0"
    elif "((n)/(j-1))" in claim.statement.text:  # which may be 1, or not
        statement = claim.statement.text.replace("((n)/(j-1))", "")
    elif before.verdict == "refuted" and "!=" in statement and re.search(r"\bv_\w", statement):
        claim = replace(claim, source=claim.source + "\ngiven v_1..v_n orthonormal")  # they may be equal, or zero
    elif before.verdict == "refuted" and "->" in claim.statement.text:
        statement = re.sub(r"->|~=", "-/->", claim.statement.text, count=1)
    assert statement, claim.statement.text
    after = qkv.check(single(claim, statement), seconds=60)[0]
    if "exactly when" in before.because and "exactly when" in after.because:  # the opposite condition
        assert after.because != before.because
        return
    assert after.verdict != before.verdict, (statement, after)
    assert after.verdict != "malformed", (statement, after.because)
    if before.verdict == "refuted":
        assert after.verdict != "undecided" or "k_i'q" in statement, after
    else:
        assert after.verdict in ("refuted", "conditional", "proved"), after
