"""A short part of the forgeries; and a checker that accepts everything is caught."""

import shutil

import numpy as np
import pytest

from faults import forged_certificates, forged_proofs, forged_results


@pytest.mark.parametrize("run", [forged_certificates.run, forged_certificates.run_extreme])
def test_forged_certificates_are_refused_unless_they_are_true(run):
    found = run(34, seed=5)
    assert found.harmless, found.examples
    assert found.tried == 34 and found.refused > 9 and found.other_input > 2


@pytest.mark.parametrize("run", [forged_certificates.run, forged_certificates.run_extreme])
def test_a_checker_that_accepts_everything_is_caught(run, monkeypatch):
    from qkv.design.certificates.certificate import Certificate

    monkeypatch.setattr(Certificate, "verify", lambda self: True)
    assert run(20, seed=5).believed > 3


@pytest.mark.slow
def test_norms_whose_squares_underflow_are_caught(monkeypatch):
    """The norms of a bound as numpy takes them: a forged bound that only underflow proves is believed then."""
    from qkv.design.certificates.statements import given_texts

    monkeypatch.setattr(given_texts, "norms", lambda rows: np.linalg.norm(rows, axis=1))
    monkeypatch.setattr(given_texts, "scaled", lambda a: (a, 0))
    assert forged_certificates.run_extreme(1200, seed=0).believed


@pytest.mark.slow
def test_results_that_say_more_than_their_certificates_are_refused(monkeypatch):
    from qkv.design.certificates import certificate

    found = forged_results.run(140, seed=0)
    assert found.harmless and found.refused > 60 and found.other_input > 20, found.examples
    monkeypatch.setattr(certificate, "differences", lambda result, records: [])
    assert forged_results.run(140, seed=0).believed > 60


@pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no coqc")
@pytest.mark.slow
def test_forged_proofs_are_refused():
    found = forged_proofs.run(8, seed=0)
    assert found.harmless and found.refused == 8, found.examples


def test_a_statement_that_cannot_be_changed_is_an_error():
    with pytest.raises(RuntimeError, match="not in the statement"):
        forged_proofs._changed("Theorem x : 1 = 1.\nProof. reflexivity. Qed.", "2", "3")
