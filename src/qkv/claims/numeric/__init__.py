"""Numerical evidence: a claim on concrete arrays, independent of the prover.

Reading order: evaluator (syntax tree to arrays), instances (arrays that meet what is given), noise_moments (exact
statistics), limit_checks and item_limit_checks (limits), counterexample (an instance as Python), evidence (the tally).
"""
