"""Answers of a run: model, beam search, attention on the name, ask."""
