"""Theorems of proved claims for Coq, in the notions of Attention.v, and what coqc says of them.

Reading order: terms (Coq text with shapes), identifiers, translation (expressions), statement (the theorem of a claim),
then the scripts that prove it: score_hints and tops (formulas that Coq checks), exponentials, limit_proofs,
relation_proofs, moment_limits; export (theorem and script), coq (running coqc), certify (files of theorems, verdicts).
"""
