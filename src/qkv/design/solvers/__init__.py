"""Numerical solvers: conic programs, Newton refinement, evidence of infeasibility."""
