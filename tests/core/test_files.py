"""Arrays from files, arrays checked at the door, results that show themselves, and the geometry under them."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from scipy.optimize import minimize

from qkv.core import geometry
from qkv.core.display import Card, Displayable, number, plain, vector
from qkv.core.files import pick, read_arrays, write_text
from qkv.core.validation import same_length, same_width, tensor
from qkv.errors import MissingExtra, QkvError


@pytest.mark.parametrize(
    "value", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], dtype=np.float32), torch.tensor([[1, 2], [3, 4]])]
)
def test_lists_arrays_and_tensors_become_the_same_float64_tensor(value):
    out = tensor("x", value, "n d")
    assert out.dtype == torch.float64 and out.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_later_change_to_the_callers_array_changes_nothing():
    mine = np.ones((2, 2))
    mine.flags.writeable = False
    taken = tensor("x", mine)
    mine.flags.writeable = True
    mine[0, 0] = 7
    assert taken[0, 0] == 1


@pytest.mark.parametrize(
    ("value", "mentions"),
    [
        ([[1.0, float("nan")]], r"1 of its 2 entries .* first at \(0, 1\)"),
        ([[float("inf")]], "infinite"),
        ([], "empty"),
        ([["a"]], "type"),
        ([[1], [2, 3]], "array of numbers"),
        (np.array([[1j]]), "type"),
        (torch.tensor([[1j]]), "complex"),
        ([1.0, 2.0], "Give a single vector"),
        (None, "type"),
    ],
)
def test_what_is_no_matrix_of_finite_numbers_is_refused(value, mentions):
    with pytest.raises(QkvError, match=mentions):
        tensor("x", value, "n d")


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(QkvError, match="2 keys and 3 values"):
        same_length("pairing", keys=torch.zeros(2, 1), values=torch.zeros(3, 1))
    with pytest.raises(QkvError, match="keys of dimension 1, query of dimension 2"):
        same_width("reading", keys=torch.zeros(2, 1), query=torch.zeros(2))


def test_a_half_precision_safetensors_file_is_read(tmp_path):
    save_file({"keys": torch.eye(2, dtype=torch.bfloat16)}, tmp_path / "k.safetensors")
    assert torch.equal(
        tensor("keys", read_arrays(tmp_path / "k.safetensors")["keys"]), torch.eye(2, dtype=torch.float64)
    )


def test_a_file_with_several_arrays_is_asked_for_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(2), y=np.zeros(2))
    arrays = read_arrays(tmp_path / "a.npz")
    assert pick(arrays, "x", "a.npz")[0] == 1
    with pytest.raises(QkvError, match="holds x, y"):
        pick(arrays, "keys", "a.npz")


def test_a_csv_may_have_a_header_and_a_column_of_names(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    assert read_arrays(path)[""].tolist() == [[1, 2], [3, 4]]
    path.write_text("1,2\n3\n")
    with pytest.raises(QkvError, match="line 2 has 1 cells, line 1 has 2"):
        read_arrays(path)
    path.write_text("a,1,\nb,2,3\n")
    with pytest.raises(QkvError, match="line 1 has '' where a number should be"):
        read_arrays(path)
    path.write_text("name,x,y\n1,0.5,2\n2,3,4\n")
    assert read_arrays(path)["labels"] == ["1", "2"] and read_arrays(path)["keys"].tolist() == [[0.5, 2], [3, 4]]


def test_writing_into_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(QkvError, match="does not exist"):
        write_text(tmp_path / "no" / "file.txt", "x")


def test_a_missing_extra_is_one_sentence_with_the_command():
    assert 'pip install "qkv[cluster]"' in str(MissingExtra("a cluster", "cluster"))


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
    assert json.loads(json.dumps(shown.to_json())) == {"value": [1.0, 2.0], "size": "inf"}
    page = shown._repr_html_()
    assert "&lt;answer&gt;" in page and "&lt;b&gt;" in page and "note &amp; more" in page
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(shown)
    text = console.export_text()
    assert all(part in text for part in ("An <answer>", "(1, 2)", "<b>", "note & more"))


def test_numbers_are_short_and_vectors_say_how_much_is_left_out():
    assert (number(12345.4), number(-54321), number(9999.7), number(999)) == ("12345", "-54321", "10000", "999")
    assert (number(0.123456), number(1234567.0), number(0.0), number(2e-7)) == ("0.1235", "1.235e+06", "0", "2.000e-07")
    assert vector(range(10), most=2) == "(0, 1, … 8 more)"
    assert plain({"a": np.float32(0.5), "b": (np.int64(1), None)}) == {"a": 0.5, "b": [1, None]}


def test_orthogonal_vectors_of_one_length_are_recognised_and_others_are_not():
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    assert geometry.common_norm(3 * frame[:4]) == pytest.approx(3)
    assert geometry.common_norm(np.diag([1.0, 2.0])) is None
    assert geometry.common_norm(np.ones((2, 3))) is None
    assert geometry.common_norm(np.zeros((1, 3))) is None
    assert geometry.common_norm(np.ones((3, 2))) is None


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 8))
def test_the_nearest_point_of_a_hull_is_what_a_general_minimiser_finds(seed, d, n):
    points = np.random.default_rng(seed).standard_normal((n, d)) + 0.7
    found = geometry.nearest_to_origin(points)
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(lambda w: ((w @ points) ** 2).sum(), np.full(n, 1 / n), bounds=[(0, 1)] * n, constraints=simplex)
    weights = np.clip(best.x, 0, None) / np.clip(best.x, 0, None).sum()  # it lets them sum to a little less than 1
    theirs = np.linalg.norm(weights @ points)
    assert np.linalg.norm(found) == pytest.approx(theirs, abs=2e-3)
    assert np.linalg.norm(found) <= theirs + 1e-9
    # Optimality: the whole hull lies beyond the plane through the found point.
    assert (points @ found >= found @ found - 1e-9).all()
