"""The prover: matrix_polynomials and evaluator, sign_analysis and growth_limits, then a module a kind of statement."""
