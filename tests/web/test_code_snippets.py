"""Python code for replies: it runs, whatever the labels and texts are, and repeats its inputs exactly."""

import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.web import code_snippets

FLOATS = st.floats(-1e6, 1e6)
TEXT = st.text(max_size=40)


def literal(code, name):
    """The value of a keyword argument or of an assigned constant in the code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.keyword) and node.arg == name:
            return ast.literal_eval(node.value)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    raise LookupError(name)


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=4), st.lists(TEXT, min_size=1, max_size=4), FLOATS)
@settings(max_examples=50)
def test_numbers_and_labels_are_repeated_exactly(keys, labels, scale):
    code = code_snippets.lookup(keys, keys, labels, keys[0], scale, labels)
    assert literal(code, "keys") == [list(key) for key in keys]
    assert literal(code, "labels") == labels and literal(code, "scale") == scale
    assert literal(code, "query") == list(keys[0])


@given(TEXT)
def test_no_text_ends_its_string(text):
    assert literal(code_snippets.check(text, 5.0), "text") == text
    assert len(ast.parse(code_snippets.ask(text, text)).body) == 7


def test_design_and_wiring_call_the_library(run_code):
    keys = [[1, 0], [0, 1], [-1, -1]]
    names = run_code(code_snippets.design("copy", keys, keys, ["a", "b", "c"], "a", 1e-3))
    assert names["design"].possible and float(names["reading"].weights[0]) > 0.998
    for vectors in (["u_a", "u_b"], ["lambda", "np"], ["u a", "ü"]):  # the last two cannot be names of variables
        code = code_snippets.wiring(
            ["x_1", "x_2"], vectors, np.eye(2), {0: {1: 1.0}}, {0: [0.0, -0.5]}, 0.05, 2.0, True
        )
        names = run_code(code)
        assert float(names["reading"].weights[0, 1]) > 0.95
        assert ("-0.5 * u_b" in code) == (vectors[0] == "u_a")


def test_noise_has_a_report_for_each_layout(run_code):
    names = run_code(code_snippets.noise(10, 0.5, 0.0, 4.0, 3, 0.1, 7, 1))
    assert [report.heads for report in names["reports"]] == [1, 3, 1]
    assert {len(report.drawn) for report in names["reports"]} == {7} and names["memory"].labels[-1] == 10


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "ends with '\n'", "'''\n", "back\\\nslash\\", "tab\there\n", "\x0c\n", "é\n"]
)
def test_a_text_over_several_lines_is_read_back_exactly(text):
    assert literal(code_snippets.check(text, 5.0), "text") == text


def test_a_document_of_claims_stays_legible():
    assert "```claim x\nthen 1 = 1\n```" in code_snippets.check("```claim x\nthen 1 = 1\n```\n", 5.0)


def test_the_code_prints_what_the_page_shows(run_code, capsys):
    keys = [[1, 0], [0, 1], [-1, -1]]
    run_code(code_snippets.design("blend", keys, keys, ["a", "b", "c"], {"a": 0.5, "b": 0.5}, 1e-3))
    printed = capsys.readouterr().out
    assert "weight of a: 0.49" in printed and "from the wanted weights" in printed and "leak: 0.001" in printed
    run_code(code_snippets.noise(4, 0.5, 0.0, 4.0, 2, 0.1, 7, 1))
    assert "two heads: mean 0.4" in capsys.readouterr().out
    run_code(code_snippets.check("```claim x\nthen 1 = 1\n```\n", 5.0))
    assert "proved: 1 = 1\n" in capsys.readouterr().out
