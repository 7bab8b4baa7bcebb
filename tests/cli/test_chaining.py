"""Results of one command as input of the next: what --save and --json write is read wherever it is asked for."""

import json

import numpy as np
import pytest
from marks import some, spread

from qkv.core.documents import named_arrays
from qkv.design.certificates import load
from qkv.design.certificates.results import differences
from qkv.errors import QkvError

STORY = ("--orthonormal", "6x8", "--weights", "0=1/2,1=1/2", "--isotropic", "1e-6", "--along", "0=0.5")


@pytest.fixture
def made(files, shell, monkeypatch):
    """A function that runs a command with --json and writes its document to a file."""
    monkeypatch.chdir(files)

    def write(name, *words):
        done = shell(*words, "--json")
        assert done.code in (0, 1), done.err
        (files / name).write_text(done.out)
        return done.data

    return write


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_query_from_save_and_from_json_reads_the_same(suffix, made, shell, files):
    printed = made(
        "printed.json", "design", "blend", "keys.csv", "--weights", "a=1/4,b=3/4", "--save", f"saved{suffix}"
    )
    weights = [
        shell("read", "keys.csv", "--query", f, "--json").data["weights"] for f in ("printed.json", f"saved{suffix}")
    ]
    assert weights[0] == weights[1] and weights[0][:2] == pytest.approx([0.25, 0.75], abs=1e-3)
    moments = [shell("noise", "moments", "keys.csv", "--query", f, "--isotropic", "0.01", "--json").data
               for f in ("printed.json", f"saved{suffix}")]  # fmt: skip
    assert moments[0] == moments[1]
    assert printed["possible"]


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_saved_result_is_a_memory_with_its_keys_and_values(suffix, made, shell, files):
    np.savez(files / "m.npz", keys=np.eye(3), values=[[1.0], [2.0], [5.0]])
    made("q.json", "design", "copy", "m.npz", "--item", "2", "--save", f"saved{suffix}")
    done = shell("read", f"saved{suffix}", "--query", f"saved{suffix}", "--json")
    assert done.data["output"] == pytest.approx([5.0], abs=0.01)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_saved_result_keeps_the_names_of_its_items(suffix, made, shell):
    made("q.json", "design", "blend", "keys.csv", "--weights", "a=1/4,b=3/4", "--save", f"saved{suffix}")
    again = shell("design", "copy", f"saved{suffix}", "--item", "b", "--json")
    assert again.data["wanted"] == {"b": 1.0}
    assert shell("design", "verify", f"saved{suffix}").code == 0


SAVED = {
    "copy": ("copy", "keys.csv", "--item", "b"),
    "copy that cannot be": ("copy", "inside.csv", "--item", "middle"),
    "blend": ("blend", "keys.csv", "--weights", "a=1/4,b=3/4"),
    "blend with a weight of 0": ("blend", "keys.csv", "--weights", "b=1,a=0"),
    "blend that cannot be": ("blend", "inside.csv", "--weights", "middle=1/2,a=1/2"),
    "project": ("project", "spans.npz", "B"),
    "no projection": ("project", "spans.npz", "A"),
    "wire": ("wire", "tokens.npz", "--reads", "0:2,1:0", "--writes", "writes"),
    "wire a blend": ("wire", "tokens.npz", "--reads", "0:1=0.5+2=0.5,1:0", "--writes", "writes"),
    "no wiring": ("wire", "same.npz", "--reads", "0:1,1:0", "--writes", "writes"),
    "reach": ("reach", "tokens.npz", "--token", "1", "--along", "u_d", "--target", "u_b"),
    "copyable": ("copyable", "keys.csv"),
    "not all copyable": ("copyable", "inside.csv"),
    "every text": ("wire-texts", "words.npz", "--reads", "previous", "--length", "6"),
    "induction": ("wire-texts", "words.npz", "--reads", "induction", "--length", "5", "--sink", "0"),
    "given texts": ("wire-texts", "words.npz", "--reads", "duplicate", "--length", "4", "--texts", "texts.json"),
    "no head": ("wire-texts", "alike.npz", "--reads", "duplicate", "--length", "3", "--texts", "torn.json"),
}


