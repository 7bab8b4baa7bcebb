"""Statements of a sheet: each formula as a claim, decided.

Reading order: tree, tokens, parser (LaTeX math to clauses); worlds (what a part takes as given); writing (clauses in the
language of claims); notation (which letter stands for what); circumstances (conditions, goals and hypotheses in the words
around a formula); deciding (claims and their verdicts); judge (one verdict for each formula).
"""
