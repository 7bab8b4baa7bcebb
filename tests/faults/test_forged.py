"""A short part of the forgeries; and a checker that accepts everything is caught."""

import shutil

import pytest

from faults import forged_certificates, forged_proofs


def test_forged_certificates_are_refused_unless_they_are_true():
    found = forged_certificates.run(20, seed=5)
    assert found.harmless, found.examples
    assert found.tried == 20 and found.refused > 5 and found.other_input > 1


def test_a_checker_that_accepts_everything_is_caught(monkeypatch):
    from qkv.design.certificates.certificate import Certificate

    monkeypatch.setattr(Certificate, "verify", lambda self: True)
    assert forged_certificates.run(20, seed=5).believed > 3


@pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no coqc")
@pytest.mark.slow
def test_forged_proofs_are_refused():
    found = forged_proofs.run(8, seed=0)
    assert found.harmless and found.refused == 8, found.examples


def test_a_statement_that_cannot_be_changed_is_an_error():
    with pytest.raises(RuntimeError, match="not in the statement"):
        forged_proofs._changed("Theorem x : 1 = 1.\nProof. reflexivity. Qed.", "2", "3")
