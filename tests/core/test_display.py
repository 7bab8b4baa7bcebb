"""Card and Displayable: one card rendered to a terminal and to HTML, fields as JSON, numbers as text."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.core.display import (
    Card,
    Displayable,
    brief,
    known_to,
    lower_bound,
    lower_percent,
    lower_power_of_ten,
    number,
    percent,
    percent_interval,
    plain,
    power,
    probability_percent,
    times,
    upper_bound,
    upper_percent,
    vector,
)


@dataclasses.dataclass(frozen=True)
class Answer(Displayable):
    value: torch.Tensor
    size: float = float("inf")
    hidden: str = dataclasses.field(default="secret", repr=False)

    def card(self):
        return Card("An <answer>", (("value", vector(self.value.tolist())),), ("a",), (("<b>",),), "note & more")


def test_a_result_renders_to_json_html_and_terminal_from_one_card():
    from rich.console import Console

    shown = Answer(torch.tensor([1.0, 2.0]))
    assert json.loads(json.dumps(shown.to_json())) == {"value": [1.0, 2.0], "size": None}
    page = shown._repr_html_()
    assert "&lt;answer&gt;" in page and "&lt;b&gt;" in page and "note &amp; more" in page
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(shown)
    text = console.export_text()
    assert all(part in text for part in ("An <answer>", "(1, 2)", "<b>", "note & more"))


def test_numbers_are_short_and_vectors_say_how_much_is_left_out():
    assert (number(12345.4), number(-54321), number(9999.7), number(999)) == ("12345", "-54321", "10000", "999")
    assert (number(0.123456), number(1234567.0), number(0.0), number(2e-7)) == ("0.1235", "1.235e+06", "0", "2.000e-07")
    assert vector(range(10), most=2) == "(0, 1, … 8 more)" and vector(range(2), most=2) == "(0, 1)"
    assert plain({"a": np.float32(0.5), "b": (np.int64(1), None)}) == {"a": 0.5, "b": [1, None]}


def test_a_result_without_a_card_says_so():
    with pytest.raises(TypeError, match="Displayable has no card"):
        Displayable().card()


def test_nested_results_become_json_without_their_hidden_fields():
    nested = plain({"answers": [Answer(torch.ones(1))], 3: math.nan, "flag": np.bool_(True), "other": 1 + 2j})
    assert nested == {"answers": [{"value": [1.0], "size": None}], "3": None, "flag": True, "other": "(1+2j)"}


def test_numbers_that_json_lacks_become_null_or_words():
    found = {"a": [math.nan, math.inf, 1.0], "b": np.array([-math.inf])}
    assert plain(found) == {"a": [None, None, 1.0], "b": [None]}
    assert plain(found, words=True) == {"a": ["nan", "inf", 1.0], "b": ["-inf"]}


@given(st.floats(-1e300, 1e300), st.integers(3, 8))
def test_a_printed_number_is_right_to_its_digits(x, digits):
    assert float(number(x, digits)) == pytest.approx(x, rel=0.51 * 10.0 ** (2 - digits), abs=0)


@given(st.floats(1e-300, 1e300))
def test_a_bound_shown_as_a_power_of_ten_is_not_below_the_bound(x):
    assert x <= float(power(x)) and float(power(x)) <= 10 * x * (1 + 1e-12)
    assert math.log10(float(power(x))) == pytest.approx(round(math.log10(float(power(x)))), abs=1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(2, 8))
def test_printed_bounds_are_rounded_outwards_by_less_than_a_digit(x, digits):
    low, high = lower_bound(x, digits), upper_bound(x, digits)
    assert float(low) <= x <= float(high)
    if abs(x) > 1e-290:
        assert float(number(x, digits)) in (float(low), float(high))
        assert math.isinf(float(high)) or float(high) - float(low) <= 1.01 * abs(x) * 10.0 ** (1 - digits)


def test_bounds_that_are_short_decimals_are_printed_as_they_are():
    assert (upper_bound(0.001, 6), lower_bound(0.3, 6), upper_bound(math.inf), lower_bound(0)) == (
        "0.001", "0.3", "inf", "0"
    )  # fmt: skip
    assert (lower_bound(5.2417178, 6), upper_bound(5.2417178, 6)) == ("5.24171", "5.24172")
    assert (upper_bound(1.0000001e-14), lower_bound(999999.7, 6), upper_bound(999999.7, 6)) == (
        "1.001e-14", "999999", "1.00000e+06"
    )  # fmt: skip


def test_ratios_and_special_bounds_in_words():
    assert (times(3.14159), times(12345), times(2e12)) == ("3.14 times", "12,300 times", "2.00e+12 times")
    assert (power(0.0), power(math.inf)) == ("0", "inf")


def test_a_repr_is_one_line_with_shapes_for_long_arrays():
    memory = qkv.Memory.orthonormal(10, 16)
    design = qkv.design.copy(memory, 3)
    results = [memory, memory.read(np.ones(16)), design, design.certificate, design.certificate.verify()]
    results += [qkv.design.copyable(np.random.default_rng(0).standard_normal((30, 3)))]
    results += [qkv.design.leak(memory, np.ones(16)), qkv.core.MultiHead(*np.ones((4, 1, 2, 2)))]
    for result in results:
        assert "\n" not in repr(result) and repr(result).startswith(f"{type(result).__name__}(")
    assert "keys=<Tensor of shape (10, 16)>" in repr(memory)


def test_a_repr_of_several_lines_becomes_one_and_one_line_stays_as_it_is():
    class Told:
        def __init__(self, text):
            self.text = text

        def __repr__(self):
            return self.text

    assert brief(Told("two\n   lines  here")) == "two lines here" and brief(Told("two  spaces")) == "two  spaces"


def test_a_short_result_has_the_repr_of_a_dataclass():
    @dataclasses.dataclass(frozen=True)
    class Plain:
        value: object
        names: tuple

    @dataclasses.dataclass(frozen=True)
    class Shown(Displayable):
        value: object
        names: tuple

    for value, names in ((0.5, ("a",)), (torch.ones(2), ()), ({"k": [1, None]}, (1, 2)), ("two\nlines", ({},))):
        assert repr(Shown(value, names)) == repr(Plain(value, names)).replace("Plain(", "Shown(")
    assert brief({"keys": np.zeros((9, 9))}) == "{'keys': <ndarray of shape (9, 9)>}"
    assert brief([np.ones(3)]) == "[array([1., 1., 1.])]"


def test_a_repr_stays_short_whatever_is_in_it():
    assert brief(tuple(range(10**5))) == "(0, 1, 2, … 99,997 more)"
    assert brief({i: i for i in range(20)}) == "{0: 0, 1: 1, 2: 2, … 17 more}"
    assert brief("x" * 10**6) == f"{'x' * 100!r}… of 1,000,000 characters"
    assert brief(torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(40)))) == "Sequential(…)"
    people = qkv.knowledge.pantheon()
    for result in (people, qkv.knowledge.biographies(people), qkv.knowledge.questions(people)):
        assert "\n" not in repr(result) and len(repr(result)) < 2000


def test_printing_a_result_prints_its_card(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    memory = qkv.Memory.orthonormal(3, 4)
    lines = str(memory).splitlines()
    assert lines[0] == "Memory of 3 items" and all(len(line) <= 60 for line in lines) and "\x1b" not in str(memory)
    assert f"{memory}" == str(memory)


@pytest.mark.parametrize("width", [20, 30, 40, 80])
def test_a_narrow_terminal_breaks_lines_and_loses_nothing(width, monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Long(Displayable):
        def card(self):
            facts = (("a name of several words", "anticonstitutionnellement"),)
            return Card("Title", facts, ("a", "b"), (("supercalifragilistic", "floccinaucinihilipilification"),))

    monkeypatch.setenv("COLUMNS", str(width))
    shown = str(Long())
    assert "…" not in shown
    letters = sorted("".join(shown.split()))
    monkeypatch.setenv("COLUMNS", "200")
    assert letters == sorted("".join(str(Long()).split()))


@pytest.mark.parametrize(("x", "text"), [(3.93e11, "1e+11"), (1e11, "1e+11"), (9.999e10, "1e+10"), (math.inf, "inf")])
def test_a_power_of_ten_is_never_above_the_bound(x, text):
    assert lower_power_of_ten(x) == text
    assert float(text) <= x


def test_digits_below_the_error_are_not_shown():
    assert known_to(0.4657, 1e-12) == "0.4657"
    assert known_to(1.466e-16, 1.05e-12) == "≤ 1.1e-12"
    assert known_to(0.0, 1.05e-12) == "≤ 1.1e-12"
    assert known_to(0.0, 0.0) == "0"


def test_what_is_as_large_as_its_error_is_not_known():
    assert known_to(0.5, 0.5) == "≤ 1"


@dataclasses.dataclass
class Pair:
    left: int
    right: float


def test_a_dataclass_becomes_its_fields_and_a_class_none():
    assert plain(Pair(1, 0.5)) == {"left": 1, "right": 0.5}
    assert plain([Pair(1, 2.0)]) == [{"left": 1, "right": 2.0}]


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 3))
def test_a_share_is_100_percent_only_where_it_is_all_of_them(right, n, decimals):
    right = min(right, n)
    shown = percent(right / n, decimals)
    number_shown = float(shown.removesuffix(" %").split()[-1])
    if shown.startswith(("under", "over")):
        assert 0 < right < n
        assert number_shown > 100 * right / n if shown.startswith("under") else number_shown < 100 * right / n
    else:
        assert (number_shown == 100) == (right == n) and (number_shown == 0) == (right == 0)
        assert abs(number_shown - 100 * right / n) <= 0.5 * 10.0**-decimals + 1e-9


@pytest.mark.parametrize(("p", "text"), [(1.0, "over 99 %"), (0.9951, "over 99 %"), (0.42, "42 %"), (0.0, "under 1 %")])
def test_an_estimated_probability_is_never_certain(p, text):
    assert probability_percent(p) == text


@given(st.integers(0, 1000))
def test_a_typed_share_is_shown_as_it_was_typed(thousandths):
    share = thousandths / 1000
    assert float(lower_percent(share, 6).removesuffix(" %")) == thousandths / 10
    assert lower_percent(share, 6) == upper_percent(share, 6)
    assert lower_percent(0.94999, 3) == "94.9 %" and upper_percent(0.94999, 3) == "95 %"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.9888, 0.99965, "98.8 to over 99.9 %"), (0.0, 0.0042, "0.0 to 0.5 %"), (0.99971, 1.0, "99.9 to 100.0 %"),
        (0.462, 0.724, "46.2 to 72.4 %"), (0.00001, 0.01, "under 0.1 to 1.0 %"), (0.46249, 0.72401, "46.2 to 72.5 %"),
    ],
)  # fmt: skip
def test_an_interval_is_rounded_outwards_and_never_to_certainty(low, high, text):
    assert percent_interval(low, high) == text


def test_bounds_have_four_digits_unless_told_otherwise():
    assert (lower_bound(1.234567), upper_bound(1.234567), number(1.234567)) == ("1.234", "1.235", "1.235")


@pytest.mark.parametrize(
    ("x", "digits", "text"), [(1000.3, 3, "1001"), (999.7, 3, "1000"), (99.7, 2, "100"), (100.2, 2, "101")]
)
def test_bounds_beside_a_power_of_ten_keep_their_units(x, digits, text):
    assert upper_bound(x, digits) == text


def test_eight_entries_of_a_vector_are_shown():
    assert "more" not in vector(range(8)) and vector(range(9)).endswith("… 1 more)")
