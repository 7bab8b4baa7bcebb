"""QkvError: the message, and errors that cross process boundaries."""

import copy
import pickle

import pytest

from qkv.claims.syntax.nodes import Malformed
from qkv.errors import MissingExtra, QkvError
from qkv.web.limits import HttpRefusal

ERRORS = [
    QkvError("attending", "the mask is empty", "Allow an item"),
    MissingExtra("a cluster", "cluster"),
    HttpRefusal(413, "posting", "too long", "Send less"),
    Malformed((3, 4), "a comma", "a number"),
]


def test_the_message_restates_the_request_the_problem_and_the_hint():
    error = QkvError("attending", "the mask is empty", "Allow an item")
    assert str(error) == "attending: the mask is empty. Allow an item."
    assert isinstance(error, ValueError)


def test_a_missing_extra_is_one_sentence_with_the_command():
    assert 'pip install "qkv[cluster]"' in str(MissingExtra("a cluster", "cluster"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_are_the_same_after_pickling(error, protocol):
    restored = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
    assert type(restored) is type(error)
    assert str(restored) == str(error) and restored.args == error.args and vars(restored) == vars(error)
    assert str(copy.copy(error)) == str(error)


def test_notes_survive_pickling():
    error = QkvError("a", "b", "c")
    error.add_note("in worker 3")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["in worker 3"]  # noqa: S301
