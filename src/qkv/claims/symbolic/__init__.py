"""The prover: from the syntax tree to a proof, a refutation, a condition, or "unknown".

Reading order: factors, unknowns and matrix_polynomials (what values are made of), algebra and evaluator with
attention_terms, basis_sums and statistics (expression to value), sign_analysis, case_split and growth_limits (signs
and limits of scalars), conditions and thresholds, relations, limit_statements and impossibility (one kind of statement
each), prover (dispatch by kind), proof and printing (the outcome).
"""
