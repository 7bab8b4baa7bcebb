"""Numerical evidence: instances, evaluator, limit checks, counterexamples, and the tally over all of them."""
