"""What SECURITY.md promises: its tests exist, and neither a claim nor a model file is run as code."""

import pickle
import re
from pathlib import Path

import pytest
import torch

import qkv
from qkv.errors import QkvError

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = (
    "__import__('os').system('touch {mark}')",
    "exec(\"open('{mark}', 'w')\")",
    "open('{mark}','w').close()",
    "$\\mathrm{{open}}('{mark}','w')$ = 1",
    "lambda: open('{mark}', 'w')",
    "sp.sympify(\"open('{mark}', 'w')\") = 1",
    "().__class__.__base__.__subclasses__() = 1",
    "alpha_a.__class__ = 1",
)


@pytest.mark.parametrize("line", HOSTILE)
@pytest.mark.parametrize("word", ["given", "let   q =", "then"])
def test_python_in_a_claim_is_malformed_and_not_run(line, word, tmp_path):
    mark = tmp_path / "mark"
    then = "" if word == "then" else "then alpha_a > 0\n"
    sheet = f"```claim\ngiven k_1..k_n orthonormal, n >= 3\n{word} {line.format(mark=mark)}\n{then}```"
    assert [v.verdict for v in qkv.check(sheet)] == ["malformed"]
    assert not mark.exists()


class Touch:
    """An object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_state_dict_that_holds_code_is_refused_and_not_run(how, tmp_path):
    mark, model = tmp_path / "mark", tmp_path / "model.pt"
    content = {"transformer.wte.weight": torch.zeros(3, 4), "x": Touch(mark)}
    if how == "torch":
        torch.save(content, model)
    else:
        model.write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(QkvError):
        qkv.train.import_model(model, tmp_path / "run", n_head=2)
    assert not mark.exists()


def test_the_attack_would_work_on_a_reader_that_runs_code(tmp_path):
    mark = tmp_path / "mark"
    pickle.loads(pickle.dumps(Touch(mark)))  # noqa: S301
    assert mark.exists()


def test_every_promise_names_tests_that_exist():
    rows = re.findall(r"^\| (?!promise|---)(.*) \| (.*) \|$", (ROOT / "SECURITY.md").read_text(), flags=re.M)
    assert len(rows) >= 8
    for promise, tests in rows:
        paths = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert paths, promise
        assert all((ROOT / path).is_file() for path in paths), paths
