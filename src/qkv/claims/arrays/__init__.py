"""Claims about vectors and matrices of any size: softmax of a vector, permutations, heads, entropies, random features.

Reading order: context (what is declared), terms (sums of products of matrices), functions (softmax and the others),
evaluator (syntax tree to terms), expectations (Gaussian vectors), facts and combination (inequalities), instances and
exact_values (ball arithmetic), decide (a claim to its verdict).
"""