def leaves(value, path=()):
    """The paths of all numbers, texts, truth values and empty places, at any depth."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, list | dict):
            yield from leaves(each, (*path, name))
        else:
            yield (*path, name)


def others(value):
    """Other values for a leaf, near and far, of its type and of another."""
    if isinstance(value, bool):
        return [not value, int(value), "yes"]
    if isinstance(value, int | float):
        return [value + 1e-6 + 1e-6 * abs(value), value - 1e-6 - 1e-6 * abs(value), -value - 1.0, str(value), [value]]
    return [value + "x", 1.0] if isinstance(value, str) else [1.0, True, "x", [1.0], {"x": 1.0}]


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def at(result, path):
    """What stands at a path."""
    for name in path:
        result = result[name]
    return result


def with_leaf(result, path, value):
    """A copy of a result with another value at a path."""
    changed = json.loads(json.dumps(result))
    at(changed, path[:-1])[path[-1]] = value
    return changed


@pytest.fixture(params=SAVED, ids=SAVED)
def saved(request, files, shell, monkeypatch):
    """A file of --save of one kind of design."""
    monkeypatch.chdir(files)
    done = shell("design", *SAVED[request.param], "--save", "saved.json")
    assert done.code in (0, 1), done.err
    return files / "saved.json"


def test_a_result_beside_certificates_that_is_not_theirs_is_refused(saved, shell):
    document = json.loads(saved.read_text())
    result, certificates = document["result"], load(saved)
    first = certificates[0]

    def refused(changed):
        return [each.field for each in differences(changed, certificates)]

    assert shell("design", "verify", saved).code == 0 and refused({}) == []
    certified_tol = any("tol" in each.data and each.kind != "no query within tol" for each in certificates)
    free = {"labels"} | ({"tol"} if not certified_tol else set())
    for path in leaves({name: each for name, each in result.items() if name not in free}):
        for value in others(at(result, path)):
            changed = with_leaf(result, path, value)
            named = {"multiple": {"distance"}}.get(path[0], {path[0]}) if is_number(value) else {path[0]}
            near = path == ("multiple",) and is_number(value) and abs(value - result["multiple"]) < 1e-5
            assert near or named <= set(refused(changed)), (path, value)
    for value in (0.0, 1.0, -1.0, True, "0.001", [0.001], {}):
        assert "tol" not in result or "tol" in refused({**result, "tol": value})
    for name in (
        "keys", "values", "queries", "X", "M", "mix", "weights", "noise", "says", "status", "norm", "scale", "Distance",
        "bounds", "reasons",
    ):  # fmt: skip
        for value in ([[7.0, 7.0]], {"along": [1.0]}, "text", 3.0, None, True):
            assert name in result or refused({**result, name: value}) == [name]
    for name in result:  # what is missing states nothing, but without a tolerance much cannot be told
        bounds = [bound for bound in ("least_norm", "least_norm_within_tol") if result.get(bound) is not None]
        reads = first.kind in ("weights", "wiring", "every text", "given texts", "unreachable")
        unknown = {*(["possible"] if reads else []), *bounds} if name == "tol" else set()
        unknown |= {"distance"} if name == "multiple" else set()
        assert set(refused({key: each for key, each in result.items() if key != name})) == unknown
    assert refused({**result, "possible": not result["possible"]}) == ["possible"]
    saved.write_text(json.dumps({**document, "result": {**result, "keys": [[7.0, 7.0]]}}))
    assert shell("design", "verify", saved).code == 1


def test_commands_read_what_is_certified_and_not_what_stands_beside_it(made, shell, files):
    made("q.json", "design", "blend", "keys.csv", "--weights", "b=3/4,a=1/4", "--save", "saved.json")
    document = json.loads((files / "saved.json").read_text())
    before = shell("read", "saved.json", "--query", "saved.json", "--json").data
    wanted = shell("design", "blend", "saved.json", "--weights", "saved.json", "--json").data["wanted"]
    assert before["weights"][:2] == pytest.approx([0.25, 0.75], abs=1e-3) and wanted == {"b": 0.75, "a": 0.25}
    document["result"] |= {"query": [9.0, -9.0], "keys": [[1.0, 0.0]] * 3, "values": [[9.0]] * 3, "wanted": {"c": 1.0}}
    (files / "saved.json").write_text(json.dumps(document))
    assert shell("read", "saved.json", "--query", "saved.json", "--json").data == before
    assert shell("design", "blend", "saved.json", "--weights", "saved.json", "--json").data["wanted"] == wanted
    done = shell("design", "verify", "saved.json")
    assert done.code == 1 and "REFUSED" in done.out
    told = shell("design", "verify", "saved.json", "--json").data
    assert not told["holds"] and [each["claim"] for each in told["certificates"][-1]["findings"]] == [
        "result.wanted", "result.query", "result.keys", "result.values"
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_the_keys_of_copyable_are_a_memory(suffix, made, shell):
    made("c.json", "design", "copyable", "keys.csv", "--save", f"saved{suffix}")
    again = shell("design", "copy", f"saved{suffix}", "--item", "b", "--json")
    assert (
        again.code == 0 and again.data["query"] == made("d.json", "design", "copy", "keys.csv", "--item", "b")["query"]
    )


def test_a_result_goes_through_a_pipe(made, shell):
    text = json.dumps(made("q.json", "design", "copy", "keys.csv", "--item", "b"))
    done = shell("read", "keys.csv", "--query", "-", "--json", stdin=text)
    assert done.code == 0 and done.data["weights"][1] > 0.99
    keys = json.dumps({"keys": [[1, 0], [0, 1]], "labels": ["x", "y"]})
    assert shell("design", "copy", "-", "--item", "y", "--json", stdin=keys).data["wanted"] == {"y": 1.0}
    for text in ("", "{", '{"a": 1}', "[" * 5000):
        assert shell("read", "keys.csv", "--query", "-", stdin=text).code == 2


def test_heads_keep_their_mix(made, shell, files):
    found = made("hard.json", "noise", "harden", *STORY, "--heads", "2")
    assert len(found["queries"]) == 2
    found["mix"] = [0.9, 0.1]
    (files / "hard.json").write_text(json.dumps(found))
    read = shell("read", "--orthonormal", "6x8", "--query", "hard.json", "--json").data
    each = np.array(read["heads"])
    assert read["weights"] == pytest.approx(list(0.9 * each[0] + 0.1 * each[1]))
    moments = shell("noise", "moments", "--orthonormal", "6x8", "--query", "hard.json", "--isotropic", "1e-9", "--json")
    assert moments.data["weights_mean"] == pytest.approx(read["weights"], abs=1e-3)
    found["mix"] = [0.9, 0.1, 0.0]
    (files / "hard.json").write_text(json.dumps(found))
    assert "2 queries and 3 factors" in shell("read", "--orthonormal", "6x8", "--query", "hard.json").err


@pytest.mark.parametrize(
    "verb", some(["harden", "compare", "probability", "moments", "sample"], ["compare", "moments"])
)
def test_noise_and_weights_are_read_from_every_noise_command(verb, made, shell, files):
    made("hard.json", "noise", "harden", *STORY)
    more = ("--query", "hard.json") if verb in ("probability", "moments", "sample") else ()
    weights = STORY[2:4] if verb in ("harden", "compare", "probability") else ()
    made("first.json", "noise", verb, *STORY[:2], *weights, *STORY[4:], *more)
    again = ("--noise", "first.json", *(("--weights", "first.json") if weights else ()))
    second = shell("noise", verb, *STORY[:2], *again, *more, "--json")
    assert second.data == json.loads((files / "first.json").read_text()), second.err


def test_covariances_and_bits_are_noise_in_a_file_too(made, shell, files):
    (files / "cov.json").write_text(json.dumps((0.01 * np.eye(2)).tolist()))
    query = ("keys.csv", "--query", "query.json")
    for noise in (("--covariance", "cov.json"), ("--bits", "4")):
        made("m.json", "noise", "moments", *query, *noise)
        again = shell("noise", "moments", *query, "--noise", "m.json", "--json")
        assert again.data == json.loads((files / "m.json").read_text())


@pytest.mark.parametrize(
    ("text", "says"),
    spread(
        [
            ('{"isotropic": "x"}', "isotropic is 'x'"),
            ('{"isotropc": 1}', "it holds isotropc"),
            ('{"noise": 5}', "it holds 5"),
            ('{"along": [1]}', "along is"),
            ('{"along": {"z": 1}}', "no item has this label"),
            ('{"along": {"a": null}}', "along a is None"),
            ('{"bits": 2.5}', "bits is 2.5"),
            ('{"bits": true}', "bits is True"),
            ('{"bits": 2, "isotropic": 1}', "another kind"),
            ('{"covariance": "x"}', "covariance"),
            ('{"covariance": [[1]]}', "covariance"),
            ("{}", "it holds nothing"),
            ('{"isotropic": null}', "no noise was given"),
            ("[1]", "it holds"),
        ],
        5,
    ),
)
def test_a_file_that_holds_no_noise_is_refused(text, says, files, shell, monkeypatch):
    monkeypatch.chdir(files)
    (files / "noise.json").write_text(text)
    done = shell("noise", "moments", "keys.csv", "--query", "query.json", "--noise", "noise.json")
    assert done.code == 2 and says in done.err
    both = shell("noise", "moments", "keys.csv", "--query", "query.json", "--noise", "noise.json", "--bits", "3")
    assert both.code == 2 and "one kind" in both.err


def test_weights_come_from_a_design_a_reading_or_a_vector(made, shell, files):
    made("design.json", "design", "blend", "keys.csv", "--weights", "a=1/4,b=3/4")
    assert shell("design", "blend", "keys.csv", "--weights", "design.json", "--json").data["wanted"] == {
        "a": 0.25,
        "b": 0.75,
    }
    reading = made("reading.json", "read", "keys.csv", "--query", "design.json")
    again = shell("design", "blend", "keys.csv", "--weights", "reading.json", "--tol", "0.01", "--json").data
    assert list(again["wanted"].values()) == reading["weights"]
    (files / "w.json").write_text("[0.5, 0.5, 0]")
    assert shell("design", "blend", "keys.csv", "--weights", "w.json", "--json").data["wanted"] == {"a": 0.5, "b": 0.5}
    for text, says in (
        ("[1]", "other items"),
        ('{"wanted": {"z": 1}}', "no item"),
        ('{"wanted": {"a": "x"}}', "is 'x'"),
    ):
        (files / "w.json").write_text(text)
        done = shell("design", "blend", "keys.csv", "--weights", "w.json")
        assert done.code == 2 and says in done.err
    assert "other items" in shell("design", "blend", "inside.csv", "--weights", "reading.json").err


def test_matrices_from_wire_are_verified_and_its_tokens_used_again(made, shell, files):
    rules = ("--reads", "0:2,1:0", "--writes", "tokens.npz")
    found = made("wired.json", "design", "wire", "tokens.npz", *rules)
    assert found["possible"] and shell("design", "verify", "wired.json", *rules).code == 0
    assert shell("design", "wire", "wired.json", *rules, "--json").data["Q"] == found["Q"]
    assert shell("design", "verify", "wired.json").code == 2  # a document of --json holds no certificate


@pytest.mark.slow
def test_a_run_is_named_by_the_document_of_its_training(trained, shell, files, monkeypatch):
    monkeypatch.chdir(files)
    size = ["--steps", "1", "--batch-size", "2", "--n-layer", "1", "--d-model", "16", "--n-head", "2"]
    done = shell("pretrain", "--text", trained / "text.txt", "--out", "base", *size, "--json")
    (files / "base.json").write_text(done.out)
    assert shell("generate", "base.json", "Ada", "--max-new-tokens", "2").code == 0
    tuned = shell(
        "finetune", "base.json", "--questions", trained / "known.tsv", "--steps", "1", "--batch-size", "2", "--json"
    )
    (files / "tuned.json").write_text(tuned.out)
    assert shell("ask", "tuned.json", "Who?", "--n-samples", "0").code == 0
    assert shell("evaluate", "tuned.json", "--questions", trained / "known.tsv").code == 0
    assert shell("export", "base.json", "--out", "hf").code == 0
    several = shell("pretrain", "--text", trained / "text.txt", "--out", "many", *size, "--seeds", "2", "--json")
    (files / "many.json").write_text(several.out)
    assert "names 2 runs" in shell("generate", "many.json", "Ada").err
    assert "names no run" in shell("generate", "query.json", "Ada").err


def test_the_document_of_a_refusal_is_refused_with_its_message(made, shell, files):
    done = shell("design", "copy", "keys.csv", "--item", "z", "--json")
    (files / "refused.json").write_text(done.out)
    again = shell("read", "keys.csv", "--query", "refused.json")
    assert again.code == 2 and "no item has this label" in again.err and "Mend that command first" in again.err


def test_other_files_are_read_as_before():
    assert named_arrays("reading", {"queries": 1, "schema": "mine"}) == {"queries": 1, "schema": "mine"}
    assert named_arrays("reading", {"schema": "qkv/x", "version": 1, "queries": 1, "b": None}) == {
        "queries": 1,
        "query": 1,
        "along": 1,
    }
    with pytest.raises(QkvError, match="refusal"):
        named_arrays("reading", {"schema": "qkv/error", "message": "no"})


def test_a_sweep_reads_standard_input(shell):
    text = json.dumps({"keys": [[4, 0], [0, 4]], "queries": [[1, 0], [0, 1]]})
    done = shell("noise", "sweep", "-", "--isotropic", "0.01", "--processes", "1", "--json", stdin=text)
    assert done.code == 0 and len(done.data["heads"]) == 2
