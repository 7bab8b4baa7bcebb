"""LaTeX math is parsed into clauses, conditions and trees; what cannot be read is refused."""

from __future__ import annotations

import pytest

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, expression, parse


def symbol(text: str) -> T.Symbol:
    base, _, index = text.partition("_")
    return T.Symbol(base, tuple(index) if index else ())


def test_a_chain_with_a_limit() -> None:
    (clause,) = parse(r"\alpha_a = \alpha_b \approx \frac{1}{2}")
    assert clause.signs == ("=", "~")
    assert clause.sides[0] == T.Symbol("alpha", ("a",))
    assert clause.sides[2] == T.Binary("/", T.Number("1"), T.Number("2"))


@pytest.mark.parametrize("math", [r"k_a^T q", r"k_a^\top q", r"k_{a}^{\mathsf{T}} q", r"\mathbf{k}_a^{\top}\vec{q}"])
def test_transposes_in_many_spellings(math: str) -> None:
    assert expression(math) == T.Binary("*", T.Transposed(symbol("k_a")), symbol("q"))


@pytest.mark.parametrize(
    ("math", "members", "inside"),
    [
        (r"k_i^T q = 0, i \neq a, b", ("a", "b"), False),
        (r"k_i^T q = 0 \quad (i \neq a, b)", ("a", "b"), False),
        (r"k_i^T q = 0 \text{ for } i \notin \{a, b\}", ("a", "b"), False),
        (r"k_i^T q = 0, i \in \{1, \ldots, n\}, i \neq a, i \neq b", (), True),
        (r"k_i^T q = t, i = a", ("a",), True),
    ],
)
def test_conditions_on_an_index(math: str, members: tuple[str, ...], inside: bool) -> None:
    (clause,) = parse(math)
    first = clause.conditions[0]
    assert first.index == "i"
    assert (first.kind == "all") == (members == ())
    if members:
        assert (first.members, first.inside) == (members, inside)


def test_clauses_apart() -> None:
    clauses = parse(r"q_1 = t\mu_a,\ q_2 = t\mu_b \quad t \gg 0")
    assert [c.signs for c in clauses] == [("=",), ("=",), (">>",)]


def test_lists_of_left_sides() -> None:
    assert [c.sides[0] for c in parse(r"s, t \gg n")] == [symbol("s"), symbol("t")]


def test_cases_with_otherwise() -> None:
    (clause,) = parse(r"\alpha_i = \begin{cases} 1 & i = a \text{ or } i = b \\ 0 & \text{otherwise} \end{cases}")
    cases = clause.sides[1]
    assert isinstance(cases, T.Cases)
    assert cases.pieces[0].condition[0].members == ("a", "b")
    assert cases.pieces[1].condition[0].kind == "otherwise"


def test_sums_and_what_they_leave_out() -> None:
    total = expression(r"\sum_{i \neq a, b} \exp(k_i^\top q)")
    assert isinstance(total, T.Total)
    assert (total.index, total.but) == ("i", ("a", "b"))


def test_heads_as_superscripts() -> None:
    assert expression(r"\alpha_a^{(2)}") == T.Symbol("alpha", ("2", "a"))
    assert expression(r"c^{(1)}") == T.Symbol("c", ("1",))


def test_an_arrow_after_an_approximation_is_an_implication() -> None:
    clauses = parse(r"c \simeq v_a \rightarrow \alpha_a \simeq 1")
    assert [c.signs for c in clauses] == [("~",), ("~",)]


def test_a_slash_before_several_factors_is_doubtful() -> None:
    assert parse(r"x = e^t / 2 e^t + n")[0].doubtful
    assert not parse(r"x = e^t / (2 e^t + n)")[0].doubtful
    assert not parse(r"x = 1/2 (v_a + v_b)")[0].doubtful


def test_limits_are_no_equalities() -> None:
    assert parse(r"\lim_{t \to \infty} \alpha_a = \frac12")[0].signs == ("->",)


def test_norms_and_bars() -> None:
    assert expression(r"\beta\|k_a\|") == T.Binary(
        "*", symbol("beta".replace("_", "")), T.Call("norm", (symbol("k_a"),))
    )
    assert expression(r"|k_a^T q|") == T.Call("abs", (expression("k_a^T q"),))


def test_unicode_and_letters_spelt_out() -> None:
    assert expression("α_a") == T.Symbol("alpha", ("a",))
    assert expression("𝑐_2") == T.Symbol("c", ("2",))
    assert parse("epsilon > 1")[0].sides[0] == T.Symbol("epsilon")


@pytest.mark.parametrize("math", ["q =", r"\frac{1}{", "x = (1 + 2", r"x = \unknown{3}", "(" * 200 + "x = 1", r"x \in"])
def test_what_cannot_be_read_is_refused(math: str) -> None:
    with pytest.raises(Unreadable):
        parse(math)


def test_nothing_after_a_chain_is_dropped() -> None:
    with pytest.raises(Unreadable):
        parse(r"k_a^T q = \beta \rVert k_a")
