"""Answers: the author's constructions, found in a sheet and put to the goals of the problem."""
