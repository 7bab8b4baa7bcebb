"""Statements of a sheet: each formula as a claim, decided.

Reading order: tree, tokens, conditions, expressions, parser (LaTeX math to clauses); parsed_formulas (of a sheet);
worlds (what a part takes as given); writing (clauses in the language of claims); notation (which letter stands for
what); reading_of (one way to take the letters); indices (what indices stand for); circumstances (conditions, goals and
hypotheses in the words around a formula); deciding and links (claims and verdicts); judge (a verdict for each formula).
"""
