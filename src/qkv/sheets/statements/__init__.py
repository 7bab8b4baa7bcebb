"""Statements of a sheet: each formula as a claim, decided.

Reading order: tree, tokens, conditions, expressions, parser (LaTeX math to clauses); parsed_formulas (of a sheet);
worlds (what a part takes as given); writing (clauses in the language of claims); notation (which letter stands for
what); reading_of (one way to take the letters); indices (what indices stand for); circumstances (conditions, goals and
hypotheses in the words around a formula); deciding and links (claims and verdicts); moves (lengths and values beside a
formula); world_choice (which givens it speaks of); sparing (why what is refuted is not called wrong); judge (a verdict
for each formula).
"""
