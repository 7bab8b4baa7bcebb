"""Numerical solvers: kernel machines, conic programs, Newton refinement, certificates of infeasibility.

Reading order for queries: conic (the programs), newton (refinement on all keys), infeasibility (dual evidence to a
certificate). For wirings: sequence_rules (the request), score_constraints and augmented_lagrangian (the method),
kernel_machine (its two entry points), near_wiring (where exact ratios cannot be had), contradictions (proofs). For
projections: subspaces (nearest vectors and projectors of two spans).
"""
