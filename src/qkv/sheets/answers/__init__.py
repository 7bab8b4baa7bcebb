"""Answers: the author's constructions, found in a sheet and put to the goals of the problem.

Reading order: construction and decided (what an author answers, what it is worth), goal_check (claim blocks and what
qkv.claims says of them), letters (an author's letters as the problem's), decide and samples (verdicts), tree_text
(formulas in the language of claims), regions (what belongs to a part), find_constructions, find_outcomes,
find_conditions, find_facts (what stands in a sheet), answer_sheet (all of it).
"""

from __future__ import annotations

from qkv.sheets.answers.answer_sheet import answers_of as answers_of
from qkv.sheets.answers.construction import Construction as Construction
from qkv.sheets.answers.construction import Outcome as Outcome
from qkv.sheets.answers.decide import decide_answer as decide_answer
from qkv.sheets.answers.decided import Decided as Decided
