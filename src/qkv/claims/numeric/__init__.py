"""Numerical evidence: a claim on concrete arrays, independent of the prover.

Reading order: evaluator (syntax tree to arrays), arithmetic and exact_evaluator (the same in balls and in symbols),
confirmation (whether an instance violates a claim for certain), instances (arrays that meet what is given),
counterexample_search (instances that are likely to violate it), noise_moments (exact statistics), limit_checks and
item_limit_checks (limits), counterexample (an instance as Python), evidence (the tally).
"""
