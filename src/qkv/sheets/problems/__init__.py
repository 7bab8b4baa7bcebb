"""Problem files: what a problem asks, part by part, and which edition of it a sheet answers."""

from __future__ import annotations

from qkv.sheets.problems.edition import best_fit as best_fit
from qkv.sheets.problems.edition import detect_edition as detect_edition
from qkv.sheets.problems.edition import is_own_text as is_own_text
from qkv.sheets.problems.edition import part_holding as part_holding
from qkv.sheets.problems.edition import part_named as part_named
from qkv.sheets.problems.problem import Part as Part
from qkv.sheets.problems.problem import Problem as Problem
from qkv.sheets.problems.problem import Question as Question
from qkv.sheets.problems.problem_file import SHIPPED as SHIPPED
from qkv.sheets.problems.problem_file import editions as editions
from qkv.sheets.problems.problem_file import load_problem as load_problem
from qkv.sheets.problems.problem_file import read_problem as read_problem
