"""Coq accepts the theorems of true claims, and refuses those of false ones."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest
from marks import spread
from typer.testing import CliRunner

import qkv
from qkv.claims.catalogue import documents
from qkv.claims.kernel import certify, coq
from qkv.claims.kernel.export import exported
from qkv.claims.kernel.terms import NotExported
from qkv.claims.syntax.markdown import UnparsedClaim, read
from qkv.claims.syntax.nodes import Malformed
from qkv.cli import app
from qkv.errors import QkvError

from .flips import flipped

STANDARD_AXIOMS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
DOCUMENT = """
```claim average
given k_1..k_n orthonormal, n >= 3
let   q = t*(k_a + k_b)
then  c -> (v_a + v_b)/2 as t -> oo
then  c -> v_a as t -> oo
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
```

```claim tokens
given u_a, u_b, u_c, u_d orthogonal of norm beta
let   x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b
then  alpha_{22} = exp(beta^2)/(exp(beta^2) + 2)
then  c is permutation equivariant
```
"""
WRONG_REDUCTIONS = [  # what would follow if a step of a reduction were wrong
    ("given k_1..k_n orthonormal, n >= 3, t real\nlet q = t*(k_a + k_b)", "alpha_a = exp(t)/(exp(t) + n - 2)"),
    ("given k_1..k_n orthonormal, n >= 3, t real\nlet q = t*(k_a + k_b)", "alpha_a = exp(t)/(2*exp(t) + n - 1)"),
    ("given k_1..k_n orthonormal, n >= 3, t real\nlet q = t*(k_a + k_b)", "c -> v_a + v_b as t -> oo"),
    ("given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3", "Var[(2*mu_a)'k_a] = 2*eps"),
]


def claims_of(text):
    return [c for c in read(text) if not isinstance(c, UnparsedClaim)]


def accepted(claims):
    """Which of some claims Coq accepts a theorem of, each in a file of its own."""
    return [bool(certify._accepted({0: exported(claim)})[0]) for claim in claims]


def test_theorems_that_cannot_be_written_leave_no_half_of_a_file(tmp_path, monkeypatch):
    certify._save(tmp_path, "claims", [])
    before = (tmp_path / "Attention.v").read_text()

    def full(path, text, **how):
        path.write_bytes(text[:5].encode())
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_text", full)
        with pytest.raises(QkvError, match=r"--save-proofs .*No space left"):
            certify._save(tmp_path, "claims", [])
    assert [path.read_text() for path in tmp_path.iterdir()] == [before]


@pytest.mark.parametrize("name", ["Attention.v", "claims_1.v"])
def test_theorems_replace_no_file_that_qkv_did_not_write(name, tmp_path):
    export = SimpleNamespace(text=lambda name: f"(* {name} *)\n")
    (tmp_path / name).write_text("mine")
    with pytest.raises(QkvError, match=f"{name} is there already"):
        certify._save(tmp_path, "claims", [{0: export}])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    (tmp_path / name).unlink()
    for _ in range(2):
        certify._save(tmp_path, "claims", [{0: export}])
    assert {path.name for path in tmp_path.iterdir()} == {"Attention.v", "claims_1.v"}


@pytest.mark.parametrize("name", ["Attention.v", "claims_1.v"])
def test_theorems_that_a_user_went_on_with_are_not_replaced(name, tmp_path):
    first, second = ([{0: SimpleNamespace(text=lambda name, i=i: f"(* {name} {i} *)\n")}] for i in range(2))
    certify._save(tmp_path, "claims", first)
    certify._save(tmp_path, "claims", second)  # replaces its own, also where they differ
    own = (tmp_path / name).read_text()
    changed = [own + "Lemma mine : True. Proof. exact I. Qed.\n", own.replace("(*", "(* mine", 1), ""]
    for text in changed:
        (tmp_path / name).write_text(text)
        before = {path.name: path.read_text() for path in tmp_path.iterdir()}
        with pytest.raises(QkvError, match=f"{name} is there already"):
            certify._save(tmp_path, "claims", second)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / "nothing")
    with pytest.raises(QkvError, match=f"{name} is there already"):
        certify._save(tmp_path, "claims", second)


def test_proved_claims_are_checked_and_the_verdict_says_so(needs_coq, tmp_path):
    found = qkv.check(DOCUMENT, kernel="coq", save_proofs=tmp_path)
    version = f"Coq {coq.short_version()}"
    words = f"proved, and checked by {version}"
    assert [v.words for v in found] == [words, "refuted", words, words, "proved, by qkv alone"]
    assert found[0].kernel.form == "over vectors and n items" and "attend n vec_k" in found[0].kernel.theorem
    assert found[1].kernel is None and "permutations" in found[4].kernel.because
    assert found.counts() == {"proved": 4, "refuted": 1}
    assert found.to_json()["verdicts"][0]["kernel"]["accepted"] is True
    assert words in str(found[0].card()) and words in found._repr_html_()
    (saved,) = tmp_path.glob("claims_*.v")
    text = saved.read_text()
    assert (tmp_path / "Attention.v").exists() and text.count("Theorem") == 3 and "(* c -> (v_a + v_b)/2" in text
    assert _axioms(text) <= STANDARD_AXIOMS


def session(text):
    """What coqtop prints of a text; unlike coqc, it goes on after an error. It leaves files where it runs."""
    command = ["coqtop", "-q", "-w", "none", "-R", str(coq.library()), "qkv"]
    with tempfile.TemporaryDirectory() as folder:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "check": False, "cwd": folder}
        return subprocess.run(command, input=text, **options).stdout


def _axioms(text):
    """The axioms that the theorems of a file rest on."""
    names = [line.split()[1] for line in text.splitlines() if line.startswith("Theorem")]
    asked = text + "".join(f"Print Assumptions {name}.\n" for name in names)
    said = session(asked)
    assert said.count("Axioms:") == len(names)
    lines = said.partition("Axioms:")[2].splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith((" ", "Coq <", "Axioms:"))}


@pytest.mark.parametrize(("given", "wrong"), spread(WRONG_REDUCTIONS, 4))
def test_a_wrong_reduction_is_refused(needs_coq, given, wrong):
    assert accepted(claims_of(f"```claim x\n{given}\nthen {wrong}\n```")) == [False]


def test_flipped_claims_are_refused(needs_coq):
    true = claims_of(DOCUMENT)
    false = [one for claim in true if claim.id in ("average #3", "tokens #1") for one in flipped(claim)]
    exports = {place: exported(claim) for place, claim in enumerate([true[0], *false])}
    assert len(false) == 2 and names_accepted(exports) == {0}


def test_without_coq_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    coq.version.cache_clear()
    with pytest.raises(QkvError, match="apt install coq libcoq-coquelicot"):
        qkv.check(DOCUMENT, kernel="coq")
    page = tmp_path / "a.md"
    page.write_text(DOCUMENT)
    result = CliRunner().invoke(app, ["check", str(page), "--kernel"])
    assert result.exit_code != 0
    coq.version.cache_clear()
    assert [v.kernel for v in qkv.check(DOCUMENT)] == [None] * 5  # everything else works as before


def test_what_is_asked_wrongly_is_refused(tmp_path):
    with pytest.raises(QkvError, match="no kernel 'lean'"):
        qkv.check(DOCUMENT, kernel="lean")
    with pytest.raises(QkvError, match="without a kernel"):
        qkv.check(DOCUMENT, save_proofs=tmp_path)


@pytest.mark.slow
def test_coqc_is_ended_when_its_time_is_over(needs_coq):
    outcome = coq.checked(coq.HEADER + "(* an hour *) Goal True. do 1000000000 idtac. Abort.\n", 4)
    assert not outcome.accepted and "longer than 4 s" in outcome.message


def test_a_text_is_checked_once_in_a_run(needs_coq, monkeypatch):
    text = coq.HEADER + "Goal 1 = 2. Proof. reflexivity. Qed.\n"
    first = coq.checked(text, 60)
    assert not first.accepted and first.line == 6
    monkeypatch.setattr(coq, "_run", lambda *args: pytest.fail("checked again"))
    assert coq.checked(text, 60) == first


@pytest.mark.slow
def test_two_processes_compile_the_library_at_the_same_time(needs_coq, tmp_path):
    code = "from qkv.claims.kernel import coq; print(coq.library())"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    places = {run.communicate()[0].strip() for run in runs}
    assert len(places) == 1 and all(run.returncode == 0 for run in runs)
    assert {p.name for p in (tmp_path / "qkv").iterdir()} == {places.pop().rpartition("/")[2]}


def names_accepted(exports):
    """Which theorems Coq accepts, all in one session."""
    text = coq.HEADER + "Set Default Timeout 10.\n"
    for place, export in exports.items():
        text += export.text(f"claim_{place}") + f"Abort All.\nCheck claim_{place}.\n"
    said = session(text)
    refused = {int(n) for n in re.findall(r"The reference claim_(\d+) was not found", said)}
    return set(exports) - refused


@pytest.mark.slow
def test_coq_accepts_most_of_the_catalogue(needs_coq):
    found = [v for _, text in documents() for v in qkv.check(text, kernel="coq") if v.kernel is not None]
    assert sum(v.kernel.accepted for v in found) >= 0.85 * len(found)
    assert sum(v.kernel.form.startswith("over vectors") for v in found) >= 0.5 * len(found)


@pytest.mark.slow
def test_no_flipped_claim_of_the_catalogue_is_accepted(needs_coq):
    false = []
    for _, text in documents():
        for claim, verdict in zip(read(text), qkv.check(text), strict=True):
            false += flipped(claim) if verdict.verdict == "proved" else []
    exports = {}
    for place, claim in enumerate(false):
        with contextlib.suppress(NotExported, Malformed):
            exports[place] = exported(claim)
    assert len(exports) > 200
    assert [false[place].statement.core for place in names_accepted(exports)] == []


@pytest.mark.slow
def test_functions_that_are_written_out_are_checked(needs_coq):
    given = "given k_1..k_n orthonormal, n = 2, t real\nlet q = t*k_a\n"
    said = {
        "norm(q) = abs(t)": True,
        "norm(q) = t": False,
        "alpha_a = sigmoid(t)": True,
        "alpha_a = sigmoid(-t)": False,
        "inner(k_a, q) = t": True,
    }
    claims = claims_of("\n".join(f"```claim x\n{given}then {then}\n```" for then in said))
    assert accepted(claims) == list(said.values())
