"""Numerical solvers: kernel machines, conic programs, Newton refinement, certificates of infeasibility.

Reading order: conic (the programs), newton (refinement on all keys), infeasibility (dual evidence to a certificate).
"""
