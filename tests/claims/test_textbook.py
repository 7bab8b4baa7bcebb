"""Textbook statements and statements in the wider forms, with known truth, run through `qkv.check`."""

from pathlib import Path

import pytest
from marks import some
from test_statements import Outcome, check_all, read_statements

TEXTBOOK = Path(__file__).parent / "textbook"
N_TEXTBOOK = 85
MIN_DECIDED = 80  # of the textbook statements
SAMPLE_STEP = 9


def is_right(outcome: Outcome) -> bool:
    """Whether a statement was decided, and rightly."""
    if outcome.statement.tag == "F":
        return outcome.verdict in ("refuted", "conditional")
    return outcome.verdict == "proved"


def wrong(outcomes: list[Outcome]) -> list[str]:
    """False statements that are proved or said to hold, true ones that are refuted, and those that cannot be said."""
    bad = {
        ("F", "proved"),
        ("F", "holds"),
        ("T", "refuted"),
        ("T", "conditional"),
        ("T", "malformed"),
        ("F", "malformed"),
    }
    return [str(o) for o in outcomes if (o.statement.tag, o.verdict) in bad]


def statements(name: str) -> list:
    return list(read_statements(TEXTBOOK / name))


def test_the_list_of_textbook_statements_has_its_length() -> None:
    assert len(statements("attention.md")) == N_TEXTBOOK
    assert all(
        s.tag in ("T", "F") and s.why for name in ("attention.md", "forms.md", "traps.md") for s in statements(name)
    )


@pytest.mark.parametrize("name", some(["attention.md", "forms.md", "traps.md"], ["attention.md", "traps.md"]))
def test_sample_is_decided_rightly(name: str) -> None:
    outcomes = check_all(statements(name)[1::SAMPLE_STEP])
    assert not wrong(outcomes)


@pytest.mark.slow
def test_textbook_statements_are_decided() -> None:
    outcomes = check_all(statements("attention.md"))
    assert not wrong(outcomes)
    assert sum(is_right(o) for o in outcomes) >= MIN_DECIDED, [str(o) for o in outcomes if not is_right(o)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forms.md", "traps.md"])
def test_wider_forms_are_decided_rightly(name: str) -> None:
    outcomes = check_all(statements(name))
    assert len(outcomes) > 100 and not wrong(outcomes)
    true = [o for o in outcomes if o.statement.tag == "T"]
    assert sum(is_right(o) for o in true) >= 0.92 * len(true), [str(o) for o in true if not is_right(o)]


def test_names_indices_and_shapes_are_not_taken_for_others() -> None:
    """No false statement about scopes is proved or holds, no true one is refuted, and the doubtful are malformed."""
    outcomes = check_all(list(read_statements(Path(__file__).parent / "hard_statements" / "scopes.md")))
    bad = {("F", "proved"), ("F", "holds"), ("F", "malformed"), ("T", "refuted"), ("T", "conditional")}
    bad |= {("T", "malformed"), *(("M", verdict) for verdict in ("proved", "holds", "refuted", "conditional"))}
    assert not [str(o) for o in outcomes if (o.statement.tag, o.verdict) in bad]
