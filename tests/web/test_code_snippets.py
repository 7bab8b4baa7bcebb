"""Python code for replies: it runs, whatever the labels and texts are, and repeats its inputs exactly."""

import ast

import numpy as np
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
    assert len(ast.parse(code_snippets.ask(text, text)).body) == 5


def test_design_and_wiring_call_the_library(run_code):
    keys = [[1, 0], [0, 1], [-1, -1]]
    names = run_code(code_snippets.design("copy", keys, keys, ["a", "b", "c"], "a", 1e-3))
    assert names["design"].possible and float(names["reading"].weights[0]) > 0.998
    names = run_code(code_snippets.wiring(np.eye(2), {0: {1: 1.0}}, {0: [0.0, 1.0]}, 0.05, 2.0, True))
    assert float(names["reading"].weights[0, 1]) > 0.95


def test_noise_has_a_report_for_each_layout(run_code):
    names = run_code(code_snippets.noise(10, 0.5, 0.0, 4.0, 3, 0.1, 7, 1))
    assert [report.heads for report in names["reports"]] == [1, 3, 1]
    assert {len(report.drawn) for report in names["reports"]} == {7} and names["memory"].labels[-1] == 10
