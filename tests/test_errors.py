"""QkvError: the message, and errors that cross process boundaries."""

import copy
import pickle
import re
import tomllib
from pathlib import Path

import pytest

from qkv.claims.syntax.nodes import Malformed
from qkv.errors import EXTRAS, MissingExtra, QkvError, QkvWarning, with_full_stop
from qkv.parallel import WorkerDied
from qkv.train.distributed import PeerFailed
from qkv.web.limits import HttpRefusal

ERRORS = [
    QkvError("attending", "the mask is empty", "Allow an item"),
    MissingExtra("a cluster", "cluster"),
    PeerFailed(2),
    WorkerDied("distributing", "a process died", "Give it more memory"),
    HttpRefusal(413, "posting", "too long", "Send less"),
    Malformed((3, 4), "a comma", "a number"),
]


def test_the_message_restates_the_request_the_problem_and_the_hint():
    error = QkvError("attending", "the mask is empty", "Allow an item")
    assert str(error) == "attending: the mask is empty. Allow an item."
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("mark", [".", "?", "!", "…"])
def test_a_text_that_ends_like_a_sentence_gets_no_second_full_stop(mark):
    error = QkvError("asking", f"there is no answer to: Who{mark}", f"Ask, like: Where was Ada Lovelace born{mark}")
    assert str(error) == f"asking: there is no answer to: Who{mark} Ask, like: Where was Ada Lovelace born{mark}"
    assert with_full_stop(f"“Who{mark}”") == f"“Who{mark}”." and with_full_stop("Rome") == "Rome."


def test_an_empty_question_is_refused_in_sentences():
    from qkv.knowledge.datasets.templates import question_characters

    with pytest.raises(QkvError) as refused:
        question_characters(" ")
    assert str(refused.value).endswith("like: Where was Ada Lovelace born?")


def test_a_missing_extra_is_one_sentence_with_a_command_that_needs_neither_an_index_of_qkv_nor_a_clone():
    assert MissingExtra("a cluster", "cluster").hint == 'Run: python -m pip install "dask[distributed]>=2024.5"'
    assert all("qkv" not in MissingExtra("it", extra).hint for extra in EXTRAS)


def test_the_packages_of_each_extra_are_those_of_the_project():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {name: tuple(found) for name, found in project["optional-dependencies"].items()}
    assert {name: declared[name] for name in EXTRAS} == EXTRAS


def test_every_kind_of_error_and_warning_of_the_package_can_be_pickled():
    """Whatever class derives from QkvError or QkvWarning, wherever it is defined."""
    kinds = {QkvError, QkvWarning, *QkvError.__subclasses__(), *QkvWarning.__subclasses__()}
    source = "\n".join(p.read_text("utf-8") for p in (Path(__file__).parents[1] / "src").rglob("*.py"))
    named = set(re.findall(r"^class (\w+)\(Qkv(?:Error|Warning)\)", source, flags=re.M))
    assert named <= {kind.__name__ for kind in kinds}, "import the module of the new class here"
    assert named <= {type(error).__name__ for error in ERRORS}
    warning = pickle.loads(pickle.dumps(QkvWarning("left out")))  # noqa: S301
    assert type(warning) is QkvWarning and str(warning) == "left out"


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
