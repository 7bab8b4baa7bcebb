"""Memories: what goes in, who is who, and that reading one is attention over its arrays."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import qkv
from qkv.core.attention import MAX_ROWS_SHOWN, attend, attend_heads
from qkv.core.memory import Memory
from qkv.errors import QkvError

KEYS = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])


def test_values_default_to_the_keys_and_labels_to_the_indices():
    memory = Memory(KEYS)
    assert torch.equal(memory.values, memory.keys)
    assert memory.labels == (0, 1, 2)
    assert (len(memory), memory.n, memory.d, memory.dv) == (3, 3, 2, 2)


@pytest.mark.parametrize("convert", [np.ndarray.tolist, np.asarray, torch.from_numpy])
def test_lists_arrays_and_tensors_make_the_same_memory(convert):
    memory = Memory(convert(KEYS), convert(KEYS[:, :1]))
    assert memory.keys.tolist() == KEYS.tolist()
    assert memory.values.tolist() == KEYS[:, :1].tolist()
    assert memory.keys.dtype == memory.values.dtype == torch.float64


@pytest.mark.parametrize("labels", [["a", "b", "c"], ("a", "b", "c"), np.array(["a", "b", "c"])])
def test_labels_become_plain_strings(labels):
    assert Memory(KEYS, labels=labels).labels == ("a", "b", "c")
    assert all(type(label) is str for label in Memory(KEYS, labels=labels).labels)


def test_numeric_labels_become_plain_integers():
    memory = Memory(KEYS, labels=torch.tensor([5, 7, 9]))
    assert memory.labels == (5, 7, 9)
    assert all(type(label) is int for label in memory.labels)


def test_a_memory_does_not_change_when_the_arrays_it_came_from_do():
    keys, values = KEYS.copy(), torch.ones(3, 1, dtype=torch.float64)
    memory = Memory(keys, values)
    keys[0, 0] = values[0, 0] = 99
    assert memory.keys[0, 0] == memory.values[0, 0] == 1


def test_a_memory_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Memory(KEYS).keys = torch.zeros(3, 2)


def test_a_copy_with_other_labels_is_checked_too():
    assert dataclasses.replace(Memory(KEYS), labels=["x", "y", "z"]).index("z") == 2
    with pytest.raises(QkvError, match="2 labels"):
        dataclasses.replace(Memory(KEYS), labels=["x", "y"])


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 8), st.integers(0, 2**32))
def test_orthonormal_keys_have_the_identity_as_their_inner_products(n, more, seed):
    memory = Memory.orthonormal(n, n + more, seed=seed)
    assert (memory.n, memory.d, memory.dv) == (n, n + more, n + more)
    identity = torch.eye(n, dtype=torch.float64)
    torch.testing.assert_close(memory.keys @ memory.keys.T, identity, rtol=0, atol=1e-13)


def test_orthonormal_memories_repeat_with_the_seed_and_differ_without():
    one, again, other = (Memory.orthonormal(3, 5, seed=s, dv=2) for s in (1, 1, 2))
    assert torch.equal(one.keys, again.keys) and torch.equal(one.values, again.values)
    assert not torch.equal(one.keys, other.keys) and not torch.equal(one.values, other.values)
    assert one.values.shape == (3, 2)


def test_orthonormal_keys_point_everywhere_alike():
    # With LAPACK's own signs the first coordinate would have the mean -0.42.
    first = torch.stack([Memory.orthonormal(2, 4, seed=s).keys[0] for s in range(400)])
    assert first.mean(0).abs().max() < 4 * 0.5 / math.sqrt(400)


def test_orthonormal_values_are_standard_normal():
    values = Memory.orthonormal(100, 100, dv=400, seed=3).values
    assert abs(float(values.mean())) < 4 / math.sqrt(values.numel())
    assert abs(float(values.var()) - 1) < 4 * math.sqrt(2 / values.numel())


def test_reading_an_orthonormal_memory_follows_the_closed_form():
    n, t = 6, 3.0
    memory = Memory.orthonormal(n, 8)
    top = math.exp(t) / (math.exp(t) + n - 1)
    got = memory.read(memory.keys[2], scale=t)
    want = [top if i == 2 else (1 - top) / (n - 1) for i in range(n)]
    np.testing.assert_allclose(got.weights, want, rtol=1e-13)


def test_reading_is_attention_over_the_arrays_with_the_labels_kept():
    memory = Memory.orthonormal(4, 4, labels=["a", "b", "c", "d"])
    queries, mask = memory.keys[:2] + memory.keys[1:3], [True, True, True, False]
    want = attend(queries, memory.keys, memory.values, scale=2, mask=mask)
    got = memory.read(queries, scale=2, mask=mask)
    assert torch.equal(got.weights, want.weights) and torch.equal(got.output, want.output)
    assert got.labels == memory.labels
    assert memory.read(queries[0], scale=9).card().rows[0][0] in "ab"


def test_reading_with_heads_is_attention_with_heads_over_the_arrays():
    memory = Memory.orthonormal(4, 4, labels=["a", "b", "c", "d"])
    mask = [True, True, True, False]
    want = attend_heads(memory.keys[:2], memory.keys, memory.values, mix=[1, 2], scale=3, mask=mask)
    got = memory.read_heads(memory.keys[:2], [1, 2], scale=3, mask=mask)
    assert torch.equal(got.weights, want.weights) and torch.equal(got.output, want.output)
    assert torch.equal(got.heads, want.heads)
    assert got.card().rows[0][0] == "b"


def test_an_item_is_found_by_its_label():
    memory = Memory(KEYS, labels=["ant", "bee", "cow"])
    assert [memory.index(label) for label in ("ant", "bee", "cow")] == [0, 1, 2]


def test_a_number_is_an_index_when_no_label_is_a_number():
    memory = Memory(KEYS, labels=["ant", "bee", "cow"])
    assert [memory.index(i) for i in (0, np.int64(1), torch.tensor(2))] == [0, 1, 2]


def test_a_number_that_is_a_label_wins_over_the_index():
    assert Memory(KEYS, labels=[2, 0, 1]).index(0) == 1


def test_a_string_that_looks_like_a_number_is_still_a_label():
    assert Memory(KEYS, labels=["1", "0", "2"]).index("0") == 1
    assert Memory(KEYS, labels=["1", "0", "2"]).index(0) == 0


@pytest.mark.parametrize(
    ("labels", "item", "says"),
    [
        (["ant", "bee", "cow"], "bees", "Did you mean bee"),
        (["ant", "bee", "cow"], "xyzzy", "The labels are ant, bee, cow"),
        (["ant", "bee", "cow"], 3, "Give an index from 0 to 2"),
        (["ant", "bee", "cow"], -1, "Give an index from 0 to 2"),
        ([5, 6, 7], 0, "The labels are 5, 6, 7"),
        ([5, "bee", 7], 1, "The labels are 5, bee, 7"),
        (None, 3, "The labels are 0, 1, 2"),
        (None, -1, "no item has this label"),
        (None, "1", "no item has this label"),
        (None, True, "it is a bool"),
        (None, 1.0, "it is a float"),
        (None, None, "it is None"),
    ],
)
def test_an_unknown_item_is_refused_with_what_there_is(labels, item, says):
    with pytest.raises(QkvError) as refusal:
        Memory(KEYS, labels=labels).index(item)
    assert says in str(refusal.value)


def test_a_refusal_does_not_list_a_thousand_labels():
    with pytest.raises(QkvError, match="10, 11 and 988 more") as refusal:
        Memory(np.ones((1000, 1))).index(1000)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Memory([1.0, 2.0]), "keys with shape (n, d)"),
        (lambda: Memory([]), "keys"),
        (lambda: Memory([[1.0, math.nan]]), "NaN or infinite"),
        (lambda: Memory([["a", "b"]]), "reading keys"),
        (lambda: Memory(KEYS, [1.0, 2.0, 3.0]), "values with shape (n, dv)"),
        (lambda: Memory(KEYS, [[math.inf]] * 3), "reading values"),
        (lambda: Memory(KEYS, np.eye(2)), "3 keys and 2 values"),
        (lambda: Memory(KEYS, labels=["a", "b"]), "3 keys and 2 labels"),
        (lambda: Memory(KEYS, labels=["a", "b", "a"]), "share the label a"),
        (lambda: Memory(KEYS, labels="abc"), "single string 'abc'"),
        (lambda: Memory(KEYS, labels=3), "labels is 3"),
        (lambda: Memory(KEYS, labels=np.array("abc")), "3 keys and 1 labels"),
        (lambda: Memory(KEYS, labels=["a", None, "c"]), "None is given as a label"),
        (lambda: Memory(KEYS, labels=[0.0, 1.0, 2.0]), "0.0 is given as a label"),
        (lambda: Memory(KEYS, labels=[1, "1", 2]), "two items share the label 1"),
        (lambda: Memory(KEYS, labels=[10**5000, 1, 2]), "more than 30 digits is given as a label"),
        (lambda: Memory(KEYS, labels=[True, False, 2]), "True is given as a label"),
        (lambda: Memory.orthonormal(4, 3), "at most 3 vectors can be orthogonal"),
        (lambda: Memory.orthonormal(0, 3), "n is 0"),
        (lambda: Memory.orthonormal(1, 0), "d is 0"),
        (lambda: Memory.orthonormal(1, 1, dv=0), "dv is 0"),
        (lambda: Memory.orthonormal(1, 1, seed=-1), "seed is -1"),
        (lambda: Memory.orthonormal(2, 2, labels=["a"]), "2 keys and 1 labels"),
        (lambda: Memory(KEYS).read([1.0, 2.0, 3.0]), "query of dimension 3, keys of dimension 2"),
        (lambda: Memory(KEYS).read_heads([1.0, 2.0]), "queries with shape (h, d)"),
        (lambda: Memory.load("nowhere.npz"), "no such file"),
    ],
)
def test_a_bad_request_is_refused_with_its_reason(call, says):
    with pytest.raises(QkvError) as refusal:
        call()
    assert says in str(refusal.value)


def test_a_memory_loads_from_a_file_with_labels(tmp_path):
    path = tmp_path / "memory.npz"
    np.savez(path, keys=KEYS, values=KEYS[:, :1], labels=np.array(["a", "b", "c"]))
    memory = Memory.load(path)
    assert memory.keys.tolist() == KEYS.tolist()
    assert memory.values.tolist() == KEYS[:, :1].tolist()
    assert memory.labels == ("a", "b", "c")


def test_a_memory_loads_arrays_by_other_names(tmp_path):
    path = tmp_path / "memory.json"
    path.write_text(json.dumps({"W": KEYS.tolist(), "U": [[1], [2], [3]]}))
    memory = Memory.load(path, keys="W", values="U")
    assert memory.keys.tolist() == KEYS.tolist() and memory.values.tolist() == [[1], [2], [3]]
    with pytest.raises(QkvError, match="reading 'Z'"):
        Memory.load(path, keys="W", values="Z")
    with pytest.raises(QkvError, match="Name one 'keys'"):
        Memory.load(path)


def test_a_file_of_keys_alone_is_a_memory(tmp_path):
    np.save(tmp_path / "keys.npy", KEYS)
    assert torch.equal(Memory.load(tmp_path / "keys.npy").values, torch.from_numpy(KEYS))
    (tmp_path / "keys.csv").write_text("ant,1,0\nbee,0,2\n")
    assert Memory.load(tmp_path / "keys.csv").labels == ("ant", "bee")


def test_a_memory_shows_its_first_items_and_its_sizes():
    memory = Memory(np.eye(12), np.ones((12, 1)))
    card = memory.card()
    assert card.title == "Memory of 12 items"
    assert card.facts == (("keys", "12 × 12"), ("values", "12 × 1"))
    assert card.rows[1] == ("1", "1", "(0, 1, 0, 0, … 8 more)", "(1)")
    assert (len(card.rows), card.note) == (10, "… 2 more")
    assert "Memory of 12 items" in memory._repr_html_()
    assert memory.to_json()["labels"] == list(range(12))


def test_tables_of_pandas_give_their_index_as_labels():
    pd = pytest.importorskip("pandas")
    keys = pd.DataFrame(np.eye(3), index=["red", "green", "blue"], columns=list("xyz"))
    assert qkv.Memory(keys).labels == ("red", "green", "blue")
    assert qkv.Memory(keys, labels=[1, 2, 3]).labels == (1, 2, 3)
    assert qkv.Memory(pd.DataFrame(np.eye(2))).labels == (0, 1)
    assert qkv.Memory(pd.DataFrame(np.eye(2), index=[7, 8])).labels == (7, 8)
    assert qkv.Memory(np.eye(3), keys).labels == ("red", "green", "blue")
    assert qkv.Memory(keys, keys).read(keys.loc["red"] * 50).output.tolist() == pytest.approx([1, 0, 0])
    wanted = pd.Series({"red": 0.5, "blue": 0.5})
    assert dict(qkv.design.blend(keys, wanted).wanted) == {"red": 0.5, "blue": 0.5}
    assert qkv.design.copyable(keys)["green"].possible


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda pd, t: (t, t.iloc[::-1]), r"different indices. Sort one by the other: values.loc\[keys.index\]"),
        (lambda pd, t: (t.assign(name=["a", "b"]),), r"column 'name' holds .* set_index\('name'\)"),
        (lambda pd, t: (t.set_index(pd.Index([0.5, 1.5])),), "0.5 is given as a label"),
        (lambda pd, t: (t.set_index(pd.Index(["a", "a"])),), "share the label a"),
        (lambda pd, t: (t.set_index(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),), "is given as a label"),
        (lambda pd, t: (t.astype("Float64").where(t > 0),), "NaN|type object"),
        (lambda pd, t: (t["x"],), "its shape is"),
        (lambda pd, t: (t.where(t > 0),), "NaN"),
        (lambda pd, t: (pd.DataFrame(),), "empty|type"),
    ],
)
def test_tables_that_are_no_memory_are_refused_in_a_sentence(make, says):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.eye(2), index=["a", "b"], columns=list("xy"))
    with pytest.raises(QkvError, match=says):
        qkv.Memory(*make(pd, table))


def test_rows_beyond_those_shown_are_counted():
    assert Memory(np.eye(MAX_ROWS_SHOWN)).card().note == ""
    assert Memory(np.eye(MAX_ROWS_SHOWN + 1)).card().note == "… 1 more"


def test_a_generated_memory_is_refused_from_the_stated_size_on():
    with pytest.raises(QkvError, match="268,435,456"):
        Memory.orthonormal(n=20_000, d=20_000)
