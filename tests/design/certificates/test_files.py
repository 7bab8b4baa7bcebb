"""File formats of certificates: what is written comes back bit for bit, what is damaged is refused."""

import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import qkv
from qkv.design.certificates import Certificate, files, load, save
from qkv.errors import QkvError

SUFFIXES = (".json", ".safetensors")


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("which", ["copied", "wired", "counted"])
def test_a_certificate_comes_back_from_its_file_bit_for_bit(which, suffix, request, tmp_path):
    made = request.getfixturevalue(which)
    made.save(tmp_path / f"c{suffix}")
    found = Certificate.load(tmp_path / f"c{suffix}")
    assert found.kind == made.kind and found.statement == made.statement
    for before, after in ((made.data, found.data), (made.claims, found.claims)):
        assert set(before) == set(after)
        for name, value in before.items():
            x, y = (np.asarray(v, dtype=np.float64) for v in (value, after[name]))
            assert x.shape == y.shape and x.tobytes() == y.tobytes(), name
    assert found.verify()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_may_hold_several_certificates(suffix, copied, wired, tmp_path):
    save([copied, wired], tmp_path / f"c{suffix}", {"scale": 1.0})
    assert [c.kind for c in load(tmp_path / f"c{suffix}")] == ["weights", "wiring"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_infinite_margin_survives_the_file(suffix, tmp_path):
    alone = qkv.design.copyable([[1.0, 2.0]]).certificate
    alone.save(tmp_path / f"c{suffix}")
    assert Certificate.load(tmp_path / f"c{suffix}").verify()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_another_process_confirms_a_saved_certificate_and_refuses_a_changed_one(suffix, copied, tmp_path):
    tighter = changed(copied, claims={"distance": 0.999 * copied.claims["distance"]})
    save([copied, tighter], tmp_path / f"c{suffix}")
    code = "import sys; from qkv.design.certificates.certificate import load\n"
    code += "print([bool(c.verify()) for c in load(sys.argv[1])])"
    source = str(Path(qkv.__file__).parents[1])
    command = [sys.executable, "-c", code, str(tmp_path / f"c{suffix}")]
    run = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": source})
    assert run.stdout.strip() == "[True, False]", run.stderr


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_anywhere_is_refused_with_one_plain_error(suffix, tmp_path):
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    qkv.design.copyable([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[1].certificate.save(whole)
    content = whole.read_bytes()
    for length in range(len(content) - (suffix == ".json")):  # without its last newline JSON is still whole
        cut.write_bytes(content[:length])
        with pytest.raises(QkvError) as refusal:
            load(cut)
        assert "damaged" in refusal.value.problem and refusal.value.request and refusal.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe\x00", b"null", b"[]", b"3", b'"text"', b"{}", b'{"certificates": []}', b'{"certificates": 3}',
        b'{"certificates": [[]]}', b'{"kind": "weights"}', b'{"kind": "weights", "data": [1]}',
        b'{"kind": "weights", "data": {}, "claims": 4}', b"[" * 100_000, b'{"a":' * 100_000,
        b'{"kind": "weights", "data": {"keys": [[1], [1, 2]]}, "claims": {}}',
        b'{"kind": "weights", "data": {"keys": ' + b"9" * 5000 + b'}, "claims": {}}',
        b'{"format": "qkv-certificate/2", "kind": "weights", "data": {}, "claims": {}}',
        b'{"kind": "selects", "data": {}, "claims": {"margin": 1, "margin": 2}}',
        pickle.dumps({"kind": "weights"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npz", ".pkl", ""])
def test_a_foreign_file_is_refused_with_one_plain_error(content, suffix, tmp_path):
    path = tmp_path / f"foreign{suffix}"
    path.write_bytes(content)
    with pytest.raises(QkvError, match="reading certificates from"):
        load(path)


def test_what_was_pickled_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    for name in ("t.json", "t.safetensors", "t.npz", "t.npy"):
        np.savez(tmp_path / "t.npz", keys=np.array([Trap()], dtype=object))
        (tmp_path / name).write_bytes((tmp_path / "t.npz").read_bytes())
        with pytest.raises(QkvError):
            load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_json_of_an_absurd_size_is_refused_before_it_is_read(copied, tmp_path, monkeypatch):
    copied.save(tmp_path / "c.json")
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 100)
    with pytest.raises(QkvError, match=r"too many for JSON.*safetensors"):
        load(tmp_path / "c.json")


def test_metadata_of_a_tensor_file_that_names_no_such_certificate_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    for name in ("3.data.keys", "keys", "0.sums.keys", "x.data.keys"):
        save_file(
            {name: np.ones(2)}, path, metadata={"certificates": '[{"kind": "weights", "data": {}, "claims": {}}]'}
        )
        with pytest.raises(QkvError, match="damaged"):
            load(path)


def test_only_json_and_safetensors_are_written(copied, tmp_path):
    with pytest.raises(QkvError, match=r"Use \.json or \.safetensors"):
        copied.save(tmp_path / "c.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records_come_back_as_they_were_written(suffix, tmp_path):
    record = files.Record(
        "weights", {"keys": np.eye(2), "reads": {"0": 1}, "tol": 0.5}, {"distance": [0.25, 0.5], "margin": math.inf}
    )
    files.write([record, record], tmp_path / f"r{suffix}", {"scale": 2.0})
    for found in files.read(tmp_path / f"r{suffix}")[0]:
        assert found.kind == "weights" and np.array_equal(found.data["keys"], np.eye(2))
        assert found.data["reads"] == {"0": 1} and found.data["tol"] == 0.5
        assert list(found.claims["distance"]) == [0.25, 0.5] and found.claims["margin"] == "inf"


@pytest.mark.parametrize("path", ["c.npz", "c", "c.JSON"])
def test_other_suffixes_are_refused_before_any_work(path):
    with pytest.raises(QkvError, match=r"Use \.json or \.safetensors"):
        files.check_path(path)
    assert files.check_path(None) is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(QkvError, match="no such file"):
        files.read(tmp_path / "absent.json")


SELECTS = '"kind": "selects", "data": {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"kind": "selects", "data": [["item", 0], ["item", 1]], "claims": {"margin": 1.0}}', "not an object"),
        (f'{{{SELECTS}, "claims": [["margin", 9.0], ["margin", 1.0]]}}', "not an object"),
        (f'{{{SELECTS}, "claims": {{"margin": 1.0}}, "claim": {{"margin": 9.0}}}}', "'claim', which nothing checks"),
        (f'{{"certificates": [{{{SELECTS}, "claims": {{}}}}], "claims": {{"margin": 9.0}}}}', "nothing checks"),
        (f'{{"certificates": [{{{SELECTS}, "claims": {{}}}}], "kind": "selects"}}', "nothing checks"),
        (f'{{"certificates": {{{SELECTS}, "claims": {{}}}}}}', "not a list"),
        (f'{{{SELECTS}}}', "'claims' is missing"),
        (f'{{{SELECTS}, "claims": {{"margin": 9007199254740993}}}}', "would round the integer"),
        ('{"kind": "selects", "data": {"keys": [[9007199254740993], [0]]}, "claims": {"margin": 1.0}}', "round"),
        (f'{{{SELECTS}, "claims": {{"margin": 1e999}}}}', "range of float64"),
        (f'{{{SELECTS}, "claims": {{"margin": NaN}}}}', "NaN is not a number"),
        (f'{{{SELECTS}, "claims": {{"margin": Infinity}}}}', "Infinity is not a number"),
        ('{"kind": "selects", "data": {"keys": [[true], [0.5]]}, "claims": {"margin": 1.0}}', "true or false"),
        ('{"kind": 3, "data": {}, "claims": {}}', "not a word"),
        ('{"certificates": [[["kind", "selects"], ["data", {}], ["claims", {}]]]}', "not an object"),
    ],
)  # fmt: skip
def test_json_has_one_form_and_everything_else_is_refused(text, why, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(QkvError) as refusal:
        load(path)
    assert why in refusal.value.problem


def test_the_one_form_is_accepted_alone_and_in_a_list(tmp_path):
    path = tmp_path / "c.json"
    one = f'{{{SELECTS}, "claims": {{"margin": 1}}}}'
    for text in (one, f'{{"format": "qkv-certificate/1", "result": {{"a": 1}}, "certificates": [{one}]}}'):
        path.write_text(text)
        assert load(path)[0].verify()


@pytest.mark.parametrize(
    "name", ["0.", "-1.data.query", "٠.data.query", "00.data.query", "+0.data.query", "0.data.", "0.data.query",
             "0.data", "1.data.query", " 0.data.query", "0.sums.query", "0_0.data.query", "0.claims.margin"]
)  # fmt: skip
def test_a_tensor_cannot_override_or_stand_beside_the_metadata(name, tmp_path):
    path = tmp_path / "c.safetensors"
    entries = f'[{{{SELECTS}, "claims": {{"margin": 1.0}}}}]'
    save_file({}, path, metadata={"certificates": entries})
    assert load(path)[0].verify()
    save_file({name: np.array([9.0])}, path, metadata={"certificates": entries})
    with pytest.raises(QkvError, match="damaged or no certificate"):
        load(path)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_tensors_of_another_type_are_refused(dtype, tmp_path):
    path = tmp_path / "c.safetensors"
    entries = '[{"kind": "selects", "data": {"keys": [[1.0], [0.0]], "item": 0}, "claims": {"margin": 1.0}}]'
    save_file({"0.data.query": np.array([2], dtype=dtype)}, path, metadata={"certificates": entries})
    with pytest.raises(QkvError, match="not float64"):
        load(path)


def test_integers_that_float64_rounds_are_refused_in_memory_too():
    data = {"keys": [[2**53 + 1], [0]], "item": 0, "query": [1.0]}
    assert "rounds" in Certificate("selects", data, {"margin": 1.0}).verify().why
    assert Certificate("selects", data | {"keys": [[2**53], [0]]}, {"margin": 2.0**53}).verify()
    assert not Certificate("selects", data | {"keys": [[2**53], [0]]}, {"margin": 2**53 + 1}).verify()
    assert not Certificate("selects", data | {"keys": np.array([[2**63 + 1], [0]], np.uint64)}, {"margin": 1}).verify()


@pytest.mark.parametrize("path", [None, 3, ["c.json"], b"c.json"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(QkvError, match="the path is"):
        Certificate.load(path)
    with pytest.raises(QkvError, match="the path is"):
        Certificate("selects", {}, {}).save(path)


def test_hidden_entries_of_masked_arrays_are_never_read():
    keys = np.ma.masked_array([[1.0], [0.0]], mask=[[False], [True]])
    verdict = Certificate("selects", {"keys": keys, "item": 0, "query": [2.0]}, {"margin": 1.0}).verify()
    assert not verdict and "masked" in verdict.why
    with pytest.raises(QkvError, match="masked"):
        Certificate.issue("selects", {"keys": keys, "item": 0, "query": [2.0]})
